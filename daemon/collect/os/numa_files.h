// What the files of a NUMA node say: /sys/devices/system/node/nodeN/meminfo, with lines
// "Node N KEY: NUMBER kB", and numastat, with lines "KEY NUMBER".
//
// Thread safety: functions without state.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "daemon/collect/read/parse.h"

namespace sonde::collect {

struct NumaKey {
  std::string_view key;
  double scale = 1;  // to the metric's unit
};

// Sets `values`, one for each key; a key that is not there, or whose line has no end, is missing.
// It is cheapest if the keys are in the file's order.
void ParseNumaMemory(std::string_view text, std::span<const NumaKey> keys, double* values);
void ParseNumaCounts(std::string_view text, std::span<const NumaKey> keys, double* values);

}  // namespace sonde::collect
