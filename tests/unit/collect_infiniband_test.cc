// Ports of InfiniBand and the like: drivers with all counters, few or none; devices that come, go
// and are reset.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <utility>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/sampler.h"
#include "tests/unit/collect_tree.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_infiniband_test {
namespace {

using testing::IsNan;

std::string Named(std::string_view metric, std::string_view device = "mlx5_0") {
  return fmt::format("node_infiniband_{}{{device=\"{}\",port=\"1\"}}", metric, device);
}
const std::string kReceived = Named("port_data_received_bytes_total");

class Infiniband : public testing::Test {
 protected:
  void Write(std::string_view device, std::string_view file, std::string_view text) const {
    tree_.Write(fmt::format("sys/class/infiniband/{}/ports/1/{}", device, file), text);
  }
  void WritePort(std::string_view device, uint64_t words) const {
    Write(device, "state", "4: ACTIVE\n");
    Write(device, "counters/port_rcv_data", fmt::format("{}\n", words));
    Write(device, "counters/port_xmit_data", "3733440\n");
    Write(device, "counters/port_rcv_errors", "3\n");
    Write(device, "counters/port_xmit_discards", "5\n");
    Write(device, "counters/link_downed", "1\n");
    Write(device, "counters/port_rcv_packets", "6825908347\n");
    Write(device, "counters/port_xmit_wait", "4294967295\n");
    Write(device, "hw_counters/out_of_buffer", "7\n");
    Write(device, "hw_counters/lifespan", "10\n");
  }
  std::unique_ptr<Source> Make(int level) const {
    return MakeInfinibandSource(tree_.roots(), level, buffer_);
  }
  void Sample(Source& source, Nanos after = kSecond) { source.Sample(now_ += after); }

  Tree tree_;
  mutable ReadBuffer buffer_;
  Nanos now_ = kSecond;
};

TEST_F(Infiniband, DataIsCountedInWordsOfFourBytes) {
  WritePort("mlx5_0", 4631917);
  const auto two = Make(2);
  Sample(*two);
  EXPECT_EQ(Value(*two, kReceived), 4631917.0 * 4);
  EXPECT_EQ(Value(*two, Named("port_data_transmitted_bytes_total")), 3733440.0 * 4);
  EXPECT_EQ(Value(*two, Named("port_errors_received_total")), 3);
  EXPECT_EQ(Value(*two, Named("port_discards_transmitted_total")), 5);
  EXPECT_EQ(Value(*two, Named("link_downed_total")), 1);
  EXPECT_EQ(two->series().size(), 5u);
}

TEST_F(Infiniband, OmniPathCountsFlitsOfEightBytes) {
  WritePort("hfi1_0", 1000);
  WritePort("renamed", 1000);
  WritePort("hfi1_like", 1000);
  const std::filesystem::path devices = tree_.path() + "/sys/class/infiniband";
  for (const auto& [device, driver] : {std::pair("renamed", "hfi1"), {"hfi1_like", "mlx5_core"}}) {
    std::filesystem::create_directories(devices / device / "device");
    std::filesystem::create_symlink(std::string("../../../bus/pci/drivers/") + driver,
                                    devices / device / "device" / "driver");
  }
  const auto source = Make(2);
  Sample(*source);
  const auto received = [&](std::string_view device) {
    return Value(*source, Named("port_data_received_bytes_total", device));
  };
  EXPECT_EQ(received("hfi1_0"), 8000);
  EXPECT_EQ(received("renamed"), 8000);
  EXPECT_EQ(received("hfi1_like"), 4000);
  EXPECT_EQ(Value(*source, Named("port_errors_received_total", "renamed")), 3);
}

TEST_F(Infiniband, LevelFourHasPacketsWaitsAndTheDriversOwn) {
  WritePort("mlx5_0", 1);
  const auto four = Make(4);
  Sample(*four);
  EXPECT_EQ(Value(*four, Named("port_packets_received_total")), 6825908347);
  EXPECT_EQ(Value(*four, Named("port_transmit_wait_total")), 4294967295);
  EXPECT_EQ(Value(*four, Named("hw_out_of_buffer_total")), 7);
  EXPECT_EQ(four->series().size(), 8u);
}

TEST_F(Infiniband, ADriverMayCountBytesItself) {
  Write("efa_0", "hw_counters/rx_bytes", "1000\n");
  Write("efa_0", "hw_counters/tx_bytes", "2000\n");
  const auto source = Make(2);
  Sample(*source);
  EXPECT_EQ(Value(*source, Named("hw_rx_bytes_total", "efa_0")), 1000);
  EXPECT_EQ(source->series().size(), 2u);
}

TEST_F(Infiniband, WithoutDevicesThereIsNothingToSay) {
  const auto source = Make(2);
  Sample(*source);
  EXPECT_TRUE(source->series().empty());
  EXPECT_TRUE(source->TakeNotes().empty());
  EXPECT_EQ(source->generation(), 0u);
}

TEST_F(Infiniband, ADriverWithoutCountersHasNoSeries) {
  Write("i40iw0", "counters/port_rcv_data", "N/A (no PMA)\n");
  Write("i40iw0", "counters/link_downed", "N/A (no PMA)\n");
  WritePort("mlx5_0", 1);
  const auto source = Make(2);
  Sample(*source);
  EXPECT_EQ(source->series().size(), 5u);
  EXPECT_EQ(Value(*source, kReceived), 4);
}

TEST_F(Infiniband, DevicesComeAndGo) {
  WritePort("mlx5_0", 1);
  const auto source = Make(2);
  Sample(*source);
  WritePort("mlx5_1", 2);
  Sample(*source, 61 * kSecond);
  EXPECT_EQ(Value(*source, Named("port_data_received_bytes_total", "mlx5_1")), 8);
  EXPECT_EQ(source->series().size(), 10u);
  const uint32_t generation = source->generation();
  Sample(*source, 61 * kSecond);
  EXPECT_EQ(source->generation(), generation);
  // The descriptors of a device that is gone give nothing; so do, in place of that, empty files.
  for (const char* file : {"port_rcv_data", "port_xmit_data", "port_rcv_errors",
                           "port_xmit_discards", "link_downed"}) {
    Write("mlx5_0", std::string("counters/") + file, "");
  }
  tree_.Remove("sys/class/infiniband/mlx5_0");
  Sample(*source);
  EXPECT_THAT(Value(*source, kReceived), IsNan());
  EXPECT_EQ(Value(*source, Named("port_data_received_bytes_total", "mlx5_1")), 8);
  Sample(*source);
  EXPECT_FALSE(Has(*source, kReceived));
  EXPECT_EQ(source->series().size(), 5u);
}

TEST_F(Infiniband, CountersThatAppearLateAreFound) {
  Write("mlx5_0", "state", "1: DOWN\n");
  const auto source = Make(2);
  Sample(*source);
  EXPECT_TRUE(source->series().empty());
  WritePort("mlx5_0", 9);
  Sample(*source, 61 * kSecond);
  EXPECT_EQ(Value(*source, kReceived), 36);
}

TEST_F(Infiniband, AReadThatFailsIsMissingUntilOneSucceeds) {
  WritePort("mlx5_0", 1);
  Write("mlx5_0", "counters/port_rcv_data", "");
  const auto source = Make(2);
  Sample(*source);
  EXPECT_THAT(Value(*source, kReceived), IsNan());
  Write("mlx5_0", "counters/port_rcv_data", "5\n");
  Sample(*source);
  EXPECT_EQ(Value(*source, kReceived), 20);
  for (const char* text : {"", "5", "-5\n", "99999999999999999999\n", "5x\n", "N/A (no PMA)\n"}) {
    Write("mlx5_0", "counters/port_rcv_data", text);
    Sample(*source);
    EXPECT_THAT(Value(*source, kReceived), IsNan()) << text;
    EXPECT_EQ(Value(*source, Named("port_errors_received_total")), 3);
  }
  Write("mlx5_0", "counters/port_rcv_data", "18446744073709551615\n");
  Sample(*source);
  EXPECT_EQ(Value(*source, kReceived), 18446744073709551615.0 * 4);
}

TEST_F(Infiniband, ImpossibleNamesArePassedOver) {
  WritePort("mlx\x01", 1);
  WritePort("mlx5_0", 1);
  tree_.Write("sys/class/infiniband/file", "not a directory\n");
  const auto source = Make(2);
  Sample(*source);
  EXPECT_EQ(source->series().size(), 5u);
}

TEST_F(Infiniband, TooManyPortsAreLeftOutWithOneNote) {
  for (int i = 0; i < 120; ++i) WritePort(fmt::format("mlx5_{}", i), 1);
  const auto source = Make(2);
  Sample(*source);
  EXPECT_EQ(source->series().size(), 510u);
  EXPECT_EQ(source->TakeNotes().size(), 1u);
  WritePort("mlx5_x", 1);
  Sample(*source, 61 * kSecond);
  EXPECT_TRUE(source->TakeNotes().empty());
}

TEST_F(Infiniband, AWarmTickAllocatesNothing) {
  WritePort("mlx5_0", 1);
  const auto source = Make(4);
  Sample(*source);
  const size_t before = allocations;
  for (int i = 0; i < 30; ++i) Sample(*source);
  EXPECT_EQ(allocations, before);
}

TEST_F(Infiniband, ACounterThatIsResetGivesNoSpike) {
  Sampler sampler({.level = 2, .events = "", .roots = tree_.roots()});
  const auto received = [&](uint64_t words) {
    WritePort("mlx5_0", words);
    sampler.Sample(now_ += kSecond);
    return sampler.row(Group::kOs)[Find(sampler.schema(Group::kOs)->series(), kReceived)];
  };
  EXPECT_EQ(received(1'000'000'000'000), 0);
  EXPECT_EQ(received(1'000'000'000'100), 400);
  EXPECT_EQ(received(0), 400);
  EXPECT_EQ(received(25), 500);
}

}  // namespace
}  // namespace sonde::collect::collect_infiniband_test
