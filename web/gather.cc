#include "web/gather.h"

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "core/log.h"

namespace sonde::web {
namespace {

// The queries of one request. Shared by their callbacks, so it must not hold the data source: the
// last reference would go on a thread of its own.
struct Open {
  std::mutex mutex;
  size_t left = 0;
  Answers answers;
  Status failure;
  size_t points = 0;
  size_t max_points = 0;

  Executor executor;
  Reply reply;
  std::function<Response(Answers)> make;

  // Whether it was the last.
  bool Put(size_t i, Result<Answer> answer) {
    const std::lock_guard lock(mutex);
    if (answer.ok() && failure.ok()) {
      for (const QueryResult& result : answer->results) points += result.points.size();
      answers[i] = *std::move(answer);
      if (points > max_points) Fail();
    } else if (!answer.ok() && failure.ok()) {
      failure = answer.status();
    }
    return --left == 0;
  }

  // Does not wait for the rest to be as large.
  void Fail() {
    failure = Status(Code::kLimit, fmt::format("the queries have {} points so far, more than {}: "
                                               "ask for a downsample, a shorter range or fewer "
                                               "series",
                                               points, max_points));
    answers.clear();
    answers.shrink_to_fit();
  }

  void Finish() {
    try {
      reply(failure.ok() ? make(std::move(answers)) : ErrorResponse(failure));
    } catch (const std::exception& e) {
      log::Error("HTTP: writing an answer: {}", e.what());
      reply(ErrorResponse(500, "an internal error; the log of the server has its text"));
    }
  }
};

void Post(const Executor& executor, std::function<void()> f) {
  executor ? executor(std::move(f)) : f();
}

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
  }
  return Aggregator::kSum;
}

void GatherAndReply(const Context& context, const std::vector<QuerySpec>& specs, Reply reply,
                    std::function<Response(Answers)> make, size_t max_points) {
  const auto open = std::make_shared<Open>();
  open->left = specs.size();
  open->answers.resize(specs.size());
  open->max_points = max_points;
  open->executor = context.executor;
  open->reply = std::move(reply);
  open->make = std::move(make);
  for (size_t i = 0; i < specs.size(); ++i) {
    context.source->Query(specs[i], [open, i](Result<Answer> answer) {
      if (open->Put(i, std::move(answer))) {
        Post(open->executor, [open] { open->Finish(); });
      }
    });
  }
}

}  // namespace sonde::web
