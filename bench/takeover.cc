// How long it takes until all nodes of a step have found the acting head after theirs was killed,
// and what that costs it, over sockets of the loopback.
//
// The nodes' links to the head, the sockets that listen and what lets the nodes in are the
// product's. The nodes are in several processes, so that they connect while others do; the acting
// head begins 6 ms after the head's death, as measured with real daemons. It only welcomes the
// nodes: what they cost a whole head is in bench_head. usage: bench_takeover [NODES...]
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/growth.h"
#include "core/log.h"
#include "daemon/head/rendezvous.h"
#include "daemon/link/send.h"
#include "daemon/loop.h"
#include "daemon/node/links/head_link.h"

namespace sonde {
namespace {

using tree::Type;

constexpr int kProcesses = 4;
constexpr Nanos kStarts = 6 * kMillisecond;
constexpr uint32_t kSuccessor = tree::kHeadIndex - 1;  // none of the nodes
constexpr const char* kHost = "127.0.0.1";

[[noreturn]] void Die(std::string_view what) {
  fmt::print(stderr, "bench_takeover: {}\n", what);
  std::exit(1);
}

// A byte when something has happened in another process.
class Signal {
 public:
  Signal() {
    if (pipe(ends_) != 0) Die("no pipe");
  }
  void Give() const {
    if (write(ends_[1], "x", 1) != 1) Die("a process is gone");
  }
  void Await() const {
    char byte = 0;
    if (read(ends_[0], &byte, 1) != 1) Die("a process is gone");
  }

 private:
  int ends_[2];
};

// Lets nodes in and welcomes them.
class Welcomer final : public head::Rendezvous::Owner {
 public:
  Welcomer(UniqueFd socket, uint32_t place, uint32_t nodes)
      : rendezvous_(loop_, {}, place, *this, nodes) {
    if (!rendezvous_.Listen(std::move(socket)).ok()) Die("cannot listen");
  }
  void OnProven(const tree::Registration& who, std::unique_ptr<tree::Link> link) override {
    Send(*link, Type::kWelcome, Encode(tree::Welcome{.index = who.index}));
    links_.push_back(std::move(link));
  }
  void OnLocalHost(std::string /*host*/) override {}
  void OnOtherRelease(std::string /*note*/) override {}
  void Run() { loop_.Run(); }

 private:
  Loop loop_;
  std::vector<std::unique_ptr<tree::Link>> links_;
  head::Rendezvous rendezvous_;
};

struct Shared {
  Nanos killed;
  Nanos back[1];  // of each node: when; 0: never
};

class BenchNode final : public node::HeadLink::Owner {
 public:
  BenchNode(Loop& loop, uint32_t index, uint32_t nodes, uint16_t head, uint16_t successor,
            Nanos& back, size_t& welcomes)
      : index_(index),
        nodes_(nodes),
        successor_(successor),
        back_(back),
        welcomes_(welcomes),
        link_(loop, {}, *this) {
    link_.Connect(kHost, head);
  }
  tree::Registration registration() const override {
    return {.nodes = nodes_, .host = "n", .index = index_};
  }
  void OnWelcome(const tree::Welcome& /*welcome*/, Nanos /*waited*/) override {
    ++welcomes_;
    if (std::exchange(known_, true)) {
      back_ = Clock::System().Monotonic();
      return;
    }
    link_.SetSuccessors({{kSuccessor, kHost, successor_}}, index_);
  }
  void OnHeadMessage(Type /*type*/, std::string_view /*payload*/) override {}
  void OnHeadLost(tree::Link& /*link*/, const Status& /*why*/) override {}
  void OnNoHead(const Status& why) override { Die(why.message()); }
  void OnOver() override {}
  bool IsSuspended() const override { return false; }
  void Note(std::string /*text*/) override {}
  bool BecomeHead() override { return false; }

 private:
  const uint32_t index_;
  const uint32_t nodes_;
  const uint16_t successor_;
  Nanos& back_;
  size_t& welcomes_;
  bool known_ = false;
  node::HeadLink link_;
};

// Those whose index leaves `which`: neighbours are in different processes.
void RunNodes(uint32_t which, uint32_t nodes, uint16_t head, uint16_t successor, Shared& shared,
              const Signal& ready, const Signal& done) {
  Loop loop;
  size_t welcomes = 0;
  size_t opened = 0;
  uint32_t next = which;
  std::vector<std::unique_ptr<BenchNode>> mine;
  bool told = false;
  const size_t all = (nodes - which + kProcesses - 1) / kProcesses;
  loop.AddSleepCheck([&] {
    // Not more than the head has time for.
    for (; next < nodes && opened < welcomes + 64; next += kProcesses, ++opened) {
      mine.push_back(std::make_unique<BenchNode>(loop, next, nodes, head, successor,
                                                 shared.back[next], welcomes));
    }
    if (welcomes >= all && !std::exchange(told, true)) ready.Give();
    if (welcomes == 2 * all) loop.Stop();
    return true;
  });
  loop.Run();
  done.Give();
  pause();
}

template <typename F>
pid_t Start(F f) {
  const pid_t pid = fork();
  if (pid < 0) Die("cannot fork");
  if (pid > 0) return pid;
  f();
  _exit(0);
}

double Milliseconds(Nanos time) { return static_cast<double>(time) / 1e6; }

void Measure(uint32_t nodes) {
  const size_t bytes = sizeof(Shared) + nodes * sizeof(Nanos);
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (shared == MAP_FAILED) Die("no memory");
  UniqueFd sockets[2];
  uint16_t ports[2];
  for (int i = 0; i < 2; ++i) {
    auto socket = tree::ListenAt(kHost, {0, 0});
    if (!socket.ok()) Die(socket.status().message());
    sockets[i] = *std::move(socket);
    ports[i] = tree::PortOf(tree::LocalAddress(sockets[i].get()));
  }
  const Signal ready;
  const Signal done;
  const Signal go;
  const pid_t head = Start([&] {
    sockets[1].Reset();
    Welcomer(std::move(sockets[0]), tree::kHeadIndex, nodes).Run();
  });
  sockets[0].Reset();
  const pid_t acting = Start([&] {
    go.Await();
    Welcomer(std::move(sockets[1]), kSuccessor, nodes).Run();
  });
  sockets[1].Reset();
  std::vector<pid_t> others;
  for (uint32_t i = 0; i < kProcesses; ++i) {
    others.push_back(Start([&] { RunNodes(i, nodes, ports[0], ports[1], *shared, ready, done); }));
  }
  for (int i = 0; i < kProcesses; ++i) ready.Await();
  shared->killed = Clock::System().Monotonic();
  kill(head, SIGKILL);
  const timespec starts{0, kStarts};
  nanosleep(&starts, nullptr);
  go.Give();
  for (int i = 0; i < kProcesses; ++i) done.Await();
  rusage cost{};
  kill(acting, SIGKILL);
  wait4(acting, nullptr, 0, &cost);
  for (const pid_t pid : others) kill(pid, SIGKILL);
  for (const pid_t pid : others) waitpid(pid, nullptr, 0);
  waitpid(head, nullptr, 0);
  std::vector<Nanos> times(shared->back, shared->back + nodes);
  for (Nanos& time : times) time -= shared->killed;
  std::sort(times.begin(), times.end());
  const auto cpu = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  fmt::print(
      "{:>7} nodes: back after {:.0f} ms (half), {:.0f} ms (99 %), {:.0f} ms (all); CPU of the "
      "acting head {:.0f} us a node\n",
      nodes, Milliseconds(times[nodes / 2]), Milliseconds(times[nodes * 99ull / 100]),
      Milliseconds(times.back()), (cpu(cost.ru_utime) + cpu(cost.ru_stime)) / nodes);
  munmap(shared, bytes);
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  sonde::log::Discard("bench_takeover");
  const auto sizes = sonde::growth::Sizes(argc, argv, sonde::kProcesses, {100, 1000, 10'000});
  for (const uint32_t nodes : sizes) sonde::Measure(nodes);
  return 0;
}
