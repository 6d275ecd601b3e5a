// The total of a counter over the whole step, from its reduced rows.
//
// A node's count stays in the total when the node is missing from a row: it is late, or it is gone
// with its tasks. So the sum of a counter never falls, and does not jump by a node's earlier count
// when that node is back. A row tells by its count that values are missing from it, and the runs of
// the description (PresenceRun) when it is of other nodes than the row before although as many.
// Every reader of reduced rows uses this rule and no other, and does not correct the result again.
// docs/queries.md ("Counters") has the rule; series/query/counter.cc has its part about the nodes'
// own series.
//
// What absent nodes have is at least the total so far without the values of those that are there:
// no counter falls. As long as the same ones are there that stays as it is; so the total is never
// more than what was counted, and right again with the first whole row.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <span>

#include "core/job.h"
#include "core/time.h"
#include "series/store/reduced.h"

namespace sonde {

// Which rows may be of other nodes than the rows before them.
class RowNodes {
 public:
  // Rows in the order of time; several of one time are one. `runs`: of the step, as they are known
  // now; empty: not known, then no row is told to be.
  bool Changed(std::span<const PresenceRun> runs, Nanos time);
  // Since the first row. A counter that had no value where the nodes changed learns of it by this
  // number at its next value.
  uint64_t changes() const { return changes_; }

 private:
  Nanos time_ = INT64_MIN;
  Nanos run_ = INT64_MIN;  // the first tick of its run
  bool changed_ = false;
  uint64_t changes_ = 0;
};

// The total, row by row.
class CounterTotal {
 public:
  // `value`: the next row, of at least one node or task. Gives the total so far, which is never
  // less than the one before. `changes`: how often rows up to this one were of other nodes than the
  // row before (RowNodes).
  double Add(const Reduced& value, uint64_t changes = 0);
  double count() const { return count_; }      // values in the last row
  double most() const { return most_; }        // values in the largest row
  double missing() const { return missing_; }  // what absent nodes had counted

 private:
  bool any_ = false;
  uint64_t changes_ = 0;
  double count_ = 0;
  double most_ = 0;
  double missing_ = 0;
  double total_ = 0;
};

// Makes rows whole: each has the total, the largest number of values so far, and the extremes with
// absent values as they were last seen.
class CounterRows {
 public:
  // A row of count 0 is missing and stays missing.
  Reduced Add(const Reduced& row, uint64_t changes = 0);

 private:
  CounterTotal total_;
  Reduced last_;
};

}  // namespace sonde
