// A file descriptor with an owner.
//
// Thread safety: a value; one thread at a time.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace sonde::spank {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // The same open file at a number of kHigh or more, closed on exec: a child can then put it on a
  // small fixed number without closing another descriptor that happens to lie there. Below 64, as
  // the first number beyond makes the kernel enlarge the table, for which a process with threads
  // waits until every processor has passed a quiet state: 14 ms.
  void MoveUp() {
    if (fd_ < 0 || fd_ >= kHigh) return;
    const int high = ::fcntl(fd_, F_DUPFD_CLOEXEC, kHigh);
    if (high < 0) return;
    ::close(fd_);
    fd_ = high;
  }

 private:
  static constexpr int kHigh = 16;
  int fd_ = -1;
};

}  // namespace sonde::spank
