// sonded-head: the head of a step and, in the role solo, its one node as well.
//
//   head  the end of the lifeline finishes the Head, its report goes back over the lifeline
//   solo  both in one process over a LocalLink: the node finishes first, then the head
#include <fmt/core.h>
#include <sys/prctl.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>

#include "core/log.h"
#include "daemon/daemon.h"
#include "daemon/head/head.h"
#include "daemon/link/local_link.h"
#include "daemon/node/launcher_packets.h"
#include "daemon/node/node.h"
#include "forward/follower.h"

namespace sonde::head {
namespace {

class HeadDaemon : public Daemon {
 public:
  explicit HeadDaemon(const DaemonSetup& setup) : setup_(setup), clock_(setup.launch.ahead) {
    head_.emplace(setup.loop, clock_, setup.launch, setup.config,
                  [this](const std::string& report) { OnReport(report); });
    if (setup.launch.role == Role::kSolo) {
      node_.emplace(setup.loop, clock_, setup.launch, setup.config, [this] { OnNodeDone(); });
    }
  }

  Status Start(Sockets sockets) override {
    SONDE_RETURN_IF_ERROR(head_->Start(std::move(sockets.listen)));
    if (!setup_.config_error.ok()) {
      head_->AddNote(fmt::format("{}; left out", setup_.config_error.message()));
    }
    for (const std::string& note : setup_.launch.notes) head_->AddNote(note);
    if (!node_) return {};
    node_->TakeSockets(std::move(sockets.application), std::move(sockets.proxy));
    node::SendEvents(setup_.lifeline, *node_);
    auto [node_end, head_end] = tree::LocalLink::MakePair(setup_.loop, "this node", "the head");
    const Result<uint32_t> index = head_->AddNode(node_->registration(), std::move(head_end));
    if (!index.ok()) return index.status();
    node_->UseControl(std::move(node_end));
    return {};
  }

  void OnPacket(char kind, std::string_view body, std::vector<UniqueFd> fds) override {
    if (node_) node::OnLauncherPacket(*node_, kind, body, std::move(fds));
  }

  void OnEnd(bool launcher_gone) override {
    launcher_gone_ = launcher_gone;
    if (node_) return node_->Finish(launcher_gone);
    if (head_) head_->Finish(launcher_gone);
  }

 private:
  void OnNodeDone() {
    node_.reset();
    if (head_) head_->Finish(launcher_gone_);
  }

  void OnReport(const std::string& report) {
    setup_.lifeline.SendReport(report);
    // Of a batch script nobody sees the report.
    const bool shown = setup_.config.report != "off" && !setup_.launch.InStep();
    const Status& not_stored = head_->not_stored();
    setup_.lifeline.SendState(
        "done", shown || not_stored.ok()
                    ? std::string()
                    : fmt::format("the profile is not stored: {}", not_stored.message()));
    // srun and `sonde run` go on while the profile is stored; slurmstepd waits for the process.
    if (setup_.launch.InStep()) {
      setup_.lifeline.StopReading();
    } else {
      setup_.lifeline.Close();
    }
    setup_.loop.Post([this] {
      head_.reset();  // joins the archive's thread: the profile is ingested when the process ends
      setup_.loop.Stop();
    });
  }

  const DaemonSetup setup_;
  StepClock clock_;
  bool launcher_gone_ = false;
  std::optional<Head> head_;
  std::optional<node::Node> node_;
};

}  // namespace
}  // namespace sonde::head

int main(int argc, char** argv) {
  using namespace sonde;
  // Of a program executed by a descriptor, ps would show the descriptor's number.
  prctl(PR_SET_NAME, "sonded-head");
  if (argc > 1 && std::string_view(argv[1]) == "--version") {
    std::puts("sonded-head " SONDE_VERSION);
    return 0;
  }
  if (argc == 5 && std::string_view(argv[1]) == "--forward") {
    return forward::RunFollower(argv[2], argv[3], argv[4]);
  }
  return RunDaemon([](const DaemonSetup& setup) -> std::unique_ptr<Daemon> {
    if (setup.launch.role == Role::kNode) return nullptr;
    return std::make_unique<head::HeadDaemon>(setup);
  });
}
