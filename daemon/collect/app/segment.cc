#include "daemon/collect/app/segment.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstring>

#include "core/bytes.h"

namespace sonde::collect {
namespace {

using client::Cell;
using client::Header;
using client::kMaxAppTags;
using client::kMaxMetrics;
using client::Record;

Status Corrupt(std::string message) { return {Code::kCorrupt, std::move(message)}; }

Status ReadTags(ByteReader& in, size_t count, Tags& tags) {
  for (size_t i = 0; i < count; ++i) {
    const size_t key_size = in.Fixed<uint8_t>();
    const size_t value_size = in.Fixed<uint8_t>();
    const std::string_view key = in.Raw(key_size), value = in.Raw(value_size);
    if (!in.ok()) return Corrupt("a record ends within its tags");
    SONDE_RETURN_IF_ERROR(CheckTag(key, value));
    if (key == client::kTaskTag) return Corrupt("the tag 'task' is the daemon's to give");
    if (tags.Find(key) != nullptr) return Corrupt(fmt::format("the tag '{}' is there twice", key));
    tags.Set(key, value);
  }
  return {};
}

Status CheckKind(const Record& record) {
  if (record.type > static_cast<uint8_t>(MetricType::kHistogram)) {
    return Corrupt(fmt::format("a metric of unknown type {}", record.type));
  }
  if (record.reduction > static_cast<uint8_t>(Reduction::kMax)) {
    return Corrupt(fmt::format("a metric of unknown reduction {}", record.reduction));
  }
  if (record.level < 1 || record.level > kMaxLevel) {
    return Corrupt(fmt::format("a metric of level {}", record.level));
  }
  const bool histogram = record.type == static_cast<uint8_t>(MetricType::kHistogram);
  if (record.slot >= (histogram ? client::kMaxHistograms : kMaxMetrics) || record.slots != 1) {
    return Corrupt(fmt::format("a metric with {} slots from {}", record.slots, record.slot));
  }
  if (histogram && record.name_size > client::kMaxHistogramName) {
    return Corrupt(fmt::format("a histogram with a name of {} bytes", record.name_size));
  }
  if (record.tag_count > kMaxAppTags) {
    return Corrupt(fmt::format("a metric with {} tags", record.tag_count));
  }
  return {};
}

}  // namespace

Result<client::Hello> ParseHello(std::string_view packet) {
  client::Hello hello;
  if (packet.size() != sizeof(hello)) {
    return Corrupt(fmt::format("a hello of {} bytes instead of {}", packet.size(), sizeof(hello)));
  }
  std::memcpy(&hello, packet.data(), sizeof(hello));
  if (hello.magic != client::kMagic) return Corrupt("not a hello of libsonde");
  if (hello.version != client::kVersion) {
    return Status(Code::kUnsupported,
                  fmt::format("it has version {} of the layout and this daemon knows {}; use "
                              "libsonde and sonded of one release",
                              hello.version, client::kVersion));
  }
  if (hello.segment_size != client::kSegmentSize) return Corrupt("a segment of another size");
  if (hello.rank < -1 || hello.local_rank < -1) return Corrupt("a negative rank");
  return hello;
}

bool AppHasSpread(MetricType type, std::string_view name) {
  return type == MetricType::kGauge || name == "mpi_wait_seconds_total";
}

Result<AppMetric> ParseRecord(std::string_view bytes) {
  Record record;
  if (bytes.size() < sizeof(record)) return Corrupt("a record shorter than its head");
  std::memcpy(&record, bytes.data(), sizeof(record));
  SONDE_RETURN_IF_ERROR(CheckKind(record));
  ByteReader in(bytes.substr(sizeof(record)));
  const std::string_view name = in.Raw(record.name_size);
  const std::string_view unit = in.Raw(record.unit_size);
  const std::string_view help = in.Raw(record.help_size);
  if (!in.ok()) return Corrupt("a record ends within its texts");
  SONDE_RETURN_IF_ERROR(CheckMetricName(name));
  if (unit.size() > kMaxNameLength || !names::IsPlainText(unit) || help.size() > kMaxTextLength ||
      !names::IsPlainText(help)) {
    return Corrupt(fmt::format("unit or help of metric '{}' is no plain text", name));
  }
  AppMetric metric;
  SONDE_RETURN_IF_ERROR(ReadTags(in, record.tag_count, metric.series.tags));
  Metric& m = metric.series.metric;
  m.name = name;
  m.unit = unit;
  m.help = help;
  m.type = static_cast<MetricType>(record.type);
  m.level = record.level;
  m.reduction = static_cast<Reduction>(record.reduction);
  m.spread = AppHasSpread(m.type, m.name);
  metric.slot = record.slot;
  return metric;
}

Status AppSegment::CheckHeader() const {
  if (LoadRelaxed(&header()->magic) != client::kMagic ||
      LoadRelaxed(&header()->version) != client::kVersion) {
    return Corrupt("its memory does not begin with libsonde's header");
  }
  return {};
}

Status AppSegment::ReadNew(size_t limit, std::vector<AppMetric>& out) {
  const uint64_t end = __atomic_load_n(&header()->records_end, __ATOMIC_ACQUIRE);
  if (end == read_) return {};
  if (end < read_ || end > client::kRecordsSize) {
    return Corrupt(fmt::format("its records end at {} after {}", end, read_));
  }
  const char* records = base_ + client::kRecordsOffset;
  char copy[client::kMaxRecordSize];
  for (; limit > 0 && read_ < end; --limit) {
    if (end - read_ < sizeof(Record)) return Corrupt("half a record");
    // Read once: the process may change it while it is being checked.
    const uint32_t size = LoadRelaxed(reinterpret_cast<const uint32_t*>(records + read_));
    if (size < sizeof(Record) || size > sizeof(copy) || size % 8 != 0 || size > end - read_) {
      return Corrupt(fmt::format("a record of {} bytes", size));
    }
    std::memcpy(copy, records + read_, size);
    Result<AppMetric> metric = ParseRecord(std::string_view(copy, size));
    if (!metric.ok()) return metric.status();
    out.push_back(std::move(metric).value());
    read_ += size;
  }
  return {};
}

bool AppSegment::HasNew() const {
  return __atomic_load_n(&header()->records_end, __ATOMIC_RELAXED) != read_;
}

AppGauge AppSegment::ReadGauge(uint32_t slot) const {
  // A process that died between the two halves of sonde_set_at leaves the sequence odd for good, so
  // a few tries must do.
  constexpr int kTries = 4;
  const Cell* cell = reinterpret_cast<const Cell*>(base_ + client::kCellsOffset) + slot;
  AppGauge gauge;
  for (int i = 0; i < kTries; ++i) {
    const uint32_t before = __atomic_load_n(&cell->sequence, __ATOMIC_ACQUIRE);
    __atomic_load(&cell->value, &gauge.value, __ATOMIC_ACQUIRE);
    __atomic_load(&cell->time, &gauge.time, __ATOMIC_ACQUIRE);
    if (before % 2 == 0 && LoadRelaxed(&cell->sequence) == before) return gauge;
  }
  return gauge;
}

void AppSegment::AddCounters(std::span<client::Count> totals) const {
  const size_t shards =
      std::min<size_t>(__atomic_load_n(&header()->shards, __ATOMIC_ACQUIRE), client::kShards);
  for (size_t shard = 0; shard < shards; ++shard) {
    const size_t limit = std::min<size_t>(
        __atomic_load_n(&header()->shard_limit[shard], __ATOMIC_ACQUIRE), totals.size());
    const auto* counts = reinterpret_cast<const client::Count*>(base_ + client::kShardsOffset +
                                                                shard * client::kShardSize);
    for (size_t slot = 0; slot < limit; ++slot) {
      totals[slot].whole += LoadRelaxed(&counts[slot].whole);
      totals[slot].fraction += LoadRelaxed(&counts[slot].fraction);
    }
  }
}

Result<AppMapping> AppMapping::Make(int fd) {
  // Seals first: other descriptors may be of filesystems that answer late or never.
  const int seals = fcntl(fd, F_GET_SEALS);
  const int wanted = F_SEAL_SHRINK | F_SEAL_GROW;
  if (seals < 0 || (seals & wanted) != wanted) {
    return Status(Code::kInvalid, "its memory is not sealed against a change of size");
  }
  // Memory of huge pages has seals, too, but can run out when it is read.
  struct statfs filesystem;
  if (fstatfs(fd, &filesystem) != 0) return SystemError("look at its memory");
  if (filesystem.f_type != TMPFS_MAGIC) return Status(Code::kInvalid, "its memory is no memfd");
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError("look at its memory");
  if (info.st_size != static_cast<off_t>(client::kSegmentSize)) {
    return Status(Code::kInvalid, fmt::format("its memory has {} bytes instead of {}", info.st_size,
                                              client::kSegmentSize));
  }
  void* base = mmap(nullptr, client::kSegmentSize, PROT_READ, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return SystemError("map its memory");
  return AppMapping(static_cast<const char*>(base));
}

void AppMapping::Unmap::operator()(const char* base) const {
  munmap(const_cast<char*>(base), client::kSegmentSize);
}

}  // namespace sonde::collect
