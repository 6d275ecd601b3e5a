// Traffic of the block devices.
//
// Up to level 3 only whole disks, each from /sys/block/DISK/stat: a partition, a volume of the
// device mapper or a RAID counts again what its disks count, and a machine may have dozens of idle
// loop devices, for each of which /proc/diskstats takes as long as for a disk. Level 4 gives every
// device of /proc/diskstats; so does, for whole disks, a system without /sys/block.
#include <algorithm>
#include <filesystem>
#include <iterator>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/read/device_source.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl Declare(std::string_view name, std::string_view unit, uint8_t level,
                             std::string_view help) {
  return {name, unit, MetricType::kCounter, level, Reduction::kSum, help};
}

constexpr double kSectorBytes = 512;  // whatever the device's own sectors are
constexpr double kMilli = 1e-3;

// The names are node_exporter's, the columns those of Documentation/admin-guide/iostats.rst.
constexpr DeviceField kDisksFields[] = {
    {Declare("node_disk_reads_completed_total", "1", 2, "Reads completed. Tag device."), 0, 1},
    {Declare("node_disk_reads_merged_total", "1", 2, "Reads merged with others. Tag device."), 1,
     1},
    {Declare("node_disk_read_bytes_total", "bytes", 2, "Bytes read. Tag device."), 2, kSectorBytes},
    {Declare("node_disk_read_time_seconds_total", "seconds", 2,
             "Time all reads took together. Tag device."),
     3, kMilli},
    {Declare("node_disk_writes_completed_total", "1", 2, "Writes completed. Tag device."), 4, 1},
    {Declare("node_disk_writes_merged_total", "1", 2, "Writes merged with others. Tag device."), 5,
     1},
    {Declare("node_disk_written_bytes_total", "bytes", 2, "Bytes written. Tag device."), 6,
     kSectorBytes},
    {Declare("node_disk_write_time_seconds_total", "seconds", 2,
             "Time all writes took together. Tag device."),
     7, kMilli},
    {{"node_disk_io_now", "1", MetricType::kGauge, 2, Reduction::kSum,
      "Requests under way. Tag device."},
     8,
     1},
    {Declare("node_disk_io_time_seconds_total", "seconds", 2,
             "Time in which at least one request was under way. Tag device."),
     9, kMilli},
    {Declare("node_disk_io_time_weighted_seconds_total", "seconds", 2,
             "Time all requests took together, those under way included. Tag device."),
     10, kMilli},
    {Declare("node_disk_discards_completed_total", "1", 2,
             "Discards completed, which tell a disk what it may forget. Tag device."),
     11, 1},
    {Declare("node_disk_discards_merged_total", "1", 4, "Discards merged with others. Tag device."),
     12, 1},
    {Declare("node_disk_discarded_bytes_total", "bytes", 2, "Bytes discarded. Tag device."), 13,
     kSectorBytes},
    {Declare("node_disk_discard_time_seconds_total", "seconds", 2,
             "Time all discards took together. Tag device."),
     14, kMilli},
    {Declare("node_disk_flush_requests_total", "1", 2,
             "Flushes completed, such as fsync causes. Tag device."),
     15, 1},
    {Declare("node_disk_flush_requests_time_seconds_total", "seconds", 2,
             "Time all flushes took together. Tag device."),
     16, kMilli},
};

// Not disks, or made of other disks in the list.
constexpr std::string_view kNoDisks[] = {"loop", "ram", "zram", "dm-", "md", "sr", "fd"};

constexpr int kWholeDisksLevel = 3;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsDisk(std::string_view device) {
  return std::none_of(std::begin(kNoDisks), std::end(kNoDisks), [&](std::string_view prefix) {
    return device.size() > prefix.size() && device.starts_with(prefix) &&
           IsDigit(device[prefix.size()]);
  });
}

class DiskstatsSource final : public DeviceSource {
 public:
  DiskstatsSource(const Roots& roots, int level, ReadBuffer& buffer)
      : DeviceSource(roots.proc + "/diskstats", level, kDisksFields, buffer),
        all_(level > kWholeDisksLevel) {}

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
    return all_ || (!is_part && IsDisk(device));
  }

  const bool all_;
};

// The whole disks, by their own files.
class WholeDisksSource final : public Source {
 public:
  WholeDisksSource(const Roots& roots, ReadBuffer& buffer)
      : directory_(roots.sys + "/block"), buffer_(buffer) {
    std::copy_if(std::begin(kDisksFields), std::end(kDisksFields), std::back_inserter(fields_),
                 [](const DeviceField& f) { return f.decl.level <= kWholeDisksLevel; });
  }

  std::string_view name() const override { return "disks"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return true; }
  void Sample(Nanos now) override {
    if (now >= rescan_at_) Rescan(now);
    size_t column = 0;
    for (Disk& disk : disks_) {
      Cursor line(disk.file.Read(buffer_, now));
      if (line.AtEnd()) rescan_at_ = 0;  // it may be gone
      ReadFields(line, fields_, &values_[column]);
      column += fields_.size();
    }
  }

 private:
  struct Disk {
    std::string name;
    FileReader file;
  };

  void Rescan(Nanos now) {
    rescan_at_ = now + kRescan;
    std::vector<std::string> names;
    std::error_code error;  // a list that cannot be read is an empty one
    for (auto at = std::filesystem::directory_iterator(directory_, error);
         !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
      std::string disk = at->path().filename();
      if (IsDisk(disk) && CheckTag("device", disk).ok()) names.push_back(std::move(disk));
    }
    std::sort(names.begin(), names.end());
    if (names.size() > kMaxDisks) names.resize(kMaxDisks);
    const bool same = std::equal(names.begin(), names.end(), disks_.begin(), disks_.end(),
                                 [](const std::string& n, const Disk& d) { return n == d.name; });
    if (!same) Declare(names);
  }
  void Declare(const std::vector<std::string>& names) {
    disks_.clear();
    series_.clear();
    for (const std::string& disk : names) {
      disks_.push_back({disk, FileReader(directory_ + "/" + disk + "/stat", Shape::kWhole, 256)});
      for (const DeviceField& field : fields_) {
        Series& s = series_.emplace_back();
        s.metric = Metric(field.decl);
        s.tags.Set("device", DeviceName(disk));
      }
    }
    values_.assign(series_.size(), kMissing);
    ++generation_;
  }
  // sysfs writes the slash of names such as cciss/c0d0 as '!'.
  static std::string DeviceName(std::string name) {
    std::replace(name.begin(), name.end(), '!', '/');
    return name;
  }

  static constexpr Nanos kRescan = 60 * kSecond;
  static constexpr size_t kMaxDisks = 512;

  const std::string directory_;
  ReadBuffer& buffer_;
  std::vector<DeviceField> fields_;
  std::vector<Disk> disks_;
  Nanos rescan_at_ = 0;
};

}  // namespace

std::unique_ptr<FileSource> MakeDiskstatsSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<DiskstatsSource>(roots, level, buffer);
}

std::unique_ptr<Source> MakeDisksSource(const Roots& roots, int level, ReadBuffer& buffer) {
  std::error_code error;
  if (level > kWholeDisksLevel || !std::filesystem::is_directory(roots.sys + "/block", error)) {
    return MakeDiskstatsSource(roots, level, buffer);
  }
  return std::make_unique<WholeDisksSource>(roots, buffer);
}

std::vector<MetricDecl> DiskMetrics() { return DeclarationsOf(kDisksFields); }

}  // namespace sonde::collect
