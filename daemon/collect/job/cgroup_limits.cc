#include "daemon/collect/job/cgroup_limits.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/unique_fd.h"

namespace sonde::collect {

enum class LimitFormat : unsigned char {
  kNumber,
  kCpuMax,   // "QUOTA PERIOD"
  kCpuList,  // "0-3,8"
  kQuota,    // a file each for quota and period
};

struct CgroupLimitSpec {
  Hierarchy hierarchy;
  Hierarchy controller;  // of version 1; if it is there, version 2 does not have this file
  std::string_view name;
  CgroupColumn::Index column;
  LimitFormat format;
};

namespace {

using enum Hierarchy;
using enum CgroupColumn::Index;
constexpr CgroupLimitSpec kLimits[] = {
    {kUnified, kMemory, "memory.max", kLimit, LimitFormat::kNumber},
    {kUnified, kMemory, "memory.high", kHigh, LimitFormat::kNumber},
    {kUnified, kMemory, "memory.swap.max", kSwapLimit, LimitFormat::kNumber},
    {kUnified, kPids, "pids.max", kPidsLimit, LimitFormat::kNumber},
    {kUnified, kCpu, "cpu.max", kCpuQuota, LimitFormat::kCpuMax},
    {kUnified, kCpuset, "cpuset.cpus.effective", kCpusetCpus, LimitFormat::kCpuList},
    {kPids, kPids, "pids.max", kPidsLimit, LimitFormat::kNumber},
    {kCpu, kCpu, "cpu.cfs_quota_us", kCpuQuota, LimitFormat::kQuota},
    {kCpuset, kCpuset, "cpuset.effective_cpus", kCpusetCpus, LimitFormat::kCpuList},
};
constexpr std::string_view kPeriodFile = "cpu.cfs_period_us";
constexpr Nanos kEvery = 10 * kSecond;

}  // namespace

CgroupLimits::CgroupLimits(ReadBuffer& buffer)
    : buffer_(buffer), values_(kCgroupColumns, kMissing) {}

void CgroupLimits::Open(const CgroupFinder& finder) {
  files_.clear();
  read_at_ = 0;
  for (const CgroupLimitSpec& spec : kLimits) {
    if (!finder.HasFilesOf(spec.hierarchy, spec.controller)) continue;
    std::string_view group = finder.directory(spec.hierarchy);
    for (size_t depth = finder.depth(spec.hierarchy); depth > 0; --depth) {
      files_.push_back({&spec, std::string(group)});
      group = group.substr(0, group.rfind('/'));
    }
  }
}

bool CgroupLimits::Has(uint8_t column) const {
  return std::any_of(files_.begin(), files_.end(),
                     [&](const File& file) { return file.spec->column == column; });
}

void CgroupLimits::Read(Nanos now) {
  if (now < read_at_) return;
  read_at_ = now + kEvery;
  std::fill(values_.begin(), values_.end(), kMissing);
  for (const File& file : files_) {
    double& value = values_[file.spec->column];
    value = std::fmin(value, ReadLimit(file));
  }
}

double CgroupLimits::ReadLimit(const File& file) {
  const std::string_view text = ReadFile(file.directory, file.spec->name);
  switch (file.spec->format) {
    case LimitFormat::kNumber:
      return ParseCgroupNumber(text);
    case LimitFormat::kCpuMax:
      return ParseCpuMax(text);
    case LimitFormat::kCpuList:
      return CountCpus(text);
    case LimitFormat::kQuota:
      break;
  }
  const double quota = ParseCgroupNumber(text);  // -1, which is none, if there is no limit
  const double period = ParseCgroupNumber(ReadFile(file.directory, kPeriodFile));
  return period > 0 ? quota / period : kMissing;
}

std::string_view CgroupLimits::ReadFile(const std::string& directory, std::string_view name) {
  char path[4096];
  *fmt::format_to_n(path, sizeof(path) - 1, "{}/{}", directory, name).out = '\0';
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return {};
  int error = 0;
  return ReadText(fd.get(), Shape::kWhole, size_, buffer_, error);
}

}  // namespace sonde::collect
