// What a node had counted, as it was last known: through changes of its series, and of its links.
//
// Some counters are not sampled at every tick. A stream of frames that begins anew, with another
// schema or over another link, says nothing of them until they are sampled again. If the node is
// lost meanwhile, or missing, its last values are these.
//
// Thread safety: none.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "daemon/tree/series_union.h"
#include "series/block/schema.h"
#include "series/store/reduced.h"

namespace sonde::tree {

struct KnownValues {
  Schema::Ptr schema;
  std::vector<Reduced> values;
};

class LastKnown {
 public:
  bool empty() const { return values_.empty(); }
  // Newer values by this schema. Where a counter has none it stays as it was; gauges are not kept.
  void Add(const Schema& schema, std::span<const Reduced> values);
  // Those values, and of counters that have none there the last that are known.
  KnownValues With(const Schema::Ptr& schema, std::vector<Reduced> values) const;
  KnownValues Get() { return {series_.schema(), values_}; }

 private:
  SeriesUnion series_;
  std::vector<Reduced> values_;  // by series_
};

}  // namespace sonde::tree
