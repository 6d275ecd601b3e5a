#include "launcher/site/job_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "launcher/cgroup_path.h"
#include "launcher/read_file.h"

namespace sonde::launch {
namespace {

// Where the kernel's numbers for "no limit" begin.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

// Takes the last part off a path and gives it.
std::string_view TakeLast(std::string_view& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return std::exchange(path, {});
  const std::string_view last = path.substr(slash + 1);
  path = path.substr(0, slash);
  return last;
}

UniqueFd OpenDirectory(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

// On the control group of a step: how many bytes of room its daemon has. Only root may set it.
constexpr char kMark[] = "trusted.sonde.room";

// Calls `f` with the name of each step that the job has here; the extern step is never watched.
template <typename F>
void ForEachStep(int job, const F& f) {
  const int copy = ::openat(job, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return;
  DIR* const entries = ::fdopendir(copy);
  if (entries == nullptr) {
    ::close(copy);
    return;
  }
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name(entry->d_name);
    if (name.substr(0, 5) == "step_" && name != "step_extern") f(entry->d_name);
  }
  ::closedir(entries);
}

uint64_t MarkOf(int job, const char* step) {
  const UniqueFd fd(::openat(job, step, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  char text[32];
  const ssize_t size = fd ? ::fgetxattr(fd.get(), kMark, text, sizeof(text)) : -1;
  uint64_t bytes = 0;
  if (size > 0) std::from_chars(text, text + size, bytes);
  return bytes;
}

// What the daemons of a job's steps need together.
class Room {
 public:
  void Add(uint64_t bytes) {
    if (bytes == 0 || steps_ == JobMemory::kMostSteps) return;
    ++steps_;
    bytes_ += std::min(bytes, kNoLimit / JobMemory::kMostSteps);
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t steps_ = 0;
  uint64_t bytes_ = 0;
};

// Of the steps whose daemons have room.
uint64_t MarkedRoom(int job) {
  Room room;
  ForEachStep(job, [&](const char* step) { room.Add(MarkOf(job, step)); });
  return room.bytes();
}

// Where control groups cannot be marked: as if each of the job's steps had a daemon.
uint64_t RoomOfAll(int job, uint64_t bytes) {
  Room room;
  ForEachStep(job, [&](const char*) { room.Add(bytes); });
  return std::max(room.bytes(), bytes);
}

// On the file of a limit: what Slurm gave the job, and the limit that Slurm made of that. A site
// may allow more or less than it gives (AllowedRAMSpace).
constexpr char kBase[] = "trusted.sonde.base";

struct Base {
  uint64_t given = 0;
  uint64_t limit = 0;
};

std::optional<Base> ReadBase(int file) {
  char text[64];
  const ssize_t size = ::fgetxattr(file, kBase, text, sizeof(text));
  Base base;
  if (size <= 0) return std::nullopt;
  const auto [end, error] = std::from_chars(text, text + size, base.given);
  if (error != std::errc() || end == text + size) return std::nullopt;
  if (std::from_chars(end + 1, text + size, base.limit).ec != std::errc()) return std::nullopt;
  return base;
}

// The limit without the room that was made before. The first step that makes room marks the file
// before it raises the limit, so whoever finds no mark has read a limit of Slurm's own.
uint64_t LimitOfSlurm(int file, uint64_t limit, uint64_t given) {
  std::optional<Base> base = ReadBase(file);
  if (!base || base->given != given) {
    const std::string text = std::to_string(given) + " " + std::to_string(limit);
    ::fsetxattr(file, kBase, text.data(), text.size(), base ? XATTR_REPLACE : XATTR_CREATE);
    base = ReadBase(file);
  }
  return std::min(limit, base ? base->limit : given);
}

void RaiseFile(int directory, const char* file, uint64_t room, uint64_t given) {
  const UniqueFd fd(::openat(directory, file, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  char text[32];
  const ssize_t size = fd ? ::read(fd.get(), text, sizeof(text)) : 0;
  uint64_t limit = 0;
  if (size <= 0 || std::from_chars(text, text + size, limit).ec != std::errc()) return;  // "max"
  if (limit >= kNoLimit) return;
  const uint64_t wanted = LimitOfSlurm(fd.get(), limit, given) + room;
  if (wanted <= limit) return;
  const std::string raised = std::to_string(wanted);
  [[maybe_unused]] const ssize_t done = ::pwrite(fd.get(), raised.data(), raised.size(), 0);
}

}  // namespace

void JobMemory::Find(const std::string& proc, const std::string& cgroups) {
  limited_.clear();
  step_.Reset();
  const Result<std::string> text = ReadFile(proc + "/self/cgroup");
  if (!text.ok()) return;
  std::string_view path = CgroupPath(*text, "memory");
  const bool unified = path.empty();
  if (unified) path = CgroupPath(*text, "");
  if (unified && TakeLast(path) != "slurm") return;
  const std::string root = unified ? cgroups : cgroups + "/memory";
  const std::string step = root + std::string(path);
  if (TakeLast(path).substr(0, 5) != "step_") return;
  const auto add = [&](const std::string& directory) {
    if (UniqueFd fd = OpenDirectory(directory); fd) limited_.push_back({std::move(fd), unified});
  };
  add(root + std::string(path));
  if (!unified) add(step);
  step_ = OpenDirectory(step);
}

// A hard limit is raised before the soft one below it. Of version 1 the limit of memory and swap
// together comes first: the kernel refuses one that is less than the limit of memory.
void JobMemory::Raise(const Limited& limited, uint64_t room, uint64_t given) const {
  const int directory = limited.directory.get();
  if (limited.unified) {
    RaiseFile(directory, "memory.max", room, given);
    RaiseFile(directory, "memory.high", room, given);
    return;
  }
  RaiseFile(directory, "memory.memsw.limit_in_bytes", room, given);
  RaiseFile(directory, "memory.limit_in_bytes", room, given);
  RaiseFile(directory, "memory.soft_limit_in_bytes", room, given);
}

void JobMemory::MakeRoom(uint64_t bytes, uint64_t given) const {
  if (limited_.empty() || bytes == 0 || given == 0 || given >= kNoLimit) return;
  // First: an unwatched step, for which Slurm sets the limit anew meanwhile, then makes the room.
  const std::string mark = std::to_string(bytes);
  const bool marked = step_ && ::fsetxattr(step_.get(), kMark, mark.data(), mark.size(), 0) == 0;
  const int job = limited_.front().directory.get();
  const uint64_t room = marked ? MarkedRoom(job) : RoomOfAll(job, bytes);
  for (const Limited& limited : limited_) Raise(limited, room, given);
}

void JobMemory::KeepRoom(uint64_t given) const {
  if (limited_.empty() || given == 0 || given >= kNoLimit) return;
  const uint64_t room = MarkedRoom(limited_.front().directory.get());
  // A step's own limit, of version 1, is not raised: the step has no daemon.
  if (room != 0) Raise(limited_.front(), room, given);
}

}  // namespace sonde::launch
