// The node's logical processors in sysfs.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "daemon/collect/read/source.h"

namespace sonde::collect {

struct Processor {
  unsigned number = 0;
  std::string directory;
};

// By number, those that are offline included.
std::vector<Processor> ListProcessors(const Roots& roots);

}  // namespace sonde::collect
