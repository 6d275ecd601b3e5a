// Status and Result: how modules tell each other that a call failed.
//
// Exceptions do not cross a module, a thread or a C boundary; a function that can fail returns one
// of these. An ok Status holds nothing and allocates nothing. A message says what was tried, on
// what, why it failed and, where there is one, what to do.
//
// Thread safety: values, like std::string.
#pragma once

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sonde {

enum class Code : unsigned char {
  kOk,
  kInvalid,      // the caller's input is wrong
  kNotFound,     // the named thing does not exist
  kPermission,   // it exists and may not be used by us
  kUnavailable,  // not now: connection refused, peer gone
  kBusy,         // somebody else holds it (a locked archive)
  kCorrupt,      // bytes from outside fail their checks
  kLimit,        // a documented bound is reached
  kIo,           // the operating system failed us
  kTimeout,
  kUnsupported,  // this build, kernel or machine does not have it
  kInternal,     // a bug of ours
};

class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(Code code, std::string message)
      : rep_(code == Code::kOk ? nullptr : std::make_unique<Rep>(Rep{code, std::move(message)})) {}
  Status(const Status& other) : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}
  Status& operator=(const Status& other) {
    rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
    return *this;
  }
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  static Status Ok() noexcept { return {}; }

  bool ok() const noexcept { return rep_ == nullptr; }
  Code code() const noexcept { return rep_ ? rep_->code : Code::kOk; }
  std::string_view message() const noexcept { return rep_ ? rep_->message : std::string_view{}; }

  // The same failure seen from one call further out: "what: message".
  Status Within(std::string_view what) const {
    if (ok()) return {};
    std::string text(what);
    text += ": ";
    text += rep_->message;
    return {rep_->code, std::move(text)};
  }

 private:
  struct Rep {
    Code code;
    std::string message;
  };
  std::unique_ptr<Rep> rep_;
};

// What errno says about `what`, e.g. SystemError("open /proc/stat").
inline Status SystemError(std::string_view what, int error = errno) {
  Code code = Code::kIo;
  if (error == ENOENT || error == ESRCH) code = Code::kNotFound;
  if (error == EACCES || error == EPERM) code = Code::kPermission;
  if (error == ECONNREFUSED || error == EAGAIN || error == EHOSTUNREACH) code = Code::kUnavailable;
  if (error == ETIMEDOUT) code = Code::kTimeout;
  std::string text(what);
  text += ": ";
  text += std::strerror(error);
  return {code, std::move(text)};
}

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    if (status_.ok()) status_ = Status(Code::kInternal, "a Result was made from an ok Status");
  }

  bool ok() const noexcept { return value_.has_value(); }
  const Status& status() const noexcept { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace sonde

// Leaves the calling function with the failure of `expr`, if it failed.
#define SONDE_RETURN_IF_ERROR(expr)                \
  do {                                             \
    ::sonde::Status sonde_status_ = (expr);        \
    if (!sonde_status_.ok()) return sonde_status_; \
  } while (false)
