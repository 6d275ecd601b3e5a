// Time limits as Slurm writes and takes them: "30" (minutes), "30:00", "1:30:00", "2-0", "2-12:00",
// "2-12:00:00", "UNLIMITED".
//
// Thread safety: functions without state.
#pragma once

#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace sonde {

inline constexpr int64_t kNoTimeLimit = std::numeric_limits<int64_t>::max();

// In seconds; nothing for what is no time limit, or longer than 100 years.
inline std::optional<int64_t> ParseSlurmTime(std::string_view text) {
  if (text == "UNLIMITED" || text == "infinite") return kNoTimeLimit;
  constexpr int64_t kLongest = 100LL * 366 * 86400;
  const auto number = [](std::string_view digits, int64_t& value) {
    if (digits.empty() || digits.size() > 11) return false;
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return false;
    return std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc();
  };
  int64_t days = 0;
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    if (!number(text.substr(0, dash), days)) return {};
    text.remove_prefix(dash + 1);
  }
  int64_t seconds = 0, part = 0;
  int parts = 0;
  for (bool more = true; more; ++parts) {
    const size_t colon = text.find(':');
    more = colon != std::string_view::npos;
    if (parts == 3 || !number(text.substr(0, colon), part)) return {};
    seconds = 60 * seconds + part;
    if (more) text.remove_prefix(colon + 1);
  }
  // Behind days the first number is hours; else a single one is minutes.
  const int last = dash != std::string_view::npos ? 3 : parts == 1 ? 2 : parts;
  for (; parts < last; ++parts) seconds *= 60;
  if (days > kLongest / 86400 || seconds > kLongest) return {};
  return days * 86400 + seconds;
}

// "[days-]hours:minutes:seconds", as Slurm takes it.
inline std::string FormatSlurmTime(uint64_t seconds) {
  const uint64_t days = seconds / 86'400;
  const std::string rest =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return days > 0 ? fmt::format("{}-{}", days, rest) : rest;
}

}  // namespace sonde
