// What the series of a group come to at each of some times, in a form to which more can be added in
// any order and grouping: how many had a value, and their exact sum, their minimum or their
// maximum, or a set of which percentiles can be told (series/query/percentile_set.h), whichever the
// aggregator needs.
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
  // Nothing at `times` times. With kNone the last value given for a time stands. Not for an
  // aggregator that NeedsAllValues (series/query/aggregate.h).
  explicit GroupValues(Aggregator aggregator, size_t times = 0);

  size_t size() const { return counts_.size(); }
  // One more series with a value there; NaN is passed over.
  void Add(size_t at, double value);
  // What others have at their time `from`, which have the same aggregator.
  void Merge(size_t at, const GroupValues& others, size_t from);
  // Whether a series had a value there.
  bool Any(size_t at) const { return counts_[at] != 0; }
  // The aggregate; of nothing, count is 0 and everything else NaN.
  double Get(size_t at) const;

  void Write(ByteWriter& out) const;
  // Of `times` times. Turns `in` bad on what Write cannot have written.
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
  std::vector<double> lows_;       // what the sums leave out; empty while that is nothing
  std::map<size_t, BigSum> bigs_;  // the sums that the two above do not hold
  std::vector<PercentileSet> sets_;
};

}  // namespace sonde
