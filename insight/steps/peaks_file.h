// The peaks that were measured, kept by the type of processor: a JSON file of the site's (`peaks`
// in sonde.conf), which an administrator writes and everybody reads, and one of each user,
// peaks.json in the user's archive. Both may be on a file system that all nodes share, since peaks
// are measured on compute nodes and looked at elsewhere.
//
//   {"version": 1, "peaks": [{"model": "AMD EPYC 9654", "cpus": 192, "sockets": 2,
//     "megahertz": 3707, "allowed": 192, "vectors": "AVX-512",
//     "all": {"bytes_per_second": 7.4e11, "double_flops": 5.4e12, "single_flops": 1.1e13},
//     "one": {"bytes_per_second": 3.1e10, "double_flops": 5.9e10, "single_flops": 1.2e11},
//     "array_bytes": 1.6e9, "last_cache_bytes": 8.05e8, "host": "n1", "time":
//     1795700000000000000}]}
//
// Written to disk; names never change. Times are nanoseconds since 1970. A file is not trusted:
// what is not as here is an error that names the file and what is wrong, and such a file is not
// overwritten.
//
// Thread safety: functions without state. Two processes may add to a file at the same time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "insight/hardware/roofline.h"

namespace sonde::insight {

inline constexpr size_t kMaxCacheBytes = 1 << 20;
inline constexpr size_t kMaxCached = 1024;

// `name` is for messages.
Result<std::vector<NodePeaks>> PeaksFromJson(std::string_view json, std::string_view name);
std::string PeaksToJson(const std::vector<NodePeaks>& all);

// None if there is no such file.
Result<std::vector<NodePeaks>> ReadPeaks(const std::string& path);
// Those of all files, one after the other.
Result<std::vector<NodePeaks>> ReadPeaks(std::span<const std::string> paths);

// Adds to the file, or puts in the place of what it has for the same type and number of CPUs. The
// file is made if needed, for its owner alone or, `for_all`, to be read by everybody.
Status KeepPeaks(const std::string& path, const NodePeaks& peaks, bool for_all);

// The last one of that type with the most CPUs, if `least_allowed` CPUs were measured or more;
// nullptr if there is none.
const NodePeaks* FindPeaks(const std::vector<NodePeaks>& all, const ProcessorType& type,
                           uint32_t least_allowed = 0);

}  // namespace sonde::insight
