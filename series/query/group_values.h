// The aggregate of a group's series at each of some times, in a form to which more can be added in
// any order and grouping: how many series had a value, and as the aggregator needs it their exact
// sum, their minimum, their maximum, or a set that gives percentiles
// (series/query/percentile_set.h).
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/bytes.h"
#include "series/query/exact_sum.h"
#include "series/query/percentile_set.h"
#include "series/query/query.h"

namespace sonde {

class GroupValues {
 public:
  // Starts empty, for `times` times. With kNone the last value given for a time counts. Not for an
  // aggregator that NeedsAllValues (series/query/aggregate.h).
  explicit GroupValues(Aggregator aggregator, size_t times = 0);

  size_t size() const { return counts_.size(); }
  // Adds the value of one more series there; NaN is passed over.
  void Add(size_t at, double value);
  // Adds the values of `others`, of the same aggregator, at their time `from`.
  void Merge(size_t at, const GroupValues& others, size_t from);
  // Whether a series had a value there.
  bool Any(size_t at) const { return counts_[at] != 0; }
  // The aggregate; without values, count is 0 and every other aggregate NaN.
  double Get(size_t at) const;

  void Write(ByteWriter& out) const;
  // Reads `times` times. Turns `in` bad on bytes that Write cannot have written.
  static GroupValues Read(Aggregator aggregator, size_t times, ByteReader& in);

 private:
  bool Sums() const {
    return aggregator_ == Aggregator::kSum || aggregator_ == Aggregator::kAvg ||
           aggregator_ == Aggregator::kSquareSum;
  }
  bool Counts() const {
    return aggregator_ == Aggregator::kCount || aggregator_ == Aggregator::kAvg;
  }
  bool Percentiles() const { return PercentileOf(aggregator_) > 0; }
  // Whether values_ are in use.
  bool Numbers() const { return aggregator_ != Aggregator::kCount && !Percentiles(); }
  void AddCount(size_t at, uint32_t count);
  void AddSum(size_t at, double high, double low);
  void AddExtreme(size_t at, double value);
  BigSum& Big(size_t at);
  void WriteCounts(ByteWriter& out) const;
  bool ReadCounts(ByteReader& in);
  void ReadValues(ByteReader& in);
  void ReadBigs(ByteReader& in);

  Aggregator aggregator_;          // its Basis
  std::vector<uint32_t> counts_;   // 0 or 1 where only whether there is a value matters
  std::vector<double> values_;     // the rounded sum or the extreme
  std::vector<double> lows_;       // the rest of the sums; empty while all are 0
  std::map<size_t, BigSum> bigs_;  // the sums that the two above do not hold
  std::vector<PercentileSet> sets_;
};

}  // namespace sonde
