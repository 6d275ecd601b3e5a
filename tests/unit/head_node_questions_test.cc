#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/head/node_questions.h"

namespace sonde::head {
namespace {

constexpr std::chrono::seconds kPatience(20);

// Stands for the loop: holds what is asked until the test answers it.
class NodeQuestionsTest : public testing::Test {
 protected:
  using Done = tree::QueryFanout::Done;

  std::shared_ptr<NodeQuestions> Make(size_t most) {
    return std::make_shared<NodeQuestions>(
        [this](const QuerySpec& spec, const QueryGrid&, Done done) {
          const std::lock_guard lock(mutex_);
          asked_.emplace_back(spec, std::move(done));
          came_.notify_all();
        },
        most, 0);
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
    questions.Ask({Spec(metric), kSecond, "1.0", 1, [told](Result<web::Answer> result) {
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
    done({1, 1, std::move(failure), EmptyPart(spec)});
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::pair<QuerySpec, Done>> asked_;
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
  questions->Ask({Spec("a"), kSecond, "1.0", 1, [&](const Result<web::Answer>&) {
                    where.set_value(std::this_thread::get_id());
                  }});
  ASSERT_TRUE(WaitForAsked(1));
  Answer(0);
  EXPECT_NE(where.get_future().get(), std::this_thread::get_id());
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
}  // namespace sonde::head
