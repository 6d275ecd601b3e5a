#include "daemon/own_cost.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace sonde {

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double OwnPrivateBytes() {
  std::FILE* statm = std::fopen("/proc/self/statm", "re");
  if (statm == nullptr) return std::nan("");
  unsigned long size = 0, resident = 0, shared = 0;
  const int got = std::fscanf(statm, "%lu %lu %lu", &size, &resident, &shared);
  std::fclose(statm);
  if (got != 3) return std::nan("");
  return static_cast<double>(resident - shared) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace sonde
