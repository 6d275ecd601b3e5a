// Who asks a head sends nothing of worth to somebody else who listens in its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "profiles/disk/archive_dir.h"
#include "serve/head_client.h"
#include "tests/unit/loopback.h"
#include "tests/unit/web_fake_source.h"
#include "web/server/server.h"

namespace sonde::serve::serve_head_proof_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kToken = "token-of-the-step";
constexpr const char* kTarget = "/profiles?of=interest";
constexpr Nanos kLimit = 10 * kSecond;

// Keeps what it hears. Answers with a text, or passes everything on to a port and back.
class Stranger {
 public:
  explicit Stranger(std::string answer) : answer_(std::move(answer)) { Begin(); }
  explicit Stranger(uint16_t head) : head_(head) { Begin(); }
  ~Stranger() { Stop(); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  Endpoint endpoint() const { return {HostName(), "127.0.0.1", listener_.port, kToken}; }
  const std::string& Heard() {
    Stop();
    return heard_;
  }

 private:
  void Begin() {
    thread_ = std::thread([this] {
      while (true) {
        const UniqueFd peer(accept(listener_.fd.get(), nullptr, nullptr));
        if (!peer) return;
        head_ == 0 ? Answer(peer.get()) : PassOn(peer.get());
      }
    });
  }
  void Stop() {
    shutdown(listener_.fd.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  void Answer(int peer) {
    char bytes[4096];
    for (ssize_t n = 0; (n = recv(peer, bytes, sizeof bytes, 0)) > 0;) {
      heard_.append(bytes, static_cast<size_t>(n));
      if (answer_.empty()) return;
      send(peer, answer_.data(), answer_.size(), MSG_NOSIGNAL);
    }
  }
  void PassOn(int peer) {
    const UniqueFd head(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(head_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(head.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return;
    pollfd ends[] = {{peer, POLLIN, 0}, {head.get(), POLLIN, 0}};
    while (poll(ends, 2, -1) > 0) {
      for (int i = 0; i < 2; ++i) {
        if (ends[i].revents == 0) continue;
        char bytes[4096];
        const ssize_t n = recv(ends[i].fd, bytes, sizeof bytes, 0);
        if (n <= 0) return;
        if (i == 0) heard_.append(bytes, static_cast<size_t>(n));
        send(ends[1 - i].fd, bytes, static_cast<size_t>(n), MSG_NOSIGNAL);
      }
    }
  }

  const std::string answer_;
  const uint16_t head_ = 0;
  const LoopbackListener listener_{8};
  std::string heard_;
  std::thread thread_;
};

std::unique_ptr<web::Server> Head() {
  web::Server::Options options;
  options.port = 0;
  options.token = kToken;
  auto server =
      web::Server::Start(options, std::make_shared<web::FakeSource>(Clock::System().Now()));
  EXPECT_TRUE(server.ok()) << server.status().message();
  return *std::move(server);
}

TEST(HeadProof, TheHeadIsAskedByAnyOfItsAddresses) {
  const auto head = Head();
  for (const char* address : {"127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"}) {
    const auto answer = AskHead({HostName(), address, head->port(), kToken}, kTarget, kLimit);
    ASSERT_TRUE(answer.ok()) << address << ": " << answer.status().message();
    EXPECT_THAT(*answer, HasSubstr("4711.0"));
  }
}

TEST(HeadProof, AStrangerIsToldNothingAndNamed) {
  const std::string proof = "nonce=" + std::string(64, 'a') + ", proof=" + std::string(64, 'b');
  for (const std::string& said :
       {std::string("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
        std::string("HTTP/1.1 204 No Content\r\n\r\n"),
        "HTTP/1.1 204 No Content\r\nSonde-Proof: " + proof + "\r\n\r\n",
        std::string("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")}) {
    Stranger stranger(said);
    const auto answer = AskHead(stranger.endpoint(), kTarget, kLimit);
    EXPECT_EQ(answer.status().code(), Code::kPermission) << said;
    EXPECT_THAT(std::string(answer.status().message()),
                AllOf(HasSubstr(std::to_string(stranger.endpoint().port)),
                      HasSubstr("does not prove to be the step's head")));
    EXPECT_THAT(stranger.Heard(), AllOf(HasSubstr("GET /api/v1/proof "), Not(HasSubstr(kToken)),
                                        Not(HasSubstr("/profiles"))));
  }
  Stranger closes("");
  EXPECT_EQ(TellHead(closes.endpoint(), "/alarms/add", "{}", kLimit).status().code(),
            Code::kUnavailable);
  EXPECT_THAT(closes.Heard(), AllOf(Not(HasSubstr(kToken)), Not(HasSubstr("/alarms"))));
}

TEST(HeadProof, WhoPassesEverythingOnToTheHeadIsToldNothingEither) {
  const auto head = Head();
  Stranger between(head->port());
  EXPECT_EQ(AskHead(between.endpoint(), kTarget, kLimit).status().code(), Code::kPermission);
  EXPECT_THAT(between.Heard(), AllOf(HasSubstr("GET /api/v1/proof "), Not(HasSubstr("/profiles"))));
}

// Whoever has that port of the host's other addresses is somebody else.
TEST(HeadProof, AHeadOnAnotherHostsLoopbackIsNotAsked) {
  for (const char* address : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) {
    Stranger stranger("");
    // By this name it would be found here.
    const Endpoint endpoint{"localhost", address, stranger.endpoint().port, kToken};
    const auto answer = AskHead(endpoint, kTarget, kLimit);
    EXPECT_EQ(answer.status().code(), Code::kUnsupported) << address;
    EXPECT_THAT(std::string(answer.status().message()), HasSubstr("ssh localhost"));
    EXPECT_THAT(stranger.Heard(), IsEmpty());
  }
}

TEST(HeadProof, AnAddressThatIsNoneIsNotAsked) {
  const auto answer = AskHead({HostName(), "login1", 4242, kToken}, kTarget, kLimit);
  EXPECT_EQ(answer.status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace sonde::serve::serve_head_proof_test
