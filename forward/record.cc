#include "forward/record.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "core/text/names.h"
#include "profiles/disk/archive_dir.h"

namespace sonde::forward {
namespace {

constexpr std::string_view kFormat = "sonde forward 1";
constexpr size_t kMaxRecord = size_t{256} << 20;
constexpr size_t kMaxGroup = 256;

template <typename T>
bool Number(std::string_view& text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return true;
}

// "TIME NODE GROUP"
bool ParseMark(std::string_view text, Marks& out) {
  Nanos time = 0;
  uint32_t node = 0;
  if (!Number(text, time) || !Number(text, node) || text.size() > kMaxGroup ||
      !names::IsPlainText(text)) {
    return false;
  }
  out[{node, std::string(text)}] = time;
  return true;
}

void Acknowledge(RecordState& state) {
  for (const auto& [stream, time] : state.intent) state.marks[stream] = time;
  state.intent.clear();
  state.split = false;
}

bool ParseLine(std::string_view line, RecordState& state) {
  const char kind = line.empty() ? ' ' : line[0];
  std::string_view rest = line.size() > 2 ? line.substr(2) : std::string_view();
  uint64_t number = 0;
  switch (kind) {
    case 'u':
      state.url = rest;
      return names::IsPlainText(rest);
    case 'm':
      return ParseMark(rest, state.marks);
    case 'i':
      return ParseMark(rest, state.intent);
    case 'a':
      Acknowledge(state);
      state.failure.clear();
      return true;
    case 'x':
      state.intent.clear();
      state.split = false;
      return true;
    case 's':
      return state.split = true;
    case 'r':
      if (!Number(rest, number)) return false;
      state.refused += number;
      return true;
    case 'n':
      if (!Number(rest, number)) return false;
      state.taken += number;
      return true;
    case 'e':
      state.failure = rest;
      return names::IsPlainText(rest);
    case 'd':
      return state.done = true;
    default:
      return false;
  }
}

std::string MarkLine(char kind, const Stream& stream, Nanos time) {
  return fmt::format("{} {} {} {}\n", kind, time, stream.first, stream.second);
}

// The journal in its shortest form.
std::string Compact(const RecordState& state) {
  std::string text = fmt::format("{}\nu {}\n", kFormat, state.url);
  if (state.taken > 0) text += fmt::format("n {}\n", state.taken);
  if (state.refused > 0) text += fmt::format("r {}\n", state.refused);
  if (!state.done) {
    for (const auto& [stream, time] : state.marks) text += MarkLine('m', stream, time);
    for (const auto& [stream, time] : state.intent) text += MarkLine('i', stream, time);
    if (state.split) text += "s\n";
    if (!state.failure.empty()) text += fmt::format("e {}\n", state.failure);
  } else {
    text += "d\n";
  }
  return text;
}

std::string Folder(const std::string& archive) { return archive + "/forward"; }

}  // namespace

Result<RecordState> ParseRecord(std::string_view text) {
  RecordState state;
  size_t number = 0;
  while (!text.empty()) {
    const size_t eol = text.find('\n');
    if (eol == std::string_view::npos) break;  // torn by a kill
    const std::string_view line = text.substr(0, eol);
    text.remove_prefix(eol + 1);
    const bool good = ++number == 1 ? line == kFormat : ParseLine(line, state);
    if (!good) return Status(Code::kCorrupt, fmt::format("line {} is wrong", number));
  }
  return state;
}

Record::Record(Record&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::move(other.lock_)),
      fd_(std::exchange(other.fd_, -1)),
      state_(std::move(other.state_)) {}

Record::~Record() {
  if (fd_ >= 0) close(fd_);
}

Result<Record> Record::Open(const std::string& archive, const std::string& key,
                            const Destination& destination, bool again) {
  const std::string folder = Folder(archive);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return ArchiveError("make " + folder, errno);
  }
  Record record;
  record.path_ = folder + "/" + key + "@" + destination.Id();
  auto lock = FileLock::Acquire(record.path_ + ".lock", 0);
  if (!lock.ok()) {
    if (lock.status().code() != Code::kBusy) return lock.status();
    return Status(Code::kBusy, "another process sends it there at this time");
  }
  record.lock_ = *std::move(lock);
  const auto text = ReadSmallFile(record.path_, kMaxRecord);
  if (text.ok() && !again) {
    auto state = ParseRecord(*text);
    if (!state.ok()) {
      return Status(Code::kCorrupt, fmt::format("{}: {}; delete it, and all is sent again",
                                                record.path_, state.status().message()));
    }
    record.state_ = *std::move(state);
  } else if (!text.ok() && text.status().code() != Code::kNotFound) {
    return text.status();
  }
  const std::string& url = destination.url;
  record.state_.url = url.substr(0, url.find('?'));
  SONDE_RETURN_IF_ERROR(WriteFileAtomically(record.path_, Compact(record.state_)));
  record.fd_ = open(record.path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (record.fd_ < 0) return SystemError("open " + record.path_);
  return record;
}

Nanos Record::Mark(const Stream& stream) const {
  const auto at = state_.marks.find(stream);
  return at == state_.marks.end() ? INT64_MIN : at->second;
}

Status Record::Append(const std::string& text) {
  const ssize_t n = write(fd_, text.data(), text.size());
  if (n == static_cast<ssize_t>(text.size())) return {};
  return ArchiveError("write " + path_, n < 0 ? errno : ENOSPC);
}

Status Record::Begin(const Marks& marks) {
  std::string text;
  for (const auto& [stream, time] : marks) text += MarkLine('i', stream, time);
  state_.intent = marks;
  return Append(text);
}

Status Record::Split() {
  state_.split = true;
  return Append("s\n");
}

Status Record::Cancel() {
  state_.intent.clear();
  state_.split = false;
  return Append("x\n");
}

Status Record::Taken(uint64_t samples, uint64_t refused) {
  Acknowledge(state_);
  state_.taken += samples;
  state_.refused += refused;
  state_.failure.clear();
  std::string text = fmt::format("a\nn {}\n", samples);
  if (refused > 0) text += fmt::format("r {}\n", refused);
  return Append(text);
}

Status Record::Failed(std::string_view why) {
  if (why == state_.failure || !names::IsPlainText(why)) return {};
  state_.failure = why;
  return Append(fmt::format("e {}\n", why));
}

Status Record::Done() {
  state_.done = true;
  SONDE_RETURN_IF_ERROR(WriteFileAtomically(path_, Compact(state_)));
  unlink((path_ + ".lock").c_str());  // processes that wait for it find that it is done
  return {};
}

std::vector<PendingRecord> ListPending(const std::string& archive) {
  constexpr size_t kIdLength = 16;
  std::vector<PendingRecord> out;
  for (const std::string& name : NamesIn(Folder(archive))) {
    const size_t at = name.rfind('@');
    if (at == std::string::npos || name.size() - at - 1 != kIdLength) continue;
    const auto text = ReadSmallFile(Folder(archive) + "/" + name, kMaxRecord);
    if (!text.ok()) continue;
    auto state = ParseRecord(*text);
    if (state.ok() && state->done) continue;
    PendingRecord pending{name.substr(0, at), name.substr(at + 1), {}};
    if (state.ok()) pending.state = *std::move(state);
    out.push_back(std::move(pending));
  }
  return out;
}

}  // namespace sonde::forward
