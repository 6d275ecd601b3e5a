// Owners for children and relays in tests: what comes up goes nowhere.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "daemon/tree/children/children.h"
#include "daemon/tree/children/relay.h"

namespace sonde::tree {

// What is not merged need not be acknowledged.
class ChildrenAlone : public Children::Owner {
 public:
  virtual ~ChildrenAlone() = default;
  void OnBlock(BlockMessage /*block*/) override {}
  void OnMoments(collect::Moments /*moments*/) override {}
  void OnEnded(const FrameInfo& /*header*/, const Schema::Ptr& /*schema*/,
               std::span<const Reduced> /*values*/, TickMerger::Source /*source*/) override {}
  void OnRefused(TickMerger::Fate /*fate*/, const Frame& /*frame*/,
                 TickMerger::Source /*source*/) override {}
};

class RelayAlone final : public Relay::Owner {
 public:
  void OnBlock(BlockMessage /*block*/) override {}
  void BeforeFrames() override {}
  void OnAhead() override {}
};

}  // namespace sonde::tree
