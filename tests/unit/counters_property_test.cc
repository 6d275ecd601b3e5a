// Whoever is asked what a step had counted by then says the same, whatever became of its nodes:
// docs/queries.md, "Counters". Steps by chance, each the same in every run.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <functional>
#include <future>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "forward/formats/table.h"
#include "profiles/archive/open_archive.h"
#include "profiles/report/report.h"
#include "serve/archive_source.h"
#include "tests/unit/counters_step.h"
#include "tests/unit/task_wait.h"
#include "web/router.h"

namespace sonde::counters_property_test {
namespace {

constexpr int kSteps = 100;
constexpr double kRounding = 1e-6;
// Rows that are thinned, and those that wait for a node, are so much behind or, on the line to the
// next one, ahead.
constexpr Nanos kBehind = 5 * kSecond;

class Counters : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    step_ = std::make_unique<CountersStep>(static_cast<uint64_t>(GetParam()) + 1);
    step_->Store(dir_.path());
    if (HasFatalFailure()) return;
    archive_ = OpenArchive(dir_.path())->reader;
    source_ = std::make_shared<serve::ArchiveSource>(*Archive::Open(dir_.path()));
    name_ = step_->job().id.ToString();
  }

  std::string Get(const std::string& path,
                  std::vector<std::pair<std::string, std::string>> params) {
    web::Request request;
    request.target = request.path = path;
    request.params = std::move(params);
    std::promise<web::Response> promise;
    web::Dispatch(web::Context(*source_), request,
                  [&](web::Response response) { promise.set_value(std::move(response)); });
    const web::Response response = promise.get_future().get();
    EXPECT_EQ(response.status, 200) << path << ": " << response.body;
    return response.body;
  }

  std::vector<Point> Ask(const std::string& m, Nanos start = kTestStart, Nanos end = 0) {
    if (end == 0) end = step_->end() + kSecond;
    const std::string body = Get("/api/query", {{"start", std::to_string(start / kMillisecond)},
                                                {"end", std::to_string(end / kMillisecond)},
                                                {"ms", "true"},
                                                {"arrays", "true"},
                                                {"m", m + ":" + kWork + "{job=" + name_ + "}"}});
    const boost::json::value answers = boost::json::parse(body);
    if (answers.as_array().empty()) return {};
    return Pairs(answers.at(0).at("dps"), kMillisecond);
  }

  static std::vector<Point> Pairs(const boost::json::value& pairs, Nanos unit) {
    std::vector<Point> points;
    for (const boost::json::value& pair : pairs.as_array()) {
      const double time = pair.at(0).to_number<double>() * static_cast<double>(unit);
      points.push_back({static_cast<Nanos>(std::llround(time)), pair.at(1).to_number<double>()});
    }
    return points;
  }

  // `beside`: a bucket's time is so much before, or a line so much after, what it is of.
  // `of_rows`: it is made from rows of the whole step, where nodes may not be told apart: it is
  // never too large, but may be too small while one is missing after another.
  void Check(const std::vector<Point>& points, const std::string& who, Nanos beside = 0,
             bool of_rows = false) {
    ASSERT_FALSE(points.empty()) << who;
    for (size_t i = 0; i < points.size(); ++i) {
      const auto [time, value] = points[i];
      if (i > 0) {
        ASSERT_GE(value, points[i - 1].value - kRounding) << who << " falls" << Told(points, i);
      }
      if (!of_rows || step_->told_apart()) {
        ASSERT_GE(value, step_->Counted(time - kBehind - beside) - kRounding)
            << who << Told(points, i);
      }
      ASSERT_LE(value, step_->Counted(time + kBehind + beside) + kRounding)
          << who << Told(points, i);
    }
  }
  void CheckTotal(const std::vector<Point>& points, const std::string& who, Nanos beside = 0) {
    Check(points, who, beside);
    if (HasFatalFailure()) return;
    ASSERT_DOUBLE_EQ(points.back().value, step_->total()) << who;
  }
  // What the rows of the whole step come to in the end, which is what all have counted.
  double TotalOfRows() {
    QuerySpec spec;
    spec.metric = kWork;
    spec.start = kTestStart;
    spec.end = step_->end() + kSecond;
    const auto entries = archive_->Find(step_->job().id);
    const auto rows = archive_->Read(
        entries->front().key, SeriesScope::kReduced,
        [&](const Series& series) { return ReducedNeeds(spec, series); }, 0, INT64_MAX);
    const auto results = EvaluateReduced(spec, *rows, entries->front().job.presence);
    if (!results.ok() || results->size() != 1) return std::nan("");
    const double total = results->front().points.back().value;
    EXPECT_DOUBLE_EQ(total, step_->total());
    return total;
  }
  // Of all nodes, none of which counts more.
  void CheckRates(const std::vector<Point>& points, double nodes, const std::string& who) {
    for (size_t i = 0; i < points.size(); ++i) {
      ASSERT_GE(points[i].value, -kRounding) << who << Told(points, i);
      ASSERT_LE(points[i].value, kMostPerTick * nodes + kRounding) << who << Told(points, i);
    }
  }
  static std::string Told(const std::vector<Point>& points, size_t at) {
    std::ostringstream text;
    for (size_t i = at < 3 ? 0 : at - 3; i < std::min(points.size(), at + 3); ++i) {
      text << (i == at ? " *" : " ") << static_cast<double>(points[i].time - kTestStart) / kSecond
           << ":" << points[i].value;
    }
    return text.str();
  }

  TempDir dir_{TempDir::Memory()};
  std::unique_ptr<CountersStep> step_;
  std::shared_ptr<const Archive> archive_;
  std::shared_ptr<serve::ArchiveSource> source_;
  std::string name_;
};

TEST_P(Counters, OpenTsdb) {
  const double nodes = static_cast<double>(step_->job().nodes.size());
  for (const char* aggregator : {"sum", "zimsum", "pfsum"}) {
    CheckTotal(Ask(aggregator), aggregator);
    if (HasFatalFailure()) return;
  }
  for (const auto& [by, interval] : {std::pair("1s-last", 1), {"4s-max", 4}, {"7s-avg", 7}}) {
    const std::string m = "sum:" + std::string(by);
    // Of a node that has ended the mean of its last bucket stays.
    const bool mean = std::string(by).ends_with("avg");
    const Nanos beside = mean ? step_->end() - kTestStart : interval * kSecond;
    const std::vector<Point> points = Ask(m);
    mean ? Check(points, m, beside) : CheckTotal(points, m, beside);
    if (HasFatalFailure()) return;
    CheckRates(Ask("sum:rate:" + std::string(by)), nodes, m + " rate");
    if (HasFatalFailure()) return;
  }
  CheckRates(Ask("sum:rate"), nodes, "rate");
}

TEST_P(Counters, OfAnyRange) {
  for (int part = 1; part < 4; ++part) {
    const Nanos start = kTestStart + (step_->end() - kTestStart) * part / 4;
    const std::vector<Point> points = Ask("sum", start);
    if (points.empty()) continue;
    CheckTotal(points, "sum from " + std::to_string(part));
    if (HasFatalFailure()) return;
  }
}

TEST_P(Counters, Traces) {
  for (const char* most : {"10000", "5"}) {
    const auto plot = [&](const char* derivate) {
      return Pairs(
          boost::json::parse(
              Get("/trace/plot",
                  {{"jobid", name_}, {"filter", kWork}, {"points", most}, {"derivate", derivate}})),
          kSecond);
    };
    const Nanos beside = *most == '5' ? (step_->end() - kTestStart) / 3 : kMillisecond;
    CheckTotal(plot("false"), std::string("/trace/plot of ") + most, beside);
    if (HasFatalFailure()) return;
    CheckRates(plot("true"), static_cast<double>(step_->job().nodes.size()), "its derivative");
    if (HasFatalFailure()) return;
  }
  const boost::json::value all = boost::json::parse(Get("/trace/json", {{"jobid", name_}}));
  std::vector<Point> line = Pairs(all.at("metrics").at(kWork), kSecond);
  ASSERT_FALSE(line.empty());
  ASSERT_DOUBLE_EQ(line.back().value, step_->total());
}

// What the page draws.
TEST_P(Counters, Series) {
  for (const char* most : {"300", "7"}) {
    const boost::json::value answer = boost::json::parse(
        Get("/api/v1/series", {{"job", name_}, {"metric", kWork}, {"points", most}}));
    for (const boost::json::value& line : answer.at("series").as_array()) {
      const auto& values = line.at("value").as_array();
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_GE(line.at("min").at(i).to_number<double>(), -kRounding);
        ASSERT_LE(line.at("max").at(i).to_number<double>(), kMostPerTick + kRounding)
            << most << " points, the one at " << i;
      }
    }
  }
}

TEST_P(Counters, PrometheusProfileAndReport) {
  const std::string text = Get("/metrics", {{"job", name_}});
  const std::string sample = std::string("\n") + kWork + "{job=\"" + name_ + "\"} ";
  const size_t at = text.find(sample);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_DOUBLE_EQ(std::stod(text.substr(at + sample.size())), TotalOfRows());
  const boost::json::value profile = boost::json::parse(Get("/api/v1/profile", {{"job", name_}}));
  int found = 0;
  for (const boost::json::value& entry : profile.at("footprint").as_array()) {
    if (entry.at("metric") != kWork) continue;
    EXPECT_DOUBLE_EQ(entry.at("last").to_number<double>(), TotalOfRows());
    ++found;
  }
  EXPECT_EQ(found, 1);
  const Result<Profile> stored = WaitFor(*source_, &web::StepHistory::GetProfile, step_->job().id);
  ASSERT_TRUE(stored.ok());
  const std::string report = RenderReport(*stored, {});
  const std::string total = std::to_string(static_cast<int64_t>(TotalOfRows()));
  EXPECT_NE(report.find(" " + total + " "), std::string::npos) << total << " in " << report;
}

TEST_P(Counters, Export) {
  const auto destination = *forward::ParseDestination("x.csv scope=job");
  std::string text;
  const auto sink = forward::MakeTableSink(destination.protocol, [&](std::string_view piece) {
    text += piece;
    return Status();
  });
  const auto entries = archive_->Find(step_->job().id);
  ASSERT_TRUE(entries.ok() && entries->size() == 1);
  ASSERT_TRUE(forward::WriteTable(*archive_, entries->front(), destination, *sink).ok());
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  size_t column = 0;
  std::istringstream names(line);
  for (std::string name; std::getline(names, name, ',') && name != kWork;) ++column;
  std::vector<Point> points;
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::string cell;
    std::string first;
    std::getline(cells, first, ',');
    for (size_t i = 0; i < column; ++i) std::getline(cells, cell, ',');
    const Nanos time = std::stoll(first);
    if (!cell.empty()) points.push_back({time, std::stod(cell)});
  }
  Check(points, "sonde export", 0, /*of_rows=*/true);
  if (HasFatalFailure()) return;
  ASSERT_DOUBLE_EQ(points.back().value, TotalOfRows()) << "sonde export";
}

// The rows of the running step, whenever somebody looked.
TEST_P(Counters, Live) {
  for (const SeriesData& now : step_->seen()) {
    if (now.points.empty()) continue;
    Check(now.points, "the running step", 0, /*of_rows=*/true);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, Counters, testing::Range(0, kSteps));

}  // namespace
}  // namespace sonde::counters_property_test
