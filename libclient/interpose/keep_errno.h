// The application's errno, kept while an interposer does something of its own.
//
// Thread safety: each thread has its own errno; signal handlers too.
#pragma once

#include <errno.h>

namespace sonde::interpose {

class KeepErrno {
 public:
  KeepErrno() : value_(errno) {}
  ~KeepErrno() { errno = value_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int value_;
};

}  // namespace sonde::interpose
