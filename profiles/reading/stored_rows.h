// Rows and points that are read from a profile's blocks.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/metric.h"
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
  const Block& block;  // its columns are those of the schema; of metrics not wanted NaN
  size_t row;          // in the block
  Nanos time() const { return block.times[row]; }
};
using OnStoredRow = std::function<Status(const StoredRow&)>;
// Which series the rows of a stream have. Valid within the call that receives it.
struct StoredShape {
  uint32_t node;
  std::string_view group;
  const Schema::Ptr& schema;
  Nanos first;  // of the block that was found first
};
// False: these are enough.
using OnStoredShape = std::function<bool(const StoredShape&)>;
struct RowsWanted {
  Nanos start = 0;
  Nanos end = INT64_MAX;
  // All rows within such a span come before any row of the next span.
  Nanos window = 600 * kSecond;
  // Which streams (node, group), and which of their blocks; nullptr: all.
  std::function<bool(uint32_t node, const std::string& group, const BlockInfo& info)> stream;
  // Of nodes' rows: the metrics whose columns are read; nullptr: all. Streams without any are left
  // out.
  std::function<bool(const Metric&)> metric = nullptr;
  // Called after the last row of a span, with the time up to which all rows were given.
  std::function<Status(Nanos until)> on_window = nullptr;
};

// Which series a reader wants; a function of a series alone does as well. Whoever names the metrics
// does not pay for the others: a large step has hundreds of series on each of its nodes.
struct SeriesWanted {
  // Asked for each series of a schema, however many nodes have it; nullptr: all metrics.
  std::function<bool(const Metric&)> metric;
  // Asked for each node's series of these metrics, with their tags as they come out; nullptr: all.
  std::function<bool(const Series&)> series;

  SeriesWanted() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): all series, as nullptr of a function.
  SeriesWanted(std::nullptr_t) {}
  template <typename F>
  requires std::is_invocable_r_v<bool, F, const Series&>
  // NOLINTNEXTLINE(google-explicit-constructor)
  SeriesWanted(F wanted) : series(std::move(wanted)) {}
  SeriesWanted(std::function<bool(const Metric&)> of_metric,
               std::function<bool(const Series&)> of_series)
      : metric(std::move(of_metric)), series(std::move(of_series)) {}
};

// Which of a profile's series: those of its nodes, which have the tag host, or the reduced ones of
// the whole step (kReducedNode), which have the tag stat.
enum class SeriesScope { kNodes, kReduced };
// Where rows were thinned (series/block/thin.h): which of a gauge's values.
enum class Thinned { kMean, kMin, kMax };

}  // namespace sonde
