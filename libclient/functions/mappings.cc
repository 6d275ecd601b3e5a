#include "libclient/functions/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sonde::functions {
namespace {

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Takes a number that `stop` ends; false if there is none.
bool TakeNumber(const char*& at, const char* end, unsigned base, char stop, uint64_t* number) {
  const char* const begin = at;
  uint64_t value = 0;
  for (; at < end && at - begin < 20; ++at) {
    const int digit = DigitOf(*at);
    if (digit < 0 || static_cast<unsigned>(digit) >= base) break;
    value = value * base + static_cast<unsigned>(digit);
  }
  if (at == begin || at == end || *at != stop) return false;
  ++at;
  *number = value;
  return true;
}

// Reads a file line by line; a line that is too long is cut.
class Lines {
 public:
  Lines(int fd, Room* room) : fd_(fd), room_(room) {}

  bool Next(size_t* size) {
    *size = 0;
    for (;;) {
      if (at_ == read_ && !Fill()) return *size > 0;
      const char c = room_->buffer[at_++];
      if (c == '\n') return true;
      if (*size < sizeof(room_->line)) room_->line[(*size)++] = c;
    }
  }

 private:
  bool Fill() {
    long got = 0;
    do {
      got = syscall(SYS_read, fd_, room_->buffer, sizeof(room_->buffer));
    } while (got < 0 && errno == EINTR);
    at_ = 0;
    read_ = got > 0 ? static_cast<size_t>(got) : 0;
    return read_ > 0;
  }

  int fd_;
  Room* room_;
  size_t at_ = 0;
  size_t read_ = 0;
};

}  // namespace

bool ParseMapping(const char* line, size_t size, Mapping* mapping) {
  const char* at = line;
  const char* const end = line + size;
  uint64_t major = 0, minor = 0;
  constexpr ptrdiff_t kAccess = 5;  // "r-xp "
  if (!TakeNumber(at, end, 16, '-', &mapping->begin) ||
      !TakeNumber(at, end, 16, ' ', &mapping->end) || end - at < kAccess) {
    return false;
  }
  mapping->readable = at[0] == 'r';
  if (at[4] != ' ') return false;
  at += kAccess;
  if (!TakeNumber(at, end, 16, ' ', &mapping->offset) || !TakeNumber(at, end, 16, ':', &major) ||
      !TakeNumber(at, end, 16, ' ', &minor)) {
    return false;
  }
  mapping->device = major << 32 | minor;
  // A mapping without a file may end here.
  mapping->inode = 0;
  for (; at < end && *at >= '0' && *at <= '9'; ++at) {
    mapping->inode = mapping->inode * 10 + static_cast<uint64_t>(*at - '0');
  }
  while (at < end && *at == ' ') ++at;
  mapping->path = at;
  mapping->path_size = static_cast<size_t>(end - at);
  return true;
}

bool FindMapping(uintptr_t address, Room* room, Mapping* mapping, std::string_view* beginning) {
  const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  Lines lines(static_cast<int>(fd), room);
  Mapping first = {};  // the last beginning of a file
  bool found = false;
  for (size_t size = 0; !found && lines.Next(&size);) {
    if (!ParseMapping(room->line, size, mapping)) continue;
    if (mapping->offset == 0) first = *mapping;
    found = address >= mapping->begin && address < mapping->end;
  }
  syscall(SYS_close, fd);
  if (!found) return false;
  const bool same = first.inode == mapping->inode && first.device == mapping->device;
  *beginning = {};
  if (same && first.readable && mapping->inode != 0) {
    *beginning = {reinterpret_cast<const char*>(first.begin), first.end - first.begin};
  }
  return true;
}

}  // namespace sonde::functions
