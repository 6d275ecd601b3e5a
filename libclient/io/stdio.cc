// The functions of stdio. Bytes are counted as the program reads and writes them through stdio's
// buffers: the C library's own calls of read() and write() do not reach us, so nothing is counted
// twice. Single characters are counted, but not timed: reading the clock would take ten times as
// long.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libclient/interpose/keep_errno.h"
#include "libclient/io/call.h"

namespace sonde::io {
namespace {

// fileno() sets errno for a stream without a descriptor.
int Descriptor(FILE* stream) {
  if (stream == nullptr) return -1;
  const interpose::KeepErrno keep;
  return fileno_unlocked(stream);
}

Filesystem* ForStream(FILE* stream) {
  return __atomic_load_n(&state, __ATOMIC_RELAXED) == State::kOff ? nullptr
                                                                  : ForData(Descriptor(stream));
}

template <typename Call, typename Bytes>
__attribute__((always_inline)) inline auto OnStream(FILE* stream, Operation operation, Call call,
                                                    Bytes bytes) {
  Filesystem* const filesystem = ForStream(stream);
  if (filesystem == nullptr) return call();
  return Timed(
      kStdio, operation, call, [&](auto) { return filesystem; }, bytes);
}

template <typename Call>
__attribute__((always_inline)) inline int OneCharacter(FILE* stream, Operation operation,
                                                       Call call) {
  const int result = call();
  Filesystem* const filesystem = ForStream(stream);
  if (filesystem != nullptr) {
    RecordUntimed(*filesystem, kStdio, operation, result == EOF ? 0 : 1);
  }
  return result;
}

// Of functions that return a count, negative for a failure.
constexpr auto kResult = [](auto result) { return static_cast<ssize_t>(result); };

template <typename... Arguments>
__attribute__((always_inline)) inline FILE* Open(Real& real, const char* path,
                                                 Arguments... arguments) {
  if (!On()) return real.Call<FILE*>(arguments...);
  return Timed(
      kStdio, kOpen, [&] { return real.Call<FILE*>(arguments...); },
      [&](FILE* stream) {
        return stream != nullptr ? Opened(Descriptor(stream)) : OfPath(AT_FDCWD, path);
      },
      kNoBytes);
}

}  // namespace

// --- Opening and closing

SONDE_IO(FILE*, fopen, (const char* path, const char* mode)) {
  return Open(real_fopen, path, path, mode);
}
SONDE_IO(FILE*, fopen64, (const char* path, const char* mode)) {
  return Open(real_fopen64, path, path, mode);
}
SONDE_IO(FILE*, freopen, (const char* path, const char* mode, FILE* stream)) {
  Forget(Descriptor(stream));
  return Open(real_freopen, path, path, mode, stream);
}
SONDE_IO(FILE*, freopen64, (const char* path, const char* mode, FILE* stream)) {
  Forget(Descriptor(stream));
  return Open(real_freopen64, path, path, mode, stream);
}

SONDE_IO(int, fclose, (FILE * stream)) {
  const int fd = Descriptor(stream);
  Filesystem* const filesystem = On() ? OfDescriptor(fd) : nullptr;
  Forget(fd);
  const auto call = [&] { return real_fclose.Call<int>(stream); };
  if (filesystem == nullptr) return call();
  return Timed(
      kStdio, kClose, call, [&](int) { return filesystem; }, kNoBytes);
}

SONDE_IO(int, pclose, (FILE * stream)) {
  Forget(Descriptor(stream));
  return real_pclose.Call<int>(stream);
}

// --- Blocks

#define SONDE_BLOCKS(SYMBOL, OPERATION, POINTER)                                                  \
  SONDE_IO(size_t, SYMBOL, (POINTER data, size_t size, size_t count, FILE * stream)) {            \
    return OnStream(                                                                              \
        stream, OPERATION, [&] { return real_##SYMBOL.Call<size_t>(data, size, count, stream); }, \
        [&](size_t done) { return static_cast<ssize_t>(done * size); });                          \
  }
SONDE_BLOCKS(fread, kRead, void*)
SONDE_BLOCKS(fread_unlocked, kRead, void*)
SONDE_BLOCKS(fwrite, kWrite, const void*)
SONDE_BLOCKS(fwrite_unlocked, kWrite, const void*)

#define SONDE_CHECKED_BLOCKS(SYMBOL)                                                             \
  SONDE_IO(size_t, SYMBOL, (void* data, size_t room, size_t size, size_t count, FILE* stream)) { \
    return OnStream(                                                                             \
        stream, kRead,                                                                           \
        [&] { return real_##SYMBOL.Call<size_t>(data, room, size, count, stream); },             \
        [&](size_t done) { return static_cast<ssize_t>(done * size); });                         \
  }
SONDE_CHECKED_BLOCKS(__fread_chk)
SONDE_CHECKED_BLOCKS(__fread_unlocked_chk)

// --- Lines and characters

constexpr auto kLength = [](const char* line) -> ssize_t {
  return line == nullptr ? 0 : static_cast<ssize_t>(strlen(line));
};

#define SONDE_LINE(SYMBOL, PARAMETERS, ...)                                              \
  SONDE_IO(char*, SYMBOL, PARAMETERS) {                                                  \
    return OnStream(                                                                     \
        stream, kRead, [&] { return real_##SYMBOL.Call<char*>(__VA_ARGS__); }, kLength); \
  }
SONDE_LINE(fgets, (char* line, int size, FILE* stream), line, size, stream)
SONDE_LINE(fgets_unlocked, (char* line, int size, FILE* stream), line, size, stream)
SONDE_LINE(__fgets_chk, (char* line, size_t room, int size, FILE* stream), line, room, size, stream)
SONDE_LINE(__fgets_unlocked_chk, (char* line, size_t room, int size, FILE* stream), line, room,
           size, stream)

SONDE_IO(ssize_t, getline, (char** line, size_t* room, FILE* stream)) {
  return OnStream(
      stream, kRead, [&] { return real_getline.Call<ssize_t>(line, room, stream); }, kResult);
}
#define SONDE_DELIMITED(SYMBOL)                                                              \
  SONDE_IO(ssize_t, SYMBOL, (char** line, size_t* room, int end, FILE* stream)) {            \
    return OnStream(                                                                         \
        stream, kRead, [&] { return real_##SYMBOL.Call<ssize_t>(line, room, end, stream); }, \
        kResult);                                                                            \
  }
SONDE_DELIMITED(getdelim)
SONDE_DELIMITED(__getdelim)

#define SONDE_TEXT(SYMBOL)                                                                     \
  SONDE_IO(int, SYMBOL, (const char* text, FILE* stream)) {                                    \
    return OnStream(                                                                           \
        stream, kWrite, [&] { return real_##SYMBOL.Call<int>(text, stream); },                 \
        [&](int done) { return done < 0 ? ssize_t{0} : static_cast<ssize_t>(strlen(text)); }); \
  }
SONDE_TEXT(fputs)
SONDE_TEXT(fputs_unlocked)

SONDE_IO(int, puts, (const char* text)) {
  return OnStream(
      stdout, kWrite, [&] { return real_puts.Call<int>(text); },
      [&](int done) { return done < 0 ? ssize_t{0} : static_cast<ssize_t>(strlen(text)) + 1; });
}

#define SONDE_CHARACTER(SYMBOL, OPERATION, PARAMETERS, STREAM, ...)                               \
  SONDE_IO(int, SYMBOL, PARAMETERS) {                                                             \
    return OneCharacter(STREAM, OPERATION, [&] { return real_##SYMBOL.Call<int>(__VA_ARGS__); }); \
  }
SONDE_CHARACTER(fputc, kWrite, (int c, FILE* stream), stream, c, stream)
SONDE_CHARACTER(putc, kWrite, (int c, FILE* stream), stream, c, stream)
SONDE_CHARACTER(putchar, kWrite, (int c), stdout, c)
SONDE_CHARACTER(fgetc, kRead, (FILE * stream), stream, stream)
SONDE_CHARACTER(getc, kRead, (FILE * stream), stream, stream)
SONDE_CHARACTER(getchar, kRead, (), stdin)

// --- Formatted output

namespace {

template <typename... Arguments>
__attribute__((always_inline)) inline int Format(Real& real, FILE* stream, Arguments... arguments) {
  return OnStream(
      stream, kWrite, [&] { return real.Call<int>(arguments...); }, kResult);
}

}  // namespace

// A list of arguments can only be passed on as a va_list, which is a pointer on its way.
#define SONDE_WITH_LIST(...)              \
  va_list list;                           \
  va_start(list, format);                 \
  const int result = Format(__VA_ARGS__); \
  va_end(list);                           \
  return result

SONDE_IO(int, vfprintf, (FILE * stream, const char* format, va_list list)) {
  return Format(real_vfprintf, stream, stream, format, list);
}
SONDE_IO(int, __vfprintf_chk, (FILE * stream, int flag, const char* format, va_list list)) {
  return Format(real___vfprintf_chk, stream, stream, flag, format, list);
}
SONDE_IO(int, vprintf, (const char* format, va_list list)) {
  return Format(real_vprintf, stdout, format, list);
}
SONDE_IO(int, __vprintf_chk, (int flag, const char* format, va_list list)) {
  return Format(real___vprintf_chk, stdout, flag, format, list);
}
SONDE_IO(int, fprintf, (FILE * stream, const char* format, ...)) {
  SONDE_WITH_LIST(real_vfprintf, stream, stream, format, list);
}
SONDE_IO(int, printf, (const char* format, ...)) {
  SONDE_WITH_LIST(real_vprintf, stdout, format, list);
}
SONDE_IO(int, __fprintf_chk, (FILE * stream, int flag, const char* format, ...)) {
  SONDE_WITH_LIST(real___vfprintf_chk, stream, stream, flag, format, list);
}
SONDE_IO(int, __printf_chk, (int flag, const char* format, ...)) {
  SONDE_WITH_LIST(real___vprintf_chk, stdout, flag, format, list);
}

// --- Positions and buffers

#define SONDE_SEEK(SYMBOL)                                                                   \
  SONDE_IO(int, SYMBOL, (FILE * stream, long to, int from)) {                                \
    return OnStream(                                                                         \
        stream, kSeek, [&] { return real_##SYMBOL.Call<int>(stream, to, from); }, kNoBytes); \
  }
SONDE_SEEK(fseek)
SONDE_SEEK(fseeko)
SONDE_SEEK(fseeko64)

SONDE_IO(int, fflush, (FILE * stream)) {
  return OnStream(
      stream, kSync, [&] { return real_fflush.Call<int>(stream); }, kNoBytes);
}

}  // namespace sonde::io
