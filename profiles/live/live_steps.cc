#include "profiles/live/live_steps.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/unique_fd.h"
#include "profiles/disk/file_lock.h"
#include "profiles/json/parse.h"
#include "profiles/model/profile.h"
#include "profiles/records/keys.h"

namespace sonde {
namespace {

constexpr size_t kMaxSmallFile = 64u << 10;
// On a file system whose locks other hosts do not see, a writer elsewhere counts as alive for this
// long after it last wrote.
constexpr Nanos kRemoteSilence = 600 * kSecond;

// By the time of its last sign. If the clock was set back since, the time is no sign of life.
bool IsSilent(Nanos now, Nanos sign) { return std::abs(now - sign) >= kRemoteSilence; }

// When its writer last showed that it is alive.
Result<Nanos> LastSign(const LivePaths& paths) {
  const auto blocks = NewestChange(paths.blocks());
  const auto all = NewestChange(paths.dir);
  if (!blocks.ok() || !all.ok()) return blocks.ok() ? all : blocks;
  return std::max(*blocks, *all);
}

void LookForWriter(std::string_view host, LiveStep& step) {
  step.running = FileLock::IsLocked(step.paths.lock());
  if (step.running || host.empty() || host == HostName()) return;
  const auto sign = LastSign(step.paths);
  step.running = !sign.ok() || !IsSilent(Clock::System().Now(), *sign);
  step.foreign = !step.running;
}

// If its description can be read.
void Describe(KeptRecords* kept, LiveStep& step) {
  const auto text = ReadSmallFile(step.paths.description(), kMaxJsonBytes);
  if (!text.ok()) return;
  KeptRecords none;
  const auto job = (kept != nullptr ? *kept : none).descriptions.Parse(step.key, *text);
  if (job.ok() && keys::ProfileKey(**job) == step.key) step.job = **job;
}

}  // namespace

std::string LockText(std::string_view host, std::string_view failure) {
  constexpr size_t kMost = 1024;  // of the one disk block that the file has
  std::string text(host);
  if (!failure.empty()) text += "\n" + std::string(failure.substr(0, kMost));
  return text;
}

Result<LiveStep> ReadLive(const ArchivePaths& archive, const std::string& name,
                          const LiveScan& scan) {
  LiveStep step;
  step.name = name;
  step.key = keys::KeyOfName(name);
  const auto from_key = keys::DescribeKey(step.key);
  if (name.empty() || name[0] == kHidden || name.ends_with(kCorruptSuffix) || !from_key) {
    return Status(Code::kNotFound, "'" + name + "' is no step");
  }
  if (scan.key && step.key != *scan.key) {
    return Status(Code::kNotFound, "'" + name + "' is another step");
  }
  step.paths = LivePaths(archive.live() + "/" + name);
  const auto lock = ReadSmallFile(step.paths.lock(), kMaxSmallFile);
  const std::string said = lock.ok() ? *lock : "";
  const size_t line = said.find('\n');
  if (line != std::string::npos) step.failure = said.substr(line + 1);
  LookForWriter(std::string_view(said).substr(0, line), step);
  // It may name another host.
  step.running |= IsUnread(lock.status());
  step.job = *from_key;
  if (scan.described) Describe(scan.kept, step);
  if (step.running) {
    const auto text = ReadSmallFile(step.paths.endpoint(), kMaxSmallFile);
    auto endpoint = text.ok() ? EndpointFromJson(*text) : text.status();
    if (endpoint.ok()) step.endpoint = *std::move(endpoint);
  }
  return step;
}

Result<std::vector<LiveStep>> ScanLive(const ArchivePaths& archive, const LiveScan& scan) {
  std::vector<LiveStep> steps;
  const auto names = ListNames(archive.live());
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    auto step = ReadLive(archive, name, scan);
    if (step.ok()) steps.push_back(*std::move(step));
  }
  return steps;
}

Result<std::string> UnusedName(const ArchivePaths& archive, std::string_view kind,
                               std::string_view name) {
  const auto number = RandomNumber();
  if (!number.ok()) return number.status();
  return fmt::format("{}/{}{}-{:016x}-{}", archive.live(), kHidden, kind, *number, name);
}

void RemoveLive(const ArchivePaths& archive, const LivePaths& step) {
  std::error_code ignored;
  const auto hidden = UnusedName(archive, "gone", step.dir.substr(step.dir.rfind('/') + 1));
  const bool renamed = hidden.ok() && std::rename(step.dir.c_str(), hidden->c_str()) == 0;
  // On a full disk there may be no room for a name, and all the more reason to delete it.
  std::filesystem::remove_all(renamed ? *hidden : step.dir, ignored);
}

Result<LiveStep> TakeAbandoned(const ArchivePaths& archive, const LiveStep& step) {
  constexpr int kMaxNames = 1000;
  // By the file system's clock, which may differ from this host's.
  const auto now = FileSystemTime(archive.live());
  if (!now.ok()) return now.status();
  const auto sign = LastSign(step.paths);
  if (!sign.ok()) return sign.status();
  if (!IsSilent(*now, *sign)) {
    return Status(Code::kBusy, step.paths.dir + ": its writer was active less than 10 minutes ago");
  }
  LiveStep taken = step;
  taken.foreign = false;
  taken.taken_from = step.name;
  // A directory that is there and not empty is not replaced.
  for (int part = 2; part <= kMaxNames; ++part) {
    taken.name = step.key + "~" + std::to_string(part);
    taken.paths = LivePaths(archive.live() + "/" + taken.name);
    if (taken.name == step.name) continue;
    if (std::rename(step.paths.dir.c_str(), taken.paths.dir.c_str()) == 0) return taken;
    if (errno != ENOTEMPTY && errno != EEXIST) break;
  }
  return ArchiveError("take " + step.paths.dir, errno);
}

Status LeaveToHolder(const ArchivePaths& archive, const std::string& name) {
  if (::mkdir(archive.waiting().c_str(), 0700) != 0 && errno != EEXIST) {
    return ArchiveError("make directory " + archive.waiting(), errno);
  }
  const std::string path = archive.waiting() + "/" + name;
  const UniqueFd fd = OpenRegular(path, O_WRONLY | O_CREAT);
  return fd.get() >= 0 ? Status() : ArchiveError("make " + path, errno);
}

void ForgetWaiting(const ArchivePaths& archive, const std::string& name) {
  ::unlink((archive.waiting() + "/" + name).c_str());
}

Result<std::set<std::string>> LiveKeys(const ArchivePaths& archive) {
  const auto steps = ScanLive(archive, {.described = false});
  if (!steps.ok()) return steps.status();
  std::set<std::string> keys;
  for (const LiveStep& step : *steps) keys.insert(step.key);
  return keys;
}

Result<Heritage> ReadHeritage(const std::string& archive, const JobDescription& job) {
  const std::string key = keys::ProfileKey(job);
  Result<Heritage> newest = Status(Code::kNotFound, "nothing of this step is in " + archive);
  Nanos newest_change = -1;
  auto steps = ScanLive(ArchivePaths(archive), {.key = key});
  if (!steps.ok()) return steps.status();
  for (LiveStep& step : *steps) {
    auto state = ReadSmallFile(step.paths.state(), kMaxState);
    const auto changed = NewestChange(step.paths.dir);
    const Nanos change = state.ok() && changed.ok() ? *changed : 0;
    if (change <= newest_change) continue;
    newest_change = change;
    newest = Heritage{std::move(step.job), std::move(state)};
  }
  return newest;
}

}  // namespace sonde
