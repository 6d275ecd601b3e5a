#include "profiles/report/local_time.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <ctime>
#include <optional>

namespace sonde {
namespace {

constexpr std::string_view kShape = "0000-00-00T00:00:00Z";  // of FormatTime; 0: any digit

std::optional<std::tm> LocalOf(Nanos time) {
  const auto seconds = static_cast<time_t>(time / kSecond - (time % kSecond < 0 ? 1 : 0));
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return std::nullopt;
  return local;
}

std::string ZoneOf(const std::tm& local) { return local.tm_zone == nullptr ? "" : local.tm_zone; }

bool HasShape(std::string_view text) {
  if (text.size() < kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == '0' ? !digit : text[i] != kShape[i]) return false;
  }
  return true;
}

std::optional<Nanos> TimeIn(std::string_view text) {
  std::tm utc{};
  const std::string copy(text.substr(0, kShape.size()));
  const char* end = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const time_t seconds = ::timegm(&utc);
  if (seconds < 0 || seconds > INT64_MAX / kSecond) return std::nullopt;
  return static_cast<Nanos>(seconds) * kSecond;
}

}  // namespace

std::string ZoneName(Nanos time) {
  const auto local = LocalOf(time);
  return local ? ZoneOf(*local) : "";
}

std::string FormatLocalMinute(Nanos time) {
  const auto local = LocalOf(time);
  return local ? fmt::format("{:%Y-%m-%d %H:%M}", *local) : "-";
}

std::string FormatLocalTime(Nanos time) {
  const auto local = LocalOf(time);
  if (!local) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M:%S} {}", *local, ZoneOf(*local));
}

std::string FormatLocalSpan(Nanos begin, Nanos end) {
  const auto from = LocalOf(begin);
  const auto to = LocalOf(end);
  if (!from || !to || ZoneOf(*from) != ZoneOf(*to)) {
    return FormatLocalTime(begin) + " to " + FormatLocalTime(end);
  }
  const bool same_day = from->tm_year == to->tm_year && from->tm_yday == to->tm_yday;
  return fmt::format(
      "{:%Y-%m-%d %H:%M:%S} to {} {}", *from,
      same_day ? fmt::format("{:%H:%M:%S}", *to) : fmt::format("{:%Y-%m-%d %H:%M:%S}", *to),
      ZoneOf(*to));
}

std::string LocalTimesIn(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto time = HasShape(text) ? TimeIn(text) : std::nullopt;
    if (time) {
      out += FormatLocalTime(*time);
      text.remove_prefix(kShape.size());
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace sonde
