// The names of Dragon's dashboard over a step of known numbers: two hosts, ten samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <functional>
#include <map>

#include "series/alias/aliases.h"
#include "web/router.h"

namespace sonde::web::web_opentsdb_aliases_test {
namespace {

namespace json = boost::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kStart = 1'800'000'000;
constexpr int kSamples = 10;

class Numbers : public DataSource {
 public:
  // A value for each second, from its number.
  void Add(std::string_view metric, const Tags& tags, const std::function<double(int)>& value) {
    SeriesData& data = series_.emplace_back();
    data.series.metric.name = metric;
    data.series.tags = tags;
    data.series.tags.Set("job", "1.0");
    for (int i = 0; i < kSamples; ++i) {
      data.points.push_back({(kStart + i) * kSecond, value(i)});
    }
  }

  void Jobs(size_t, JobsCallback callback) const override {
    callback(std::vector<JobDescription>{});
  }
  void GetProfile(const JobStep&, ProfileCallback callback) const override {
    callback(Status(Code::kNotFound, "none"));
  }
  void ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const override {
    std::vector<Series> list;
    for (const SeriesData& data : series_) {
      const bool named = metric.empty() || data.series.metric.name == metric;
      if (named && list.size() < limit) list.push_back(data.series);
    }
    callback(std::move(list));
  }
  void Query(const QuerySpec& spec, Callback callback) const override {
    asked_.push_back(spec);
    Result<std::vector<QueryResult>> results = Evaluate(spec, series_);
    if (!results.ok()) return callback(results.status());
    callback(Answer{*std::move(results), 2, 2});
  }

  std::vector<SeriesData> series_;
  mutable std::vector<QuerySpec> asked_;
};

class Aliases : public testing::Test {
 protected:
  Aliases() {
    // Available: n1 50 %, n2 from 10 % upwards by 1 % of another size.
    source_->Add("node_memory_MemTotal_bytes", {{"host", "n1"}}, [](int) { return 100; });
    source_->Add("node_memory_MemTotal_bytes", {{"host", "n2"}}, [](int) { return 1000; });
    source_->Add("node_memory_MemAvailable_bytes", {{"host", "n1"}}, [](int) { return 50; });
    source_->Add("node_memory_MemAvailable_bytes", {{"host", "n2"}},
                 [](int i) { return 100 + 10 * i; });
    for (const char* host : {"n1", "n2"}) {
      const int busy = host[1] == '1' ? 3 : 1;  // of 4 CPUs
      AddMode(host, "user", busy - 0.5);
      AddMode(host, "system", 0.5);
      AddMode(host, "iowait", 0.25);
      AddMode(host, "idle", 3.75 - busy);
    }
    source_->Add("node_load1", {{"host", "n1"}}, [](int i) { return i; });
    source_->Add("node_load1", {{"host", "n2"}}, [](int) { return 2; });
    for (int task = 0; task < 3; ++task) {
      source_->Add("task_processes",
                   {{"host", task < 2 ? "n1" : "n2"}, {"task", std::to_string(task)}},
                   [](int) { return 4; });
    }
  }
  void AddMode(const char* host, const char* mode, double rate) {
    source_->Add("node_cpu_seconds_total", {{"host", host}, {"mode", mode}},
                 [rate](int i) { return 100 + rate * i; });
  }
  void AddGpus() {
    for (const char* gpu : {"0", "1"}) {
      const Tags tags = {{"host", "n1"}, {"gpu", gpu}};
      source_->Add("gpu_utilization_ratio", tags, [](int) { return 0.25; });
      source_->Add("gpu_memory_used_bytes", tags, [&](int) { return gpu[0] == '0' ? 8 : 32; });
      source_->Add("gpu_memory_total_bytes", tags, [](int) { return 80; });
      source_->Add("gpu_power_watts", tags, [](int) { return 300; });
    }
  }

  Response Call(std::string_view target, std::string body) const {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok());
    if (!body.empty()) {
      request.method = Method::kPost;
      request.content_type = "application/json";
      request.body = std::move(body);
    }
    Response out;
    Dispatch(Context(*source_, &Clock::System(), nullptr), request,
             [&](Response response) { out = std::move(response); });
    return out;
  }
  Response Query(const std::string& query) const {
    return Call("/api/query", R"({"start":)" + std::to_string(kStart) + R"(,"end":)" +
                                  std::to_string(kStart + kSamples - 1) + R"(,"queries":[)" +
                                  query + "]}");
  }
  // The values of each result in the order of time, by the value of a tag.
  using Values = std::map<std::string, std::vector<double>>;
  Values Ask(const std::string& query, const char* tag = "host") const {
    const Response response = Query(query);
    EXPECT_EQ(response.status, 200) << response.body;
    Values out;
    const json::value results = json::parse(response.body);
    for (const json::value& result : results.as_array()) {
      const json::value* key = result.at("tags").as_object().if_contains(tag);
      std::vector<double>& values = out[key == nullptr ? "" : std::string(key->as_string())];
      for (const auto& point : result.at("dps").as_object()) {
        values.push_back(point.value().to_number<double>());
      }
    }
    return out;
  }

  std::shared_ptr<Numbers> source_ = std::make_shared<Numbers>();
};

testing::Matcher<const std::vector<double>&> All(size_t count, double value) {
  return testing::AllOf(testing::SizeIs(count), testing::Each(testing::DoubleNear(value, 1e-9)));
}

std::string Sum(const std::string& metric, const std::string& more = "") {
  return R"({"metric":")" + metric + R"(","aggregator":"sum")" + more + "}";
}
std::string ByHost(const std::string& metric, const std::string& more = "") {
  return R"({"metric":")" + metric + R"(","aggregator":"avg","tags":{"host":"*"})" + more + "}";
}

TEST_F(Aliases, ALoadHasItsOtherName) {
  const Values load = Ask(ByHost("load_average"));
  EXPECT_THAT(load.at("n1"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(load.at("n2"), All(10, 2));
  EXPECT_THAT(Query(ByHost("load_average")).body, HasSubstr(R"("metric":"load_average")"));
}

TEST_F(Aliases, UsedMemoryIsPercentOfEachHost) {
  const Values used = Ask(ByHost("used_RAM"));
  EXPECT_THAT(used.at("n1"), All(10, 50));
  EXPECT_THAT(used.at("n2"), ElementsAre(90, 89, 88, 87, 86, 85, 84, 83, 82, 81));
}

TEST_F(Aliases, PercentsAreAggregatedAndNotTheBytesBelow) {
  EXPECT_THAT(Ask(Sum("used_RAM")).at(""),
              ElementsAre(140, 139, 138, 137, 136, 135, 134, 133, 132, 131));
}

TEST_F(Aliases, DownsamplingIsOfThePercents) {
  const auto n2 = [&](const std::string& how) {
    return Ask(ByHost("used_RAM", R"(,"downsample":")" + how + R"(")")).at("n2");
  };
  EXPECT_THAT(n2("5s-avg"), ElementsAre(88, 83));
  EXPECT_THAT(n2("5s-max"), ElementsAre(90, 85));
  EXPECT_THAT(n2("5s-min"), ElementsAre(86, 81));
  EXPECT_THAT(n2("5s-count"), ElementsAre(5, 5));
  const auto whole = [&](const std::string& metric) {
    return Ask(ByHost(metric, R"(,"downsample":"0all-avg")"));
  };
  // The end is not in it, as with any metric.
  EXPECT_THAT(whole("node_load1").at("n1"), ElementsAre(4));
  EXPECT_THAT(whole("load_average").at("n1"), ElementsAre(4));
  EXPECT_THAT(whole("used_RAM").at("n2"), ElementsAre(86));
}

TEST_F(Aliases, NodesMakeTheMeansOfBuckets) {
  Ask(Sum("used_RAM", R"(,"downsample":"5s-avg-zero")"));
  ASSERT_EQ(source_->asked_.size(), 2u);
  for (const QuerySpec& spec : source_->asked_) {
    ASSERT_TRUE(spec.downsample);
    EXPECT_EQ(spec.downsample->interval, 5 * kSecond);
    // A filled bucket would be a value of its own.
    EXPECT_EQ(spec.downsample->fill, Downsample::Fill::kNone);
  }
}

TEST_F(Aliases, ProcessorsAreBusyInPercentOfAll) {
  const Values busy = Ask(ByHost("cpu_percent"));
  EXPECT_THAT(busy.at("n1"), All(9, 75));
  EXPECT_THAT(busy.at("n2"), All(9, 25));
  EXPECT_THAT(Ask(Sum("cpu_percent")).at(""), All(9, 100));
}

TEST_F(Aliases, ProcessesOfTheTasksAreCountedForEachHost) {
  const Values processes = Ask(ByHost("num_running_processes"));
  EXPECT_THAT(processes.at("n1"), All(10, 8));
  EXPECT_THAT(processes.at("n2"), All(10, 4));
}

TEST_F(Aliases, DevicesHaveTheirTagAndPercents) {
  AddGpus();
  const auto by_gpu = [&](const std::string& metric) {
    return Ask(R"({"metric":")" + metric + R"(","aggregator":"sum","tags":{"gpu":"*"}})", "gpu");
  };
  EXPECT_THAT(by_gpu("DeviceUtilization").at("1"), All(10, 25));
  EXPECT_THAT(by_gpu("DeviceMemoryUtilization").at("0"), All(10, 10));
  EXPECT_THAT(by_gpu("DeviceMemoryUtilization").at("1"), All(10, 40));
  EXPECT_THAT(by_gpu("DevicePowerUsage").at("0"), All(10, 300));
}

TEST_F(Aliases, SizesAreMegabytesAndCountsAreNotScaled) {
  source_->Add("sonde_db_bytes", {{"host", "n1"}}, [](int) { return 3 << 20; });
  EXPECT_THAT(Ask(ByHost("db_size")).at("n1"), All(10, 3));
  EXPECT_THAT(Ask(R"({"metric":"db_size","aggregator":"count"})").at("n1"), All(10, 1));
}

TEST_F(Aliases, WhatIsMissingOrZeroIsNotDividedBy) {
  source_ = std::make_shared<Numbers>();
  AddGpus();
  source_->series_.pop_back();  // power of GPU 1
  source_->series_.back().points.erase(source_->series_.back().points.begin() + 1);
  source_->series_.back().points[0].value = 0;  // memory of GPU 1
  const std::string query = R"({"metric":"DeviceMemoryUtilization","aggregator":"none"})";
  EXPECT_THAT(Ask(query, "gpu").at("1"), All(8, 40));
}

TEST_F(Aliases, AMetricOfThatNameGoesBefore) {
  source_->Add("cpu_percent", {{"host", "n1"}}, [](int) { return 7; });
  EXPECT_THAT(Ask(ByHost("cpu_percent")).at("n1"), All(10, 7));
  const json::value found = json::parse(Call("/api/search/lookup?m=cpu_percent&limit=0", "").body);
  EXPECT_EQ(found.at("totalResults"), 1);
}

TEST_F(Aliases, NamesWithoutAMetricDoNotExist) {
  for (const auto& [query, text] :
       {std::pair(ByHost("DeviceUtilization"), "No such name for 'metrics': 'DeviceUtilization'"),
        std::pair(std::string(R"({"metric":"cpu_percent","aggregator":"sum","tags":{"mod":"*"}})"),
                  "No such name for 'tagk': 'mod'")}) {
    const Response response = Query(query);
    EXPECT_EQ(response.status, 400);
    EXPECT_THAT(response.body, HasSubstr(text));
  }
  EXPECT_EQ(Call("/api/search/lookup?m=db_size", "").status, 404);
}

TEST_F(Aliases, QueriesOfBothKindsGoTogether) {
  const Response response =
      Query(ByHost("used_RAM") + "," + ByHost("node_load1") + "," + ByHost("cpu_percent"));
  const json::value results = json::parse(response.body);
  ASSERT_EQ(results.as_array().size(), 6u);
  EXPECT_EQ(results.at(0).at("metric"), "used_RAM");
  EXPECT_EQ(results.at(2).at("metric"), "node_load1");
  EXPECT_EQ(results.at(5).at("metric"), "cpu_percent");
  EXPECT_EQ(results.at(5).at("tags").at("host"), "n2");
}

// A panel as Dragon's dashboards send it.
std::string Panel(std::string_view metric, std::string_view filters) {
  return std::string(R"({"aggregator":"sum","metric":")").append(metric) + R"(","filters":[)" +
         std::string(filters) + "]}";
}
constexpr std::string_view kAllHosts =
    R"({"type":"wildcard","tagk":"host","filter":"*","groupBy":false})";
constexpr std::string_view kAllGpus =
    R"({"type":"wildcard","tagk":"gpu","filter":"*","groupBy":false})";

TEST_F(Aliases, APanelOfDragonsHasALineForEachHostAndGpu) {
  for (const char* metric : {"used_RAM", "cpu_percent", "load_average", "num_running_processes"}) {
    EXPECT_EQ(Ask(Panel(metric, kAllHosts)), Ask(ByHost(metric))) << metric;
    EXPECT_EQ(Ask(Panel(metric, kAllHosts)).size(), 2u) << metric;
  }
  AddGpus();
  for (const std::string& filters :
       {std::string(kAllHosts).append(",").append(kAllGpus), std::string(kAllGpus)}) {
    for (const char* metric : {"DeviceUtilization", "DeviceMemoryUtilization"}) {
      EXPECT_EQ(Ask(Panel(metric, filters), "gpu").size(), 2u) << metric << filters;
      EXPECT_EQ(Ask(Panel(metric, filters)).size(), 1u);  // of one host
    }
  }
}

TEST_F(Aliases, APanelForWhatIsNotThereIsEmpty) {
  for (const char* metric : {"DevicePowerUsage", "iteration_time"}) {
    // As Grafana's front end asks by Dragon's data source.
    const Response response =
        Call("/api/query", R"({"start":1,"showQuery":true,"globalAnnotations":true,"queries":[)" +
                               Panel(metric, kAllHosts) + "]}");
    EXPECT_EQ(response.status, 200) << metric;
    EXPECT_EQ(response.body, "[]") << metric;
    // OpenTSDB's own clients are told.
    EXPECT_EQ(Query(ByHost(metric)).status, 400) << metric;
    EXPECT_EQ(Query(Panel(metric, "")).status, 400) << metric;
  }
  EXPECT_EQ(Query(Panel("DevicePowerUsage", kAllHosts)).body, "[]");
  EXPECT_EQ(Query(Panel("iteration_time", kAllHosts)).status, 400);
}

TEST_F(Aliases, WhatAddDataRecordedIsShownAsThere) {
  for (const char* host : {"n1", "n2"}) {
    source_->Add("heat", {{"host", host}}, [](int i) { return i; });
  }
  // A metric of another origin is added up, as in OpenTSDB.
  EXPECT_EQ(json::parse(Query(Panel("heat", kAllHosts)).body).as_array().size(), 1u);
  for (SeriesData& data : source_->series_) {
    if (data.series.metric.name == "heat") data.series.metric.help = kHelpOfAddData;
  }
  EXPECT_EQ(Ask(Panel("heat", kAllHosts)).size(), 2u);
}

TEST_F(Aliases, SuggestWithoutATypeFindsPartsOfNamesAsDragonDoes) {
  EXPECT_THAT(json::parse(Call("/api/suggest?q=RAM", "").body).as_array(),
              ElementsAre(json::value("used_RAM")));
  EXPECT_EQ(Call("/api/suggest?type=metrics&q=RAM", "").body, "[]");
  EXPECT_THAT(json::parse(Call("/api/suggest", "").body).as_array(),
              Contains(json::value("load_average")));
}

TEST_F(Aliases, SuggestAndLookupListThem) {
  const auto names = [&] { return json::parse(Call("/api/suggest?type=metrics&q=", "").body); };
  EXPECT_THAT(names().as_array(), Contains(json::value("used_RAM")));
  EXPECT_THAT(names().as_array(), Contains(json::value("num_running_processes")));
  EXPECT_THAT(names().as_array(), Not(Contains(json::value("DevicePowerUsage"))));
  AddGpus();
  EXPECT_THAT(names().as_array(), Contains(json::value("DevicePowerUsage")));
  const json::value found =
      json::parse(Call("/api/search/lookup?m=num_running_processes&limit=0", "").body);
  // One for a host, without the tasks.
  EXPECT_EQ(found.at("totalResults"), 2);
  EXPECT_EQ(found.at("results").at(0).at("tags"), json::value({{"host", "n1"}, {"job", "1.0"}}));
}

}  // namespace
}  // namespace sonde::web::web_opentsdb_aliases_test
