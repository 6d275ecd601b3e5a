#include "series/query/counter_total.h"

#include <algorithm>

namespace sonde {

double CounterTotal::Add(const Reduced& value) {
  if (any_ && value.count != count_) {
    const double less = std::max(0.0, total_ - value.sum);
    if (value.count >= most_) {
      missing_ = 0;  // as many values as ever: the row is whole, nothing has to be added
    } else {
      // A node that comes back may have an old count, but no less than it had.
      missing_ = value.count < count_ ? less : std::min(missing_, less);
    }
  }
  any_ = true;
  count_ = value.count;
  most_ = std::max(most_, value.count);
  // A row of as many values can be of other nodes, and sums are rounded: the total never falls.
  total_ = std::max(total_, value.sum + missing_);
  return total_;
}

Reduced CounterRows::Add(const Reduced& row) {
  if (!(row.count > 0)) return row;
  Reduced whole = row;
  whole.sum = total_.Add(row);
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
