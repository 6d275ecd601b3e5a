// How nodes that run similar tasks share one schema: ranks are counted from a node's first rank.
//
// The series of a node's tasks differ from its neighbours' by the tag `task` alone. In the node's
// stores and blocks that tag is the rank less the node's first rank; the first rank is appended to
// the group's name ("task+512"). So a step has the schema of its tasks once, however many nodes it
// has. Code that names a series for people adds the first rank again, as it adds the tag `host`.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/metric.h"
#include "series/block/schema.h"

namespace sonde {

inline constexpr std::string_view kTaskTag = "task";

bool HasTasks(const Schema& schema);
// The lowest rank among the series; kNoRank if there is none.
inline constexpr uint32_t kNoRank = 0xffffffff;
uint32_t FirstRank(const Schema& schema);

// The schema with `first` taken from every tag `task`; itself if that changes nothing. A rank
// below `first` becomes negative; a tag that is no rank stays.
Schema::Ptr RanksFrom(uint32_t first, Schema::Ptr schema);
// Adds `first` to the tag again.
void AddFirstRank(uint32_t first, Tags& tags);

// The name of a group of such a schema; the group's own if `first` is 0.
std::string GroupFrom(uint32_t first, std::string_view group);
// Of "task+512" 512; 0 of a name without.
uint32_t FirstRankOf(std::string_view group);

}  // namespace sonde
