// Waits for what is called back, and for tasks.
#pragma once

#include <functional>
#include <future>
#include <tuple>
#include <utility>

#include "core/task.h"

namespace sonde {

template <typename Source, typename Part, typename... Parameters, typename... Arguments>
auto WaitFor(const Source& source, void (Part::*method)(Parameters...) const,
             const Arguments&... arguments) {
  using Last = std::tuple_element_t<sizeof...(Parameters) - 1, std::tuple<Parameters...>>;
  using T = typename task_parts::AnswerOf<std::remove_cvref_t<Last>>::Type;
  std::promise<T> promise;
  (source.*method)(arguments..., [&](T answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

template <typename T>
Task<void> FulfilWith(Task<T> task, std::promise<T>& promise) {
  promise.set_value(co_await std::move(task));
}

template <typename T>
T WaitFor(Task<T> task) {
  std::promise<T> promise;
  Spawn(nullptr, FulfilWith(std::move(task), promise));
  return promise.get_future().get();
}

}  // namespace sonde
