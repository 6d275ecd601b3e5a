// How long it takes until all nodes of a step are registered, and what that costs its head: through
// gateways, and with a connection of each node to the head. Then what it costs when all of them say
// goodbye and are gone, until the profile is written and the report is there.
//
// Head and connections are the real ones, over sockets of loopback, sealed. The nodes are in
// another process. A gateway's nodes are only named to it here: they would be on other machines.
// All come and go at once, which is the worst that srun can do. They have no samples: what their
// blocks cost is in bench/backfill.
// usage: bench_registration [NODES...]
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/growth.h"
#include "core/bytes.h"
#include "core/log.h"
#include "daemon/head/head.h"
#include "daemon/link/address.h"
#include "daemon/link/listener.h"
#include "daemon/link/send.h"
#include "daemon/link/via_links.h"
#include "daemon/loop.h"
#include "daemon/node/links/head_link.h"
#include "daemon/own_cost.h"
#include "tests/unit/temp_dir.h"

namespace sonde {
namespace {

using tree::Type;

constexpr const char* kHost = "127.0.0.1";
constexpr uint32_t kMostDirect = 10'000;  // a process may not have more descriptors everywhere

[[noreturn]] void Die(std::string_view what) {
  fmt::print(stderr, "bench_registration: {}\n", what);
  std::exit(1);
}

tree::Registration RegistrationOf(uint32_t node, uint32_t nodes) {
  tree::Registration who;
  who.job = "7";
  who.step = "0";
  who.node_id = node;
  who.nodes = nodes;
  who.tasks = 1;
  who.host = fmt::format("n{:06}", node);
  return who;
}

// A node, with those that come through it.
class Comer final : public node::HeadLink::Owner {
 public:
  Comer(Loop& loop, uint32_t node, uint32_t nodes, uint16_t head, size_t& answers)
      : node_(node), nodes_(nodes), answers_(answers), link_(loop, {}, *this) {
    link_.Connect(kHost, head);
  }
  void Bring(uint32_t node) { brings_.push_back(node); }
  void SayGoodbye() {
    tree::Bye bye;
    bye.tasks_ended = 1;
    bye.ended = static_cast<uint64_t>(Clock::System().Now());
    const std::string payload = Encode(bye);
    for (uint64_t i = 0; i < brings_.size(); ++i) {
      link_.Send(Type::kVia, tree::EncodeVia({i, static_cast<uint8_t>(Type::kBye), payload}));
    }
    link_.Send(Type::kBye, payload);
  }

  tree::Registration registration() const override { return RegistrationOf(node_, nodes_); }
  void OnWelcome(const tree::Welcome& /*welcome*/, Nanos /*waited*/) override { ++answers_; }
  void OnHeadMessage(Type type, std::string_view payload) override {
    if (type == Type::kGateway) {
      for (uint64_t i = 0; i < brings_.size(); ++i) {
        link_.Send(Type::kViaOpen, Encode(tree::ViaOpen{i, RegistrationOf(brings_[i], nodes_)}));
      }
    }
    answers_ += type == Type::kByeAck;
    tree::ViaMessage message;
    if (type != Type::kVia || !DecodeVia(payload, message).ok()) return;
    answers_ += static_cast<Type>(message.type) == Type::kWelcome;
    if (static_cast<Type>(message.type) != Type::kByeAck) return;
    ++answers_;
    link_.Send(Type::kViaClose, VarintBytes(message.channel));
  }
  void OnHeadLost(tree::Link& /*link*/, const Status& why) override { Die(why.message()); }
  void OnNoHead(const Status& why) override { Die(why.message()); }
  void OnOver() override { _exit(0); }  // which the head says when it has its report
  bool IsSuspended() const override { return false; }
  void Note(std::string /*text*/) override {}
  bool BecomeHead() override { return false; }

 private:
  const uint32_t node_;
  const uint32_t nodes_;
  std::vector<uint32_t> brings_;
  size_t& answers_;  // to what all nodes have asked last
  node::HeadLink link_;
};

// In a process of its own. All say goodbye once there is something to read from `go`.
[[noreturn]] void RunNodes(uint32_t nodes, uint32_t gateways, uint16_t head, int done, int go) {
  Loop loop;
  size_t answers = 0;
  std::vector<std::unique_ptr<Comer>> comers;
  for (uint32_t i = 0; i < gateways; ++i) {
    comers.push_back(std::make_unique<Comer>(loop, i, nodes, head, answers));
  }
  for (uint32_t i = gateways; i < nodes; ++i) comers[i % gateways]->Bring(i);
  loop.AddSleepCheck([&] {
    if (answers == nodes) loop.Stop();
    return true;
  });
  loop.Run();
  char byte = 'x';
  if (write(done, &byte, 1) != 1 || read(go, &byte, 1) != 1) Die("the head is gone");
  answers = 0;
  for (const auto& comer : comers) comer->SayGoodbye();
  loop.Run();
  _exit(0);
}

void Measure(const char* kind, uint32_t nodes, uint32_t gateways) {
  auto socket = tree::ListenAt(kHost, {0, 0});
  if (!socket.ok()) Die(socket.status().message());
  const uint16_t port = tree::PortOf(tree::LocalAddress(socket->get()));
  int ends[2];
  int go[2];
  if (pipe(ends) != 0 || pipe(go) != 0) Die("no pipe");
  TempDir directory{TempDir::Memory()};
  Loop loop;
  StepClock clock;
  LaunchMessage launch;
  launch.role = Role::kHead;
  launch.archive = directory.path();
  launch.has_key = true;
  launch.job.id = {"7", "0"};
  launch.job.start = Clock::System().Now();
  launch.job.expected_nodes = nodes;
  launch.job.period = kSecond;
  Config config;
  config.http = "off";
  bool reported = false;
  head::Head head(loop, clock, launch, config, [&](const std::string& /*report*/) {
    reported = true;
    loop.Stop();
  });
  if (const Status started = head.Start(*std::move(socket)); !started.ok()) Die(started.message());
  const double memory = OwnPrivateBytes();
  const Nanos begin = Clock::System().Monotonic();
  const double cpu = growth::CpuMicroseconds();
  const pid_t pid = fork();
  if (pid < 0) Die("cannot fork");
  if (pid == 0) RunNodes(nodes, gateways, port, ends[1], go[0]);
  const Status watched = loop.Watch(ends[0], EPOLLIN, [&](uint32_t) { loop.Stop(); });
  if (!watched.ok()) Die(watched.message());
  loop.Run();
  const double cost = (growth::CpuMicroseconds() - cpu) / nodes;
  const double took = static_cast<double>(Clock::System().Monotonic() - begin) / 1e6;
  const double kept = (OwnPrivateBytes() - memory) / nodes;
  loop.Unwatch(ends[0]);
  const double end = growth::CpuMicroseconds();
  if (write(go[1], "x", 1) != 1) Die("the nodes are gone");
  loop.Run();
  const double end_cost = (growth::CpuMicroseconds() - end) / nodes;
  if (!reported) Die("no report of the step");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  for (const int fd : {ends[0], ends[1], go[0], go[1]}) close(fd);
  fmt::print(
      "figure {0}_{1} {2:.3f} us\nfigure {0}_all_{1} {3:.0f} ms\nfigure {0}_connections_{1} {4} "
      "connections\nfigure {0}_memory_{1} {5:.0f} bytes\nfigure {0}_end_{1} {6:.3f} us\n",
      kind, nodes, cost, took, gateways, kept, end_cost);
  std::fflush(stdout);
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  sonde::log::Discard("bench_registration");
  for (const uint32_t nodes : sonde::growth::Sizes(argc, argv, 4, {1000, 10'000, 100'000})) {
    const auto gateways = sonde::tree::GatewaysOf(nodes);
    sonde::Measure("gateways", nodes, gateways);
    if (nodes <= sonde::kMostDirect) sonde::Measure("direct", nodes, nodes);
  }
}
