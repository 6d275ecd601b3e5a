// What the hints of a step take: from the profile of 1,000 nodes, an hour at a sample every 10 s,
// to the hints, with reading the archive and the rules. usage: bench_hints [NODES]
#include "insight/hints/hints.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "insight/hints/step_facts.h"
#include "profiles/archive/node_rows.h"
#include "profiles/archive/open_archive.h"
#include "profiles/records/keys.h"
#include "tests/unit/insight_step.h"
#include "tests/unit/temp_dir.h"

namespace {

using namespace sonde;
using namespace sonde::insight;

double CpuMilliseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

template <typename F>
void Told(const char* name, const F& f) {
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const double before = CpuMilliseconds();
    f();
    times.push_back(CpuMilliseconds() - before);
  }
  std::sort(times.begin(), times.end());
  fmt::print("figure hints.{} {:.1f} ms\n", name, times[4]);
}

// Of a program that counts its calls of MPI; rank 3 is awaited.
StepOf Step(uint32_t nodes) {
  StepOf step(nodes, 360);
  const Tags task = {{"task", "0"}};
  const auto varying = [](double value) {
    return [value](uint32_t rank, int tick) {
      return value * (1 + 0.02 * std::sin(rank * 7.0 + tick * 1.3));
    };
  };
  step.Counter("task", "task_cpu_seconds_total", {{"mode", "user"}, {"task", "0"}}, varying(0.95));
  step.Counter("task", "task_cpu_seconds_total", {{"mode", "system"}, {"task", "0"}},
               varying(0.01));
  step.Gauge("task", "task_resident_memory_bytes", task, varying(2e9));
  step.Counter("mpi", "mpi_seconds_total", {{"class", "collective"}, {"task", "0"}},
               [](uint32_t rank, int tick) {
                 return (rank == 3 ? 0.02 : 0.45) * (1 + 0.02 * std::sin(tick * 1.1 + rank));
               });
  step.job.environment["SLURM_JOB_CPUS_PER_NODE"] = fmt::format("1(x{})", nodes);
  return step;
}

}  // namespace

int main(int argc, char** argv) {
  const auto nodes = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1000);
  const TempDir dir(TempDir::Memory());
  const StepOf step = Step(nodes);
  const Status stored = step.Store(dir.path());
  if (!stored.ok()) {
    fmt::print(stderr, "{}\n", stored.message());
    return 1;
  }
  static_cast<void>(OpenArchive(dir.path()));  // takes the step in
  const std::string key = keys::ProfileKey(step.job);
  size_t found = 0;
  Told("of_1000_nodes", [&] {
    const auto archive = OpenArchive(dir.path(), kSecond, nullptr, ArchiveUse::kReading);
    const auto profile = archive->reader->Load(key);
    const auto rules = LoadHintRules({});
    const auto nodes_read = ReadNodeRows(*archive->reader, key, profile->job);
    const auto facts = FactsOfStep(*archive->reader, key, *profile, *nodes_read, profile->job.end);
    found = FindHints(*rules, *facts).size();
  });
  Told("rules", [] { (void)LoadHintRules({}); });
  return found == 1 ? 0 : 1;
}
