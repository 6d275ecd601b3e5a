#include "daemon/collect/task_files.h"

namespace sonde::collect {
namespace {

// A number that proc(5) gives as signed; those that count are never negative.
bool Skip(Cursor& at, int words) {
  for (; words > 0; --words) {
    if (at.Word().empty()) return false;
  }
  return true;
}

bool Add(Cursor& at, double& sum) {
  uint64_t value = 0;
  if (!at.Unsigned(value)) return false;
  sum += static_cast<double>(value);
  return true;
}

}  // namespace

bool ParseTaskStat(std::string_view text, TaskStat& stat) {
  // The name ends at the last bracket: what follows has none.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return false;
  Cursor at(text.substr(name_end + 1));
  stat = {};
  const std::string_view state = at.Word();
  uint64_t parent = 0;
  if (state.size() != 1 || !at.Unsigned(parent) || parent > INT32_MAX) return false;
  stat.state = state[0];
  stat.parent = static_cast<pid_t>(parent);
  TaskCounters& c = stat.counters;
  if (!Skip(at, 5)) return false;  // pgrp session tty_nr tpgid flags
  if (!Add(at, c[kMinorFaults]) || !Add(at, stat.waited_minor_faults)) return false;
  if (!Add(at, c[kMajorFaults]) || !Add(at, c[kMajorFaults])) return false;
  if (!Add(at, c[kUserTicks]) || !Add(at, c[kSystemTicks])) return false;
  if (!Add(at, c[kUserTicks]) || !Add(at, c[kSystemTicks])) return false;
  c[kMinorFaults] += stat.waited_minor_faults;
  if (!Skip(at, 2) || !at.Unsigned(stat.threads)) return false;  // priority nice
  if (!Skip(at, 1) || !at.Unsigned(stat.start)) return false;    // itrealvalue
  return Skip(at, 1) && at.Unsigned(stat.resident_pages);        // vsize
}

bool ParseTaskIo(std::string_view text, TaskCounters& counters) {
  struct Key {
    std::string_view name;
    TaskCounter counter;
  };
  static constexpr Key kKeys[] = {{"rchar:", kCallReadBytes},  {"wchar:", kCallWriteBytes},
                                  {"syscr:", kReadCalls},      {"syscw:", kWriteCalls},
                                  {"read_bytes:", kReadBytes}, {"write_bytes:", kWriteBytes}};
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
