// Reads series of a step's nodes and ranks from its profile, as rows of ticks.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "insight/steps/tick_grid.h"
#include "insight/steps/watched.h"
#include "insight/stragglers.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

// One metric: the sum of its series for each rank or node, without the loopback device.
struct StepRows {
  struct Who {
    uint32_t rank = 0;  // by rank
    std::string host;
    size_t node = 0;  // index in the description
  };
  std::vector<Who> who;   // of each row; in the order of ranks or, by node, of nodes
  std::vector<Row> rows;  // as long as the grid
  // The row of that node (by node) or rank (by rank); rows.size() if there is none.
  size_t OfNode(size_t node) const;
  size_t OfRank(uint32_t rank) const;

 private:
  template <typename Id>
  size_t Find(Id Who::*id, Id wanted) const;
};

// What a counter had before its first value.
enum class BeforeFirst {
  kUnknown,
  kZeroATickAgo,     // it begins with its first event, as counters of MPI calls do
  kZeroAtItsJoining  // it was 0 when its node joined
};

struct AskedRows {
  WatchedSeries watched;
  RowsBy by = RowsBy::kRank;
  BeforeFirst before = BeforeFirst::kUnknown;  // of counters
};

inline constexpr size_t kMostPointsAtOnce = 16'000'000;

// For each of `asked`; without rows where the profile has nothing of it. `nodes` are indexes in the
// description; empty: all. The value "busy" of the tag mode stands for all modes in which a
// processor works for this machine. At most about `most_points` are held beside the rows: of a
// profile that has more the time is read piece by piece (read_pieces.h), and then each series needs
// two numbers for each tick besides.
Result<std::vector<StepRows>> ReadStepRows(const Archive& archive, const std::string& key,
                                           const JobDescription& job, const TickGrid& grid,
                                           std::span<const AskedRows> asked,
                                           const std::set<size_t>& nodes = {},
                                           size_t most_points = kMostPointsAtOnce);

}  // namespace sonde::insight
