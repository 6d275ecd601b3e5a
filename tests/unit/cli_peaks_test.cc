// sonde peaks: the loops that measure, what they count, and the file of what was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "cli/peaks/fma_loop.h"
#include "cli/peaks/kernels.h"
#include "cli/peaks/measure.h"
#include "core/machine/processor_type.h"
#include "insight/steps/peaks_file.h"
#include "tests/unit/collect_tree.h"
#include "tests/unit/sonde_command.h"
#include "tests/unit/temp_dir.h"

namespace sonde::cli::peaks::cli_peaks_test {
namespace {

using insight::FindPeaks;
using insight::KeepPeaks;
using insight::NodePeaks;
using insight::PeaksToJson;
using insight::ReadPeaks;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

NodePeaks Measured(const std::string& model, uint32_t allowed) {
  NodePeaks one;
  one.type = {model, 64, 2, 3000};
  one.allowed = allowed;
  one.all = {200e9, 2e12, 4e12};
  one.one = {20e9, 40e9, 80e9};
  one.vectors = "AVX2";
  one.array_bytes = 1e9;
  one.last_cache_bytes = 2.5e8;
  one.host = "n1";
  one.time = 1'790'000'000 * kSecond;
  return one;
}

// The same arithmetic, an element at a time.
template <typename Scalar>
double SumOf(size_t accumulators, size_t lanes, int rounds, bool fused) {
  const auto x = static_cast<Scalar>(kFmaFactor);
  const auto y = static_cast<Scalar>(kFmaAddend);
  double sum = 0;
  for (size_t i = 0; i < accumulators; ++i) {
    for (size_t e = 0; e < lanes; ++e) {
      Scalar a = static_cast<Scalar>(i) + static_cast<Scalar>(e) / static_cast<Scalar>(lanes);
      for (int round = 0; round < rounds; ++round) {
        volatile Scalar product = a * x;  // rounded
        a = fused ? std::fma(a, x, y) : product + y;
      }
      sum += static_cast<double>(a);
    }
  }
  return sum;
}

// So that a rate is of operations that were done, the loops' results must be those of all of them.
TEST(PeaksKernels, EveryWidthDoesAllTheArithmeticThatItCounts) {
  const std::vector<FmaKernel> kernels = FmaKernels();
  ASSERT_FALSE(kernels.empty());
  for (const FmaKernel& kernel : kernels) {
    const bool fused = kernel.name != "SSE2";
    const size_t accumulators = kernel.name == "AVX-512" || kernel.name == "Neon" ? 24 : 12;
    const auto lanes =
        static_cast<size_t>(kernel.flops_of_double_round / 2 / static_cast<double>(accumulators));
    EXPECT_EQ(lanes * 8, kernel.name == "AVX-512" ? 64u : kernel.name == "AVX2" ? 32u : 16u);
    EXPECT_EQ(kernel.flops_of_single_round, 2 * kernel.flops_of_double_round);
    for (const int rounds : {0, 1, 2, 1000}) {
      EXPECT_NEAR(kernel.in_double(static_cast<uint64_t>(rounds)),
                  SumOf<double>(accumulators, lanes, rounds, fused), 1e-9)
          << kernel.name << " " << rounds;
      EXPECT_NEAR(kernel.in_single(static_cast<uint64_t>(rounds)),
                  SumOf<float>(accumulators, 2 * lanes, rounds, fused), 1e-2)
          << kernel.name << " " << rounds;
    }
    // Twice the rounds take twice the time, within what others on the machine make of it.
    EXPECT_GT(kernel.in_double(1 << 20), 0);
  }
}

TEST(PeaksKernels, TriadsWriteEveryElementAndNothingElse) {
  for (const auto triad : {Triad, TriadPastCaches}) {
    for (const size_t n : {0u, 1u, 2u, 7u, 1000u}) {
      alignas(64) double a[1008];
      std::vector<double> b;
      std::vector<double> c;
      std::fill(std::begin(a), std::end(a), -1.0);
      for (size_t i = 0; i < n; ++i) {
        b.push_back(static_cast<double>(i));
        c.push_back(0.25 * static_cast<double>(i * i));
      }
      triad({a, n}, b, c);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], b[i] + 3 * c[i]) << i << " of " << n;
      for (size_t i = n; i < std::size(a); ++i) ASSERT_EQ(a[i], -1) << i << " of " << n;
    }
  }
}

MeasureOptions Short(size_t array_bytes) {
  MeasureOptions options;
  options.repetitions = 2;
  options.most_seconds = 0.1;
  options.seconds = 0.002;
  options.array_bytes = array_bytes;
  return options;
}

TEST(PeaksMeasure, AShortMeasurementHasRatesThatAProcessorMayHave) {
  MeasureOptions options = Short(16 << 20);
  std::vector<std::string> told;
  options.on_progress = [&](std::string_view what) { told.emplace_back(what); };
  const auto measured = Measure(options);
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  EXPECT_EQ(measured->type, ReadProcessorType());
  EXPECT_EQ(measured->allowed, AllowedCpus().size());
  EXPECT_FALSE(told.empty());
  for (const auto rate : {&insight::Peaks::bytes_per_second, &insight::Peaks::double_flops,
                          &insight::Peaks::single_flops}) {
    EXPECT_GT(measured->one.*rate, 1e7);
    EXPECT_LT(measured->one.*rate, 1e13);
    EXPECT_GE(measured->all.*rate, measured->one.*rate) << "one can, so all can";
  }
}

// Twice as many fit into a register. One measurement may have had to wait for the processor: of
// some the best are compared.
TEST(PeaksMeasure, AProcessorDoesMoreInSinglePrecision) {
  double in_single = 0;
  double in_double = 0;
  for (int i = 0; i < 20 && in_single <= 1.5 * in_double; ++i) {
    const auto measured = Measure(Short(1 << 20));
    ASSERT_TRUE(measured.ok()) << measured.status().message();
    in_single = std::max(in_single, measured->one.single_flops);
    in_double = std::max(in_double, measured->one.double_flops);
  }
  EXPECT_GT(in_single, 1.5 * in_double);
}

TEST(PeaksMeasure, ArraysAreAgainstTheCachesOfTheCpusThatAreUsed) {
  const collect::Tree tree;
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string dir = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
    const char* const socket = cpu < 2 ? "0-1\n" : "2-3\n";
    const char* const own[] = {"0\n", "1\n", "2\n", "3\n"};
    tree.Write(dir + "0/level", "1\n");
    tree.Write(dir + "0/size", "32K\n");
    tree.Write(dir + "0/shared_cpu_list", own[cpu]);
    tree.Write(dir + "1/level", "3\n");
    tree.Write(dir + "1/size", "32M\n");
    tree.Write(dir + "1/shared_cpu_list", socket);
  }
  EXPECT_EQ(LastCacheBytes(tree.roots().sys, {0, 1, 2, 3}), 64u << 20);
  EXPECT_EQ(LastCacheBytes(tree.roots().sys, {0, 1}), 32u << 20);
  EXPECT_EQ(LastCacheBytes(tree.roots().sys, {9}), 0u);
}

TEST(PeaksType, IsReadOfEveryArchitecturesText) {
  const ProcessorType intel = ParseProcessorType(
      "processor\t: 0\nmodel name\t: Intel(R)  Xeon(R) \"Gold\" @ 2.10GHz\nphysical id\t: 0\n\n"
      "processor\t: 1\nmodel name\t: Intel(R)  Xeon(R) \"Gold\" @ 2.10GHz\nphysical id\t: 1\n");
  EXPECT_EQ(intel, (ProcessorType{"Intel(R) Xeon(R) Gold @ 2.10GHz", 2, 2, 0}));
  const ProcessorType arm = ParseProcessorType(
      "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd4f\n");
  EXPECT_EQ(arm, (ProcessorType{"arm 0x41 0xd4f", 1, 0, 0}));
  EXPECT_EQ(ParseProcessorType("processor : 0\ncpu\t\t: POWER9, altivec\n").model,
            "POWER9, altivec");
  EXPECT_FALSE(ParseProcessorType("").known());
  EXPECT_LE(ParseProcessorType("model name : " + std::string(500, 'x')).model.size(),
            kMaxProcessorModel);
  const collect::Tree tree;
  tree.Write("proc/cpuinfo",
             "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd40\n"
             "processor : 1\nCPU implementer : 0x41\nCPU part : 0xd40\n");
  tree.Write("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n");
  tree.Write("sys/devices/system/cpu/cpu1/topology/physical_package_id", "36\n");
  tree.Write("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "2600000\n");
  EXPECT_EQ(ReadProcessorType(tree.roots().proc, tree.roots().sys),
            (ProcessorType{"arm 0x41 0xd40", 2, 2, 2600}));
}

class PeaksCache : public testing::Test {
 protected:
  std::string file() const { return dir_.path() + "/peaks.json"; }
  void Put(const std::string& text) const { std::ofstream(file()) << text; }
  TempDir dir_{TempDir::Memory()};
};

TEST_F(PeaksCache, KeepsWhatWasMeasuredByTypeAndCpus) {
  EXPECT_TRUE(ReadPeaks(file())->empty()) << "there is no file yet";
  ASSERT_TRUE(KeepPeaks(file(), Measured("A", 64), false).ok());
  ASSERT_TRUE(KeepPeaks(file(), Measured("B", 64), false).ok());
  ASSERT_TRUE(KeepPeaks(file(), Measured("A", 8), false).ok());
  NodePeaks again = Measured("A", 64);
  again.all.bytes_per_second = 300e9;
  ASSERT_TRUE(KeepPeaks(file(), again, false).ok());
  const auto all = ReadPeaks(file());
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 3u) << "the newer one took the place of the older one";
  const NodePeaks* const found = FindPeaks(*all, Measured("A", 64).type);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, again) << "the one with the most CPUs, to the last bit";
  EXPECT_EQ(FindPeaks(*all, Measured("C", 64).type), nullptr);
  EXPECT_EQ(FindPeaks(*all, Measured("A", 64).type, 65), nullptr);
}

TEST_F(PeaksCache, TheSitesFileIsForAllAndAUsersIsNot) {
  struct stat info;
  ASSERT_TRUE(KeepPeaks(file(), Measured("A", 64), false).ok());
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_TRUE(KeepPeaks(file(), Measured("A", 64), true).ok());
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
}

TEST_F(PeaksCache, AWrongFileIsNamedAndNotOverwritten) {
  const std::string good = PeaksToJson({Measured("A", 64)});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string wrong[] = {
      "",
      "[]",
      "{}",
      "{\"version\": 1}",
      with("\"version\":1", "\"version\":0"),
      with("\"A\"", "\"\""),
      with("\"A\"", "\"\\u001b[2J\""),
      with("\"cpus\":64", "\"cpus\":0"),
      with("\"cpus\":64", "\"cpus\":\"64\""),
      with("\"allowed\":64", "\"allowed\":65"),
      with("2e+12", "-2e12"),
      with("2e+12", "null"),
      with("2e+12", "1e300"),
      with("\"all\":{", "\"other\":{"),
      with("\"time\":", "\"time\":-"),
      good.substr(0, good.size() / 2),
      good + good,
  };
  for (const std::string& text : wrong) {
    Put(text);
    const auto read = ReadPeaks(file());
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(std::string(read.status().message()),
                AllOf(HasSubstr(file()), HasSubstr("delete")));
    EXPECT_FALSE(KeepPeaks(file(), Measured("B", 64), false).ok());
    std::ostringstream kept;
    kept << std::ifstream(file()).rdbuf();
    EXPECT_EQ(kept.str(), text);
  }
  Put(with("\"version\":1", "\"version\":2"));
  EXPECT_THAT(std::string(ReadPeaks(file()).status().message()), HasSubstr("a later version"));
}

TEST_F(PeaksCache, TheCommandMeasuresEachTypeOnce) {
  NodePeaks here = Measured("A", 1);
  here.type = ReadProcessorType();
  here.allowed = static_cast<uint32_t>(AllowedCpus().size());
  ASSERT_TRUE(KeepPeaks(file(), here, false).ok());
  const Outcome text = RunSonde(dir_.path(), "peaks --file " + file());
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.err, AllOf(HasSubstr("--again"), Not(HasSubstr("measuring"))));
  EXPECT_THAT(text.out, AllOf(HasSubstr(here.type.model), HasSubstr("2 TFLOP/s"),
                              HasSubstr("ridge of all: 10 FLOP per byte"), HasSubstr("on n1")));
  const auto json =
      boost::json::parse(RunSonde(dir_.path(), "peaks --json --quiet --file " + file()).out);
  EXPECT_EQ(json.at("peaks").as_array().size(), 1u);
  EXPECT_EQ(json.at("peaks").at(0).at("all").at("double_flops").to_number<double>(), 2e12);
  Put("{");
  const Outcome wrong = RunSonde(dir_.path(), "peaks --file " + file());
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr(file()));
  EXPECT_EQ(RunSonde(dir_.path(), "peaks --site", "SONDE_PEAKS=").code, 1);
}

TEST_F(PeaksCache, TheSitesPeaksCountBeforeTheUsers) {
  ASSERT_TRUE(KeepPeaks(file(), Measured("site's", 64), true).ok());
  ::mkdir((dir_.path() + "/archive").c_str(), 0700);
  ASSERT_TRUE(KeepPeaks(dir_.path() + "/archive/peaks.json", Measured("user's", 64), false).ok());
  const Outcome all = RunSonde(dir_.path(), "peaks --list", "SONDE_PEAKS=" + file());
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_LT(all.out.find("user's"), all.out.find("site's")) << "of a type the last one counts";
}

}  // namespace
}  // namespace sonde::cli::peaks::cli_peaks_test
