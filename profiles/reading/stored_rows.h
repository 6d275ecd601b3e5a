// Rows and points that are read from a profile's blocks.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"
#include "profiles/model/block_key.h"
#include "series/block/block.h"
#include "series/block/schema.h"

namespace sonde {

// A row as it is stored: of a group of one node, or of the reduced series (kReducedNode). Valid
// within the call that receives it.
struct StoredRow {
  uint32_t node;
  std::string_view group;
  const Schema::Ptr& schema;
  const Block& block;  // its columns are those of the schema
  size_t row;          // in the block
  Nanos time() const { return block.times[row]; }
};
using OnStoredRow = std::function<Status(const StoredRow&)>;
struct RowsWanted {
  Nanos start = 0;
  Nanos end = INT64_MAX;
  // All rows within such a span come before any row of the next span.
  Nanos window = 600 * kSecond;
  // Which streams (node, group), and which of their blocks; nullptr: all.
  std::function<bool(uint32_t node, const std::string& group, const BlockInfo& info)> stream;
  // Called after the last row of a span, with the time up to which all rows were given.
  std::function<Status(Nanos until)> on_window = nullptr;
};

// Which of a profile's series: those of its nodes, which have the tag host, or the reduced ones of
// the whole step (kReducedNode), which have the tag stat.
enum class SeriesScope { kNodes, kReduced };
// Where rows were thinned (series/block/thin.h): which of a gauge's values.
enum class Thinned { kMean, kMin, kMax };

}  // namespace sonde
