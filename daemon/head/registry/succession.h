// Who goes on when this head dies: some nodes that listen for that case, and that all nodes know.
//
// The first kSuccessors nodes that are there and have a port to listen at stand by, in the order of
// their indices. This begins when the step has run for a while; short steps end before.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "daemon/loop.h"
#include "daemon/message/message.h"

namespace sonde::head {

class Succession {
 public:
  static constexpr size_t kSuccessors = 3;
  // So many nodes that cannot are passed over; then there are fewer that stand by.
  static constexpr size_t kMostUnable = 3;
  // Changes within it are told as one.
  static constexpr Nanos kDelay = 50 * kMillisecond;
  static_assert(kSuccessors <= tree::kMaxSuccessors);

  // Over a node's control connection; false if there is none.
  using Send = std::function<bool(uint32_t node, tree::Type type, std::string_view payload)>;
  // The connection of a node that stands by is lost, or (`away` is false) the node is back.
  using Standing = std::function<void(const tree::Place& place, bool away)>;
  Succession(Loop& loop, Nanos after, Send send, Standing standing = nullptr);
  ~Succession();

  // A node is there, or there again.
  void Add(uint32_t node);
  // Its connection is gone. `done`: the node has said goodbye, or was lost or replaced before.
  void Remove(uint32_t node, bool done = true);
  // Who goes on is decided: every node looks there first, when its connection is closed.
  void TellOf(const tree::Place& acting);
  // kStandingBy.
  void OnStandingBy(uint32_t node, std::string_view payload);

 private:
  void Choose();
  void TellAll();
  void TellSoon();
  void Tell(uint32_t node);
  tree::Successors List() const;

  Loop& loop_;
  Send send_;
  Standing on_standing_;
  bool begun_ = false;
  std::set<uint32_t> there_;
  std::set<uint32_t> asked_;
  std::set<uint32_t> unable_;  // of them
  std::map<uint32_t, tree::Place> standing_;
  std::map<uint32_t, tree::Place> away_;  // stood by, and may come back
  std::optional<tree::Place> acting_;
  std::string told_;
  Loop::TimerId begin_timer_ = 0;
  Loop::TimerId tell_timer_ = 0;
};

}  // namespace sonde::head
