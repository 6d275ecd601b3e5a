// ask.c in C++, by sonde_query.hpp: for test_query.py. Rank 0 of four; ask.c has set the values.
#include <cstdio>
#include <fstream>

#include "libclient/sonde_query.hpp"

namespace {

constexpr int kPatienceMs = 20000;

void Print(const char* name, const sonde::Answer& answer, const char* tag) {
  std::printf("%s nodes %u/%u:", name, answer.nodes_answered(), answer.nodes_expected());
  for (const sonde_series_t& series : answer) {
    std::printf(" %s=%g", sonde_series_tag(&series, tag), series.points[0].value);
  }
  std::printf("\n");
}

int Ask() {
  sonde::Query query(10000);
  if (!query.ok()) return std::printf("no query: %s\n", query.error().c_str());
  double there = 0;
  const uint64_t id =
      query.Subscribe(sonde::Question("ask_value").Aggregator("count"),
                      [&](const sonde_result_t& news) { there = news.series->points->value; });
  while (there < 4 && query.Poll(kPatienceMs) > 0) continue;
  query.Cancel(id);
  for (const sonde_metric_info_t& metric : query.List("ask_value")) {
    std::printf("metric %s in %s\n", metric.name, metric.unit);
  }
  const auto question =
      sonde::Question("ask_value").Aggregator("max").Downsample("0all-max").Last(60).ByHost();
  Print("by_host", query.Get(question), "host");
  int events = 0;
  query.Watch("ask_value{host!=n1} by host >= 40", [&](const sonde::Event& event) {
    std::printf("%s on %s: %g\n", event.is_true ? "true" : "over",
                sonde_series_tag(event.series, "host"), event.value);
    ++events;
  });
  while (events == 0 && query.Poll(kPatienceMs) > 0) continue;
  if (query.Watch("nonsense", [](const sonde::Event&) {}) == 0) {
    std::printf("%d %s\n", query.code(), query.error().c_str());
  }
  const sonde::Answer none = query.Get(sonde::Question("no_such_metric"));
  std::printf("%zu %d %s\n", none.size(), query.code(), query.error().c_str());
  return 0;
}

}  // namespace

int main(int, char** argv) {
  const int result = Ask();
  const std::ofstream done(argv[1]);
  return result;
}
