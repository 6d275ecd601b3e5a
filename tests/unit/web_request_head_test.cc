// What is refused before any parser sees it.
#include <gtest/gtest.h>

#include "web/server/request_head.h"

namespace sonde::web::web_request_head_test {
namespace {

// 0: nothing is wrong with it.
int StatusOf(const std::string& head) {
  const auto fault = CheckHead(head);
  if (!fault) return 0;
  EXPECT_FALSE(fault->message.empty());
  return fault->status;
}

std::string With(const std::string& lines) {
  return "POST /api/query HTTP/1.1\r\nHost: x\r\n" + lines + "\r\n";
}

TEST(RequestHead, TakesWhatClientsSend) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: localhost:4242\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf(With("Content-Length: 12\r\nExpect: 100-continue\r\n")), 0);
  EXPECT_EQ(StatusOf(With("transfer-encoding: Chunked\r\n")), 0);
  EXPECT_EQ(StatusOf(With("Accept: a\r\nAccept: b\r\nX-Empty:\r\nX: \xc3\xa9\t.\r\n")), 0);
}

TEST(RequestHead, RefusesLengthsThatTwoProgramsCouldReadDifferently) {
  EXPECT_EQ(StatusOf(With("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(StatusOf(With("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n")), 400);
  EXPECT_EQ(StatusOf(With("Content-Length: 5\r\nContent-Length: 5\r\n")), 400);
  EXPECT_EQ(StatusOf(With("Content-Length: 5\r\ncontent-length: 6\r\n")), 400);
  for (const char* value : {"5, 5", "+5", "-1", "0x5", "5 5", "", "1e3", "99999999999999999999"}) {
    EXPECT_EQ(StatusOf(With("Content-Length: " + std::string(value) + "\r\n")), 400) << value;
  }
  for (const char* value : {"gzip", "gzip, chunked", "chunked, chunked", "identity", "xchunked",
                            "\"chunked\"", "chunked;q=1"}) {
    EXPECT_EQ(StatusOf(With("Transfer-Encoding: " + std::string(value) + "\r\n")), 501) << value;
  }
  EXPECT_EQ(StatusOf("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  // A blank before the colon hides the name from those that read it strictly.
  EXPECT_EQ(StatusOf(With("Content-Length : 5\r\n")), 400);
  EXPECT_EQ(StatusOf(With("X: a\r\n Content-Length: 5\r\n")), 400);
  EXPECT_EQ(StatusOf(With("X: a\r\n\tfolded\r\n")), 400);
}

TEST(RequestHead, RefusesWhatIsNoHeader) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\nHost: x\n\r\n"), 400);
  EXPECT_EQ(StatusOf(With("X: a\rContent-Length: 5\r\n")), 400);
  EXPECT_EQ(StatusOf(With(std::string("X: a\0b\r\n", 8))), 400);
  EXPECT_EQ(StatusOf(With("no colon\r\n")), 400);
  EXPECT_EQ(StatusOf(With(": no name\r\n")), 400);
  EXPECT_EQ(StatusOf("GET  / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /a b HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("G(T / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: x\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(StatusOf(With("Host: y\r\n")), 400);
  EXPECT_EQ(StatusOf(With("Authorization: a\r\nAuthorization: b\r\n")), 400);
}

TEST(RequestHead, SaysWhatItDoesNotUnderstand) {
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), 505);
  EXPECT_EQ(StatusOf(With("Expect: magic\r\n")), 417);
  std::string many;
  for (size_t i = 0; i < kMaxHeaderLines; ++i) many += "X: y\r\n";
  EXPECT_EQ(StatusOf(With(many)), 431);
}

TEST(RequestHead, FindsItsEnd) {
  EXPECT_EQ(HeadLength("GET / HTTP/1.1\r\n\r\nrest"), 18U);
  EXPECT_EQ(HeadLength("GET / HTTP/1.1\r\n"), std::string_view::npos);
}

}  // namespace
}  // namespace sonde::web::web_request_head_test
