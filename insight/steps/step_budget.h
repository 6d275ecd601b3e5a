// The time budget of a finished step (insight/budget.h): of the whole, of each phase, node and
// rank, with what each part is known from. step_rates.h says what is divided among the ranks of a
// node.
//
// Thread safety: functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "insight/budget.h"
#include "insight/steps/step_rows.h"
#include "insight/steps/tick_grid.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

struct RankBudget {
  StepRows::Who who;
  Budget budget;
  bool mpi = false;  // its MPI calls were counted
  CpuInMpi in_mpi;
  // For how long others waited for it in collectives, in rank seconds (insight/collective_waits.h);
  // NaN: not known.
  double awaited = std::numeric_limits<double>::quiet_NaN();
  // The same in receives that name whom they wait for; at least (docs/interpose.md). NaN: not
  // known, or nobody waited so for anybody.
  double awaited_in_receives = std::numeric_limits<double>::quiet_NaN();
};

struct NodeBudget {
  size_t node = 0;  // index in the description
  std::string host;
  size_t ranks = 0;
  Budget budget;
};

struct PhaseBudget {
  std::string name;  // as the application told it; "1", "2": found
  Nanos begin = 0;   // the first one of several intervals
  double seconds = 0;
  size_t intervals = 1;
  Budget budget;
  Efficiency efficiency;
};

enum class Certainty : uint8_t { kMeasured, kEstimated, kUnknown };
std::string_view ToString(Certainty certainty);

struct Source {
  Certainty certainty = Certainty::kUnknown;
  std::string text;  // what it is known from, or what to do to know it
};

struct StepBudget {
  TickGrid grid;
  double cpus = 1;         // of each task
  bool cpus_told = false;  // by Slurm; else 1 is assumed
  Budget whole;
  Efficiency efficiency;  // where MPI calls of all ranks were counted
  bool phases_told = false;
  std::vector<PhaseBudget> phases;  // by their first begin; empty: one or none
  std::vector<NodeBudget> nodes;    // by index
  size_t nodes_read = 0;            // of a large step some, spread over it
  std::vector<RankBudget> ranks;    // by rank
  size_t without_mpi = 0;           // ranks
  // All ranks took part in all collectives, as far as their numbers show.
  bool collectives_split = false;
  std::array<Source, kSpentKinds> sources;
};

inline constexpr size_t kMostBudgetTicks = 3600;
inline constexpr size_t kMostBudgetValues = 16'000'000;

// Ranks are read some at a time, all of a node together, so that no more than `most_values` numbers
// of ticks are held, if 60 ticks of each of a node's series are fewer; and kMostBudgetGroups times
// at most: of a larger step some nodes count, spread over it, and `nodes_read` says how many. So
// neither memory nor time grow with the step. Without ranks if the profile has no CPU time of
// tasks, which level 2 has.
inline constexpr size_t kMostBudgetGroups = 8;
Result<StepBudget> BudgetOf(const Archive& archive, const std::string& key, const Profile& profile,
                            size_t most_values = kMostBudgetValues);

std::string BudgetToJson(const StepBudget& all, const Profile& profile);

}  // namespace sonde::insight
