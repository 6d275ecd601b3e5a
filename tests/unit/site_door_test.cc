// The door with real sockets: what reaches a user's process, and what does not. The test plays the
// process that starts others and the users' processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nettle/base64.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <filesystem>
#include <future>
#include <map>
#include <thread>

#include "serve/site/door.h"
#include "serve/site/listen.h"
#include "serve/site/messages.h"
#include "tests/unit/site_accounts.h"
#include "web/pages/pages.h"
#include "web/router.h"

namespace sonde::site::site_door_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int kPatienceMs = 20'000;
constexpr const char* kSecret = "0123456789abcdef";

bool Readable(int fd, int patience_ms = kPatienceMs) {
  pollfd ready{fd, POLLIN, 0};
  return poll(&ready, 1, patience_ms) == 1;
}

std::string Base64(const std::string& text) {
  std::string out(BASE64_ENCODE_RAW_LENGTH(text.size()), '\0');
  base64_encode_raw(out.data(), text.size(), reinterpret_cast<const uint8_t*>(text.data()));
  return out;
}

// Reads until the other side closes.
std::string ReadAll(int fd) {
  std::string text;
  char piece[4096];
  while (Readable(fd)) {
    const ssize_t size = recv(fd, piece, sizeof(piece), 0);
    if (size <= 0) break;
    text.append(piece, static_cast<size_t>(size));
  }
  return text;
}

class DoorTest : public testing::Test {
 protected:
  DoorTest() : path_(testing::TempDir() + "sonde-door-" + std::to_string(getpid())) {
    accounts_.Add("alice", 1001);
    accounts_.Add("bob", 1002);
    accounts_.Add("self", getuid());
    rules_.admins = {"bob"};
    rules_.user_header = "X-Remote-User";
    rules_.proxy_secret = kSecret;
    Result<std::pair<UniqueFd, UniqueFd>> ends = MakePair();
    starter_ = std::move(ends->first);
    door_end_ = std::move(ends->second);
  }
  ~DoorTest() override {
    context_.stop();
    if (thread_.joinable()) thread_.join();
    door_.reset();
    servers_.reset();
    unlink(path_.c_str());
    unlink((path_ + kTokenSocket).c_str());
  }
  void Open(size_t most = 8) {
    gatekeeper_ = std::make_unique<Gatekeeper>(rules_, accounts_);
    servers_ = std::make_unique<UserServers>(context_, std::move(door_end_), most);
    door_ = std::make_unique<Door>(context_, *gatekeeper_, tokens_, *servers_, [] {
      return std::vector<std::string>{"alice", "bob"};
    });
    for (const auto& [end, tells] :
         {std::pair("", Door::Tells::kArchives), {kTokenSocket, Door::Tells::kTokens}}) {
      Result<UniqueFd> listener = Listen("unix:" + path_ + end);
      ASSERT_TRUE(listener.ok()) << listener.status().message();
      ASSERT_TRUE(door_->Listen(*std::move(listener), tells).ok());
    }
    thread_ = std::thread([this] { context_.run(); });
  }

  UniqueFd Connect(const std::string& path) const {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, sizeof(to.sun_path) - 1);
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }
  // As the proxy asks for that user; "": as nobody.
  static std::string Get(const std::string& user, const std::string& target,
                         const std::string& method = "GET", const std::string& more = "") {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more;
    if (!user.empty()) {
      text += "X-Remote-User: " + user + "\r\nSonde-Proxy-Secret: " + kSecret + "\r\n";
    }
    return text + "\r\n";
  }
  UniqueFd Send(const std::string& text, const std::string& end = "") const {
    UniqueFd fd = Connect(path_ + end);
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    return fd;
  }
  std::string Ask(const std::string& text) const { return ReadAll(Send(text).get()); }
  // As this process, which no proxy names.
  static std::string Own(const std::string& target, const std::string& more = "",
                         const std::string& method = "GET") {
    return Get("", target, method, more);
  }
  std::string OwnToken() const {
    const std::string told = ReadAll(Send(Own("/"), kTokenSocket).get());
    EXPECT_THAT(told, StartsWith("HTTP/1.1 200 "));
    const std::string token = told.substr(told.find("\r\n\r\n") + 4);
    return token.substr(0, token.find('\n'));
  }

  // Starts that user's process, which the door must ask for now.
  UniqueFd Start(const std::string& user, const std::string& hello = "ok TOKEN") {
    EXPECT_TRUE(Readable(starter_.get()));
    const Result<Message> asked = ReceiveMessage(starter_.get(), false);
    EXPECT_TRUE(asked.ok() && asked->text == user)
        << "asked for " << (asked.ok() ? asked->text : "");
    Result<std::pair<UniqueFd, UniqueFd>> ends = MakePair();
    EXPECT_TRUE(SendMessage(starter_.get(), "ok " + user, ends->first.get()).ok());
    EXPECT_TRUE(SendMessage(ends->second.get(), hello).ok());
    return std::move(ends->second);
  }
  // What that process gets; it answers with `answer`.
  static std::string Serve(const UniqueFd& process, const std::string& answer) {
    if (!Readable(process.get())) return "nothing";
    Result<Message> visit = ReceiveMessage(process.get(), false);
    if (!visit.ok() || !visit->fd) return "no visit";
    send(visit->fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    return visit->text;
  }

  const std::string path_;
  MadeUpAccounts accounts_;
  SiteRules rules_;
  const Tokens tokens_{"a key of this test, and long enough"};
  UniqueFd starter_, door_end_;
  boost::asio::io_context context_{1};
  std::unique_ptr<Gatekeeper> gatekeeper_;
  std::unique_ptr<UserServers> servers_;
  std::unique_ptr<Door> door_;
  std::thread thread_;
};

TEST_F(DoorTest, ARequestReachesItsUsersProcessAndNothingElseOfIt) {
  Open();
  const UniqueFd client = Send(Get("alice", "/job/list", "GET", "Cookie: x=secret\r\n") + "BODY");
  const UniqueFd process = Start("alice");
  const std::string got = Serve(process, "answer");
  EXPECT_THAT(got, StartsWith("GET /job/list HTTP/1.1\r\n"));
  // What a proxy's browsers send by themselves is to change nothing by a GET.
  EXPECT_THAT(got, HasSubstr("\r\nAuthorization: Bearer TOKEN\r\nSonde-By-Browser: 1\r\n"));
  EXPECT_THAT(got, Not(HasSubstr("Cookie")));
  EXPECT_THAT(got, Not(HasSubstr("secret")));
  EXPECT_THAT(got, Not(HasSubstr(kSecret)));
  EXPECT_TRUE(got.ends_with("\r\n\r\nBODY"));
  EXPECT_EQ(ReadAll(client.get()), "answer");
  // The next one goes to the same process.
  const UniqueFd again = Send(Get("alice", "/user/alice/metrics"));
  EXPECT_THAT(Serve(process, "more"), StartsWith("GET /metrics HTTP/1.1\r\n"));
  EXPECT_EQ(ReadAll(again.get()), "more");
  EXPECT_FALSE(Readable(starter_.get(), 0));
}

// Of every route there is, and of what is none: a stranger cannot tell what there is.
TEST_F(DoorTest, NoRouteIsOpenToAStranger) {
  Open();
  std::map<std::string, size_t> answers;
  std::vector<std::string> targets = {"/nothing", "/users/", "/app.jsx", "//", "/../etc/passwd"};
  for (const web::RouteFamily& family : web::RouteFamilies()) {
    for (const web::Route& route : family.routes) {
      if (!web::IsPage(route.path)) {
        targets.push_back(std::string(route.path) + std::string(route.doc.example));
      }
    }
  }
  ASSERT_GT(targets.size(), 50u);
  for (const std::string& target : targets) {
    for (const char* method : {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}) {
      SCOPED_TRACE(std::string(method) + " " + target);
      const std::string nobody = Ask(Get("", target, method));
      EXPECT_THAT(nobody, StartsWith("HTTP/1.1 401 "));
      const std::string other = Ask(Get("alice", "/user/bob" + target, method));
      EXPECT_THAT(other, StartsWith("HTTP/1.1 404 "));
      std::string absent = Ask(Get("alice", "/user/zob" + target, method));
      if (const size_t at = absent.find("'zob'"); at != std::string::npos) {
        absent.replace(at, 5, "'bob'");
      }
      const auto body = [](const std::string& text) { return text.substr(text.find("\r\n\r\n")); };
      EXPECT_EQ(body(other), body(absent)) << "whether there is such a user is not told";
      ++answers[body(nobody)];
    }
  }
  EXPECT_EQ(answers.size(), 2u) << "the same to everything; to HEAD nothing";
  EXPECT_FALSE(Readable(starter_.get(), 0)) << "nobody's archive was opened";
}

TEST_F(DoorTest, AnAdministratorSeesAnothersArchiveAndWhoThereIs) {
  Open();
  const UniqueFd client = Send(Get("bob", "/user/alice/job/list?x=1"));
  const UniqueFd process = Start("alice");
  EXPECT_THAT(Serve(process, "answer"), StartsWith("GET /job/list?x=1 HTTP/1.1\r\n"));
  EXPECT_EQ(ReadAll(client.get()), "answer");
  EXPECT_THAT(Ask(Get("bob", "/users")),
              HasSubstr(R"({"user":"bob","admin":true,"users":["alice","bob"]})"));
  EXPECT_THAT(Ask(Get("alice", "/users")),
              HasSubstr(R"({"user":"alice","admin":false,"users":["alice"]})"));
  EXPECT_THAT(Ask(Get("bob", "/user/alice")), HasSubstr("Location: /user/alice/\r\n"));
}

TEST_F(DoorTest, AnArchiveThatCannotBeOpenedIsNamedAndTheOthersGoOn) {
  Open();
  const UniqueFd broken = Send(Get("alice", "/job/list"));
  const UniqueFd sick = Start("alice", "error open /home/alice: it is of a newer version");
  const std::string said = ReadAll(broken.get());
  EXPECT_THAT(said, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(said, HasSubstr("open /home/alice: it is of a newer version"));
  const UniqueFd client = Send(Get("bob", "/job/list"));
  const UniqueFd process = Start("bob");
  Serve(process, "answer");
  EXPECT_EQ(ReadAll(client.get()), "answer");
  // And it is tried again, for it may be mended.
  const UniqueFd again = Send(Get("alice", "/job/list"));
  const UniqueFd well = Start("alice");
  Serve(well, "better");
  EXPECT_EQ(ReadAll(again.get()), "better");
}

TEST_F(DoorTest, AProcessThatHasEndedIsStartedAnew) {
  Open();
  const UniqueFd first = Send(Get("alice", "/"));
  UniqueFd process = Start("alice");
  Serve(process, "one");
  EXPECT_EQ(ReadAll(first.get()), "one");
  process.Reset();
  const UniqueFd second = Send(Get("alice", "/"));
  const UniqueFd next = Start("alice");
  Serve(next, "two");
  EXPECT_EQ(ReadAll(second.get()), "two");
}

TEST_F(DoorTest, NoMoreArchivesAreOpenThanAllowedAndTheOneUsedLongestAgoGoes) {
  accounts_.Add("carol", 1003);
  Open(2);
  const auto visit = [&](const std::string& user, const UniqueFd& process) {
    const UniqueFd client = Send(Get(user, "/"));
    Serve(process, user);
    EXPECT_EQ(ReadAll(client.get()), user);
  };
  const auto begin = [&](const std::string& user) {
    const UniqueFd client = Send(Get(user, "/"));
    UniqueFd process = Start(user);
    Serve(process, user);
    EXPECT_EQ(ReadAll(client.get()), user);
    return process;
  };
  const UniqueFd alice = begin("alice");
  const UniqueFd bob = begin("bob");
  visit("alice", alice);
  const UniqueFd carol = begin("carol");
  EXPECT_TRUE(Readable(bob.get()));
  EXPECT_EQ(ReceiveMessage(bob.get(), false).status().code(), Code::kNotFound) << "let go";
  visit("alice", alice);
  visit("carol", carol);
}

TEST_F(DoorTest, WhatIsNoRequestIsRefusedAndASlowOneDisturbsNobody) {
  Open();
  const UniqueFd slow = Send("GET / HT");
  EXPECT_THAT(Ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Ask(Get("", "/job/list")), StartsWith("HTTP/1.1 401 "));
}

TEST_F(DoorTest, OneUserHasAShareOfTheConnections) {
  Open();
  std::vector<UniqueFd> slow;
  for (size_t i = 0; i < Door::kShare; ++i) slow.push_back(Send("GET / HT"));
  const auto refused = [&] { return Ask(Own("/job/list")).starts_with("HTTP/1.1 503 "); };
  EXPECT_THAT(Ask(Own("/job/list")), HasSubstr("too many connections of yours"));
  EXPECT_TRUE(refused());
  slow.clear();
  // Until the door has seen that they are gone.
  for (int i = 0; i < 10'000 && refused(); ++i) std::this_thread::yield();
  EXPECT_THAT(Ask(Own("/job/list")), StartsWith("HTTP/1.1 401 "));
}

TEST_F(DoorTest, TheProxysAccountComesForOthersAndHasNoShare) {
  rules_.proxy = getuid();
  Open();
  std::vector<UniqueFd> slow;
  for (size_t i = 0; i <= Door::kShare; ++i) slow.push_back(Send("GET / HT"));
  EXPECT_THAT(Ask(Get("alice", "/user/bob/job/list")), StartsWith("HTTP/1.1 404 "));
}

// Nobody else waits for a name service that hangs, or for a directory of very many archives.
TEST_F(DoorTest, WhoIsLookedUpForLongHoldsUpNobodyElse) {
  Open();
  accounts_.HangAt("alice");
  const UniqueFd waits = Send(Get("alice", "/job/list"));
  const UniqueFd client = Send(Get("bob", "/job/list"));
  const UniqueFd process = Start("bob");
  Serve(process, "answer");
  EXPECT_EQ(ReadAll(client.get()), "answer");
  EXPECT_FALSE(Readable(waits.get(), 0));
  accounts_.HangAt("");
  const UniqueFd hers = Start("alice");
  Serve(hers, "hers");
  EXPECT_EQ(ReadAll(waits.get()), "hers");
}

// The kernel knows the user of the process that connects. It may be sshd's, and whoever comes over
// its tunnel has no token.
TEST_F(DoorTest, WhoIsKnownByTheKernelAloneShowsATokenAsWell) {
  Open();
  EXPECT_THAT(Ask(Own("/job/list")), HasSubstr("sonde url --site --token"));
  EXPECT_THAT(Ask(Own("/job/list",
                      "Authorization: Bearer " + tokens_.Of(*accounts_.ByName("bob")) + "\r\n")),
              StartsWith("HTTP/1.1 401 "))
      << "another user's";
  EXPECT_FALSE(Readable(starter_.get(), 0)) << "nobody's archive was opened";
  const std::string token = OwnToken();
  EXPECT_EQ(token, tokens_.Of(*accounts_.ByName("self")));
  const UniqueFd client = Send(Own("/job/list", "Authorization: Bearer " + token + "\r\n"));
  const UniqueFd process = Start("self");
  EXPECT_THAT(Serve(process, "answer"), HasSubstr("\r\nAuthorization: Bearer TOKEN\r\n"));
  EXPECT_EQ(ReadAll(client.get()), "answer");
}

// The page keeps the token for its origin and shows it in its own header.
TEST_F(DoorTest, ThePageShowsTheTokenInItsOwnHeader) {
  Open();
  const UniqueFd client = Send(Own("/job/list", "Sonde-Token: " + OwnToken() + "\r\n"));
  const UniqueFd process = Start("self");
  const std::string got = Serve(process, "answer");
  EXPECT_THAT(got, HasSubstr("\r\nAuthorization: Bearer TOKEN\r\n"));
  EXPECT_THAT(got, Not(HasSubstr("Sonde-By-Browser")));
  EXPECT_EQ(ReadAll(client.get()), "answer");
  EXPECT_THAT(Ask(Own("/job/list", "Sonde-Token: 0123456789abcdef\r\n")),
              StartsWith("HTTP/1.1 401 "));
}

// Which other origins' pages cannot use.
TEST_F(DoorTest, APasswordOfABrowsersIsForThePagesOfThisServerAlone) {
  Open();
  const std::string password =
      "Authorization: Basic " + Base64(":" + OwnToken()) + "\r\nUser-Agent: Mozilla/5.0\r\n";
  const UniqueFd client = Send(Own("/job/list", password));
  const UniqueFd process = Start("self");
  EXPECT_THAT(Serve(process, "answer"), HasSubstr("\r\nSonde-By-Browser: 1\r\n"));
  EXPECT_EQ(ReadAll(client.get()), "answer");
  for (const char* other : {"Origin: http://localhost:9999\r\n", "Origin: null\r\n",
                            "Sec-Fetch-Site: same-site\r\n", "Sec-Fetch-Site: cross-site\r\n"}) {
    EXPECT_THAT(Ask(Own("/alarms/add", password + other, "POST")), StartsWith("HTTP/1.1 403 "))
        << other;
  }
}

// A link leads to the page, which holds nothing of a step. Whoever follows it has shown no token:
// nobody's process is asked for it, let alone started.
TEST_F(DoorTest, ThePageItselfComesFromTheDoor) {
  Open();
  const std::string link =
      "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
  const std::string loaded = "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: no-cors\r\n";
  for (const std::string of : {"", "/user/self", "/user/bob"}) {
    SCOPED_TRACE(of);
    const std::string page = Ask(Own(of + "/", link));
    EXPECT_THAT(page, StartsWith("HTTP/1.1 200 "));
    EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'none'"));
    EXPECT_THAT(page, HasSubstr("app.js"));
    EXPECT_THAT(page, Not(HasSubstr("Set-Cookie")));
    EXPECT_THAT(Ask(Own(of + "/app.js", loaded)), HasSubstr("Content-Type: text/javascript"));
    EXPECT_TRUE(Ask(Own(of + "/app.js", loaded, "HEAD")).ends_with("\r\n\r\n"));
    EXPECT_THAT(Ask(Own(of + "/job/list", loaded)), StartsWith("HTTP/1.1 401 "));
    EXPECT_THAT(Ask(Own(of + "/app.js", loaded, "POST")), StartsWith("HTTP/1.1 401 "));
  }
  EXPECT_THAT(Ask(Own("/user/self", link)), HasSubstr("Location: /user/self/\r\n"));
  EXPECT_FALSE(Readable(starter_.get(), 0)) << "a process was started";
}

// Over a tunnel to the socket that tells tokens.
TEST_F(DoorTest, ABrowserIsToldNoToken) {
  Open();
  const auto ask = [&](const std::string& more, const std::string& host = "localhost") {
    return ReadAll(
        Send("GET / HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n", kTokenSocket).get());
  };
  EXPECT_THAT(ask(""), StartsWith("HTTP/1.1 200 "));
  for (const char* said : {"Origin: http://localhost\r\n", "Origin: https://evil.example\r\n",
                           "Sec-Fetch-Site: none\r\n", "Sec-Fetch-Mode: navigate\r\n",
                           "User-Agent: Mozilla/5.0 (X11)\r\n", "Referer: http://x/\r\n"}) {
    const std::string told = ask(said);
    EXPECT_THAT(told, StartsWith("HTTP/1.1 403 ")) << said;
    EXPECT_THAT(told, Not(HasSubstr(tokens_.Of(*accounts_.ByName("self"))))) << said;
  }
  EXPECT_THAT(ask("", "evil.example"), StartsWith("HTTP/1.1 403 "));
}

TEST(Tokens, AreOfOneUserAndOfOneKey) {
  const std::string path = testing::TempDir() + "sonde-key-" + std::to_string(getpid());
  const Result<std::string> made = Tokens::KeyAt(path);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(*Tokens::KeyAt(path), *made) << "it stays";
  EXPECT_NE(Tokens(*made).Of({"a", 1, 1, ""}), Tokens(*made).Of({"b", 2, 1, ""}));
  EXPECT_NE(Tokens(*made).Of({"a", 1, 1, ""}), Tokens(*made).Of({"a", 2, 1, ""}));
  EXPECT_NE(Tokens(*made).Of({"a", 1, 1, ""}), Tokens(*made + "x").Of({"a", 1, 1, ""}));
  chmod(path.c_str(), 0640);
  EXPECT_EQ(Tokens::KeyAt(path).status().code(), Code::kPermission) << "others could read it";
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/etc/hostname", path);
  EXPECT_FALSE(Tokens::KeyAt(path).ok()) << "not through what somebody left there";
  std::filesystem::remove(path);
}

TEST(Listen, TakesAwayASocketThatIsLeftAndNothingElse) {
  const std::string path = testing::TempDir() + "sonde-listen-" + std::to_string(getpid());
  Result<UniqueFd> first = Listen("unix:" + path);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(Listen("unix:" + path).status().code(), Code::kUnavailable) << "somebody listens there";
  first->Reset();
  EXPECT_TRUE(Listen("unix:" + path).ok());
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(Listen("unix:" + path).status().code(), Code::kInvalid);
  std::filesystem::remove(path);
  for (const char* wrong :
       {"", "unix:", "unix:relative", "localhost:1", "1.2.3.4", "1.2.3.4:x", "1.2.3.4:70000"}) {
    EXPECT_EQ(Listen(wrong).status().code(), Code::kInvalid) << wrong;
  }
}

}  // namespace
}  // namespace sonde::site::site_door_test
