// Whatever a kernel file holds, or something that pretends to be one: no parser reads past the end,
// loses step between series and values, or makes up a negative number.
//
// The first byte chooses the parser. The text is parsed, then one half of it, then the whole again,
// so that devices come and go.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/cgroup_files.h"
#include "daemon/collect/os_sources.h"
#include "daemon/collect/task_files.h"

namespace {

using namespace sonde::collect;

void Check(bool good) {
  if (!good) std::abort();
}
void CheckNumber(double value) { Check(std::isnan(value) || value >= 0); }

std::unique_ptr<FileSource> MakeSource(unsigned kind, ReadBuffer& buffer) {
  const Roots roots;
  const int level = kind % 2 == 0 ? 2 : 4;
  switch (kind / 2) {
    case 0:
      return MakeCpuSource(roots, level, buffer);
    case 1:
      return MakeMeminfoSource(roots, level, buffer);
    case 2:
      return MakeNetdevSource(roots, level, buffer);
    case 3:
      return MakeDiskstatsSource(roots, level, buffer);
    case 4:
      return MakeLoadavgSource(roots, buffer);
    default:
      return MakePressureSource(roots, level == 2 ? Pressure::kCpu : Pressure::kIo, buffer);
  }
}

void RunSource(unsigned kind, std::string_view text) {
  ReadBuffer buffer;
  const std::unique_ptr<FileSource> source = MakeSource(kind, buffer);
  for (const std::string_view part : {text, text.substr(0, text.size() / 2), text}) {
    source->Parse(part);
    Check(source->values().size() == source->series().size());
    for (const double value : source->values()) CheckNumber(value);
  }
}

void RunTaskFile(unsigned kind, std::string_view text) {
  TaskStat stat;
  TaskCounters counters{};
  switch (kind) {
    case 0:
      if (ParseTaskStat(text, stat)) {
        Check(stat.parent >= 0);
        CheckNumber(stat.processor);
        for (const double value : stat.counters) CheckNumber(value);
      }
      break;
    case 1:
      ParseTaskIo(text, counters);
      for (const double value : counters) CheckNumber(value);
      break;
    case 2:
      CheckNumber(ParsePeakResident(text));
      break;
    default:
      ForEachChild(text, [](pid_t pid) { Check(pid > 0); });
      break;
  }
}

void CheckGroup(std::string_view group) {
  Check(group.empty() || group.front() == '/');
  const std::string_view above = GroupOfAllTasks(group);
  Check(group.empty() || HoldsGroup(above, group));
}

void CheckDevices(const std::vector<CgroupDevice>& devices) {
  Check(devices.size() <= kMaxCgroupDevices);
  for (const CgroupDevice& device : devices) {
    for (const double value :
         {device.read_bytes, device.written_bytes, device.reads, device.writes}) {
      CheckNumber(value);
    }
  }
}

void RunMembership(std::string_view text) {
  const GroupPaths paths = ParseMembership(text);
  for (const std::string_view a : paths) {
    CheckGroup(a);
    for (const std::string_view b : paths) {
      const std::string_view common = CommonGroup(a, b);
      Check(common.size() <= a.size());
      Check(a.empty() || b.empty() || (HoldsGroup(common, a) && HoldsGroup(common, b)));
    }
  }
}

void RunCgroupNumbers(std::string_view text) {
  constexpr CgroupKey kKeys[] = {{"user", 0, 1}, {"", 1, 1}, {"anon", 2, 1e-6}};
  double columns[] = {kMissing, kMissing, kMissing};
  ParseCgroupKeys(text, kKeys, columns);
  for (const double value : columns) CheckNumber(value);
  CheckNumber(ParseCgroupNumber(text));
  const Stalls stalls = ParseStalls(text);
  CheckNumber(stalls.some);
  CheckNumber(stalls.full);
}

void RunCgroupFile(unsigned kind, std::string_view text) {
  std::vector<CgroupDevice> devices;
  switch (kind) {
    case 0:
      RunMembership(text);
      break;
    case 1:
      for (const CgroupMount& mount : ParseCgroupMounts(text)) {
        Check(mount.point.empty() == mount.root.empty());
      }
      break;
    case 2:
      RunCgroupNumbers(text);
      break;
    default:
      for (int i = 0; i < 2; ++i) {
        ParseIoStat(text, devices);
        ParseBlkio(text, BlkioFile::kBytes, devices);
        ParseBlkio(text, BlkioFile::kOperations, devices);
        CheckDevices(devices);
      }
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // A copy of its own, so that the sanitizer sees a read past the end.
  const std::vector<char> copy(data + 1, data + size);
  const std::string_view text(copy.data(), copy.size());
  const unsigned kind = data[0] % 20;
  if (kind < 12) {
    RunSource(kind, text);
  } else if (kind < 16) {
    RunTaskFile(kind - 12, text);
  } else {
    RunCgroupFile(kind - 16, text);
  }
  return 0;
}
