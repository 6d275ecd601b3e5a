// sonded: the node role. Started by the Slurm plugin or by `sonde run` with a lifeline as
// descriptor 3, never by hand; what it is to do stands in the launch message (launcher/launch.h).
// The other roles are sonded-head's, beside it.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "daemon/collect/registry.h"
#include "daemon/daemon.h"
#include "daemon/held_program.h"
#include "daemon/launched_nodes.h"
#include "daemon/node/launcher_packets.h"
#include "daemon/node/node.h"
#include "launcher/launch.h"

namespace sonde::node {
namespace {

class NodeDaemon : public Daemon {
 public:
  explicit NodeDaemon(const DaemonSetup& setup)
      : loop_(setup.loop),
        lifeline_(setup.lifeline),
        node_(setup.loop, clock_, setup.launch, setup.config, [this] { OnDone(); }) {}

  Status Start(Sockets sockets) override {
    node_.TakeSockets(std::move(sockets.application), std::move(sockets.proxy));
    SendEvents(lifeline_, node_);
    node_.ConnectToHead();
    return {};
  }
  void OnPacket(char kind, std::string_view body, std::vector<UniqueFd> fds) override {
    OnLauncherPacket(node_, kind, body, std::move(fds));
  }
  void OnEnd(bool launcher_gone) override { node_.Finish(launcher_gone); }

 private:
  void OnDone() {
    const Status& failure = node_.failure();
    lifeline_.SendState(failure.ok() ? "done" : "failed", failure.message());
    lifeline_.StopReading();
    loop_.Stop();
  }

  Loop& loop_;
  LauncherLine& lifeline_;
  StepClock clock_;
  Node node_;
};

// What this build can collect, as JSON lines.
int PrintMetrics() {
  const std::string text = collect::MetricsAsJsonLines();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}

int BecomeHead(char** argv) {
  const HeldProgram head = HeldProgram::Beside("-head");
  if (std::string_view(argv[1]) == "--head") {
    AwaitLaunchedNodes(launch::kListenFd, launch::kLifelineFd);
  }
  execv(head.held().c_str(), argv);
  execv(head.path().c_str(), argv);
  std::fprintf(stderr, "sonded: execute %s: %s\n", head.path().c_str(), std::strerror(errno));
  return 1;
}

}  // namespace
}  // namespace sonde::node

int main(int argc, char** argv) {
  using namespace sonde;
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "--version") {
    std::puts("sonded " SONDE_VERSION);
    return 0;
  }
  if (word == "--list-metrics") return node::PrintMetrics();
  if (word == "--head" || word == "--solo") return node::BecomeHead(argv);
  return RunDaemon([](const DaemonSetup& setup) -> std::unique_ptr<Daemon> {
    if (setup.launch.role != Role::kNode) return nullptr;
    return std::make_unique<node::NodeDaemon>(setup);
  });
}
