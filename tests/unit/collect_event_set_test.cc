// Event sets and their formulas: what may stand in the files, and which is the machine's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "daemon/collect/counters/event_set.h"
#include "daemon/collect/counters/vocabulary.h"
#include "tests/unit/collect_tree.h"

namespace sonde::collect::collect_event_set_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

double Evaluate(std::string_view text, std::vector<double> values = {}) {
  const Result<Formula> formula = Formula::Parse(text);
  EXPECT_TRUE(formula.ok()) << formula.status().message();
  return formula.ok() ? formula->Evaluate(values) : std::nan("");
}
std::string Complaint(std::string_view text) {
  const Result<Formula> formula = Formula::Parse(text);
  return formula.ok() ? "" : std::string(formula.status().message());
}

TEST(Formula, FollowsTheRulesOfArithmetic) {
  EXPECT_EQ(Evaluate("1 + 2 * 3 - 4 / 2"), 5);
  EXPECT_EQ(Evaluate("(1 + 2) * 3"), 9);
  EXPECT_EQ(Evaluate("10 - 4 - 3"), 3);
  EXPECT_EQ(Evaluate("16 / 4 / 2"), 2);
  EXPECT_EQ(Evaluate("-2 * -(3 - 5)"), -4);
  EXPECT_EQ(Evaluate("64*reads/seconds", {100, 2}), 3200);
  EXPECT_EQ(Evaluate("a_1 + b2 + a_1", {1, 10}), 12);
  EXPECT_DOUBLE_EQ(Evaluate("1.5e3"), 1500);
}

TEST(Formula, NamesAreListedOnceInTheirOrder) {
  EXPECT_THAT(Formula::Parse("b / a + b")->names(), ElementsAre("b", "a"));
}

TEST(Formula, WhatIsNotFiniteIsMissing) {
  EXPECT_THAT(Evaluate("a / b", {1, 0}), IsNan());
  EXPECT_THAT(Evaluate("a / b", {0, 0}), IsNan());
  EXPECT_THAT(Evaluate("a + 1", {std::nan("")}), IsNan());
  EXPECT_THAT(Evaluate("a + b", {1}), IsNan());
}

TEST(Formula, SaysWhatWasExpectedAndWhere) {
  EXPECT_THAT(Complaint("1 +"), HasSubstr("expected a number, a name or '(' at column 4"));
  EXPECT_THAT(Complaint("(1 + 2"), HasSubstr("expected ')' at column 7"));
  EXPECT_THAT(Complaint("a b"), HasSubstr("expected an operator or the end at column 3"));
  EXPECT_THAT(Complaint(""), HasSubstr("column 1"));
  EXPECT_THAT(Complaint("inf"), IsEmpty());  // a name like any other
  EXPECT_THAT(Complaint("1e999"), HasSubstr("a number that can be represented"));
  EXPECT_THAT(Complaint(std::string(100, '(')), HasSubstr("fewer parentheses"));
  std::string sum = "a";
  for (int i = 0; i < 100; ++i) sum += "+a";
  EXPECT_THAT(Complaint(sum), HasSubstr("too long"));
}

constexpr char kGood[] = R"(# two processors
name Some and another   # for people
processor GenuineIntel 6 0x55 0x6a-0x6c
processor arm 0x41 0xd0c
counters 4
source a manual
group core
event cycles = CYCLES | r3c
event instructions = r00c0
formula task_instructions_per_cycle = instructions / cycles
)";

TEST(EventSet, IsReadAsItIsWritten) {
  const Result<EventSet> set = ParseEventSet(kGood, "good");
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ(set->name, "Some and another");
  ASSERT_EQ(set->groups.size(), 1u);
  ASSERT_EQ(set->groups[0].events.size(), 2u);
  EXPECT_THAT(set->groups[0].events[0].specs, ElementsAre("CYCLES", "r3c"));
  ASSERT_EQ(set->formulas.size(), 1u);
  EXPECT_TRUE(set->IsFor({"GenuineIntel", 6, 0x55}));
  EXPECT_TRUE(set->IsFor({"GenuineIntel", 6, 0x6b}));
  EXPECT_FALSE(set->IsFor({"GenuineIntel", 6, 0x6d}));
  EXPECT_FALSE(set->IsFor({"GenuineIntel", 7, 0x55}));
  EXPECT_FALSE(set->IsFor({"AuthenticAMD", 6, 0x55}));
  EXPECT_TRUE(set->IsFor({"arm", 0x41, 0xd0c}));
}

std::string SetComplaint(const std::string& line) {
  const Result<EventSet> set = ParseEventSet("group g\nevent cycles = r1\n" + line, "f");
  return set.ok() ? "" : std::string(set.status().message());
}

TEST(EventSet, AWrongLineIsNamedWithWhatWasExpected) {
  EXPECT_THAT(SetComplaint("colour blue"), HasSubstr("f:3: expected name, processor"));
  EXPECT_THAT(SetComplaint("processor arm x 1"), HasSubstr("VENDOR FAMILY MODEL"));
  EXPECT_THAT(SetComplaint("processor arm 1"), HasSubstr("at least one model"));
  EXPECT_THAT(SetComplaint("processor arm 1 9-3"), HasSubstr("models as"));
  EXPECT_THAT(SetComplaint("event cycles = r2"), HasSubstr("each event once"));
  EXPECT_THAT(SetComplaint("event BIG = r2"), HasSubstr("small letters"));
  EXPECT_THAT(SetComplaint("event x ="), HasSubstr("an event of libpfm4"));
  EXPECT_THAT(SetComplaint("formula nothing = cycles"), HasSubstr("docs/metrics.md"));
  EXPECT_THAT(SetComplaint("formula task_frequency_hertz = cycles /"), HasSubstr("column"));
  EXPECT_THAT(SetComplaint("formula task_frequency_hertz = cycels"), HasSubstr("`cycels`"));
  EXPECT_FALSE(ParseEventSet("event a = r1\n", "f").ok());
  std::string many;
  for (int i = 0; i < 40; ++i) many += "event e" + std::to_string(i) + " = r1\n";
  EXPECT_THAT(SetComplaint(many), HasSubstr("the most"));
}

TEST(EventSet, TheProcessorIsTheFirstOne) {
  EXPECT_EQ(ParseProcessor("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
                           "model\t\t: 85\nmodel name\t: Xeon\n\nprocessor : 1\nmodel : 3\n"),
            (ProcessorId{"GenuineIntel", 6, 85}));
  EXPECT_EQ(ParseProcessor("processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n"
                           "CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n"),
            (ProcessorId{"arm", 0x41, 0xd0c}));
  EXPECT_EQ(ParseProcessor("nothing"), ProcessorId{});
}

TEST(EventSet, TheSitesOwnComesBeforeTheBuiltIn) {
  Tree tree;
  tree.Write("a.events", "processor GenuineIntel 6 0x55\nname Broken\nevent\n");
  tree.Write("b.events", "processor GenuineIntel 6 0x55\nname Site\n");
  tree.Write("c.events", "processor GenuineIntel 6 0x55\nname Later\n");
  tree.Write("b.events~", "rubbish");
  std::vector<std::string> notes;
  EXPECT_EQ(FindEventSet({"GenuineIntel", 6, 0x55}, tree.path(), notes).name, "Site");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("a.events:3: expected `group NAME`")));
  notes.clear();
  EXPECT_EQ(FindEventSet({"Unheard", 1, 1}, "", notes).name, "Any processor");
  EXPECT_THAT(notes, IsEmpty());
}

TEST(EventSet, TheBuiltInOnesAreGood) {
  for (const EventSetFile& file : BuiltInEventSets()) {
    const Result<EventSet> set = ParseEventSet(file.text, file.file);
    EXPECT_TRUE(set.ok()) << set.status().message();
  }
  EXPECT_EQ(SoftwareEventSet().groups.size(), 1u);
}

TEST(Vocabulary, EveryWordMakesItsMetric) {
  for (const EventWord& word : EventWords()) {
    const bool clock = word.name == "task_clock";
    EXPECT_EQ(EventMetric(word.name, clock).help, word.decl.help) << word.name;
  }
  EXPECT_EQ(EventMetric("L1-dcache:READ", false).name, "task_perf_l1_dcache_read_total");
}

}  // namespace
}  // namespace sonde::collect::collect_event_set_test
