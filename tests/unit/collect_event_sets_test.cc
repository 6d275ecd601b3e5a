// The sets of hardware counter events that are shipped: format, names, groups, formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "daemon/collect/counters/vocabulary.h"
#include "tests/unit/collect_event_file.h"

namespace sonde::event_files::collect_event_sets_test {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Ge;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using testing::SizeIs;

constexpr size_t kMaxGroups = 4;
constexpr size_t kMaxHardwareEvents = 20;

const std::set<std::string> kEventNames = [] {
  std::set<std::string> names;
  for (const collect::EventWord& word : collect::EventWords()) names.emplace(word.name);
  return names;
}();
const std::set<std::string> kMetricNames = [] {
  std::set<std::string> names;
  for (const MetricDecl& decl : collect::DerivedMetrics()) names.emplace(decl.name);
  return names;
}();

std::string VendorOf(const EventSet& set) {
  return set.processors.empty() ? "" : set.processors[0].vendor;
}
uint64_t CodeOf(const Event& event) { return Raw(event.specs.back()).value_or(0) & 0xf000000ff; }

// Counters that an event takes beside those that the processor has for it alone.
size_t CountersOf(const EventSet& set, const Event& event) {
  const std::string& spec = event.specs[0];
  const bool fixed = (VendorOf(set) == "GenuineIntel" &&
                      (spec == "cycles" || spec == "instructions" || spec == "ref-cycles")) ||
                     (VendorOf(set) == "arm" && spec == "cycles");
  if (fixed) return 0;
  // A large increment: AMD's kernel driver merges two counters for event 0x003.
  return VendorOf(set) == "AuthenticAMD" && event.name == "flops" ? 2 : 1;
}
// On Intel processors with 8 counters these are counted by the first four alone.
bool OnFirstFour(const Event& event) {
  static const std::set<uint64_t> codes = {0x08, 0x12, 0x24, 0x25, 0x51, 0xf1};
  return Offcore(event.specs[0]) || codes.contains(CodeOf(event));
}

TEST(EventSets, EveryLineIsUnderstood) {
  EXPECT_THAT(Sets(), SizeIs(Ge(15u)));
  for (const EventSet& set : Sets()) EXPECT_THAT(set.errors, IsEmpty()) << set.file;
}

TEST(EventSets, EachSaysWhatItIsForAndWhereItIsFrom) {
  for (const EventSet& set : Sets()) {
    EXPECT_NE(set.name, "") << set.file;
    EXPECT_THAT(set.sources, Not(IsEmpty())) << set.file;
    EXPECT_EQ(set.processors.empty(), set.file == "generic") << set.file;
    EXPECT_GT(set.counters, 0u) << set.file;
  }
}

TEST(EventSets, NoProcessorIsClaimedTwice) {
  std::map<std::string, std::string> claimed;
  for (const EventSet& set : Sets()) {
    for (const Processor& p : set.processors) {
      EXPECT_THAT(p.vendor, AnyOf("GenuineIntel", "AuthenticAMD", "arm")) << set.file;
      for (const auto& [from, to] : p.models) {
        for (int model = from; model <= to; ++model) {
          const std::string key = p.vendor + " " + p.family + " " + std::to_string(model);
          const auto [it, first] = claimed.emplace(key, set.file);
          EXPECT_TRUE(first) << key << ": " << it->second << " and " << set.file;
        }
      }
    }
  }
  EXPECT_EQ(claimed["GenuineIntel 6 207"], "sapphire_rapids");
  EXPECT_EQ(claimed["AuthenticAMD 25 97"], "zen4");
  EXPECT_EQ(claimed["AuthenticAMD 26 2"], "zen5");
  EXPECT_EQ(claimed["arm 0x41 3407"], "neoverse_v2");
}

TEST(EventSets, NamesAreOfTheVocabulary) {
  for (const EventSet& set : Sets()) {
    for (const Event& e : set.events()) EXPECT_THAT(kEventNames, Contains(e.name)) << set.file;
    for (const Formula& f : set.formulas) {
      EXPECT_THAT(kMetricNames, Contains(f.metric)) << set.file;
    }
  }
}

TEST(EventSets, TheFirstGroupHasCyclesAndInstructions) {
  for (const EventSet& set : Sets()) {
    ASSERT_THAT(set.groups, Not(IsEmpty())) << set.file;
    ASSERT_THAT(set.groups[0].second, SizeIs(Ge(2u))) << set.file;
    EXPECT_EQ(set.groups[0].second[0].name, "cycles") << set.file;
    EXPECT_EQ(set.groups[0].second[1].name, "instructions") << set.file;
  }
}

// One counter is left free: the kernel's watchdog may hold it.
TEST(EventSets, GroupsFitOnTheCounters) {
  for (const EventSet& set : Sets()) {
    EXPECT_THAT(set.groups, SizeIs(Le(kMaxGroups))) << set.file;
    EXPECT_THAT(set.events(), SizeIs(Le(kMaxHardwareEvents))) << set.file;
    for (const auto& [name, events] : set.groups) {
      size_t counters = 0;
      size_t first_four = 0;
      size_t offcore = 0;
      for (const Event& e : events) {
        counters += CountersOf(set, e);
        first_four += OnFirstFour(e) ? 1 : 0;
        offcore += Offcore(e.specs[0]) ? 1 : 0;
      }
      const size_t spare = set.file == "generic" ? 0 : 1;  // which may have counters of its own
      EXPECT_THAT(events, Not(IsEmpty())) << set.file << ' ' << name;
      EXPECT_LE(counters + spare, set.counters) << set.file << ' ' << name;
      EXPECT_LE(offcore, 2u) << set.file << ' ' << name << ": a core has two such registers";
      if (VendorOf(set) == "GenuineIntel") {
        EXPECT_LE(first_four, 3u) << set.file << ' ' << name;
      }
    }
  }
}

TEST(EventSets, EveryEventCanBeHadWithoutLibpfmsTableOfTheProcessor) {
  for (const EventSet& set : Sets()) {
    for (const Event& e : set.events()) {
      const bool generic = Generic(e.specs[0]);
      if (generic || Offcore(e.specs[0])) {
        EXPECT_THAT(e.specs, SizeIs(1)) << set.file << ' ' << e.name;
      } else {
        EXPECT_TRUE(Raw(e.specs.back())) << set.file << ' ' << e.name;
      }
      EXPECT_TRUE(generic || set.file != "generic") << e.name;
      for (size_t i = 0; i + 1 < e.specs.size(); ++i) {
        EXPECT_FALSE(Raw(e.specs[i])) << set.file << ' ' << e.name;
      }
    }
  }
}

}  // namespace
}  // namespace sonde::event_files::collect_event_sets_test
