// What the interposers add to a call: runs bench_interpose_calls by turns without them, with them,
// and with them where there is no telemetry; functions of the program once more with their times;
// and first calls of functions in a small program and in one with a million symbols. Figures are
// medians of nanoseconds of processor time.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/collect/app/app.h"

namespace {

constexpr int kRounds = 9;

using Series = std::map<std::string, std::vector<double>>;

void Run(const std::string& command, Series& series) {
  FILE* pipe = popen(("env " + command).c_str(), "re");
  if (pipe == nullptr) return;
  char name[64];
  double nanoseconds = 0;
  while (std::fscanf(pipe, "%63s %lf", name, &nanoseconds) == 2) {
    series[name].push_back(nanoseconds);
  }
  pclose(pipe);
}

double Median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  sonde::collect::AppSource::Options options;
  options.socket = "sonde-bench-" + std::to_string(getpid());
  options.uid = geteuid();
  auto source = sonde::collect::AppSource::Open(options);
  char directory[] = "/dev/shm/sonde-bench-XXXXXX";
  if (!source.ok() || mkdtemp(directory) == nullptr) {
    std::fprintf(stderr, "bench_interpose: no socket, or nothing can be written in /dev/shm\n");
    return 1;
  }
  const std::string preload =
      "LD_PRELOAD=" LIBSONDE ":" LIBSONDE_MPI ":" LIBSONDE_IO ":" LIBSONDE_FUNCTIONS;
  const std::string telemetry = " SONDE_LEVEL=4 SONDE_SOCKET=" + options.socket;
  const std::string calls = std::string(" " CALLS " ") + directory;
  Series bare, watched, idle, timed, first;
  for (int round = 0; round < kRounds; ++round) {
    Run(calls, bare);
    Run(preload + telemetry + calls, watched);
    Run(preload + calls, idle);
    Run(preload + telemetry + " SONDE_FUNCTION_SECONDS=1 " CALLS, timed);
    for (const char* program : {" " SMALL, " " LARGE}) Run(preload + telemetry + program, first);
    (*source)->Sample(round + 1);
  }
  rmdir(directory);
  for (auto& [name, values] : bare) {
    const double alone = Median(values);
    std::printf("figure interpose.%s %.1f ns_added\n", name.c_str(), Median(watched[name]) - alone);
    std::printf("figure interpose.%s_bare %.1f ns\n", name.c_str(), alone);
    std::printf("figure interpose.%s_without_telemetry %.1f ns_added\n", name.c_str(),
                Median(idle[name]) - alone);
  }
  for (auto& [name, values] : timed) {
    std::printf("figure interpose.%s_timed %.1f ns_added\n", name.c_str(),
                Median(values) - Median(bare[name]));
  }
  for (auto& [name, values] : first) {
    std::printf("figure interpose.first_call_%s %.0f ns\n", name.c_str(), Median(values));
  }
  return bare.empty() ? 1 : 0;
}
