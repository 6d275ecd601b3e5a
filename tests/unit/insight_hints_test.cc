// Hints: formulas of three values, files of rules, and which hints a step's facts give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "insight/hints/hints.h"
#include "insight/hints/message.h"
#include "insight/hints/rules.h"
#include "insight/hints/step_facts.h"
#include "tests/unit/temp_dir.h"

namespace sonde::insight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Result<Formula> Condition(std::string_view text) {
  return Formula::Parse(text, Formula::Kind::kCondition);
}

double ValueOf(const std::string& text, const std::map<std::string, double>& values = {}) {
  const auto formula = Condition(text);
  if (!formula.ok()) {
    ADD_FAILURE() << formula.status().message();
    return kNaN;
  }
  std::vector<double> given;
  for (const std::string& name : formula->names()) given.push_back(values.at(name));
  return formula->Evaluate(given);
}

TEST(HintFormulas, HaveTheUsualOrder) {
  EXPECT_EQ(ValueOf("1 + 2 * 3"), 7);
  EXPECT_EQ(ValueOf("-2 ^ 2 + 10 / 4"), -4 + 2.5);
  EXPECT_EQ(ValueOf("(1 + 2) * 3 - 4 - 5"), 0);
  EXPECT_EQ(ValueOf("1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3 and 1 == 1 and 1 != 2"), 1);
  EXPECT_EQ(ValueOf("1 == 2 or 1 == 1 and 1 == 2"), 0);
  EXPECT_EQ(ValueOf("max(1, 2) + min(3, 4) + ceil(1.2) + floor(1.8) + round(1.5)"), 10);
  EXPECT_EQ(ValueOf("a >= 5 and\n  b < 0.6 * a", {{"a", 5}, {"b", 2}}), 1);
}

TEST(HintFormulas, OfWhatIsNotKnownAreNotKnown) {
  const std::map<std::string, double> x = {{"x", kNaN}, {"y", 2}};
  for (const char* text : {"x", "x + 1", "x < 3", "x >= 3", "x == x", "x != x", "not(x < 3)",
                           "y > 1 and x > 1", "y > 3 or x > 1", "min(x, y)", "y / 0", "0 / 0"}) {
    EXPECT_TRUE(std::isnan(ValueOf(text, x))) << text;
  }
  EXPECT_EQ(ValueOf("y > 3 and x > 1", x), 0);
  EXPECT_EQ(ValueOf("x > 1 and y > 3", x), 0);
  EXPECT_EQ(ValueOf("y > 1 or x > 1", x), 1);
  EXPECT_EQ(ValueOf("x > 1 or y > 1", x), 1);
  EXPECT_EQ(ValueOf("known(x)", x), 0);
  EXPECT_EQ(ValueOf("known(y) and not(known(x))", x), 1);
  EXPECT_EQ(ValueOf("known_or(x, 7) + known_or(y, 9)", x), 9);
}

TEST(HintFormulas, SayWhatIsWrong) {
  for (const char* text :
       {"", "1 +", "(1", "1 2", "a b", "a = 1", "a, b", "f(1)", "1 and", "'a'"}) {
    const auto formula = Condition(text);
    EXPECT_EQ(formula.status().code(), Code::kInvalid) << text;
    EXPECT_FALSE(formula.status().message().empty()) << text;
  }
  EXPECT_EQ(Condition(std::string(5000, '1')).status().code(), Code::kInvalid);
  for (const char deep : {'(', '-', '^'}) {
    EXPECT_FALSE(Condition(std::string(1000, deep)).ok());
  }
  EXPECT_THAT(Condition("b + a * a")->names(), ElementsAre("b", "a"));
  EXPECT_FALSE(Formula::Parse("a < b").ok());  // arithmetic alone
  EXPECT_FALSE(Formula::Parse("max(1, 2)").ok());
}

std::string Filled(const std::string& text) {
  const auto message = Message::Parse(text);
  if (!message.ok()) return std::string(message.status().message());
  return message->Fill([](const Message::Part& part) {
    return part.text == "none" ? "" : InForm(1.5 * (1u << 30), "bytes", part.form);
  });
}

TEST(HintMessages, HaveNumbersFilledIn) {
  EXPECT_EQ(Filled("{a} and {{{a|mem}}}"), "1.5 GiB and {1536M}");
  EXPECT_EQ(Filled("only {none} and {a}"), "");
  EXPECT_THAT(Filled("{a"), HasSubstr("a brace stands alone"));
  EXPECT_THAT(Filled("a}"), HasSubstr("a brace stands alone"));
  EXPECT_THAT(Filled("{}"), HasSubstr("no name"));
  EXPECT_THAT(Filled("{a|tall}"), HasSubstr("'tall' is no form"));
}

TEST(HintMessages, HaveSlurmsForms) {
  EXPECT_EQ(InForm(100.0 * (1u << 20), "bytes", "mem"), "100M");
  EXPECT_EQ(InForm(12.2 * (1u << 30), "bytes", "mem"), "13G");
  EXPECT_EQ(InForm(1, "bytes", "mem"), "1M");
  EXPECT_EQ(InForm(59.2, "seconds", "time"), "00:01:00");
  EXPECT_EQ(InForm(26 * 3600 + 61, "seconds", "time"), "1-02:01:01");
  EXPECT_EQ(InForm(2.1, "1", "whole"), "3");
  EXPECT_EQ(InForm(0.3763, "1", ""), "0.38");
  EXPECT_EQ(InForm(1.999, "1", ""), "2");
  EXPECT_EQ(InForm(16.25, "1", ""), "16");
  EXPECT_EQ(InForm(1234, "1", ""), "1,234");
  EXPECT_EQ(InForm(315412.3, "1", ""), "315,000");
  EXPECT_EQ(InForm(-1234567, "1", ""), "-1,234,567");
  EXPECT_EQ(InForm(0.25, "1", "percent"), "25 %");
  EXPECT_EQ(InForm(kNaN, "1", "whole"), "");
}

constexpr std::string_view kRule = R"toml(
[hint.idle]
when = "cpus >= 2 and cpus_busy < cpus / 2"
let.enough = "ceil(busy)"
let.busy = "cpus_busy"
worth = "1 - cpus_busy / cpus"
says = "{cpus_busy} of {cpus}"
why = "by {cpu_most_by}"
change = "-c{enough|whole}"
)toml";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(HintRules, ThatSondeComesWithCanBeRead) {
  const auto rules = ParseHintRules(DefaultHintRules(), "default");
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  EXPECT_GE(rules->size(), 20u);
}

// What is wrong in a rule, and what is said of it.
TEST(HintRules, SayWhereTheyAreWrong) {
  const std::string rule =
      Replaced(Replaced(std::string(kRule), "let.enough = \"ceil(busy)\"\n", ""),
               "let.busy = \"cpus_busy\"", "let.enough = \"cpus_busy\"");
  ASSERT_TRUE(ParseHintRules(rule, "f").ok());
  const auto said = [&](const std::string& from, const std::string& to) {
    return std::string(ParseHintRules(Replaced(rule, from, to), "f.toml").status().message());
  };
  EXPECT_THAT(said("cpus >= 2", "cpuz >= 2"), HasSubstr("f.toml:3: hint idle: 'cpuz' is no fact"));
  EXPECT_THAT(said("cpus >= 2", "cpu_most_by >= 2"), HasSubstr("is a text, and no number"));
  EXPECT_THAT(said("cpus >= 2", "cpus >="), HasSubstr("f.toml:3"));
  EXPECT_THAT(said("{cpus}", "{cpuz}"), HasSubstr("f.toml:6: hint idle: 'cpuz' is no fact"));
  EXPECT_THAT(said("{cpu_most_by}", "{cpu_most_by|mem}"), HasSubstr("has no form 'mem'"));
  EXPECT_THAT(said("worth =", "value ="), HasSubstr("there is no 'value' in a hint"));
  EXPECT_THAT(said("why = \"by {cpu_most_by}\"\n", ""), HasSubstr("'why' is missing"));
  EXPECT_THAT(said("\"by {cpu_most_by}\"", "\"\""), HasSubstr("'why' is empty"));
  EXPECT_THAT(said("\"by {cpu_most_by}\"", "7"), HasSubstr("has to be a text in quotes"));
  EXPECT_THAT(said("let.enough", "let.cpus"), HasSubstr("'cpus' is a fact already"));
  EXPECT_THAT(said("[hint.idle]", "[idle]"), HasSubstr("expected [hint.NAME]"));
  EXPECT_THAT(said("[hint.idle]", "[hint.idle"), HasSubstr("f.toml:2"));
  EXPECT_THAT(said("[hint.idle]", "[hint.idle]\nkind = \"joke\""), HasSubstr("kind = \"limit\""));
  EXPECT_THAT(said("[hint.idle]", "[hint.idle]\noff = \"yes\""), HasSubstr("off = true or false"));
}

TEST(HintRules, MayUseNumbersThatStandBefore) {
  EXPECT_THAT(std::string(ParseHintRules(kRule, "f").status().message()),
              HasSubstr("f:4: hint idle: 'busy' is no fact"));
}

class SiteRules : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_.path() + "/" + name) << text;
  }
  std::vector<std::string> Names() const {
    const auto rules = LoadHintRules({dir_.path()});
    if (!rules.ok()) return {std::string(rules.status().message())};
    std::vector<std::string> names;
    for (const HintRule& rule : *rules) {
      if (rule.name.starts_with("idle")) names.push_back(rule.name);
    }
    return names;
  }
  const TempDir dir_;
};

TEST_F(SiteRules, AddReplaceAndTakeAway) {
  EXPECT_THAT(Names(), ElementsAre("idle_cores", "idle_gpus"));
  Write("b.toml", "[hint.idle_gpus]\noff = true\n");
  Write("a.txt", "what is no rule");
  EXPECT_THAT(Names(), ElementsAre("idle_cores"));
  Write("c.toml",
        "[hint.idle_here]\nwhen=\"nodes > 1\"\nworth=\"1\"\nsays=\"a\"\nwhy=\"b\"\nchange=\"c\"\n");
  EXPECT_THAT(Names(), ElementsAre("idle_cores", "idle_here"));
  Write("d.toml", "[hint.idle_cores\n");
  EXPECT_THAT(Names(), ElementsAre(HasSubstr("d.toml:1")));
}

TEST(HintRules, OfADirectoryThatIsNotThereAreNone) {
  EXPECT_TRUE(LoadHintRules({"/nowhere/at/all"}).ok());
}

std::vector<Hint> Found(const Facts& facts) {
  const auto rules = ParseHintRules(DefaultHintRules(), "default");
  EXPECT_TRUE(rules.ok()) << rules.status().message();
  return FindHints(*rules, facts);
}

Facts IdleCores() {
  Facts facts;
  for (const auto& [name, value] : std::map<std::string, double>{{"duration", 100},
                                                                 {"tasks", 1},
                                                                 {"cpus", 8},
                                                                 {"cpus_per_task", 8},
                                                                 {"cpus_busy", 0.8},
                                                                 {"cpus_most", 1},
                                                                 {"has_gpus", 0},
                                                                 {"threads_per_task", 1},
                                                                 {"io_blocked", 0}}) {
    facts.Set(name, value);
  }
  return facts;
}

TEST(Hints, HaveTheirFiguresAndTheChange) {
  const auto hints = Found(IdleCores());
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_EQ(hints[0].name, "idle_cores");
  EXPECT_EQ(hints[0].worth, 0.75);
  EXPECT_EQ(hints[0].says, "Idle cores: no more than 1 of 8 CPUs were busy at a time.");
  EXPECT_EQ(hints[0].why, "CPUs of a task: 8, its threads: 1; 0.8 CPUs were busy in the mean.");
  EXPECT_THAT(hints[0].change, HasSubstr("#SBATCH --cpus-per-task=2,"));
}

TEST(Hints, GiveTheLimitThatSaysMost) {
  Facts facts = IdleCores();
  for (const auto& [name, value] : std::map<std::string, double>{{"cpus", 1},
                                                                 {"cpus_per_task", 1},
                                                                 {"cpus_busy", 1.01},
                                                                 {"cpu_of_task", 1.01},
                                                                 {"cpu_wanted", 1},
                                                                 {"system_share", 0},
                                                                 {"memory_of_task", 1e9},
                                                                 {"huge_page_share", 0}}) {
    facts.Set(name, value);
  }
  ASSERT_EQ(Found(facts).size(), 1u);
  EXPECT_EQ(Found(facts)[0].name, "small_pages");
}

TEST(Hints, SayMoreThanThereWasWhereMemoryDidNotSuffice) {
  Facts facts;
  facts.Set("oom_kills", 1);
  facts.Set("memory_limit", 64.0 * (1u << 30));
  facts.Set("memory_peak", 2.0 * (1u << 30));  // the last sample before
  facts.Set("mem_parts", 1);
  facts.SetText("mem_option", "--mem");
  ASSERT_EQ(Found(facts).size(), 1u);
  EXPECT_THAT(Found(facts)[0].change, HasSubstr("#SBATCH --mem=96G,"));
  facts.Set("mem_parts", 32);
  facts.SetText("mem_option", "--mem-per-cpu");
  EXPECT_THAT(Found(facts)[0].change, HasSubstr("#SBATCH --mem-per-cpu=3072M,"));
}

TEST(Hints, AreNotGivenWithoutEvidence) {
  EXPECT_THAT(Found(Facts()), IsEmpty());
  Facts facts = IdleCores();
  facts.Set("threads_per_task", kNaN);  // only named in the text
  EXPECT_THAT(Found(facts), IsEmpty());
}

}  // namespace
}  // namespace sonde::insight
