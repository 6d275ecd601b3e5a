// /proc/vmstat of kernels old and new, whole, cut short and not what it should be.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/sampler.h"
#include "tests/unit/collect_tree.h"

namespace sonde::collect::collect_vmstat_test {
namespace {

using testing::IsNan;

const double kPage = static_cast<double>(sysconf(_SC_PAGESIZE));

// A kernel of this time; `dirty` lies before what is wanted and has digits that come and go.
std::string NewText(uint64_t dirty, uint64_t faults) {
  return fmt::format(
      "nr_free_pages 1751617\nnuma_hit 559583158\nnuma_miss 12\nnuma_foreign 0\n"
      "numa_interleave 1131\nnuma_local 559530998\nnuma_other 52160\nnr_dirty {}\n"
      "workingset_refault_anon 3\nworkingset_refault_file 7774567\nworkingset_nodereclaim 0\n"
      "pgpromote_success 0\npgpromote_candidate 9\npgdemote_kswapd 5\npgdemote_direct 2\n"
      "pgpgin 32493621\npgpgout 105822444\npswpin 7\npswpout 8\nallocstall_dma32 1\n"
      "allocstall_normal 20\nallocstall_movable 300\npgskip_normal 0\npgfault {}\n"
      "pgmajfault 52440\npgsteal_kswapd 64\npgsteal_direct 32\npgsteal_khugepaged 1\n"
      "pgscan_kswapd 128\npgscan_direct 96\npgscan_direct_throttle 4\npgscan_anon 5\n"
      "oom_kill 2\nnuma_pages_migrated 16\ncompact_stall 11\ncompact_fail 10\n"
      "compact_success 1\nthp_fault_alloc 33\nthp_fault_fallback 44\n"
      "thp_fault_fallback_charge 1\nthp_collapse_alloc 55\nthp_split_page 66\n"
      "thp_split_page_failed 1\nnr_unstable 0\n",
      dirty, faults);
}

class Vmstat : public testing::Test {
 protected:
  void Sample(FileSource& source, std::string_view text) {
    tree_.Write("proc/vmstat", text);
    source.Sample(now_ += 100 * kSecond);
  }
  std::unique_ptr<FileSource> Make(int level) {
    return MakeVmstatSource(tree_.roots(), level, buffer_);
  }

  Tree tree_;
  ReadBuffer buffer_;
  Nanos now_ = kSecond;
};

TEST_F(Vmstat, PagesAndKibibytesAreBytes) {
  const auto source = Make(4);
  Sample(*source, NewText(5, 582810051));
  EXPECT_EQ(Value(*source, "node_vmstat_pgfault_total"), 582810051);
  EXPECT_EQ(Value(*source, "node_vmstat_pgmajfault_total"), 52440);
  EXPECT_EQ(Value(*source, "node_vmstat_pgpgin_bytes_total"), 32493621.0 * 1024);
  EXPECT_EQ(Value(*source, "node_vmstat_pgpgout_bytes_total"), 105822444.0 * 1024);
  EXPECT_EQ(Value(*source, "node_vmstat_pswpin_bytes_total"), 7 * kPage);
  EXPECT_EQ(Value(*source, "node_vmstat_pswpout_bytes_total"), 8 * kPage);
  EXPECT_EQ(Value(*source, "node_vmstat_pgscan_direct_bytes_total"), 96 * kPage);
  EXPECT_EQ(Value(*source, "node_vmstat_numa_miss_total"), 12);
  EXPECT_EQ(Value(*source, "node_vmstat_oom_kill_total"), 2);
  EXPECT_EQ(Value(*source, "node_vmstat_thp_fault_fallback_total"), 44);
}

TEST_F(Vmstat, SaysWhatReclaimCompactionAndNumaDid) {
  const auto source = Make(4);
  Sample(*source, NewText(5, 1));
  EXPECT_EQ(Value(*source, "node_vmstat_numa_hit_total"), 559583158);
  EXPECT_EQ(Value(*source, "node_vmstat_pgscan_direct_throttle_total"), 4);
  EXPECT_EQ(Value(*source, "node_vmstat_compact_fail_total"), 10);
  EXPECT_EQ(Value(*source, "node_vmstat_thp_split_page_total"), 66);
  EXPECT_EQ(Value(*source, "node_vmstat_pgdemote_bytes_total"), 7 * kPage);
  EXPECT_FALSE(Has(*source, "node_vmstat_thp_split_pmd_total"));
}

TEST_F(Vmstat, LinesOfOneMeaningAreAddedUp) {
  const auto source = Make(4);
  Sample(*source, NewText(5, 1));
  EXPECT_EQ(Value(*source, "node_vmstat_allocstall_total"), 321);
  EXPECT_EQ(Value(*source, "node_vmstat_workingset_refault_bytes_total"), 7774570 * kPage);
}

TEST_F(Vmstat, OldKernelsCountReclaimByZone) {
  const auto source = Make(4);
  Sample(
      *source,
      "nr_free_pages 977769\nworkingset_refault 157066\npgpgin 7344136\npgfault 2320168809\n"
      "pgsteal_kswapd_dma 0\npgsteal_kswapd_dma32 78783\npgsteal_kswapd_normal 254128\n"
      "pgsteal_kswapd_movable 0\npgscan_direct_dma 1\npgscan_direct_dma32 67\n"
      "pgscan_direct_normal 6796\npgscan_direct_throttle 3\nallocstall 83165\nthp_split 69984\n");
  EXPECT_EQ(Value(*source, "node_vmstat_pgsteal_kswapd_bytes_total"), (78783 + 254128) * kPage);
  EXPECT_EQ(Value(*source, "node_vmstat_pgscan_direct_bytes_total"), (1 + 67 + 6796) * kPage);
  EXPECT_EQ(Value(*source, "node_vmstat_pgscan_direct_throttle_total"), 3);
  EXPECT_EQ(Value(*source, "node_vmstat_allocstall_total"), 83165);
  EXPECT_EQ(Value(*source, "node_vmstat_thp_split_page_total"), 69984);
  EXPECT_EQ(Value(*source, "node_vmstat_workingset_refault_bytes_total"), 157066 * kPage);
  EXPECT_FALSE(Has(*source, "node_vmstat_oom_kill_total"));
}

TEST_F(Vmstat, DigitsThatComeAndGoMoveNothing) {
  const auto source = Make(4);
  Sample(*source, NewText(9, 99));
  const uint32_t generation = source->generation();
  uint64_t faults = 1;
  for (const uint64_t dirty : {10ull, 123456ull, 0ull, 9'999'999'999ull, 9ull}) {
    Sample(*source, NewText(dirty, faults *= 10));
    EXPECT_EQ(Value(*source, "node_vmstat_pgfault_total"), static_cast<double>(faults));
    EXPECT_EQ(Value(*source, "node_vmstat_thp_fault_fallback_total"), 44);
  }
  EXPECT_EQ(source->generation(), generation);
}

TEST_F(Vmstat, ALayoutThatChangesIsFoundAgain) {
  const auto source = Make(4);
  Sample(*source, NewText(5, 7));
  Sample(*source, "oom_kill 3\nnr_something 5\npgfault 8\nnr_more 1\n");
  EXPECT_EQ(source->series().size(), 2u);
  EXPECT_EQ(Value(*source, "node_vmstat_pgfault_total"), 8);
  EXPECT_EQ(Value(*source, "node_vmstat_oom_kill_total"), 3);
  Sample(*source, "nr_new 1\n" + NewText(5, 9));
  EXPECT_EQ(Value(*source, "node_vmstat_pgfault_total"), 9);
  EXPECT_EQ(Value(*source, "node_vmstat_oom_kill_total"), 2);
  // So short that it might be cut: missing at first, found the next time.
  Sample(*source, "pgfault 10\n");
  EXPECT_THAT(Value(*source, "node_vmstat_pgfault_total"), IsNan());
  Sample(*source, "pgfault 10\n");
  EXPECT_EQ(source->series().size(), 1u);
  EXPECT_EQ(Value(*source, "node_vmstat_pgfault_total"), 10);
}

// However the text is cut: what is there is right, the rest missing, and no counter seems to fall.
TEST_F(Vmstat, ATextCutShortGivesNoHalfNumbers) {
  const std::string text = NewText(5, 582810051);
  for (size_t size = 0; size < text.size(); ++size) {
    const auto source = Make(4);
    source->Parse(text);
    const std::vector<double> whole(source->values().begin(), source->values().end());
    const uint32_t generation = source->generation();
    source->Parse(std::string_view(text).substr(0, size));
    if (source->generation() == generation) {
      for (size_t i = 0; i < whole.size(); ++i) {
        const double value = source->values()[i];
        EXPECT_TRUE(std::isnan(value) || value == whole[i]) << size << ": " << i;
      }
    }
    source->Parse(text);
    EXPECT_EQ(generation, source->generation()) << size;
    EXPECT_THAT(source->values(), testing::ElementsAreArray(whole));
  }
}

TEST_F(Vmstat, LevelTwoExplainsAJobAndLevelFourHasTheRest) {
  const auto two = Make(2);
  const auto four = Make(4);
  const std::string_view text =
      "pgfault 1\npgalloc_dma 1\npgalloc_normal 2\nnr_free_pages 8\nnr_iommu_pages 6\npgreuse 9\n"
      "oom_kill 4\n";
  two->Parse(text);
  four->Parse(text);
  EXPECT_EQ(two->series().size(), 3u);
  EXPECT_EQ(Value(*two, "node_vmstat_pgalloc_bytes_total"), 3 * kPage);
  EXPECT_EQ(four->series().size(), 5u);
  EXPECT_EQ(Value(*four, "node_vmstat_pgreuse_total"), 9);
  EXPECT_EQ(Value(*four, "node_vmstat_nr_iommu_bytes"), 6 * kPage);
}

TEST_F(Vmstat, HostileTextGivesMissingValues) {
  const auto source = Make(4);
  Sample(*source,
         "pgfault -1\npgmajfault\noom_kill 99999999999999999999\npswpin 5x\npswpout 6\n"
         "pswpout 7\n");
  EXPECT_THAT(Value(*source, "node_vmstat_pgfault_total"), IsNan());
  EXPECT_FALSE(Has(*source, "node_vmstat_pgmajfault_total"));
  EXPECT_THAT(Value(*source, "node_vmstat_oom_kill_total"), IsNan());
  EXPECT_THAT(Value(*source, "node_vmstat_pswpin_bytes_total"), IsNan());
  Sample(*source, NewText(1, 2));
  EXPECT_EQ(Value(*source, "node_vmstat_pgfault_total"), 2);
  EXPECT_EQ(Value(*source, "node_vmstat_pswpout_bytes_total"), 8 * kPage);
}

TEST_F(Vmstat, AFileThatCannotBeReadIsMissingUntilItCan) {
  const auto source = Make(4);
  source->Sample(now_);
  EXPECT_TRUE(source->series().empty());
  EXPECT_TRUE(source->TakeNotes().empty());
  Sample(*source, NewText(5, 1));
  EXPECT_EQ(Value(*source, "node_vmstat_pgfault_total"), 1);
  Sample(*source, "");
  EXPECT_THAT(Value(*source, "node_vmstat_pgfault_total"), IsNan());
  Sample(*source, NewText(5, 3));
  EXPECT_EQ(Value(*source, "node_vmstat_pgfault_total"), 3);
}

TEST_F(Vmstat, CountersCountFromTheStepsStart) {
  Sampler sampler({.level = 4, .events = "", .roots = tree_.roots()});
  const auto faults = [&] {
    sampler.Sample(now_ += kSecond);
    return sampler.row(
        Group::kOs)[Find(sampler.schema(Group::kOs)->series(), "node_vmstat_pgfault_total")];
  };
  tree_.Write("proc/vmstat", NewText(5, 1000));
  EXPECT_EQ(faults(), 0);
  tree_.Write("proc/vmstat", NewText(50, 1300));
  EXPECT_EQ(faults(), 300);
  tree_.Write("proc/vmstat", NewText(5, 20));  // it fell: no spike, neither now nor later
  EXPECT_EQ(faults(), 300);
  tree_.Write("proc/vmstat", NewText(5, 21));
  EXPECT_EQ(faults(), 301);
}

}  // namespace
}  // namespace sonde::collect::collect_vmstat_test
