// The metrics of the step's control group, as columns of its sample.
//
// Thread safety: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/metric.h"
#include "daemon/collect/job/cgroup_files.h"

namespace sonde::collect {

struct CgroupColumn {
  enum Index : uint8_t {
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
    kPageFaults,
    kMajorPageFaults,
    kSwap,
    kSwapLimit,
    kHighHits,
    kLimitHits,
    kOomEvents,
    kOomKills,
    kProcesses,
    kPidsLimit,
    kCpuQuota,
    kCpusetCpus,
    kCpuWaiting,
    kCpuStalled,
    kIoWaiting,
    kIoStalled,
    kMemoryWaiting,
    kMemoryStalled,
    kCount,
  };
};
inline constexpr size_t kCgroupColumns = CgroupColumn::kCount;

// By column. kCpuUser and kCpuSystem are one metric with a tag.
std::span<const MetricDecl> CgroupDecls();

// What is counted for each device.
struct CgroupDeviceField {
  double CgroupDevice::*member;
  MetricDecl decl;
};
std::span<const CgroupDeviceField> CgroupDeviceFields();

}  // namespace sonde::collect
