// /proc/meminfo: what the node's memory is used for.
//
// Level 2 has what the memory went to, what is left, and what tells why an allocation fails or why
// memory is slow. Level 4 adds sums of those, what hardly any node has, and how the kernel maps
// memory.
#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

constexpr double kKilo = 1024;  // the kernel's "kB"

struct Field {
  std::string_view key;  // as the line begins
  double scale;
  MetricDecl decl;
};
// The names are node_exporter's; the order is the kernel's, so that lines are found where they are
// expected.
constexpr Field kFields[] = {
    {"MemTotal:",
     kKilo,
     {"node_memory_MemTotal_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory the kernel manages."}},
    {"MemFree:",
     kKilo,
     {"node_memory_MemFree_bytes", "bytes", MetricType::kGauge, 2, Reduction::kMin,
      "Memory used for nothing."}},
    {"MemAvailable:",
     kKilo,
     {"node_memory_MemAvailable_bytes", "bytes", MetricType::kGauge, 2, Reduction::kMin,
      "Memory that programs can still get without swapping."}},
    {"Buffers:",
     kKilo,
     {"node_memory_Buffers_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Page cache of block devices."}},
    {"Cached:",
     kKilo,
     {"node_memory_Cached_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Page cache of files, shared memory included."}},
    {"SwapCached:",
     kKilo,
     {"node_memory_SwapCached_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory that also lies in swap."}},
    {"Active:",
     kKilo,
     {"node_memory_Active_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Memory used lately."}},
    {"Inactive:",
     kKilo,
     {"node_memory_Inactive_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Memory not used lately."}},
    {"Active(anon):",
     kKilo,
     {"node_memory_Active_anon_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Anonymous memory used lately."}},
    {"Inactive(anon):",
     kKilo,
     {"node_memory_Inactive_anon_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Anonymous memory not used lately."}},
    {"Active(file):",
     kKilo,
     {"node_memory_Active_file_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Page cache used lately."}},
    {"Inactive(file):",
     kKilo,
     {"node_memory_Inactive_file_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Page cache not used lately."}},
    {"Unevictable:",
     kKilo,
     {"node_memory_Unevictable_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory that cannot be reclaimed."}},
    {"Mlocked:",
     kKilo,
     {"node_memory_Mlocked_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory locked by programs."}},
    {"SwapTotal:",
     kKilo,
     {"node_memory_SwapTotal_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Swap space."}},
    {"SwapFree:",
     kKilo,
     {"node_memory_SwapFree_bytes", "bytes", MetricType::kGauge, 2, Reduction::kMin,
      "Swap space used for nothing."}},
    {"Zswap:",
     kKilo,
     {"node_memory_Zswap_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory that compressed swap occupies."}},
    {"Zswapped:",
     kKilo,
     {"node_memory_Zswapped_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory that was compressed into it."}},
    {"Dirty:",
     kKilo,
     {"node_memory_Dirty_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Page cache to be written to disk."}},
    {"Writeback:",
     kKilo,
     {"node_memory_Writeback_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Page cache being written to disk."}},
    {"AnonPages:",
     kKilo,
     {"node_memory_AnonPages_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory of programs that belongs to no file."}},
    {"Mapped:",
     kKilo,
     {"node_memory_Mapped_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Files mapped into programs."}},
    {"Shmem:",
     kKilo,
     {"node_memory_Shmem_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Shared memory and tmpfs."}},
    {"KReclaimable:",
     kKilo,
     {"node_memory_KReclaimable_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Kernel memory that can be reclaimed."}},
    {"Slab:",
     kKilo,
     {"node_memory_Slab_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Kernel data structures."}},
    {"SReclaimable:",
     kKilo,
     {"node_memory_SReclaimable_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Kernel data structures that can be reclaimed."}},
    {"SUnreclaim:",
     kKilo,
     {"node_memory_SUnreclaim_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Kernel data structures that cannot be reclaimed."}},
    {"KernelStack:",
     kKilo,
     {"node_memory_KernelStack_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Kernel stacks of all threads."}},
    {"PageTables:",
     kKilo,
     {"node_memory_PageTables_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Page tables."}},
    {"SecPageTables:",
     kKilo,
     {"node_memory_SecPageTables_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Page tables of virtual machines and IOMMUs."}},
    {"NFS_Unstable:",
     kKilo,
     {"node_memory_NFS_Unstable_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Pages sent to an NFS server and not yet on its disk."}},
    {"Bounce:",
     kKilo,
     {"node_memory_Bounce_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Bounce buffers of block devices."}},
    {"WritebackTmp:",
     kKilo,
     {"node_memory_WritebackTmp_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "FUSE write-back buffers."}},
    {"CommitLimit:",
     kKilo,
     {"node_memory_CommitLimit_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory that may be promised to programs under strict overcommit."}},
    {"Committed_AS:",
     kKilo,
     {"node_memory_Committed_AS_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory promised to programs."}},
    {"VmallocTotal:",
     kKilo,
     {"node_memory_VmallocTotal_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Address space for vmalloc."}},
    {"VmallocUsed:",
     kKilo,
     {"node_memory_VmallocUsed_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Address space used by vmalloc."}},
    {"VmallocChunk:",
     kKilo,
     {"node_memory_VmallocChunk_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Largest free piece of it."}},
    {"Percpu:",
     kKilo,
     {"node_memory_Percpu_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory of per-processor kernel data."}},
    {"HardwareCorrupted:",
     kKilo,
     {"node_memory_HardwareCorrupted_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory taken out of use for hardware errors."}},
    {"AnonHugePages:",
     kKilo,
     {"node_memory_AnonHugePages_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Anonymous memory in transparent huge pages."}},
    {"ShmemHugePages:",
     kKilo,
     {"node_memory_ShmemHugePages_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Shared memory in huge pages."}},
    {"ShmemPmdMapped:",
     kKilo,
     {"node_memory_ShmemPmdMapped_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Shared memory mapped by huge pages."}},
    {"FileHugePages:",
     kKilo,
     {"node_memory_FileHugePages_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Page cache in huge pages."}},
    {"FilePmdMapped:",
     kKilo,
     {"node_memory_FilePmdMapped_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Page cache mapped by huge pages."}},
    {"CmaTotal:",
     kKilo,
     {"node_memory_CmaTotal_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Memory for contiguous allocation."}},
    {"CmaFree:",
     kKilo,
     {"node_memory_CmaFree_bytes", "bytes", MetricType::kGauge, 4, Reduction::kMin,
      "What is free of it."}},
    {"Unaccepted:",
     kKilo,
     {"node_memory_Unaccepted_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Memory a confidential virtual machine has not accepted yet."}},
    {"Balloon:",
     kKilo,
     {"node_memory_Balloon_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory a virtual machine has given back to its host."}},
    {"HugePages_Total:",
     1,
     {"node_memory_HugePages_Total", "1", MetricType::kGauge, 2, Reduction::kSum,
      "Huge pages in the pool."}},
    {"HugePages_Free:",
     1,
     {"node_memory_HugePages_Free", "1", MetricType::kGauge, 2, Reduction::kMin,
      "Huge pages of the pool not in use."}},
    {"HugePages_Rsvd:",
     1,
     {"node_memory_HugePages_Rsvd", "1", MetricType::kGauge, 2, Reduction::kSum,
      "Huge pages promised and not yet in use."}},
    {"HugePages_Surp:",
     1,
     {"node_memory_HugePages_Surp", "1", MetricType::kGauge, 2, Reduction::kSum,
      "Huge pages above the pool's size."}},
    {"Hugepagesize:",
     kKilo,
     {"node_memory_Hugepagesize_bytes", "bytes", MetricType::kGauge, 2, Reduction::kMax,
      "Size of a default huge page."}},
    {"Hugetlb:",
     kKilo,
     {"node_memory_Hugetlb_bytes", "bytes", MetricType::kGauge, 2, Reduction::kSum,
      "Memory of huge page pools of all sizes."}},
    {"DirectMap4k:",
     kKilo,
     {"node_memory_DirectMap4k_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Kernel's mapping of memory by 4 KiB pages."}},
    {"DirectMap2M:",
     kKilo,
     {"node_memory_DirectMap2M_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Kernel's mapping of memory by 2 MiB pages."}},
    {"DirectMap1G:",
     kKilo,
     {"node_memory_DirectMap1G_bytes", "bytes", MetricType::kGauge, 4, Reduction::kSum,
      "Kernel's mapping of memory by 1 GiB pages."}},
};

class MeminfoSource final : public FileSource {
 public:
  MeminfoSource(const Roots& roots, int level, ReadBuffer& buffer)
      : FileSource(roots.proc + "/meminfo", Shape::kWhole, 4096, buffer), level_(level) {}

  std::string_view name() const override { return "meminfo"; }
  bool counts_from_boot() const override { return false; }
  void Parse(std::string_view text) override {
    ClearValues();
    size_t i = 0;
    for (Cursor line(text); !line.AtEnd() && i < kMaxLines; line.Line(), ++i) {
      if (i == lines_.size() || !line.Skip(lines_[i].key)) {
        Rescan(text);
        return;
      }
      if (lines_[i].column == kUnwanted) continue;
      values_[lines_[i].column] = line.Number() * lines_[i].scale;
    }
  }

 private:
  static constexpr size_t kUnwanted = SIZE_MAX;
  struct Line {
    std::string key;
    size_t column;
    double scale;
  };

  // Kernels differ in the lines they have, and hardly ever change them while they run.
  void Rescan(std::string_view text) {
    lines_.clear();
    series_.clear();
    values_.clear();
    for (Cursor line(text); !line.AtEnd() && lines_.size() < kMaxLines; line.Line()) {
      const std::string_view key = line.Word();
      const Field* const field = Find(key);
      if (field == nullptr) {
        lines_.push_back({std::string(key), kUnwanted, 0});
        continue;
      }
      lines_.push_back({std::string(key), values_.size(), field->scale});
      AddSeries(field->decl);
      values_.back() = line.Number() * field->scale;
    }
    ++generation_;
  }
  // The field of a line that is wanted and was not there before.
  const Field* Find(std::string_view key) const {
    for (const Field& field : kFields) {
      if (field.key != key || field.decl.level > level_) continue;
      for (const Series& s : series_) {
        if (s.metric.name == field.decl.name) return nullptr;
      }
      return &field;
    }
    return nullptr;
  }

  static constexpr size_t kMaxLines = 256;

  const int level_;
  std::vector<Line> lines_;  // of the file, in its order
};

}  // namespace

std::unique_ptr<FileSource> MakeMeminfoSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<MeminfoSource>(roots, level, buffer);
}

std::vector<MetricDecl> MeminfoMetrics() {
  std::vector<MetricDecl> metrics;
  for (const Field& field : kFields) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
