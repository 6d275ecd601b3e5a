// When a rule would have raised an alarm in a step, from what the step's nodes measured.
//
// The rows that the head had are made anew, tick by tick: each node's derived series are made by
// DerivedSeries and the rows are looked at by Evaluator, as in a running step. A point beside the
// ticks, as of a node's last sample, makes no row. Of a counter a node that is not in a row has its
// last value, as in the head's rows. Which nodes a row lacked is taken
// from the points; kNodeMissing itself is not made anew.
//
// Takes time for each series at each tick; CheckReplay says whether that is too much.
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "series/alarm/rule.h"
#include "series/store/reduced.h"
#include "series/store/store.h"

namespace sonde::alarms {

struct ReplayNode {
  std::string host;
  uint32_t index = 0;  // of the node, in owners
  Nanos joined = 0;
  Nanos left = 0;                  // 0: it did not leave
  std::vector<SeriesData> series;  // of MetricsOf, without the tags host and job
};

// An alarm that would have been raised.
struct Replayed {
  Tags tags;
  std::string text;
  Nanos raised = 0;
  Nanos over = 0;    // 0: not until the end
  double value = 0;  // when it was raised
  Owner owner;
};

inline constexpr size_t kMaxReplayValues = 16u << 20;  // series times ticks
inline constexpr size_t kMaxReplayed = 1000;           // alarms; more are counted

struct Replay {
  std::vector<Replayed> alarms;  // in the order in which they were raised
  size_t raised = 0;             // how many, also beyond kMaxReplayed
  size_t rows = 0;               // ticks that were looked at
  Nanos first = 0;               // the first and the last of them
  Nanos last = 0;
};

// The metrics whose series are needed, each once.
std::vector<std::string> MetricsOf(const Rule& rule);
// kInvalid for a rule that cannot be tried.
Status CheckReplay(const Rule& rule);
// From `first` to `last`, of which the nodes have the points. For a rule with `absent` every tick
// counts at which a node was there, from the one on at which it joined; the head's first row may be
// some ticks later. For others those of the points are all that matter. kLimit if the nodes have
// too many series and ticks.
Result<Replay> ReplayRule(const Rule& rule, std::span<const ReplayNode> nodes, Nanos period,
                          Nanos first, Nanos last);

}  // namespace sonde::alarms
