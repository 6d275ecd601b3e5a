#include "libclient/io/mounts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace sonde::io {
namespace {

// Takes a word that a blank ends; false at the line's end.
bool TakeWord(const char*& at, const char* end, const char** word, size_t* size) {
  const auto* blank = static_cast<const char*>(memchr(at, ' ', static_cast<size_t>(end - at)));
  if (blank == nullptr) return false;
  *word = at;
  *size = static_cast<size_t>(blank - at);
  at = blank + 1;
  return true;
}

bool TakeNumber(const char*& at, const char* end, char stop, uint64_t* number) {
  uint64_t value = 0;
  const char* const begin = at;
  for (; at < end && *at >= '0' && *at <= '9' && at - begin < 18; ++at) {
    value = value * 10 + static_cast<uint64_t>(*at - '0');
  }
  if (at == begin || at == end || *at != stop) return false;
  ++at;
  *number = value;
  return true;
}

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

// Calls f(line, size) with the beginning of every line, until it returns true.
template <typename F>
bool ForEachLine(int fd, F&& f) {
  char buffer[2048], line[1536];
  size_t size = 0;
  for (;;) {
    const long got = syscall(SYS_read, fd, buffer, sizeof(buffer));
    if (got <= 0) return size > 0 && f(line, size);
    for (long i = 0; i < got; ++i) {
      if (buffer[i] == '\n') {
        if (f(line, size)) return true;
        size = 0;
      } else if (size < sizeof(line)) {
        line[size++] = buffer[i];
      }
    }
  }
}

// The number of the mount that holds the path; 0 with kernels before 5.8.
uint64_t MountId(int dirfd, const char* path) {
#ifdef STATX_MNT_ID
  struct statx info;
  memset(&info, 0, sizeof(info));
  const int flags = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  if (syscall(SYS_statx, dirfd, path, flags, STATX_MNT_ID, &info) == 0 &&
      (info.stx_mask & STATX_MNT_ID) != 0) {
    return info.stx_mnt_id;
  }
#endif
  return 0;
}

}  // namespace

bool ParseMountLine(const char* line, size_t size, MountLine* mount) {
  const char* at = line;
  const char* const end = line + size;
  uint64_t parent = 0, major = 0, minor = 0;
  const char* word = nullptr;
  size_t length = 0;
  if (!TakeNumber(at, end, ' ', &mount->id) || !TakeNumber(at, end, ' ', &parent) ||
      !TakeNumber(at, end, ':', &major) || !TakeNumber(at, end, ' ', &minor) ||
      !TakeWord(at, end, &mount->root, &mount->root_size) ||
      !TakeWord(at, end, &mount->point, &mount->point_size)) {
    return false;
  }
  mount->device = makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
  do {  // options, and any number of fields up to a dash
    if (!TakeWord(at, end, &word, &length)) return false;
  } while (length != 1 || *word != '-');
  return TakeWord(at, end, &mount->type, &mount->type_size);
}

void DecodeMountText(const char* text, size_t size, char* out, size_t room) {
  size_t to = 0;
  for (size_t from = 0; from < size && to + 1 < room; ++from) {
    char c = text[from];
    if (c == '\\' && from + 3 < size && IsOctal(text[from + 1]) && IsOctal(text[from + 2]) &&
        IsOctal(text[from + 3])) {
      c = static_cast<char>((text[from + 1] - '0') * 64 + (text[from + 2] - '0') * 8 +
                            (text[from + 3] - '0'));
      from += 3;
    }
    // Bytes beyond ASCII may not be UTF-8, or may be cut within a character.
    out[to++] = c < ' ' || c > '~' ? '?' : c;
  }
  if (to == 0) out[to++] = '?';
  out[to] = '\0';
}

bool FindMount(uint64_t device, int dirfd, const char* path, char (&type)[33], char (&point)[129]) {
  const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  enum { kNothing, kById, kPart, kWhole } best = kNothing;
  const uint64_t id = MountId(dirfd, path);
  const auto keep = [&](const MountLine& mount) {
    DecodeMountText(mount.type, mount.type_size, type, sizeof(type));
    DecodeMountText(mount.point, mount.point_size, point, sizeof(point));
  };
  ForEachLine(static_cast<int>(fd), [&](const char* line, size_t size) {
    MountLine mount;
    if (!ParseMountLine(line, size, &mount)) return false;
    auto rank = kNothing;
    if (mount.device == device) {
      rank = mount.root_size == 1 ? kWhole : kPart;
    } else if (id != 0 && mount.id == id) {
      rank = kById;
    }
    if (rank > best) {
      best = rank;
      keep(mount);
    }
    return best == kWhole;
  });
  syscall(SYS_close, fd);
  return best != kNothing;
}

}  // namespace sonde::io
