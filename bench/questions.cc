// What questions to a running head cost the threads that answer them, for steps of 1,000, 10,000
// and 100,000 nodes: CPU time of a question about the whole step, of the last minute and of all
// that was recorded, and where a row lacks a node; of a part of such an answer for a server of
// several steps; of a question by host, and of one while hosts are there whose daemon was started
// anew; of a question before which a node has come or gone and a row said so; of the names and
// the notes that pages ask for; and of a subscriber that goes.
//
// The record and the code that answers are the head's own. The nodes' answer is made up, the same
// few points of however many nodes: what the tree costs is not counted here.
// usage: bench_questions [NODES...]
#include "daemon/head/answers/questions.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/growth.h"
#include "core/log.h"
#include "daemon/head/answers/live_source.h"
#include "daemon/head/record/presence.h"
#include "tests/unit/answering_nodes.h"

namespace sonde::head {
namespace {

constexpr Nanos kStart = 1'000'000 * kSecond;
constexpr int kRows = 300;
constexpr int kLacking = 200;     // the row that lacks a node
constexpr double kEnough = 2000;  // us of work in each round, at least
constexpr int kMost = 100;        // questions in it
constexpr uint32_t kAnew = 10;    // hosts whose daemon was started anew

Nanos At(int tick) { return kStart + tick * kSecond; }

void Check(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "bench_questions: {}\n", status.message());
  std::exit(1);
}

class Step {
 public:
  explicit Step(uint32_t nodes) : record_(Describe(nodes)) {
    for (uint32_t i = 0; i < nodes; ++i) everyone_.Add(tree::NodeSet(i));
    for (int tick = 2; tick <= kRows; ++tick) AddRow(tick);
    source_ = std::make_shared<LiveSource>(
        record_,
        std::make_shared<AnsweringNodes>(
            [this](const QuerySpec& spec, const QueryGrid& grid,
                   const tree::QueryFanout::Done& done) { done(OfNodes(spec, grid)); }),
        nullptr, [](const std::function<void()>& finish) { finish(); });
  }

  StepRecord& record() { return record_; }
  uint32_t size() const { return static_cast<uint32_t>(everyone_.size()); }
  bool left() const { return left_; }

  // A node leaves or comes, and a row says so.
  void Change(bool left) {
    left_ = left;
    record_.Update([&](JobDescription& job) { job.nodes[1].left = left ? At(kRows) + 1 : 0; });
    record_.SetPresence(presence_.Runs());
  }

  void Ask(const QuerySpec& spec) const {
    Status told(Code::kTimeout, "a question was not answered at once");
    source_->Query(spec, [&](const Result<web::Answer>& answer) {
      told = answer.ok() && answer->results.empty() ? Status(Code::kNotFound, "no results")
                                                    : answer.status();
    });
    Check(told);
  }
  void AskForPart(const QuerySpec& spec) const {
    Status told(Code::kTimeout, "a part was not given at once");
    source_->QueryForPart(spec, {kSecond, {}},
                          [&](const Result<web::PartAnswer>& part) { told = part.status(); });
    Check(told);
  }
  void AskForNames() const {
    Status told(Code::kTimeout, "names were not given at once");
    source_->Names([&](const Result<web::SeriesNames>& names) { told = names.status(); });
    Check(told);
  }
  // As a page that is open does at every tick.
  void AskForNotes() const {
    source_->Notes(At(kRows - 10), At(kRows), [](const std::vector<web::Note>&) {});
  }
  // A program of each node subscribes to the same question. Then all nodes go.
  void Subscribe(Questions& questions, uint32_t subscribers) const {
    QuerySpec spec = Sum(1);
    std::string bytes;
    EncodeQuery(spec, bytes);
    for (uint32_t node = 0; node < subscribers; ++node) {
      Check(questions.OnAsk(node, {1, static_cast<uint32_t>(client::AskKind::kSubscribe), bytes}));
    }
  }
  std::shared_ptr<const LiveSource> source() const { return source_; }

  // So many hosts get another daemon.
  void StartAnew(uint32_t hosts) {
    record_.Update([&](JobDescription& job) {
      for (uint32_t i = 0; i < hosts; ++i) {
        job.nodes[i].left = At(kRows - 20);
        NodeInfo& newer = job.nodes.emplace_back(job.nodes[i]);
        newer.joined = At(kRows - 20) + 1;
        newer.left = 0;
      }
    });
    const auto all = static_cast<uint32_t>(record_.Job()->nodes.size());
    tree::NodeSet there;
    for (uint32_t i = hosts; i < all; ++i) there.Add(tree::NodeSet(i));
    everyone_ = std::move(there);
  }

  static QuerySpec Sum(int first) {
    QuerySpec spec;
    spec.metric = "bench_metric_1_total";
    spec.start = At(first);
    spec.end = At(kRows);
    return spec;
  }
  // Of hosts together, so that rows do not answer it.
  static QuerySpec OfHosts(int first) {
    QuerySpec spec = Sum(first);
    spec.filters = {{TagFilter::Type::kWildcard, "host", "*", false}};
    return spec;
  }

 private:
  static JobDescription Describe(uint32_t nodes) {
    JobDescription job;
    job.start = kStart;
    job.id = {"7", "0"};
    job.expected_nodes = nodes;
    job.nodes.resize(nodes);
    for (uint32_t i = 0; i < nodes; ++i) {
      job.nodes[i].host = fmt::format("n{:06}", i);
      job.nodes[i].job = "7";
      job.nodes[i].joined = kStart + (i + 1) * (kSecond / (nodes + 1));
    }
    return job;
  }
  void AddRow(int tick) {
    const tree::NodeSet last(everyone_.last());
    presence_.OnRow(At(tick), tick == kLacking ? everyone_.Without(last) : everyone_);
    if (presence_.changed()) record_.SetPresence(presence_.Runs());
    growth::Fill(values_, tick, 0);
    for (Reduced& value : values_) value.count = static_cast<double>(everyone_.size());
    if (tick == kLacking) {
      for (Reduced& value : values_) value.count -= 1;
    }
    record_.Append(At(tick), values_, schema_->series());
  }
  tree::Gathered OfNodes(const QuerySpec& spec, const QueryGrid& grid) const {
    SeriesData data;
    data.series = (*schema_)[1];
    data.series.tags.Set("host", "n000000");
    for (int tick = 2; tick <= kRows; ++tick) {
      // As much as the rows have, whoever compares.
      data.points.push_back({At(tick), 1e9});
    }
    tree::Gathered answer;
    answer.who = everyone_;
    answer.nodes = static_cast<uint32_t>(everyone_.size());
    Result<QueryPart> part = EvaluatePart(spec, {std::move(data)}, &grid);
    Check(part.status());
    answer.part = *std::move(part);
    return answer;
  }

  const Schema::Ptr schema_ = growth::MakeSchema();
  std::vector<Reduced> values_;
  tree::NodeSet everyone_;
  Presence presence_{kSecond};
  StepRecord record_;
  std::shared_ptr<LiveSource> source_;
  bool left_ = false;
};

using Steps = std::vector<std::unique_ptr<Step>>;

// The CPU time of one question, of as many as take a while, behind one that is not counted.
void Measure(std::string_view what, const Steps& steps, const std::function<void(Step&)>& ask) {
  for (const auto& step : steps) ask(*step);
  const auto ask_for_a_while = [&](Step& step) {
    const double begin = growth::CpuMicroseconds();
    int asked = 0;
    while (asked < kMost && (asked == 0 || growth::CpuMicroseconds() - begin < kEnough)) {
      ask(step);
      ++asked;
    }
    return asked;
  };
  growth::MeasureInTurn(
      what, "", steps, [](Step&) {}, ask_for_a_while);
}

void MeasureSubscribers(Step& step) {
  const auto most = static_cast<uint32_t>(Questions::kMaxSubscribers);
  const uint32_t subscribers = std::min(step.size(), most);
  Loop loop;
  Questions questions(loop, step.source(), step.record(), kSecond,
                      [](uint32_t, const tree::AnswerMessage&) {});
  step.Subscribe(questions, subscribers);
  growth::Measure("subscriber_goes", "", step.size(), subscribers, [&] {
    for (uint32_t node = subscribers; node-- > 0;) questions.OnGone(node);
  });
}

void MeasureSteps(const Steps& steps) {
  Measure("whole_step", steps, [](Step& step) { step.Ask(Step::Sum(kRows - 60)); });
  Measure("whole_step_all", steps, [](Step& step) { step.Ask(Step::Sum(1)); });
  QuerySpec lacking = Step::Sum(kLacking - 30);
  lacking.end = At(kLacking + 30);
  Measure("whole_step_lacking", steps, [&](Step& step) { step.Ask(lacking); });
  Measure("part", steps, [](Step& step) { step.AskForPart(Step::Sum(kRows - 60)); });
  Measure("by_host", steps, [](Step& step) { step.Ask(Step::OfHosts(kRows - 60)); });
  Measure("names", steps, [](Step& step) { step.AskForNames(); });
  Measure("notes", steps, [](Step& step) { step.AskForNotes(); });
  for (const auto& step : steps) MeasureSubscribers(*step);
  Measure("after_a_change", steps, [](Step& step) {
    step.Change(!step.left());
    step.Ask(Step::Sum(kRows - 60));
  });
  for (const auto& step : steps) {
    step->Change(false);
    step->StartAnew(kAnew);
  }
  Measure("by_host_anew", steps, [](Step& step) { step.Ask(Step::OfHosts(kRows - 60)); });
}

}  // namespace
}  // namespace sonde::head

int main(int argc, char** argv) {
  const auto sizes = sonde::growth::Sizes(argc, argv, 17, {1000, 10'000, 100'000});
  sonde::log::Discard("bench_questions");
  sonde::head::Steps steps;
  for (const uint32_t nodes : sizes) {
    steps.push_back(std::make_unique<sonde::head::Step>(nodes));
  }
  sonde::head::MeasureSteps(steps);
}
