// Threads that read the archive and evaluate queries. They never wait for a network, so few are
// enough. Work that may take long never occupies all of them: one is left for the rest.
//
// Thread safety: Post and Begin from any thread; made and stopped by one.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "core/task.h"
#include "web/http/http.h"

namespace sonde::serve {

// A callback that is called once: with the answer, or with kUnavailable when its last copy is
// destroyed without one. If the answer's type has no status, the answer is empty then.
template <typename T>
class Once {
 public:
  explicit Once(std::function<void(T)> callback)
      : held_(std::make_shared<Held>(std::move(callback))) {}

  void Answer(T answer) const { held_->Call(std::move(answer)); }
  void Fail(const Status& why) const { held_->Call(From(why)); }

 private:
  static T From(const Status& why) {
    if constexpr (std::is_same_v<T, std::optional<web::Response>>) {
      return web::ErrorResponse(why);
    } else if constexpr (std::is_constructible_v<T, Status>) {
      return T(why);
    } else {
      return T();
    }
  }

  class Held {
   public:
    explicit Held(std::function<void(T)> callback) : callback_(std::move(callback)) {}
    ~Held() {
      if (callback_) Call(From({Code::kUnavailable, "the server is stopping"}));
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    void Call(T answer) {
      if (const auto call = std::exchange(callback_, nullptr)) call(std::move(answer));
    }

   private:
    std::function<void(T)> callback_;
  };

  std::shared_ptr<Held> held_;
};

class Workers {
 public:
  enum class Length { kShort, kLong };

  // At least two.
  explicit Workers(size_t threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Ends the threads after the work they are doing; work that has not begun is dropped.
  void Stop();

  // In the order they come, short ones first; dropped after Stop.
  void Post(Length length, std::function<void()> work);
  Executor AsExecutor(Length length = Length::kShort) {
    return [this, length](std::function<void()> work) { Post(length, std::move(work)); };
  }

  // A worker does the task and answers with its result; `what` begins the message if it throws.
  template <typename T>
  void Begin(const char* what, std::function<void(T)> callback, Task<T> task,
             Length length = Length::kShort) {
    auto all =
        std::make_shared<Task<void>>(Finish(what, Once<T>(std::move(callback)), std::move(task)));
    Post(length, [this, length, all] { Spawn(AsExecutor(length), std::move(*all)); });
  }

 private:
  template <typename T>
  static Task<void> Finish(const char* what, Once<T> once, Task<T> task) {
    Status failed;
    try {
      once.Answer(co_await std::move(task));
      co_return;
    } catch (const std::exception& e) {
      failed = {Code::kInternal, std::string(what) + ": " + e.what()};
    }
    log::Error("{}", failed.message());
    once.Fail(failed);
  }

  void Work();
  bool MayBeginLong() const { return !long_.empty() && long_running_ + 1 < most_; }

  const size_t most_;  // threads
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> short_;
  std::deque<std::function<void()>> long_;
  size_t long_running_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sonde::serve
