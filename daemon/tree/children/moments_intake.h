// Moments that children send: each part is taken once, and its sender is told what became of it.
//
// A sender is known by its child's index, whatever link it comes over. At the head, parts that have
// arrived are told to be safe once they are stored.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/status.h"
#include "daemon/collect/app/moments.h"
#include "daemon/link/link.h"
#include "daemon/tree/children/acknowledgements.h"
#include "daemon/tree/moments_delivery.h"

namespace sonde::tree {

class MomentsIntake {
 public:
  explicit MomentsIntake(Keep keep) : keep_(keep) {}

  // Decodes the message of a part, gives `take` its moments if they are new, and answers it.
  template <typename Take>
  Status OnMessage(Link& link, uint32_t index, std::string_view payload, Take take) {
    MomentsMessage message;
    SONDE_RETURN_IF_ERROR(Decode(payload, message));
    if (seen_[index].Add(message.sequence)) take(std::move(message.moments));
    Answer(link, index, message.sequence);
    return {};
  }

  // What has come is being stored.
  void BeginSafe();
  // It is stored, and somebody has to be told.
  bool has_safe() const { return !marked_.empty(); }
  // To that child, over any link of its; one that has none now hears it next time.
  void TellSafe(Link& link, uint32_t index);

 private:
  void Answer(Link& link, uint32_t index, uint64_t sequence);

  const Keep keep_;
  // Child -> its parts: those that came, those that are not known to be safe, and of these the ones
  // that will be once they are stored.
  std::unordered_map<uint32_t, PartsSeen> seen_;
  std::unordered_map<uint32_t, std::vector<uint64_t>> unsafe_;
  std::unordered_map<uint32_t, std::vector<uint64_t>> marked_;
};

}  // namespace sonde::tree
