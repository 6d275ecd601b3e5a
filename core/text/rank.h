// The rank of a process, by its environment.
//
// Header-only and free of dependencies, as names.h is: libsonde looks at the environment of its own
// process, the daemon at those of processes that tell no rank.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sonde {

// srun's variables, then those of launchers that may run inside its step, where each variable that
// they do not set is still srun's.
inline constexpr const char* kRankVariables[] = {"SLURM_PROCID", "PMIX_RANK",
                                                 "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
inline constexpr const char* kLocalRankVariables[] = {"SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK",
                                                      "MPI_LOCALRANKID"};

// -1 if the text is no rank.
constexpr int ParseRank(std::string_view text) {
  if (text.empty() || text.size() > 10) return -1;
  int64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return -1;
    value = 10 * value + (digit - '0');
  }
  return value <= INT32_MAX ? static_cast<int>(value) : -1;
}

// The launcher closest to the process counts: where mpirun or mpiexec starts its own processes
// inside a step, SLURM_PROCID is the rank of its helper and the same for all of a node. So the rank
// is the first number that differs from srun's; if none differs, all have the same number. -1 if
// there is none. `find` gives the text of a variable, "" if there is none.
template <size_t N, typename Find>
int InnermostRank(const char* const (&variables)[N], Find&& find) {
  const int outer = ParseRank(find(variables[0]));
  for (size_t i = 1; i < N; ++i) {
    const int inner = ParseRank(find(variables[i]));
    if (inner >= 0 && inner != outer) return inner;
  }
  return outer;
}

}  // namespace sonde
