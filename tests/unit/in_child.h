// Running a part of a test in a child process: one that is killed, or that breaks its disk
// (broken_disk.h), for a process that has used LevelDB must not fork and go on.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>

namespace sonde {

// Runs `f` in a child and gives how it ended. What it expects in vain makes it end with 1.
inline int InChild(const std::function<void()>& f) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    f();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

inline bool WasKilled(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

// What a child tells before it ends: atomic values.
template <typename T>
class SharedWithChild {
 public:
  SharedWithChild() {
    void* page =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    value_ = new (page) T;
  }
  SharedWithChild(const SharedWithChild&) = delete;
  SharedWithChild& operator=(const SharedWithChild&) = delete;
  ~SharedWithChild() { ::munmap(value_, sizeof(T)); }
  T* operator->() { return value_; }
  T& operator*() { return *value_; }

 private:
  T* value_ = nullptr;
};

}  // namespace sonde
