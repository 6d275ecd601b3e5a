#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/task.h"

namespace sonde::core_task_test {
namespace {

using Callback = std::function<void(std::string)>;

// Answers when it is told to.
class Desk {
 public:
  void Put(const std::string& question, Callback callback) const {
    if (at_once) return callback("at once: " + question);
    open.emplace_back(question, std::move(callback));
  }
  void AnswerNext() const {
    auto [question, callback] = std::move(open.front());
    open.pop_front();
    callback("later: " + question);
  }

  bool at_once = false;
  mutable std::deque<std::pair<std::string, Callback>> open;
};

// Tells when it is destroyed.
struct Guard {
  explicit Guard(int& count) : gone(count) {}
  ~Guard() { ++gone; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  int& gone;
};

Task<std::string> AskTwice(const Desk& desk, std::string first, std::string second) {
  const std::string a = co_await Ask(desk, &Desk::Put, first);
  const std::string b = co_await Ask(desk, &Desk::Put, second);
  co_return a + ", " + b;
}

Task<void> Tell(const Desk& desk, std::vector<std::string>& out, int& gone) {
  const Guard guard(gone);
  const std::string text = co_await AskTwice(desk, "a", "b");
  out.push_back(text);
}

TEST(Task, GoesOnWhenTheAnswerComes) {
  Desk desk;
  std::vector<std::string> out;
  int gone = 0;
  Spawn(nullptr, Tell(desk, out, gone));
  ASSERT_EQ(desk.open.size(), 1u);
  desk.AnswerNext();
  EXPECT_TRUE(out.empty());
  desk.AnswerNext();
  EXPECT_THAT(out, testing::ElementsAre("later: a, later: b"));
  EXPECT_EQ(gone, 1);
}

TEST(Task, GoesOnAtOnceWithAnAnswerThatIsThere) {
  Desk desk;
  desk.at_once = true;
  std::vector<std::string> out;
  int gone = 0;
  // The executor is for what comes later.
  Spawn([](const std::function<void()>&) { FAIL(); }, Tell(desk, out, gone));
  EXPECT_THAT(out, testing::ElementsAre("at once: a, at once: b"));
  EXPECT_EQ(gone, 1);
}

TEST(Task, GoesOnWhereTheExecutorSays) {
  Desk desk;
  std::deque<std::function<void()>> jobs;
  std::vector<std::string> out;
  int gone = 0;
  Spawn([&](std::function<void()> job) { jobs.push_back(std::move(job)); }, Tell(desk, out, gone));
  for (int i = 0; i < 2; ++i) {
    desk.AnswerNext();
    ASSERT_EQ(jobs.size(), 1u);
    EXPECT_TRUE(out.empty());
    jobs.front()();
    jobs.pop_front();
  }
  EXPECT_EQ(out.size(), 1u);
  EXPECT_EQ(gone, 1);
}

TEST(Task, IsDestroyedWithTheQuestionThatNobodyAnswers) {
  int gone = 0;
  std::vector<std::string> out;
  {
    Desk desk;
    Spawn(nullptr, Tell(desk, out, gone));
    EXPECT_EQ(gone, 0);
  }
  EXPECT_EQ(gone, 1);
  // The executor drops it.
  Desk desk;
  Spawn([](const std::function<void()>&) {}, Tell(desk, out, gone));
  desk.AnswerNext();
  EXPECT_EQ(gone, 2);
  EXPECT_TRUE(out.empty());
}

Task<int> Throw(const Desk& desk) {
  co_await Ask(desk, &Desk::Put, std::string("q"));
  throw std::runtime_error("no");
}

Task<void> Catch(const Desk& desk, std::string& out) {
  try {
    co_await Throw(desk);
  } catch (const std::exception& e) {
    out = e.what();
  }
}

TEST(Task, PassesExceptionsOn) {
  Desk desk;
  std::string out;
  Spawn(nullptr, Catch(desk, out));
  desk.AnswerNext();
  EXPECT_EQ(out, "no");
}

// A question that throws, after it has handed its callback on or without.
class Broken {
 public:
  void Put(bool keep, const Callback& callback) const {
    if (keep) kept = callback;
    throw std::runtime_error("broken");
  }
  mutable Callback kept;
};

Task<void> AskBroken(const Broken& broken, bool keep, std::string& out) {
  try {
    out = co_await Ask(broken, &Broken::Put, keep);
  } catch (const std::exception& e) {
    out = e.what();
  }
}

TEST(Task, AQuestionThatThrowsIsLikeATaskThatDoes) {
  for (const bool keep : {false, true}) {
    Broken broken;
    std::string out;
    Spawn(nullptr, AskBroken(broken, keep, out));
    EXPECT_EQ(out, "broken");
    // An answer that comes all the same is nobody's.
    if (keep) broken.kept("late");
    EXPECT_EQ(out, "broken");
  }
}

// One that drops its callback before it returns.
class Deaf {
 public:
  void Put(int /*number*/, const Callback& /*callback*/) const {}
};

Task<void> AskDeaf(const Deaf& deaf, int& gone, bool& went_on) {
  const Guard at_end(gone);
  co_await Ask(deaf, &Deaf::Put, 1);
  went_on = true;
}

TEST(Task, IsDestroyedWhereItsQuestionIsDroppedAtOnce) {
  int gone = 0;
  bool went_on = false;
  Spawn(nullptr, AskDeaf(Deaf(), gone, went_on));
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(went_on);
}

Task<void> AskAll(const Desk& desk, std::vector<std::string>& out) {
  out = co_await AskEach<std::string>(3, [&desk](size_t i, Callback callback) {
    desk.Put(std::to_string(i), std::move(callback));
  });
  const std::vector<std::string> none =
      co_await AskEach<std::string>(0, [](size_t, const Callback&) { FAIL(); });
  out.push_back(std::to_string(none.size()));
}

TEST(Task, AsksSeveralAtTheSameTime) {
  Desk desk;
  std::vector<std::string> out;
  Spawn(nullptr, AskAll(desk, out));
  ASSERT_EQ(desk.open.size(), 3u);
  std::swap(desk.open[0], desk.open[2]);
  for (int i = 0; i < 3; ++i) desk.AnswerNext();
  EXPECT_THAT(out, testing::ElementsAre("later: 0", "later: 1", "later: 2", "0"));
}

// Answers from other threads, also while the question is being asked.
class Threads {
 public:
  void Put(int number, std::function<void(int)> callback) const {
    threads.emplace_back([number, callback = std::move(callback)] { callback(number); });
  }
  mutable std::vector<std::jthread> threads;
};

Task<void> Sum(const Threads& threads, int count, std::function<void(int)> done) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    const int one = co_await Ask(threads, &Threads::Put, i);
    sum += one;
  }
  done(sum);
}

TEST(Task, IsAnsweredFromAnyThread) {
  constexpr int kQuestions = 500;
  const Threads threads;
  std::mutex mutex;
  std::condition_variable came;
  std::deque<std::function<void()>> jobs;
  int sum = -1;
  Spawn(
      [&](std::function<void()> job) {
        const std::lock_guard lock(mutex);
        jobs.push_back(std::move(job));
        came.notify_one();
      },
      Sum(threads, kQuestions, [&](int all) { sum = all; }));
  while (sum < 0) {
    std::unique_lock lock(mutex);
    came.wait(lock, [&] { return !jobs.empty(); });
    const std::function<void()> job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    job();
  }
  EXPECT_EQ(sum, kQuestions * (kQuestions - 1) / 2);
}

}  // namespace
}  // namespace sonde::core_task_test
