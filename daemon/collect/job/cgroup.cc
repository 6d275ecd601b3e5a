#include "daemon/collect/job/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/log.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl Counter(std::string_view name, std::string_view unit, std::string_view help) {
  return {name, unit, MetricType::kCounter, 2, Reduction::kSum, help};
}
constexpr MetricDecl Gauge(std::string_view name, std::string_view unit, std::string_view help) {
  return {name, unit, MetricType::kGauge, 2, Reduction::kSum, help};
}
constexpr MetricDecl Stalled(std::string_view name, std::string_view help) {
  return {name, "seconds", MetricType::kCounter, 2, Reduction::kMean, help};
}

enum Column : uint8_t {
  kCpuUser,
  kCpuSystem,
  kPeriods,
  kThrottledPeriods,
  kThrottledSeconds,
  kCharged,
  kPeak,
  kLimit,
  kHigh,
  kAnon,
  kFile,
  kShmem,
  kMapped,
  kDirty,
  kWriteback,
  kSlab,
  kKernelStack,
  kPageTables,
  kSock,
  kFaults,
  kMajorFaults,
  kSwap,
  kSwapLimit,
  kHighHits,
  kLimitHits,
  kOomEvents,
  kOomKills,
  kProcesses,
  kPidsLimit,
  kCpuWaiting,
  kCpuStalled,
  kIoWaiting,
  kIoStalled,
  kMemoryWaiting,
  kMemoryStalled,
  kColumns,
};

constexpr MetricDecl kCpuSeconds =
    Counter("cgroup_cpu_seconds_total", "seconds",
            "Processor time of all the group's processes, those that ended included. Tag mode "
            "(user, system).");
// By column.
constexpr MetricDecl kDecls[] = {
    kCpuSeconds,
    kCpuSeconds,
    Counter("cgroup_cpu_periods_total", "1",
            "Periods in which the group was runnable while its processor time was limited."),
    Counter("cgroup_cpu_throttled_periods_total", "1",
            "Periods in which it had used up its processor time and had to wait."),
    Counter("cgroup_cpu_throttled_seconds_total", "seconds",
            "Time for which it had to wait, added up over processors."),
    Gauge("cgroup_memory_bytes", "bytes",
          "Memory charged to the group: that of its processes, file cache and kernel objects."),
    Gauge("cgroup_memory_peak_bytes", "bytes", "The most that was ever charged to it."),
    Gauge("cgroup_memory_limit_bytes", "bytes",
          "Where processes are killed if nothing can be reclaimed; missing if there is no limit."),
    Gauge("cgroup_memory_high_bytes", "bytes",
          "Where processes are slowed down and memory is reclaimed; missing if there is no such "
          "limit (memory.high of version 2)."),
    Gauge("cgroup_memory_anon_bytes", "bytes", "Of it, memory that belongs to no file."),
    Gauge("cgroup_memory_file_bytes", "bytes",
          "Of it, file cache, with tmpfs and shared memory; most of it can be reclaimed."),
    Gauge("cgroup_memory_shmem_bytes", "bytes",
          "Of it, tmpfs (/dev/shm) and shared memory, which only swapping can reclaim."),
    Gauge("cgroup_memory_mapped_file_bytes", "bytes", "Of the file cache, what is mapped."),
    Gauge("cgroup_memory_dirty_bytes", "bytes",
          "Of the file cache, what is not yet written to storage."),
    Gauge("cgroup_memory_writeback_bytes", "bytes",
          "Of the file cache, what is being written to storage."),
    Gauge("cgroup_memory_slab_bytes", "bytes", "Of it, the kernel's own objects, such as inodes."),
    Gauge("cgroup_memory_kernel_stack_bytes", "bytes", "Of it, kernel stacks of threads."),
    Gauge("cgroup_memory_page_tables_bytes", "bytes", "Of it, page tables."),
    Gauge("cgroup_memory_sock_bytes", "bytes", "Of it, network buffers."),
    Counter("cgroup_memory_faults_total", "1", "Page faults."),
    Counter("cgroup_memory_major_faults_total", "1", "Page faults that needed I/O."),
    Gauge("cgroup_swap_bytes", "bytes", "Swap space in use."),
    Gauge("cgroup_swap_limit_bytes", "bytes",
          "Limit of swap space; missing if there is none (version 2)."),
    Counter("cgroup_memory_high_events_total", "1",
            "How often processes were slowed down for exceeding cgroup_memory_high_bytes."),
    Counter("cgroup_memory_limit_events_total", "1",
            "How often the limit was run into; mostly, memory was reclaimed and all went on."),
    Counter("cgroup_oom_events_total", "1",
            "How often the limit was run into and nothing could be reclaimed (version 2)."),
    Counter("cgroup_oom_kills_total", "1", "Processes that the kernel killed for want of memory."),
    Gauge("cgroup_pids", "1", "Processes and threads."),
    Gauge("cgroup_pids_limit", "1", "Limit of processes and threads; missing if there is none."),
    Stalled("cgroup_pressure_cpu_waiting_seconds_total",
            "Time in which some process of the group waited for a processor."),
    Stalled("cgroup_pressure_cpu_stalled_seconds_total",
            "Time in which all processes of the group that had work waited for a processor."),
    Stalled("cgroup_pressure_io_waiting_seconds_total",
            "Time in which some process of the group waited for I/O."),
    Stalled("cgroup_pressure_io_stalled_seconds_total",
            "Time in which no process of the group got on for waiting for I/O."),
    Stalled("cgroup_pressure_memory_waiting_seconds_total",
            "Time in which some process of the group waited for memory."),
    Stalled("cgroup_pressure_memory_stalled_seconds_total",
            "Time in which no process of the group got on for waiting for memory."),
};
static_assert(std::size(kDecls) == kColumns);

struct DeviceField {
  double CgroupDevice::*member;
  MetricDecl decl;
};
constexpr DeviceField kDeviceFields[] = {
    {&CgroupDevice::read_bytes,
     Counter("cgroup_io_read_bytes_total", "bytes", "Bytes read from a device. Tag device.")},
    {&CgroupDevice::written_bytes,
     Counter("cgroup_io_written_bytes_total", "bytes",
             "Bytes written to a device, those of the file cache when they get there. Tag "
             "device.")},
    {&CgroupDevice::reads,
     Counter("cgroup_io_reads_total", "1", "Read requests to a device. Tag device.")},
    {&CgroupDevice::writes,
     Counter("cgroup_io_writes_total", "1", "Write requests to a device. Tag device.")},
};

constexpr double kMicro = 1e-6;
constexpr double kNano = 1e-9;
// USER_HZ, which the kernel's files are written in whatever its own clock: 100 on all but Alpha.
constexpr double kUserTick = 0.01;

enum class Format : uint8_t { kNumber, kKeys, kStalls, kIoStat, kBlkioBytes, kBlkioOperations };

constexpr CgroupKey kCpuStat2[] = {{"user_usec", kCpuUser, kMicro},
                                   {"system_usec", kCpuSystem, kMicro},
                                   {"nr_periods", kPeriods, 1},
                                   {"nr_throttled", kThrottledPeriods, 1},
                                   {"throttled_usec", kThrottledSeconds, kMicro}};
constexpr CgroupKey kMemoryStat2[] = {
    {"anon", kAnon, 1},
    {"file", kFile, 1},
    {"kernel_stack", kKernelStack, 1},
    {"pagetables", kPageTables, 1},
    {"sock", kSock, 1},
    {"shmem", kShmem, 1},
    {"file_mapped", kMapped, 1},
    {"file_dirty", kDirty, 1},
    {"file_writeback", kWriteback, 1},
    {"slab", kSlab, 1},
    {"pgfault", kFaults, 1},
    {"pgmajfault", kMajorFaults, 1},
};
constexpr CgroupKey kMemoryEvents2[] = {{"high", kHighHits, 1},
                                        {"max", kLimitHits, 1},
                                        {"oom", kOomEvents, 1},
                                        {"oom_kill", kOomKills, 1}};
constexpr CgroupKey kCpuacctStat1[] = {{"user", kCpuUser, kUserTick},
                                       {"system", kCpuSystem, kUserTick}};
constexpr CgroupKey kCpuStat1[] = {{"nr_periods", kPeriods, 1},
                                   {"nr_throttled", kThrottledPeriods, 1},
                                   {"throttled_time", kThrottledSeconds, kNano}};
// The numbers without "total_" leave out the groups below.
constexpr CgroupKey kMemoryStat1[] = {
    {"hierarchical_memory_limit", kLimit, 1},
    {"total_cache", kFile, 1},
    {"total_rss", kAnon, 1},
    {"total_shmem", kShmem, 1},
    {"total_mapped_file", kMapped, 1},
    {"total_dirty", kDirty, 1},
    {"total_writeback", kWriteback, 1},
    {"total_swap", kSwap, 1},
    {"total_pgfault", kFaults, 1},
    {"total_pgmajfault", kMajorFaults, 1},
};
constexpr CgroupKey kOomControl1[] = {{"oom_kill", kOomKills, 1}};
// One column, or two for a file of pressure: some, full.
constexpr CgroupKey kMemoryNumber[] = {{"", kCharged, 1}};
constexpr CgroupKey kPeakNumber[] = {{"", kPeak, 1}};
constexpr CgroupKey kSwapNumber[] = {{"", kSwap, 1}};
constexpr CgroupKey kPidsNumber[] = {{"", kProcesses, 1}};
constexpr CgroupKey kFailuresNumber[] = {{"", kLimitHits, 1}};
constexpr CgroupKey kCpuStalls[] = {{"some", kCpuWaiting, 1}, {"full", kCpuStalled, 1}};
constexpr CgroupKey kIoStalls[] = {{"some", kIoWaiting, 1}, {"full", kIoStalled, 1}};
constexpr CgroupKey kMemoryStalls[] = {{"some", kMemoryWaiting, 1}, {"full", kMemoryStalled, 1}};

struct FileSpec {
  Hierarchy hierarchy;
  Hierarchy controller;  // of version 1; if it is there, version 2 does not have this file
  std::string_view name;
  Format format;
  std::span<const CgroupKey> keys;
};
using enum Hierarchy;
constexpr FileSpec kFiles[] = {
    {kUnified, kCpuacct, "cpu.stat", Format::kKeys, kCpuStat2},
    {kUnified, kMemory, "memory.current", Format::kNumber, kMemoryNumber},
    {kUnified, kMemory, "memory.peak", Format::kNumber, kPeakNumber},
    {kUnified, kMemory, "memory.stat", Format::kKeys, kMemoryStat2},
    {kUnified, kMemory, "memory.events", Format::kKeys, kMemoryEvents2},
    {kUnified, kMemory, "memory.swap.current", Format::kNumber, kSwapNumber},
    {kUnified, kPids, "pids.current", Format::kNumber, kPidsNumber},
    {kUnified, kBlkio, "io.stat", Format::kIoStat, {}},
    {kUnified, kUnified, "cpu.pressure", Format::kStalls, kCpuStalls},
    {kUnified, kUnified, "io.pressure", Format::kStalls, kIoStalls},
    {kUnified, kUnified, "memory.pressure", Format::kStalls, kMemoryStalls},
    {kCpuacct, kCpuacct, "cpuacct.stat", Format::kKeys, kCpuacctStat1},
    {kCpu, kCpu, "cpu.stat", Format::kKeys, kCpuStat1},
    {kMemory, kMemory, "memory.usage_in_bytes", Format::kNumber, kMemoryNumber},
    {kMemory, kMemory, "memory.max_usage_in_bytes", Format::kNumber, kPeakNumber},
    {kMemory, kMemory, "memory.failcnt", Format::kNumber, kFailuresNumber},
    {kMemory, kMemory, "memory.stat", Format::kKeys, kMemoryStat1},
    {kPids, kPids, "pids.current", Format::kNumber, kPidsNumber},
    {kBlkio, kBlkio, "blkio.throttle.io_service_bytes_recursive", Format::kBlkioBytes, {}},
    {kBlkio, kBlkio, "blkio.throttle.io_serviced_recursive", Format::kBlkioOperations, {}},
};

struct LimitSpec {
  Hierarchy hierarchy;
  Hierarchy controller;
  std::string_view name;
  Column column;
};
constexpr LimitSpec kLimits[] = {
    {kUnified, kMemory, "memory.max", kLimit},
    {kUnified, kMemory, "memory.high", kHigh},
    {kUnified, kMemory, "memory.swap.max", kSwapLimit},
    {kUnified, kPids, "pids.max", kPidsLimit},
    {kPids, kPids, "pids.max", kPidsLimit},
};
constexpr Nanos kLimitsEvery = 10 * kSecond;
// Version 1 writes "no limit" as the largest number of whole pages.
constexpr double kNoLimit = 0x1p62;

}  // namespace

struct CgroupSource::File {
  const FileSpec* spec;
  FileReader reader;
};

struct CgroupSource::LimitFile {
  uint8_t column;
  std::string path;
};

struct CgroupSource::KillsFile {
  std::string directory;
  FileReader reader;
  double kills = kMissing;  // kept when the group is gone
};

CgroupSource::CgroupSource(const Roots& roots, const TasksSource& tasks, ReadBuffer& buffer)
    : devices_path_(roots.sys + "/dev/block"),
      buffer_(buffer),
      finder_(roots, tasks, buffer),
      read_(kColumns, kMissing),
      limits_(kColumns, kMissing) {}

CgroupSource::~CgroupSource() = default;

void CgroupSource::Sample(Nanos now) {
  if (finder_.Look(now)) {
    OpenFiles();
    Declare();
  }
  // No note in the profile: on a site without control groups every node of every step had one.
  if (const std::string note = finder_.TakeNote(); !note.empty()) log::Debug("{}", note);
  if (columns_.empty()) return;
  ReadLimits(now);
  std::copy(limits_.begin(), limits_.end(), read_.begin());
  ClearDevices();
  for (File& file : files_) ReadFile(file, now);
  if (read_[kLimit] >= kNoLimit) read_[kLimit] = kMissing;
  ReadKills(now);
  if (devices_.size() != devices_declared_) Declare();
  WriteValues();
}

void CgroupSource::OpenFiles() {
  const auto in_use = [&](Hierarchy hierarchy, Hierarchy controller) {
    const bool elsewhere =
        hierarchy == kUnified && controller != kUnified && finder_.is_version_1(controller);
    return !elsewhere && !finder_.directory(hierarchy).empty();
  };
  files_.clear();
  limit_files_.clear();
  limits_at_ = 0;
  for (const FileSpec& spec : kFiles) {
    if (!in_use(spec.hierarchy, spec.controller)) continue;
    std::string path = fmt::format("{}/{}", finder_.directory(spec.hierarchy), spec.name);
    const size_t size = spec.format == Format::kNumber ? 64
                        : spec.format == Format::kKeys ? 2048
                                                       : 512;
    files_.push_back({&spec, FileReader(std::move(path), Shape::kWhole, size)});
  }
  for (const LimitSpec& spec : kLimits) {
    if (!in_use(spec.hierarchy, spec.controller)) continue;
    AddLimits(finder_.directory(spec.hierarchy), finder_.depth(spec.hierarchy), spec.name,
              spec.column);
  }
  if (!finder_.directory(kMemory).empty()) {
    AddKillsFile(finder_.directory(kMemory));
    for (const std::string& directory : finder_.task_directories()) AddKillsFile(directory);
  }
}

void CgroupSource::AddLimits(const std::string& directory, size_t depth, std::string_view name,
                             uint8_t column) {
  std::string_view group = directory;
  for (; depth > 0; --depth, group = group.substr(0, group.rfind('/'))) {
    limit_files_.push_back({column, fmt::format("{}/{}", group, name)});
  }
}

void CgroupSource::AddKillsFile(const std::string& directory) {
  const bool known =
      std::any_of(kills_files_.begin(), kills_files_.end(),
                  [&](const KillsFile& file) { return file.directory == directory; });
  if (known) return;
  kills_files_.push_back(
      {directory, FileReader(directory + "/memory.oom_control", Shape::kWhole, 128)});
}

void CgroupSource::Declare() {
  bool wanted[kColumns] = {};
  for (const File& file : files_) {
    for (const CgroupKey& key : file.spec->keys) wanted[key.column] = true;
  }
  for (const LimitFile& file : limit_files_) wanted[file.column] = true;
  if (!kills_files_.empty()) wanted[kOomKills] = true;
  columns_.clear();
  series_.clear();
  const auto add = [&](const MetricDecl& decl, Tags tags) {
    Series& s = series_.emplace_back();
    s.metric = Metric(decl);
    s.tags = std::move(tags);
  };
  for (uint8_t column = 0; column < kColumns; ++column) {
    if (!wanted[column]) continue;
    columns_.push_back(column);
    Tags tags;
    if (column == kCpuUser) tags.Set("mode", "user");
    if (column == kCpuSystem) tags.Set("mode", "system");
    add(kDecls[column], std::move(tags));
  }
  for (const CgroupDevice& device : devices_) {
    const std::string name = DeviceName(device);
    for (const DeviceField& field : kDeviceFields) add(field.decl, {{"device", name}});
  }
  devices_declared_ = devices_.size();
  values_.assign(series_.size(), kMissing);
  ++generation_;
}

// The kernel's name of the device, as node_disk_* have it; its number if it has none.
std::string CgroupSource::DeviceName(const CgroupDevice& device) const {
  std::string number = fmt::format("{}:{}", device.major, device.minor);
  char target[1024];
  const ssize_t length =
      readlink(fmt::format("{}/{}", devices_path_, number).c_str(), target, sizeof(target));
  if (length <= 0) return number;
  std::string_view name(target, static_cast<size_t>(length));
  name = name.substr(name.rfind('/') + 1);
  return CheckTag("device", name).ok() ? std::string(name) : number;
}

void CgroupSource::ReadFile(File& file, Nanos now) {
  const FileSpec& spec = *file.spec;
  const std::string_view text = file.reader.Read(buffer_, now);
  switch (spec.format) {
    case Format::kNumber:
      read_[spec.keys[0].column] = ParseCgroupNumber(text);
      break;
    case Format::kKeys:
      ParseCgroupKeys(text, spec.keys, read_.data());
      break;
    case Format::kStalls: {
      const Stalls stalls = ParseStalls(text);
      read_[spec.keys[0].column] = stalls.some;
      read_[spec.keys[1].column] = stalls.full;
      break;
    }
    case Format::kIoStat:
      ParseIoStat(text, devices_);
      break;
    case Format::kBlkioBytes:
      ParseBlkio(text, BlkioFile::kBytes, devices_);
      break;
    case Format::kBlkioOperations:
      ParseBlkio(text, BlkioFile::kOperations, devices_);
      break;
  }
}

void CgroupSource::ReadLimits(Nanos now) {
  if (now < limits_at_) return;
  limits_at_ = now + kLimitsEvery;
  std::fill(limits_.begin(), limits_.end(), kMissing);
  for (const LimitFile& file : limit_files_) {
    const Fd fd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd) continue;
    int error = 0;
    const double limit =
        ParseCgroupNumber(ReadText(fd.get(), Shape::kWhole, limit_size_, buffer_, error));
    limits_[file.column] = std::fmin(limits_[file.column], limit);
  }
}

void CgroupSource::ReadKills(Nanos now) {
  for (KillsFile& file : kills_files_) {
    double read[kColumns];
    read[kOomKills] = kMissing;
    ParseCgroupKeys(file.reader.Read(buffer_, now), kOomControl1, read);
    file.kills = std::fmax(file.kills, read[kOomKills]);
    if (std::isnan(file.kills)) continue;
    double& sum = read_[kOomKills];
    sum = std::isnan(sum) ? file.kills : sum + file.kills;
  }
}

void CgroupSource::ClearDevices() {
  for (CgroupDevice& device : devices_) {
    for (const DeviceField& field : kDeviceFields) device.*field.member = kMissing;
  }
}

void CgroupSource::WriteValues() {
  double* to = values_.data();
  for (const uint8_t column : columns_) *to++ = read_[column];
  for (const CgroupDevice& device : devices_) {
    for (const DeviceField& field : kDeviceFields) *to++ = device.*field.member;
  }
}

std::vector<MetricDecl> CgroupMetrics() {
  // Both modes of kCpuSeconds are one metric.
  std::vector<MetricDecl> metrics(std::begin(kDecls) + kCpuSystem, std::end(kDecls));
  for (const DeviceField& field : kDeviceFields) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
