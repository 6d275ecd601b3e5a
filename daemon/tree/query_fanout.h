// Questions that travel down the tree: sent to every child, answers gathered until all are there or
// the time is up, with the number of nodes that answered.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/loop.h"
#include "daemon/tree/link.h"
#include "daemon/tree/message.h"

namespace sonde::tree {

class QueryFanout {
 public:
  using Done = std::function<void(ReplyMessage reply)>;

  explicit QueryFanout(Loop& loop) : loop_(loop) {}
  ~QueryFanout();

  // Asks every one of `children`; `own`, if not empty, is this node's own part. Calls `done` once.
  // Too many open questions (kMaxOpen) are answered at once, by nobody.
  void Ask(const QueryMessage& query, const std::vector<Link*>& children, std::string own,
           Nanos timeout, Done done);
  // An answer; one that is late, or was not asked for, is dropped.
  void OnReply(const Link& from, ReplyMessage reply);
  // A child that is gone answers no more.
  void OnGone(const Link& child);

  static constexpr size_t kMaxOpen = 64;

 private:
  struct Open {
    std::vector<const Link*> waiting;
    ReplyMessage reply;
    Loop::TimerId timer = 0;
    Done done;
  };
  void Finish(uint64_t id);

  Loop& loop_;
  std::unordered_map<uint64_t, Open> open_;
};

}  // namespace sonde::tree
