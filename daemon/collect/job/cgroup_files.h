// What the kernel's files about control groups say, version 1 and 2: who is in which group, where
// the groups are mounted, what a group has used.
//
// A number counts only if its line ends behind it: what is cut short, negative, too large for 64
// bits or the word "max" is missing.
//
// Thread safety: functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/read/parse.h"

namespace sonde::collect {

// The trees of groups that are of use here: that of version 2, and one for each controller of
// version 1. Some of the latter may be the same tree.
enum class Hierarchy : uint8_t { kUnified, kCpu, kCpuacct, kMemory, kPids, kBlkio, kCpuset };
inline constexpr size_t kHierarchies = 7;

// By hierarchy, the group a process is in: a path from the hierarchy's root. Empty: it is in none.
using GroupPaths = std::array<std::string_view, kHierarchies>;
// From /proc/PID/cgroup; the paths lie in `text`. A group that was removed is none.
GroupPaths ParseMembership(std::string_view text);

struct CgroupMount {
  std::string point;  // empty: not mounted
  std::string root;   // the group that shows there
};
// From /proc/self/mountinfo, by hierarchy: the first mount of each.
std::array<CgroupMount, kHierarchies> ParseCgroupMounts(std::string_view text);

// Whether `group` is, or is above, the group `path`.
bool HoldsGroup(std::string_view group, std::string_view path);
// The nearest group that holds both; lies in `a`.
std::string_view CommonGroup(std::string_view a, std::string_view b);
// The group above the one that Slurm makes for each task (task_0, task_special), if `path` is such
// a group or lies below one; otherwise `path`.
std::string_view GroupOfAllTasks(std::string_view path);

// A file of one number.
double ParseCgroupNumber(std::string_view text);

// How many processors' worth of time "QUOTA PERIOD" of cpu.max is; missing for "max".
double ParseCpuMax(std::string_view text);

// How many processors a list names, such as "0-3,8"; missing if it names none or is not one.
double CountCpus(std::string_view text);

// A number of a file with lines "key number".
struct CgroupKey {
  std::string_view key;
  uint8_t column;
  double scale;  // to the metric's unit
};
// Sets the columns of the keys that are there.
void ParseCgroupKeys(std::string_view text, std::span<const CgroupKey> keys, double* columns);

// Seconds in which some process, and in which all, waited: a file *.pressure.
struct Stalls {
  double some = kMissing;
  double full = kMissing;
};
Stalls ParseStalls(std::string_view text);

struct CgroupDevice {
  uint64_t major = 0;
  uint64_t minor = 0;
  double read_bytes = kMissing;
  double written_bytes = kMissing;
  double reads = kMissing;
  double writes = kMissing;
};
// More devices than a node has; any beyond them are not recorded.
inline constexpr size_t kMaxCgroupDevices = 64;
// Sets the numbers of the devices that the text names, and appends those that are new: io.stat of
// version 2, or a file of version 1 that counts bytes or operations.
void ParseIoStat(std::string_view text, std::vector<CgroupDevice>& devices);
enum class BlkioFile : uint8_t { kBytes, kOperations };
void ParseBlkio(std::string_view text, BlkioFile file, std::vector<CgroupDevice>& devices);

}  // namespace sonde::collect
