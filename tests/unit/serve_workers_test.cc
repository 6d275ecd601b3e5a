#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "serve/workers.h"

namespace sonde::serve::serve_workers_test {
namespace {

Task<Result<int>> Give(int value) { co_return value; }

Task<Result<int>> GiveAfter(std::shared_future<void> gate, int value) {
  gate.wait();
  co_return value;
}

TEST(Workers, LongWorkLeavesOneOfThem) {
  std::promise<void> gate;
  const std::shared_future<void> opened = gate.get_future().share();
  std::vector<std::future<Result<int>>> answers;
  Workers workers(2);
  const auto begin = [&](Task<Result<int>> task, Workers::Length length) {
    const auto answer = std::make_shared<std::promise<Result<int>>>();
    answers.push_back(answer->get_future());
    workers.Begin<Result<int>>(
        "test", [answer](Result<int> value) { answer->set_value(std::move(value)); },
        std::move(task), length);
  };
  for (int i = 0; i < 4; ++i) begin(GiveAfter(opened, i), Workers::Length::kLong);
  // Between two of them the other worker looks for work, and finds the long ones.
  for (int i = 4; i < 104; ++i) {
    begin(Give(i), Workers::Length::kShort);
    if (answers.back().wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      ADD_FAILURE() << "it waits for the long ones";
      break;
    }
    EXPECT_EQ(*answers.back().get(), i);
  }
  gate.set_value();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(*answers[i].get(), i);
}

Task<Result<int>> Throw() {
  throw std::runtime_error("broken");
  co_return 0;
}

TEST(Workers, AnswerForATaskThatThrowsAndForOneThatWasDropped) {
  std::promise<Result<int>> thrown;
  std::promise<Result<int>> dropped;
  {
    Workers workers(2);
    workers.Begin<Result<int>>(
        "add", [&](Result<int> value) { thrown.set_value(std::move(value)); }, Throw());
    const Result<int> failed = thrown.get_future().get();
    EXPECT_EQ(failed.status().code(), Code::kInternal);
    EXPECT_EQ(failed.status().message(), "add: broken");
    workers.Stop();
    workers.Begin<Result<int>>(
        "add", [&](Result<int> value) { dropped.set_value(std::move(value)); }, Give(1));
  }
  EXPECT_EQ(dropped.get_future().get().status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace sonde::serve::serve_workers_test
