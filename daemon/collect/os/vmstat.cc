// /proc/vmstat: paging, reclaim, and where memory comes from.
//
// Level 2 has what tells that a step lacks memory or gets it from the wrong place, and why: faults,
// swap, reclaim, allocations that had to wait, huge pages that were not to be had, memory of other
// NUMA nodes, processes killed. What else the kernel counts is in vmstat_details.cc. What
// /proc/meminfo has too is not repeated.
#include "daemon/collect/os/key_value_source.h"
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/os/vmstat_fields.h"

namespace sonde::collect {
namespace {

using namespace vmstat_fields;

// The names are node_exporter's, which are the kernel's, with unit and _total. NUMA lines count
// allocations of whatever size (zone_statistics in mm/page_alloc.c), reclaim counts pages.
constexpr KeyField kVmstatFields[] = {
    Count("numa_hit", "node_vmstat_numa_hit_total", 2,
          "Allocations served by the NUMA node they were meant for."),
    Count("numa_miss", "node_vmstat_numa_miss_total", 2,
          "Allocations served by a NUMA node though meant for another that had no memory left."),
    Count("numa_foreign", "node_vmstat_numa_foreign_total", 2,
          "The same counted where they were meant to be served."),
    Count("numa_interleave", "node_vmstat_numa_interleave_total", 2,
          "Allocations spread over the NUMA nodes by policy and served as meant."),
    Count("numa_local", "node_vmstat_numa_local_total", 2,
          "Allocations served by the NUMA node of the processor that asked."),
    Count("numa_other", "node_vmstat_numa_other_total", 2,
          "Allocations served by another NUMA node than the processor's that asked."),
    Bytes("workingset_refault", "node_vmstat_workingset_refault_bytes_total", 2,
          "Memory read again soon after it was reclaimed: programs and their files need more than "
          "there is.",
          kPageKinds),
    Bytes("workingset_activate", "node_vmstat_workingset_activate_bytes_total", 2,
          "Part of it that was needed again so soon that it is kept as being in use.", kPageKinds),
    Bytes("workingset_restore", "node_vmstat_workingset_restore_bytes_total", 2,
          "Part of it that had been in use when it was reclaimed: memory is thrashing.",
          kPageKinds),
    Bytes("nr_dirtied", "node_vmstat_nr_dirtied_bytes_total", 2,
          "Page cache that programs wrote to."),
    Bytes("nr_written", "node_vmstat_nr_written_bytes_total", 2,
          "Page cache written back to files and swap."),
    Bytes("nr_throttled_written", "node_vmstat_nr_throttled_written_bytes_total", 2,
          "Part of it while reclaim waited for the writing."),
    Bytes("nr_foll_pin_acquired", "node_vmstat_nr_foll_pin_acquired_bytes_total", 2,
          "Memory pinned for devices, as by RDMA and direct I/O."),
    Bytes("nr_foll_pin_released", "node_vmstat_nr_foll_pin_released_bytes_total", 2,
          "Such memory released again: the difference is pinned now."),
    Bytes("pgpromote_success", "node_vmstat_pgpromote_success_bytes_total", 2,
          "Memory moved to a faster tier."),
    Bytes("pgdemote", "node_vmstat_pgdemote_bytes_total", 2,
          "Memory moved to a slower tier instead of being reclaimed.", kReclaimers),
    Bytes("pgpgin", "node_vmstat_pgpgin_bytes_total", 2, "Bytes read from block devices, swap too.",
          kAlone, KeyUnit::kKibibytes),
    Bytes("pgpgout", "node_vmstat_pgpgout_bytes_total", 2,
          "Bytes written to block devices, swap too.", kAlone, KeyUnit::kKibibytes),
    Bytes("pswpin", "node_vmstat_pswpin_bytes_total", 2, "Memory read back from swap."),
    Bytes("pswpout", "node_vmstat_pswpout_bytes_total", 2, "Memory written to swap."),
    Bytes("pgalloc", "node_vmstat_pgalloc_bytes_total", 2,
          "Memory handed out by the kernel's page allocator.", kZones),
    Bytes("pgfree", "node_vmstat_pgfree_bytes_total", 2, "Memory given back to it."),
    Bytes("pgactivate", "node_vmstat_pgactivate_bytes_total", 2,
          "Memory found to be in use: looked at by reclaim last."),
    Bytes("pgdeactivate", "node_vmstat_pgdeactivate_bytes_total", 2,
          "Memory found not to be in use: looked at by reclaim first."),
    Count("allocstall", "node_vmstat_allocstall_total", 2,
          "Allocations that had to reclaim memory themselves before they were served.", kZones),
    Count("pgfault", "node_vmstat_pgfault_total", 2, "Page faults, major ones included."),
    Count("pgmajfault", "node_vmstat_pgmajfault_total", 2, "Page faults that needed I/O."),
    Bytes("pgrefill", "node_vmstat_pgrefill_bytes_total", 2,
          "Memory in use that was looked at because too little else was left to reclaim.", kZones),
    Bytes("pgsteal_kswapd", "node_vmstat_pgsteal_kswapd_bytes_total", 2,
          "Memory reclaimed in the background.", kZones),
    Bytes("pgsteal_direct", "node_vmstat_pgsteal_direct_bytes_total", 2,
          "Memory reclaimed by programs that waited for it.", kZones),
    Bytes("pgscan_kswapd", "node_vmstat_pgscan_kswapd_bytes_total", 2,
          "Memory looked at in the background to reclaim some of it.", kZones),
    Bytes("pgscan_direct", "node_vmstat_pgscan_direct_bytes_total", 2,
          "Memory looked at by programs that waited to reclaim some of it.", kZones),
    Bytes("pgsteal_anon", "node_vmstat_pgsteal_anon_bytes_total", 2,
          "Memory of programs reclaimed, by whomever: it went to swap."),
    Bytes("pgsteal_file", "node_vmstat_pgsteal_file_bytes_total", 2,
          "Page cache reclaimed, by whomever."),
    Count("pgscan_direct_throttle", "node_vmstat_pgscan_direct_throttle_total", 2,
          "Programs held up because hardly any memory was left to reclaim into."),
    Count("zone_reclaim_failed", "node_vmstat_zone_reclaim_failed_total", 2,
          "Times a NUMA node had nothing to reclaim for an allocation that should stay local."),
    Count("slabs_scanned", "node_vmstat_slabs_scanned_total", 2,
          "Kernel objects looked at to reclaim memory, such as cached names and inodes."),
    Count("pageoutrun", "node_vmstat_pageoutrun_total", 2, "Times background reclaim set to work."),
    Count("drop_pagecache", "node_vmstat_drop_pagecache_total", 2,
          "Times somebody dropped the page cache."),
    Count("drop_slab", "node_vmstat_drop_slab_total", 2,
          "Times somebody dropped the kernel's caches of names and inodes."),
    Count("oom_kill", "node_vmstat_oom_kill_total", 2,
          "Processes killed because memory ran out, on the node or in a cgroup. Counted since "
          "Linux 4.13."),
    Count("numa_pte_updates", "node_vmstat_numa_pte_updates_total", 2,
          "Pages the kernel unmapped to learn which NUMA node uses them: the price of balancing."),
    Count("numa_hint_faults", "node_vmstat_numa_hint_faults_total", 2,
          "Page faults by which the kernel learns which NUMA node uses a page."),
    Count("numa_hint_faults_local", "node_vmstat_numa_hint_faults_local_total", 2,
          "Those of them on the page's own NUMA node."),
    Bytes("numa_pages_migrated", "node_vmstat_numa_pages_migrated_bytes_total", 2,
          "Memory moved to the NUMA node that uses it."),
    Bytes("pgmigrate_success", "node_vmstat_pgmigrate_success_bytes_total", 2,
          "Memory moved to another place, for whatever reason: balancing, compaction, tiers."),
    Bytes("pgmigrate_fail", "node_vmstat_pgmigrate_fail_bytes_total", 2,
          "Memory that could not be moved."),
    Count("compact_stall", "node_vmstat_compact_stall_total", 2,
          "Allocations that waited while free memory was moved together."),
    Count("compact_fail", "node_vmstat_compact_fail_total", 2,
          "Those of them for which it did not help."),
    Count("compact_success", "node_vmstat_compact_success_total", 2,
          "Those of them for which it did."),
    Count("compact_daemon_wake", "node_vmstat_compact_daemon_wake_total", 2,
          "Times free memory was moved together in the background."),
    Count("htlb_buddy_alloc_success", "node_vmstat_htlb_buddy_alloc_success_total", 2,
          "Huge pages added to the pools while the node ran."),
    Count("htlb_buddy_alloc_fail", "node_vmstat_htlb_buddy_alloc_fail_total", 2,
          "Huge pages that could not be added to them: memory is in small pieces."),
    Count("thp_fault_alloc", "node_vmstat_thp_fault_alloc_total", 2,
          "Page faults served with a huge page."),
    Count("thp_fault_fallback", "node_vmstat_thp_fault_fallback_total", 2,
          "Page faults for which no huge page was to be had."),
    Count("thp_collapse_alloc", "node_vmstat_thp_collapse_alloc_total", 2,
          "Huge pages taken to put small pages in."),
    Count("thp_collapse_alloc_failed", "node_vmstat_thp_collapse_alloc_failed_total", 2,
          "Huge pages that were not to be had for that."),
    Count("thp_file_alloc", "node_vmstat_thp_file_alloc_total", 2,
          "Huge pages taken for shared memory or files."),
    Count("thp_file_fallback", "node_vmstat_thp_file_fallback_total", 2,
          "Huge pages that were not to be had for that."),
    Count("thp_split", "node_vmstat_thp_split_page_total", 2, "Huge pages split into small ones.",
          kSplit),
    Count("thp_split_pmd", "node_vmstat_thp_split_pmd_total", 2,
          "Mappings of huge pages split into mappings of small ones."),
    Count("thp_swpout", "node_vmstat_thp_swpout_total", 2, "Huge pages written to swap in one."),
    Count("thp_swpout_fallback", "node_vmstat_thp_swpout_fallback_total", 2,
          "Huge pages that had to be split to be written to swap."),
    Bytes("swap_ra", "node_vmstat_swap_ra_bytes_total", 2,
          "Memory read from swap before it was asked for."),
    Bytes("swap_ra_hit", "node_vmstat_swap_ra_hit_bytes_total", 2,
          "Part of it that was asked for then."),
    Bytes("zswpin", "node_vmstat_zswpin_bytes_total", 2,
          "Memory taken back out of compressed swap."),
    Bytes("zswpout", "node_vmstat_zswpout_bytes_total", 2, "Memory put into compressed swap."),
    Bytes("zswpwb", "node_vmstat_zswpwb_bytes_total", 2,
          "Memory that went on from there to the swap device."),
};

class VmstatSource final : public KeyValueSource {
 public:
  VmstatSource(const Roots& roots, int level, ReadBuffer& buffer)
      : KeyValueSource(roots.proc + "/vmstat", Shape::kRecords, {kVmstatFields, kDetails}, level,
                       buffer) {}

  std::string_view name() const override { return "vmstat"; }
};

}  // namespace

std::unique_ptr<FileSource> MakeVmstatSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<VmstatSource>(roots, level, buffer);
}

std::vector<MetricDecl> VmstatMetrics() { return DeclarationsOf(kVmstatFields, kDetails); }

}  // namespace sonde::collect
