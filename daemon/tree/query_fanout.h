// Questions that travel down the tree: sent to every child, the answers merged as they come, until
// all are there or the time is up, with the nodes that answered (series/query/part.h).
//
// A child is not trusted. A reply that is no part of the question counts as none. What the open
// questions hold together is bounded, and a question whose answer becomes too large fails with the
// limit's name, as does one of which a child says so.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/link/link.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "daemon/tree/node_set.h"
#include "series/query/part.h"

namespace sonde::tree {

struct Question {
  uint64_t id = 0;  // another one for each question of a step
  QuerySpec spec;
  QueryGrid grid;
  Nanos patience = 0;  // how long to wait for children; they get less
};

// What came of a question.
struct Gathered {
  uint64_t id = 0;
  uint32_t nodes = 0;  // that answered
  NodeSet who;         // those of them that are known: daemons of earlier releases do not say
  Status failure;      // if not ok there is no part
  QueryPart part;
};

std::string Encode(const Question& question);
Status Decode(std::string_view bytes, Question& question);
// The reply that goes up. An answer that is too large becomes a failure here.
ReplyMessage ToReply(const Gathered& gathered);
// Sends it to the parent, and before it who answered.
void SendReply(Link& parent, const Gathered& gathered);

class QueryFanout {
 public:
  using Done = std::function<void(Gathered answer)>;
  // What a node answers itself, or why it cannot.
  struct Own {
    uint32_t node = 0;
    Result<QueryPart> part;
  };

  explicit QueryFanout(Loop& loop) : loop_(loop) {}
  ~QueryFanout();

  // Asks every one of `children`; `own` is this node's own part, which the head has not. Calls
  // `done` once; a question that was asked before is answered at once, with no nodes. More than
  // kMaxOpen at a time fail.
  void Ask(Question question, const std::vector<Link*>& children, std::optional<Own> own,
           Done done);
  // kAnswered and kReply. An answer that is late, or was not asked for, is dropped, and so is one
  // of nodes of which some have answered over another child.
  Status OnMessage(const Link& from, Type type, std::string_view payload);
  // A child that is gone answers no more.
  void OnGone(const Link& child);

  static constexpr size_t kMaxOpen = 64;
  static constexpr size_t kMaxHeldPoints = 4 * kMaxPartPoints;  // in the open questions together

 private:
  struct Open {
    std::vector<const Link*> waiting;
    std::unordered_map<const Link*, NodeSet> said;  // who is in the answers that come
    QuerySpec spec;
    QueryGrid grid;
    Gathered answer;
    size_t points = 0;
    Loop::TimerId timer = 0;
    Done done;
  };
  void OnAnswered(const Link& from, const AnsweredMessage& answered);
  void OnReply(const Link& from, const ReplyMessage& reply);
  // Whether the question is new; a child that changes its parent may be asked by both.
  bool Remember(uint64_t id);
  void Merge(Open& open, uint32_t nodes, const NodeSet& who, QueryPart part);
  void Finish(uint64_t id);

  Loop& loop_;
  std::unordered_map<uint64_t, Open> open_;
  std::deque<uint64_t> recent_;  // the last kRecent that were asked
  size_t held_points_ = 0;
  bool warned_ = false;
};

}  // namespace sonde::tree
