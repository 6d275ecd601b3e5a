// Where the nodes of a step come to their head: all of them in one moment, when the head before
// died.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <vector>

#include "daemon/head/rendezvous.h"
#include "daemon/link/send.h"
#include "daemon/link/trust/handshake.h"
#include "tests/unit/links_carriers.h"

namespace sonde::head::head_rendezvous_test {
namespace {

using tree::Type;

class Comers final : public Rendezvous::Owner {
 public:
  void OnProven(const tree::Registration& who, std::unique_ptr<tree::Link> link) override {
    came.push_back(who.index);
    links.push_back(std::move(link));
  }
  void OnLocalHost(std::string /*host*/) override {}
  void OnOtherRelease(std::string note) override { notes.push_back(std::move(note)); }

  std::vector<uint32_t> came;
  std::vector<std::string> notes;
  std::vector<std::unique_ptr<tree::Link>> links;
};

UniqueFd ConnectTo(uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  const int done = connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  EXPECT_TRUE(done == 0 || errno == EINPROGRESS);
  return fd;
}

bool IsClosed(const UniqueFd& fd) {
  char byte = 0;
  const ssize_t got = recv(fd.get(), &byte, 1, MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN);
}

// They are slow to say who they are, as nodes are whose processors are all taken.
TEST(HeadRendezvous, NoNodeOfALargeStepMakesRoomForAnother) {
  constexpr uint32_t kNodes = 1500;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max < 2 * kNodes + 100) GTEST_SKIP() << "needs 3,100 open files";
  rlimit enough = files;
  enough.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &enough), 0);
  {
    Loop loop;
    Comers comers;
    Rendezvous rendezvous(loop, {}, tree::kHeadIndex, comers, kNodes);
    auto socket = tree::ListenAt("127.0.0.1", {0, 0});
    ASSERT_TRUE(socket.ok()) << socket.status().message();
    const uint16_t port = tree::PortOf(tree::LocalAddress(socket->get()));
    ASSERT_TRUE(rendezvous.Listen(*std::move(socket)).ok());
    std::vector<UniqueFd> slow;
    for (uint32_t i = 0; i + 1 < kNodes; ++i) slow.push_back(ConnectTo(port));
    // This one proves the key, and is accepted after all others.
    auto last = tree::SocketLink::Connect(loop, "127.0.0.1", port);
    ASSERT_TRUE(last.ok()) << last.status().message();
    const tree::ConnectingHandshake handshake({}, tree::Channel(), {.host = "n", .index = 7});
    (*last)->SetHandler({.message =
                             [&](uint8_t type, std::string_view payload) {
                               const auto step = handshake.OnMessage(type, payload);
                               ASSERT_TRUE(step.ok());
                               Send(**last, step->answer->type, step->answer->payload);
                             },
                         .closed = [](const Status& why) { FAIL() << why.message(); }});
    Send(**last, Type::kHello, handshake.Hello());
    ASSERT_TRUE(tree::RunUntil(loop, [&] { return !comers.came.empty(); }));
    size_t closed = 0;
    for (const UniqueFd& fd : slow) closed += IsClosed(fd) ? 1 : 0;
    EXPECT_EQ(closed, 0u) << "were closed to make room for others of the step";
  }
  setrlimit(RLIMIT_NOFILE, &files);
}

// Its node is missing from the profile, which has to say why.
TEST(HeadRendezvous, SaysOnceThatADaemonOfAnEarlierReleaseWasRefused) {
  Loop loop;
  Comers comers;
  Rendezvous rendezvous(loop, {}, tree::kHeadIndex, comers, 2);
  auto socket = tree::ListenAt("127.0.0.1", {0, 0});
  ASSERT_TRUE(socket.ok()) << socket.status().message();
  const uint16_t port = tree::PortOf(tree::LocalAddress(socket->get()));
  ASSERT_TRUE(rendezvous.Listen(*std::move(socket)).ok());
  for (int i = 0; i < 3; ++i) {
    auto link = tree::SocketLink::Connect(loop, "127.0.0.1", port);
    ASSERT_TRUE(link.ok()) << link.status().message();
    bool closed = false;
    (*link)->SetHandler({.message = [](uint8_t, std::string_view) { FAIL(); },
                         .closed = [&](const Status&) { closed = true; }});
    Send(**link, Type::kHello, Encode(tree::Hello{1, std::string(32, 'n')}));
    ASSERT_TRUE(tree::RunUntil(loop, [&] { return closed; }));
  }
  EXPECT_EQ(comers.notes,
            std::vector<std::string>{
                "a daemon at 127.0.0.1 was not let in, and what it measured is missing: the peer "
                "speaks protocol 1, we speak 2; install releases of Sonde on all nodes that follow "
                "each other"});
}

}  // namespace
}  // namespace sonde::head::head_rendezvous_test
