#include "series/query/counter_total.h"

#include <algorithm>
#include <utility>

namespace sonde {

bool RowNodes::Changed(std::span<const PresenceRun> runs, Nanos time) {
  if (time == time_) return changed_;
  const auto behind =
      std::upper_bound(runs.begin(), runs.end(), time,
                       [](Nanos t, const PresenceRun& run) { return t < run.first; });
  const PresenceRun* run = behind == runs.begin() ? nullptr : &*(behind - 1);
  const Nanos first = run == nullptr ? INT64_MIN : run->first;
  changed_ = first != std::exchange(run_, first) || (run != nullptr && run->IsMixed());
  changes_ += changed_ ? 1 : 0;
  time_ = time;
  return changed_;
}

double CounterTotal::Add(const Reduced& value, uint64_t changes) {
  const bool others = std::exchange(changes_, changes) != changes;
  if (any_ && (others || value.count != count_)) {
    const double less = std::max(0.0, total_ - value.sum);
    if (value.count >= most_) {
      missing_ = 0;  // as many values as ever: the row is whole, nothing has to be added
    } else {
      // A node that comes back may have an old count, but no less than it had.
      missing_ = others || value.count < count_ ? less : std::min(missing_, less);
    }
  }
  any_ = true;
  count_ = value.count;
  most_ = std::max(most_, value.count);
  // A row of as many values can be of other nodes, and sums are rounded: the total never falls.
  total_ = std::max(total_, value.sum + missing_);
  return total_;
}

Reduced CounterRows::Add(const Reduced& row, uint64_t changes) {
  if (!(row.count > 0)) return row;
  Reduced whole = row;
  whole.sum = total_.Add(row, changes);
  whole.count = total_.most();
  if (last_.count > 0) {
    if (last_.max > whole.max) whole.max = last_.max, whole.max_owner = last_.max_owner;
    // The node with the smallest value may be the absent one.
    if (row.count < whole.count && last_.min < whole.min) {
      whole.min = last_.min;
      whole.min_owner = last_.min_owner;
    }
  }
  last_ = whole;
  return whole;
}

}  // namespace sonde
