// The sources of filesystems, a file each: space.cc, nfs.cc, nfs_mounts.cc, lustre.cc.
//
// `level` is the step's telemetry level: at 4 a source gives its details as well. `buffer` is
// shared by all and outlives them. A filesystem that is not there costs next to nothing: it is
// looked for once a minute.
//
// IBM Storage Scale (GPFS) has no source of its own: mmpmon, which has its counters, is for root
// alone. Its space is read like every filesystem's; its reads and writes are known from the tasks.
//
// Thread safety: functions without state.
#pragma once

#include <sys/statvfs.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/collect/filesystems/remote_space.h"
#include "daemon/collect/read/file_source.h"

namespace sonde::collect {

// Space of the mounted filesystems; `allowed` are the types that are asked although whoever waits
// for them may not be killed (mounted.h); "none": none, and no note says so. `call` is made from
// several threads.
std::unique_ptr<Source> MakeSpaceSource(const Roots& roots, const std::string& allowed,
                                        ReadBuffer& buffer, StatvfsCall call = ::statvfs);
std::vector<MetricDecl> SpaceMetrics();

// The NFS client: all mounts together, by procedure at level 4.
std::unique_ptr<FileSource> MakeNfsSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> NfsMetrics();
// The NFS client's traffic: all mounts together, by mount at level 4.
std::unique_ptr<Source> MakeNfsMountsSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> NfsMountsMetrics();

std::unique_ptr<Source> MakeLustreSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> LustreMetrics();

}  // namespace sonde::collect
