// The roofline model, and what is said without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "insight/hardware/bottleneck.h"
#include "insight/hardware/roofline.h"

namespace sonde::insight {
namespace {

using testing::HasSubstr;

// 64 CPUs with 2 TFLOP/s and 200 GB/s; one thread has 40 GFLOP/s and 20 GB/s.
NodePeaks SomePeaks() {
  NodePeaks peaks;
  peaks.type = {"Some CPU", 64, 2, 3000};
  peaks.allowed = 64;
  peaks.all = {200e9, 2e12, 4e12};
  peaks.one = {20e9, 40e9, 80e9};
  return peaks;
}

TEST(Roofline, TheRoofOfAWholeNodeIsThatOfItsPeaks) {
  const auto roof = RoofOf(SomePeaks(), 64);
  ASSERT_TRUE(roof.ok());
  EXPECT_DOUBLE_EQ(roof->flops, 2e12);
  EXPECT_DOUBLE_EQ(roof->bytes_per_second, 200e9);
  EXPECT_DOUBLE_EQ(roof->Ridge(), 10);
  EXPECT_DOUBLE_EQ(roof->At(1), 200e9);
  EXPECT_DOUBLE_EQ(roof->At(10), 2e12);
  EXPECT_DOUBLE_EQ(roof->At(1000), 2e12);
}

TEST(Roofline, AFewCpusHaveTheirPartOfArithmeticAndWhatTheyCanTakeOfMemory) {
  const auto four = RoofOf(SomePeaks(), 4);
  ASSERT_TRUE(four.ok());
  EXPECT_DOUBLE_EQ(four->flops, 2e12 * 4 / 64);
  EXPECT_DOUBLE_EQ(four->single_flops, 4e12 * 4 / 64);
  EXPECT_DOUBLE_EQ((*four + *four).single_flops, 4e12 * 8 / 64);
  EXPECT_DOUBLE_EQ(four->bytes_per_second, 80e9);
  const auto half = RoofOf(SomePeaks(), 32);
  ASSERT_TRUE(half.ok());
  EXPECT_DOUBLE_EQ(half->flops, 1e12);
  EXPECT_DOUBLE_EQ(half->bytes_per_second, 200e9) << "32 threads saturate the memory";
}

TEST(Roofline, OfMoreCpusThanWereMeasuredNothingIsClaimed) {
  const auto roof = RoofOf(SomePeaks(), 65);
  ASSERT_FALSE(roof.ok());
  EXPECT_EQ(roof.status().code(), Code::kUnsupported);
  EXPECT_FALSE(RoofOf(SomePeaks(), std::nan("")).ok());
  EXPECT_FALSE(RoofOf(SomePeaks(), 0).ok());
}

TEST(Roofline, TheRidgeTellsWhichIsTheBound) {
  const Roof roof{2e12, 200e9};
  const Placed triad = PlaceUnder(10e9, 120e9, roof);
  EXPECT_EQ(triad.bound, RoofBound::kMemory);
  EXPECT_NEAR(triad.intensity, 1.0 / 12, 1e-12);
  EXPECT_NEAR(triad.share, 0.6, 1e-12);
  EXPECT_NEAR(triad.flops / triad.attainable, triad.share, 1e-12);
  const Placed product = PlaceUnder(1e12, 10e9, roof);
  EXPECT_EQ(product.bound, RoofBound::kCompute);
  EXPECT_NEAR(product.share, 0.5, 1e-12);
}

TEST(Roofline, WithoutARoofOnlyTheIntensityIsKnown) {
  const Placed placed = PlaceUnder(8, 2, Roof());
  EXPECT_DOUBLE_EQ(placed.intensity, 4);
  EXPECT_EQ(placed.bound, RoofBound::kUnknown);
  EXPECT_TRUE(std::isnan(placed.share));
  EXPECT_TRUE(std::isnan(PlaceUnder(std::nan(""), 2, {1, 1}).intensity));
  EXPECT_TRUE(std::isnan(PlaceUnder(0, 0, {1, 1}).intensity)) << "nothing was counted";
}

TEST(Roofline, WhatMovesNoBytesIsBoundByArithmeticAndWhatComputesNothingByMemory) {
  const Roof roof{100, 10};
  EXPECT_EQ(PlaceUnder(50, 0, roof).bound, RoofBound::kCompute);
  EXPECT_DOUBLE_EQ(PlaceUnder(50, 0, roof).share, 0.5);
  EXPECT_EQ(PlaceUnder(0, 5, roof).bound, RoofBound::kMemory);
  EXPECT_DOUBLE_EQ(PlaceUnder(0, 5, roof).share, 0.5);
}

struct Judged {
  Evidence evidence;
  std::string_view what;
  std::string why;
};

Evidence Busy(double ipc, double misses, double stalls) {
  Evidence e;
  e.cpus = 4;
  e.busy_cpus = 3.9;
  e.instructions_per_cycle = ipc;
  e.cache_miss_ratio = misses;
  e.memory_stall_ratio = stalls;
  return e;
}
Evidence Idle(double mpi, double pressure, double gpu) {
  Evidence e;
  e.cpus = 4;
  e.busy_cpus = 1;
  e.mpi_cpus = mpi;
  e.io_pressure = pressure;
  e.gpu_utilization = gpu;
  return e;
}

TEST(Bottleneck, IsNamedByWhatWasMeasured) {
  constexpr double kNone = Evidence::kNone;
  Evidence paging = Busy(kNone, kNone, kNone);
  paging.faults = 1000;
  Evidence gpu_and_cpu = Busy(kNone, kNone, 0.4);
  gpu_and_cpu.gpu_utilization = 0.9;
  const Judged all[] = {
      {Busy(kNone, kNone, kNone), "unknown", "cannot be told apart without hardware counters"},
      {Busy(kNone, kNone, 0.4), "memory", "40 % of the cycles"},
      {Busy(kNone, kNone, 0.05), "compute", "only 5 %"},
      {Busy(1.2, 0.1, 0.15), "unknown", "cannot be told apart"},
      {Busy(2.5, kNone, kNone), "compute", "2.5 instructions per cycle"},
      {Busy(2.5, kNone, 0.4), "memory", "40 %"},
      {Busy(0.4, 0.6, kNone), "memory", "60 % of the requests"},
      {Busy(0.4, 0.1, kNone), "unknown", "cannot be told apart"},
      {Idle(2.5, kNone, kNone), "waiting", "in MPI"},
      {Idle(0.1, 0.8, kNone), "waiting", "waited for I/O"},
      {Idle(0.1, 0.1, kNone), "waiting", "does not show"},
      {Idle(0.1, 0.1, 0.9), "gpu", "90 % of the time"},
      {paging, "paging", "1000 page faults"},
      {gpu_and_cpu, "memory", "40 %"},
      {Evidence(), "unknown", "neither"},
  };
  for (const Judged& one : all) {
    const Bottleneck found = BottleneckOf(one.evidence);
    EXPECT_EQ(found.what, one.what) << found.why;
    EXPECT_THAT(found.why, HasSubstr(one.why));
  }
}

}  // namespace
}  // namespace sonde::insight
