#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/head/answers/questions.h"
#include "libclient/ask/answer.h"
#include "libclient/ask/layout.h"
#include "tests/unit/answering_nodes.h"
#include "tests/unit/task_wait.h"

namespace sonde::head {
namespace {

using client::AskKind;

constexpr Nanos kStart = 1'000'000 * kSecond;

Nanos At(int tick) { return kStart + tick * kSecond; }

struct Free {
  void operator()(void* memory) const { free(memory); }
};
using Values = std::unique_ptr<sonde_result_t, Free>;

// A head's record of two nodes, 0 and 1, and what it sends to them.
class Asked : public testing::Test {
 protected:
  Asked() {
    JobDescription job;
    job.start = kStart;
    job.id = {"7", "0"};
    job.nodes.resize(2);
    job.nodes[0].host = "n1";
    job.nodes[1].host = "n2";
    for (NodeInfo& node : job.nodes) node.joined = kStart - 1;
    record_ = std::make_unique<StepRecord>(job);
    record_->SetPresence({{kStart, 2, 2, 0, 0}});  // both are in all rows
    source_ = std::make_shared<LiveSource>(
        *record_,
        std::make_shared<AnsweringNodes>(
            [this](const QuerySpec& spec, const QueryGrid& grid, tree::QueryFanout::Done done) {
              loop_.Post([this, spec, grid, done = std::move(done)] {
                asked_nodes_.push_back(grid);
                if (answer_nodes_) done(AnswerOfTwo(spec, grid));
              });
            }),
        nullptr, [](const std::function<void()>& work) { work(); });
    questions_ =
        std::make_unique<Questions>(loop_, source_, *record_, kSecond,
                                    [this](uint32_t node, const tree::AnswerMessage& answer) {
                                      sent_.push_back({node, answer});
                                    });
    Series residual;
    residual.metric.name = "residual";
    residual.metric.unit = "1";
    series_.push_back(residual);
  }

  tree::Gathered AnswerOfTwo(const QuerySpec& spec, const QueryGrid& grid) const {
    tree::Gathered answer;
    answer.part = EmptyPart(spec);
    const auto other = others_.find(spec.metric);
    for (const auto& [host, points] : other == others_.end() ? points_ : other->second) {
      if (other == others_.end() && spec.metric != "residual") continue;
      SeriesData data;
      data.series.metric.name = spec.metric;
      data.series.tags = {{"host", host}};
      data.points = points;
      EXPECT_TRUE(MergePart(spec, grid, *EvaluatePart(spec, {data}, &grid), answer.part).ok());
      ++answer.nodes;
    }
    return answer;
  }
  void Append(int tick, double first, double second) {
    record_->Append(At(tick), Row({first, second}), series_);
    questions_->OnRow(At(tick), false);
  }
  static std::vector<Reduced> Row(const std::vector<double>& values) {
    std::vector<Reduced> row(1);
    for (uint32_t node = 0; node < values.size(); ++node) {
      row[0].Add(values[node], {node, Owner::kNobody});
    }
    return row;
  }

  static QuerySpec Spec(Aggregator aggregator, Nanos start, Nanos end) {
    QuerySpec spec;
    spec.metric = "residual";
    spec.aggregator = aggregator;
    spec.start = start;
    spec.end = end;
    return spec;
  }
  Status Ask(uint32_t node, uint64_t id, AskKind kind, const QuerySpec& spec) {
    std::string bytes;
    EncodeQuery(spec, bytes);
    return questions_->OnAsk(node, {id, static_cast<uint32_t>(kind), bytes});
  }
  void Subscribe(uint32_t node, uint64_t id, const QuerySpec& spec) {
    EXPECT_TRUE(Ask(node, id, AskKind::kSubscribe, spec).ok());
    EXPECT_EQ(KindOf(Next()), AskKind::kAccepted);
  }

  // The next message to a node, in order.
  std::pair<uint32_t, tree::AnswerMessage> Next() {
    Until([this] { return taken_ < sent_.size(); });
    return taken_ < sent_.size() ? sent_[taken_++] : sent_.emplace_back();
  }
  void Until(const std::function<bool()>& so) {
    bool in_time = true;
    const Loop::TimerId guard = loop_.After(10 * kSecond, [&] {
      in_time = false;
      loop_.Stop();
    });
    std::function<void()> look = [&] {
      so() ? loop_.Stop() : (void)loop_.After(kMillisecond, look);
    };
    loop_.Post(look);
    loop_.Run();
    loop_.Cancel(guard);
    ASSERT_TRUE(in_time);
  }
  static AskKind KindOf(const std::pair<uint32_t, tree::AnswerMessage>& sent) {
    return static_cast<AskKind>(sent.second.kind);
  }
  static Values ValuesOf(const std::pair<uint32_t, tree::AnswerMessage>& sent) {
    Values values(client::DecodeResult(sent.second.body));
    EXPECT_NE(values, nullptr);
    return values;
  }
  static std::vector<double> Numbers(const Values& values) {
    std::vector<double> numbers;
    for (size_t s = 0; values != nullptr && s < values->series_count; ++s) {
      const sonde_series_t& series = values->series[s];
      for (size_t p = 0; p < series.point_count; ++p) numbers.push_back(series.points[p].value);
    }
    return numbers;
  }

  Loop loop_;
  std::unique_ptr<StepRecord> record_;
  std::vector<Series> series_;
  std::shared_ptr<LiveSource> source_;
  bool answer_nodes_ = true;
  std::vector<QueryGrid> asked_nodes_;
  using Points = std::vector<std::pair<const char*, std::vector<Point>>>;  // by host
  Points points_ = {{"n1", {{At(5), 1}}}, {"n2", {{At(5), 2}}}};
  std::map<std::string, Points> others_;  // of other metrics
  std::vector<std::pair<uint32_t, tree::AnswerMessage>> sent_;
  size_t taken_ = 0;
  std::unique_ptr<Questions> questions_;
};

// What the head serves besides: every series is on every node.
TEST_F(Asked, NamesAreThoseOfTheSeriesOnAllNodes) {
  Append(0, 1, 2);
  web::SeriesNames names;
  const auto listed = WaitFor(*source_, &web::StepSeries::ListSeries, std::string(), size_t{100});
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->size(), 2u);
  for (const Series& one : *listed) names.Add(one);
  const auto found = WaitFor(*source_, &web::StepSeries::Names);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->metrics, names.metrics);
  EXPECT_EQ(found->keys, names.keys);
  EXPECT_EQ(found->values, names.values);
}

TEST_F(Asked, AQuestionGetsTheValuesOfTheTicksInItsRange) {
  for (int tick = 1; tick <= 5; ++tick) Append(tick, tick, 10 * tick);
  ASSERT_TRUE(Ask(1, 42, AskKind::kQuery, Spec(Aggregator::kSum, At(2) - 1, At(4) + 1)).ok());
  const auto sent = Next();
  EXPECT_EQ(sent.first, 1u);
  EXPECT_EQ(sent.second.id, 42u);
  ASSERT_EQ(KindOf(sent), AskKind::kAnswer);
  EXPECT_EQ(Numbers(ValuesOf(sent)), (std::vector<double>{22, 33, 44}));
  ASSERT_TRUE(Ask(0, 43, AskKind::kQuery, Spec(Aggregator::kMax, At(5), At(9))).ok());
  EXPECT_EQ(Numbers(ValuesOf(Next())), (std::vector<double>{50}));
  EXPECT_TRUE(asked_nodes_.empty()) << "the record has it";
}

TEST_F(Asked, ARateHasItsFirstPointFromBeforeTheRange) {
  for (int tick = 1; tick <= 5; ++tick) Append(tick, tick * tick, 0);
  QuerySpec spec = Spec(Aggregator::kSum, At(4), At(5));
  spec.rate = true;
  ASSERT_TRUE(Ask(0, 1, AskKind::kQuery, spec).ok());
  EXPECT_EQ(Numbers(ValuesOf(Next())), (std::vector<double>{7, 9}));
}

TEST_F(Asked, AQuestionByHostGoesToTheNodes) {
  Append(5, 1, 2);
  QuerySpec spec = Spec(Aggregator::kAvg, At(1), At(5));
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  ASSERT_TRUE(Ask(0, 1, AskKind::kQuery, spec).ok());
  const Values values = ValuesOf(Next());
  ASSERT_EQ(values->series_count, 2u);
  EXPECT_STREQ(sonde_series_tag(&values->series[1], "host"), "n2");
  EXPECT_EQ(Numbers(values), (std::vector<double>{1, 2}));
  EXPECT_EQ(values->nodes_answered, 2u);
}

// Questions of processes have a downsample, the web's need not.
TEST_F(Asked, TimesBesideTheTicksAreAskedForASecondTime) {
  points_ = {{"n1", {{At(1), 1}, {At(3), 3}}}, {"n2", {{At(1), 10}, {At(2) + 7, 40}, {At(3), 30}}}};
  QuerySpec spec = Spec(Aggregator::kMax, At(1), At(4));
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", false}};
  std::vector<QueryResult> results;
  source_->Query(spec, [&](Result<web::Answer> answer) {
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->nodes_answered, 2u);
    EXPECT_EQ(answer->nodes_expected, 2u);
    results = answer->results;
  });
  Until([&] { return !results.empty(); });
  EXPECT_THAT(results[0].points,
              testing::ElementsAre(Point{At(1), 10}, Point{At(2) + 7, 40}, Point{At(3), 30}));
  EXPECT_EQ(*results[0].tags.Find("job"), "7.0");
  EXPECT_THAT(results[0].aggregate_tags, testing::ElementsAre("host"));
  ASSERT_EQ(asked_nodes_.size(), 2u);
  EXPECT_TRUE(asked_nodes_[0].times.empty());
  EXPECT_THAT(asked_nodes_[1].times, testing::ElementsAre(At(2) + 7));
  // Every host by itself needs no times of others.
  spec.filters[0].group_by = true;
  results.clear();
  source_->Query(spec, [&](Result<web::Answer> answer) { results = answer->results; });
  Until([&] { return !results.empty(); });
  EXPECT_EQ(results.size(), 2u);
  EXPECT_EQ(asked_nodes_.size(), 3u);
}

TEST_F(Asked, ExplicitTagsCountTheJobAsOne) {
  QuerySpec spec = Spec(Aggregator::kSum, At(1), At(6));
  spec.explicit_tags = true;
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", false}};
  int answers = 0;
  const auto count_results = [&](size_t expected) {
    return [&answers, expected](const Result<web::Answer>& answer) {
      ASSERT_TRUE(answer.ok());
      EXPECT_EQ(answer->results.size(), expected);
      ++answers;
    };
  };
  source_->Query(spec, count_results(0));
  spec.filters.push_back({TagFilter::Type::kLiteralOr, "job", "7.0", false});
  source_->Query(spec, count_results(1));
  Until([&] { return answers == 2; });
}

TEST_F(Asked, AMetricThatIsNotThereIsNamed) {
  Append(1, 1, 2);
  QuerySpec spec = Spec(Aggregator::kSum, At(0), At(1));
  spec.metric = "resid";
  ASSERT_TRUE(Ask(0, 1, AskKind::kQuery, spec).ok());
  const auto sent = Next();
  EXPECT_EQ(KindOf(sent), AskKind::kFailed);
  EXPECT_EQ(sent.second.body[0], SONDE_NOT_FOUND);
  EXPECT_THAT(sent.second.body, testing::HasSubstr("no metric 'resid'"));
  // One that is there and has no value then is none of that.
  ASSERT_TRUE(Ask(0, 2, AskKind::kQuery, Spec(Aggregator::kSum, At(7), At(9))).ok());
  EXPECT_EQ(KindOf(Next()), AskKind::kAnswer);
}

// --- Names of Dragon's telemetry

class AskedByOtherNames : public Asked {
 protected:
  // Two nodes of 100 bytes, of which n1 has half and n2 has 10 at tick 1, 20 at tick 2 and so on.
  AskedByOtherNames() {
    series_.clear();
    for (const char* metric : {"node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"}) {
      Series one;
      one.metric.name = metric;
      one.metric.unit = "bytes";
      series_.push_back(one);
    }
    Points &free = others_[series_[0].metric.name], &total = others_[series_[1].metric.name];
    for (Points* points : {&free, &total}) *points = {{"n1", {}}, {"n2", {}}};
    for (int tick = 1; tick <= 5; ++tick) {
      free[0].second.push_back({At(tick), 50});
      free[1].second.push_back({At(tick), 10.0 * tick});
      for (auto& [host, points] : total) points.push_back({At(tick), 100});
    }
  }
  void Append(int tick) {
    std::vector<Reduced> row = Row({50, 10.0 * tick});
    row.push_back(Row({100, 100})[0]);
    record_->Append(At(tick), row, series_);
    questions_->OnRow(At(tick), false);
  }
  static QuerySpec UsedRam(Nanos start, Nanos end) {
    QuerySpec spec = Spec(Aggregator::kAvg, start, end);
    spec.metric = "used_RAM";
    return spec;
  }
};

TEST_F(AskedByOtherNames, TheyHaveTheValuesOfTheirMetrics) {
  for (int tick = 1; tick <= 5; ++tick) Append(tick);
  ASSERT_TRUE(Ask(0, 1, AskKind::kQuery, UsedRam(At(2), At(3))).ok());
  EXPECT_EQ(Numbers(ValuesOf(Next())), (std::vector<double>{65, 60}));
  QuerySpec by_host = UsedRam(At(2), At(3));
  by_host.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  ASSERT_TRUE(Ask(0, 2, AskKind::kQuery, by_host).ok());
  const Values values = ValuesOf(Next());
  ASSERT_EQ(values->series_count, 2u);
  EXPECT_STREQ(values->series[1].metric, "used_RAM");
  EXPECT_STREQ(sonde_series_tag(&values->series[1], "host"), "n2");
  EXPECT_EQ(Numbers(values), (std::vector<double>{50, 50, 80, 70}));
  EXPECT_EQ(values->nodes_answered, 2u);
}

TEST_F(AskedByOtherNames, ASubscriptionGetsThem) {
  Subscribe(0, 5, UsedRam(0, 1));
  for (int tick = 1; tick <= 2; ++tick) Append(tick);
  EXPECT_EQ(Numbers(ValuesOf(Next())), (std::vector<double>{70}));
  EXPECT_EQ(Numbers(ValuesOf(Next())), (std::vector<double>{65}));
}

TEST_F(AskedByOtherNames, TheyAreListedWhereTheirMetricsAre) {
  Append(1);
  for (const char* metric : {"used_RAM", "cpu_percent"}) {
    ASSERT_TRUE(questions_->OnAsk(0, {1, static_cast<uint32_t>(AskKind::kList), metric}).ok());
    const auto sent = Next();
    const std::unique_ptr<sonde_list_t, Free> list(client::DecodeList(sent.second.body));
    ASSERT_NE(list, nullptr);
    ASSERT_EQ(list->metric_count, std::string(metric) == "used_RAM" ? 1u : 0u);
    if (list->metric_count == 0) continue;
    EXPECT_STREQ(list->metrics[0].unit, "%");
  }
  QuerySpec spec = UsedRam(At(1), At(2));
  spec.metric = "cpu_percent";
  ASSERT_TRUE(Ask(0, 2, AskKind::kQuery, spec).ok());
  EXPECT_EQ(KindOf(Next()), AskKind::kFailed) << "what it is made of is not there";
  // It is there, and has no value then.
  ASSERT_TRUE(Ask(0, 3, AskKind::kQuery, UsedRam(At(7), At(9))).ok());
  EXPECT_EQ(KindOf(Next()), AskKind::kAnswer);
}

TEST_F(AskedByOtherNames, AMetricOfThatNameComesFirst) {
  series_[0].metric.name = "used_RAM";
  Append(1);
  ASSERT_TRUE(Ask(0, 1, AskKind::kQuery, UsedRam(At(1), At(2))).ok());
  EXPECT_EQ(Numbers(ValuesOf(Next())), (std::vector<double>{30}));
}

TEST_F(Asked, ListsWhatIsMeasured) {
  Append(1, 1, 2);
  for (const char* metric : {"", "residual", "other"}) {
    ASSERT_TRUE(questions_->OnAsk(0, {1, static_cast<uint32_t>(AskKind::kList), metric}).ok());
    const auto sent = Next();
    EXPECT_EQ(KindOf(sent), AskKind::kListing);
    const std::unique_ptr<sonde_list_t, Free> list(client::DecodeList(sent.second.body));
    ASSERT_NE(list, nullptr);
    EXPECT_EQ(list->metric_count, std::string(metric) == "other" ? 0u : 1u);
  }
}

TEST_F(Asked, ASubscriptionGetsEveryTickOnce) {
  Append(1, 1, 1);
  Subscribe(0, 5, Spec(Aggregator::kSum, 0, 1));
  Subscribe(1, 6, Spec(Aggregator::kSum, 0, 1));
  EXPECT_EQ(questions_->subscriptions(), 1u) << "equal ones are one";
  for (int tick = 2; tick <= 4; ++tick) Append(tick, tick, tick);
  for (int tick = 2; tick <= 4; ++tick) {
    for (const auto& [node, id] : {std::pair(0u, 5u), {1u, 6u}}) {
      const auto sent = Next();
      ASSERT_EQ(KindOf(sent), AskKind::kPoints);
      EXPECT_EQ(sent.first, node);
      EXPECT_EQ(sent.second.id, id);
      const Values values = ValuesOf(sent);
      EXPECT_EQ(Numbers(values), (std::vector<double>{2.0 * tick}));
      EXPECT_EQ(values->series[0].points[0].time_ns, At(tick));
      EXPECT_EQ(values->late, 0);
    }
  }
  EXPECT_EQ(taken_, sent_.size());
}

TEST_F(Asked, ALatePartIsSentAgainAndSaidSo) {
  Subscribe(0, 5, Spec(Aggregator::kSum, 0, 1));
  record_->Append(At(1), Row({3}), series_);
  questions_->OnRow(At(1), false);
  EXPECT_EQ(Numbers(ValuesOf(Next())), (std::vector<double>{3}));
  ASSERT_TRUE(record_->Amend(At(1), Row({4})));
  questions_->OnRow(At(1), true);
  const Values values = ValuesOf(Next());
  EXPECT_EQ(Numbers(values), (std::vector<double>{7}));
  EXPECT_EQ(values->late, 1);
}

TEST_F(Asked, TicksWithoutAValueAreNotSent) {
  Subscribe(0, 5, Spec(Aggregator::kSum, 0, 1));
  Append(1, std::nan(""), std::nan(""));
  Append(2, 1, 2);
  EXPECT_EQ(ValuesOf(Next())->series[0].points[0].time_ns, At(2));
}

TEST_F(Asked, CancelledAndGoneSubscribersGetNothingMore) {
  Subscribe(0, 5, Spec(Aggregator::kSum, 0, 1));
  Subscribe(0, 6, Spec(Aggregator::kMax, 0, 1));
  Subscribe(1, 7, Spec(Aggregator::kMax, 0, 1));
  ASSERT_TRUE(questions_->OnAsk(0, {5, static_cast<uint32_t>(AskKind::kCancel), ""}).ok());
  EXPECT_EQ(questions_->subscriptions(), 1u);
  questions_->OnGone(0);
  Append(1, 1, 2);
  const auto sent = Next();
  EXPECT_EQ(sent.first, 1u);
  EXPECT_EQ(sent.second.id, 7u);
  questions_->OnGone(1);
  EXPECT_EQ(questions_->subscriptions(), 0u);
}

TEST_F(Asked, TicksWaitForNodesThatAreSlow) {
  QuerySpec spec = Spec(Aggregator::kAvg, 0, 1);
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  answer_nodes_ = false;
  Subscribe(0, 5, spec);
  for (int tick = 1; tick <= 40; ++tick) Append(tick, 1, 2);
  Until([this] { return asked_nodes_.size() == 1; });
  EXPECT_EQ(sent_.size(), 1u) << "the acceptance alone";
}

TEST_F(Asked, WhatNoNodeSendsIsAFailure) {
  EXPECT_FALSE(questions_->OnAsk(0, {1, static_cast<uint32_t>(AskKind::kQuery), "x"}).ok());
  EXPECT_FALSE(questions_->OnAsk(0, {1, 99, ""}).ok());
}

TEST_F(Asked, AnswersThatComeAfterItsEndAreDropped) {
  Append(1, 1, 2);
  answer_nodes_ = true;
  QuerySpec spec = Spec(Aggregator::kAvg, At(1), At(5));
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  ASSERT_TRUE(Ask(0, 1, AskKind::kQuery, spec).ok());
  ASSERT_TRUE(Ask(0, 2, AskKind::kQuery, Spec(Aggregator::kSum, At(0), At(1))).ok());
  questions_.reset();
  loop_.Post([this] { loop_.Post([this] { loop_.Stop(); }); });
  loop_.Run();
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace sonde::head
