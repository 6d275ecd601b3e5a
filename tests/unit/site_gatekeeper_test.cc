// Who is believed to be whom, and who sees whose archive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/site/gatekeeper.h"
#include "tests/unit/site_accounts.h"

namespace sonde::site::site_gatekeeper_test {
namespace {

using testing::HasSubstr;

constexpr uid_t kAlice = 1001, kBob = 1002, kCarol = 1003, kProxy = 33;
constexpr const char* kProxySecret = "0123456789abcdef";

class GatekeeperTest : public testing::Test {
 protected:
  GatekeeperTest() {
    accounts_.Add("alice", kAlice);
    accounts_.Add("bob", kBob);
    accounts_.Add("carol", kCarol, {"hpcadmin"});
    accounts_.Add("root", 0);
    accounts_.Add("www-data", kProxy);
    rules_.admins = {"bob", "@hpcadmin"};
  }
  void WithProxy() {
    rules_.user_header = "X-Remote-User";
    rules_.proxy = kProxy;
    rules_.proxy_secret = kProxySecret;
  }
  static SiteRequest Ask(const std::string& more = "", const std::string& line = "GET / HTTP/1.1",
                         const std::string& host = "localhost:4242") {
    const auto request = ParseSiteRequest(line + "\r\nHost: " + host + "\r\n" + more + "\r\n");
    EXPECT_TRUE(request.ok()) << request.status().message();
    return request.ok() ? *request : SiteRequest();
  }
  // The name of who is admitted, or "refused: WHY".
  std::string Admit(std::optional<uid_t> peer, const SiteRequest& request) const {
    const auto visitor = Gatekeeper(rules_, accounts_).Admit(peer, request);
    if (!visitor.ok()) {
      EXPECT_EQ(visitor.status().code(), Code::kPermission);
      return "refused: " + std::string(visitor.status().message());
    }
    return visitor->account.name + (visitor->admin ? "+" : "");
  }

  MadeUpAccounts accounts_;
  SiteRules rules_;
};

TEST_F(GatekeeperTest, WhoComesOverTheSocketIsWhoTheKernelSays) {
  EXPECT_EQ(Admit(kAlice, Ask()), "alice");
  EXPECT_EQ(Admit(kBob, Ask()), "bob+");
  EXPECT_EQ(Admit(kCarol, Ask()), "carol+") << "of a group of administrators";
  EXPECT_EQ(Admit(0, Ask()), "root+");
  EXPECT_THAT(Admit(4711, Ask()), HasSubstr("uid 4711 has no account"));
  EXPECT_THAT(Admit(std::nullopt, Ask()), HasSubstr("who asks is not known"));
}

TEST_F(GatekeeperTest, ANameInAHeaderIsNotBelievedOfJustAnybody) {
  const SiteRequest request = Ask("X-Remote-User: bob\r\n");
  EXPECT_EQ(Admit(kAlice, request), "alice") << "no proxy is configured";
  WithProxy();
  EXPECT_EQ(Admit(kAlice, request), "alice");
  EXPECT_THAT(Admit(std::nullopt, request), HasSubstr("refused"));
  for (const char* secret : {"", "0123456789abcdeF", "0123456789abcde", "0123456789abcdef0"}) {
    const auto wrong =
        Ask(std::string("X-Remote-User: bob\r\nSonde-Proxy-Secret: ") + secret + "\r\n");
    EXPECT_EQ(Admit(kAlice, wrong), "alice") << secret;
    EXPECT_THAT(Admit(std::nullopt, wrong), HasSubstr("refused")) << secret;
  }
  const auto twice = Ask(std::string("X-Remote-User: bob\r\nSonde-Proxy-Secret: x\r\n") +
                         "Sonde-Proxy-Secret: " + kProxySecret + "\r\n");
  EXPECT_THAT(Admit(std::nullopt, twice), HasSubstr("refused"));
}

TEST_F(GatekeeperTest, TheProxySaysWhoAsksAndIsNobodyItself) {
  WithProxy();
  EXPECT_EQ(Admit(kProxy, Ask("x-remote-user: alice\r\n", "GET / HTTP/1.1", "sonde.example.org")),
            "alice");
  const std::string secret = std::string("Sonde-Proxy-Secret: ") + kProxySecret + "\r\n";
  EXPECT_EQ(Admit(std::nullopt, Ask(secret + "X-Remote-User: bob\r\n")), "bob+");
  for (const char* wrong :
       {"", "X-Remote-User: \r\n", "X-Remote-User: alice\r\nX-Remote-User: bob\r\n",
        "X-Remote-User: ../alice\r\n", "X-Remote-User: -u\r\n", "X-Remote-User: nobody-here\r\n"}) {
    EXPECT_THAT(Admit(kProxy, Ask(wrong)), HasSubstr("refused")) << wrong;
    EXPECT_THAT(Admit(std::nullopt, Ask(secret + wrong)), HasSubstr("refused")) << wrong;
  }
}

TEST_F(GatekeeperTest, OtherSitesPagesDoNotAskInAUsersName) {
  EXPECT_EQ(Admit(kAlice, Ask("Sec-Fetch-Site: same-origin\r\n", "POST /alarms/add HTTP/1.1")),
            "alice");
  EXPECT_EQ(Admit(kAlice, Ask("Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n")), "alice");
  // A link to the page is followed.
  const std::string link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
  EXPECT_EQ(Admit(kAlice, Ask(link)), "alice");
  EXPECT_EQ(Admit(kBob, Ask(link, "GET /user/alice/ HTTP/1.1")), "bob+");
  for (const char* line : {"GET /job/list HTTP/1.1", "GET /alarms/del?name=x HTTP/1.1",
                           "POST / HTTP/1.1", "GET /user/alice/push?key=x HTTP/1.1"}) {
    EXPECT_THAT(Admit(kBob, Ask(link, line)), HasSubstr("another site's page")) << line;
  }
  EXPECT_THAT(Admit(kAlice, Ask("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n")),
              HasSubstr("another site's page"));
  // Browsers that say less.
  EXPECT_THAT(Admit(kAlice, Ask("Origin: https://evil.example\r\n")),
              HasSubstr("another site's page"));
  EXPECT_THAT(Admit(kAlice, Ask("Origin: null\r\n")), HasSubstr("another site's page"));
  EXPECT_EQ(Admit(kAlice, Ask("Origin: http://localhost:4242\r\n")), "alice");
}

TEST_F(GatekeeperTest, AForeignNameOfThisHostIsRefused) {
  for (const char* host : {"evil.example", "evil.example:4242", "localhost.evil.example",
                           "10.0.0.1", "[::2]:4242", ""}) {
    EXPECT_THAT(Admit(kAlice, Ask("", "GET / HTTP/1.1", host)),
                HasSubstr("expected the host localhost"))
        << host;
  }
  for (const char* host : {"localhost", "127.0.0.1:4242", "[::1]:4242"}) {
    EXPECT_EQ(Admit(kAlice, Ask("", "GET / HTTP/1.1", host)), "alice") << host;
  }
}

TEST_F(GatekeeperTest, AnArchiveIsItsOwnersAndTheAdministrators) {
  const Gatekeeper gatekeeper(rules_, accounts_);
  const Visitor alice{*accounts_.ByName("alice"), false};
  const Visitor admin{*accounts_.ByName("bob"), true};
  EXPECT_EQ(gatekeeper.OwnerFor(alice, "")->name, "alice");
  EXPECT_EQ(gatekeeper.OwnerFor(alice, "alice")->name, "alice");
  EXPECT_EQ(gatekeeper.OwnerFor(admin, "alice")->name, "alice");
  // Who may not see it is told the same as of one who does not exist.
  const auto text = [&](const Visitor& who, const std::string& named) {
    const auto owner = gatekeeper.OwnerFor(who, named);
    EXPECT_EQ(owner.status().code(), Code::kNotFound);
    std::string said(owner.status().message());
    return said.replace(said.find(named), named.size(), "NAME");
  };
  EXPECT_EQ(text(alice, "bob"), text(alice, "nobody-here"));
  EXPECT_EQ(text(alice, "bob"), text(admin, "nobody-here"));
  EXPECT_EQ(text(admin, "../alice"), text(alice, "bob"));
}

}  // namespace
}  // namespace sonde::site::site_gatekeeper_test
