// What another head needs to go on where this one stops, beside the profile's description and
// blocks: a small file in the step's live directory, written anew every few seconds.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "daemon/message/message.h"
#include "daemon/tree/frame.h"
#include "profiles/live/live_steps.h"
#include "profiles/model/moments_builder.h"
#include "series/block/schema.h"
#include "series/store/reduced.h"

namespace sonde::head {

struct HeadState {
  static constexpr uint8_t kVersion = 3;
  // Of one that is stored: a longer one would not be read.
  static constexpr size_t kMaxBytes = kMaxState;

  Nanos row = 0;      // the newest of the step's rows that is stored
  uint32_t byes = 0;  // nodes that have said goodbye
  tree::Bye ends;     // and how, all together
  // Last values of nodes that have ended or were lost, and behind these the newest of those that
  // nobody but the head has (its own children's), as if these were lost: by `schema`. Each is a
  // frame, encoded by itself: decoded, those of thousands of nodes would take five times as much.
  Schema::Ptr schema;
  std::vector<std::string> ended;
  // When what the application had told was stored last.
  std::vector<OpenPhase> phases;
  std::string alarms;  // rules that were added and removed meanwhile: Alarms::Changes()
};

// One of HeadState::ended. Without `gauges` it has no values but those that stay in the totals.
std::string EncodeLastValues(const tree::Frame& frame, const Schema& schema, bool gauges = true);
// Calls `f` with each of them, of which it has those values that are there: columns of the schema,
// and as many values. They are valid until `f` returns.
void ForEachLastValues(const HeadState& state,
                       const std::function<void(const tree::FrameInfo&, std::span<const uint32_t>,
                                                std::span<const Reduced>)>& f);

// `left_out`: how many of `ended`, the last ones, there was no room for within kMaxBytes.
std::string Encode(const HeadState& state, size_t* left_out = nullptr);
// kCorrupt, or kUnsupported if another release wrote it.
Status Decode(std::string_view bytes, HeadState& state);

}  // namespace sonde::head
