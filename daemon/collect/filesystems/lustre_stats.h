// A file "stats" of Lustre's (lprocfs_stats_seq_show in its obdclass/lprocfs_status.c):
//   snapshot_time             1694140455.278503266 secs.nsecs
//   read_bytes                10 samples [bytes] 4096 1048576 5242880 123456
//   open                      2 samples [reqs]
// Each line: the name, the number of samples, their unit; some add the smallest, the largest, the
// sum and the sum of the squares. What has not happened yet has no line.
//
// Thread safety: functions without state; a line's views lie in the text it was taken from.
#pragma once

#include <string_view>

#include "daemon/collect/read/parse.h"

namespace sonde::collect {

struct LustreLine {
  std::string_view name;
  std::string_view unit;  // "bytes", "usecs", "reqs", ...
  double samples = kMissing;
  double sum = kMissing;
};

// Takes the next line; false if there is none. A field that is not as above is missing.
bool TakeLustreLine(Cursor& at, LustreLine& line);

// Whether it is such a file: it begins with a time, even if nothing happened yet.
bool IsLustreStats(std::string_view text);

}  // namespace sonde::collect
