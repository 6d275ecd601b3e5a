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
#include <set>
#include <string_view>
#include <vector>

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
  // Whether a node speaks version 6 of the protocol.
  using IsEarlier = std::function<bool(uint32_t node)>;
  Succession(Loop& loop, Nanos after, Send send, IsEarlier is_earlier);
  ~Succession();

  // A node is there, or there again.
  void Add(uint32_t node);
  // Its connection is gone.
  void Remove(uint32_t node);
  // kStandingBy.
  void OnStandingBy(uint32_t node, std::string_view payload);

 private:
  void Choose();
  void TellSoon();
  void Tell(uint32_t node);
  std::string List();

  Loop& loop_;
  Send send_;
  IsEarlier is_earlier_;
  bool begun_ = false;
  std::set<uint32_t> there_;
  std::set<uint32_t> asked_;
  std::set<uint32_t> unable_;  // of them
  std::map<uint32_t, tree::Place> standing_;
  std::string told_;
  std::vector<uint32_t> told_earlier_;  // of them
  Loop::TimerId begin_timer_ = 0;
  Loop::TimerId tell_timer_ = 0;
};

}  // namespace sonde::head
