// What a node answers to a question out of its stores.
//
// Thread safety: the stores' owner locks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/status.h"
#include "series/query/part.h"
#include "series/store/store.h"

namespace sonde::node {

// What a node's series are named by beside their schema.
struct NodeTags {
  const std::string& host;
  uint32_t first_rank = 0;  // series/store/task_ranks.h
};

// Reads what matches, with the tag `host` set and tasks by their ranks in the step, and makes this
// node's part of it. `past`: values of the past (series/store/past.h); nullptr: there are none.
Result<QueryPart> AnswerFrom(std::span<const GroupStore* const> stores, const QuerySpec& spec,
                             const QueryGrid& grid, const NodeTags& node,
                             const GroupStore* past = nullptr);

}  // namespace sonde::node
