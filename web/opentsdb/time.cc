// The times of OpenTSDB's requests.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

#include "web/http/json_input.h"
#include "web/opentsdb/request.h"

namespace sonde::web {
namespace {

constexpr Nanos kMaxTime = Nanos{9'000'000'000} * kSecond;  // a Nanos holds it

bool AllDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<Nanos> BadTime(std::string_view text) {
  return Status(Code::kInvalid,
                fmt::format("'{}' is no time; expected seconds or milliseconds since 1970, now, "
                            "5m-ago or 2026/01/31-10:00:30",
                            text));
}

// The unit of a relative time as in OpenTSDB: a year is 365 days, a month 30.
Nanos UnitOf(std::string_view unit) {
  constexpr Nanos kDay = 86400 * kSecond;
  if (unit == "ms") return kMillisecond;
  if (unit == "s") return kSecond;
  if (unit == "m") return 60 * kSecond;
  if (unit == "h") return 3600 * kSecond;
  if (unit == "d") return kDay;
  if (unit == "w") return 7 * kDay;
  if (unit == "n") return 30 * kDay;
  if (unit == "y") return 365 * kDay;
  return 0;
}

Result<Nanos> ParseAgo(std::string_view text, Nanos now) {
  const std::string_view span = text.substr(0, text.size() - 4);  // without "-ago"
  int64_t count = 0;
  const auto [end, error] = std::from_chars(span.data(), span.data() + span.size(), count);
  const Nanos unit = UnitOf(span.substr(static_cast<size_t>(end - span.data())));
  if (error != std::errc() || count < 0 || unit == 0) return BadTime(text);
  if (count > now / unit) return Nanos{0};
  return now - count * unit;
}

Result<Nanos> ParseDate(std::string_view text, const TimeZone& zone) {
  std::string copy(text);
  std::replace(copy.begin(), copy.end(), '-', ' ');
  for (const char* format : {"%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d"}) {
    std::tm parts{};
    const char* end = strptime(copy.c_str(), format, &parts);
    if (end == nullptr || *end != '\0') continue;
    const int64_t seconds = zone.FromLocal(timegm(&parts));
    if (seconds < 0 || seconds > kMaxTime / kSecond) break;
    return seconds * kSecond;
  }
  return BadTime(text);
}

Result<Nanos> ParseNumericTime(std::string_view digits, std::string_view text, bool milliseconds) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) return BadTime(text);
  const Nanos unit = milliseconds || digits.size() > 10 ? kMillisecond : kSecond;
  if (value > kMaxTime / unit) return BadTime(text);
  return value * unit;
}

}  // namespace

Result<Nanos> ParseOpenTsdbTime(std::string_view text, Nanos now, const TimeZone& zone) {
  if (text == "now") return now;
  if (text.ends_with("-ago")) return ParseAgo(text, now);
  if (text.find('/') != std::string_view::npos) return ParseDate(text, zone);
  if (text.ends_with("ms") && AllDigits(text.substr(0, text.size() - 2))) {
    return ParseNumericTime(text.substr(0, text.size() - 2), text, true);
  }
  if (AllDigits(text)) return ParseNumericTime(text, text, false);
  // "1700000000.123"
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return BadTime(text);
  const std::string_view decimals = text.substr(dot + 1);
  if (dot > 10 || decimals.size() > 3 || !AllDigits(text.substr(0, dot)) || !AllDigits(decimals)) {
    return BadTime(text);
  }
  std::string thousandths(decimals);
  thousandths.resize(3, '0');
  const Result<Nanos> whole = ParseNumericTime(text.substr(0, dot), text, false);
  if (!whole.ok()) return whole;
  return *whole + std::stoll(thousandths) * kMillisecond;
}

Result<Nanos> ParseTimeOrSpan(std::string_view text, Nanos now) {
  const size_t digits = text.find_first_not_of("0123456789");
  const bool is_span = digits != 0 && digits != std::string_view::npos &&
                       digits + 1 == text.size() &&
                       std::string_view("smhdwny").find(text[digits]) != std::string_view::npos;
  return is_span ? ParseAgo(std::string(text) + "-ago", now) : ParseOpenTsdbTime(text, now);
}

Status ReadTime(const boost::json::value& value, std::string_view key, Nanos now, Nanos& out,
                const TimeZone& zone) {
  std::string text;
  if (value.is_int64() || value.is_uint64()) {
    text = std::to_string(value.to_number<int64_t>());
  } else if (value.is_double()) {
    // Seconds with decimals, or milliseconds that went through a float.
    const double number = value.get_double();
    const double milliseconds = number < 1e10 ? std::round(number * 1e3) : std::trunc(number);
    constexpr int64_t kMost = kMaxTime / kMillisecond;
    if (!(milliseconds >= 0 && milliseconds <= static_cast<double>(kMost))) {
      return Wrong(key, "a time");
    }
    out = static_cast<Nanos>(milliseconds) * kMillisecond;
    return {};
  } else {
    SONDE_RETURN_IF_ERROR(ReadText(value, key, text));
  }
  const Result<Nanos> time = ParseOpenTsdbTime(text, now, zone);
  if (!time.ok()) return time.status().Within(key);
  out = *time;
  return {};
}

}  // namespace sonde::web
