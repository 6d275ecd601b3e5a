// llite/INSTANCE/stats: what this node does on each Lustre filesystem.
//
// Up to version 2.11 the files are in /proc/fs/lustre and everybody may read them. Since 2.12 they
// are in debugfs, which only root may enter unless the site has opened it: then there is nothing,
// and the log says so at level debug. (/sys/fs/lustre has settings, no counters. The servers' job
// statistics are not to be had on a client.)
//
// A filesystem may be mounted several times: its instances, NAME-ADDRESS, are added up.
#include <unistd.h>

#include <algorithm>
#include <compare>
#include <iterator>
#include <utility>

#include "core/log.h"
#include "daemon/collect/filesystems/filesystem_sources.h"
#include "daemon/collect/filesystems/lustre_stats.h"
#include "daemon/collect/read/directory.h"

namespace sonde::collect {
namespace {

// The parts of a line that become series.
enum class Part : unsigned char { kSamples, kSum, kSeconds };

struct LustreField {
  std::string_view key;
  Part part;
  MetricDecl decl;
  std::string_view operation;  // tag; none if empty
};

constexpr MetricDecl LustreCounter(std::string_view name, std::string_view unit, uint8_t level,
                                   std::string_view help) {
  return {name, unit, MetricType::kCounter, level, Reduction::kSum, help};
}
constexpr MetricDecl kLustreOperations =
    LustreCounter("node_lustre_operations_total", "1", 4, "Other operations. Tags fs, operation.");
constexpr MetricDecl kLustreOperationSeconds =
    LustreCounter("node_lustre_operation_seconds_total", "seconds", 4,
                  "Time operations took together (newer versions of Lustre). Tags fs, operation.");

constexpr LustreField kLustreFields[] = {
    {"read_bytes", Part::kSum,
     LustreCounter("node_lustre_read_bytes_total", "bytes", 2,
                   "Bytes programs read, from the page cache or not. Tag fs."),
     ""},
    {"read_bytes", Part::kSamples,
     LustreCounter("node_lustre_reads_total", "1", 2, "Reads by programs. Tag fs."), ""},
    {"write_bytes", Part::kSum,
     LustreCounter("node_lustre_written_bytes_total", "bytes", 2, "Bytes programs wrote. Tag fs."),
     ""},
    {"write_bytes", Part::kSamples,
     LustreCounter("node_lustre_writes_total", "1", 2, "Writes by programs. Tag fs."), ""},
    {"open", Part::kSamples,
     LustreCounter("node_lustre_opens_total", "1", 2, "Files opened. Tag fs."), ""},
    {"close", Part::kSamples,
     LustreCounter("node_lustre_closes_total", "1", 2, "Files closed. Tag fs."), ""},
    {"getattr", Part::kSamples,
     LustreCounter("node_lustre_getattrs_total", "1", 2,
                   "How often the attributes of a file were asked for, as by stat. Tag fs."),
     ""},
};
// Operations that level 4 also times. The first have only times here: their numbers are above.
constexpr std::string_view kTimed[] = {"read", "write", "open", "close", "getattr"};
constexpr std::string_view kOthers[] = {
    "create", "flock",   "fsync",      "getxattr",     "inode_permission", "link",     "mkdir",
    "mknod",  "mmap",    "page_fault", "page_mkwrite", "readdir",          "rename",   "rmdir",
    "seek",   "setattr", "setxattr",   "statfs",       "symlink",          "truncate", "unlink"};

constexpr double kMicro = 1e-6;
constexpr Nanos kRescan = 60 * kSecond;
constexpr size_t kMostInstances = 64;

class LustreSource final : public Source {
 public:
  LustreSource(const Roots& roots, int level, ReadBuffer& buffer)
      : directories_{roots.proc + "/fs/lustre/llite", roots.sys + "/kernel/debug/lustre/llite"},
        settings_(roots.sys + "/fs/lustre/llite"),
        buffer_(buffer),
        fields_(std::begin(kLustreFields), std::end(kLustreFields)) {
    if (level >= kLustreOperations.level) AddOperations();
    read_.resize(fields_.size());
  }

  std::string_view name() const override { return "lustre"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return true; }
  void Sample(Nanos now) override {
    if (now >= rescan_at_) Rescan(now);
    if (instances_.empty()) return;
    std::fill(values_.begin(), values_.end(), 0);
    for (Instance& instance : instances_) {
      const std::string_view text = instance.stats.Read(buffer_, now);
      if (!IsLustreStats(text)) rescan_at_ = std::min(rescan_at_, now + kSecond);  // unmounted?
      Parse(text);
      for (size_t i = 0; i < read_.size(); ++i) values_[instance.column + i] += read_[i];
    }
  }

 private:
  struct Found {
    std::string fs;
    std::string path;  // of its statistics
    auto operator<=>(const Found&) const = default;
  };
  struct Instance {
    std::string path;
    FileReader stats;
    size_t column;  // of its filesystem's first value
  };

  void AddOperations() {
    for (const auto key : kTimed) {
      fields_.push_back({key, Part::kSeconds, kLustreOperationSeconds, key});
    }
    for (const auto key : kOthers) {
      fields_.push_back({key, Part::kSamples, kLustreOperations, key});
      fields_.push_back({key, Part::kSeconds, kLustreOperationSeconds, key});
    }
  }

  // If the text is whole, an operation without a line did not happen yet.
  void Parse(std::string_view text) {
    const bool whole = IsLustreStats(text) && text.ends_with('\n');
    std::fill(read_.begin(), read_.end(), whole ? 0 : kMissing);
    bool timed = false;
    Cursor at(text);
    for (LustreLine line; TakeLustreLine(at, line);) {
      const bool seconds = line.unit == "usecs" || line.unit == "usec";
      timed = timed || seconds;
      for (size_t i = 0; i < fields_.size(); ++i) {
        const LustreField& field = fields_[i];
        if (field.key != line.name) continue;
        read_[i] = field.part == Part::kSamples ? line.samples
                   : field.part == Part::kSum   ? line.sum
                   : seconds                    ? line.sum * kMicro
                                                : kMissing;
      }
    }
    if (timed) return;
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].part == Part::kSeconds) read_[i] = kMissing;
    }
  }

  void Rescan(Nanos now) {
    rescan_at_ = now + kRescan;
    std::vector<Found> found;
    for (const std::string& directory : directories_) {
      if (access(directory.c_str(), F_OK) != 0) continue;  // most machines
      for (const std::string& instance : ListDirectory(directory)) {
        std::string path = directory + "/" + instance + "/stats";
        std::string fs = FilesystemOf(instance);
        if (found.size() < kMostInstances && CheckTag("fs", fs).ok() &&
            IsLustreStats(FirstLine(path, buffer_))) {
          found.push_back({std::move(fs), std::move(path)});
        }
      }
      if (!found.empty()) break;
    }
    if (found.empty()) LogUnreadable();
    std::sort(found.begin(), found.end());
    const bool same =
        std::equal(found.begin(), found.end(), instances_.begin(), instances_.end(),
                   [](const Found& a, const Instance& b) { return a.path == b.path; });
    if (!same) Declare(found);
  }
  // NAME of NAME-ADDRESS: the address is another on each node.
  static std::string FilesystemOf(std::string_view instance) {
    return std::string(instance.substr(0, instance.rfind('-')));
  }
  void LogUnreadable() {
    if (unreadable_logged_ || access(settings_.c_str(), F_OK) != 0) return;
    unreadable_logged_ = true;
    log::Debug("lustre: {} cannot be read: since 2.12 only root may; nothing is recorded",
               directories_[1]);
  }

  void Declare(const std::vector<Found>& found) {
    instances_.clear();
    series_.clear();
    std::string_view last;
    for (const auto& [fs, path] : found) {
      if (fs != last) AddSeries(fs);
      last = fs;
      instances_.push_back(
          {path, FileReader(path, Shape::kRecords, 4096), series_.size() - fields_.size()});
    }
    values_.assign(series_.size(), kMissing);
    ++generation_;
  }
  void AddSeries(std::string_view fs) {
    for (const LustreField& field : fields_) {
      Series& s = series_.emplace_back();
      s.metric = Metric(field.decl);
      s.tags.Set("fs", fs);
      if (!field.operation.empty()) s.tags.Set("operation", field.operation);
    }
  }

  const std::string directories_[2];
  const std::string settings_;  // there while a filesystem is mounted, for everybody
  ReadBuffer& buffer_;
  std::vector<LustreField> fields_;  // of the step's level
  std::vector<double> read_;         // of one instance, by field
  std::vector<Instance> instances_;
  Nanos rescan_at_ = 0;
  bool unreadable_logged_ = false;
};

}  // namespace

std::unique_ptr<Source> MakeLustreSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<LustreSource>(roots, level, buffer);
}

std::vector<MetricDecl> LustreMetrics() {
  std::vector<MetricDecl> metrics;
  for (const LustreField& field : kLustreFields) metrics.push_back(field.decl);
  metrics.push_back(kLustreOperations);
  metrics.push_back(kLustreOperationSeconds);
  return metrics;
}

}  // namespace sonde::collect
