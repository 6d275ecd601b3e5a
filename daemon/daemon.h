// One sonded: the roles its launch message names, wired to its lifeline.
//
//   node  tasks and their ends go to the Node; the end of the lifeline finishes it
//   head  the end of the lifeline finishes the Head, its report goes back over the lifeline
//   solo  both in one process over a LocalLink: the node finishes first, then the head
//
// Thread safety: the loop's thread only.
#pragma once

#include <memory>
#include <string>

#include "core/config.h"
#include "daemon/head/head.h"
#include "daemon/launch_message.h"
#include "daemon/lifeline.h"
#include "daemon/loop.h"
#include "daemon/node/node.h"

namespace sonde {

class Daemon {
 public:
  Daemon(Loop& loop, Lifeline& lifeline, const LaunchMessage& launch);
  ~Daemon();

  // `listen`: the head's rendezvous socket. `application`: the node's, which listens already.
  Status Start(UniqueFd listen, UniqueFd application);

 private:
  void OnPacket(char kind, std::string_view body, std::vector<UniqueFd> fds);
  void OnTask(std::string_view body, std::vector<UniqueFd> fds);
  void OnEnd(Lifeline::End how);
  void OnNodeDone();
  void OnReport(const std::string& text);
  void ConnectSolo();
  void SendEvents(const collect::PerfSource& perf);

  Loop& loop_;
  Lifeline& lifeline_;
  LaunchMessage launch_;
  bool launcher_gone_ = false;
  std::unique_ptr<head::Head> head_;
  std::unique_ptr<node::Node> node_;
};

// The metrics this build can collect, as JSON lines on standard output; the exit code.
int PrintMetrics();

}  // namespace sonde
