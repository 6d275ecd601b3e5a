// Files with a line or a column for each processor, on machines small and large, whole, cut short
// and not what they should be.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/sampler.h"
#include "tests/unit/collect_procfs.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_rows_test {
namespace {

using testing::IsNan;

class Rows : public testing::TestWithParam<int> {
 protected:
  void Sample(FileSource& source, int time) {
    machine_.WriteTo(tree_, time);
    source.Sample(now_ += 100 * kSecond);
  }
  int cpus() const { return GetParam(); }

  ProcFs machine_{GetParam()};
  Tree tree_;
  ReadBuffer buffer_;
  Nanos now_ = kSecond;
};
INSTANTIATE_TEST_SUITE_P(Cpus, Rows, testing::Values(1, 2, 256));

TEST_P(Rows, SoftInterruptsAreByProcessorAndVector) {
  const auto source = MakeSoftirqsSource(tree_.roots(), buffer_);
  for (const int time : {0, 5}) {
    Sample(*source, time);
    ASSERT_EQ(source->series().size(), static_cast<size_t>(10 * cpus()));
    const std::vector<std::string> vectors = {"hi",      "timer",        "net_tx",  "net_rx",
                                              "block",   "block_iopoll", "tasklet", "sched",
                                              "hrtimer", "rcu"};
    for (int cpu = 0; cpu < cpus(); ++cpu) {
      for (int row = 0; row < 10; ++row) {
        EXPECT_EQ(Value(*source, fmt::format("node_softirqs_core_total{{cpu=\"{}\",vector=\"{}\"}}",
                                             cpu, vectors[static_cast<size_t>(row)])),
                  ProcFs::Number(row, cpu, time));
      }
    }
  }
  EXPECT_EQ(source->generation(), 1u);
}

TEST_P(Rows, InterruptsAreSumsOfTheKindsThatThereAre) {
  const auto source = MakeInterruptsSource(tree_.roots(), buffer_);
  Sample(*source, 3);
  const auto sum = [&](int row, int time) { return static_cast<double>(machine_.Sum(row, time)); };
  EXPECT_EQ(Value(*source, "node_interrupts_total{device=\"nvme0q1\",type=\"24\"}"), sum(0, 3));
  EXPECT_EQ(Value(*source, "node_interrupts_total{type=\"26\"}"), sum(1, 3));
  EXPECT_EQ(Value(*source, "node_interrupts_total{type=\"LOC\"}"), sum(2, 3));
  EXPECT_EQ(Value(*source, "node_interrupts_total{type=\"TLB\"}"), sum(3, 3));
  EXPECT_EQ(Value(*source, "node_interrupts_total{type=\"ERR\"}"), 3);
  EXPECT_EQ(source->series().size(), 5u) << "25 and MIS never interrupted";
  const uint32_t generation = source->generation();
  Sample(*source, 4);
  EXPECT_EQ(source->generation(), generation);
  EXPECT_EQ(Value(*source, "node_interrupts_total{type=\"LOC\"}"), sum(2, 4));
}

TEST_P(Rows, PacketsAreSumsAndAtLevelFourByProcessor) {
  for (const int columns : {11, 13, 15}) {
    const auto two = MakeSoftnetSource(tree_.roots(), 2, buffer_);
    const auto four = MakeSoftnetSource(tree_.roots(), 4, buffer_);
    tree_.Write("proc/net/softnet_stat", machine_.Softnet(9, columns));
    two->Sample(now_);
    four->Sample(now_);
    EXPECT_EQ(two->series().size(), 5u);
    EXPECT_EQ(four->series().size(), static_cast<size_t>(5 + 5 * cpus()));
    for (const FileSource* source : {two.get(), four.get()}) {
      const auto sum = [&](int row) { return static_cast<double>(machine_.Sum(row, 9)); };
      EXPECT_EQ(Value(*source, "node_softnet_processed_total"), sum(0));
      EXPECT_EQ(Value(*source, "node_softnet_dropped_total"), sum(1));
      EXPECT_EQ(Value(*source, "node_softnet_times_squeezed_total"), sum(2));
      EXPECT_EQ(Value(*source, "node_softnet_flow_limit_total"), sum(10));
    }
    const std::string last =
        fmt::format("node_softnet_core_dropped_total{{cpu=\"{}\"}}", cpus() - 1);
    EXPECT_EQ(Value(*four, last), ProcFs::Number(1, cpus() - 1, 9));
  }
}

TEST_P(Rows, SchedulingIsInSecondsByProcessor) {
  const auto source = MakeSchedstatSource(tree_.roots(), buffer_);
  Sample(*source, 2);
  ASSERT_EQ(source->series().size(), static_cast<size_t>(3 * cpus()));
  for (const int cpu : {0, cpus() - 1}) {
    const auto get = [&](std::string_view name) {
      return Value(*source, fmt::format("node_schedstat_{}_total{{cpu=\"{}\"}}", name, cpu));
    };
    EXPECT_DOUBLE_EQ(get("running_seconds"), static_cast<double>(ProcFs::Number(0, cpu, 2)) * 1e-9);
    EXPECT_DOUBLE_EQ(get("waiting_seconds"), static_cast<double>(ProcFs::Number(1, cpu, 2)) * 1e-9);
    EXPECT_EQ(get("timeslices"), ProcFs::Number(2, cpu, 2));
  }
}

TEST_P(Rows, FreeMemoryIsByNodeZoneAndSize) {
  const auto source = MakeBuddyinfoSource(tree_.roots(), buffer_);
  Sample(*source, 1);
  const int nodes = std::max(cpus() / 64, 1);
  EXPECT_EQ(source->series().size(), static_cast<size_t>(nodes * 2 * 11));
  const std::string last =
      fmt::format("node_buddyinfo_blocks{{node=\"{}\",order=\"10\",zone=\"Normal\"}}", nodes - 1);
  EXPECT_EQ(Value(*source, last), ProcFs::Number(10, nodes - 1, 1));
  EXPECT_FALSE(source->counts_from_boot());
}

TEST_P(Rows, ATextCutShortGivesNoHalfNumbersAndKeepsTheSeries) {
  machine_.WriteTo(tree_, 8);
  using Make = std::function<std::unique_ptr<FileSource>()>;
  const Roots roots = tree_.roots();
  const std::pair<std::string, Make> sources[] = {
      {machine_.Softirqs(8), [&] { return MakeSoftirqsSource(roots, buffer_); }},
      {machine_.Interrupts(8), [&] { return MakeInterruptsSource(roots, buffer_); }},
      {machine_.Softnet(8, 15), [&] { return MakeSoftnetSource(roots, 4, buffer_); }},
      {machine_.Schedstat(8), [&] { return MakeSchedstatSource(roots, buffer_); }},
      {ProcFs::Buddyinfo(2, 8), [&] { return MakeBuddyinfoSource(roots, buffer_); }},
  };
  for (const auto& [text, make] : sources) {
    const auto source = make();
    source->Parse(text);
    const std::vector<double> whole(source->values().begin(), source->values().end());
    const size_t head = std::min(text.find('\n') + 2, text.size());
    const size_t step = std::max<size_t>(text.size() / 500, 1);
    for (size_t size = head; size < text.size(); size += step) {
      if (text[size - 1] == '\n') continue;  // whole lines that are not there are gone
      source->Parse(std::string_view(text).substr(0, size));
      ASSERT_EQ(source->generation(), 1u) << source->name() << ' ' << size;
      for (size_t i = 0; i < whole.size(); ++i) {
        const double value = source->values()[i];
        ASSERT_TRUE(std::isnan(value) || value == whole[i]) << source->name() << ' ' << size;
      }
    }
    source->Parse(text);
    EXPECT_TRUE(std::equal(whole.begin(), whole.end(), source->values().begin()));
  }
}

TEST_P(Rows, AWarmTickAllocatesNothing) {
  machine_.WriteTo(tree_, 1);
  Sampler sampler({.level = 4, .events = "", .roots = tree_.roots()});
  Nanos now = kSecond;
  for (int i = 0; i < 30; ++i) sampler.Sample(now += kSecond);
  EXPECT_GT(sampler.row(Group::kOs).size(), static_cast<size_t>(25 * cpus()));
  const size_t before = allocations;
  for (int i = 0; i < 30; ++i) sampler.Sample(now += kSecond);
  EXPECT_EQ(allocations, before);
}

class RowsChange : public testing::Test {
 protected:
  Tree tree_;
  ReadBuffer buffer_;
};

TEST_F(RowsChange, AnInterruptIsThereFromWhenItFirstComes) {
  const auto source = MakeInterruptsSource(tree_.roots(), buffer_);
  source->Parse("    CPU0 CPU1\n 24: 5 6 A 1-edge eth0\n 25: 0 0 A 2-edge eth1\n");
  EXPECT_FALSE(Has(*source, "node_interrupts_total{device=\"eth1\",type=\"25\"}"));
  source->Parse("    CPU0 CPU1\n 24: 5 7 A 1-edge eth0\n 25: 0 3 A 2-edge eth1\n");
  EXPECT_EQ(Value(*source, "node_interrupts_total{device=\"eth1\",type=\"25\"}"), 3);
  EXPECT_EQ(Value(*source, "node_interrupts_total{device=\"eth0\",type=\"24\"}"), 12);
}

TEST_F(RowsChange, AFileTooLargeIsLeftOutAndSaysSo) {
  const ProcFs huge(1024);
  std::string text = huge.Head(11);
  for (int row = 0; text.size() < (size_t{1} << 20); ++row) {
    text += huge.Row(std::to_string(row), row, 1, 4) + "  PCI-MSI 1-edge queue\n";
  }
  tree_.Write("proc/interrupts", text);
  const auto source = MakeInterruptsSource(tree_.roots(), buffer_);
  source->Sample(kSecond);
  EXPECT_TRUE(source->series().empty());
  EXPECT_EQ(source->TakeNotes().size(), 1u);
  source->Sample(100 * kSecond);
  EXPECT_TRUE(source->TakeNotes().empty()) << "it is not read again";
}

TEST_F(RowsChange, AProcessorThatGoesOfflineTakesItsSeriesWithIt) {
  const auto source = MakeSchedstatSource(tree_.roots(), buffer_);
  source->Parse("cpu0 1 2 3 4 5 6 7 8 9\ncpu1 1 2 3 4 5 6 70 80 90\ncpu2 1 2 3 4 5 6 1 1 1\n");
  source->Parse("cpu0 1 2 3 4 5 6 7 8 10\ncpu2 1 2 3 4 5 6 1 1 2\n");
  EXPECT_FALSE(Has(*source, "node_schedstat_timeslices_total{cpu=\"1\"}"));
  EXPECT_EQ(Value(*source, "node_schedstat_timeslices_total{cpu=\"2\"}"), 2);
  source->Parse("cpu0 1 2 3 4 5 6 7 8 11\n");
  EXPECT_EQ(source->series().size(), 3u) << "the last one too";
}

TEST_F(RowsChange, HalfTheProcessorsGiveNoSum) {
  const ProcFs machine(4);
  const auto source = MakeSoftnetSource(tree_.roots(), 2, buffer_);
  const std::string text = machine.Softnet(1, 15);
  source->Parse(text);
  source->Parse(std::string_view(text).substr(0, text.size() / 2 - 3));
  EXPECT_THAT(Value(*source, "node_softnet_processed_total"), IsNan());
  source->Parse(text);
  EXPECT_EQ(Value(*source, "node_softnet_processed_total"), machine.Sum(0, 1));
}

TEST_F(RowsChange, HostileTextGivesMissingValues) {
  const auto softirqs = MakeSoftirqsSource(tree_.roots(), buffer_);
  softirqs->Parse("CPU0 CPUx CPU7\nHI: -1 5\nA\"B: 1 2\n: 3\nTIMER: 9\n");
  EXPECT_THAT(Value(*softirqs, "node_softirqs_core_total{cpu=\"0\",vector=\"hi\"}"), IsNan());
  EXPECT_EQ(Value(*softirqs, "node_softirqs_core_total{cpu=\"0\",vector=\"timer\"}"), 9);
  EXPECT_THAT(Value(*softirqs, "node_softirqs_core_total{cpu=\"7\",vector=\"timer\"}"), IsNan());
  const auto softnet = MakeSoftnetSource(tree_.roots(), 4, buffer_);
  softnet->Parse("zz 1 2\n\n1 2\nfffffffffffffffff 0 0 0 0 0 0 0 0 0 0 0 ffffffff 0 0\n");
  EXPECT_THAT(Value(*softnet, "node_softnet_processed_total"), IsNan());
  const auto buddy = MakeBuddyinfoSource(tree_.roots(), buffer_);
  buddy->Parse("Node x, zone A 1\nNode 0, zone\nNode 0, zone B\nNode 1, zone C 1 x\n");
  EXPECT_EQ(buddy->series().size(), 1u);
}

}  // namespace
}  // namespace sonde::collect::collect_rows_test
