// Makes the footprint of a profile from reduced rows: one entry per reduced series.
//
// Rows come in the order of time, one per tick, as the head merges them or as they lie in reduced
// blocks. For every series:
//
//   gauges    last and mean are of the step's number (by the metric's reduction), min and max what
//             single nodes or tasks measured at any tick;
//   counters  (and histograms, whose cells count) last is the total, mean the total per second
//   since
//             the step's start, min and max are over the final values of nodes or tasks;
//   spread    the percentiles of the last tick that had any, and their means over all that had.
//
// Counts of a node that is missing from a row stay in the total
// (series/query/counter_total.h). Likewise the smallest final value may belong to a node that
// has left.
//
// Thread safety: none; one thread. AddRow allocates nothing. A copy is cheap: it shares the names.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/time.h"
#include "profiles/model/profile.h"
#include "series/block/schema.h"
#include "series/query/counter_total.h"
#include "series/store/reduced.h"

namespace sonde {

class FootprintBuilder {
 public:
  // `start` of the step: counters count from there.
  explicit FootprintBuilder(Nanos start) : start_(start) {}

  // The series of the following rows, one Reduced each. Series seen before go on.
  void SetSeries(const std::vector<Series>& series);
  // A reduced value with count 0 is missing and is passed over; so is a row of the wrong size or
  // one that is not later than the row before.
  // `spreads`: of the series that declare one, in order; a spread that is absent is missing.
  // `others`: it may be of other nodes than the row before.
  void AddRow(Nanos time, std::span<const Reduced> row, std::span<const Spread> spreads = {},
              bool others = false);
  // The row of `time`, added as `before`, has become `after`: a part of it came late. Both have the
  // size of the current rows; a series that `before` did not have has count 0.
  struct Row {
    std::span<const Reduced> values;
    std::span<const Spread> spreads = {};
  };
  void AmendRow(Nanos time, const Row& before, const Row& after);

  // Entries in the order in which series were first seen; leaves out series never measured.
  std::vector<FootprintEntry> Entries() const;
  size_t rows() const { return rows_; }

 private:
  struct Slot {
    std::shared_ptr<const Series> series;
    uint64_t ticks = 0;
    Nanos last_time = 0;
    double last = 0;
    double sum = 0;      // gauges: sum over ticks of the step's number
    CounterTotal total;  // counters
    Reduced extremes;    // only min, max and their owners
    Reduced row_min;     // counters: the last row's minimum
    Reduced gone_min;    // counters: the minimum of nodes that left
    uint64_t spreads = 0;
    Nanos spread_time = 0;
    Spread last_spread{};
    Spread spread_sum{};
  };

  static void AddGauge(Slot& slot, const Reduced& value);
  void AddCounter(Slot& slot, const Reduced& value) const;
  static void AddSpread(Slot& slot, Nanos time, const Spread& spread);
  void AddSpreads(Nanos time, std::span<const Spread> spreads);
  void AmendSpreads(Nanos time, std::span<const Spread> before, std::span<const Spread> after);

  Nanos start_;
  std::vector<Slot> slots_;
  using Index = std::map<std::string, size_t>;  // slots by the names of their series
  std::shared_ptr<const Index> index_ = std::make_shared<const Index>();
  std::vector<size_t> columns_;  // slot of each value of a row
  std::vector<size_t> spreads_;  // slot of each spread
  size_t rows_ = 0;
  uint64_t changes_ = 0;  // rows that may be of other nodes than the row before
  Nanos last_row_ = 0;
};

}  // namespace sonde
