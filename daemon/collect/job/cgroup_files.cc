#include "daemon/collect/job/cgroup_files.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/collect/read/mountinfo.h"

namespace sonde::collect {
namespace {

constexpr std::string_view kControllers[] = {"",     "cpu",   "cpuacct", "memory",
                                             "pids", "blkio", "cpuset"};
static_assert(std::size(kControllers) == kHierarchies);
constexpr std::string_view kDeleted = " (deleted)";

// The text before `separator`; `text` goes on behind it.
std::string_view Take(std::string_view& text, char separator) {
  const size_t length = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return taken;
}

// Calls `found` with the number of each hierarchy that a list of controllers names.
template <typename Found>
void ForEachController(std::string_view list, Found found) {
  while (!list.empty()) {
    const std::string_view name = Take(list, ',');
    for (size_t i = 1; i < kHierarchies; ++i) {
      if (name == kControllers[i]) found(i);
    }
  }
}

// A number whose line ends behind it.
bool LastOfLine(Cursor& at, uint64_t& value) {
  uint64_t number = 0;
  if (!at.Unsigned(number) || !at.Rest().starts_with('\n')) return false;
  value = number;
  return true;
}

bool IsTaskGroup(std::string_view name) {
  constexpr std::string_view kPrefix = "task_";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  return name == "special" ||
         (!name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos);
}

bool TakeDevice(Cursor& at, CgroupDevice& device) {
  return at.Unsigned(device.major) && at.Skip(":") && at.Unsigned(device.minor);
}

// nullptr if there are too many already.
CgroupDevice* FindOrAdd(std::vector<CgroupDevice>& devices, const CgroupDevice& wanted) {
  for (CgroupDevice& device : devices) {
    if (device.major == wanted.major && device.minor == wanted.minor) return &device;
  }
  return devices.size() < kMaxCgroupDevices ? &devices.emplace_back(wanted) : nullptr;
}

// One KEY=NUMBER of io.stat.
void TakeIoField(std::string_view word, CgroupDevice& device) {
  constexpr std::pair<std::string_view, double CgroupDevice::*> kFields[] = {
      {"rbytes=", &CgroupDevice::read_bytes},
      {"wbytes=", &CgroupDevice::written_bytes},
      {"rios=", &CgroupDevice::reads},
      {"wios=", &CgroupDevice::writes},
  };
  for (const auto& [key, member] : kFields) {
    if (!word.starts_with(key)) continue;
    Cursor number(word.substr(key.size()));
    const double value = number.Number();
    if (number.AtEnd()) device.*member = value;
  }
}

}  // namespace

GroupPaths ParseMembership(std::string_view text) {
  GroupPaths paths;
  while (!text.empty()) {
    if (text.find('\n') == std::string_view::npos) break;  // cut short
    std::string_view line = Take(text, '\n');
    const std::string_view number = Take(line, ':');
    const std::string_view controllers = Take(line, ':');
    if (!line.starts_with('/') || line.ends_with(kDeleted)) continue;
    if (number == "0" && controllers.empty()) paths[0] = line;
    ForEachController(controllers, [&](size_t i) { paths[i] = line; });
  }
  return paths;
}

std::array<CgroupMount, kHierarchies> ParseCgroupMounts(std::string_view text) {
  std::array<CgroupMount, kHierarchies> mounts;
  while (!text.empty()) {
    MountLine mount;
    if (!ParseMountLine(Take(text, '\n'), mount) || !mount.type.starts_with("cgroup")) continue;
    const auto add = [&](size_t i) {
      if (mounts[i].point.empty()) mounts[i] = {Unescaped(mount.point), Unescaped(mount.root)};
    };
    if (mount.type == "cgroup2") add(0);
    if (mount.type == "cgroup") ForEachController(mount.super_options, add);
  }
  return mounts;
}

bool HoldsGroup(std::string_view group, std::string_view path) {
  if (group.empty() || path.empty()) return false;
  if (group == "/") return true;
  return path.starts_with(group) && (path.size() == group.size() || path[group.size()] == '/');
}

std::string_view CommonGroup(std::string_view a, std::string_view b) {
  while (a.size() > 1 && !HoldsGroup(a, b)) {
    const size_t slash = a.rfind('/');
    if (slash == std::string_view::npos) return {};
    a = a.substr(0, std::max<size_t>(slash, 1));
  }
  return a;
}

std::string_view GroupOfAllTasks(std::string_view path) {
  std::string_view above = path;
  for (size_t slash = above.rfind('/'); slash != std::string_view::npos; slash = above.rfind('/')) {
    const bool found = IsTaskGroup(above.substr(slash + 1));
    above = above.substr(0, slash);
    if (found) return above.empty() ? "/" : above;
  }
  return path;
}

double ParseCgroupNumber(std::string_view text) {
  Cursor at(text);
  uint64_t value = 0;
  return LastOfLine(at, value) ? static_cast<double>(value) : kMissing;
}

double ParseCpuMax(std::string_view text) {
  Cursor at(text);
  const double quota = at.Number();
  uint64_t period = 0;
  return at.Skip(" ") && LastOfLine(at, period) && period > 0 ? quota / static_cast<double>(period)
                                                              : kMissing;
}

double CountCpus(std::string_view text) {
  Cursor at(text);
  double count = 0;
  do {
    uint64_t first = 0;
    if (!at.Unsigned(first)) return kMissing;
    uint64_t last = first;
    if (at.Skip("-") && (!at.Unsigned(last) || last < first)) return kMissing;
    count += static_cast<double>(last - first) + 1;
  } while (at.Skip(","));
  return at.Rest() == "\n" ? count : kMissing;
}

void ParseCgroupKeys(std::string_view text, std::span<const CgroupKey> keys, double* columns) {
  size_t next = 0;  // keys are in the file's order as a rule
  for (Cursor at(text); !at.AtEnd(); at.Line()) {
    const std::string_view word = at.Word();
    for (size_t tried = 0; tried < keys.size(); ++tried) {
      const CgroupKey& key = keys[(next + tried) % keys.size()];
      if (key.key != word) continue;
      uint64_t value = 0;
      if (LastOfLine(at, value)) columns[key.column] = static_cast<double>(value) * key.scale;
      next += tried + 1;
      break;
    }
  }
}

Stalls ParseStalls(std::string_view text) {
  constexpr std::string_view kTotal = " total=";
  Stalls stalls;
  for (Cursor at(text); !at.AtEnd(); at.Line()) {
    const bool some = at.Skip("some ");
    if (!some && !at.Skip("full ")) continue;
    const std::string_view rest = at.Rest();
    const size_t total = rest.substr(0, rest.find('\n')).rfind(kTotal);
    if (total == std::string_view::npos) continue;
    Cursor number(rest.substr(total + kTotal.size()));
    uint64_t microseconds = 0;
    if (!LastOfLine(number, microseconds)) continue;
    (some ? stalls.some : stalls.full) = static_cast<double>(microseconds) / 1e6;
  }
  return stalls;
}

void ParseIoStat(std::string_view text, std::vector<CgroupDevice>& devices) {
  while (text.find('\n') != std::string_view::npos) {
    Cursor at(Take(text, '\n'));
    CgroupDevice* device = nullptr;
    // Some kernels write a device that has nothing to say without an end of line: the next one
    // follows on the same line.
    for (std::string_view word = at.Word(); !word.empty(); word = at.Word()) {
      Cursor name(word);
      CgroupDevice named;
      if (TakeDevice(name, named) && name.AtEnd()) {
        device = FindOrAdd(devices, named);
      } else if (device != nullptr) {
        TakeIoField(word, *device);
      }
    }
  }
}

void ParseBlkio(std::string_view text, BlkioFile file, std::vector<CgroupDevice>& devices) {
  const bool bytes = file == BlkioFile::kBytes;
  for (Cursor at(text); !at.AtEnd(); at.Line()) {
    CgroupDevice named;
    if (!TakeDevice(at, named)) continue;
    const std::string_view what = at.Word();
    if (what != "Read" && what != "Write") continue;
    uint64_t value = 0;
    if (!LastOfLine(at, value)) continue;
    CgroupDevice* const device = FindOrAdd(devices, named);
    if (device == nullptr) continue;
    const auto number = static_cast<double>(value);
    if (what == "Read") {
      (bytes ? device->read_bytes : device->reads) = number;
    } else {
      (bytes ? device->written_bytes : device->writes) = number;
    }
  }
}

}  // namespace sonde::collect
