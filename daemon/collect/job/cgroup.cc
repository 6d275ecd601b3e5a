#include "daemon/collect/job/cgroup.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/log.h"

namespace sonde::collect {
namespace {

using enum CgroupColumn::Index;

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
    {"pgfault", kPageFaults, 1},
    {"pgmajfault", kMajorPageFaults, 1},
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
    {"total_pgfault", kPageFaults, 1},
    {"total_pgmajfault", kMajorPageFaults, 1},
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

// Version 1 writes "no limit" as the largest number of whole pages.
constexpr double kNoLimit = 0x1p62;

}  // namespace

struct CgroupSource::File {
  const FileSpec* spec;
  FileReader reader;
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
      limits_(buffer),
      read_(kCgroupColumns, kMissing) {}

CgroupSource::~CgroupSource() = default;

void CgroupSource::Sample(Nanos now) {
  if (finder_.Look(now)) {
    OpenFiles();
    Declare();
  }
  // No note in the profile: on a site without control groups every node of every step had one.
  if (const std::string note = finder_.TakeNote(); !note.empty()) log::Debug("{}", note);
  if (columns_.empty()) return;
  limits_.Read(now);
  std::copy(limits_.values().begin(), limits_.values().end(), read_.begin());
  ClearDevices();
  for (File& file : files_) ReadFile(file, now);
  if (read_[kLimit] >= kNoLimit) read_[kLimit] = kMissing;
  ReadKills(now);
  if (devices_.size() != devices_declared_) Declare();
  WriteValues();
}

void CgroupSource::OpenFiles() {
  files_.clear();
  limits_.Open(finder_);
  for (const FileSpec& spec : kFiles) {
    if (!finder_.HasFilesOf(spec.hierarchy, spec.controller)) continue;
    std::string path = fmt::format("{}/{}", finder_.directory(spec.hierarchy), spec.name);
    const size_t size = spec.format == Format::kNumber ? 64
                        : spec.format == Format::kKeys ? 2048
                                                       : 512;
    files_.push_back({&spec, FileReader(std::move(path), Shape::kWhole, size)});
  }
  if (!finder_.directory(kMemory).empty()) {
    AddKillsFile(finder_.directory(kMemory));
    for (const std::string& directory : finder_.task_directories()) AddKillsFile(directory);
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
  bool wanted[kCgroupColumns] = {};
  for (const File& file : files_) {
    for (const CgroupKey& key : file.spec->keys) wanted[key.column] = true;
  }
  for (uint8_t column = 0; column < kCgroupColumns; ++column) {
    wanted[column] = wanted[column] || limits_.Has(column);
  }
  if (!kills_files_.empty()) wanted[kOomKills] = true;
  columns_.clear();
  series_.clear();
  const auto add = [&](const MetricDecl& decl, Tags tags) {
    Series& s = series_.emplace_back();
    s.metric = Metric(decl);
    s.tags = std::move(tags);
  };
  for (uint8_t column = 0; column < kCgroupColumns; ++column) {
    if (!wanted[column]) continue;
    columns_.push_back(column);
    Tags tags;
    if (column == kCpuUser) tags.Set("mode", "user");
    if (column == kCpuSystem) tags.Set("mode", "system");
    add(CgroupDecls()[column], std::move(tags));
  }
  for (const CgroupDevice& device : devices_) {
    const std::string name = DeviceName(device);
    for (const CgroupDeviceField& field : CgroupDeviceFields()) add(field.decl, {{"device", name}});
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

void CgroupSource::ReadKills(Nanos now) {
  for (KillsFile& file : kills_files_) {
    double read[kCgroupColumns];
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
    for (const CgroupDeviceField& field : CgroupDeviceFields()) device.*field.member = kMissing;
  }
}

void CgroupSource::WriteValues() {
  double* to = values_.data();
  for (const uint8_t column : columns_) *to++ = read_[column];
  for (const CgroupDevice& device : devices_) {
    for (const CgroupDeviceField& field : CgroupDeviceFields()) *to++ = device.*field.member;
  }
}

std::vector<MetricDecl> CgroupMetrics() {
  // Both modes of the first are one metric.
  const std::span<const MetricDecl> decls = CgroupDecls().subspan(kCpuSystem);
  std::vector<MetricDecl> metrics(decls.begin(), decls.end());
  for (const CgroupDeviceField& field : CgroupDeviceFields()) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
