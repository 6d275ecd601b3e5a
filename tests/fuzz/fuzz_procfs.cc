// Whatever a kernel file holds, or something that pretends to be one: no parser reads past the end,
// loses step between series and values, or makes up a negative number.
//
// The first byte chooses the parser. The text is parsed, then one half of it, then the whole again,
// so that devices come and go. Sources that remember where everything lies get a good text first,
// and the input changes a part of it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/metric.h"
#include "daemon/collect/filesystems/filesystem_sources.h"
#include "daemon/collect/filesystems/lustre_stats.h"
#include "daemon/collect/filesystems/mounted.h"
#include "daemon/collect/filesystems/nfs_mountstats.h"
#include "daemon/collect/job/cgroup_files.h"
#include "daemon/collect/job/task_files.h"
#include "daemon/collect/os/numa_files.h"
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/read/mountinfo.h"
#include "daemon/collect/sensors/sensor.h"

namespace {

using namespace sonde::collect;

void Check(bool good) {
  if (!good) std::abort();
}
void CheckNumber(double value) { Check(std::isnan(value) || value >= 0); }

constexpr unsigned kLater = 27;  // kinds of files that came later begin here
constexpr unsigned kNfs = 41;    // no good text to change
constexpr unsigned kFiles = 43;  // parsers that are no sources
constexpr unsigned kKinds = 47;

std::unique_ptr<FileSource> MakeLater(unsigned kind, ReadBuffer& buffer) {
  const Roots roots;
  const int level = kind % 2 == 0 ? 2 : 4;
  switch (kind / 2) {
    case 0:
      return MakeSnmp6Source(roots, level, buffer);
    case 1:
      return MakeSockstatSource(roots, level, buffer);
    case 2:
      return MakeSoftnetSource(roots, level, buffer);
    case 3:
      return MakeSoftirqsSource(roots, buffer);
    case 4:
      return MakeInterruptsSource(roots, buffer);
    case 5:
      return MakeSchedstatSource(roots, buffer);
    case 6:
      return MakeBuddyinfoSource(roots, buffer);
    default:
      return MakeNfsSource(roots, level, buffer);
  }
}

std::unique_ptr<FileSource> MakeSource(unsigned kind, ReadBuffer& buffer) {
  if (kind >= kLater) return MakeLater(kind - kLater, buffer);
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
    case 8:
      return MakeVmstatSource(roots, level, buffer);
    case 9:
      return MakeSnmpSource(roots, level, buffer);
    case 10:
      return MakeNetstatSource(roots, level, buffer);
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

std::map<std::string, double> NamedValues(const FileSource& source) {
  std::map<std::string, double> values;
  for (size_t i = 0; i < source.series().size(); ++i) {
    const sonde::Series& series = source.series()[i];
    values[sonde::SeriesName(series.metric.name, series.tags)] = source.values()[i];
  }
  return values;
}

// A good text in which the input's third byte says how many bytes, and the first two say where,
// give way to the rest of the input; parsed behind the good one, which is parsed again in the end.
void RunChanged(unsigned kind, std::string_view good, std::string_view input) {
  if (input.size() < 3) return;
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(input[i])); };
  std::string changed(good);
  changed.replace((byte(0) << 8 | byte(1)) % good.size(), byte(2), input.substr(3));
  const std::vector<char> copy(changed.begin(), changed.end());
  ReadBuffer buffer;
  const std::unique_ptr<FileSource> source = MakeSource(kind, buffer);
  source->Parse(good);
  const std::map<std::string, double> values = NamedValues(*source);
  for (const std::string_view part : {std::string_view(copy.data(), copy.size()), good, good}) {
    source->Parse(part);
    Check(source->values().size() == source->series().size());
    for (const double value : source->values()) CheckNumber(value);
  }
  // Of what the changed one had besides, nothing is there.
  for (const auto& [name, value] : NamedValues(*source)) {
    const auto before = values.find(name);
    const double expected = before == values.end() ? std::nan("") : before->second;
    Check(value == expected || (std::isnan(value) && std::isnan(expected)));
  }
  Check(source->values().size() >= values.size());
}

// From kind 16 on.
constexpr std::string_view kGood[] = {
    "nr_free_pages 1751617\nnuma_hit 559583158\nnuma_miss 0\nnuma_other 9\nnr_dirty 59460\n"
    "workingset_refault_anon 3\nworkingset_refault_file 7774567\npgpgin 32493621\npswpout 8\n"
    "pgalloc_normal 576934467\nallocstall_dma32 1\nallocstall_normal 20\npgfault 582810051\n"
    "pgmajfault 52440\npgscan_direct 96\npgscan_direct_throttle 4\noom_kill 2\nnr_unstable 0\n",
    "IcmpMsg: InType3\nIcmpMsg: 2\nTcp: RtoMax MaxConn InSegs OutSegs RetransSegs\n"
    "Tcp: 120000 -1 7508315 7504349 628\nUdp: InDatagrams RcvbufErrors\nUdp: 1336 9\n",
    "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPRcvQDrop\n"
    "TcpExt: 1 40 41 115 131\nIpExt: InNoRoutes InOctets\nIpExt: 0 6286396970\n"};
// From kind kLater on.
constexpr std::string_view kGoodLater[] = {
    "Ip6InReceives                   \t12\nIp6InOctets                     \t3456\n"
    "Ip6InTruncatedPkts              \t0\nUdp6InErrors                    \t8\n",
    "sockets: used 229\nTCP: inuse 4 orphan 0 tw 4 alloc 17 mem 1\nUDP: inuse 0 mem 0\n",
    "00049279 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
    "00000000 00000000 00000000 00000000 00000000\n"
    "000dfb82 00000029 0000000a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
    "00000000 00000000 00000001 00000000 00000000\n",
    "                    CPU0       CPU1       \n          HI:          7          1\n"
    "       TIMER:     424191     108342\n",
    "           CPU0       CPU1       \n 24:          1          0  IO-APIC   5-edge      "
    "ACPI:Ged\n"
    "LOC:    6469382    5462942   Local timer interrupts\nERR:          3\n",
    "version 15\ntimestamp 15819019232\ncpu0 498494191 0 3533438552 2553969831 3853684107 "
    "2465731542 2045936778163039 343796328169361 4767485306\ndomain0 00000003 212499247\n",
    "Node 0, zone      DMA      1      0      0      1 \n"
    "Node 0, zone   Normal   3155   2696   1927   1564 \n"};

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
  CheckNumber(ParseCpuMax(text));
  CheckNumber(CountCpus(text));
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

void RunSensor(std::string_view text) {
  const double value = ParseSensor(text);
  Check(std::isnan(value) || std::isfinite(value));
  CheckNumber(ParseQuantity(text, "J"));
  // Each line a reading; whatever they are, the total only rises.
  EnergyCounter counter(1'000'000);
  double total = 0;
  sonde::Nanos now = 0;
  for (Cursor lines(text); !lines.AtEnd(); now += sonde::kSecond) {
    const double reading = ParseSensor(lines.Line());
    const double sum = counter.Add(reading < 0 ? kMissing : reading, now);
    CheckNumber(sum);
    if (std::isnan(sum)) continue;
    Check(sum >= total);
    total = sum;
  }
}

void RunMounted(std::string_view text) {
  std::vector<std::string> devices;
  for (const Filesystem& filesystem : ListFilesystems(text)) {
    Check(filesystem.point.starts_with('/'));
    Check(filesystem.point.size() <= text.size());
    Check(std::find(devices.begin(), devices.end(), filesystem.device) == devices.end());
    devices.push_back(filesystem.device);
  }
}

void RunNfsMounts(std::string_view text) {
  Cursor at(text);
  size_t mounts = 0;
  for (NfsMount mount; TakeNfsMount(at, mount); ++mounts) {
    Check(mount.device.size() + mount.point.size() < text.size());
    Check(Unescaped(mount.point).size() <= mount.point.size());
    for (const double value : mount.bytes) CheckNumber(value);
    for (const NfsCalls& calls : mount.calls) {
      for (const double value :
           {calls.calls, calls.sent, calls.timeouts, calls.bytes_sent, calls.bytes_received,
            calls.queue_seconds, calls.answer_seconds, calls.total_seconds}) {
        CheckNumber(value);
      }
    }
  }
  Check(mounts <= text.size());
  Check(at.AtEnd());
}

void RunLustre(std::string_view text) {
  Cursor at(text);
  for (LustreLine line; TakeLustreLine(at, line);) {
    CheckNumber(line.samples);
    CheckNumber(line.sum);
    Check(line.name.size() + line.unit.size() < text.size());
  }
}

void RunNumbers(std::string_view text) {
  CheckNumber(ParseCxiNumber(text));
  static constexpr NumaKey kKeys[] = {
      {"MemTotal:", 1024}, {"MemFree:", 1024}, {"numa_hit", 1}, {"", 1}};
  for (const auto parse : {ParseNumaMemory, ParseNumaCounts}) {
    double values[4] = {-1, -1, -1, -1};
    parse(text, std::span<const NumaKey>(kKeys), values);
    for (const double value : values) CheckNumber(value);
  }
}

void RunFilesystemFile(unsigned kind, std::string_view text) {
  switch (kind) {
    case 0:
      RunMounted(text);
      break;
    case 1:
      RunNfsMounts(text);
      break;
    case 2:
      RunLustre(text);
      break;
    default:
      RunNumbers(text);
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // A copy of its own, so that the sanitizer sees a read past the end.
  const std::vector<char> copy(data + 1, data + size);
  const std::string_view text(copy.data(), copy.size());
  const unsigned kind = data[0] % kKinds;
  if (kind < 12) {
    RunSource(kind, text);
  } else if (kind < 16) {
    RunTaskFile(kind - 12, text);
  } else if (kind < 22) {
    RunSource(kind, text);
    RunChanged(kind, kGood[(kind - 16) / 2], text);
  } else if (kind < 26) {
    RunCgroupFile(kind - 22, text);
  } else if (kind < kLater) {
    RunSensor(text);
  } else if (kind >= kFiles) {
    RunFilesystemFile(kind - kFiles, text);
  } else if (kind >= kNfs) {
    RunSource(kind, text);
  } else {
    RunSource(kind, text);
    RunChanged(kind, kGoodLater[(kind - kLater) / 2], text);
  }
  return 0;
}
