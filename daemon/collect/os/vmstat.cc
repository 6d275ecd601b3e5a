// /proc/vmstat: paging, reclaim, and where memory comes from.
//
// What tells that a step lacks memory or gets it from the wrong place: faults, swap, reclaim,
// allocations that had to wait, huge pages that were not to be had, memory of other NUMA nodes,
// processes killed; and what explains it. All at level 4: the kernel takes long to write the file.
//
// The file has some 190 lines of which few are wanted. Their places are remembered, each as the
// bytes that lie between it and the wanted line before it, so that a sample looks at no other line.
// When a number between them gained or lost a digit, the lines between are walked, once.
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

enum class Unit : unsigned char { kEvents, kPages, kKibibytes };

// Lines whose names begin alike and that are added up; kernels have some of them.
constexpr std::string_view kAlone[] = {""};
// One line until 4.8 (reclaim counted by node since) or from 4.10 (allocstall), the zones
// otherwise.
constexpr std::string_view kZones[] = {"",      "_dma",     "_dma32", "_normal",
                                       "_high", "_movable", "_device"};
constexpr std::string_view kPageKinds[] = {"", "_anon", "_file"};  // two kinds since 5.9
constexpr std::string_view kSplit[] = {"", "_page"};               // "_page" since 4.5
constexpr std::string_view kDemoters[] = {"_kswapd", "_direct", "_khugepaged", "_proactive"};

struct Field {
  std::string_view key;
  std::span<const std::string_view> endings;
  Unit unit;
  MetricDecl decl;
};

constexpr Field Count(std::string_view key, std::string_view name, uint8_t level,
                      std::string_view help, std::span<const std::string_view> endings = kAlone) {
  return {
      key, endings, Unit::kEvents, {name, "1", MetricType::kCounter, level, Reduction::kSum, help}};
}
constexpr Field Bytes(std::string_view key, std::string_view name, uint8_t level,
                      std::string_view help, std::span<const std::string_view> endings = kAlone,
                      Unit unit = Unit::kPages) {
  return {key, endings, unit, {name, "bytes", MetricType::kCounter, level, Reduction::kSum, help}};
}

// The names are node_exporter's, which are the kernel's, with unit and _total. NUMA lines count
// allocations of whatever size (zone_statistics in mm/page_alloc.c), reclaim counts pages.
constexpr Field kFields[] = {
    Count("numa_hit", "node_vmstat_numa_hit_total", 4,
          "Allocations served by the NUMA node they were meant for."),
    Count("numa_miss", "node_vmstat_numa_miss_total", 4,
          "Allocations served by a NUMA node though meant for another that had no memory left."),
    Count("numa_foreign", "node_vmstat_numa_foreign_total", 4,
          "The same counted where they were meant to be served."),
    Count("numa_local", "node_vmstat_numa_local_total", 4,
          "Allocations served by the NUMA node of the processor that asked."),
    Count("numa_other", "node_vmstat_numa_other_total", 4,
          "Allocations served by another NUMA node than the processor's that asked."),
    Bytes("workingset_refault", "node_vmstat_workingset_refault_bytes_total", 4,
          "Memory read again soon after it was reclaimed: programs and their files need more than "
          "there is.",
          kPageKinds),
    Bytes("pgpromote_success", "node_vmstat_pgpromote_success_bytes_total", 4,
          "Memory moved to a faster tier."),
    Bytes("pgdemote", "node_vmstat_pgdemote_bytes_total", 4,
          "Memory moved to a slower tier instead of being reclaimed.", kDemoters),
    Bytes("pgpgin", "node_vmstat_pgpgin_bytes_total", 4, "Bytes read from block devices, swap too.",
          kAlone, Unit::kKibibytes),
    Bytes("pgpgout", "node_vmstat_pgpgout_bytes_total", 4,
          "Bytes written to block devices, swap too.", kAlone, Unit::kKibibytes),
    Bytes("pswpin", "node_vmstat_pswpin_bytes_total", 4, "Memory read back from swap."),
    Bytes("pswpout", "node_vmstat_pswpout_bytes_total", 4, "Memory written to swap."),
    Count("allocstall", "node_vmstat_allocstall_total", 4,
          "Allocations that had to reclaim memory themselves before they were served.", kZones),
    Count("pgfault", "node_vmstat_pgfault_total", 4, "Page faults, major ones included."),
    Count("pgmajfault", "node_vmstat_pgmajfault_total", 4, "Page faults that needed I/O."),
    Bytes("pgsteal_kswapd", "node_vmstat_pgsteal_kswapd_bytes_total", 4,
          "Memory reclaimed in the background.", kZones),
    Bytes("pgsteal_direct", "node_vmstat_pgsteal_direct_bytes_total", 4,
          "Memory reclaimed by programs that waited for it.", kZones),
    Bytes("pgscan_kswapd", "node_vmstat_pgscan_kswapd_bytes_total", 4,
          "Memory looked at in the background to reclaim some of it.", kZones),
    Bytes("pgscan_direct", "node_vmstat_pgscan_direct_bytes_total", 4,
          "Memory looked at by programs that waited to reclaim some of it.", kZones),
    Count("pgscan_direct_throttle", "node_vmstat_pgscan_direct_throttle_total", 4,
          "Programs held up because hardly any memory was left to reclaim into."),
    Count("zone_reclaim_failed", "node_vmstat_zone_reclaim_failed_total", 4,
          "Times a NUMA node had nothing to reclaim for an allocation that should stay local."),
    Count("drop_pagecache", "node_vmstat_drop_pagecache_total", 4,
          "Times somebody dropped the page cache."),
    Count("drop_slab", "node_vmstat_drop_slab_total", 4,
          "Times somebody dropped the kernel's caches of names and inodes."),
    Count("oom_kill", "node_vmstat_oom_kill_total", 4,
          "Processes killed because memory ran out, on the node or in a cgroup. Counted since "
          "Linux 4.13."),
    Count("numa_hint_faults", "node_vmstat_numa_hint_faults_total", 4,
          "Page faults by which the kernel learns which NUMA node uses a page."),
    Count("numa_hint_faults_local", "node_vmstat_numa_hint_faults_local_total", 4,
          "Those of them on the page's own NUMA node."),
    Bytes("numa_pages_migrated", "node_vmstat_numa_pages_migrated_bytes_total", 4,
          "Memory moved to the NUMA node that uses it."),
    Count("compact_stall", "node_vmstat_compact_stall_total", 4,
          "Allocations that waited while free memory was moved together."),
    Count("compact_fail", "node_vmstat_compact_fail_total", 4,
          "Those of them for which it did not help."),
    Count("compact_success", "node_vmstat_compact_success_total", 4,
          "Those of them for which it did."),
    Count("thp_fault_alloc", "node_vmstat_thp_fault_alloc_total", 4,
          "Page faults served with a huge page."),
    Count("thp_fault_fallback", "node_vmstat_thp_fault_fallback_total", 4,
          "Page faults for which no huge page was to be had."),
    Count("thp_collapse_alloc", "node_vmstat_thp_collapse_alloc_total", 4,
          "Huge pages taken to put small pages in."),
    Count("thp_collapse_alloc_failed", "node_vmstat_thp_collapse_alloc_failed_total", 4,
          "Huge pages that were not to be had for that."),
    Count("thp_split", "node_vmstat_thp_split_page_total", 4, "Huge pages split into small ones.",
          kSplit),
    Count("thp_split_pmd", "node_vmstat_thp_split_pmd_total", 4,
          "Mappings of huge pages split into mappings of small ones."),
};

class VmstatSource final : public FileSource {
 public:
  VmstatSource(const Roots& roots, int level, ReadBuffer& buffer)
      : FileSource(roots.proc + "/vmstat", Shape::kRecords, 8192, buffer),
        level_(level),
        page_size_(static_cast<double>(sysconf(_SC_PAGESIZE))) {}

  std::string_view name() const override { return "vmstat"; }
  bool counts_from_boot() const override { return true; }
  void Parse(std::string_view text) override {
    if (outcome_ != Outcome::kRead) Rescan(text);
    outcome_ = ReadLines(text);
    if (outcome_ != Outcome::kChanged) return;
    Rescan(text);
    outcome_ = ReadLines(text);
  }

 private:
  enum class Outcome : unsigned char { kRead, kCutShort, kChanged };
  struct Line {
    std::string name;  // with the blank behind it
    size_t column;
    double scale;
    bool adds;     // to the line before it of the same column
    size_t lines;  // unwanted ones that lie between it and the wanted line before
    size_t bytes;  // of those when it was read last
  };

  static bool IsAt(std::string_view text, size_t at, std::string_view name) {
    return at < text.size() && (at == 0 || text[at - 1] == '\n') &&
           text.substr(at).starts_with(name);
  }
  static size_t BytesOfLines(std::string_view text, size_t lines) {
    Cursor at(text);
    for (; lines > 0; --lines) at.Line();
    return text.size() - at.Rest().size();
  }
  static std::string_view LastName(std::string_view text) {
    if (!text.empty()) text.remove_suffix(1);
    return Cursor(text.substr(text.rfind('\n') + 1)).Word();
  }
  Outcome ReadLines(std::string_view text) {
    size_t at = 0;
    for (size_t i = 0; i < lines_.size(); ++i) {
      Line& line = lines_[i];
      if (!IsAt(text, at + line.bytes, line.name)) {
        line.bytes = BytesOfLines(text.substr(at), line.lines);
        if (!IsAt(text, at + line.bytes, line.name)) {
          ClearFrom(i);
          return text.find('\n', at + line.bytes) == std::string_view::npos ? Outcome::kCutShort
                                                                            : Outcome::kChanged;
        }
      }
      Cursor rest(text.substr(at + line.bytes + line.name.size()));
      TakeValue(rest, line);
      at = text.size() - rest.Rest().size();
    }
    // What is new behind the wanted lines is told by another end.
    return LastName(text) == last_ ? Outcome::kRead : Outcome::kChanged;
  }
  // A number that ends in anything but its line is not the whole number.
  void TakeValue(Cursor& rest, const Line& line) {
    double value = rest.Number() * line.scale;
    if (!rest.Skip("\n")) {
      value = kMissing;
      rest.Line();
    }
    double& to = values_[line.column];
    to = line.adds ? to + value : value;
  }
  // Half a sum would look like a counter that fell, and then rose.
  void ClearFrom(size_t first) {
    for (size_t i = first; i < lines_.size(); ++i) values_[lines_[i].column] = kMissing;
  }

  // Kernels differ in the lines they have, and do not change them while they run.
  void Rescan(std::string_view text) {
    lines_.clear();
    last_ = LastName(text);
    const std::vector<const Field*> before = std::exchange(fields_, {});
    size_t start = 0;
    size_t between = 0;
    for (Cursor line(text); !line.AtEnd();) {
      const size_t at = text.size() - line.Rest().size();
      const std::string_view key = line.Word();
      line.Line();
      const Field* const field = Find(key);
      if (field == nullptr) {
        ++between;
        continue;
      }
      AddLine(key, *field, between, at - start);
      between = 0;
      start = text.size() - line.Rest().size();
    }
    if (fields_ != before) DeclareSeries();
  }
  void AddLine(std::string_view key, const Field& field, size_t lines, size_t bytes) {
    const auto known = std::find(fields_.begin(), fields_.end(), &field);
    const auto column = static_cast<size_t>(known - fields_.begin());
    const bool adds = known != fields_.end();
    if (!adds) fields_.push_back(&field);
    lines_.push_back({std::string(key) + ' ', column, Scale(field.unit), adds, lines, bytes});
  }
  void DeclareSeries() {
    series_.clear();
    values_.clear();
    for (const Field* field : fields_) AddSeries(field->decl);
    ++generation_;
  }
  const Field* Find(std::string_view key) const {
    for (const Field& field : kFields) {
      if (field.decl.level > level_ || !key.starts_with(field.key)) continue;
      const std::string_view ending = key.substr(field.key.size());
      if (std::find(field.endings.begin(), field.endings.end(), ending) == field.endings.end()) {
        continue;
      }
      // A name that comes twice is not the kernel's.
      const auto same = [&](const Line& l) { return l.name.substr(0, l.name.size() - 1) == key; };
      return std::none_of(lines_.begin(), lines_.end(), same) ? &field : nullptr;
    }
    return nullptr;
  }
  double Scale(Unit unit) const {
    switch (unit) {
      case Unit::kPages:
        return page_size_;
      case Unit::kKibibytes:
        return 1024;
      default:
        return 1;
    }
  }

  const int level_;
  const double page_size_;
  Outcome outcome_ = Outcome::kChanged;  // of the last reading
  std::vector<Line> lines_;              // the wanted ones, in the order of the file
  std::string last_;                     // name of the file's last line
  std::vector<const Field*> fields_;     // by column
};

}  // namespace

std::unique_ptr<FileSource> MakeVmstatSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<VmstatSource>(roots, level, buffer);
}

std::vector<MetricDecl> VmstatMetrics() {
  std::vector<MetricDecl> metrics;
  for (const Field& field : kFields) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
