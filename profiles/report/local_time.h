// Times for people: on the clock of the machine where they are read, with its zone.
//
// What is stored and sent has UTC (FormatTime, core/time.h).
//
// Thread safety: functions without state; as with localtime_r, nobody may change TZ meanwhile.
#pragma once

#include <string>
#include <string_view>

#include "core/time.h"

namespace sonde {

// "CET", "UTC", "+03": as it is at that time.
std::string ZoneName(Nanos time);
// "2026-11-21 04:07", for a column whose title has the zone; "-" as below.
std::string FormatLocalMinute(Nanos time);
// "2026-11-21 04:07:00 CET"; "-" for a time that no calendar has.
std::string FormatLocalTime(Nanos time);
// "2026-11-21 04:07:00 to 04:07:21 CET": what begin and end have in common is there once.
std::string FormatLocalSpan(Nanos begin, Nanos end);
// The text with each of its times as FormatTime writes them in local time: notes are stored as they
// were written.
std::string LocalTimesIn(std::string_view text);

}  // namespace sonde
