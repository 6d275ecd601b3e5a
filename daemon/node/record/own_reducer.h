// A node's own rows as reduced values: what it contributes to its frames.
//
// Series that differ only in the tag `task` become one, owned by node and rank; everything else
// keeps its tags and is owned by the node. What has no room in a schema is left out (SeriesUnion).
//
// A series that declares its spread has a sketch besides: of a gauge's values, of a counter's rates
// per second since the point before. A counter's first point has none.
//
// Thread safety: none. Allocates nothing per tick while the schemas stay.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/time.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/series_union.h"
#include "series/block/schema.h"
#include "series/sketch/quantile_sketch.h"
#include "series/store/reduced.h"

namespace sonde::tree {

class OwnReducer {
 public:
  // The node's groups' schemas, in a fixed order; nullptr for an empty group. True if the reduced
  // schema changed.
  bool SetSchemas(std::span<const Schema::Ptr> groups);
  const Schema::Ptr& schema() const { return schema_; }
  // The series of the newest schemas.
  const SeriesUnion& reduced() const { return reduced_; }
  void SetNode(uint32_t node);

  // Begins the values of a sample at `time`; a second time for one sample gives the same.
  void Begin(Nanos time);
  // The values of group `i`, by its schema.
  void Add(size_t group, std::span<const double> row);
  const std::vector<Reduced>& values() const { return values_; }
  // The sketches of the series that have their spread, in the order of the series.
  const std::vector<QuantileSketch>& spreads() const { return spreads_; }
  FrameValues frame() const { return {values_, spreads_}; }

 private:
  struct Column {
    uint32_t reduced;  // or SeriesUnion::kLeftOut
    Owner owner;
  };
  // A series with a spread, by its column in its group.
  struct SpreadColumn {
    uint32_t column;
    uint32_t spread;
    bool rate;
    Nanos time = 0;  // of a counter: its last point, and that before
    double value = 0;
    Nanos time_before = 0;
    double value_before = 0;
  };
  void AddRate(SpreadColumn& column, double value);
  void SetSpreads(std::span<const Schema::Ptr> groups, const Schema& reduced);

  std::vector<Schema::Ptr> groups_;
  std::vector<std::vector<Column>> columns_;  // by group
  SeriesUnion reduced_;
  Schema::Ptr schema_;
  std::vector<Reduced> values_;
  std::vector<std::vector<SpreadColumn>> spread_columns_;  // by group
  std::vector<QuantileSketch> spreads_;
  Nanos time_ = 0;
  uint32_t node_ = 0;
};

}  // namespace sonde::tree
