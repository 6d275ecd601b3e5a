// Which series of a step tell who falls behind, why, and what its phases are: the tables, in one
// place.
//
// Thread safety: constants.
#pragma once

#include <span>
#include <string_view>

namespace sonde::insight {

enum class RowsBy { kRank, kNode };

struct WatchedSeries {
  std::string_view metric;
  std::string_view name;  // for people
  std::string_view unit;  // of the value that is shown; of a counter, of its rate
  // Only series with this tag, if it is not "".
  std::string_view tag = "";
  std::string_view value = "";
  // 1: more of it makes slow, -1: less of it does, 0: either.
  int direction = 0;
  double least = 0;  // what is less than that away does not matter, in the unit
  double step = 0;   // a counter is read in whole multiples of it
};

// By which ranks are compared; where ranks are not known, nodes. What is missing in a step is left
// out; the application's own counters are compared, too. The first one is the main one.
std::span<const WatchedSeries> StragglerMetrics();

// What may be the reason. By node the straggler's node is compared with other nodes, by rank the
// straggler itself with other ranks.
std::span<const WatchedSeries> NodeSuspects();
std::span<const WatchedSeries> RankSuspects();

// The main series, in which phases show: those that each step has from level 2 on, and the time in
// MPI where that was asked for. At level 1 there are the application's own metrics only.
struct MainSeries {
  WatchedSeries series;
  std::string_view also = "";  // a second metric, added to the first
};
std::span<const MainSeries> PhaseSeries();

// Whether the name is one of Sonde's own metrics.
bool IsHouseMetric(std::string_view name);

}  // namespace sonde::insight
