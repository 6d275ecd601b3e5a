// The numbers of the whole step, as /metrics shows them, from reduced rows: for each series its
// value by the metric's reduction, then its percentiles if the metric declares its spread.
//
// Counters never fall (series/query/counter_total.h). So rows have to come in the order of time,
// from the first row on; `presence` is the description's.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profiles/archive/archive.h"
#include "series/query/counter_total.h"
#include "series/store/reduced.h"

namespace sonde {

class StepNumbers {
 public:
  // The series of a schema of reduced rows, in the order of the numbers. `suffix` is put behind the
  // metric's name.
  struct Number {
    Series series;
    std::string suffix;
    size_t base = 0;  // index of the series in the schema
  };
  static std::vector<Number> NumbersOf(const Schema& schema);

  explicit StepNumbers(std::vector<PresenceRun> presence) : presence_(std::move(presence)) {}
  // Of a step that goes on.
  void SetPresence(std::vector<PresenceRun> presence) { presence_ = std::move(presence); }

  // Fills `out` with a number for each of NumbersOf; NaN: nothing was measured.
  void Add(const StoredRow& row, std::vector<double>& out);

 private:
  struct Shape {
    std::vector<Series> base;
    std::vector<CounterTotal*> totals;  // of counters; nullptr for other series
  };
  const Shape& ShapeOf(const Schema::Ptr& schema);

  std::vector<PresenceRun> presence_;
  RowNodes nodes_;
  std::map<uint64_t, Shape> shapes_;  // by the schema's id
  std::map<std::string, CounterTotal> totals_;
  std::vector<double> columns_;
  std::vector<Reduced> row_;
  std::vector<Spread> spreads_;
};

}  // namespace sonde
