// What clocks show somewhere: a zone of the tz database, from its file (TZif, RFC 8536).
//
// Only whoever asks a question needs the files; what is worked out with them travels as plain
// times. Files of leap seconds ("right/...") and those without 64-bit times are refused.
//
// Times are seconds since the Unix epoch; a local time is what the clocks there show, counted as if
// it were UTC.
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

  // "Europe/Berlin", from /usr/share/zoneinfo; "" and "UTC" need no file. kInvalid for a name that
  // is none or that the machine does not have.
  static Result<TimeZone> Load(std::string_view name);
  // The bytes of such a file. Trusts nothing.
  static Result<TimeZone> Decode(std::string_view tzif);

  // Seconds east of UTC at that time.
  int64_t OffsetAt(int64_t time) const;
  // When clocks show `local`: the first time, if they do so twice; if they are moved past it, what
  // they would show had they not been moved.
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
