// The local time of a zone of the tz database, from the zone's file (TZif, RFC 8536).
//
// Only the program that asks a question needs the files; results travel as plain times. Files of
// leap seconds ("right/...") and those without 64-bit times are refused.
//
// Times are seconds since the Unix epoch; a local time is what the zone's clocks show, counted as
// if it were UTC.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sonde {

class TimeZone {
 public:
  static constexpr size_t kMaxFile = 256 * 1024;  // bytes; the largest there is has some 4 kB

  TimeZone() = default;  // UTC

  // "Europe/Berlin", from /usr/share/zoneinfo; "" and "UTC" need no file. kInvalid if the name is
  // malformed or the machine does not have the zone.
  static Result<TimeZone> Load(std::string_view name);
  // Decodes the bytes of a zone's file. Trusts nothing.
  static Result<TimeZone> Decode(std::string_view tzif);

  // Seconds east of UTC at that time.
  int64_t OffsetAt(int64_t time) const;
  // The time when clocks show `local`: the first time if they show it twice; if clocks are moved
  // past it, the time at which they would show it had they not been moved.
  int64_t FromLocal(int64_t local) const;

 private:
  // When clocks change, every year.
  struct Change {
    enum class Kind : uint8_t { kWeekday, kJulian, kDay };
    Kind kind = Kind::kWeekday;
    int month = 1;  // kWeekday: the `week`th `day` (0: Sunday) of the month, 5: the last
    int week = 1;
    int day = 0;            // kJulian: of the year, from 1, without 29 February; kDay: from 0
    int64_t second = 7200;  // of that day, by the clock before the change

    int64_t At(int year) const;  // local time
  };
  // What holds after the last transition of the file (a POSIX TZ string).
  struct Rule {
    int64_t standard = 0;
    int64_t daylight = 0;
    bool changes = false;
    Change to_daylight;
    Change to_standard;

    int64_t OffsetAt(int64_t time) const;
  };
  class RuleReader;

  std::vector<int64_t> transitions_;  // ascending
  std::vector<int64_t> offsets_;      // from each on
  int64_t first_ = 0;                 // before all of them
  std::optional<Rule> rule_;
};

}  // namespace sonde
