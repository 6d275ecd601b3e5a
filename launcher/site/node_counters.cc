#include "launcher/site/node_counters.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace sonde::launch {
namespace {

constexpr std::string_view kStarts = "sonde_daemon_starts_total";
constexpr std::string_view kFailures = "sonde_daemon_failures_total";
constexpr std::string_view kLastFailure = "sonde_daemon_last_failure_timestamp_seconds";

constexpr int kLockTries = 5;  // each 1 ms after the one before
constexpr size_t kMostText = 8192;

void AddHelp(std::string& text, std::string_view name, std::string_view type,
             std::string_view help) {
  text.append("# HELP ").append(name).append(" ").append(help).append("\n");
  text.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void AddValue(std::string& text, std::string_view name, std::string_view node,
              std::string_view reason, uint64_t value) {
  text.append(name).append("{node=\"").append(node).append("\"");
  if (!reason.empty()) text.append(",reason=\"").append(reason).append("\"");
  text.append("} ").append(std::to_string(value)).append("\n");
}

// The name of a file and the value of a label.
bool IsPlainName(std::string_view name) {
  if (name.empty() || name.size() > 200 || name.front() == '.') return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '_') return false;
  }
  return true;
}

// Not a link, and nobody else's to write to: it is root that writes here.
Result<UniqueFd> OpenStateDirectory(const std::string& directory) {
  const bool made = ::mkdir(directory.c_str(), 0755) == 0;
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return SystemError("open directory " + directory);
  if (made) ::fchmod(fd.get(), 0755);  // whatever the umask
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return SystemError("look at directory " + directory);
  if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Status(Code::kPermission,
                  "directory " + directory + " must be root's, and nobody else's to write to");
  }
  return fd;
}

Result<UniqueFd> Lock(int directory, const std::string& node) {
  UniqueFd fd(::openat(directory, ("." + node + ".lock").c_str(),
                       O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return SystemError("open the lock");
  for (int i = 0; i < kLockTries; ++i) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    ::poll(nullptr, 0, 1);
  }
  return Status(Code::kBusy, "others count at the moment");
}

std::string ReadText(int directory, const std::string& name) {
  const UniqueFd fd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::string text(kMostText, '\0');
  const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : 0;
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

// Whoever reads sees the old text or the new one.
Status Replace(int directory, const std::string& name, std::string_view text) {
  const std::string made = "." + name + ".new";
  UniqueFd fd(::openat(directory, made.c_str(),
                       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) return SystemError("make " + made);
  ::fchmod(fd.get(), 0644);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::renameat(directory, made.c_str(), directory, name.c_str()) != 0) {
    return SystemError("write " + name);
  }
  return {};
}

}  // namespace

std::string WriteCounters(const NodeCounters& counters, std::string_view node) {
  std::string text;
  AddHelp(text, kStarts, "counter", "Daemons of watched steps that were started on this node.");
  AddValue(text, kStarts, node, "", counters.starts);
  AddHelp(
      text, kFailures, "counter",
      "Daemons that could not start, said why they failed, crashed, were killed by others, could "
      "not store the profile, or had not finished in time and were killed.");
  for (size_t i = 0; i < std::size(NodeCounters::kReasons); ++i) {
    AddValue(text, kFailures, node, NodeCounters::kReasons[i], counters.failures[i].count);
  }
  AddHelp(text, kLastFailure, "gauge", "When a daemon last failed in that way; 0: never.");
  for (size_t i = 0; i < std::size(NodeCounters::kReasons); ++i) {
    AddValue(text, kLastFailure, node, NodeCounters::kReasons[i], counters.failures[i].last);
  }
  return text;
}

NodeCounters ReadCounters(std::string_view text) {
  NodeCounters counters;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view name = line.substr(0, line.find('{'));
    const size_t end = line.rfind("} ");
    if (line.empty() || line.front() == '#' || end == std::string_view::npos) continue;
    uint64_t value = 0;
    std::from_chars(line.data() + end + 2, line.data() + line.size(), value);
    if (name == kStarts) counters.starts = value;
    for (size_t i = 0; i < std::size(NodeCounters::kReasons); ++i) {
      const std::string label = "reason=\"" + std::string(NodeCounters::kReasons[i]) + "\"";
      if (!line.substr(0, end).ends_with(label)) continue;
      if (name == kFailures) counters.failures[i].count = value;
      if (name == kLastFailure) counters.failures[i].last = value;
    }
  }
  return counters;
}

Status NodeCounting::Open(const std::string& directory, const std::string& node) {
  node_ = node;
  Result<UniqueFd> opened = IsPlainName(node)
                                ? OpenStateDirectory(directory)
                                : Status(Code::kInvalid, "'" + node + "' is no name for a file");
  no_directory_ = opened.ok() ? Status() : opened.status();
  if (opened.ok()) directory_ = *std::move(opened);
  return no_directory_;
}

Status NodeCounting::Count(std::optional<FailureKind> failure, time_t now) const {
  if (!directory_) return no_directory_;
  const Result<UniqueFd> lock = Lock(directory_.get(), node_);
  if (!lock.ok()) return lock.status();
  const std::string name = node_ + ".prom";
  NodeCounters counters = ReadCounters(ReadText(directory_.get(), name));
  if (failure) {
    NodeCounters::Failures& failures = counters.failures[static_cast<size_t>(*failure)];
    ++failures.count;
    failures.last = static_cast<uint64_t>(now);
  } else {
    ++counters.starts;
  }
  return Replace(directory_.get(), name, WriteCounters(counters, node_));
}

}  // namespace sonde::launch
