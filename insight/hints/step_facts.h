// Facts of a finished step that need its series: how its work is spread over time and ranks, and
// how its memory grew.
//
//   serial     Where MPI is not counted: a tick is serial if the median of the CPUs that are busy,
//              over five ticks around it, is 0.7 to 1.1; cpus_else is the mean of those with more.
//              Where it is: if one rank has work (a median of less than half of the tick in MPI)
//              and each other one that was looked at waits (0.8 or more). Sums over ranks would not
//              do: ranks that all wait for nine tenths of the time are not serial. Without values
//              in most ticks, or if no tick has more, nothing is known; nor if the mean of the CPUs
//              that are busy is no more than 1.1: a sample that comes late makes one tick too much
//              and the next too little, as if several had worked.
//   most       cpus_most: 95 of 100 ticks have no more CPUs busy.
//   growth     The tasks' memory in 24 equal parts of the time (10 or more, of two ticks each, if
//              there are fewer ticks) without the first and the last one, by their medians: Theil
//              and Sen's slope (Sen, "Estimates of the regression coefficient based on Kendall's
//              tau", JASA 63, 1968). It must still grow in the last third, with half of that slope
//              at least: memory that is filled once and then kept does not grow.
//   awaited    Of the rank with the least time in MPI, for which the others wait, beside the ranks
//   of
//              up to kMostBeside nodes. MPI libraries poll while they wait: with c CPU seconds and
//              m seconds in MPI per second a rank computes c (1 - m). Where the rank with the most
//              time in MPI has used no more CPU time than it was outside, they sleep: then it is c.
//                awaited_work    computing of the awaited rank / the median of the others - 1
//                awaited_excess  1 - mean of all / its computing: what balance would take off
//                awaited_cpu     computing / (1 - m), the share of the time outside of MPI in which
//                                it got a CPU / the median of that over the ranks: on a busy node
//                                all get less
//                awaited_io      its seconds in calls for files per second, or the share of samples
//                                in which a process of its was blocked, whichever is more
//                awaited_held    the greatest of: share of samples in which it was stopped, and
//                                what its node has more than the median of the nodes of CPU time
//                                taken by the host, of throttled time, of CPU pressure
//
// A call of MPI counts when it returns, so a long one shows as a rate above 1 at its end: what does
// not fit into a tick is put into the ticks before.
//
// The facts of the whole job are known when it is over: its batch script has ended, or its time
// limit has passed. They are of its steps that the archive has, kMostSteps at most.
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <string>

#include "core/status.h"
#include "insight/hints/facts.h"
#include "insight/stragglers.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"
#include "profiles/model/summary.h"

namespace sonde::insight {

inline constexpr size_t kMostBeside = 16;
inline constexpr size_t kMostSteps = 32;
inline constexpr size_t kMostHintTicks = 3600;

// With those of the profile (profile_facts.h). `nodes`: the rows of its nodes, or empty.
Result<Facts> FactsOfStep(const Archive& archive, const std::string& key, const Profile& profile,
                          const std::vector<NodeRow>& nodes, Nanos now);

// CPUs busy at each tick.
void AddCpuFacts(std::span<const double> cpus, Facts& facts);
// Seconds per second in MPI of single ranks, of `tasks` in all.
void AddSerialRanks(std::span<const Row> mpi, double tasks, Facts& facts);
// Resident bytes at ticks of `width` seconds.
void AddGrowthFacts(std::span<const double> memory, double width, Facts& facts);

}  // namespace sonde::insight
