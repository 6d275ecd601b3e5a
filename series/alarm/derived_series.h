// What alarm rules need of a node and nobody else does: rates, ratios and sums of the node, as
// series of their own (series/alarm/rule.h names them). They go up with the sample and are reduced
// like any other, so that the head knows who has the least and the most; they are not stored here.
//
// A rate is the change since the sample before, per second; missing after a counter began anew, and
// of a task that has ended, whose counters stay. A ratio is of the two series with the same tags; a
// rate of it is that of its counters. Each of these may instead tell for how long its comparison
// with a bound has held; a value that is missing for a moment does not interrupt that.
//
// Thread safety: none. Allocates nothing per tick while schemas and wishes stay.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.h"
#include "series/alarm/rule.h"
#include "series/block/schema.h"
#include "series/store/reduced.h"

namespace sonde::alarms {

// This metric has a value as long as a task is there.
inline constexpr std::string_view kAliveMetric = "task_processes";
inline constexpr std::string_view kTaskTag = "task";

class DerivedSeries {
 public:
  using Rows = std::span<const std::span<const double>>;  // by group
  static constexpr size_t kMaxSeries = 4096;              // more are left out

  // From the next SetSchemas on. What names a node is meant for this one.
  void SetWanted(std::vector<Derived> wanted) {
    wanted_ = std::move(wanted);
    stale_ = true;
  }
  // The groups that a sample has from now on; nullptr for an empty one.
  void SetSchemas(std::span<const Schema::Ptr> groups);
  // nullptr if there is nothing to derive.
  const Schema::Ptr& schema() const { return schema_; }
  // The sample of `time`.
  void Update(Nanos time, Rows rows);
  std::span<const double> row() const { return row_; }

 private:
  struct Place {
    uint32_t group = 0;
    uint32_t column = 0;
  };
  // A series that is read.
  struct Input {
    Place at;
    bool counter = false;
    bool rate = false;
    int alive = -1;  // in alive_: missing while that is
    double before = std::nan("");
    Nanos before_time = 0;
    double value = std::nan("");
    std::string key;
  };
  struct Output {
    std::vector<uint32_t> of;  // inputs, put together by the reduction
    std::vector<uint32_t> over;
    Reduction reduction = Reduction::kSum;
    Test held = Test::kAbsent;  // else since when it compares so, and not the value
    double bound = 0;
    Nanos since = 0;  // 0: it does not
    Nanos seen = 0;   // when it last had a value
    int missed = 0;   // samples since then
    std::string key;
  };

  struct Made;
  void Build();
  void BuildOne(const Derived& wanted, Made& made);
  bool BuildFrom(const Derived& wanted, Place place, Made& made);
  uint32_t AddInput(const Derived& wanted, const Series& series, Place place);
  int FindOver(const Derived& wanted, const Tags& tags);
  static double Held(Output& output, double value, Nanos time);
  double Together(const std::vector<uint32_t>& inputs, Reduction reduction) const;

  std::vector<Derived> wanted_;
  bool stale_ = false;
  std::vector<Schema::Ptr> groups_;
  std::vector<Place> alive_;
  std::unordered_map<std::string, int> alive_of_;  // task -> place in alive_
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  Schema::Ptr schema_;
  std::vector<double> row_;
};

}  // namespace sonde::alarms
