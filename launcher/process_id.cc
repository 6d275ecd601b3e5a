#include "launcher/process_id.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "core/unique_fd.h"
#include "launcher/cgroup_path.h"
#include "launcher/spawn.h"

namespace sonde::launch {
namespace {

struct Stat {
  char state = 0;
  bool stepd = false;  // the command's name is that of Slurm's
  pid_t parent = 0;
  pid_t session = 0;
  uint64_t start = 0;
};

// Of /proc/PID/stat: the fields behind the command's name, which may hold blanks and parentheses.
std::optional<Stat> ReadStat(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", static_cast<int>(pid));
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  char text[1024];
  const ssize_t size = ::read(fd.get(), text, sizeof(text));
  if (size <= 0) return std::nullopt;
  std::string_view rest(text, static_cast<size_t>(size));
  const size_t name_end = rest.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  Stat stat;
  stat.stepd = rest.substr(0, name_end).find("(slurmstepd") != std::string_view::npos;
  rest.remove_prefix(name_end + 1);
  constexpr int kState = 3, kParent = 4, kSession = 6, kStart = 22;
  for (int field = kState; field <= kStart; ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (word.empty()) return std::nullopt;
    const char* const end = word.data() + word.size();
    if (field == kState) stat.state = word[0];
    if (field == kParent) std::from_chars(word.data(), end, stat.parent);
    if (field == kSession) std::from_chars(word.data(), end, stat.session);
    if (field == kStart) std::from_chars(word.data(), end, stat.start);
    rest.remove_prefix(word.size());
  }
  return stat;
}

bool Ended(const Stat& stat) { return stat.state == 'Z' || stat.state == 'X'; }

bool Lives(const ProcessId& process) {
  const std::optional<Stat> stat = ReadStat(process.pid);
  return stat && stat->start == process.start && !Ended(*stat);
}

// A descriptor of the process, if the kernel has pidfds and the process lives.
UniqueFd Open(const ProcessId& process) {
#ifdef SYS_pidfd_open
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  // Only now is it certain that the number still means the same process.
  if (fd && Lives(process)) return fd;
#else
  static_cast<void>(process);
#endif
  return UniqueFd();
}

void Kill(const ProcessId& process) {
#ifdef SYS_pidfd_send_signal
  if (const UniqueFd fd = Open(process); fd) {
    ::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0);
    return;
  }
#endif
  if (Lives(process)) ::kill(process.pid, SIGKILL);
}

// Reads a small file that the kernel makes, up to a limit.
template <size_t kSize>
std::string_view ReadFile(const char* path, char (&buffer)[kSize]) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  size_t size = 0;
  ssize_t n = 0;
  while (fd && size < kSize && (n = ::read(fd.get(), buffer + size, kSize - size)) > 0) {
    size += static_cast<size_t>(n);
  }
  return {buffer, size};
}

// Calls use(pid) for each process of a control group, whose list may be long; false if there is no
// such list.
template <typename Use>
bool ForEachInGroup(const char* processes, const Use& use) {
  const UniqueFd fd(::open(processes, O_RDONLY | O_CLOEXEC));
  char text[4096];
  size_t size = 0;
  ssize_t n = 0;
  while (fd && (n = ::read(fd.get(), text + size, sizeof(text) - size)) > 0) {
    std::string_view rest(text, size + static_cast<size_t>(n));
    // A number is a line; what follows the last line is a number's first part.
    for (size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
      pid_t pid = 0;
      std::from_chars(rest.data(), rest.data() + end, pid);
      if (pid > 0) use(pid);
      rest.remove_prefix(end + 1);
    }
    size = rest.size();
    std::memmove(text, rest.data(), size);
  }
  return static_cast<bool>(fd);
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// The real user of the process, not the effective one.
std::optional<uid_t> UserOf(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/%d/status", static_cast<int>(pid));
  char buffer[4096];
  const std::string_view text = ReadFile(path, buffer);
  constexpr std::string_view kUser = "\nUid:\t";
  const size_t at = text.find(kUser);
  uid_t user = 0;
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = text.data() + at + kUser.size();
  const bool good = std::from_chars(begin, text.data() + text.size(), user).ec == std::errc();
  return good ? std::optional(user) : std::nullopt;
}

// Calls use(pid, stat) for each process.
template <typename Use>
void ForEachProcess(const Use& use) {
  DIR* const processes = ::opendir("/proc");
  if (processes == nullptr) return;
  while (const dirent* entry = ::readdir(processes)) {
    const std::string_view name(entry->d_name);
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (const std::optional<Stat> stat = ReadStat(pid); stat) use(pid, *stat);
  }
  ::closedir(processes);
}

// Whether its parent has ended: another one than a process of the user's own has taken it over.
// Tasks are slurmstepd's.
bool IsOrphan(const Stat& stat, uid_t user) {
  if (stat.parent == 1) return true;
  const std::optional<Stat> parent = ReadStat(stat.parent);
  return parent && !parent->stepd && UserOf(stat.parent) != user;
}

// Whether the daemon, which has ended, may have left it behind.
bool IsLeft(pid_t pid, const Stat& stat, const ProcessId& daemon, uid_t user) {
  return stat.start >= daemon.start && !Ended(stat) && UserOf(pid) == user && IsOrphan(stat, user);
}

// Calls for_each(kill) until that has nothing to kill: the children of one that is killed are the
// next orphans.
template <typename ForEach>
void KillInTurns(const Deadline& deadline, const ForEach& for_each) {
  for (;;) {
    bool found = false;
    for_each([&](const ProcessId& process) {
      Kill(process);
      found = true;
    });
    const int left = deadline.LeftMs();
    if (!found || left == 0) return;
    ::poll(nullptr, 0, std::min(left, 2));
  }
}

// What is looked for in the environment of a process, and where.
struct Variable {
  std::string path;
  std::string entry;  // NAME=VALUE, as it stands between others
};

// Runs in a process of its own; `step` of what it returns is whether the variable was found.
NotExecuted LookForVariable(const void* at) {
  const auto& variable = *static_cast<const Variable*>(at);
  const int fd = ::open(variable.path.c_str(), O_RDONLY | O_CLOEXEC);
  // Entries end with a zero; one that begins the environment has none before it.
  char text[16384] = {};
  size_t size = 1;
  ssize_t n = 0;
  while (fd >= 0 && (n = ::read(fd, text + size, sizeof(text) - size)) > 0) {
    size += static_cast<size_t>(n);
    if (std::string_view(text, size).find(variable.entry) != std::string_view::npos) return {1, 0};
    const size_t kept = std::min(size, variable.entry.size());
    std::memmove(text, text + size - kept, kept);
    size = kept;
  }
  return {0, 0};
}

// Whether the process was started with that "NAME=VALUE"; false if that is not known in time. The
// kernel reads from the memory of the process and may wait for what the process does there, which
// may take for ever; and an environment may be as large as its process makes it. So another
// process looks, and is killed at the deadline.
bool HasVariable(pid_t pid, const std::string& entry, const Deadline& deadline) {
  const Variable variable{"/proc/" + std::to_string(pid) + "/environ", '\0' + entry + '\0'};
  const std::chrono::milliseconds left(deadline.LeftMs());
  const Result<Spawned> looked = Spawn(LookForVariable, &variable, left);
  return looked.ok() && looked->end == Spawned::End::kNotExecuted && looked->failed.step != 0;
}

}  // namespace

std::string NameOf(const ProcessId& process) {
  return std::to_string(process.pid) + "." + std::to_string(process.start);
}

ProcessId Identify(pid_t pid) {
  const std::optional<Stat> stat = pid > 0 ? ReadStat(pid) : std::nullopt;
  return stat ? ProcessId{pid, stat->start} : ProcessId{};
}

bool WaitForEnd(const ProcessId& process, const Deadline& deadline) {
  if (process.pid == 0) return true;
  if (const UniqueFd fd = Open(process); fd) {
    pollfd waiting{fd.get(), POLLIN, 0};
    int ready = 0;
    while ((ready = ::poll(&waiting, 1, deadline.LeftMs())) < 0 && errno == EINTR) continue;
    return ready != 0;
  }
  // Before Linux 5.3 there is nothing to wait on.
  while (Lives(process)) {
    const int left = deadline.LeftMs();
    if (left == 0) return false;
    ::poll(nullptr, 0, std::min(left, 10));
  }
  return true;
}

void KillSession(const ProcessId& leader) {
  if (leader.pid == 0) return;
  Kill(leader);
  ForEachProcess([&](pid_t pid, const Stat& stat) {
    // A session's number is not reused while it has processes; older processes are not part of it.
    if (stat.session == leader.pid && stat.start >= leader.start) Kill({pid, stat.start});
  });
}

bool KillLeftInGroup(const ProcessId& daemon, uid_t user, const Deadline& deadline) {
  char own[4096];
  const std::string_view group = CgroupPath(ReadFile("/proc/self/cgroup", own), "");
  if (daemon.pid == 0 || !EndsWith(group, "/slurm") ||
      group.find("/step_") == std::string_view::npos)
    return false;
  char path[4096 + 64];
  std::snprintf(path, sizeof(path), "/sys/fs/cgroup%.*s/cgroup.procs",
                static_cast<int>(group.size()), group.data());
  bool listed = false;
  KillInTurns(deadline, [&](const auto& kill) {
    listed = ForEachInGroup(path, [&](pid_t pid) {
      const std::optional<Stat> stat = ReadStat(pid);
      if (stat && IsLeft(pid, *stat, daemon, user)) kill(ProcessId{pid, stat->start});
    });
  });
  return listed;
}

void KillOrphans(const ProcessId& daemon, uid_t user, const Deadline& deadline) {
  if (daemon.pid == 0) return;
  const std::string entry = std::string(kChildOf) + "=" + NameOf(daemon);
  KillInTurns(deadline, [&](const auto& kill) {
    ForEachProcess([&](pid_t pid, const Stat& stat) {
      if (deadline.LeftMs() == 0 || !IsLeft(pid, stat, daemon, user)) return;
      if (HasVariable(pid, entry, deadline)) kill({pid, stat.start});
    });
  });
}

}  // namespace sonde::launch
