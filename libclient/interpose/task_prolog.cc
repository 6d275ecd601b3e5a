#include "libclient/interpose/task_prolog.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "launcher/preload.h"

namespace sonde::interpose {
namespace {

// Programs have functions of these names themselves, such as bash its getenv, and libsonde-io has
// those for files: neither is ready when a constructor runs.
const char* Value(const char* name) {
  const size_t size = strlen(name);
  for (char** at = environ; *at != nullptr; ++at) {
    if (strncmp(*at, name, size) == 0 && (*at)[size] == '=') return *at + size + 1;
  }
  return nullptr;
}

bool RunsSlurmstepd(pid_t pid) {
  char text[32];
  snprintf(text, sizeof(text), "/proc/%d/comm", static_cast<int>(pid));
  const long fd = syscall(SYS_openat, AT_FDCWD, text, O_RDONLY | O_CLOEXEC);
  // With hidepid, /proc does not show a process that was root and has not become another program
  // since; it shows the task's program.
  if (fd < 0) return true;
  const long size = syscall(SYS_read, fd, text, sizeof(text));
  syscall(SYS_close, fd);
  constexpr char kName[] = "slurmstepd";
  return size >= static_cast<long>(strlen(kName)) && memcmp(text, kName, strlen(kName)) == 0;
}

// Functions of string_view that may throw would need the C++ library.
bool IsOurs(const char* entry, size_t size) {
  for (const std::string_view ours : preload::kAll) {
    if (size <= ours.size()) continue;
    const char* const end = entry + size - ours.size();
    if (end[-1] == '/' && memcmp(end, ours.data(), ours.size()) == 0) return true;
  }
  return false;
}

void ForgetPreloaded() {
  // In place: what is left is never longer.
  char* const value = const_cast<char*>(Value(preload::kVariable));
  if (value == nullptr) return;
  char* kept = value;
  for (const char* entry = value; *entry != '\0';) {
    const size_t size = strcspn(entry, ": ");
    const char* const next = entry + size + (entry[size] != '\0' ? 1 : 0);
    if (size > 0 && !IsOurs(entry, size)) {
      if (kept != value) *kept++ = ':';
      memmove(kept, entry, size);
      kept += size;
    }
    entry = next;
  }
  *kept = '\0';
  if (kept != value) return;
  char** at = environ;
  while (*at + strlen(preload::kVariable) + 1 != value) ++at;
  for (; *at != nullptr; ++at) at[0] = at[1];
}

__attribute__((constructor)) void AtStart() {
  if (IsTaskProlog()) ForgetPreloaded();
}

}  // namespace

bool IsTaskProlog() {
  const char* const task = Value("SLURM_TASK_PID");
  const pid_t parent = getppid();
  return task != nullptr && strtol(task, nullptr, 10) == parent && RunsSlurmstepd(parent);
}

}  // namespace sonde::interpose
