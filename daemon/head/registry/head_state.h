// What another head needs to go on where this one stops, beside the profile's description and
// blocks: a small file in the step's live directory, written anew every few seconds.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "daemon/message/message.h"
#include "daemon/tree/frame.h"
#include "profiles/model/moments_builder.h"
#include "series/block/schema.h"

namespace sonde::head {

struct HeadState {
  static constexpr uint8_t kVersion = 3;

  Nanos row = 0;      // the newest of the step's rows that is stored
  uint32_t byes = 0;  // nodes that have said goodbye
  tree::Bye ends;     // and how, all together
  // Last values of nodes that have ended or were lost, and the newest of those that nobody but the
  // head has (its own children's), as if these were lost: by `schema`.
  Schema::Ptr schema;
  std::vector<tree::Frame> ended;
  // When what the application had told was stored last.
  std::vector<OpenPhase> phases;
  std::string alarms;  // rules that were added and removed meanwhile: Alarms::Changes()
};

std::string Encode(const HeadState& state);
// kCorrupt, or kUnsupported if another release wrote it.
Status Decode(std::string_view bytes, HeadState& state);

}  // namespace sonde::head
