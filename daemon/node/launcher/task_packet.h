// The numbers of a packet about a task, as the launcher sends it (launcher/launch.h).
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "daemon/collect/job/tasks.h"

namespace sonde::node {

struct TaskPacket {
  uint32_t rank = 0;
  int pid = 0;
  int status = 0;
  uint32_t first = 0;     // of the machine's events
  std::vector<int> perf;  // errno of every event, 0: opened
  bool has_totals = false;
  collect::TaskTotals totals;
};

// The body of a 'T', 'M' or 'X' packet. A field that is missing or no number stays as it is; of
// perf at most launch::kMaxEvents are taken.
TaskPacket ParseTaskPacket(std::string_view body);

}  // namespace sonde::node
