// What a user of sonde.hpp writes, as a program for test_cxx.py: C++17 and nothing else.
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sonde.hpp"

static_assert(std::is_trivially_copyable<sonde::Gauge>::value, "handles are cheap to copy");
static_assert(sizeof(sonde::Counter) <= 16, "handles are small");

// Before main(), as a library might.
static const sonde::Gauge early("app_early");

static int failures = 0;

static void Expect(bool good, const char* what) {
  if (good) return;
  std::printf("%s: %s\n", what, sonde::Error());
  ++failures;
}

static void Metrics() {
  const std::string name = "app_gauge";
  const sonde::Gauge gauge(name, "seconds", "A gauge",
                           {{"part", std::to_string(3)}, {"kind", "a"}});
  Expect(gauge.status() == SONDE_OK && gauge, "gauge");
  gauge.Set(1);
  gauge.Add(0.5);
  sonde::Gauge none;
  none.Set(3);
  Expect(!none, "no gauge");
  none = gauge;
  none.Add(-0.25);

  const sonde::Gauge timed("app_timed");
  timed.SetAt(4, std::chrono::system_clock::now());
  early.Set(2);

  const sonde::Counter counter("app_total");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([counter] {
      for (int i = 0; i < 10000; ++i) counter.Add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  counter.Add(-1);
  sonde::Counter("app_total").Add(0.5);

  const sonde::Histogram histogram("app_values", "1", "Values");
  for (int i = 1; i <= 100; ++i) histogram.Observe(i);
}

static void Refused() {
  Expect(sonde::Gauge("1x").status() == SONDE_INVALID, "a name");
  Expect(std::strstr(sonde::Error(), "1x") != nullptr, "an error names what is wrong");
  Expect(sonde::Counter("app_gauge", "", "", {{"part", "3"}, {"kind", "a"}}).status() ==
             SONDE_CONFLICT,
         "a conflict");
  Expect(sonde::Gauge("app_x", "", "", {{"task", "1"}}).status() == SONDE_INVALID, "a tag");
  Expect(sonde::Gauge("app_x", "", "",
                      {{"a", "1"},
                       {"b", "1"},
                       {"c", "1"},
                       {"d", "1"},
                       {"e", "1"},
                       {"f", "1"},
                       {"g", "1"},
                       {"h", "1"},
                       {"i", "1"}})
                 .status() == SONDE_INVALID,
         "nine tags");
  Expect(sonde::Gauge("app_x", "", "", {}, 4).status() == SONDE_LEVEL, "a level");
  const sonde::ScopedPhase too_long(std::string(129, 'x'));
  Expect(too_long.status() == SONDE_INVALID, "a phase");
}

static void Moments() {
  const sonde::Counter seconds("app_seconds_total", "seconds");
  const sonde::Histogram times("app_times", "seconds");
  {
    const sonde::ScopedPhase phase(std::string("a ") + "phase");
    const sonde::ScopedTimer counted(seconds);
    sonde::ScopedTimer observed(times);
    sonde::ScopedTimer nothing{sonde::Histogram()};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    observed.Stop();
    observed.Stop();
    sonde::ScopedTimer dropped(times);
    dropped.Discard();
  }
  Expect(sonde::Annotate("a remark") == SONDE_OK, "a remark");
  Expect(sonde::Figure("app_speed", 2.5, "1") == SONDE_OK, "a figure");
}

int main(int argc, char** /*argv*/) {
  const bool watched = argc == 1;
  if ((sonde::Init() == SONDE_OK) != watched) return 2;
  if (!watched) {
    const sonde::Gauge gauge("app_gauge");
    const sonde::ScopedPhase phase("p");
    const sonde::ScopedTimer timer(sonde::Histogram("app_times"));
    gauge.Set(1);
    return gauge || gauge.status() != SONDE_OFF ? 3 : 0;
  }
  Metrics();
  Refused();
  Moments();
  sonde::Finalize();
  return failures == 0 ? 0 : 1;
}
