#include "core/time_zone.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace sonde {
namespace {

constexpr const char* kFolder = "/usr/share/zoneinfo/";
constexpr size_t kMaxName = 64;
constexpr int64_t kDay = 86400;
constexpr int64_t kMaxOffset = 7 * kDay;        // of a POSIX TZ string; far more than there is
constexpr int64_t kFarTime = int64_t{1} << 39;  // within the years that <chrono> knows

Status Damaged(std::string_view what) {
  return {Code::kCorrupt, fmt::format("read a time zone's file: {}", what)};
}

// Whether a name leads to a file within the folder.
bool IsZoneName(std::string_view name) {
  constexpr std::string_view kChars =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-_/";
  return !name.empty() && name.size() <= kMaxName && name.front() != '/' &&
         name.find_first_not_of(kChars) == std::string_view::npos;
}

// Numbers of the file, which has the high byte first.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}

  int64_t Number(size_t size) {
    if (bytes_.size() < size) {
      ok_ = false;
      return 0;
    }
    auto value = static_cast<uint64_t>(size > 1 && (bytes_.front() & 0x80) != 0 ? -1 : 0);
    for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<uint8_t>(bytes_[i]);
    bytes_.remove_prefix(size);
    return static_cast<int64_t>(value);
  }
  void Skip(size_t size) {
    ok_ = ok_ && size <= bytes_.size();
    bytes_.remove_prefix(std::min(size, bytes_.size()));
  }
  bool ok() const { return ok_; }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

struct Header {
  char version = 0;
  size_t utc = 0, standard = 0, leaps = 0, times = 0, types = 0, letters = 0;

  // The data behind the header, with times of so many bytes.
  size_t DataSize(size_t time) const {
    return times * (time + 1) + types * 6 + letters + leaps * (time + 4) + standard + utc;
  }
};

bool ReadHeader(Input& in, Header& header) {
  if (!in.rest().starts_with("TZif")) return false;
  in.Skip(4);
  header.version = static_cast<char>(in.Number(1));
  in.Skip(15);
  for (size_t* count : {&header.utc, &header.standard, &header.leaps, &header.times, &header.types,
                        &header.letters}) {
    const int64_t value = in.Number(4);
    if (value < 0 || value > static_cast<int64_t>(TimeZone::kMaxFile)) return false;
    *count = static_cast<size_t>(value);
  }
  return in.ok();
}

int64_t DaysBefore(int year, int month, int day) {
  using namespace std::chrono;
  return sys_days(std::chrono::year(year) / month / day).time_since_epoch().count();
}

int YearOf(int64_t local) {
  using namespace std::chrono;
  const int64_t days = local / kDay - (local % kDay < 0 ? 1 : 0);
  return static_cast<int>(year_month_day(sys_days(std::chrono::days(days))).year());
}

}  // namespace

// --- What holds for ever ---

int64_t TimeZone::Change::At(int year) const {
  if (kind == Kind::kDay) return (DaysBefore(year, 1, 1) + day) * kDay + second;
  if (kind == Kind::kJulian) {
    const bool leap = std::chrono::year(year).is_leap();
    return (DaysBefore(year, 1, 1) + day - (leap && day >= 60 ? 0 : 1)) * kDay + second;
  }
  using namespace std::chrono;
  const auto of_month = std::chrono::year(year) / month;
  const sys_days at = week == 5 ? sys_days(of_month / weekday(day)[last])
                                : sys_days(of_month / weekday(day)[static_cast<unsigned>(week)]);
  return at.time_since_epoch().count() * kDay + second;
}

int64_t TimeZone::Rule::OffsetAt(int64_t time) const {
  if (!changes) return standard;
  const int year = YearOf(time + standard);
  const int64_t begin = to_daylight.At(year) - standard;
  const int64_t end = to_standard.At(year) - daylight;
  const bool light = begin < end ? time >= begin && time < end : !(time >= end && time < begin);
  return light ? daylight : standard;
}

// "CET-1CEST,M3.5.0,M10.5.0/3", "<-03>3".
class TimeZone::RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}

  bool Read(Rule& rule) {
    if (!Name() || !Offset(rule.standard)) return false;
    rule.standard = -rule.standard;  // POSIX counts to the west
    if (text_.empty()) return true;
    rule.changes = true;
    rule.daylight = rule.standard + 3600;
    if (!Name()) return false;
    if (!text_.empty() && text_.front() != ',') {
      if (!Offset(rule.daylight)) return false;
      rule.daylight = -rule.daylight;
    }
    return Day(rule.to_daylight) && Day(rule.to_standard) && text_.empty();
  }

 private:
  bool Take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool Name() {
    if (Take('<')) {
      const size_t end = text_.find('>');
      if (end == std::string_view::npos) return false;
      text_.remove_prefix(end + 1);
      return true;
    }
    const size_t end = std::min(text_.find_first_of("+-,0123456789"), text_.size());
    text_.remove_prefix(end);
    return end >= 3;
  }
  bool Number(int64_t most, int64_t& out) {
    out = 0;
    size_t digits = 0;
    for (; digits < 4 && !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; ++digits) {
      out = out * 10 + (text_.front() - '0');
      text_.remove_prefix(1);
    }
    return digits > 0 && out <= most;
  }
  // "-3:30:00"
  bool Offset(int64_t& out) {
    const bool minus = Take('-');
    if (!minus) Take('+');
    int64_t hours = 0, minutes = 0, seconds = 0;
    if (!Number(167, hours)) return false;
    if (Take(':') && !Number(59, minutes)) return false;
    if (Take(':') && !Number(59, seconds)) return false;
    out = (hours * 60 + minutes) * 60 + seconds;
    if (minus) out = -out;
    return true;
  }
  // ",M3.5.0/2"
  bool Day(Change& change) {
    if (!Take(',')) return false;
    int64_t month = 1, week = 1, day = 0;
    bool read = false;
    if (Take('M')) {
      read = Number(12, month) && Take('.') && Number(5, week) && Take('.') && Number(6, day) &&
             month > 0 && week > 0;
    } else if (Take('J')) {
      change.kind = Change::Kind::kJulian;
      read = Number(365, day) && day > 0;
    } else {
      change.kind = Change::Kind::kDay;
      read = Number(365, day);
    }
    change.month = static_cast<int>(month);
    change.week = static_cast<int>(week);
    change.day = static_cast<int>(day);
    return read && (!Take('/') || Offset(change.second));
  }

  std::string_view text_;
};

// --- The file ---

Result<TimeZone> TimeZone::Decode(std::string_view tzif) {
  Input in(tzif);
  Header header;
  if (tzif.size() > kMaxFile || !ReadHeader(in, header)) return Damaged("it is no TZif file");
  if (header.version < '2') return Damaged("it has no 64-bit times");
  in.Skip(header.DataSize(4));
  if (!ReadHeader(in, header) || header.DataSize(8) > in.rest().size() || header.types == 0) {
    return Damaged("it is damaged");
  }
  if (header.leaps != 0) return Damaged("it counts leap seconds");

  TimeZone zone;
  for (size_t i = 0; i < header.times; ++i) {
    const int64_t time = in.Number(8);
    if (!zone.transitions_.empty() && time <= zone.transitions_.back()) {
      return Damaged("its times are in no order");
    }
    zone.transitions_.push_back(time);
  }
  std::vector<size_t> kinds;
  for (size_t i = 0; i < header.times; ++i) kinds.push_back(static_cast<size_t>(in.Number(1)));
  std::vector<int64_t> offsets;
  for (size_t i = 0; i < header.types; ++i) {
    offsets.push_back(in.Number(4));
    if (std::abs(offsets.back()) > kMaxOffset) return Damaged("an offset is too large");
    in.Skip(2);
  }
  for (const size_t kind : kinds) {
    if (kind >= offsets.size()) return Damaged("it names a type that it has not");
    zone.offsets_.push_back(offsets[kind]);
  }
  zone.first_ = offsets.front();
  in.Skip(header.letters + header.standard + header.utc);
  const std::string_view footer = in.rest();
  if (footer.size() < 2 || footer.front() != '\n' || footer.back() != '\n') {
    return Damaged("its last line is missing");
  }
  if (footer.size() == 2) return zone;
  Rule rule;
  if (!RuleReader(footer.substr(1, footer.size() - 2)).Read(rule)) {
    return Damaged("its last line is no rule");
  }
  zone.rule_ = rule;
  return zone;
}

Result<TimeZone> TimeZone::Load(std::string_view name) {
  if (name.empty() || name == "UTC") return TimeZone();
  const auto unknown = [&] {
    return Status(Code::kInvalid,
                  fmt::format("there is no time zone '{}' on this machine; expected a name of the "
                              "tz database, such as Europe/Berlin",
                              name.substr(0, kMaxName)));
  };
  if (!IsZoneName(name)) return unknown();
  const std::string path = std::string(kFolder).append(name);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return unknown();
  std::string bytes(kMaxFile + 1, '\0');
  const ssize_t size = read(file, bytes.data(), bytes.size());
  close(file);
  if (size <= 0) return unknown();  // a folder, such as Europe
  bytes.resize(static_cast<size_t>(size));
  Result<TimeZone> zone = Decode(bytes);
  if (!zone.ok()) return zone.status().Within(path);
  return zone;
}

int64_t TimeZone::OffsetAt(int64_t time) const {
  time = std::clamp(time, -kFarTime, kFarTime);
  const auto after = std::upper_bound(transitions_.begin(), transitions_.end(), time);
  if (after == transitions_.end() && rule_) return rule_->OffsetAt(time);
  if (after == transitions_.begin()) return first_;
  return offsets_[static_cast<size_t>(after - transitions_.begin()) - 1];
}

int64_t TimeZone::FromLocal(int64_t local) const {
  const int64_t before = OffsetAt(local - kDay);
  const int64_t after = OffsetAt(local + kDay);
  if (OffsetAt(local - before) == before || OffsetAt(local - after) != after) return local - before;
  return local - after;
}

}  // namespace sonde
