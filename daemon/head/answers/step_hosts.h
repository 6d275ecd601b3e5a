// What answers have to know of all hosts of a running step: how many there are, whose daemon was
// started anew, when they were there, and which of them have answered a question.
//
// A host is one node of the step to those who ask, also when its daemon was started anew: the
// series of the two daemons are the same. Components of a het step may share a host; their nodes
// are different ones.
//
// It is made once for a description, and then asked for many answers (hosts_now.h). It names nodes
// by their indexes, and so keeps nothing of the description, which the head would have to copy to
// change it.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/job.h"
#include "daemon/tree/node_set.h"
#include "series/query/pieces/absences.h"

namespace sonde::head {

// How many hosts the rows of the step are of: those whose newest daemon is there or has ended, of
// how many there should be.
struct HostsInRows {
  uint32_t there = 0;
  uint32_t expected = 0;
};

struct WhoAnswers {
  uint32_t answered = 0;  // hosts, without those in `gone`
  uint32_t expected = 0;
  // Nodes that are there and did not answer.
  std::vector<uint32_t> silent;
  // Of each host of which every daemon is gone and none has answered: its newest daemon. Ascending.
  std::vector<uint32_t> gone;
};

class StepHosts {
 public:
  explicit StepHosts(const JobDescription& job);

  uint32_t nodes() const { return static_cast<uint32_t>(kinds_.size()); }
  // Nodes that have neither ended nor been lost.
  uint32_t connected() const { return connected_; }
  const HostsInRows& in_rows() const { return in_rows_; }
  const HostTimes& times() const { return times_; }
  // Of a step of one node its host, else "".
  const std::string& only() const { return only_; }

  // Hosts with a daemon that is gone and another one, by name. Their series are of both, so that no
  // node can answer for them.
  struct Anew {
    Nanos first = 0;              // when the first of its daemons came
    Nanos newest = 0;             // and the newest
    std::vector<uint32_t> nodes;  // its daemons
  };
  const std::map<std::string, Anew>& anew() const { return anew_; }

  // Whether the node is there, has ended or is lost as it was then.
  bool Is(uint32_t node, const NodeInfo& now) const;
  // `who`: the nodes that are known to have answered; `unknown`: so many others have, too.
  WhoAnswers SortOut(const tree::NodeSet& who, uint32_t unknown) const;

 private:
  struct Kind {
    bool newest = false;  // of its host's daemons
    bool gone = false;
    bool lost = false;
    bool named = false;  // it has come, to this head or the one before
  };

  StepHosts(const JobDescription& job, const HostNumbers& hosts);
  void FindNewest(const JobDescription& job, const HostNumbers& hosts);
  void FindAnew(const JobDescription& job, const HostNumbers& names);
  bool HasOlder(uint32_t node, const tree::NodeSet& who) const;

  std::vector<Kind> kinds_;                  // by node
  std::map<uint32_t, uint32_t> one_before_;  // of daemons that were started anew
  uint32_t hosts_ = 0;
  uint32_t connected_ = 0;
  HostsInRows in_rows_;
  HostTimes times_;
  std::string only_;
  std::map<std::string, Anew> anew_;
};

}  // namespace sonde::head
