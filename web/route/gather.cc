#include "web/route/gather.h"

#include <fmt/core.h>

#include <memory>
#include <mutex>
#include <utility>

namespace sonde::web {
namespace {

// The queries of one request; their callbacks share this.
struct Open {
  std::mutex mutex;
  size_t left = 0;
  Answers answers;
  Status failure;
  size_t points = 0;
  size_t max_points = 0;
  std::function<void(Result<Answers>)> callback;

  void Put(size_t i, Result<Answer> answer) {
    {
      const std::lock_guard lock(mutex);
      if (answer.ok() && failure.ok()) {
        for (const QueryResult& result : answer->results) points += result.points.size();
        answers[i] = *std::move(answer);
        if (points > max_points) Fail();
      } else if (!answer.ok() && failure.ok()) {
        failure = answer.status();
      }
      if (--left != 0) return;
    }
    callback(failure.ok() ? Result<Answers>(std::move(answers)) : failure);
  }

  // Does not wait until the rest is too large as well.
  void Fail() {
    failure = Status(Code::kLimit, fmt::format("the queries have {} points so far, more than {}: "
                                               "ask for a downsample, a shorter range or fewer "
                                               "series",
                                               points, max_points));
    answers.clear();
    answers.shrink_to_fit();
  }
};

}  // namespace

Aggregator AggregatorOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return Aggregator::kSum;
    case Reduction::kMean:
      return Aggregator::kAvg;
    case Reduction::kMin:
      return Aggregator::kMin;
    case Reduction::kMax:
      return Aggregator::kMax;
    case Reduction::kUnknown:
      break;
  }
  return Aggregator::kAvg;
}

Task<Result<Answers>> Gather(const Context& context, std::vector<QuerySpec> specs,
                             size_t max_points) {
  if (specs.empty()) co_return Answers();
  Answered<Result<Answers>> all([&](std::function<void(Result<Answers>)> callback) {
    const auto open = std::make_shared<Open>();
    open->left = specs.size();
    open->answers.resize(specs.size());
    open->max_points = max_points;
    open->callback = std::move(callback);
    for (size_t i = 0; i < specs.size(); ++i) {
      context.series->Query(specs[i],
                            [open, i](Result<Answer> answer) { open->Put(i, std::move(answer)); });
    }
  });
  co_return co_await all;
}

}  // namespace sonde::web
