// What a counter of the whole step comes to, from its reduced rows.
//
// What a node had counted stays counted when the node is not in a row: it is late, or it is gone
// with its tasks. So the sum of a counter never falls, and does not jump by what a node had counted
// before when that is back. A row tells by its count that values are missing from it. Every reader
// of reduced rows goes by this, and by nothing else: what comes out of it is not corrected again.
// docs/queries.md ("Counters") has the rule, and what it says of the nodes' own series is in
// series/query/counter.cc.
//
// Thread safety: values.
#pragma once

#include "series/store/reduced.h"

namespace sonde {

// The total, row by row.
class CounterTotal {
 public:
  // `value`: what is in the next row, of at least one node or task. Gives the total so far, which
  // is never less than the one before.
  double Add(const Reduced& value);
  double count() const { return count_; }      // values in the last row
  double most() const { return most_; }        // values in the largest row
  double missing() const { return missing_; }  // what absent nodes had counted

 private:
  bool any_ = false;
  double count_ = 0;
  double most_ = 0;
  double missing_ = 0;
  double total_ = 0;
};

// Whole rows: with the total, of as many values as ever were there, and with the extremes of those
// that are absent as they were last seen.
class CounterRows {
 public:
  // One of count 0 is missing and stays so.
  Reduced Add(const Reduced& row);

 private:
  CounterTotal total_;
  Reduced last_;
};

}  // namespace sonde
