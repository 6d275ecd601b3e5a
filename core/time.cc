#include "core/time.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <ctime>

#include "core/clocks.h"

namespace sonde {
namespace {

class SystemClock final : public Clock {
 public:
  Nanos Now() const override { return WallNow(); }
  Nanos Monotonic() const override { return MonotonicNow(); }
  Nanos SinceBoot() const override { return BootNow(); }
};

Nanos UnitOf(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us") return kMicrosecond;
  if (unit == "ms") return kMillisecond;
  if (unit == "s" || unit.empty()) return kSecond;
  if (unit == "m" || unit == "min") return 60 * kSecond;
  if (unit == "h") return 3600 * kSecond;
  if (unit == "d") return 86400 * kSecond;
  return 0;
}

}  // namespace

const Clock& Clock::System() {
  static const SystemClock clock;
  return clock;
}

Result<Nanos> ParseDuration(std::string_view text) {
  const Status bad(Code::kInvalid,
                   fmt::format("'{}' is no duration; expected a number with a unit such as 500ms, "
                               "1s, 2m, 1h or 7d",
                               text.substr(0, 64)));
  const size_t digits_end = text.find_first_not_of("0123456789.");
  const std::string_view digits = text.substr(0, digits_end);
  const Nanos unit =
      UnitOf(digits_end == std::string_view::npos ? std::string_view{} : text.substr(digits_end));
  if (unit == 0 || digits.empty() || digits.size() > 18) return bad;
  Nanos value = 0;
  Nanos scale = unit;
  bool fraction = false;
  bool any = false;
  for (const char c : digits) {
    if (c == '.') {
      if (fraction) return bad;
      fraction = true;
      continue;
    }
    any = true;
    const int digit = c - '0';
    if (fraction) {
      scale /= 10;
      value += digit * scale;
    } else if (__builtin_mul_overflow(value, 10, &value) ||
               __builtin_add_overflow(value, digit * unit, &value)) {
      return bad;
    }
  }
  if (!any) return bad;
  return value;
}

std::string FormatDuration(Nanos d) {
  if (d < 0) return "-" + FormatDuration(-d);
  const double seconds = static_cast<double>(d) / static_cast<double>(kSecond);
  if (d < kMillisecond) return fmt::format("{:.3g} us", seconds * 1e6);
  if (d < kSecond) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (d < 60 * kSecond) return fmt::format("{:.3g} s", seconds);
  const Nanos whole = (d + kSecond / 2) / kSecond;
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {} h", whole / 86400, whole % 86400 / 3600);
}

std::string FormatTime(Nanos time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<time_t>(time / kSecond)));
}

}  // namespace sonde
