// Memory by NUMA node and pools of huge pages by size, in the formats of sysfs.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "daemon/collect/os/os_sources.h"
#include "tests/unit/collect_tree.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_numa_test {
namespace {

using testing::IsNan;

class Numa : public testing::Test {
 protected:
  void WriteNode(int node, uint64_t free_kilobytes) const {
    Write(node, "meminfo",
          fmt::format("Node {0} MemTotal:       134182340 kB\n"
                      "Node {0} MemFree:        {1} kB\n"
                      "Node {0} MemUsed:        81151968 kB\n"
                      "Node {0} Active(anon):     691324 kB\n"
                      "Node {0} Dirty:                20 kB\n"
                      "Node {0} FilePages:      70170916 kB\n"
                      "Node {0} AnonPages:        788196 kB\n"
                      "Node {0} Shmem:             47860 kB\n"
                      "Node {0} Slab:            6654304 kB\n"
                      "Node {0} AnonHugePages:    147456 kB\n"
                      "Node {0} HugePages_Total:    12\n"
                      "Node {0} HugePages_Free:      7\n"
                      "Node {0} HugePages_Surp:      0\n",
                      node, free_kilobytes));
    Write(node, "numastat",
          "numa_hit 193460335812\nnuma_miss 12624528\nnuma_foreign 59858623300\n"
          "interleave_hit 57146\nlocal_node 193454780853\nother_node 18179487\n");
  }
  void Write(int node, std::string_view file, std::string_view text) const {
    tree_.Write(fmt::format("sys/devices/system/node/node{}/{}", node, file), text);
  }
  void Sample(Nanos after = kSecond) { source_->Sample(now_ += after); }
  double Get(std::string_view metric, int node = 0) const {
    return Value(*source_, fmt::format("node_memory_numa_{}{{numa=\"{}\"}}", metric, node));
  }

  Tree tree_;
  ReadBuffer buffer_;
  std::unique_ptr<Source> source_ = MakeNumaSource(tree_.roots(), buffer_);
  Nanos now_ = 0;
};

TEST_F(Numa, EachNodeHasItsMemoryAndCounts) {
  WriteNode(0, 53030372);
  WriteNode(1, 11);
  tree_.Write("sys/devices/system/node/online", "0-1\n");
  tree_.Write("sys/devices/system/node/nodes/x", "");
  Sample();
  EXPECT_EQ(Get("MemTotal_bytes"), 134182340.0 * 1024);
  EXPECT_EQ(Get("MemFree_bytes"), 53030372.0 * 1024);
  EXPECT_EQ(Get("MemFree_bytes", 1), 11.0 * 1024);
  EXPECT_EQ(Get("FilePages_bytes"), 70170916.0 * 1024);
  EXPECT_EQ(Get("AnonHugePages_bytes"), 147456.0 * 1024);
  EXPECT_EQ(Get("HugePages_Total"), 12);
  EXPECT_EQ(Get("HugePages_Free"), 7);
  EXPECT_EQ(Get("hit_total"), 193460335812);
  EXPECT_EQ(Get("miss_total"), 12624528);
  EXPECT_EQ(Get("foreign_total"), 59858623300);
  EXPECT_EQ(Get("interleave_hit_total"), 57146);
  EXPECT_EQ(Get("local_total"), 193454780853);
  EXPECT_EQ(Get("other_total", 1), 18179487);
  EXPECT_EQ(source_->series().size(), 2u * 16);
}

TEST_F(Numa, NodesComeAndGo) {
  WriteNode(0, 1);
  Sample();
  WriteNode(12, 2);
  Sample();
  EXPECT_EQ(source_->series().size(), 16u);
  Sample(60 * kSecond);
  EXPECT_EQ(Get("MemFree_bytes", 12), 2048);
  const uint32_t generation = source_->generation();
  Sample(60 * kSecond);
  EXPECT_EQ(source_->generation(), generation);
  tree_.Remove("sys/devices/system/node/node0");
  Sample(60 * kSecond);
  EXPECT_EQ(source_->series().size(), 16u);
  EXPECT_EQ(Get("MemFree_bytes", 12), 2048);
}

TEST_F(Numa, WhatIsMissingInOneFileIsThereInTheOther) {
  WriteNode(0, 1);
  Sample();
  Write(0, "meminfo", "");
  Sample();
  EXPECT_THAT(Get("MemTotal_bytes"), IsNan());
  EXPECT_EQ(Get("hit_total"), 193460335812);
  Write(0, "meminfo", "Node 0 MemFree: x kB\nNode 0 Slab: 3 kB\nshort\nNode 0 MemTotal: 123");
  Write(0, "numastat", "numa_miss 5\nnuma_hit -1\nother_node 99999999999999999999\nlocal_node 12");
  Sample();
  EXPECT_THAT(Get("MemFree_bytes"), IsNan());
  EXPECT_EQ(Get("Slab_bytes"), 3072);
  EXPECT_THAT(Get("MemTotal_bytes"), IsNan()) << "its line has no end";
  EXPECT_EQ(Get("miss_total"), 5);
  EXPECT_THAT(Get("hit_total"), IsNan());
  EXPECT_THAT(Get("other_total"), IsNan());
  EXPECT_THAT(Get("local_total"), IsNan());
}

TEST_F(Numa, WithoutNodesThereIsNothing) {
  Sample();
  EXPECT_TRUE(source_->series().empty());
  EXPECT_EQ(source_->generation(), 0u);
}

TEST_F(Numa, AWarmTickAllocatesNothing) {
  WriteNode(0, 1);
  WriteNode(1, 2);
  Sample();
  const size_t before = allocations;
  for (int i = 0; i < 30; ++i) Sample();
  EXPECT_EQ(allocations, before);
}

class Hugepages : public testing::Test {
 protected:
  void WritePool(std::string_view size, int pages) const {
    Write(size, "nr_hugepages", fmt::format("{}\n", pages));
    Write(size, "free_hugepages", fmt::format("{}\n", pages - 1));
    Write(size, "resv_hugepages", "3\n");
    Write(size, "surplus_hugepages", "2\n");
    Write(size, "nr_overcommit_hugepages", "9\n");
  }
  void Write(std::string_view size, std::string_view file, std::string_view text) const {
    tree_.Write(fmt::format("sys/kernel/mm/hugepages/hugepages-{}/{}", size, file), text);
  }
  double Get(std::string_view name) const { return Value(*source_, name); }

  Tree tree_;
  ReadBuffer buffer_;
  std::unique_ptr<Source> source_ = MakeHugepagesSource(tree_.roots(), 4, buffer_);
};

TEST_F(Hugepages, EachSizeHasItsPool) {
  WritePool("2048kB", 100);
  WritePool("1048576kB", 4);
  source_->Sample(kSecond);
  EXPECT_EQ(Get("node_hugepages{size=\"2048kB\"}"), 100);
  EXPECT_EQ(Get("node_hugepages_free{size=\"2048kB\"}"), 99);
  EXPECT_EQ(Get("node_hugepages_reserved{size=\"1048576kB\"}"), 3);
  EXPECT_EQ(Get("node_hugepages_surplus{size=\"1048576kB\"}"), 2);
  EXPECT_EQ(source_->series().size(), 8u);
  Write("2048kB", "free_hugepages", "1");
  source_->Sample(10 * kSecond);
  EXPECT_EQ(Get("node_hugepages_free{size=\"2048kB\"}"), 99) << "read too often";
  source_->Sample(11 * kSecond);
  EXPECT_THAT(Get("node_hugepages_free{size=\"2048kB\"}"), IsNan());
  EXPECT_EQ(Get("node_hugepages{size=\"2048kB\"}"), 100);
}

TEST_F(Hugepages, AKernelWithoutThemHasNone) {
  source_->Sample(kSecond);
  EXPECT_TRUE(source_->series().empty());
}

}  // namespace
}  // namespace sonde::collect::collect_numa_test
