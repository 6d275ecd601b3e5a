// What an update of an application's metric costs, and what reading them costs the daemon; beside
// prometheus-cpp where it is installed. Every figure is processor time, the best of many rounds.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/collect/job/app.h"
#include "sonde.h"
#ifdef HAVE_PROMETHEUS
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#endif

namespace {

constexpr int kRounds = 50;
constexpr int kUpdates = 1'000'000;

double ProcessorSeconds() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

double Seconds(const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    const double start = ProcessorSeconds();
    work();
    best = std::min(best, ProcessorSeconds() - start);
  }
  return best;
}

void Figure(const char* name, double value, const char* unit) {
  std::printf("figure client.%s %.3f %s\n", name, value, unit);
}

// The loop's own cost is in the figure. `update` is inlined into it.
template <typename Update>
void FigurePerUpdate(const char* name, Update update) {
  const double seconds = Seconds([&] {
    for (int i = 0; i < kUpdates; ++i) {
      update(i);
      asm volatile("" ::: "memory");
    }
  });
  Figure(name, seconds / kUpdates * 1e9, "ns");
}

// Per update of one of two threads that both add to one counter.
template <typename Update>
void FigureTwoThreads(const char* name, Update update) {
  const double seconds = Seconds([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kUpdates; ++i) {
          update(i);
          asm volatile("" ::: "memory");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  Figure(name, seconds / (2 * kUpdates) * 1e9, "ns");
}

long ResidentKiB() {
  long pages = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  std::fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

void MeasureUpdates() {
  sonde_metric_t* const gauge = sonde_gauge("bench_gauge", "1", "", 0, nullptr, 0);
  sonde_metric_t* const counter = sonde_counter("bench_total", "1", "", 0, nullptr, 0);
  sonde_metric_t* volatile none = nullptr;
  FigurePerUpdate("gauge_set", [gauge](int i) { sonde_set(gauge, i); });
  FigurePerUpdate("gauge_set_at", [gauge](int i) { sonde_set_at(gauge, i, i); });
  FigurePerUpdate("counter_add", [counter](int) { sonde_add(counter, 1); });
  FigurePerUpdate("counter_add_any_whole", [counter](int i) { sonde_add(counter, i); });
  FigurePerUpdate("counter_add_fraction", [counter](int) { sonde_add(counter, 0.5); });
  FigureTwoThreads("counter_add_two_threads", [counter](int) { sonde_add(counter, 1); });
  FigurePerUpdate("no_daemon_set", [&none](int i) { sonde_set(none, i); });
  FigurePerUpdate("no_daemon_add", [&none](int) { sonde_add(none, 1); });
}

void MeasurePeer() {
#ifdef HAVE_PROMETHEUS
  prometheus::Gauge gauge;
  prometheus::Counter counter;
  FigurePerUpdate("prometheus_cpp_gauge_set", [&gauge](int i) { gauge.Set(i); });
  FigurePerUpdate("prometheus_cpp_counter_add", [&counter](int) { counter.Increment(); });
  FigureTwoThreads("prometheus_cpp_counter_add_two_threads",
                   [&counter](int) { counter.Increment(); });
#endif
}

// Ten thousand metrics: memory of the application, and what a tick costs the daemon.
void MeasureMany(sonde::collect::AppSource& source) {
  constexpr int kMany = 10'000;
  const long before = ResidentKiB();
  const double start = ProcessorSeconds();
  for (int i = 0; i < kMany; ++i) {
    const std::string name = "application_metric_number_" + std::to_string(i);
    const sonde_tag_t tag = {"phase", "main"};
    const char* help = "Time spent in one phase of the application";
    if (i % 2 == 0) {
      sonde_set(sonde_gauge(name.c_str(), "seconds", help, 0, &tag, 1), i);
    } else {
      sonde_add(sonde_counter(name.c_str(), "seconds", help, 0, &tag, 1), i);
    }
  }
  Figure("register", (ProcessorSeconds() - start) / kMany * 1e9, "ns");
  Figure("memory_of_10000", static_cast<double>(ResidentKiB() - before), "KiB");
  source.Sample(1);
  sonde::Nanos now = 2;
  const double tick = Seconds([&] { source.Sample(now++); });
  Figure("daemon_tick_of_10000", tick * 1e6, "us");
}

}  // namespace

int main() {
  sonde::collect::AppSource::Options options;
  options.socket = "sonde-bench-" + std::to_string(getpid());
  options.uid = geteuid();
  auto source = sonde::collect::AppSource::Open(options);
  if (!source.ok()) {
    std::fprintf(stderr, "bench_client: %s\n", std::string(source.status().message()).c_str());
    return 1;
  }
  setenv("SONDE_SOCKET", options.socket.c_str(), 1);
  if (sonde_init() != SONDE_OK) {
    std::fprintf(stderr, "bench_client: %s\n", sonde_strerror(sonde_status()));
    return 1;
  }
  MeasureUpdates();
  MeasurePeer();
  MeasureMany(**source);
  return 0;
}
