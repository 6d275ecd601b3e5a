#include "libclient/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include "core/text/names.h"

namespace sonde::client {
namespace {

// If this library is loaded while the program runs, its thread-local memory comes from a block that
// has little room. So it keeps only a pointer there, and a page of its own for the words: not from
// malloc, which may be the application's and call the library again.
constexpr size_t kRoom = 4096;
__thread char* last_error = nullptr;
pthread_key_t key;
bool has_key = false;

void Free(void* words) {
  munmap(words, kRoom);
  last_error = nullptr;
}

__attribute__((constructor)) void MakeKey() { has_key = pthread_key_create(&key, &Free) == 0; }

bool HasRoom() {
  if (last_error != nullptr) return true;
  if (!has_key) return false;
  void* const words =
      mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (words == MAP_FAILED) return false;
  if (pthread_setspecific(key, words) != 0) {
    munmap(words, kRoom);
    return false;
  }
  last_error = static_cast<char*>(words);
  return true;
}

}  // namespace

Quoted::Quoted(std::string_view text) {
  size_t at = 0, i = 0;
  while (i < text.size()) {
    const size_t n = names::Utf8Length(text, i);
    if (at + (n == 0 ? 1 : n) > kShown) break;
    const auto first = static_cast<unsigned char>(text[i]);
    if (n == 0 || first < 0x20 || first == 0x7f) {
      text_[at++] = '?';
      ++i;
      continue;
    }
    for (size_t k = 0; k < n; ++k) text_[at++] = text[i++];
  }
  for (size_t k = 0; k < 3 && i < text.size(); ++k) text_[at++] = '.';
  text_[at] = '\0';
}

int Fail(int code, const char* format, ...) {
  const int error = errno;
  va_list arguments;
  va_start(arguments, format);
  if (HasRoom()) vsnprintf(last_error, kRoom, format, arguments);
  va_end(arguments);
  errno = error;
  return code;
}

void ClearError() {
  if (last_error != nullptr) *last_error = '\0';
}

const char* LastError() { return last_error == nullptr ? "" : last_error; }

}  // namespace sonde::client
