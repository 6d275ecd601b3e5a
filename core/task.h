// Functions that wait for answers without blocking a thread: coroutines. The code that uses an
// answer follows the question, as if the question returned it:
//
//   Task<Result<size_t>> CountNodes(const StepHistory& history, JobStep id) {
//     const Result<Profile> profile = co_await Ask(history, &StepHistory::GetProfile, id);
//     if (!profile.ok()) co_return profile.status();
//     co_return profile->job.nodes.size();
//   }
//
// A task begins when another one awaits it, or with Spawn, whose executor says where the task goes
// on when an answer has come. If the answer comes before the question returns, it goes on at once.
//
// An unanswered question owns the spawned task and all tasks in it: if the question is dropped, or
// the executor drops the function it was given, the task is destroyed where it waits. So a task may
// refer to objects that live whenever the executor runs a function; the task's own values may be
// destroyed later, and on any thread.
//
// A lambda must not be a task: its captures are destroyed before it ends. GCC 12 destroys twice an
// object that a conditional expression or braces make in the operand of a co_await: name it first.
//
// Thread safety: a task runs on one thread at a time. Spawn from any thread.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace sonde {

// Runs a function soon, on a thread of its own. An empty one runs it at once.
using Executor = std::function<void(std::function<void()>)>;

namespace task_parts {

// What a spawned task and the tasks in it share.
struct Chain {
  Executor executor;
  std::coroutine_handle<> first;  // the spawned one
};

struct PromiseBase {
  const Chain* chain = nullptr;
  std::coroutine_handle<> next;  // who awaits this one
  std::exception_ptr error;

  struct Final {
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      return self.promise().next;
    }
    void await_resume() const noexcept {}
  };
  std::suspend_always initial_suspend() const noexcept { return {}; }
  Final final_suspend() const noexcept { return {}; }
  void unhandled_exception() { error = std::current_exception(); }
};

template <typename T>
struct Promise : PromiseBase {
  std::optional<T> value;
  template <typename U>
  void return_value(U&& given) {
    value.emplace(std::forward<U>(given));
  }
  T Take() {
    if (error) std::rethrow_exception(error);
    return *std::move(value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  void return_void() const {}
  void Take() const {
    if (error) std::rethrow_exception(error);
  }
};

}  // namespace task_parts

template <typename T>
class [[nodiscard]] Task {
 public:
  struct promise_type : task_parts::Promise<T> {
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  template <typename Parent>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Parent> parent) const noexcept {
    handle_.promise().chain = parent.promise().chain;
    handle_.promise().next = parent;
    return handle_;
  }
  T await_resume() const { return handle_.promise().Take(); }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  std::coroutine_handle<promise_type> handle_;
};

namespace task_parts {

// A spawned task's frame: it destroys itself at its end.
struct Spawned {
  struct promise_type {
    Chain own;
    const Chain* chain = &own;

    promise_type(Executor& executor, Task<void>& /*task*/) {
      own.executor = std::move(executor);
      own.first = std::coroutine_handle<promise_type>::from_promise(*this);
    }
    Spawned get_return_object() const { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const {}
    void unhandled_exception() const { std::terminate(); }
  };
};

inline Spawned Run(Executor /*executor*/, Task<void> task) { co_await std::move(task); }

// Destroys a spawned task that nobody will resume.
class Owner {
 public:
  explicit Owner(const Chain& chain) : executor_(chain.executor), first_(chain.first) {}
  ~Owner() {
    if (!released_) first_.destroy();
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  void Release() { released_ = true; }
  const Executor& executor() const { return executor_; }

 private:
  const Executor executor_;
  const std::coroutine_handle<> first_;
  std::atomic<bool> released_ = false;
};

}  // namespace task_parts

// Begins a task, which must let no exception out, on this thread.
inline void Spawn(Executor executor, Task<void> task) {
  task_parts::Run(std::move(executor), std::move(task));
}

// Awaits a question whose answer is called back, once, from any thread.
template <typename T>
class [[nodiscard]] Answered {
 public:
  using Callback = std::function<void(T)>;
  explicit Answered(std::function<void(Callback)> ask) : ask_(std::move(ask)) {}
  Answered(const Answered&) = delete;
  Answered& operator=(const Answered&) = delete;

  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  bool await_suspend(std::coroutine_handle<Promise> self) {
    // Held here as well: the callback may be dropped before the question returns.
    const auto shared = std::make_shared<Shared>(*self.promise().chain);
    try {
      ask_([this, self, shared](T answer) {
        shared->answer.emplace(std::move(answer));
        // The second of the two goes on; the first touches nothing of the task any more.
        if (!shared->met.exchange(true)) return shared->Release();
        if (shared->failed) return;
        auto go_on = [this, self, shared] {
          shared->Release();
          answer_ = std::move(shared->answer);
          self.resume();
        };
        shared->executor() ? shared->executor()(std::move(go_on)) : go_on();
      });
    } catch (...) {
      shared->failed = true;
      shared->met = true;
      shared->Release();
      throw;
    }
    if (!shared->met.exchange(true)) return true;
    answer_ = std::move(shared->answer);
    return false;
  }
  T await_resume() { return *std::move(answer_); }

 private:
  // The part that a callback may touch when the task is gone, or does not wait any more.
  struct Shared : task_parts::Owner {
    using task_parts::Owner::Owner;
    std::optional<T> answer;
    std::atomic<bool> met = false;
    std::atomic<bool> failed = false;  // the question has thrown: nobody waits for its answer
  };

  const std::function<void(Callback)> ask_;
  std::optional<T> answer_;
};

namespace task_parts {

template <typename Callback>
struct AnswerOf;
template <typename T>
struct AnswerOf<std::function<void(T)>> {
  using Type = std::remove_cvref_t<T>;
};

}  // namespace task_parts

// The same for a method whose last parameter is the callback.
template <typename Source, typename... Parameters, typename... Arguments>
auto Ask(const Source& source, void (Source::*method)(Parameters...) const,
         const Arguments&... arguments) {
  using Last = std::tuple_element_t<sizeof...(Parameters) - 1, std::tuple<Parameters...>>;
  using T = typename task_parts::AnswerOf<std::remove_cvref_t<Last>>::Type;
  return Answered<T>([&source, method, arguments...](std::function<void(T)> callback) {
    (source.*method)(arguments..., std::move(callback));
  });
}

// Asks `count` questions at the same time and calls back once, with the answers in their order.
// `ask` is called before this returns.
template <typename T>
void AskEach(size_t count,
             const std::function<void(size_t i, std::function<void(T)> callback)>& ask,
             std::function<void(std::vector<T>)> callback) {
  struct Open {
    std::mutex mutex;
    size_t left = 0;
    std::vector<std::optional<T>> answers;
    std::function<void(std::vector<T>)> callback;

    void Put(size_t i, T answer) {
      {
        const std::lock_guard lock(mutex);
        answers[i].emplace(std::move(answer));
        if (--left != 0) return;
      }
      Finish();
    }
    void Finish() {
      std::vector<T> all;
      all.reserve(answers.size());
      for (std::optional<T>& one : answers) all.push_back(*std::move(one));
      callback(std::move(all));
    }
  };
  const auto open = std::make_shared<Open>();
  open->left = count;
  open->answers.resize(count);
  open->callback = std::move(callback);
  if (count == 0) return open->Finish();
  for (size_t i = 0; i < count; ++i) {
    ask(i, [open, i](T answer) { open->Put(i, std::move(answer)); });
  }
}

// The same for a task.
template <typename T>
Answered<std::vector<T>> AskEach(
    size_t count, std::function<void(size_t i, std::function<void(T)> callback)> ask) {
  return Answered<std::vector<T>>(
      [count, ask = std::move(ask)](std::function<void(std::vector<T>)> callback) {
        AskEach<T>(count, ask, std::move(callback));
      });
}

}  // namespace sonde
