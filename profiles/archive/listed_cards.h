// Finds the steps that a user names, and goes through them by their cards, as tables, JSON and the
// pages do.
//
// Thread safety: functions without state.
#pragma once

#include <string_view>
#include <vector>

#include "core/job.h"
#include "profiles/archive/archive.h"
#include "profiles/records/card.h"
#include "profiles/records/keys.h"

namespace sonde {

// Calls f(listed, step, card) for each profile in order; leaves out profiles whose key or card
// cannot be read. The card is valid within the call.
template <typename F>
void ForEachCard(const std::vector<ListedProfile>& profiles, const F& f) {
  Card card;
  for (const ListedProfile& one : profiles) {
    const auto known = keys::DescribeKey(one.key);
    if (known && DecodeCard(one.card, card).ok()) f(one, known->id, card);
  }
}

// The profiles that "123", "123.0", "123_4" or "123_4.0" means, newest first; if there are none,
// kNotFound, which says how to list profiles.
Result<std::vector<ProfileEntry>> FindSteps(const Archive& archive, std::string_view id);
// The cards of the profiles found, the newest first.
Result<std::vector<ListedProfile>> CardsOf(const Archive& archive,
                                           const std::vector<ProfileEntry>& found, Nanos now);

}  // namespace sonde
