// /sys/devices/system/node/nodeN: the memory of each NUMA node, and how often an allocation got
// what it asked for, at level 4: for numastat the kernel adds up the counts of all processors.
//
// Memory nodes come and go hardly ever (hot plug, GPUs with memory of their own): they are listed
// once a minute.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>
#include <utility>

#include "daemon/collect/os/numa_files.h"
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/read/directory.h"

namespace sonde::collect {
namespace {

constexpr uint8_t kLevel = 4;
constexpr double kKilo = 1024;  // the kernel's "kB"

struct Field {
  std::string_view key;
  double scale;
  MetricDecl decl;
};
constexpr Field PageBytes(std::string_view key, std::string_view name, Reduction reduction,
                          std::string_view help) {
  return {key, kKilo, {name, "bytes", MetricType::kGauge, kLevel, reduction, help}};
}
constexpr Field Pages(std::string_view key, std::string_view name, Reduction reduction,
                      std::string_view help) {
  return {key, 1, {name, "1", MetricType::kGauge, kLevel, reduction, help}};
}
constexpr Field PageCount(std::string_view key, std::string_view name, std::string_view help) {
  return {key, 1, {name, "1", MetricType::kCounter, kLevel, Reduction::kSum, help}};
}

// The names are node_exporter's with the unit; both tables are in the order of the kernel's file.
constexpr Field kMemory[] = {
    PageBytes("MemTotal:", "node_memory_numa_MemTotal_bytes", Reduction::kSum,
              "Memory of a NUMA node. Tag numa."),
    PageBytes("MemFree:", "node_memory_numa_MemFree_bytes", Reduction::kMin,
              "Its memory used for nothing. Tag numa."),
    PageBytes("Dirty:", "node_memory_numa_Dirty_bytes", Reduction::kSum,
              "Its page cache to be written to disk. Tag numa."),
    PageBytes("FilePages:", "node_memory_numa_FilePages_bytes", Reduction::kSum,
              "Its page cache of files, shared memory included. Tag numa."),
    PageBytes("AnonPages:", "node_memory_numa_AnonPages_bytes", Reduction::kSum,
              "Its memory of programs that belongs to no file. Tag numa."),
    PageBytes("Shmem:", "node_memory_numa_Shmem_bytes", Reduction::kSum,
              "Its shared memory and tmpfs. Tag numa."),
    PageBytes("Slab:", "node_memory_numa_Slab_bytes", Reduction::kSum,
              "Its kernel data structures. Tag numa."),
    PageBytes("AnonHugePages:", "node_memory_numa_AnonHugePages_bytes", Reduction::kSum,
              "Its anonymous memory in transparent huge pages. Tag numa."),
    Pages("HugePages_Total:", "node_memory_numa_HugePages_Total", Reduction::kSum,
          "Its huge pages in the pool. Tag numa."),
    Pages("HugePages_Free:", "node_memory_numa_HugePages_Free", Reduction::kMin,
          "Its huge pages of the pool not in use. Tag numa."),
};
constexpr Field kCounts[] = {
    PageCount("numa_hit", "node_memory_numa_hit_total",
              "Allocations served by a NUMA node as they were meant to be. Tag numa."),
    PageCount(
        "numa_miss", "node_memory_numa_miss_total",
        "Allocations served by it though meant for another that had no memory left. Tag numa."),
    PageCount("numa_foreign", "node_memory_numa_foreign_total",
              "Allocations meant for it and served by another. Tag numa."),
    PageCount("interleave_hit", "node_memory_numa_interleave_hit_total",
              "Interleaved allocations served as they were meant to be. Tag numa."),
    PageCount("local_node", "node_memory_numa_local_total",
              "Allocations by a program that ran on it. Tag numa."),
    PageCount("other_node", "node_memory_numa_other_total",
              "Allocations by a program that ran on another. Tag numa."),
};
constexpr size_t kColumns = std::size(kMemory) + std::size(kCounts);

constexpr Nanos kRescan = 60 * kSecond;
constexpr size_t kMostNodes = 128;

template <size_t N>
constexpr std::array<NumaKey, N> KeysOf(const Field (&fields)[N]) {
  std::array<NumaKey, N> keys;
  for (size_t i = 0; i < N; ++i) keys[i] = {fields[i].key, fields[i].scale};
  return keys;
}
constexpr auto kMemoryKeys = KeysOf(kMemory);
constexpr auto kCountKeys = KeysOf(kCounts);

class NumaSource final : public Source {
 public:
  NumaSource(const Roots& roots, ReadBuffer& buffer)
      : directory_(roots.sys + "/devices/system/node"), buffer_(buffer) {}

  std::string_view name() const override { return "numa"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return true; }
  void Sample(Nanos now) override {
    if (now >= rescan_at_) Rescan(now);
    double* to = values_.data();
    for (Node& node : nodes_) {
      ParseNumaMemory(node.meminfo.Read(buffer_, now), kMemoryKeys, to);
      ParseNumaCounts(node.numastat.Read(buffer_, now), kCountKeys, to + std::size(kMemory));
      to += kColumns;
    }
  }

 private:
  struct Node {
    unsigned number;
    FileReader meminfo;
    FileReader numastat;
  };

  void Rescan(Nanos now) {
    rescan_at_ = now + kRescan;
    std::vector<unsigned> found;
    for (const std::string& name : ListDirectory(directory_)) {
      constexpr std::string_view kPrefix = "node";
      if (!name.starts_with(kPrefix) || found.size() == kMostNodes) continue;
      unsigned number = 0;
      const char* const end = name.data() + name.size();
      const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, number);
      if (error == std::errc() && stop == end) found.push_back(number);
    }
    std::sort(found.begin(), found.end());
    const bool same =
        std::equal(found.begin(), found.end(), nodes_.begin(), nodes_.end(),
                   [](unsigned number, const Node& node) { return number == node.number; });
    if (!same) Declare(found);
  }
  void Declare(const std::vector<unsigned>& found) {
    nodes_.clear();
    series_.clear();
    for (const unsigned number : found) {
      const std::string node = fmt::format("{}/node{}", directory_, number);
      nodes_.push_back({number, FileReader(node + "/meminfo", Shape::kWhole, 4096),
                        FileReader(node + "/numastat", Shape::kWhole, 512)});
      for (const std::span<const Field> fields :
           {std::span<const Field>(kMemory), std::span<const Field>(kCounts)}) {
        for (const Field& field : fields) {
          Series& s = series_.emplace_back();
          s.metric = Metric(field.decl);
          s.tags.Set("numa", std::to_string(number));
        }
      }
    }
    values_.assign(series_.size(), kMissing);
    ++generation_;
  }

  const std::string directory_;
  ReadBuffer& buffer_;
  std::vector<Node> nodes_;
  Nanos rescan_at_ = 0;
};

}  // namespace

std::unique_ptr<Source> MakeNumaSource(const Roots& roots, ReadBuffer& buffer) {
  return std::make_unique<NumaSource>(roots, buffer);
}

std::vector<MetricDecl> NumaMetrics() {
  std::vector<MetricDecl> metrics;
  for (const Field& field : kMemory) metrics.push_back(field.decl);
  for (const Field& field : kCounts) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
