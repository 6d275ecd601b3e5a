// The time budget of one rank: for what the CPU time that it was allotted was spent.
//
// The whole of a tick is W = max(CPUs of the task, CPUs that it used), in CPU seconds per second.
// It is divided in this order, and no part is ever negative, so the parts add up to W:
//
//   m, w, i     time in MPI without MPI-IO; what of it waits; time in I/O. If m + i > W (more
//               threads than CPUs), all are scaled to W
//   I/O         i = max(calls for files, MPI-IO): MPI-IO's own calls for files are in both. Where
//               calls are not counted: min(1, blocked processes)
//   CPU in I/O  min(i, system time): a call is at most as long in the kernel as it takes
//   CPU in MPI  x, between what does not fit elsewhere and all of it:
//               max(0, c - (W - m - i)) <= x <= min(m, c), c = user + system - CPU in I/O.
//               Between the two x = p m, with the rank's own p (FindCpuInMpi)
//   computing   min(c - x, W - m - i): useful computation, as POP means it
//   waiting     w = time in functions that wait for others + time in other collectives above the
//               least of all ranks (LeastCollective): who comes last does not wait
//   moving      m - w
//   stolen      min(what is left, stolen)
//   GPU         min(what is left, share of the time in which a GPU was busy): the most that may
//               have been waiting for it
//   idle        what is left
//
// Load balance = mean / max of the ranks' computing, communication efficiency = max computing /
// time, parallel efficiency = their product = mean computing / time. (Performance Optimisation and
// Productivity centre, "POP Standard Metrics for Parallel Performance Analysis", pop-coe.eu;
// Wagner, Mohr, Giménez, Labarta, "A Structured Approach to Performance Analysis", Tools for High
// Performance Computing 2017, Springer 2019.) Communication efficiency there is all that the rank
// which computes most spent on other things, so I/O and idle time count as well.
//
// NaN is what is not known, never 0.
//
// Thread safety: values and functions without state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "insight/collective_waits.h"
#include "insight/stragglers.h"

namespace sonde::insight {

enum class Spent : uint8_t {
  kComputing,
  kMpiWaiting,
  kMpiMoving,
  kIo,
  kGpuWaiting,
  kStolen,
  kIdle,
};
inline constexpr size_t kSpentKinds = 7;
// "computing", "mpi_waiting", ...: for programs.
std::string_view KeyOf(Spent kind);
// "computing", "waiting in MPI", ...: for people.
std::string_view NameOf(Spent kind);

// Of one rank, a value for each tick. An empty row is not known at all.
struct RankRates {
  double cpus = 1;  // that the task was allotted
  Row user;         // CPUs used, and with them all else is known or not
  Row system;
  Row mpi;         // seconds of all threads in MPI per second
  Row wait;        // of it in functions that wait for others
  Row collective;  // of it in collectives that are not among those
  Row mpi_io;      // of it in MPI-IO
  Row io;          // seconds in calls for files per second
  Row blocked;     // processes that wait for I/O, of samples
  Row stolen;      // CPUs that it could have used and did not get, a lower bound
  Row gpu;         // share of the time in which its GPU was busy
};

// A call is counted when it returns, so a long one shows as a rate above 1 at its end. This moves
// what does not fit into a tick to the ticks before, for the least number of threads with which all
// of it fits. Before the first value of `mpi` and `io` there were no calls.
void SpreadCalls(RankRates& rates);
// The same of one row, of one thread.
void SpreadCalls(Row& rates);

// Whether the MPI library polls: how much CPU time goes with a second in MPI. Found from the ticks
// of which half or more was spent in MPI and in which the CPU time can hardly be elsewhere.
struct CpuInMpi {
  double share = 1;
  bool found = false;  // else it is assumed
  // A tenth of it or more, with the CPU time that it would have had if nothing was stolen. What
  // blocks uses some hundredths; what polls on a CPU that others use, its share of the CPU.
  bool polls = true;
  double unclear = 0;  // of the rank's CPU time: how much may be within MPI or not
};
CpuInMpi FindCpuInMpi(const RankRates& rates);

// The least time in collectives of all ranks, by windows of some ticks: over one tick it would
// depend on which side of the tick's end a call returns. It says how long the collectives take if
// nobody comes late; that holds only if all ranks take part in all of them.
class LeastCollective {
 public:
  explicit LeastCollective(size_t ticks);
  // Each rank whose MPI calls were counted.
  void Add(const RankRates& rates);
  // Of the rank's time in collectives at each tick the share that is waiting.
  Row WaitingOf(const RankRates& rates) const;

 private:
  std::vector<double> least_;  // by window; infinite: of no rank
};

// What the CPU time of one tick was spent for, in CPUs.
struct Spending {
  std::array<double, kSpentKinds> cpus{};  // NaN: not known, and so part of other kinds
  double whole = std::numeric_limits<double>::quiet_NaN();  // NaN: nothing is known of the tick
};
// For each tick. `collective_waiting`: of LeastCollective; empty: collectives count as moving.
std::vector<Spending> SpendingOf(const RankRates& rates, const CpuInMpi& in_mpi,
                                 const Row& collective_waiting = {});

// Over ticks and ranks.
class Budget {
 public:
  Budget() { seconds_.fill(std::numeric_limits<double>::quiet_NaN()); }
  void Add(const Spending& tick, double seconds);
  void Add(const Budget& other);
  double whole() const { return whole_; }  // CPU seconds
  double Seconds(Spent kind) const { return seconds_[static_cast<size_t>(kind)]; }
  // Those that are known add up to 1; all are NaN if nothing is known.
  double Share(Spent kind) const;

 private:
  std::array<double, kSpentKinds> seconds_{};  // CPU seconds
  double whole_ = 0;
};

// See above; NaN without a rank that computes.
struct Efficiency {
  double load_balance = std::numeric_limits<double>::quiet_NaN();
  double communication = std::numeric_limits<double>::quiet_NaN();
  double parallel = std::numeric_limits<double>::quiet_NaN();
};
// `computing`: each rank's share; NaNs are left out.
Efficiency EfficiencyOf(std::span<const double> computing);

}  // namespace sonde::insight
