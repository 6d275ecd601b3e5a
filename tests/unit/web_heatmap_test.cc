// Heatmaps: the reduction to tiles, and the endpoint over small steps whose every number is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <future>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "web/api/heat_tiles.h"
#include "web/api/time_grid.h"
#include "web/router.h"

namespace sonde::web::web_heatmap_test {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Nanos kStart = 1'799'999'000 * kSecond;

TEST(HeatTiles, AreOverTheirMembersAndTheirInterval) {
  HeatTiles tiles({4, 2, 2, kStart, 10 * kSecond});
  tiles.Add(0,
            std::vector<Point>{{kStart, 1}, {kStart + 9 * kSecond, 3}, {kStart + 10 * kSecond, 7}});
  tiles.Add(1, std::vector<Point>{{kStart + kSecond, 8}});
  tiles.Add(3, std::vector<Point>{{kStart + 19 * kSecond, -2}});
  const HeatTile& both = tiles.At(0, 0);
  EXPECT_EQ(both.Mean(), 4);
  EXPECT_EQ(both.min, 1);
  EXPECT_EQ(both.max, 8);
  EXPECT_EQ(both.min_at, 0u);
  EXPECT_EQ(both.max_at, 1u);
  EXPECT_EQ(both.values, 3u);
  EXPECT_EQ(both.members, 2u);
  EXPECT_EQ(tiles.At(0, 1).members, 1u);
  EXPECT_EQ(tiles.At(0, 1).Mean(), 7);
  EXPECT_EQ(tiles.At(1, 0).values, 0u) << "nothing was measured";
  EXPECT_EQ(tiles.At(1, 1).max, -2);
  EXPECT_EQ(tiles.At(1, 1).max_at, 3u);
}

TEST(HeatTiles, LeaveOutWhatIsNoNumberOrOutside) {
  HeatTiles tiles({1, 5, 2, kStart, kSecond});
  EXPECT_EQ(tiles.shape().rows, 1u) << "no more rows than members";
  tiles.Add(0,
            std::vector<Point>{{kStart - 1, 5}, {kStart, std::nan("")}, {kStart + 2 * kSecond, 5}});
  tiles.Add(1, std::vector<Point>{{kStart, 5}});
  EXPECT_EQ(tiles.At(0, 0).values, 0u);
  EXPECT_EQ(tiles.At(0, 1).values, 0u);
}

TEST(HeatTiles, GiveEachMemberOneRow) {
  for (const size_t members : {1, 2, 3, 7, 100, 1001}) {
    for (const size_t rows : {1, 2, 3, 7, 64}) {
      const HeatTiles tiles({members, rows, 1, kStart, kSecond});
      const size_t height = tiles.shape().rows;
      size_t next = 0;
      for (size_t row = 0; row < height; ++row) {
        ASSERT_EQ(tiles.FirstOf(row), next) << members << " in " << rows;
        const size_t count = tiles.CountOf(row);
        ASSERT_GE(count, members / height);
        ASSERT_LE(count, members / height + 1);
        for (size_t i = next; i < next + count; ++i) ASSERT_EQ(tiles.RowOf(i), row);
        next += count;
      }
      ASSERT_EQ(next, members);
    }
  }
}

TEST(HeatTiles, AreMadeOfValuesAsFineAsCanBePaidFor) {
  // 100 members, 10 columns of a minute.
  const auto at = [](size_t most) {
    return StepsOf(600 * kSecond, 10, kSecond, 100, most).resolution;
  };
  EXPECT_EQ(at(60'000), kSecond);
  EXPECT_EQ(at(59'999), 2 * kSecond);
  EXPECT_EQ(at(20'000), 5 * kSecond) << "dear metrics have a sample in 10 s";
  EXPECT_EQ(at(7'000), 10 * kSecond);
  EXPECT_EQ(at(1), 60 * kSecond);
}

// What a map shows may not depend on how the number of ticks can be divided.
TEST(HeatTiles, HaveStepsThatGrowEvenlyWithTheLengthOfTheStep) {
  for (const Nanos period : {kSecond / 10, kSecond, 3 * kSecond, 20 * kSecond}) {
    for (const auto& [columns, members, most] :
         {std::tuple<size_t, size_t, size_t>{240, 10'000, 1u << 20},
          {240, 10'000, 32u << 20},
          {1, 10'000, 1u << 20},
          {7, 3, 1u << 20}}) {
      for (Nanos ticks = 1; ticks <= 100'000; ++ticks) {
        const Nanos range = ticks * period;
        const HeatSteps steps = StepsOf(range, columns, period, members, most);
        SCOPED_TRACE(testing::Message() << ticks << " x " << period << " in " << columns);
        ASSERT_EQ(steps.resolution % period, 0);
        ASSERT_EQ(steps.interval % steps.resolution, 0);
        ASSERT_EQ(EvenInterval(steps.interval, period), steps.interval);
        ASSERT_LE(steps.resolution, steps.interval);
        const double share = static_cast<double>(range) / static_cast<double>(columns);
        const double wanted = std::max(share, static_cast<double>(period));
        ASSERT_GE(static_cast<double>(steps.interval), share);
        ASSERT_LE(static_cast<double>(steps.interval), 4 * wanted);
        const double paid =
            static_cast<double>(range) * static_cast<double>(members) / static_cast<double>(most);
        if (steps.resolution < steps.interval) {
          ASSERT_GE(static_cast<double>(steps.resolution), paid);
        }
        ASSERT_LE(static_cast<double>(steps.resolution),
                  std::max(5 * paid, static_cast<double>(period)) + static_cast<double>(period));
      }
    }
  }
}

class HeatStep final : public DataSource {
 public:
  Profile profile;
  std::vector<SeriesData> series;
  mutable std::vector<QuerySpec> asked;
  size_t most_series = SIZE_MAX;  // of more it says that they are too many

  void Jobs(size_t, JobsCallback callback) const override {
    callback(std::vector<JobDescription>{profile.job});
  }
  void GetProfile(const JobStep& id, ProfileCallback callback) const override {
    if (id == profile.job.id) return callback(profile);
    callback(Status(Code::kNotFound, "there is no step " + id.ToString()));
  }
  void ListSeries(std::string_view, size_t, SeriesCallback callback) const override {
    callback(std::vector<Series>());
  }
  void Query(const QuerySpec& spec, Callback callback) const override {
    asked.push_back(spec);
    Result<std::vector<QueryResult>> results = Evaluate(spec, series);
    if (results.ok() && results->size() > most_series) {
      return callback(Status(Code::kLimit, "too many series"));
    }
    const uint32_t nodes = profile.job.expected_nodes;
    callback(results.ok() ? Result<Answer>(Answer{*std::move(results), nodes - 1, nodes})
                          : results.status());
  }
};

class HeatmapTest : public testing::Test {
 protected:
  void Begin(const std::vector<std::string>& hosts, int seconds) {
    JobDescription& job = step_.profile.job;
    job.id = {"7", "0"};
    job.period = kSecond;
    job.start = kStart;
    job.end = kStart + seconds * kSecond;
    job.state = EndState::kCompleted;
    for (const std::string& host : hosts) job.nodes.emplace_back().host = host;
    job.expected_nodes = static_cast<uint32_t>(hosts.size());
    job.expected_tasks = job.expected_nodes;
  }
  // A series of the metric: `value` at each second of [from, to).
  template <typename F>
  void Add(const MetricDecl& decl, Tags tags, int from, int to, F&& value) {
    SeriesData data;
    data.series.metric = Metric(decl);
    data.series.tags = tags;
    data.series.tags.Set("job", "7.0");
    for (int t = from; t < to; ++t)
      data.points.push_back({kStart + t * kSecond, static_cast<double>(value(t))});
    FootprintEntry entry;
    entry.series.metric = data.series.metric;
    tags.Erase("host");
    if (tags.Find("task") != nullptr) entry.max_owner.rank = 0;
    tags.Erase("task");
    entry.series.tags = tags;
    entry.ticks = 1;
    bool known = false;
    for (const auto& one : step_.profile.footprint) known = known || one.series == entry.series;
    if (!known) step_.profile.footprint.push_back(entry);
    // A daemon started anew goes on with the same series.
    for (SeriesData& one : step_.series) {
      if (one.series != data.series) continue;
      one.points.insert(one.points.end(), data.points.begin(), data.points.end());
      return;
    }
    step_.series.push_back(std::move(data));
  }
  Response Ask(std::string_view more) const {
    Request request;
    const std::string target = "/api/v1/heatmap?job=7.0&" + std::string(more);
    EXPECT_TRUE(ParseTarget(target, request).ok());
    std::promise<Response> promise;
    Dispatch(Context(step_), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    return promise.get_future().get();
  }
  json::value Get(std::string_view more) const {
    const Response response = Ask(more);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  }
  static std::vector<double> Row(const json::value& map, const char* of, size_t row) {
    std::vector<double> values;
    for (const json::value& value : map.at(of).at(row).as_array()) {
      values.push_back(value.is_null() ? -1 : value.to_number<double>());
    }
    return values;
  }

  static constexpr MetricDecl kLoad = {
      "load", "1", MetricType::kGauge, 2, Reduction::kMean, "Load of the node. More of it."};
  static constexpr MetricDecl kBytes = {"got_bytes_total",    "bytes",
                                        MetricType::kCounter, 2,
                                        Reduction::kSum,      "Bytes received. Tag device."};
  HeatStep step_;
};

TEST_F(HeatmapTest, MissingIsMissingAndNotZero) {
  Begin({"n1", "n2", "n3"}, 40);
  Add(kLoad, {{"host", "n1"}}, 0, 40, [](int t) { return t < 10 ? 0.0 : t; });
  Add(kLoad, {{"host", "n2"}}, 0, 10, [](int) { return 4; });
  Add(kLoad, {{"host", "n2"}}, 30, 40, [](int) { return 6; });  // away for 20 s
  Add(kLoad, {{"host", "n3"}}, 25, 40, [](int) { return 8; });  // comes late
  const json::value map = Get("metric=load&columns=4");
  EXPECT_EQ(map.at("interval"), 10);
  EXPECT_EQ(map.at("resolution"), 1);
  EXPECT_EQ(map.at("title"), "Load of the node");
  EXPECT_EQ(map.at("columns"), 4);
  EXPECT_EQ(map.at("nodes_answered"), 2);
  EXPECT_THAT(Row(map, "mean", 0), ElementsAre(0, 14.5, 24.5, 34.5));
  EXPECT_THAT(Row(map, "min", 0), ElementsAre(0, 10, 20, 30));
  EXPECT_THAT(Row(map, "max", 0), ElementsAre(0, 19, 29, 39));
  EXPECT_THAT(Row(map, "mean", 1), ElementsAre(4, -1, -1, 6));
  EXPECT_THAT(Row(map, "mean", 2), ElementsAre(-1, -1, 8, 8));
  EXPECT_FALSE(map.as_object().contains("members")) << "a row has one";
}

// Of more samples than can be asked for, too.
TEST_F(HeatmapTest, ThePeakOfAGaugeIsThatOfItsSamplesHoweverLongTheStepWas) {
  constexpr int kPeak = 1234;
  for (const int seconds : {3600, 3590, 3607}) {
    step_.profile = {};
    step_.series.clear();
    std::vector<std::string> hosts;
    for (int i = 0; i < 10'000; ++i) hosts.push_back("n" + std::to_string(i));
    Begin(hosts, seconds);
    Add(kLoad, {{"host", "n7"}}, 0, seconds, [](int t) {
      return t == kPeak ? 90 : t == kPeak + 1 ? -4 : 2;
    });
    for (const char* columns : {"1", "60"}) {
      const json::value map = Get("metric=load&rows=1&columns=" + std::string(columns));
      ASSERT_GT(map.at("resolution").to_number<double>(), 1) << "each value is of several samples";
      const auto most = Row(map, "max", 0);
      const auto least = Row(map, "min", 0);
      EXPECT_EQ(*std::max_element(most.begin(), most.end()), 90) << seconds << " " << columns;
      EXPECT_EQ(*std::min_element(least.begin(), least.end()), -4) << seconds << " " << columns;
      EXPECT_EQ(Row(map, "max_at", 0)[0], 7);
      const double interval = map.at("interval").to_number<double>();
      const auto column = static_cast<size_t>(
          (static_cast<double>(kStart / kSecond + kPeak) - map.at("start").to_number<double>()) /
          interval);
      EXPECT_EQ(most[column], 90);
      const double mean = Row(map, "mean", 0)[column];
      EXPECT_GT(mean, 2);
      EXPECT_LT(mean, 8);
    }
    const json::value one = Get("metric=load&columns=1&first=7&count=1");
    EXPECT_EQ(one.at("resolution"), 1);
    EXPECT_NEAR(Row(one, "mean", 0)[0], 2 + (88.0 - 6) / seconds, 1e-4);
  }
}

TEST_F(HeatmapTest, RowsOfSeveralNodesSayOfHowManyTheyAre) {
  Begin({"n1", "n2", "n3"}, 20);
  for (int i = 1; i <= 3; ++i) {
    Add(kLoad, {{"host", "n" + std::to_string(i)}}, i == 3 ? 10 : 0, 20, [i](int) { return i; });
  }
  const json::value map = Get("metric=load&columns=2&rows=1");
  EXPECT_EQ(map.at("rows"), json::parse("[[0,3]]"));
  EXPECT_EQ(map.at("names"), json::parse(R"(["n1","n2","n3"])"));
  EXPECT_THAT(Row(map, "mean", 0), ElementsAre(1.5, 2));
  EXPECT_THAT(Row(map, "members", 0), ElementsAre(2, 3));
  EXPECT_THAT(Row(map, "min_at", 0), ElementsAre(0, 0));
  EXPECT_THAT(Row(map, "max_at", 0), ElementsAre(1, 2));
}

TEST_F(HeatmapTest, CountersAreRatesOfTheNodesSeriesTogether) {
  Begin({"n1", "n2"}, 40);
  for (const char* device : {"eth0", "ib0"}) {
    const double rate = device[0] == 'e' ? 5 : 100;
    Add(kBytes, {{"device", device}, {"host", "n1"}}, 0, 40, [rate](int t) { return rate * t; });
  }
  // Stands still while it is away, and counts what came meanwhile at its first sample.
  Add(kBytes, {{"device", "eth0"}, {"host", "n2"}}, 0, 10, [](int t) { return 7.0 * t; });
  Add(kBytes, {{"device", "eth0"}, {"host", "n2"}}, 30, 40, [](int t) { return 7.0 * t; });
  const json::value map = Get("metric=got_bytes_total&columns=4");
  EXPECT_EQ(map.at("rate"), true);
  EXPECT_THAT(Row(map, "mean", 0), ElementsAre(105, 105, 105, 105));
  EXPECT_THAT(Row(map, "mean", 1), ElementsAre(7, -1, -1, 7));
  const json::value one = Get("metric=got_bytes_total&columns=1&tags=device=eth0");
  EXPECT_THAT(Row(one, "mean", 0), ElementsAre(5));
  const json::value other =
      Get("metric=got_bytes_total&columns=1&tags=device=not_literal_or(eth0)");
  EXPECT_THAT(Row(other, "mean", 0), ElementsAre(100));
  EXPECT_THAT(Row(other, "mean", 1), ElementsAre(-1)) << "n2 has no such device";
}

TEST_F(HeatmapTest, ByTaskNamesRanksAndTheirHosts) {
  constexpr MetricDecl kMemory = {"rss_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum, ""};
  Begin({"n1", "n2"}, 10);
  step_.profile.job.expected_tasks = 4;
  for (int rank : {0, 1, 3}) {  // rank 2 was never seen
    Add(kMemory, {{"host", rank < 2 ? "n1" : "n2"}, {"task", std::to_string(rank)}}, 0, 10,
        [rank](int) { return 10 + rank; });
  }
  const json::value map = Get("metric=rss_bytes&by=task&columns=1");
  EXPECT_EQ(map.at("names"), json::parse(R"(["0","1","2","3"])"));
  EXPECT_EQ(map.at("task_hosts"), json::parse(R"(["n1","n1","","n2"])"));
  EXPECT_EQ(map.at("mean"), json::parse("[[10],[11],[null],[13]]"));
  const json::value one = Get("metric=rss_bytes&by=task&columns=1&first=3&count=1");
  EXPECT_EQ(one.at("all"), 4);
  EXPECT_EQ(one.at("first"), 3);
  EXPECT_EQ(one.at("task_hosts"), json::parse(R"(["n2"])"));
  EXPECT_EQ(one.at("mean"), json::parse("[[13]]"));
  EXPECT_EQ(Get("metric=rss_bytes&columns=1").at("mean"), json::parse("[[21],[13]]"));
}

TEST_F(HeatmapTest, ARangeIsOfItsOwnTimesAlone) {
  Begin({"n1"}, 100);
  Add(kLoad, {{"host", "n1"}}, 0, 100, [](int t) { return t; });
  const auto at = [](int t) { return std::to_string(kStart / kMillisecond + t * 1000); };
  const json::value map = Get("metric=load&columns=1&start=" + at(33) + "&end=" + at(44));
  EXPECT_EQ(map.at("columns"), 1);
  EXPECT_THAT(Row(map, "min", 0), ElementsAre(33));
  EXPECT_THAT(Row(map, "max", 0), ElementsAre(43));
}

TEST_F(HeatmapTest, AHostWhoseDaemonWasStartedAnewIsOneRow) {
  Begin({"n1", "n1", "n2"}, 10);
  Add(kLoad, {{"host", "n1"}}, 0, 10, [](int) { return 1; });
  Add(kLoad, {{"host", "n2"}}, 0, 10, [](int) { return 2; });
  const json::value map = Get("metric=load&columns=1");
  EXPECT_EQ(map.at("names"), json::parse(R"(["n1","n2"])"));
  EXPECT_EQ(map.at("mean"), json::parse("[[1],[2]]"));
}

// The memory is that of one answer.
TEST_F(HeatmapTest, NodesOfALargeStepAreAskedSomeAtATime) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 3000; ++i) hosts.push_back("n" + std::to_string(i));
  Begin(hosts, 3600);
  for (int i = 0; i < 3000; ++i) {
    Add(kLoad, {{"host", hosts[static_cast<size_t>(i)]}}, i % 100, i % 100 + 1,
        [i](int) { return i; });
  }
  const json::value map = Get("metric=load&columns=36&rows=30");
  EXPECT_GT(step_.asked.size(), 1u);
  for (const QuerySpec& spec : step_.asked) {
    EXPECT_LE((spec.end - spec.start) / spec.downsample->interval, 3600);
    ASSERT_FALSE(spec.filters.empty());
  }
  ASSERT_EQ(map.at("rows").as_array().size(), 30u);
  EXPECT_EQ(Row(map, "mean", 0)[0], 49.5);
  EXPECT_EQ(Row(map, "max_at", 29)[0], 2999);
  EXPECT_EQ(Row(map, "members", 29)[0], 100);
}

// Each question has the archive look at all nodes: as many as would be asked of a step with rows at
// each tick would cost the square of the nodes.
TEST_F(HeatmapTest, OfFewStoredRowsAllNodesAreAskedAtOnce) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 30'000; ++i) hosts.push_back("n" + std::to_string(i));
  Begin(hosts, 3600);
  for (const int i : {0, 15'000, 29'999}) {
    Add(kLoad, {{"host", hosts[static_cast<size_t>(i)]}}, 0, 1, [i](int) { return i; });
  }
  // Beside 399 other series of each node.
  for (int i = 0; i < 399; ++i) {
    step_.profile.footprint.emplace_back().series.metric.name = "other" + std::to_string(i);
  }
  step_.profile.cost.stored_bytes = 64 << 20;
  const json::value map = Get("metric=load&columns=1&rows=3");
  std::vector<Aggregator> kinds;
  for (const QuerySpec& spec : step_.asked) kinds.push_back(spec.downsample->function);
  EXPECT_THAT(kinds, ElementsAre(Aggregator::kAvg, Aggregator::kMin, Aggregator::kMax));
  EXPECT_THAT(Row(map, "max", 1), ElementsAre(15'000));
  EXPECT_THAT(Row(map, "max_at", 2), ElementsAre(29'999));
  // What names the nodes fits into a filter.
  step_.asked.clear();
  const json::value half = Get("metric=load&columns=1&rows=1&first=10000&count=20000");
  EXPECT_THAT(Row(half, "max_at", 0), ElementsAre(19'999));
  EXPECT_LE(step_.asked.size(), 6u);
  for (const QuerySpec& spec : step_.asked) {
    for (const TagFilter& filter : spec.filters) {
      EXPECT_LE(filter.pattern.size(), kMaxPatternLength);
    }
  }
  // A profile that does not say how large it is may have a row at each tick.
  step_.asked.clear();
  step_.profile.cost.stored_bytes = 0;
  Get("metric=load&columns=1&rows=3");
  EXPECT_GT(step_.asked.size(), 50u);
}

TEST_F(HeatmapTest, IfThereIsMoreThanWasThoughtItAsksForLess) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 3000; ++i) hosts.push_back("n" + std::to_string(i));
  Begin(hosts, 3600);
  for (int i = 0; i < 3000; ++i) {
    Add(kLoad, {{"host", hosts[static_cast<size_t>(i)]}}, i, i + 1, [i](int) { return i; });
  }
  step_.profile.cost.stored_bytes = 4000;
  step_.most_series = 2000;
  const json::value map = Get("metric=load&columns=1&rows=1");
  EXPECT_THAT(Row(map, "max_at", 0), ElementsAre(2999));
  EXPECT_THAT(Row(map, "mean", 0), ElementsAre(1499.5)) << "each node once";
  step_.most_series = 100;
  EXPECT_EQ(Ask("metric=load&columns=1&rows=1").status, 413);
}

TEST_F(HeatmapTest, WithinANodeARowIsOfATagsValue) {
  constexpr MetricDecl kCore = {"core_seconds_total", "seconds",        MetricType::kCounter, 4,
                                Reduction::kSum,      "Tags cpu, mode."};
  Begin({"n1", "n2"}, 20);
  for (const int cpu : {10, 9, 0}) {
    for (const std::string_view mode : {"idle", "system", "user"}) {
      const double share = mode == "idle" ? 0.5 : cpu * 0.01;
      const auto at = [share](int t) { return share * t; };
      Add(kCore, {{"cpu", std::to_string(cpu)}, {"mode", std::string(mode)}, {"host", "n1"}}, 0, 20,
          at);
    }
  }
  Add(kCore, {{"cpu", "11"}, {"mode", "user"}, {"host", "n2"}}, 0, 20, [](int t) { return t; });
  const json::value map =
      Get("metric=core_seconds_total&by=cpu&host=n1&columns=1&tags=mode=not_literal_or(idle)");
  EXPECT_EQ(map.at("by"), "cpu");
  EXPECT_EQ(map.at("host"), "n1");
  EXPECT_EQ(map.at("all"), 4);
  EXPECT_EQ(map.at("names"), json::parse(R"(["0","9","10","11"])"));
  EXPECT_EQ(map.at("mean"), json::parse("[[0],[0.18],[0.2],[null]]")) << "n1 has no CPU 11";
  EXPECT_FALSE(map.as_object().contains("task_hosts"));
  const json::value some =
      Get("metric=core_seconds_total&by=cpu&host=n1&columns=1&first=2&count=1");
  EXPECT_EQ(some.at("names"), json::parse(R"(["10"])"));
  EXPECT_EQ(some.at("mean"), json::parse("[[0.7]]")) << "of all modes";
  const json::value modes = Get("metric=core_seconds_total&by=mode&host=n2&columns=1");
  EXPECT_EQ(modes.at("names"), json::parse(R"(["idle","system","user"])"));
  EXPECT_EQ(modes.at("mean"), json::parse("[[null],[null],[1]]"));
}

TEST_F(HeatmapTest, SaysWhatIsWrongWithAQuestion) {
  Begin({"n1"}, 10);
  Add(kLoad, {{"host", "n1"}}, 0, 10, [](int) { return 1; });
  Add(kBytes, {{"device", "eth0"}, {"host", "n1"}}, 0, 10, [](int) { return 1; });
  for (const auto& [more, status, text] :
       {std::tuple("metric=lod", 404, "no metric 'lod'"),
        {"x=1", 400, "job and metric"},
        {"metric=load&by=rack", 400, "expected one of host, task, not 'rack'"},
        {"metric=got_bytes_total&by=cpu&host=n1", 400, "host, task, device, not 'cpu'"},
        {"metric=got_bytes_total&by=device", 400, "parameter host is missing"},
        {"metric=got_bytes_total&by=device&host=n9", 404, "no node 'n9'"},
        {"metric=got_bytes_total&by=device&host=n1&tags=device=eth0", 400, "first and count"},
        {"metric=load&by=host&host=n1", 400, "only with a tag"},
        {"metric=load&columns=0", 400, "columns"},
        {"metric=load&rows=99999", 400, "rows"},
        {"metric=load&tags=mode", 400, "expected key=value"},
        {"metric=load&tags=host=n1", 400, "first and count"},
        {"metric=load&tags=mode=regexp(()", 400, "mode"},
        {"metric=load&start=9&end=8", 400, "end must lie after start"}}) {
    const Response response = Ask(more);
    EXPECT_EQ(response.status, status) << more;
    EXPECT_THAT(response.body, HasSubstr(text)) << more;
  }
  EXPECT_EQ(Get("metric=load&first=5").at("rows"), json::array());
}

TEST_F(HeatmapTest, RefusesWhatIsTooMuch) {
  std::vector<std::string> hosts(20'000, "");
  for (size_t i = 0; i < hosts.size(); ++i) hosts[i] = "n" + std::to_string(i);
  Begin(hosts, 86'400);
  Add(kLoad, {{"host", "n1"}}, 0, 1, [](int) { return 1; });
  const Response much = Ask("metric=load&columns=10&rows=10");
  EXPECT_EQ(much.status, 413) << much.body;
  EXPECT_THAT(much.body, HasSubstr("shorter range"));
  EXPECT_EQ(Ask("metric=load&columns=100&rows=16384").status, 400);
  EXPECT_TRUE(step_.asked.empty());
  EXPECT_EQ(Ask("metric=load&columns=10&rows=10&count=100").status, 200);
}

TEST_F(HeatmapTest, TheOverviewSaysWhichMetricsTellNothing) {
  Begin({"n1"}, 10);
  Add(kLoad, {{"host", "n1"}}, 0, 10, [](int) { return 1; });
  Add(kBytes, {{"device", "eth0"}, {"host", "n1"}}, 0, 10, [](int) { return 0; });
  Add(kBytes, {{"device", "ib0"}, {"host", "n1"}}, 0, 10, [](int t) { return t; });
  step_.profile.footprint[0].min = step_.profile.footprint[0].max = 1;
  step_.profile.footprint[2].last = 9;
  Request request;
  step_.profile.job.name = "python3";
  step_.profile.job.command = "python3 -u /home/ada/train.py --epochs 3";
  ASSERT_TRUE(ParseTarget("/api/v1/overview?job=7.0", request).ok());
  std::promise<Response> promise;
  Dispatch(Context(step_), request,
           [&](Response response) { promise.set_value(std::move(response)); });
  const json::value overview = json::parse(promise.get_future().get().body);
  EXPECT_EQ(overview.at("title").as_string(), "train.py") << "nobody named it";
  const json::array& metrics = overview.at("metrics").as_array();
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics[0].at("title"), "Load of the node");
  EXPECT_EQ(metrics[0].at("still"), true);
  EXPECT_EQ(metrics[1].at("series"), 2);
  EXPECT_EQ(metrics[1].at("still"), false) << "one of its devices was used";
}

// /api/v1/series of one node, and of one task.
TEST_F(HeatmapTest, SeriesCanBeOfOneNodeAlone) {
  Begin({"n1", "n2"}, 10);
  Add(kLoad, {{"host", "n1"}}, 0, 10, [](int) { return 1; });
  Add(kLoad, {{"host", "n2"}}, 0, 10, [](int) { return 5; });
  const auto get = [&](const std::string& more, int status) {
    Request request;
    EXPECT_TRUE(ParseTarget("/api/v1/series?job=7.0&metric=load&points=10" + more, request).ok());
    std::promise<Response> promise;
    Dispatch(Context(step_), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    Response response = promise.get_future().get();
    EXPECT_EQ(response.status, status) << response.body;
    return json::parse(response.body);
  };
  EXPECT_EQ(get("", 200).at("series").at(0).at("value").at(0), 3);
  EXPECT_EQ(get("&host=n2", 200).at("series").at(0).at("value").at(0), 5);
  EXPECT_TRUE(get("&task=0", 200).at("series").as_array().empty());
  get("&host=n3", 404);
  get("&task=one", 400);
}

// Each refresh of each plot asks for it.
TEST_F(HeatmapTest, SeriesNamesTheHostsOfExtremesAlone) {
  std::vector<std::string> hosts;
  for (int i = 1; i <= 5000; ++i) hosts.push_back("n" + std::to_string(i));
  Begin(hosts, 10);
  for (const int i : {9, 5, 4000}) {
    Add(kLoad, {{"host", "n" + std::to_string(i)}}, 0, 10, [i](int) { return i; });
  }
  const auto get = [&](const std::string& more) {
    Request request;
    EXPECT_TRUE(ParseTarget("/api/v1/series?job=7.0&metric=load&points=10" + more, request).ok());
    std::promise<Response> promise;
    Dispatch(Context(step_), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    return json::parse(promise.get_future().get().body);
  };
  const json::value all = get("");
  EXPECT_EQ(all.at("series").at(0).at("max").at(0), 4000);
  EXPECT_EQ(all.at("series").at(0).at("max_host").at(0), -1) << "more than 4096 series";
  EXPECT_TRUE(all.at("hosts").as_array().empty());
  const json::value one = get("&host=n4000");
  EXPECT_EQ(one.at("hosts"), json::parse(R"(["n4000"])"));
  EXPECT_EQ(one.at("series").at(0).at("max_host").at(0), 0);
  step_.profile.job.nodes.resize(4096);
  step_.profile.job.expected_tasks = 1;
  const json::value known = get("");
  EXPECT_EQ(known.at("hosts"), json::parse(R"(["n5","n4000"])"));
  EXPECT_EQ(known.at("series").at(0).at("min_host").at(0), 0);
  EXPECT_EQ(known.at("series").at(0).at("max_host").at(0), 1);
}

}  // namespace
}  // namespace sonde::web::web_heatmap_test
