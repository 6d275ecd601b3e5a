#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/head/answers/node_questions.h"
#include "tests/unit/answering_nodes.h"

namespace sonde::head::head_node_questions_test {
namespace {

constexpr std::chrono::seconds kPatience(20);
const QueryGrid kTicks = {kSecond, {}};

// Stands for the loop: holds what is asked until the test answers it.
class NodeQuestionsTest : public testing::Test {
 protected:
  using Done = tree::QueryFanout::Done;

  std::shared_ptr<NodeQuestions> Make(size_t most) {
    auto nodes = std::make_shared<AnsweringNodes>(
        [this](const QuerySpec& spec, const QueryGrid& grid, Done done) {
          const std::lock_guard lock(mutex_);
          grids_.push_back(grid);
          asked_.emplace_back(spec, std::move(done));
          came_.notify_all();
        });
    return std::make_shared<NodeQuestions>(record_, std::make_shared<HostsNow>(record_),
                                           std::move(nodes), nullptr, most, 0);
  }
  static QuerySpec Spec(const std::string& metric) {
    QuerySpec spec;
    spec.metric = metric;
    spec.end = kSecond;
    return spec;
  }
  std::future<std::string> Ask(NodeQuestions& questions, const std::string& metric) {
    auto told = std::make_shared<std::promise<std::string>>();
    auto answer = told->get_future();
    questions.Ask({Spec(metric), kTicks, [told](const Result<NodeQuestions::Answer>& result) {
                     told->set_value(result.ok() ? "ok" : std::string(result.status().message()));
                   }});
    return answer;
  }
  size_t asked() {
    const std::lock_guard lock(mutex_);
    return asked_.size();
  }
  bool WaitForAsked(size_t count) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, kPatience, [&] { return asked_.size() >= count; });
  }
  void Answer(size_t i, Status failure = {}) {
    std::unique_lock lock(mutex_);
    auto [spec, done] = asked_.at(i);
    lock.unlock();
    done({1, 1, tree::NodeSet(0), std::move(failure), EmptyPart(spec)});
  }
  // Of two nodes, a value of each at the grid's step and one of the second besides.
  void AnswerWithOddTime(size_t i, Nanos odd, const QueryGrid& grid) {
    std::unique_lock lock(mutex_);
    auto [spec, done] = asked_.at(i);
    lock.unlock();
    QueryPart part = EmptyPart(spec);
    for (const char* host : {"n1", "n2"}) {
      SeriesData data;
      data.series.tags.Set("host", host);
      for (const Nanos time : {grid.step, odd, 3 * grid.step}) {
        if (time != odd || data.series.tags == Tags{{"host", "n2"}})
          data.points.push_back({time, 1});
      }
      ASSERT_TRUE(MergePart(spec, grid, *EvaluatePart(spec, {data}, &grid), part).ok());
    }
    tree::NodeSet who(0);
    who.Add(tree::NodeSet(1));
    done({1, 2, who, {}, std::move(part)});
  }

  static JobDescription Job() {
    JobDescription job;
    job.id = {"7", "0"};
    job.expected_nodes = 3;
    for (const char* host : {"n1", "n2"}) job.nodes.emplace_back().host = host;
    return job;
  }

  StepRecord record_{Job()};
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::pair<QuerySpec, Done>> asked_;
  std::vector<QueryGrid> grids_;
};

TEST_F(NodeQuestionsTest, NoMoreTravelAtATimeThanAllowedAndTheOthersGoInOrder) {
  const auto questions = Make(2);
  std::vector<std::future<std::string>> answers;
  for (const char* metric : {"a", "b", "c", "d"}) answers.push_back(Ask(*questions, metric));
  ASSERT_EQ(asked(), 2u);
  Answer(1);
  ASSERT_TRUE(WaitForAsked(3));
  EXPECT_EQ(asked_[2].first.metric, "c");
  Answer(0, {Code::kLimit, "too large"});
  ASSERT_TRUE(WaitForAsked(4)) << "one that fails makes room as well";
  Answer(2);
  Answer(3);
  for (auto& answer : answers) {
    ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  }
  EXPECT_EQ(answers[0].get(), "too large");
  EXPECT_EQ(answers[3].get(), "ok");
}

TEST_F(NodeQuestionsTest, AnswersAreFinishedOnAThreadThatIsNotTheLoops) {
  const auto questions = Make(1);
  std::promise<std::thread::id> where;
  questions->Ask({Spec("a"), kTicks, [&](const Result<NodeQuestions::Answer>&) {
                    where.set_value(std::this_thread::get_id());
                  }});
  ASSERT_TRUE(WaitForAsked(1));
  Answer(0);
  EXPECT_NE(where.get_future().get(), std::this_thread::get_id());
}

// Where an answer of all nodes is small, to wake a thread takes longer than to finish it.
TEST_F(NodeQuestionsTest, WhoAsksSoGetsASmallAnswerOfAllWhereItComes) {
  const auto questions = Make(2);
  std::thread::id where;
  std::promise<std::thread::id> of_one;
  const auto ask = [&](const NodeQuestions::Callback& callback) {
    questions->Ask({Spec("a"), kTicks, callback, nullptr, true});
  };
  ask([&](const Result<NodeQuestions::Answer>&) { where = std::this_thread::get_id(); });
  ask([&](const Result<NodeQuestions::Answer>&) { of_one.set_value(std::this_thread::get_id()); });
  ASSERT_TRUE(WaitForAsked(2));
  AnswerWithOddTime(0, kTicks.step, kTicks);
  EXPECT_EQ(where, std::this_thread::get_id());
  Answer(1);
  EXPECT_NE(of_one.get_future().get(), std::this_thread::get_id()) << "what is stored may be read";
}

// Who puts parts of several steps together gets it as it is, with the step's name, once it has the
// values of all nodes at all times.
TEST_F(NodeQuestionsTest, APartIsGivenAsItIsAndWhole) {
  const auto questions = Make(1);
  QuerySpec spec = Spec("a");
  spec.end = 10 * kSecond;
  const QueryGrid grid = {2 * kSecond, {5 * kSecond}};
  std::promise<Result<web::PartAnswer>> told;
  questions->Ask({spec, grid, nullptr,
                  [&](Result<web::PartAnswer> part) { told.set_value(std::move(part)); }});
  ASSERT_TRUE(WaitForAsked(1));
  EXPECT_EQ(grids_[0].step, grid.step);
  EXPECT_EQ(grids_[0].times, grid.times);
  AnswerWithOddTime(0, 3 * kSecond, grids_[0]);
  ASSERT_TRUE(WaitForAsked(2));
  EXPECT_EQ(grids_[1].times, (std::vector<Nanos>{3 * kSecond, 5 * kSecond}));
  AnswerWithOddTime(1, 3 * kSecond, grids_[1]);
  auto part = told.get_future();
  ASSERT_EQ(part.wait_for(kPatience), std::future_status::ready);
  const Result<web::PartAnswer> answer = part.get();
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->nodes_answered, 2u);
  EXPECT_EQ(answer->nodes_expected, 3u);
  ASSERT_EQ(answer->part.groups.size(), 1u);
  const GroupPart& group = answer->part.groups[0];
  EXPECT_EQ(group.tags, (Tags{{"job", "7.0"}}));
  EXPECT_EQ(group.other_keys, std::vector<std::string>{"host"});
  EXPECT_EQ(group.times,
            (std::vector<Nanos>{2 * kSecond, 3 * kSecond, 4 * kSecond, 5 * kSecond, 6 * kSecond}));
  // And so it comes over the wire.
  const auto bytes = EncodePart(answer->part);
  ASSERT_TRUE(bytes.ok());
  const auto read = DecodePart(spec, *bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->groups[0].tags, group.tags);
  // A question that fails says why.
  std::promise<Result<web::PartAnswer>> failed;
  questions->Ask({spec, grid, nullptr,
                  [&](Result<web::PartAnswer> why) { failed.set_value(std::move(why)); }});
  ASSERT_TRUE(WaitForAsked(3));
  Answer(2, {Code::kLimit, "too large"});
  EXPECT_EQ(failed.get_future().get().status().code(), Code::kLimit);
}

// Nodes pass over a question that is too long: who asks would wait for all of them, and hear of
// none.
TEST_F(NodeQuestionsTest, WhoNeedsMoreNamesThanAQuestionHoldsIsTold) {
  record_.Update([](JobDescription& job) {
    job.nodes.clear();
    for (size_t i = 0; i < kMaxPatternLength / 8; ++i) {
      NodeInfo node;
      node.host = std::to_string(10'000'000 + i);
      node.left = 1;
      job.nodes.push_back(node);
      node.left = 0;
      job.nodes.push_back(node);
    }
  });
  const auto questions = Make(2);
  EXPECT_THAT(Ask(*questions, "a").get(), testing::HasSubstr("were started anew"));
  const auto ask = [&](const std::vector<TagFilter>& filters) {
    QuerySpec spec = Spec("a");
    spec.filters = filters;
    auto told = std::make_shared<std::promise<Status>>();
    questions->Ask({spec, kTicks, [told](const Result<NodeQuestions::Answer>& result) {
                      told->set_value(result.status());
                    }});
    return told->get_future();
  };
  const std::vector<TagFilter> one(1, {TagFilter::Type::kLiteralOr, "host", "10000007", false});
  const std::vector<TagFilter> full(kMaxFilters, one[0]);
  EXPECT_EQ(ask(full).get().code(), Code::kLimit);
  EXPECT_EQ(asked(), 0u);
  const auto answer = ask(one);
  EXPECT_EQ(asked(), 1u) << "of one host they are few";
}

// Of a host whose daemon was started anew nodes are asked first, and of all others then; each
// question goes to every node.
TEST_F(NodeQuestionsTest, WhoHasAnsweredTheOtherQuestionAloneHasNotAnswered) {
  record_.Update([](JobDescription& job) {
    job.nodes[0].left = 1;
    job.nodes.emplace_back().host = "n1";
    job.expected_nodes = 2;
  });
  const auto questions = Make(1);
  size_t at = 0;
  const auto ask = [&](const std::vector<uint32_t>& of_anew, const std::vector<uint32_t>& of_all) {
    std::promise<NodeQuestions::Answer> told;
    questions->Ask({Spec("a"), kTicks, [&](Result<NodeQuestions::Answer> result) {
                      EXPECT_TRUE(result.ok());
                      told.set_value(*std::move(result));
                    }});
    for (const auto* nodes : {&of_anew, &of_all}) {
      EXPECT_TRUE(WaitForAsked(++at));
      tree::NodeSet who;
      for (const uint32_t node : *nodes) who.Add(tree::NodeSet(node));
      asked_[at - 1].second(
          {1, static_cast<uint32_t>(nodes->size()), who, {}, EmptyPart(asked_[at - 1].first)});
    }
    return told.get_future().get();
  };
  EXPECT_EQ(ask({1, 2}, {1, 2}).answer.nodes_answered, 2u);
  const auto without_other = ask({1, 2}, {2});
  EXPECT_EQ(without_other.answer.nodes_answered, 1u);
  EXPECT_THAT(without_other.missing, testing::Contains(1u));
  const auto without_anew = ask({1}, {1, 2});
  EXPECT_EQ(without_anew.answer.nodes_answered, 1u);
  EXPECT_THAT(without_anew.missing, testing::Contains(2u));
}

// In a step of many nodes what is known of them may be a little older than the answer.
class ManyNodesTest : public NodeQuestionsTest {
 protected:
  static constexpr uint32_t kLost = 1;

  ManyNodesTest() {
    record_.Update([](JobDescription& job) {
      job.nodes.resize(20'000);
      for (size_t i = 0; i < job.nodes.size(); ++i) job.nodes[i].host = "n" + std::to_string(i);
      job.nodes[kLost].lost = true;
      job.expected_nodes = static_cast<uint32_t>(job.nodes.size());
    });
  }
  // All but that one; and one more.
  void AnswerOfOthers(std::optional<uint32_t> another = std::nullopt) {
    tree::NodeSet who;
    for (uint32_t node = 0; node < 20'000; ++node) {
      if (node != kLost) who.Add(tree::NodeSet(node));
    }
    if (another) who.Add(tree::NodeSet(*another));
    const auto [spec, done] = asked_.at(0);
    done({1, static_cast<uint32_t>(who.size()), who, {}, EmptyPart(spec)});
  }
};

TEST_F(ManyNodesTest, ALostOneThatCameBackMeanwhileHasNotAnswered) {
  const auto questions = Make(1);
  std::promise<NodeQuestions::Answer> told;
  questions->Ask({Spec("a"), kTicks, [&](Result<NodeQuestions::Answer> result) {
                    ASSERT_TRUE(result.ok());
                    told.set_value(*std::move(result));
                  }});
  ASSERT_TRUE(WaitForAsked(1));
  record_.Update([](JobDescription& job) { job.nodes[kLost].lost = false; });
  AnswerOfOthers();
  const NodeQuestions::Answer answer = told.get_future().get();
  EXPECT_EQ(answer.answer.nodes_answered, 19'999u);
  EXPECT_THAT(answer.missing, testing::ElementsAre(kLost));
}

// Its two daemons are one host: its points have to be asked for by themselves.
TEST_F(ManyNodesTest, OneWhoseDaemonWasStartedAnewMeanwhileIsAskedOnceMore) {
  const auto questions = Make(1);
  const std::future<std::string> answer = Ask(*questions, "a");
  ASSERT_TRUE(WaitForAsked(1));
  record_.Update([](JobDescription& job) {
    job.nodes[kLost].lost = false;
    job.nodes[kLost].left = 1;
    job.nodes.emplace_back().host = "n1";
  });
  AnswerOfOthers(20'000);
  ASSERT_TRUE(WaitForAsked(2));
  ASSERT_FALSE(asked_[1].first.filters.empty());
  EXPECT_EQ(asked_[1].first.filters.back().pattern, "n1");
}

TEST_F(NodeQuestionsTest, AnAnswerThatComesAfterTheEndIsDropped) {
  auto questions = Make(1);
  std::future<std::string> answer = Ask(*questions, "a");
  ASSERT_EQ(asked(), 1u);
  questions.reset();
  Answer(0);
  asked_.clear();  // the last that holds the question
  EXPECT_THROW(answer.get(), std::future_error) << "nobody was told";
}

}  // namespace
}  // namespace sonde::head::head_node_questions_test
