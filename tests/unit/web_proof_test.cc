// A request that proves the token instead of sending it, on real connections: what the server takes
// and what not. Who asks is tested in serve_head_proof_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/unit/web_client.h"
#include "web/http/proof.h"

namespace sonde::web::web_proof_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Asking(std::string_view nonce) {
  return "GET /api/v1/proof HTTP/1.1\r\nHost: x\r\nAuthorization: " + AskerNonceText(nonce) +
         "\r\n\r\n";
}

// What an asker does, with each step to be replaced.
struct Asker {
  std::string token = "secret";
  std::string method = "GET";
  std::string target = "/profiles";
  std::string body;
  std::string proven_method = method;
  std::string proven_target = target;
  std::string proven_body = body;
  std::string address;  // "" is the server's

  std::string Request(const ProofParts& parts) const {
    const std::string digest = DigestOf(proven_body);
    const std::string proof = AskerProof(parts, {proven_method, proven_target, digest});
    return method + " " + target +
           " HTTP/1.1\r\nHost: x\r\nAuthorization: " + AskerProofText(proof, digest) +
           "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }
};

class ProofTest : public ServerTest {
 protected:
  std::string Address() const { return "127.0.0.1:" + std::to_string(server_->port()); }

  // The server's answer to a nonce, checked.
  ProofParts Begin(Client& client) const {
    ProofParts parts{"secret", std::string(64, 'a'), "", Address()};
    client.Send(Asking(parts.asker_nonce));
    const std::string answer = client.Receive(true);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 204 "));
    const size_t at = answer.find("Sonde-Proof: ");
    if (at == std::string::npos) return parts;
    const std::string header = answer.substr(at + 13, answer.find("\r\n", at) - at - 13);
    parts.head_nonce = ProofMember(header, "nonce").value_or("");
    EXPECT_EQ(ProofMember(header, "proof").value_or(""), HeadProof(parts));
    return parts;
  }

  std::string Answer(const Asker& asker) const {
    Client client(server_->port());
    ProofParts parts = Begin(client);
    parts.token = asker.token;
    if (!asker.address.empty()) parts.address = asker.address;
    client.Send(asker.Request(parts));
    return client.Receive();
  }
};

TEST_F(ProofTest, ARequestIsAnsweredWithoutTheTokenBeingSent) {
  Start();
  EXPECT_THAT(Answer({}), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("4711.0")));
  const std::string query(kQuery);
  EXPECT_THAT(Answer({.method = "POST", .target = "/api/query", .body = query}),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("dps")));
}

TEST_F(ProofTest, OneConnectionServesMoreThanOne) {
  Start();
  Client client(server_->port());
  for (int i = 0; i < 3; ++i) {
    client.Send(Asker().Request(Begin(client)));
    EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 200 ")) << i;
  }
}

TEST_F(ProofTest, IsRefusedIfAnyOfItsPartsDiffers) {
  Start();
  const std::string query(kQuery);
  const auto wrong = [&](const char* what, const std::function<void(Asker&)>& change) {
    Asker asker{.method = "POST", .target = "/api/query", .body = query};
    change(asker);
    EXPECT_THAT(Answer(asker), StartsWith("HTTP/1.1 401 ")) << what;
  };
  wrong("token", [](Asker& a) { a.token = "secrex"; });
  wrong("method", [](Asker& a) { a.proven_method = "PUT"; });
  wrong("target", [](Asker& a) { a.proven_target += "?"; });
  wrong("body", [](Asker& a) { a.proven_body += " "; });
  wrong("no body", [](Asker& a) { a.body.clear(); });
  wrong("address", [](Asker& a) { a.address = "127.0.0.1:1"; });
}

TEST_F(ProofTest, ServesOneRequestOnItsOwnConnection) {
  Start();
  Client client(server_->port());
  const std::string request = Asker().Request(Begin(client));
  client.Send(request);
  EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 200 "));
  client.Send(request);
  EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 401 "));
  // With the same nonce of the asker, for the head has another one.
  Begin(client);
  client.Send(request);
  EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 401 "));
  Client another(server_->port());
  another.Send(request);
  EXPECT_THAT(another.Receive(), StartsWith("HTTP/1.1 401 "));
}

TEST_F(ProofTest, WhatIsNoNonceIsToldWhatIsExpected) {
  Start();
  for (const std::string& nonce :
       {std::string(), std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'A'),
        std::string(64, 'g'), std::string(64, 'a') + " "}) {
    const std::string answer = Exchange(Asking(nonce));
    // Blanks at the end of a header are not part of it (RFC 9110, 5.5).
    const char* expected = nonce.ends_with(' ') ? "HTTP/1.1 204 " : "HTTP/1.1 400 ";
    EXPECT_THAT(answer, StartsWith(expected)) << '"' << nonce << '"';
  }
  EXPECT_THAT(Exchange("GET /api/v1/proof HTTP/1.1\r\nHost: x\r\n\r\n"),
              HasSubstr("Authorization: Sonde nonce="));
}

TEST(ProofMember, IsFoundByItsWholeName) {
  const std::string a(64, 'a');
  const std::string b(64, 'b');
  EXPECT_EQ(ProofMember("Sonde proof=" + a + ", body=" + b, "body"), b);
  EXPECT_EQ(ProofMember("Sonde proof=" + a + ", body=" + b, "proof"), a);
  for (const std::string& text : {std::string(), std::string("Sonde "), "Sonde bod=" + a,
                                  "Sonde body" + a, "Sonde xbody=" + a, "Sonde body=" + a + "b",
                                  "Sonde body=" + a.substr(1), "Sonde body=" + b + ",proof=" + a}) {
    EXPECT_FALSE(ProofMember(text, "body")) << text;
  }
}

}  // namespace
}  // namespace sonde::web::web_proof_test
