// Steps that run as `sonde serve` shows them: what it asks of their heads, and what comes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>

#include "profiles/live/live_archive.h"
#include "serve/head_client.h"
#include "serve/running_heads.h"
#include "tests/unit/cli_serve_fixture.h"
#include "tests/unit/task_wait.h"
#include "tests/unit/web_fake_source.h"
#include "web/router.h"
#include "web/server/server.h"
#include "web/source/running_step.h"

namespace sonde::cli::cli_running_steps_test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const JobStep kStep{"4712", "0"};

// A step that runs: in live/, with a head that serves the steps of the web's tests.
class RunningStep : public ServeTest {
 protected:
  // A head that takes what is pushed, and knows a tree.
  class Head final : public web::FakeSource {
   public:
    using FakeSource::FakeSource;
    Status Push(const JobStep&, const web::PushedValue& value) const override {
      pushed = value.series.metric.name;
      return {};
    }
    void Tree(const JobStep&, TreeCallback callback) const override {
      callback(std::vector<web::TreeEdge>{{"login1:head", "n1"}, {"n1", "n2"}});
    }
    void Join(const JobStep&, const web::ScrapeTarget&, const std::string&,
              JoinCallback callback) const override {
      joining = std::move(callback);
    }
    void Query(const QuerySpec& spec, Callback callback) const override {
      {
        const std::lock_guard lock(mutex);
        asked.push_back(spec);
      }
      if (before_answer) before_answer();
      if (!refusal.ok()) return callback(refusal);
      FakeSource::Query(spec, [this, callback = std::move(callback)](Result<web::Answer> answer) {
        if (answer.ok()) answer->nodes_answered -= absent;
        callback(std::move(answer));
      });
    }
    void QueryForPart(const QuerySpec& spec, const QueryGrid& grid,
                      PartCallback callback) const override {
      {
        const std::lock_guard lock(mutex);
        grids.push_back(grid);
      }
      if (!part_refusal.ok()) return callback(part_refusal);
      FakeSource::QueryForPart(spec, grid, std::move(callback));
    }
    void Jobs(size_t limit, JobsCallback callback) const override {
      ++listed;
      FakeSource::Jobs(limit, std::move(callback));
    }
    uint32_t absent = 0;  // nodes, from each answer
    std::function<void()> before_answer;
    Status refusal;
    Status part_refusal;
    mutable std::atomic<int> listed = 0;
    mutable std::string pushed;
    mutable JoinCallback joining;  // is not called
    mutable std::mutex mutex;
    mutable std::vector<QuerySpec> asked;
    mutable std::vector<QueryGrid> grids;
  };

  // A step in live/, and its head.
  struct Running {
    std::shared_ptr<Head> head;
    std::unique_ptr<web::Server> server;
    std::unique_ptr<LiveArchive> live;
  };
  // `now`: where the head's curves have got to.
  void Start(const std::string& job, Nanos began, Nanos now, Running& step) {
    step.head = std::make_shared<Head>(now);
    web::Server::Options options;
    options.port = 0;
    options.token = "token-of-" + job;
    auto server = web::Server::Start(options, step.head);
    ASSERT_TRUE(server.ok()) << server.status().message();
    step.server = *std::move(server);
    auto live = LiveArchive::Create(root(), TestJob(job, began));
    ASSERT_TRUE(live.ok()) << live.status().message();
    step.live = *std::move(live);
    ASSERT_TRUE(
        step.live->PutEndpoint({HostName(), "127.0.0.1", step.server->port(), options.token}).ok());
  }

  void SetUp() override {
    ServeTest::SetUp();
    now_ = Clock::System().Now();
    Running step;
    Start("4712", now_ - 300 * kSecond, now_, step);
    head_ = std::move(step.head);
    server_ = std::move(step.server);
    live_ = std::move(step.live);
  }
  web::Response Call(const serve::ArchiveSource& source, const std::string& target) {
    web::Request request;
    EXPECT_TRUE(web::ParseTarget(target, request).ok());
    const auto answer = WaitFor(source, &web::StepControl::Forward, kStep, request);
    EXPECT_TRUE(answer) << "there is nobody to pass it on to";
    return answer.value_or(web::Response());
  }

  Nanos now_ = 0;
  std::shared_ptr<Head> head_;
  std::unique_ptr<web::Server> server_;
  std::unique_ptr<LiveArchive> live_;
};

TEST_F(RunningStep, IsKnownByWhatItsHeadSays) {
  const auto source = OpenSource();
  const auto profile = WaitFor(*source, &web::StepHistory::GetProfile, kStep);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_FALSE(profile->footprint.empty());
  const auto series =
      WaitFor(*source, &web::StepSeries::ListSeries, std::string("node_load1"), size_t{100});
  ASSERT_TRUE(series.ok());
  ASSERT_THAT(*series, SizeIs(2));
  EXPECT_EQ(*series->front().tags.Find("job"), "4712.0");
  EXPECT_NE(series->front().tags.Find("host"), nullptr);
  EXPECT_THAT(*WaitFor(*source, &web::StepSeries::ListSeries, std::string("node_load1"), size_t{1}),
              SizeIs(1));
  const auto jobs = WaitFor(*source, &web::StepHistory::Jobs, size_t{1});
  EXPECT_EQ(jobs->front().id.ToString(), "4712.0");
}

TEST_F(RunningStep, AnswersQueriesByItself) {
  const auto source = OpenSource();
  QuerySpec spec;
  spec.metric = "solver_iterations_total";
  spec.start = now_ - 100 * kSecond;
  spec.start -= spec.start % kMillisecond;
  spec.end = spec.start + 50 * kSecond;
  spec.filters.push_back({TagFilter::Type::kLiteralOr, "job", "4712.0", false});
  const Result<web::Answer> direct = [&] {
    std::promise<Result<web::Answer>> promise;
    head_->Query(spec, [&](Result<web::Answer> answer) { promise.set_value(std::move(answer)); });
    return promise.get_future().get();
  }();
  const Result<web::Answer> asked = Ask(*source, spec);
  ASSERT_TRUE(direct.ok() && asked.ok()) << asked.status().message();
  ASSERT_THAT(asked->results, SizeIs(1));
  ASSERT_GT(asked->results[0].points.size(), 40u);
  EXPECT_EQ(asked->results[0].tags, direct->results[0].tags);
  EXPECT_EQ(asked->results[0].aggregate_tags, direct->results[0].aggregate_tags);
  for (size_t i = 0; i < asked->results[0].points.size(); ++i) {
    EXPECT_EQ(asked->results[0].points[i].value, direct->results[0].points[i].value);
  }
  // An unknown metric is no error: other steps may have it.
  spec.metric = "no_such";
  EXPECT_THAT(Ask(*source, spec)->results, SizeIs(0));
}

// With a finished step in the range the points of both are put together here.
TEST_F(RunningStep, SaysHowManyOfItsNodesAnswered) {
  head_->absent = 1;
  const auto source = OpenSource();
  QuerySpec spec;
  spec.metric = "solver_iterations_total";
  spec.start = now_ - now_ % kMillisecond - 100 * kSecond;
  spec.end = spec.start + 50 * kSecond;
  for (const char* jobs : {"4712.0", "4712.0|123.0"}) {
    spec.filters = {{TagFilter::Type::kLiteralOr, "job", jobs, true}};
    const Result<web::Answer> answer = Ask(*source, spec);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->nodes_answered + 1, answer->nodes_expected) << jobs;
  }
}

TEST_F(RunningStep, WhoseHeadIsSilentHasNoNodesThatAnswered) {
  server_.reset();
  const auto source = OpenSource();
  QuerySpec spec = Memory("4712.0");
  spec.start = now_ - 100 * kSecond;
  spec.end = now_;
  const Result<web::Answer> answer = Ask(*source, spec);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->nodes_answered, 0u);
  EXPECT_EQ(answer->nodes_expected, 2u);
}

TEST_F(RunningStep, IsListedHoweverManyBeganAfterIt) {
  for (size_t i = 0; i < serve::ArchiveSource::kListedSteps; ++i) {
    Finish(std::to_string(10'000 + i), now_ + static_cast<Nanos>(i) * kSecond);
  }
  const auto source = OpenSource();
  const auto jobs = WaitFor(*source, &web::StepHistory::Jobs, size_t{3});
  ASSERT_TRUE(jobs.ok());
  ASSERT_THAT(*jobs, SizeIs(4));
  EXPECT_EQ(jobs->front().id.ToString(), "10199.0");
  EXPECT_EQ(jobs->back().id.ToString(), "4712.0");
  const auto names = WaitFor(*source, &web::StepSeries::Names);
  EXPECT_TRUE(names->values.contains("4712.0"));
  EXPECT_TRUE(names->metrics.contains("node_load1"));
  const auto series =
      WaitFor(*source, &web::StepSeries::ListSeries, std::string("node_load1"), size_t{100});
  EXPECT_THAT(*series, SizeIs(2));
  const auto metrics = WaitFor(web::RunningSteps(*source));
  ASSERT_THAT(*metrics, SizeIs(1));
}

TEST_F(RunningStep, IsAddedToFinishedOnes) {
  const auto source = OpenSource();
  QuerySpec spec = Memory("*");
  spec.filters = {{TagFilter::Type::kWildcard, "job", "*", true}};
  spec.end = now_;
  const Result<web::Answer> answer = Ask(*source, spec);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  std::map<std::string, size_t> points;
  for (const QueryResult& result : answer->results) {
    points[*result.tags.Find("job")] = result.points.size();
  }
  EXPECT_EQ(points["123.0"], size_t{kTicks});
  EXPECT_GT(points["4712.0"], 200u);
}

// The nodes downsample what is put together here, where that changes nothing.
TEST_F(RunningStep, DownsamplesBeforeItIsAddedToOthers) {
  const auto source = OpenSource();
  QuerySpec spec = Memory("*");
  // Not by job: then its head would be asked for its part. One series each all the same.
  spec.filters = {{TagFilter::Type::kWildcard, "job", "*", false},
                  {TagFilter::Type::kWildcard, "host", "*", true},
                  {TagFilter::Type::kWildcard, "task", "*", true}};
  spec.end = now_;
  spec.aggregator = Aggregator::kMax;
  const auto now = [&](std::vector<Point> points) {
    std::erase_if(points, [&](const Point& p) { return p.time < now_ - 3600 * kSecond; });
    return points;
  };
  const auto asked = [&](const char* downsample) {
    spec.downsample = *ParseDownsample(downsample);
    const Result<web::Answer> answer = Ask(*source, spec);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    std::vector<Point> points;
    for (const QueryResult& result : answer->results) {
      if (points.empty()) points = now(result.points);
    }
    return points;
  };
  const std::vector<Point> means = asked("10s-avg");
  ASSERT_GT(means.size(), 20u);
  ASSERT_TRUE(head_->asked.back().downsample.has_value());
  // As if every point had come.
  const std::vector<Point> counts = asked("10s-count");
  EXPECT_FALSE(head_->asked.back().downsample.has_value()) << "counts are of points";
  EXPECT_EQ(std::max_element(counts.begin(), counts.end(),
                             [](const Point& a, const Point& b) { return a.value < b.value; })
                ->value,
            10);
  spec.downsample.reset();
  const Result<web::Answer> all = Ask(*source, spec);
  ASSERT_TRUE(all.ok());
  for (const QueryResult& result : all->results) {
    const std::vector<Point> read = now(result.points);
    if (read.empty()) continue;
    // But for the first and the last bucket, which the range of this question cuts.
    const std::vector<Point> whole = ApplyDownsample(read, {10 * kSecond, Aggregator::kAvg},
                                                     means[1].time, means.back().time - 1);
    EXPECT_TRUE(std::equal(whole.begin(), whole.end(), means.begin() + 1, means.end() - 1));
    break;
  }
}

// Where steps share no result each head is asked for its part of the answer, and nothing else.
TEST_F(RunningStep, AnswersItsPartOfAQuestionAboutSeveral) {
  const auto source = OpenSource();
  QuerySpec spec = Memory("*");
  spec.end = now_;
  spec.filters = {{TagFilter::Type::kLiteralOr, "job", "123.0|124.0|4712.0", true}};
  spec.aggregator = Aggregator::kMax;
  spec.downsample = *ParseDownsample("10s-count");
  const Result<web::Answer> together = Ask(*source, spec);
  ASSERT_TRUE(together.ok()) << together.status().message();
  ASSERT_THAT(head_->asked, SizeIs(1));
  EXPECT_EQ(head_->asked[0].aggregator, Aggregator::kMax);
  EXPECT_EQ(head_->asked[0].downsample->function, Aggregator::kCount);
  EXPECT_EQ(head_->asked[0].start, spec.start);
  ASSERT_THAT(together->results, SizeIs(3));
  EXPECT_EQ(together->nodes_answered, together->nodes_expected);
  for (size_t i = 0; i < 3; ++i) {
    const std::string job = std::vector<std::string>{"123.0", "124.0", "4712.0"}[i];
    EXPECT_EQ(*together->results[i].tags.Find("job"), job);
    spec.filters = {{TagFilter::Type::kLiteralOr, "job", job, true}};
    const Result<web::Answer> alone = Ask(*source, spec);
    ASSERT_TRUE(alone.ok()) << alone.status().message();
    ASSERT_THAT(alone->results, SizeIs(1));
    EXPECT_EQ(alone->results[0].tags, together->results[i].tags);
    EXPECT_EQ(alone->results[0].aggregate_tags, together->results[i].aggregate_tags);
    EXPECT_TRUE(alone->results[0].points == together->results[i].points) << job;
  }
}

// Where steps share a result each head is asked for what its nodes come to, and not for every
// series: the answer is that of all series in one place, bit by bit, also where their times differ.
TEST_F(RunningStep, AddsItsNodesPartToThoseOfOthers) {
  Running step;
  Start("4713", now_ - 310 * kSecond, now_ - 10'500 * kMillisecond, step);
  const std::shared_ptr<Head> other = step.head;
  // It ended while they ran.
  Finish("126", now_ - now_ % kSecond - 100 * kSecond, 500 * kMillisecond);
  const auto source = OpenSource();

  QuerySpec spec = Memory("*");
  spec.filters.clear();
  spec.start = now_ - now_ % kMillisecond - 250 * kSecond;
  spec.end = now_ - now_ % kMillisecond;
  std::vector<SeriesData> all;
  const auto add = [&](const Result<web::Answer>& answer) {
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    for (const QueryResult& one : answer->results) {
      all.push_back({{Metric(), one.tags}, one.points});
      all.back().series.metric.name = one.metric;
    }
  };
  QuerySpec each = spec;
  each.aggregator = Aggregator::kNone;
  each.start -= 2 * 3600 * kSecond;  // what leads into the range
  each.end += 3600 * kSecond;
  for (const auto& head : {head_, other}) {
    each.filters = {{TagFilter::Type::kLiteralOr, "job", "4712.0", false}};
    std::promise<Result<web::Answer>> told;
    head->FakeSource::Query(each, [&](auto answer) { told.set_value(std::move(answer)); });
    add(told.get_future().get());
  }
  each.filters = {{TagFilter::Type::kLiteralOr, "job", "126.0", false}};
  add(Ask(*source, each));
  ASSERT_GT(all.size(), 6u);

  const auto check = [&](const char* what) {
    head_->asked.clear();
    head_->grids.clear();
    const auto expected = Evaluate(spec, all);
    const auto answer = Ask(*source, spec);
    ASSERT_TRUE(expected.ok() && answer.ok()) << what << answer.status().message();
    ASSERT_THAT(answer->results, SizeIs(expected->size())) << what;
    for (size_t i = 0; i < expected->size(); ++i) {
      const QueryResult& a = answer->results[i];
      const QueryResult& b = expected->at(i);
      EXPECT_EQ(a.tags, b.tags) << what;
      EXPECT_EQ(a.aggregate_tags, b.aggregate_tags) << what;
      ASSERT_THAT(a.points, SizeIs(b.points.size())) << what;
      for (size_t p = 0; p < a.points.size(); ++p) {
        ASSERT_TRUE(a.points[p] == b.points[p]) << what << " at " << p;
      }
    }
    EXPECT_EQ(answer->nodes_answered, 6u) << what;
    EXPECT_EQ(answer->nodes_expected, 6u) << what;
  };
  for (const Aggregator aggregator :
       {Aggregator::kSum, Aggregator::kAvg, Aggregator::kMax, Aggregator::kMin, Aggregator::kCount,
        Aggregator::kZimsum, Aggregator::kPfsum, Aggregator::kMimmin}) {
    spec.aggregator = aggregator;
    const std::string name(ToString(aggregator));
    check(name.c_str());
    EXPECT_THAT(head_->asked, SizeIs(0)) << name;
    EXPECT_THAT(head_->grids, SizeIs(2)) << name << ": the times beside the ticks, once more";
    spec.downsample = *ParseDownsample("10s-avg");
    check((name + " of 10s-avg").c_str());
    EXPECT_THAT(head_->asked, SizeIs(0)) << name;
    EXPECT_THAT(head_->grids, SizeIs(1)) << name;
    spec.downsample.reset();
    spec.rate = true;
    check((name + " of rates").c_str());
    EXPECT_THAT(head_->asked, SizeIs(0)) << name;
    spec.rate = false;
  }
  spec.aggregator = Aggregator::kMax;
  // By host: jobs share hosts, and what lies between a host's points is known where all are.
  spec.downsample = *ParseDownsample("10s-avg");
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  head_->grids.clear();
  const auto by_host = Ask(*source, spec);
  ASSERT_TRUE(by_host.ok()) << by_host.status().message();
  EXPECT_THAT(by_host->results, SizeIs(2));
  EXPECT_THAT(head_->grids, SizeIs(0));
  // A head of before there were parts.
  spec.filters.clear();
  const auto with_parts = Ask(*source, spec);
  head_->asked.clear();
  other->part_refusal = {Code::kNotFound, "there is no such endpoint"};
  const auto without = Ask(*source, spec);
  ASSERT_TRUE(with_parts.ok() && without.ok()) << without.status().message();
  EXPECT_THAT(head_->asked, SizeIs(1));
  ASSERT_THAT(without->results, SizeIs(1));
  EXPECT_EQ(without->results[0].points.size(), with_parts->results[0].points.size());
  // One that does not answer: what is stored of its step is added, which is nothing here.
  other->part_refusal = {Code::kUnavailable, "not now"};
  const auto stored = Ask(*source, spec);
  ASSERT_TRUE(stored.ok()) << stored.status().message();
  EXPECT_THAT(stored->results, SizeIs(1));
  EXPECT_NE(stored->results[0].points, with_parts->results[0].points);
}

// Every node's metrics are one question to the head, not one for each metric.
// Where only running steps are asked, none that is stored says what type a metric is of.
TEST_F(RunningStep, ItsCountersAreCountersByHostToo) {
  Running step;
  Start("4713", now_ - 310 * kSecond, now_ - 100 * kSecond, step);
  const auto source = OpenSource();
  QuerySpec spec;
  spec.metric = "solver_iterations_total";
  spec.filters = {{TagFilter::Type::kLiteralOr, "job", "4712.0|4713.0", false},
                  {TagFilter::Type::kWildcard, "host", "*", true}};
  spec.start = now_ - now_ % kMillisecond - 250 * kSecond;
  spec.end = now_ - now_ % kMillisecond;
  const Result<web::Answer> by_host = Ask(*source, spec);
  ASSERT_TRUE(by_host.ok()) << by_host.status().message();
  ASSERT_THAT(by_host->results, SizeIs(2));
  for (const QueryResult& result : by_host->results) {
    ASSERT_GT(result.points.size(), 200u);
    for (size_t i = 1; i < result.points.size(); ++i) {
      ASSERT_GE(result.points[i].value, result.points[i - 1].value)
          << "the sum falls where one of them has ended, at " << i;
    }
  }
}

TEST_F(RunningStep, GivesTheMetricsOfItsNodesAtOnce) {
  const std::shared_ptr<const web::DataSource> source = OpenSource();
  const auto scrape = [&](const std::string& target) {
    web::Request request;
    EXPECT_TRUE(web::ParseTarget(target, request).ok());
    request.accept = "application/openmetrics-text";
    // As a server's threads: what a source's thread must not do is done here.
    std::mutex mutex;
    std::condition_variable came;
    std::deque<std::function<void()>> jobs;
    std::optional<web::Response> answer;
    const auto post = [&](std::function<void()> job) {
      const std::lock_guard lock(mutex);
      jobs.push_back(std::move(job));
      came.notify_one();
    };
    web::Dispatch(web::Context(*source, &Clock::System(), post), request,
                  [&](web::Response response) {
                    post([&answer, response = std::move(response)] { answer = response; });
                  });
    while (!answer) {
      std::unique_lock lock(mutex);
      came.wait(lock, [&] { return !jobs.empty(); });
      const std::function<void()> job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      job();
    }
    return *answer;
  };
  const web::Response nodes = scrape("/metrics?scope=node&job=4712.0");
  EXPECT_EQ(nodes.status, 200) << nodes.body;
  EXPECT_THAT(nodes.content_type, HasSubstr("openmetrics-text"));
  EXPECT_THAT(nodes.headers, testing::Contains(testing::Pair("Vary", "Accept")));
  EXPECT_THAT(nodes.body, HasSubstr("node_load1{host=\"n2\",job=\"4712.0\"}"));
  const size_t each = head_->asked.size();
  EXPECT_GT(each, 1u);
  // The head asks its nodes once for each metric, whoever asks it.
  const int listed = head_->listed;
  EXPECT_EQ(scrape("/metrics?scope=node").status, 200);
  EXPECT_EQ(head_->listed, listed + 1) << "it was not the head that was asked";
  // So it is with several, whose answers are one.
  Running step;
  Start("4713", now_ - 200 * kSecond, now_, step);
  const std::shared_ptr<Head> other = step.head;
  const int listed_there = other->listed;
  const web::Response both = scrape("/metrics?scope=node");
  EXPECT_EQ(both.status, 200) << both.body;
  EXPECT_EQ(head_->listed, listed + 2);
  EXPECT_EQ(other->listed, listed_there + 1);
  EXPECT_EQ(both.body.find("# TYPE node_load1 "), both.body.rfind("# TYPE node_load1 "));
  EXPECT_THAT(both.body, testing::EndsWith("\n# EOF\n"));
  EXPECT_THAT(both.headers, testing::Contains(testing::Pair("Vary", "Accept")));
  // One that does not answer: all are asked for metric by metric, and of this one there is what was
  // stored.
  step.server.reset();
  const web::Response rest = scrape("/metrics?scope=node");
  EXPECT_EQ(rest.status, 200) << rest.body;
  EXPECT_THAT(rest.body, HasSubstr("node_load1{host=\"n2\",job=\"4712.0\"}"));
  server_.reset();
  EXPECT_EQ(scrape("/metrics?scope=node").status, 200) << "the archive has what was stored";
}

// What is too much for a head is not read from what was stored of its step instead.
TEST_F(RunningStep, ARefusalOfItsHeadIsOneOfTheWhole) {
  const auto source = OpenSource();
  QuerySpec spec = Memory("*");
  spec.end = now_;
  spec.filters = {{TagFilter::Type::kWildcard, "job", "*", true}};
  head_->refusal = {Code::kLimit, "the answer would have 5000000 points"};
  for (const bool group_by : {true, false}) {
    spec.filters[0].group_by = group_by;
    const Result<web::Answer> answer = Ask(*source, spec);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.status().code(), Code::kLimit);
    EXPECT_EQ(answer.status().message(), "step 4712.0: the answer would have 5000000 points");
  }
}

TEST_F(RunningStep, WhatHeadsTellTogetherIsBounded) {
  const auto archive = OpenArchive(root());
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  const auto steps = archive->reader->List(10);
  ASSERT_TRUE(steps.ok());
  ASSERT_THAT(*steps, SizeIs(3));
  QuerySpec spec = Memory("*");
  spec.filters.clear();
  spec.start = now_ - 100 * kSecond;
  spec.end = now_;
  serve::RunningHeads heads;
  const auto told = WaitFor(heads.QueryAll(*steps, spec));
  ASSERT_TRUE(told.ok()) << told.status().message();
  ASSERT_THAT(*told, SizeIs(1)) << "finished steps have no head";
  const auto refused = WaitFor(heads.QueryAll(*steps, spec, 10));
  EXPECT_EQ(refused.status().code(), Code::kLimit);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("more than 10 points"));
}

// Only so many answers are held before they are read; the others have their turn after these.
TEST_F(RunningStep, MoreHeadsAnswerThanHaveATurn) {
  constexpr size_t kMore = 2 * serve::RunningHeads::kAtOnce;
  std::vector<std::unique_ptr<LiveArchive>> live;
  for (size_t i = 0; i < kMore; ++i) {
    auto one = LiveArchive::Create(root(), TestJob(std::to_string(5000 + i), now_ - 60 * kSecond));
    ASSERT_TRUE(one.ok()) << one.status().message();
    live.push_back(*std::move(one));
    // The same server is each one's head.
    ASSERT_TRUE(
        live.back()->PutEndpoint({HostName(), "127.0.0.1", server_->port(), "token-of-4712"}).ok());
  }
  const auto archive = Archive::Open(root());
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  const auto steps = (*archive)->List(100);
  ASSERT_TRUE(steps.ok());
  QuerySpec spec = Memory("*");
  spec.filters.clear();
  spec.start = now_ - now_ % kMillisecond - 100 * kSecond;
  spec.end = now_ - now_ % kMillisecond;
  serve::RunningHeads heads;
  const auto told = WaitFor(heads.QueryAll(*steps, spec));
  ASSERT_TRUE(told.ok()) << told.status().message();
  EXPECT_THAT(*told, SizeIs(kMore + 1));
  QueryGrid grid;
  grid.step = kSecond;
  const auto parts = WaitFor(heads.QueryParts(*steps, spec, grid));
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  EXPECT_THAT(*parts, SizeIs(kMore + 1));
  EXPECT_EQ(WaitFor(heads.QueryAll(*steps, spec, 10)).status().code(), Code::kLimit);
}

// The heads of several steps are asked at the same time: each answers when both were asked.
TEST_F(RunningStep, HeadsDoNotWaitForEachOther) {
  Running step;
  Start("4713", now_ - 200 * kSecond, now_, step);
  const std::shared_ptr<Head> other = step.head;
  std::mutex mutex;
  std::condition_variable came;
  int asked = 0;
  int met = 0;
  head_->before_answer = other->before_answer = [&] {
    std::unique_lock lock(mutex);
    ++asked;
    came.notify_all();
    met += came.wait_for(lock, std::chrono::seconds(8), [&] { return asked == 2; }) ? 1 : 0;
  };
  const auto source = OpenSource();
  QuerySpec spec = Memory("*");
  spec.start = now_ - 100 * kSecond;
  spec.end = now_;
  spec.filters = {{TagFilter::Type::kWildcard, "job", "*", false}};
  ASSERT_TRUE(Ask(*source, spec).ok());
  EXPECT_EQ(met, 2);
}

// A name that one step does not have is no error there.
TEST_F(RunningStep, TakesNamesOfOtherSteps) {
  const auto source = OpenSource();
  QuerySpec spec = Memory("*");
  spec.end = now_;
  spec.filters = {{TagFilter::Type::kLiteralOr, "job", "123.0|4712.0", true},
                  {TagFilter::Type::kLiteralOr, "host", "n1|n2|elsewhere", true}};
  for (const Aggregator aggregator : {Aggregator::kSum, Aggregator::kNone}) {
    spec.aggregator = aggregator;
    const Result<web::Answer> answer = Ask(*source, spec);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    std::set<std::string> jobs;
    for (const QueryResult& result : answer->results) jobs.insert(*result.tags.Find("job"));
    EXPECT_TRUE(jobs.contains("4712.0"));
  }
}

TEST_F(RunningStep, GetsWhatIsForIt) {
  const auto source = OpenSource();
  EXPECT_EQ(Call(*source, "/push?key=parts_total&job=4712.0").status, 200);
  EXPECT_EQ(head_->pushed, "parts_total");
  const web::Response refused = Call(*source, "/push?key=1&job=4712.0");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("\"success\":false"));
  const auto edges = WaitFor(*source, &web::StepControl::Tree, kStep);
  ASSERT_TRUE(edges.ok()) << edges.status().message();
  ASSERT_THAT(*edges, SizeIs(2));
  EXPECT_EQ(edges->at(1).parent, "n1");
  // Nobody to pass it on to.
  const JobStep finished{"123", "0"};
  EXPECT_FALSE(WaitFor(*source, &web::StepControl::Forward, finished, web::Request()));
}

// That a node, or an exporter, does not answer is no fault of the head.
TEST_F(RunningStep, ItsHeadIsNotSilentBecauseItWaitsForOthers) {
  const std::shared_ptr<const web::DataSource> source = OpenSource(kSecond);
  const auto ask = [&](const std::string& target) {
    web::Request request;
    EXPECT_TRUE(web::ParseTarget(target, request).ok());
    std::promise<web::Response> answer;
    web::Dispatch(web::Context(*source), request,
                  [&](web::Response response) { answer.set_value(std::move(response)); });
    return answer.get_future().get();
  };
  std::promise<void> over;
  head_->before_answer = [wait = over.get_future().share()] { wait.wait(); };
  for (const char* target :
       {"/join?to=n1:9100&job=4712.0", "/join/multiple?to=n1:9100&job=4712.0"}) {
    const web::Response late = ask(target);
    EXPECT_EQ(late.status, 504) << late.body;
    EXPECT_THAT(late.body, HasSubstr("no answer in"));
    EXPECT_EQ(ask("/topo?job=4712.0").status, 200) << target;
  }
  EXPECT_EQ(ask("/metrics?scope=node&job=4712.0").status, 504);
  {
    const std::lock_guard lock(head_->mutex);
    EXPECT_GT(head_->asked.size(), 0u) << "it was not the head that was asked";
  }
  EXPECT_EQ(ask("/topo?job=4712.0").status, 200);
  over.set_value();
}

TEST_F(RunningStep, WithoutItsHeadIsReadFromTheArchive) {
  server_.reset();
  const auto source = OpenSource();
  const auto profile = WaitFor(*source, &web::StepHistory::GetProfile, kStep);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_TRUE(profile->footprint.empty());
  EXPECT_EQ(Call(*source, "/topo").status, 503);
}

}  // namespace
}  // namespace sonde::cli::cli_running_steps_test
