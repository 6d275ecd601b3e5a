// Going through a list of profiles by their cards, as tables, JSON and the pages do.
//
// Thread safety: a function without state.
#pragma once

#include <vector>

#include "core/job.h"
#include "profiles/archive.h"
#include "profiles/card.h"
#include "profiles/keys.h"

namespace sonde::cli {

// Calls f(listed, step, card) for each, in their order; those whose key or card cannot be read are
// left out. The card is valid within the call.
template <typename F>
void ForEachCard(const std::vector<ListedProfile>& profiles, const F& f) {
  Card card;
  for (const ListedProfile& one : profiles) {
    const auto known = keys::DescribeKey(one.key);
    if (known && DecodeCard(one.card, card).ok()) f(one, known->id, card);
  }
}

}  // namespace sonde::cli
