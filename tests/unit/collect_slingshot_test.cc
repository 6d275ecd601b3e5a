// Slingshot's adapters: values with their time behind them, sums over traffic classes.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/sampler.h"
#include "tests/unit/collect_tree.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_slingshot_test {
namespace {

using testing::IsNan;

std::string Named(std::string_view metric, std::string_view device = "cxi0") {
  return fmt::format("node_slingshot_{}{{device=\"{}\"}}", metric, device);
}

class Slingshot : public testing::Test {
 protected:
  void Write(std::string_view device, std::string_view counter, std::string_view text) const {
    tree_.Write(fmt::format("sys/class/cxi/{}/device/telemetry/{}", device, counter), text);
  }
  void WriteValue(std::string_view device, std::string_view counter, uint64_t value) const {
    Write(device, counter, fmt::format("{}@1783960164.279418700\n", value));
  }
  void WriteAdapter(std::string_view device, uint64_t octets) const {
    WriteValue(device, "hni_sts_rx_ok_octets", octets);
    WriteValue(device, "hni_sts_tx_ok_octets", 2 * octets);
    for (unsigned i = 0; i < 8; ++i) {
      WriteValue(device, fmt::format("hni_rx_paused_{}", i), 1'000'000'000ull * i);
      WriteValue(device, fmt::format("hni_tx_paused_{}", i), 500'000'000);
      WriteValue(device, fmt::format("hni_pkts_recv_by_tc_{}", i), 10 + i);
    }
    WriteValue(device, "pct_retry_srb_requests", 3);
    WriteValue(device, "pct_spt_timeouts", 4);
    WriteValue(device, "hni_pcs_uncorrected_cw", 5);
    WriteValue(device, "hni_pcs_corrected_cw", 6);
    WriteValue(device, "atu_cache_evictions", 7);
    tree_.Write(fmt::format("sys/class/cxi/{}/device/properties/link", device), "1\n");
  }
  void Make(int level) {
    source_ = MakeSlingshotSource(tree_.roots(), level, buffer_);
    Sample();
  }
  void Sample(Nanos after = kSecond) { source_->Sample(now_ += after); }
  double Get(std::string_view metric) const { return Value(*source_, Named(metric)); }

  Tree tree_;
  ReadBuffer buffer_;
  std::unique_ptr<Source> source_;
  Nanos now_ = 0;
};

TEST_F(Slingshot, LevelTwoHasTrafficCongestionAndErrors) {
  WriteAdapter("cxi0", 123456789012345);
  WriteAdapter("cxi1", 7);
  Make(2);
  EXPECT_EQ(Get("receive_bytes_total"), 123456789012345);
  EXPECT_EQ(Get("transmit_bytes_total"), 246913578024690);
  EXPECT_DOUBLE_EQ(Get("receive_paused_seconds_total"), 28);
  EXPECT_DOUBLE_EQ(Get("transmit_paused_seconds_total"), 4);
  EXPECT_EQ(Get("retries_total"), 3);
  EXPECT_EQ(Get("timeouts_total"), 4);
  EXPECT_EQ(Get("uncorrected_codewords_total"), 5);
  EXPECT_EQ(Get("up"), 1);
  EXPECT_EQ(Value(*source_, Named("receive_bytes_total", "cxi1")), 7);
  EXPECT_EQ(source_->series().size(), 16u);
}

TEST_F(Slingshot, LevelFourHasPacketsAndTheLink) {
  WriteAdapter("cxi0", 1);
  Make(4);
  EXPECT_EQ(Get("receive_packets_total"), 8 * 10 + 28);
  EXPECT_EQ(Get("corrected_codewords_total"), 6);
  EXPECT_EQ(source_->series().size(), 10u) << "an adapter has only some of the files";
}

TEST_F(Slingshot, ASumOfWhichAPartIsMissingIsMissing) {
  WriteAdapter("cxi0", 1);
  Make(2);
  Write("cxi0", "hni_rx_paused_3", "");
  Sample();
  EXPECT_THAT(Get("receive_paused_seconds_total"), IsNan());
  EXPECT_DOUBLE_EQ(Get("transmit_paused_seconds_total"), 4);
  WriteValue("cxi0", "hni_rx_paused_3", 3'000'000'000);
  Sample();
  EXPECT_DOUBLE_EQ(Get("receive_paused_seconds_total"), 28);
}

TEST_F(Slingshot, WhatIsNoValueIsMissing) {
  WriteAdapter("cxi0", 1);
  Make(2);
  for (const char* text : {"", "5", "5@", "5@1.", "5@1.2", "5@x.2\n", "-5@1.2\n", "@1.2\n",
                           "99999999999999999999@1.2\n", "5@1.2 3\n", "5 6\n"}) {
    Write("cxi0", "hni_sts_rx_ok_octets", text);
    Sample();
    EXPECT_THAT(Get("receive_bytes_total"), IsNan()) << text;
    EXPECT_EQ(Get("retries_total"), 3);
  }
  Write("cxi0", "hni_sts_rx_ok_octets", "72057594037927935@1783960164.000000001\n");
  Sample();
  EXPECT_EQ(Get("receive_bytes_total"), 72057594037927935.0);
}

TEST_F(Slingshot, AdaptersComeAndWithoutThemThereIsNothing) {
  Make(2);
  EXPECT_TRUE(source_->series().empty());
  WriteAdapter("cxi0", 9);
  Sample(61 * kSecond);
  EXPECT_EQ(Get("receive_bytes_total"), 9);
  EXPECT_TRUE(source_->TakeNotes().empty());
}

TEST_F(Slingshot, ACounterThatWrapsAroundGivesNoSpike) {
  Sampler sampler({.level = 2, .events = "", .roots = tree_.roots()});
  const auto received = [&](uint64_t octets) {
    WriteAdapter("cxi0", octets);
    sampler.Sample(now_ += kSecond);
    return sampler.row(
        Group::kOs)[Find(sampler.schema(Group::kOs)->series(), Named("receive_bytes_total"))];
  };
  EXPECT_EQ(received((1ull << 56) - 1600), 0);
  EXPECT_EQ(received((1ull << 56) - 800), 800);
  EXPECT_EQ(received(16), 800);
  EXPECT_EQ(received(32), 816);
}

TEST_F(Slingshot, AWarmTickAllocatesNothing) {
  WriteAdapter("cxi0", 1);
  Make(4);
  Sample();
  const size_t before = allocations;
  for (int i = 0; i < 30; ++i) Sample();
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace sonde::collect::collect_slingshot_test
