// The formulas of the event sets that are shipped: evaluated with made-up counts, for each event by
// itself, against what that event is worth.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/collect_event_file.h"

namespace sonde::event_files::collect_event_formulas_test {
namespace {

// What an instruction, or what is counted, stands for.
double Flops(const EventSet& set, const std::string& event) {
  static const std::map<std::string, double> of = {
      {"double_scalar_instructions", 1},
      {"double_128_instructions", 2},
      {"double_256_instructions", 4},
      {"double_512_instructions", 8},
      {"single_scalar_instructions", 1},
      {"single_128_instructions", 4},
      {"single_256_instructions", 8},
      {"single_512_instructions", 16},
      {"fp_scalar_instructions", 1},
      {"fp_4_flop_instructions", 4},
      {"fp_8_flop_instructions", 8},
      {"flops", 1},
      {"fixed_flops", 1},
  };
  if (event == "scalable_flops") return set.file == "neoverse_v1" ? 2 : 1;
  const auto it = of.find(event);
  return it == of.end() ? 0 : it->second;
}
bool Scalar(const std::string& event) { return event.find("_scalar_") != std::string::npos; }

// Every event of the set as 0, the interval as a second of one processor.
Values Zeroes(const EventSet& set) {
  Values values = {{"seconds", 1}, {"task_clock", 1}};
  for (const Event& e : set.events()) values[e.name] = 0;
  return values;
}
std::vector<Formula> FormulasOf(const EventSet& set, const std::string& metric) {
  std::vector<Formula> found;
  std::ranges::copy_if(set.formulas, std::back_inserter(found),
                       [&](const Formula& f) { return f.metric == metric; });
  return found;
}

TEST(EventFormulas, FormulasUseEventsThatStandBeforeThem) {
  for (const EventSet& set : Sets()) {
    for (const Formula& f : set.formulas) {
      Values values = {{"seconds", 1}, {"task_clock", 1}};
      for (const auto& [name, line] : set.line_of) {
        if (line < f.line) values[name] = 1;
      }
      EXPECT_TRUE(Evaluate(f.expression, values)) << set.file << ' ' << f.metric;
    }
  }
}

TEST(EventFormulas, FlopsAreThoseOfEveryInstruction) {
  size_t sets = 0;
  for (const EventSet& set : Sets()) {
    for (const Formula& f : FormulasOf(set, "task_flops_per_second")) {
      ++sets;
      for (const Event& e : set.events()) {
        Values values = Zeroes(set);
        values[e.name] = 6;
        values["seconds"] = 2;
        EXPECT_EQ(Evaluate(f.expression, values), 3 * Flops(set, e.name))
            << set.file << ' ' << e.name;
      }
    }
  }
  EXPECT_EQ(sets, Sets().size() - 3) << "only Haswell, Neoverse N1 and the generic set have none";
}

// Intel's event 0xc7: a bit for each precision and width. Every bit is counted once, and by an
// event whose name says what it is worth.
TEST(EventFormulas, EveryKindOfIntelsInstructionsIsCountedOnce) {
  constexpr double kWorth[] = {1, 1, 2, 4, 4, 8, 8, 16};  // double and single, scalar to 512 bits
  for (const EventSet& set : Sets()) {
    uint64_t seen = 0;
    for (const Event& e : set.events()) {
      const uint64_t raw = Raw(e.specs.back()).value_or(0);
      if (set.processors.empty() || set.processors[0].vendor != "GenuineIntel") continue;
      if ((raw & 0xff) != 0xc7) continue;
      for (size_t bit = 0; bit < 8; ++bit) {
        if ((raw >> 8 & 1U << bit) == 0) continue;
        EXPECT_EQ(seen >> bit & 1, 0u) << set.file << ' ' << e.name;
        EXPECT_EQ(Flops(set, e.name), kWorth[bit]) << set.file << ' ' << e.name;
        EXPECT_FALSE(e.name.starts_with(bit % 2 == 0 ? "single_" : "double_")) << e.name;
        seen |= 1U << bit;
      }
    }
    const bool none = FormulasOf(set, "task_flops_per_second").empty() || seen == 0;
    EXPECT_EQ(seen, none ? 0 : set.file == "broadwell_ep" ? 0x3f : 0xff) << set.file;
  }
}

TEST(EventFormulas, TheVectorShareIsOfWhatIsNotScalar) {
  for (const EventSet& set : Sets()) {
    for (const Formula& f : FormulasOf(set, "task_vector_flops_ratio")) {
      for (const Event& e : set.events()) {
        if (Flops(set, e.name) == 0) continue;
        Values values = Zeroes(set);
        values[e.name] = 5;
        EXPECT_EQ(Evaluate(f.expression, values), Scalar(e.name) ? 0 : 1)
            << set.file << ' ' << e.name;
      }
    }
  }
}

// 64 bytes for all that comes from memory; where that cannot be had, misses of the last cache.
TEST(EventFormulas, BytesAreLinesFromMemory) {
  for (const EventSet& set : Sets()) {
    const std::vector<Formula> bytes = FormulasOf(set, "task_memory_bytes_per_second");
    EXPECT_EQ(bytes.empty(), set.file == "generic") << set.file;
    for (const Formula& f : bytes) {
      const bool misses = f.expression.find("cache_misses") != std::string::npos;
      EXPECT_TRUE(!misses || &f == &bytes.back()) << set.file << ": the better one comes first";
      for (const Event& e : set.events()) {
        const bool from_memory = e.name == "memory_reads" || e.name.ends_with("_prefetches");
        Values values = Zeroes(set);
        values[e.name] = 4;
        values["seconds"] = 2;
        const bool counts = misses ? e.name == "cache_misses" : from_memory;
        EXPECT_EQ(Evaluate(f.expression, values), counts ? 128 : 0) << set.file << ' ' << e.name;
      }
    }
  }
}

TEST(EventFormulas, IntensityIsFlopsByBytes) {
  for (const EventSet& set : Sets()) {
    const std::vector<Formula> flops = FormulasOf(set, "task_flops_per_second");
    const std::vector<Formula> bytes = FormulasOf(set, "task_memory_bytes_per_second");
    const std::vector<Formula> intensity = FormulasOf(set, "task_arithmetic_intensity");
    ASSERT_EQ(intensity.size(), flops.empty() ? 0 : bytes.size()) << set.file;
    Values values = Zeroes(set);
    for (const Event& e : set.events())
      values[e.name] = static_cast<double>(values.size() + e.name.size() * e.name[0]);
    for (size_t i = 0; i < intensity.size(); ++i) {
      const auto rate = Evaluate(flops[0].expression, values);
      const auto traffic = Evaluate(bytes[i].expression, values);
      const auto ratio = Evaluate(intensity[i].expression, values);
      ASSERT_TRUE(rate && traffic && ratio) << set.file;
      EXPECT_DOUBLE_EQ(*ratio, *rate / *traffic) << set.file;
    }
  }
}

TEST(EventFormulas, RatiosAreOfWhatTheyAreNamedAfter) {
  const std::map<std::string, std::pair<std::string, std::string>> of = {
      {"task_instructions_per_cycle", {"instructions", "cycles"}},
      {"task_frequency_hertz", {"cycles", "task_clock"}},
      {"task_branch_miss_ratio", {"branch_misses", "branches"}},
      {"task_cache_miss_ratio", {"cache_misses", "cache_references"}},
      {"task_frontend_stall_ratio", {"stalled_cycles_frontend", "cycles"}},
      {"task_backend_stall_ratio", {"stalled_cycles_backend", "cycles"}},
      {"task_memory_stall_ratio", {"memory_stall_cycles", "cycles"}},
  };
  for (const EventSet& set : Sets()) {
    for (const auto& [metric, parts] : of) {
      const bool has = parts.second == "task_clock" || set.line_of.contains(parts.second);
      const bool can = has && set.line_of.contains(parts.first);
      const std::vector<Formula> found = FormulasOf(set, metric);
      ASSERT_EQ(found.size(), can ? 1u : 0u) << set.file << ' ' << metric;
      if (!can) continue;
      Values values = Zeroes(set);
      values[parts.first] = 3;
      values[parts.second] = 4;
      EXPECT_EQ(Evaluate(found[0].expression, values), 0.75) << set.file << ' ' << metric;
    }
  }
}

}  // namespace
}  // namespace sonde::event_files::collect_event_formulas_test
