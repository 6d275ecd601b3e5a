#include "cli/command.h"

#include <fmt/core.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "cli/progress.h"
#include "core/text/printable.h"
#include "profiles/archive/listed_cards.h"
#include "profiles/model/text.h"
#include "profiles/report/report.h"
#include "profiles/upkeep/retention.h"

namespace sonde::cli {
namespace {

constexpr size_t kAnyWidth = 100'000;
constexpr size_t kNarrowest = 40;
constexpr Nanos kPruneFor = 20 * kMillisecond;
constexpr Nanos kIndexFor = 5 * kSecond;
constexpr Nanos kIndexAll = 86400 * kSecond;

std::string_view Get(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

bool IsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = Get(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos ||
           value.find("utf8") != std::string_view::npos;
  }
  return false;
}

size_t TerminalWidth(bool terminal) {
  winsize size{};
  if (terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::max<size_t>(size.ws_col, kNarrowest);
  }
  const long columns = std::strtol(std::string(Get("COLUMNS")).c_str(), nullptr, 10);
  if (columns > 0) return std::max(static_cast<size_t>(columns), kNarrowest);
  return terminal ? 80 : kAnyWidth;
}

}  // namespace

Environment DetectEnvironment() {
  Environment env;
  env.uid = ::geteuid();
  if (const passwd* entry = ::getpwuid(env.uid)) {
    env.user = entry->pw_name;
    env.home = entry->pw_dir;
  }
  if (const std::string_view home = Get("HOME"); !home.empty()) env.home = home;
  env.terminal = ::isatty(STDOUT_FILENO) == 1;
  env.colour = env.terminal && Get("NO_COLOR").empty() && Get("TERM") != "dumb";
  env.unicode = IsUtf8();
  env.width = TerminalWidth(env.terminal);
  return env;
}

void Note(std::string_view text) {
  const std::string line = "sonde: " + text::Printable(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int Fail(const Status& status) {
  Note(status.message());
  return status.code() == Code::kNotFound ? kNotFound : kFailed;
}

int FailUsage(std::string_view text) {
  Note(text);
  return kUsage;
}

int FailUsage(const Status& status) {
  Note(status.message());
  return status.code() == Code::kInvalid ? kUsage : kFailed;
}

std::string Shown(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find_first_of("\n\t\x1b"));
    shown += Printable(piece);
    text.remove_prefix(piece.size());
    if (text.empty()) break;
    const auto colour = std::find_if(std::begin(kReportColours), std::end(kReportColours),
                                     [&](std::string_view one) { return text.starts_with(one); });
    const bool is_code = text[0] == '\x1b', known = colour != std::end(kReportColours);
    const std::string_view kept = known ? *colour : text.substr(0, 1);
    shown += is_code && !known ? "?" : kept;
    text.remove_prefix(kept.size());
  }
  return shown;
}

int Print(std::string_view whole) {
  const std::string shown = Shown(whole);
  std::string_view text = shown;
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE) return kDone;
    if (n < 0) return Fail(SystemError("write to stdout"));
    text.remove_prefix(static_cast<size_t>(n));
  }
  return kDone;
}

std::string OwnStep() {
  const char* job = std::getenv("SLURM_JOB_ID");
  const char* step = std::getenv("SLURM_STEP_ID");
  if (job == nullptr) return {};
  return step == nullptr ? job : fmt::format("{}.{}", job, step);
}

Result<std::string> ArchiveDirectory(const Environment& env) {
  std::string path = env.archive;
  if (path.empty()) {
    const auto config = LoadConfig(env.config_path);
    if (!config.ok()) return config.status();
    path = ArchivePath(*config, env.user, env.uid, env.home);
  }
  if (path.empty() || path[0] != '/') {
    return Status(Code::kInvalid, "the archive '" + path + "' is no absolute path");
  }
  return path;
}

Result<OpenedArchive> OpenArchive(const Environment& env, ArchiveUse use) {
  const auto path = ArchiveDirectory(env);
  if (!path.ok()) return path.status();
  Progress progress("moving finished steps into the archive", "steps");
  auto archive = sonde::OpenArchive(
      *path, kSecond, [&](size_t done, size_t total) { progress.Set(done, total); }, use);
  progress.End();
  if (!archive.ok()) return archive;
  if (!archive->reader->note().empty()) Note(archive->reader->note());
  // The limits are for the archive of the configuration, not for other archives.
  if (!env.archive.empty() || !archive->owned()) return archive;
  const auto config = LoadConfig(env.config_path);
  if (config.ok() && RetentionOf(*config).any()) {
    const auto pruned =
        archive->owner->Prune(RetentionOf(*config), Clock::System().Now(), kPruneFor);
    if (!pruned.ok()) Note(pruned.status().message());
  }
  return archive;
}

void NoteDamage(const Archive& archive) {
  std::string damage;
  for (const std::string& one : archive.damage()) {
    // The note was printed when the archive was opened.
    if (archive.note().find(one) == std::string::npos) damage += (damage.empty() ? "" : "; ") + one;
  }
  if (damage.empty()) return;
  Note("some of the archive could not be read, the rest is here: " + damage +
       "; 'sonde archive verify' tells what is lost, 'sonde archive repair' mends it");
}

Result<OpenedArchive> OpenIndexed(const Environment& env, bool all, ArchiveUse use) {
  auto archive = OpenArchive(env, use);
  if (!archive.ok() || archive->owner == nullptr) return archive;
  Progress progress("indexing the archive", "profiles");
  uint64_t made = 0;
  uint64_t profiles = 0;
  const auto complete = archive->owner->BuildIndexes(
      all ? kIndexAll : kIndexFor,
      [&](uint64_t done, uint64_t total) { progress.Set(made = done, profiles = total); });
  progress.End();
  if (!complete.ok()) {
    Note(complete.status().message());
  } else if (!*complete) {
    Note(
        fmt::format("the archive is being indexed, {} of {} profiles by now; the next commands go "
                    "on with it and are faster",
                    made, profiles));
  }
  return archive;
}

Result<ProfileEntry> FindRunning(const Archive& archive, std::string_view id) {
  const auto found = FindSteps(archive, id);
  if (!found.ok()) return found.status();
  const ProfileEntry* running = nullptr;
  for (const ProfileEntry& entry : *found) {
    if (entry.running && (running == nullptr || running->endpoint.port == 0)) running = &entry;
  }
  if (running == nullptr) {
    return Status(Code::kNotFound,
                  fmt::format("{} is not running any more; 'sonde show {}' prints its report, "
                              "'sonde serve' shows it in a browser",
                              id, id));
  }
  if (running->endpoint.port == 0) {
    return Status(Code::kNotFound,
                  fmt::format("{} is running but serves no pages (http = off, or it has only just "
                              "started)",
                              id));
  }
  return *running;
}

}  // namespace sonde::cli
