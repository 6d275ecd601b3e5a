// The operating system's sources, one file each.
//
// `level` is the step's telemetry level: at 4 a source gives its details as well. `buffer` is
// shared by all and outlives them.
//
// Thread safety: functions without state.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "daemon/collect/read/file_source.h"

namespace sonde::collect {

// `forks`, which outlives the source, gets how many processes and threads were ever created; NaN if
// that cannot be read.
std::unique_ptr<FileSource> MakeCpuSource(const Roots& roots, int level, ReadBuffer& buffer,
                                          double* forks = nullptr);
std::vector<MetricDecl> CpuMetrics();

// Only from level 3 on.
std::unique_ptr<Source> MakeProcessorSource(const Roots& roots);
std::vector<MetricDecl> ProcessorMetrics();

std::unique_ptr<FileSource> MakeMeminfoSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> MeminfoMetrics();

// Pools of huge pages by size; for level 4.
std::unique_ptr<Source> MakeHugepagesSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> HugepagesMetrics();

// Memory by NUMA node; for level 4.
std::unique_ptr<Source> MakeNumaSource(const Roots& roots, ReadBuffer& buffer);
std::vector<MetricDecl> NumaMetrics();

std::unique_ptr<FileSource> MakeVmstatSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> VmstatMetrics();

std::unique_ptr<FileSource> MakeLoadavgSource(const Roots& roots, ReadBuffer& buffer);
std::vector<MetricDecl> LoadavgMetrics();

std::unique_ptr<FileSource> MakeNetdevSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> NetdevMetrics();

std::unique_ptr<FileSource> MakeSnmpSource(const Roots& roots, int level, ReadBuffer& buffer);
std::unique_ptr<FileSource> MakeNetstatSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> SnmpMetrics();
std::vector<MetricDecl> NetstatMetrics();

std::unique_ptr<FileSource> MakeSnmp6Source(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> Snmp6Metrics();

std::unique_ptr<FileSource> MakeSockstatSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> SockstatMetrics();

std::unique_ptr<FileSource> MakeSoftnetSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> SoftnetMetrics();

// Only for level 4.
std::unique_ptr<FileSource> MakeSoftirqsSource(const Roots& roots, ReadBuffer& buffer);
std::vector<MetricDecl> SoftirqsMetrics();
std::unique_ptr<FileSource> MakeInterruptsSource(const Roots& roots, ReadBuffer& buffer);
std::vector<MetricDecl> InterruptsMetrics();
std::unique_ptr<FileSource> MakeSchedstatSource(const Roots& roots, ReadBuffer& buffer);
std::vector<MetricDecl> SchedstatMetrics();
std::unique_ptr<FileSource> MakeBuddyinfoSource(const Roots& roots, ReadBuffer& buffer);
std::vector<MetricDecl> BuddyinfoMetrics();

std::unique_ptr<Source> MakeInfinibandSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> InfinibandMetrics();

std::unique_ptr<Source> MakeSlingshotSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> SlingshotMetrics();
// The number in a file "VALUE@TIME" of telemetry, or in one of a number alone; else kMissing.
double ParseCxiNumber(std::string_view text);

std::unique_ptr<FileSource> MakeDiskstatsSource(const Roots& roots, int level, ReadBuffer& buffer);
// The same from /sys/block where that is cheaper.
std::unique_ptr<Source> MakeDisksSource(const Roots& roots, int level, ReadBuffer& buffer);
std::vector<MetricDecl> DiskMetrics();

// What processes wait for; each is a file of its own.
enum class Pressure : unsigned char { kCpu, kIo, kMemory };
std::unique_ptr<FileSource> MakePressureSource(const Roots& roots, Pressure what,
                                               ReadBuffer& buffer);
std::vector<MetricDecl> PressureMetrics();

}  // namespace sonde::collect
