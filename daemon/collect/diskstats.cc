// /proc/diskstats: traffic of the block devices.
//
// Up to level 3 only whole disks: a partition, a volume of the device mapper or a RAID counts
// again what its disks count. Level 4 gives every device that the kernel lists.
#include "daemon/collect/device_source.h"
#include "daemon/collect/os_sources.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl Declare(std::string_view name, std::string_view unit, uint8_t level,
                             std::string_view help) {
  return {name, unit, MetricType::kCounter, level, Reduction::kSum, help};
}

constexpr double kSectorBytes = 512;  // whatever the device's own sectors are
constexpr double kMilli = 1e-3;

// The names are node_exporter's, the columns those of Documentation/admin-guide/iostats.rst.
constexpr DeviceField kFields[] = {
    {Declare("node_disk_reads_completed_total", "1", 2, "Reads completed. Tag device."), 0, 1},
    {Declare("node_disk_reads_merged_total", "1", 4, "Reads merged with others. Tag device."), 1,
     1},
    {Declare("node_disk_read_bytes_total", "bytes", 2, "Bytes read. Tag device."), 2, kSectorBytes},
    {Declare("node_disk_read_time_seconds_total", "seconds", 2,
             "Time all reads took together. Tag device."),
     3, kMilli},
    {Declare("node_disk_writes_completed_total", "1", 2, "Writes completed. Tag device."), 4, 1},
    {Declare("node_disk_writes_merged_total", "1", 4, "Writes merged with others. Tag device."), 5,
     1},
    {Declare("node_disk_written_bytes_total", "bytes", 2, "Bytes written. Tag device."), 6,
     kSectorBytes},
    {Declare("node_disk_write_time_seconds_total", "seconds", 2,
             "Time all writes took together. Tag device."),
     7, kMilli},
    {{"node_disk_io_now", "1", MetricType::kGauge, 4, Reduction::kSum,
      "Requests under way. Tag device."},
     8,
     1},
    {Declare("node_disk_io_time_seconds_total", "seconds", 2,
             "Time in which at least one request was under way. Tag device."),
     9, kMilli},
    {Declare("node_disk_io_time_weighted_seconds_total", "seconds", 4,
             "Time all requests took together, those under way included. Tag device."),
     10, kMilli},
};

// Not disks, or made of other disks in the list.
constexpr std::string_view kNoDisks[] = {"loop", "ram", "zram", "dm-", "md", "sr", "fd"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool HasNumberAt(std::string_view text, size_t at) { return at < text.size() && IsDigit(text[at]); }

class DiskstatsSource final : public DeviceSource {
 public:
  DiskstatsSource(const Roots& roots, int level, ReadBuffer& buffer)
      : DeviceSource(roots.proc + "/diskstats", level, kFields, buffer), all_(level >= 4) {}

  std::string_view name() const override { return "diskstats"; }

 private:
  std::string_view TakeName(Cursor& line) const override {
    uint64_t number = 0;
    if (!line.Unsigned(number) || !line.Unsigned(number)) return {};
    return line.Word();
  }
  // The kernel names a partition DISKpN if the disk's name ends in a digit and DISKN otherwise, and
  // lists it behind its disk (disk_name in its block/).
  bool IsPartOf(std::string_view device, std::string_view disk) const override {
    if (disk.empty() || !device.starts_with(disk)) return false;
    std::string_view number = device.substr(disk.size());
    if (IsDigit(disk.back())) {
      if (!number.starts_with('p')) return false;
      number.remove_prefix(1);
    }
    return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  }
  bool Wanted(std::string_view device, bool is_part) const override {
    if (all_) return true;
    return !is_part &&
           std::none_of(std::begin(kNoDisks), std::end(kNoDisks), [&](std::string_view prefix) {
             return device.starts_with(prefix) && HasNumberAt(device, prefix.size());
           });
  }

  const bool all_;
};

}  // namespace

std::unique_ptr<FileSource> MakeDiskstatsSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<DiskstatsSource>(roots, level, buffer);
}

std::vector<MetricDecl> DiskstatsMetrics() {
  std::vector<MetricDecl> metrics;
  for (const DeviceField& field : kFields) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
