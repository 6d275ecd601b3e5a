// Which names the head of a running step knows: those of its nodes' series, as after the step.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/head/answers/live_source.h"
#include "tests/unit/answering_nodes.h"

namespace sonde::head::head_names_test {
namespace {

// A question that no task of the range answers would else be an error: "no such name: task".
TEST(HeadNames, HaveTheTasksThoughTheHeadsSeriesAreReduced) {
  JobDescription job;
  job.id = {"7", "0"};
  job.start = 1'000'000 * kSecond;
  job.nodes.emplace_back().host = "n1";
  job.nodes.back().tasks = 2;
  job.expected_tasks = 2;
  StepRecord record(job);
  Series work;
  work.metric.name = "task_work_total";
  work.metric.type = MetricType::kCounter;
  std::vector<Reduced> row(1);
  row[0].Add(1, {0, 0});
  row[0].Add(2, {0, 1});
  record.Append(job.start + kSecond, row, {work});
  const LiveSource source(
      record, std::make_shared<AnsweringNodes>([](auto&&...) { FAIL() << "names are known here"; }),
      nullptr, [](const std::function<void()>& finish) { finish(); });
  std::optional<Result<web::SeriesNames>> names;
  source.Names([&](auto told) { names = std::move(told); });
  ASSERT_TRUE(names && names->ok());
  EXPECT_TRUE((*names)->metrics.contains("task_work_total"));
  EXPECT_TRUE((*names)->keys.contains("task"));
  EXPECT_TRUE((*names)->values.contains("0"));
  EXPECT_TRUE((*names)->values.contains("1"));
  EXPECT_FALSE((*names)->values.contains("2"));
}

// A million series take half a gigabyte of the head: it counts before it makes them.
TEST(HeadNames, MoreSeriesThanAreLookedThroughAreNotMade) {
  JobDescription job;
  job.id = {"7", "0"};
  constexpr size_t kNodes = 1100;
  job.nodes.resize(kNodes + 1);  // the last one's name is not known yet
  for (size_t i = 0; i < kNodes; ++i) job.nodes[i].host = "n" + std::to_string(i);
  StepRecord record(job);
  std::vector<Series> series(1000);
  for (size_t i = 0; i < series.size(); ++i) series[i].metric.name = "m" + std::to_string(i);
  record.Append(kSecond, std::vector<Reduced>(series.size()), series);
  const LiveSource source(record, std::make_shared<AnsweringNodes>([](auto&&...) {
                            FAIL() << "series are known here";
                          }),
                          nullptr, [](const std::function<void()>& finish) { finish(); });
  const auto list = [&](std::string_view metric, size_t limit) {
    std::optional<Result<std::vector<Series>>> told;
    source.ListSeries(metric, limit, [&](auto series_told) { told = std::move(series_told); });
    return *std::move(told);
  };
  EXPECT_EQ(list("", web::kMaxListed + 1).status().code(), Code::kLimit);
  const auto of_one = list("m7", web::kMaxListed + 1);
  ASSERT_TRUE(of_one.ok());
  EXPECT_EQ(of_one->size(), kNodes);
  const auto few = list("", 5);
  ASSERT_TRUE(few.ok()) << "so many can be had";
  EXPECT_EQ(few->size(), 5u);
}

}  // namespace
}  // namespace sonde::head::head_names_test
