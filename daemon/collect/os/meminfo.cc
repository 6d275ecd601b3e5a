// /proc/meminfo: what the node's memory is used for.
//
// Level 2 has what the memory went to, what is left, and what tells why an allocation fails or why
// memory is slow. Level 4 adds sums of those, what hardly any node has, and how the kernel maps
// memory.
#include "daemon/collect/os/key_value_source.h"
#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

constexpr KeyField MemoryBytes(std::string_view key, std::string_view name, uint8_t level,
                               std::string_view help, Reduction reduction = Reduction::kSum) {
  return {key, {name, "bytes", MetricType::kGauge, level, reduction, help}, KeyUnit::kKibibytes};
}
constexpr KeyField WithSpread(KeyField field) {
  field.decl.spread = true;
  return field;
}
constexpr KeyField MemoryCount(std::string_view key, std::string_view name, std::string_view help,
                               Reduction reduction = Reduction::kSum) {
  return {key, {name, "1", MetricType::kGauge, 2, reduction, help}};
}

// The names are node_exporter's.
constexpr KeyField kMeminfoFields[] = {
    MemoryBytes("MemTotal:", "node_memory_MemTotal_bytes", 2, "Memory the kernel manages."),
    MemoryBytes("MemFree:", "node_memory_MemFree_bytes", 2, "Memory used for nothing.",
                Reduction::kMin),
    WithSpread(MemoryBytes("MemAvailable:", "node_memory_MemAvailable_bytes", 2,
                           "Memory that programs can still get without swapping.",
                           Reduction::kMin)),
    MemoryBytes("Buffers:", "node_memory_Buffers_bytes", 2, "Page cache of block devices."),
    MemoryBytes("Cached:", "node_memory_Cached_bytes", 2,
                "Page cache of files, shared memory included."),
    MemoryBytes("SwapCached:", "node_memory_SwapCached_bytes", 2, "Memory that also lies in swap."),
    MemoryBytes("Active:", "node_memory_Active_bytes", 4, "Memory used lately."),
    MemoryBytes("Inactive:", "node_memory_Inactive_bytes", 4, "Memory not used lately."),
    MemoryBytes("Active(anon):", "node_memory_Active_anon_bytes", 2,
                "Anonymous memory used lately."),
    MemoryBytes("Inactive(anon):", "node_memory_Inactive_anon_bytes", 2,
                "Anonymous memory not used lately."),
    MemoryBytes("Active(file):", "node_memory_Active_file_bytes", 2, "Page cache used lately."),
    MemoryBytes("Inactive(file):", "node_memory_Inactive_file_bytes", 2,
                "Page cache not used lately."),
    MemoryBytes("Unevictable:", "node_memory_Unevictable_bytes", 2,
                "Memory that cannot be reclaimed."),
    MemoryBytes("Mlocked:", "node_memory_Mlocked_bytes", 2, "Memory locked by programs."),
    MemoryBytes("SwapTotal:", "node_memory_SwapTotal_bytes", 2, "Swap space."),
    MemoryBytes("SwapFree:", "node_memory_SwapFree_bytes", 2, "Swap space used for nothing.",
                Reduction::kMin),
    MemoryBytes("Zswap:", "node_memory_Zswap_bytes", 2, "Memory that compressed swap occupies."),
    MemoryBytes("Zswapped:", "node_memory_Zswapped_bytes", 2,
                "Memory that was compressed into it."),
    MemoryBytes("Dirty:", "node_memory_Dirty_bytes", 2, "Page cache to be written to disk."),
    MemoryBytes("Writeback:", "node_memory_Writeback_bytes", 2,
                "Page cache being written to disk."),
    MemoryBytes("AnonPages:", "node_memory_AnonPages_bytes", 2,
                "Memory of programs that belongs to no file."),
    MemoryBytes("Mapped:", "node_memory_Mapped_bytes", 2, "Files mapped into programs."),
    MemoryBytes("Shmem:", "node_memory_Shmem_bytes", 2, "Shared memory and tmpfs."),
    MemoryBytes("KReclaimable:", "node_memory_KReclaimable_bytes", 4,
                "Kernel memory that can be reclaimed."),
    MemoryBytes("Slab:", "node_memory_Slab_bytes", 2, "Kernel data structures."),
    MemoryBytes("SReclaimable:", "node_memory_SReclaimable_bytes", 2,
                "Kernel data structures that can be reclaimed."),
    MemoryBytes("SUnreclaim:", "node_memory_SUnreclaim_bytes", 2,
                "Kernel data structures that cannot be reclaimed."),
    MemoryBytes("KernelStack:", "node_memory_KernelStack_bytes", 2,
                "Kernel stacks of all threads."),
    MemoryBytes("PageTables:", "node_memory_PageTables_bytes", 2, "Page tables."),
    MemoryBytes("SecPageTables:", "node_memory_SecPageTables_bytes", 2,
                "Page tables of virtual machines and IOMMUs."),
    MemoryBytes("NFS_Unstable:", "node_memory_NFS_Unstable_bytes", 4,
                "Pages sent to an NFS server and not yet on its disk."),
    MemoryBytes("Bounce:", "node_memory_Bounce_bytes", 4, "Bounce buffers of block devices."),
    MemoryBytes("WritebackTmp:", "node_memory_WritebackTmp_bytes", 4, "FUSE write-back buffers."),
    MemoryBytes("CommitLimit:", "node_memory_CommitLimit_bytes", 2,
                "Memory that may be promised to programs under strict overcommit."),
    MemoryBytes("Committed_AS:", "node_memory_Committed_AS_bytes", 2,
                "Memory promised to programs."),
    MemoryBytes("VmallocTotal:", "node_memory_VmallocTotal_bytes", 4, "Address space for vmalloc."),
    MemoryBytes("VmallocUsed:", "node_memory_VmallocUsed_bytes", 2,
                "Address space used by vmalloc."),
    MemoryBytes("VmallocChunk:", "node_memory_VmallocChunk_bytes", 4, "Largest free piece of it."),
    MemoryBytes("Percpu:", "node_memory_Percpu_bytes", 2, "Memory of per-processor kernel data."),
    MemoryBytes("HardwareCorrupted:", "node_memory_HardwareCorrupted_bytes", 2,
                "Memory taken out of use for hardware errors."),
    MemoryBytes("AnonHugePages:", "node_memory_AnonHugePages_bytes", 2,
                "Anonymous memory in transparent huge pages."),
    MemoryBytes("ShmemHugePages:", "node_memory_ShmemHugePages_bytes", 2,
                "Shared memory in huge pages."),
    MemoryBytes("ShmemPmdMapped:", "node_memory_ShmemPmdMapped_bytes", 4,
                "Shared memory mapped by huge pages."),
    MemoryBytes("FileHugePages:", "node_memory_FileHugePages_bytes", 2,
                "Page cache in huge pages."),
    MemoryBytes("FilePmdMapped:", "node_memory_FilePmdMapped_bytes", 4,
                "Page cache mapped by huge pages."),
    MemoryBytes("CmaTotal:", "node_memory_CmaTotal_bytes", 4, "Memory for contiguous allocation."),
    MemoryBytes("CmaFree:", "node_memory_CmaFree_bytes", 4, "What is free of it.", Reduction::kMin),
    MemoryBytes("Unaccepted:", "node_memory_Unaccepted_bytes", 4,
                "Memory a confidential virtual machine has not accepted yet."),
    MemoryBytes("Balloon:", "node_memory_Balloon_bytes", 2,
                "Memory a virtual machine has given back to its host."),
    MemoryCount("HugePages_Total:", "node_memory_HugePages_Total", "Huge pages in the pool."),
    MemoryCount("HugePages_Free:", "node_memory_HugePages_Free",
                "Huge pages of the pool not in use.", Reduction::kMin),
    MemoryCount("HugePages_Rsvd:", "node_memory_HugePages_Rsvd",
                "Huge pages promised and not yet in use."),
    MemoryCount("HugePages_Surp:", "node_memory_HugePages_Surp",
                "Huge pages above the pool's size."),
    MemoryBytes("Hugepagesize:", "node_memory_Hugepagesize_bytes", 2,
                "Size of a default huge page.", Reduction::kMax),
    MemoryBytes("Hugetlb:", "node_memory_Hugetlb_bytes", 2,
                "Memory of huge page pools of all sizes."),
    MemoryBytes("DirectMap4k:", "node_memory_DirectMap4k_bytes", 4,
                "Kernel's mapping of memory by 4 KiB pages."),
    MemoryBytes("DirectMap2M:", "node_memory_DirectMap2M_bytes", 4,
                "Kernel's mapping of memory by 2 MiB pages."),
    MemoryBytes("DirectMap1G:", "node_memory_DirectMap1G_bytes", 4,
                "Kernel's mapping of memory by 1 GiB pages."),
};

class MeminfoSource final : public KeyValueSource {
 public:
  MeminfoSource(const Roots& roots, int level, ReadBuffer& buffer)
      : KeyValueSource(roots.proc + "/meminfo", Shape::kWhole, {kMeminfoFields}, level, buffer) {}

  std::string_view name() const override { return "meminfo"; }
};

}  // namespace

std::unique_ptr<FileSource> MakeMeminfoSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<MeminfoSource>(roots, level, buffer);
}

std::vector<MetricDecl> MeminfoMetrics() { return DeclarationsOf(kMeminfoFields); }

}  // namespace sonde::collect
