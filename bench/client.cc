// What an update of a metric of an application and a moment cost, and what reading them costs the
// daemon; beside prometheus-cpp where it is installed. Every figure is processor time, the best of
// many rounds.
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

#include "daemon/collect/app/app.h"
#include "sonde.h"
#ifdef HAVE_PROMETHEUS
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
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
  FigurePerUpdate("gauge_set_past", [gauge](int i) { sonde_set_past(gauge, i, i); });
  FigurePerUpdate("counter_add", [counter](int) { sonde_add(counter, 1); });
  FigurePerUpdate("counter_add_any_whole", [counter](int i) { sonde_add(counter, i); });
  FigurePerUpdate("counter_add_fraction", [counter](int) { sonde_add(counter, 0.5); });
  FigureTwoThreads("counter_add_two_threads", [counter](int) { sonde_add(counter, 1); });
  FigurePerUpdate("no_daemon_set", [&none](int i) { sonde_set(none, i); });
  FigurePerUpdate("no_daemon_add", [&none](int) { sonde_add(none, 1); });
}

// Values over five powers of ten, as durations are.
std::vector<double> Durations() {
  std::vector<double> values(1024);
  double value = 1e-6;
  for (double& v : values) {
    v = value;
    value = value > 0.1 ? 1e-6 : value * 1.37;
  }
  return values;
}

void MeasureHistograms() {
  sonde_metric_t* const histogram = sonde_histogram("bench_seconds", "seconds", "", 0, nullptr, 0);
  sonde_metric_t* volatile none = nullptr;
  const std::vector<double> values = Durations();
  const auto observe = [&](int i) { sonde_observe(histogram, values[i & 1023]); };
  FigurePerUpdate("histogram_observe", observe);
  FigurePerUpdate("histogram_observe_one_value", [=](int) { sonde_observe(histogram, 0.5); });
  FigurePerUpdate("histogram_observe_zero", [=](int) { sonde_observe(histogram, 0); });
  FigureTwoThreads("histogram_observe_two_threads", observe);
  FigurePerUpdate("no_daemon_observe", [&](int i) { sonde_observe(none, i); });
}

void MeasureMoments() {
  FigurePerUpdate("annotate", [](int) { sonde_annotate("the mesh was refined"); });
  FigureTwoThreads("annotate_two_threads", [](int) { sonde_annotate("the mesh was refined"); });
  FigurePerUpdate("figure", [](int i) { sonde_figure("speed", i, "m/s"); });
  FigurePerUpdate("phase_begin_and_end", [](int) {
    sonde_phase_begin("solve");
    sonde_phase_end("solve");
  });
}

void MeasurePeer() {
#ifdef HAVE_PROMETHEUS
  prometheus::Histogram::BucketBoundaries bounds;
  for (double bound = 1e-6; bound < 1; bound *= 2) bounds.push_back(bound);
  prometheus::Histogram histogram(bounds);
  const std::vector<double> values = Durations();
  const auto observe = [&](int i) { histogram.Observe(values[i & 1023]); };
  FigurePerUpdate("prometheus_cpp_histogram_observe", observe);
  FigureTwoThreads("prometheus_cpp_histogram_observe_two_threads", observe);
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

// A hundred histograms in one thread: memory of the application, and what a tick costs the daemon
// where nothing and where something came to each.
void MeasureManyHistograms(sonde::collect::AppSource& source) {
  constexpr int kMany = 100;
  const std::vector<double> values = Durations();
  const long before = ResidentKiB();
  std::vector<sonde_metric_t*> all;
  for (int i = 0; i < kMany; ++i) {
    const std::string name = "application_histogram_number_" + std::to_string(i);
    all.push_back(sonde_histogram(name.c_str(), "seconds", "Time of a call", 0, nullptr, 0));
    sonde_observe(all.back(), 1);
  }
  Figure("memory_of_100_histograms", static_cast<double>(ResidentKiB() - before), "KiB");
  sonde::Nanos now = 1'000'000;
  const auto tick = [&] {
    source.Sample(now++);
    source.TakeMoments();
  };
  tick();
  tick();
  tick();
  Figure("daemon_tick_of_10000_and_100_idle_histograms", Seconds(tick) * 1e6, "us");
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    for (sonde_metric_t* histogram : all) {
      for (const double value : values) sonde_observe(histogram, value);
    }
    const double start = ProcessorSeconds();
    tick();
    best = std::min(best, ProcessorSeconds() - start);
  }
  Figure("daemon_tick_of_10000_and_100_busy_histograms", best * 1e6, "us");
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
  MeasureHistograms();
  MeasureMoments();
  MeasurePeer();
  MeasureMany(**source);
  MeasureManyHistograms(**source);
  return 0;
}
