#include "web/gather.h"

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

  Executor executor;
  Reply reply;
  std::function<Response(Answers)> make;

  // Whether it was the last.
  bool Put(size_t i, Result<Answer> answer) {
    const std::lock_guard lock(mutex);
    if (answer.ok()) {
      answers[i] = *std::move(answer);
    } else if (failure.ok()) {
      failure = answer.status();
    }
    return --left == 0;
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

void GatherAndReply(const Context& context, const std::vector<QuerySpec>& specs, Reply reply,
                    std::function<Response(Answers)> make) {
  const auto open = std::make_shared<Open>();
  open->left = specs.size();
  open->answers.resize(specs.size());
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
