// What a node needs to be acting head: a socket that listens beforehand, so that the other nodes
// know where, and sonded-head, which is started with it when the head has died.
//
// Until then nobody is let in: who connects waits in the socket's backlog. The acting head is a
// process of the node's step, as this one is, so it ends with it: Slurm would drain the node
// otherwise.
//
// Thread safety: the loop's thread only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "daemon/held_program.h"
#include "daemon/launch_message.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"

namespace sonde::node {

class Standby {
 public:
  // `ports`: as port_range of sonde.conf; "": any. `program`: the head's.
  Standby(Loop& loop, const LaunchMessage& launch, std::string ports,
          HeldProgram program = HeldProgram::Beside("-head"))
      : loop_(loop), launch_(launch), ports_(std::move(ports)), program_(std::move(program)) {}
  ~Standby();

  // Listens on this address of the node, numeric; gives the port, the same while it listens.
  Result<uint16_t> Listen(const std::string& host);
  // Starts the acting head of a step that began at `start`. Once for each Listen. An acting head
  // started before is given up by all nodes, and killed if it has not died.
  // `ahead`: what the step's time is ahead of this machine's wall clock. `place`: this node's
  // index. `before`: where nodes with lower indexes stood by; an acting head there has the
  // step.
  Status Act(Nanos start, Nanos ahead, uint32_t place, const std::vector<tree::Place>& before = {});

  // This node's tasks are done: nobody needs to wait here any more, and an acting head seals the
  // profile, or leaves the other nodes to the next one (Head::Finish). `left` is called once it is
  // gone; at the deadline (monotonic) it is killed.
  void Leave(Nanos deadline, std::function<void()> left);

 private:
  void Watch(pid_t pid);
  void OnExit(pid_t pid);
  void Kill() const;

  Loop& loop_;
  const LaunchMessage& launch_;
  const std::string ports_;
  // The head may die hours after this daemon began, and the programs may be others by then.
  const HeldProgram program_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  // Of the acting head.
  UniqueFd lifeline_;
  // The acting heads that are not gone yet, each with the pidfd that tells its end.
  std::map<pid_t, UniqueFd> heads_;
  std::function<void()> left_;
  Loop::TimerId timer_ = 0;
};

}  // namespace sonde::node
