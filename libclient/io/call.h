// A call on its way to the C library: found, timed, counted.
//
// Thread safety: any thread, signal handlers too. errno stays as the call left it.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

#include <type_traits>

#include "libclient/io/filesystems.h"

namespace sonde::io {

// For a function that moves no bytes.
inline constexpr auto kNoBytes = [](auto) { return ssize_t{0}; };

extern interpose::TickClock clock;

// The C library's function, or that of another interposer behind us. All are looked up when the
// library starts, as a signal handler must not do it; before that, each at its first call.
struct Real {
  const char* symbol;
  void* address;

  void* Find();

  // Gives the answer of a kernel that lacks the system call.
  template <typename Result>
  static Result Failure() {
    errno = ENOSYS;
    if constexpr (std::is_integral_v<Result>) return static_cast<Result>(-1);
    if constexpr (std::is_pointer_v<Result>) return nullptr;
  }

  template <typename Result, typename... Arguments>
  __attribute__((always_inline)) Result Call(Arguments... arguments) {
    void* found = __atomic_load_n(&address, __ATOMIC_RELAXED);
    if (__builtin_expect(found == nullptr, 0) && (found = Find()) == nullptr) {
      return Failure<Result>();
    }
    return reinterpret_cast<Result (*)(Arguments...)>(found)(arguments...);
  }
};

// Defines the function `symbol` of the C library, without declaring it: the headers may have done
// so with other attributes. In its body `real` is the library's.
#define SONDE_IO(RESULT, SYMBOL, PARAMETERS)                                                    \
  extern "C" RESULT sonde_io_##SYMBOL PARAMETERS __asm__(#SYMBOL)                               \
      __attribute__((visibility("default")));                                                   \
  static Real real_##SYMBOL __attribute__((section("sonde_reals"), used)) = {#SYMBOL, nullptr}; \
  extern "C" RESULT sonde_io_##SYMBOL PARAMETERS

// Bytes are counted where there are any.
__attribute__((always_inline)) inline void Record(Filesystem& filesystem, Api api,
                                                  Operation operation, uint64_t ticks,
                                                  ssize_t bytes = 0) {
  Counters& counters = filesystem.counters[api][operation];
  if (__builtin_expect(!__atomic_load_n(&counters.ready, __ATOMIC_ACQUIRE), 0) &&
      !Register(filesystem, api, operation)) {
    return;
  }
  interpose::Add(counters.calls, 1);
  interpose::AddSeconds(counters.seconds, clock.Seconds(ticks));
  if (bytes <= 0) return;
  interpose::Add(counters.bytes, static_cast<uint64_t>(bytes));
  interpose::Observe(counters.sizes, static_cast<double>(bytes));
}

// For calls that take less time than reading the clock does.
__attribute__((always_inline)) inline void RecordUntimed(Filesystem& filesystem, Api api,
                                                         Operation operation, uint64_t bytes) {
  Counters& counters = filesystem.counters[api][operation];
  if (__builtin_expect(!__atomic_load_n(&counters.ready, __ATOMIC_ACQUIRE), 0) &&
      !Register(filesystem, api, operation)) {
    return;
  }
  interpose::Add(counters.calls, 1);
  if (bytes > 0) interpose::Add(counters.bytes, bytes);
}

// The filesystem that a transfer on a descriptor is counted for, nullptr for none.
__attribute__((always_inline)) inline Filesystem* ForData(int fd) {
  const State now = __atomic_load_n(&state, __ATOMIC_RELAXED);
  if (__builtin_expect(now == State::kOn, 1)) return OfDescriptor(fd);
  if (now == State::kOff) return nullptr;
  Filesystem* filesystem = OfDescriptor(fd);
  return filesystem != nullptr && Rejoin() ? filesystem : nullptr;
}

// Calls, times and counts; when the call has returned, `find` gives the filesystem and `bytes` the
// number of bytes moved.
template <typename Call, typename Find, typename Bytes>
__attribute__((always_inline)) inline auto Timed(Api api, Operation operation, Call call, Find find,
                                                 Bytes bytes) {
  const uint64_t begin = clock.Now();
  const auto result = call();
  const uint64_t ticks = clock.Now() - begin;
  Filesystem* const filesystem = find(result);
  if (filesystem != nullptr) Record(*filesystem, api, operation, ticks, bytes(result));
  return result;
}

}  // namespace sonde::io
