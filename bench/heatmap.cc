// What a heatmap takes the server: an archived step of 1,000 nodes and 1,000 s, a sample a second,
// from the request to the JSON. usage: bench_heatmap [NODES]
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <future>
#include <memory>
#include <vector>

#include "profiles/archive/open_archive.h"
#include "serve/archive_source.h"
#include "tests/unit/insight_step.h"
#include "tests/unit/temp_dir.h"
#include "web/router.h"

namespace {

using namespace sonde;

double CpuMilliseconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) * 1e-3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

web::Response Ask(const web::DataSource& source, const std::string& target) {
  web::Request request;
  if (!web::ParseTarget(target, request).ok()) std::abort();
  std::promise<web::Response> promise;
  web::Dispatch(web::Context(source), request,
                [&](web::Response response) { promise.set_value(std::move(response)); });
  return promise.get_future().get();
}

bool Told(const char* name, const web::DataSource& source, const std::string& target) {
  std::vector<double> times, cpu;
  size_t bytes = 0;
  for (int i = 0; i < 5; ++i) {
    const auto before = std::chrono::steady_clock::now();
    const double spent = CpuMilliseconds();
    const web::Response response = Ask(source, target);
    if (response.status != 200) {
      fmt::print(stderr, "{}: {}\n", target, response.body);
      return false;
    }
    bytes = response.body.size();
    cpu.push_back(CpuMilliseconds() - spent);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before)
            .count());
  }
  std::sort(times.begin(), times.end());
  std::sort(cpu.begin(), cpu.end());
  fmt::print("figure heatmap.{} {:.0f} ms\n", name, times[2]);
  fmt::print("figure heatmap.{}_cpu {:.0f} ms\n", name, cpu[2]);
  fmt::print("figure heatmap.{}_answer {:.2f} MB\n", name, static_cast<double>(bytes) * 1e-6);
  return true;
}

StepOf Step(uint32_t nodes) {
  StepOf step(nodes, 1000);
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [](uint32_t rank, int tick) {
    return 0.95 * (1 + 0.02 * std::sin(rank * 7.0 + tick * 1.3));
  });
  step.Gauge("load", "node_load1", {},
             [](uint32_t rank, int tick) { return 1.5 + 0.2 * std::sin(rank * 3.0 + tick * 0.1); });
  return step;
}

}  // namespace

int main(int argc, char** argv) {
  const auto nodes = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1000);
  const TempDir dir(TempDir::Memory());
  std::string id;
  {
    const StepOf step = Step(nodes);
    id = step.job.id.ToString();
    const Status stored = step.Store(dir.path());
    if (!stored.ok()) {
      fmt::print(stderr, "{}\n", stored.message());
      return 1;
    }
  }
  static_cast<void>(OpenArchive(dir.path()));  // takes the step in
  auto archive = OpenArchive(dir.path(), kSecond, nullptr, ArchiveUse::kReading);
  if (!archive.ok()) return 1;
  const serve::ArchiveSource source(std::shared_ptr<const Archive>(std::move(archive->reader)));
  const std::string target = "/api/v1/heatmap?job=" + id + "&columns=300&rows=420&metric=";
  const std::string table = "/api/v1/heatmap?job=" + id + "&columns=1&rows=16384&metric=";
  const bool good = Told("gauge", source, target + "node_load1") &&
                    Told("counter", source, target + "task_cpu_seconds_total") &&
                    Told("table", source, table + "task_cpu_seconds_total");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("figure heatmap.memory {:.0f} MB\n", static_cast<double>(usage.ru_maxrss) / 1024);
  return good ? 0 : 1;
}
