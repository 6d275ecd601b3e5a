// What a node answers to a question out of its stores.
//
// Thread safety: the stores' owner locks.
#pragma once

#include <span>
#include <string>

#include "core/status.h"
#include "series/query_part.h"
#include "series/store.h"

namespace sonde::node {

// Reads what matches, with the tag `host` set, and makes this node's part of it.
Result<QueryPart> AnswerFrom(std::span<const GroupStore* const> stores, const QuerySpec& spec,
                             const QueryGrid& grid, const std::string& host);

}  // namespace sonde::node
