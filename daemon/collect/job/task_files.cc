#include "daemon/collect/job/task_files.h"

#include <algorithm>
#include <cstring>

namespace sonde::collect {
namespace {

bool Add(Cursor& at, double& sum) {
  uint64_t value = 0;
  if (!at.Unsigned(value)) return false;
  sum += static_cast<double>(value);
  return true;
}

}  // namespace

bool ParseTaskStat(std::string_view text, TaskStat& stat) {
  if (text.empty()) return false;
  // The name ends at the last bracket: what follows has none.
  const void* const bracket = memrchr(text.data(), ')', text.size());
  if (bracket == nullptr) return false;
  const auto behind = static_cast<size_t>(static_cast<const char*>(bracket) - text.data());
  Cursor at(text.substr(behind + 1));
  stat = {};
  if (const size_t open = text.find('('); open < behind) {
    const std::string_view name = text.substr(open + 1, behind - open - 1);
    std::copy_n(name.begin(), std::min(name.size(), stat.name.size() - 1), stat.name.begin());
  }
  const std::string_view state = at.Word();
  uint64_t parent = 0;
  if (state.size() != 1 || !at.Unsigned(parent) || parent > INT32_MAX) return false;
  stat.state = state[0];
  stat.parent = static_cast<pid_t>(parent);
  TaskCounters& c = stat.counters;
  if (!at.SkipWords(5)) return false;  // pgrp session tty_nr tpgid flags
  if (!Add(at, c[kMinorFaults]) || !Add(at, stat.waited_minor_faults)) return false;
  if (!Add(at, c[kMajorFaults]) || !Add(at, c[kMajorFaults])) return false;
  if (!Add(at, c[kUserTicks]) || !Add(at, c[kSystemTicks])) return false;
  if (!Add(at, c[kUserTicks]) || !Add(at, c[kSystemTicks])) return false;
  c[kMinorFaults] += stat.waited_minor_faults;
  if (!at.SkipWords(2) || !at.Unsigned(stat.threads)) return false;  // priority nice
  if (!at.SkipWords(1) || !at.Unsigned(stat.start)) return false;    // itrealvalue
  if (!at.Unsigned(stat.virtual_bytes) || !at.Unsigned(stat.resident_pages)) return false;
  // rsslim, five addresses, four sets of signals, wchan, nswap, cnswap, exit_signal
  if (at.SkipWords(14)) stat.processor = at.Number();
  return true;
}

bool ParseTaskIo(std::string_view text, TaskCounters& counters) {
  struct Key {
    std::string_view name;
    TaskCounter counter;
  };
  static constexpr Key kKeys[] = {{"rchar:", kCallReadBytes},
                                  {"wchar:", kCallWriteBytes},
                                  {"syscr:", kReadCalls},
                                  {"syscw:", kWriteCalls},
                                  {"read_bytes:", kReadBytes},
                                  {"write_bytes:", kWriteBytes},
                                  {"cancelled_write_bytes:", kCancelledBytes}};
  TaskCounters read = counters;
  Cursor line(text);
  for (const Key& key : kKeys) {  // in the kernel's order
    uint64_t value = 0;
    if (!line.Skip(key.name) || !line.Unsigned(value)) return false;
    read[key.counter] = static_cast<double>(value);
    line.Line();
  }
  counters = read;
  return true;
}

double ParsePeakResident(std::string_view text) {
  for (Cursor line(text); !line.AtEnd(); line.Line()) {
    if (line.Skip("VmHWM:")) return line.Number() * 1024;
  }
  return kMissing;
}

}  // namespace sonde::collect
