// What conclusions about a finished step, and a heatmap of it, cost a node in steps of different
// sizes. Steps last five hours; nodes have a row every five minutes, as those of large steps thin
// them. usage: bench_insight_steps [NODES...]
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>

#include "bench/growth.h"
#include "core/clocks.h"
#include "insight/steps/step_budget.h"
#include "insight/steps/step_energy.h"
#include "insight/steps/step_stragglers.h"
#include "profiles/archive/open_archive.h"
#include "profiles/records/keys.h"
#include "serve/archive_source.h"
#include "tests/unit/insight_step.h"
#include "tests/unit/temp_dir.h"
#include "web/router.h"

namespace {

using namespace sonde;

constexpr int kRows = 60, kSecondsApart = 300;
constexpr int kOwnCounters = 8;  // of the application
constexpr int kOthers = 60;      // series of the node that nobody asks for

// Rank 3 is slow.
StepOf Step(uint32_t nodes) {
  StepOf step(nodes, kRows, kSecondsApart);
  const auto varying = [](double value) {
    return [value](uint32_t rank, int row) {
      return value * (rank == 3 ? 0.5 : 1) * (1 + 0.02 * std::sin(rank * 7.0 + row * 1.3));
    };
  };
  step.Counter("task", "task_cpu_seconds_total", kUserTask, varying(0.95));
  step.Counter("task", "task_cpu_seconds_total", {{"mode", "system"}, {"task", "0"}},
               varying(0.01));
  for (int i = 0; i < kOwnCounters; ++i) {
    step.Counter("app", fmt::format("cells_{}_total", i), kTask, varying(100 + i));
  }
  step.Gauge("os", "node_load1", {}, varying(1.5));
  step.Counter("os", "node_cpu_seconds_total", {{"mode", "user"}}, varying(1));
  step.Counter("os", "node_cpu_seconds_total", {{"mode", "idle"}}, varying(3));
  step.Counter("os", "node_energy_joules_total", {{"domain", "package-0"}, {"source", "rapl"}},
               varying(100));
  for (int i = 0; i < kOthers; ++i) {
    step.Counter("os", fmt::format("node_vmstat_{}_total", i), {},
                 [i](uint32_t rank, int row) { return (rank + i * row) % 5 == 0 ? i : 0; });
  }
  return step;
}

// Of all threads.
double CpuMicroseconds() { return static_cast<double>(ReadClock(CLOCK_PROCESS_CPUTIME_ID)) / 1e3; }

template <typename Work>
void Told(const char* what, uint32_t nodes, Work work) {
  const double before = CpuMicroseconds();
  if (!work()) {
    fmt::print(stderr, "{} of {} nodes failed\n", what, nodes);
    std::exit(1);
  }
  fmt::print("figure {}_{} {:.1f} us\n", what, nodes, (CpuMicroseconds() - before) / nodes);
  std::fflush(stdout);
}

bool Ask(const web::DataSource& source, const std::string& target) {
  web::Request request;
  if (!web::ParseTarget(target, request).ok()) return false;
  std::promise<web::Response> promise;
  web::Dispatch(web::Context(source), request,
                [&](web::Response response) { promise.set_value(std::move(response)); });
  return promise.get_future().get().status == 200;
}

void Measure(uint32_t nodes) {
  const TempDir dir(TempDir::Memory());
  std::string key, id;
  {
    const StepOf step = Step(nodes);
    key = keys::ProfileKey(step.job);
    id = step.job.id.ToString();
    if (const Status stored = step.Store(dir.path()); !stored.ok()) {
      fmt::print(stderr, "{} nodes: {}\n", nodes, stored.message());
      std::exit(1);
    }
  }
  static_cast<void>(OpenArchive(dir.path()));  // takes the step in
  auto archive = OpenArchive(dir.path(), kSecond, nullptr, ArchiveUse::kReading);
  if (!archive.ok()) std::exit(1);
  const std::shared_ptr<const Archive> reader(std::move(archive->reader));
  const auto profile = reader->Load(key);
  if (!profile.ok()) std::exit(1);
  Told("stragglers", nodes, [&] {
    const auto found = insight::StragglersOf(*reader, key, *profile);
    return found.ok() && !found->metrics.empty() && !found->metrics[0].stragglers.empty();
  });
  Told("budget", nodes, [&] { return insight::BudgetOf(*reader, key, *profile).ok(); });
  const serve::ArchiveSource source(reader);
  const std::string heatmap = "/api/v1/heatmap?columns=300&rows=256&job=" + id + "&metric=";
  Told("heatmap", nodes, [&] { return Ask(source, heatmap + "task_cpu_seconds_total"); });
  Told("energy", nodes, [&] { return insight::EnergyOf(*reader, key, *profile, {}).ok(); });
}

}  // namespace

int main(int argc, char** argv) {
  for (const uint32_t nodes : growth::Sizes(argc, argv, 4, {500, 8'000})) Measure(nodes);
  return 0;
}
