// The values of --telemetry-level, -period and -events, validated the same way in srun, sbatch,
// slurmstepd, `sonde run` and the daemon.
//
// Header-only and free of dependencies: it is compiled into spank_sonde.so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sonde {

inline constexpr int kHighestLevel = 4;

// 0 to 4, or -1 if the text is anything else. Exactly one digit.
constexpr int ParseLevel(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '4') return -1;
  return text[0] - '0';
}
inline constexpr std::string_view kLevelExpected =
    "expected 0 (off), 1 (application), 2 (system), 3 (counters, GPUs, power) or 4 (details)";

inline constexpr int64_t kShortestPeriod = 10'000'000;

// A sampling period: a decimal number with an optional unit us, ms, s, m, h (seconds if none), from
// 10 ms to 1 h. Gives nanoseconds, or -1 if the text is anything else. At most six decimals count.
constexpr int64_t ParsePeriod(std::string_view text) {
  int64_t whole = 0, fraction = 0, scale = 1;
  size_t i = 0, digits = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, ++digits) {
    if (whole > 1'000'000'000) return -1;
    whole = whole * 10 + (text[i] - '0');
  }
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, ++digits) {
      if (scale < 1'000'000) {
        fraction = fraction * 10 + (text[i] - '0');
        scale *= 10;
      }
    }
  }
  if (digits == 0) return -1;
  const std::string_view unit = text.substr(i);
  int64_t factor = 0;
  if (unit == "us")
    factor = 1'000;
  else if (unit == "ms")
    factor = 1'000'000;
  else if (unit == "s" || unit.empty())
    factor = 1'000'000'000;
  else if (unit == "m")
    factor = 60'000'000'000;
  else if (unit == "h")
    factor = 3'600'000'000'000;
  else
    return -1;
  if (whole > 3'600'000'000'000 / factor) return -1;
  const int64_t period = whole * factor + fraction * (factor / scale);
  return period >= kShortestPeriod && period <= 3'600'000'000'000 ? period : -1;
}
inline constexpr std::string_view kPeriodExpected =
    "expected a time from 10ms to 1h, such as 100ms, 1s or 1m";

// Events that are counted for a task at most, whoever chose them.
inline constexpr size_t kMaxEvents = 32;

// A list of events for --telemetry-events: 1 to kMaxEvents names separated by commas, as libpfm4
// writes them (instructions, PERF_COUNT_HW_CACHE_MISSES:u, INST_RETIRED:ANY_P). A node finds out
// whether its processor has them.
constexpr bool ValidEventList(std::string_view text) {
  size_t names = 1, length = 0;
  for (const char c : text) {
    if (c == ',') {
      if (length == 0 || ++names > kMaxEvents) return false;
      length = 0;
      continue;
    }
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!word && std::string_view("_:.=-").find(c) == std::string_view::npos) return false;
    if (++length > 128) return false;
  }
  return length > 0;
}
inline constexpr std::string_view kEventListExpected =
    "expected 1 to 32 names of events separated by commas, such as instructions,cache-misses";

}  // namespace sonde
