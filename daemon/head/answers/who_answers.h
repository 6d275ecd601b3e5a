// Which nodes of a running step answer a question, and in whose place the head answers from what
// they have stored.
//
// A host is one node of the step to those who ask, also when its daemon was started anew: the
// series of the two daemons are the same. Components of a het step may share a host; their nodes
// are different ones.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/job.h"
#include "daemon/tree/node_set.h"

namespace sonde::head {

struct WhoAnswers {
  uint32_t answered = 0;  // hosts, without those in `gone`
  uint32_t expected = 0;
  // Nodes that are there and did not answer, by index.
  std::vector<uint32_t> silent;
  // Hosts of which every daemon is gone and none has answered: their newest daemon.
  std::map<std::string, uint32_t> gone;
};
// `who`: the nodes that are known to have answered; `unknown`: so many others have, too.
WhoAnswers SortOut(const JobDescription& job, const tree::NodeSet& who, uint32_t unknown);

// How many hosts the rows of the step are of: those whose newest daemon is there or has ended, of
// how many there should be.
struct HostsInRows {
  uint32_t there = 0;
  uint32_t expected = 0;
};
HostsInRows CountHosts(const JobDescription& job);

// Hosts with a daemon that is gone and another one. Their series are of both, so that no node can
// answer of them.
std::set<std::string> StartedAnew(const JobDescription& job);

}  // namespace sonde::head
