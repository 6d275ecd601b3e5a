// The text of alarm rules: what is understood, and what a mistake is told.
#include <gtest/gtest.h>

#include <random>

#include "series/alarm/rule.h"

namespace sonde::alarms {
namespace {

Rule Parsed(std::string_view text) {
  const Result<Rule> rule = ParseRule("r", text);
  EXPECT_TRUE(rule.ok()) << text << ": " << rule.status().message();
  return rule.ok() ? *rule : Rule{"", {{}}, 0, {}, {}, Severity::kInfo, ""};
}

std::string Error(std::string_view text) {
  const Result<Rule> rule = ParseRule("r", text);
  EXPECT_FALSE(rule.ok()) << text;
  return rule.ok() ? "" : std::string(rule.status().message());
}

TEST(AlarmRuleTest, ReadsEveryPartOfARule) {
  const Rule rule = Parsed(
      "node_filesystem_avail_bytes{mountpoint=\"/tmp, {x}\",device=sda1} / "
      "node_filesystem_size_bytes "
      "any < 5% in 10m and heat_residual max rate >= -1.5e3 for 30s clear 10% calm 1m critical "
      "message \"{mountpoint} \\\"full\\\"\"");
  ASSERT_EQ(rule.conditions.size(), 2u);
  const Condition& first = rule.conditions[0];
  EXPECT_EQ(first.metric, "node_filesystem_avail_bytes");
  EXPECT_EQ(first.tags, (Tags{{"mountpoint", "/tmp, {x}"}, {"device", "sda1"}}));
  EXPECT_EQ(first.over, "node_filesystem_size_bytes");
  EXPECT_EQ(first.who, Who::kAny);
  EXPECT_EQ(first.test, alarms::Test::kLess);
  EXPECT_DOUBLE_EQ(first.bound, 0.05);
  EXPECT_EQ(first.in, 600 * kSecond);
  EXPECT_EQ(rule.conditions[1].who, Who::kMax);
  EXPECT_TRUE(rule.conditions[1].rate);
  EXPECT_DOUBLE_EQ(rule.conditions[1].bound, -1500);
  EXPECT_EQ(rule.hold, 30 * kSecond);
  EXPECT_DOUBLE_EQ(*rule.clear, 0.1);
  EXPECT_EQ(rule.Calm(), 60 * kSecond);
  EXPECT_EQ(rule.severity, Severity::kCritical);
  EXPECT_EQ(rule.message, "{mountpoint} \"full\"");
}

TEST(AlarmRuleTest, UnitsAreFactors) {
  EXPECT_DOUBLE_EQ(Parsed("x < 2G").conditions[0].bound, 2.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(Parsed("x<=1.5K").conditions[0].bound, 1536);
  EXPECT_DOUBLE_EQ(Parsed("x != 50 %").conditions[0].bound, 0.5);
}

TEST(AlarmRuleTest, CalmsAsLongAsItHeld) {
  EXPECT_EQ(Parsed("x > 1 for 5s").Calm(), 5 * kSecond);
  EXPECT_EQ(Parsed("x > 1 for 5s calm 0s").Calm(), 0);
}

TEST(AlarmRuleTest, WhatNodesHaveToDerive) {
  const auto need = [](std::string_view text) { return NeedOf(Parsed(text).conditions[0]); };
  EXPECT_FALSE(need("x_total rate > 1"));
  EXPECT_FALSE(need("x / y > 1"));
  EXPECT_FALSE(need("x any > 1"));
  EXPECT_EQ(DerivedName(*need("x_total any rate > 1")), "alarm:rate:x_total");
  EXPECT_EQ(DerivedName(*need("x_total any node rate < 1")), "alarm:node:rate:x_total");
  EXPECT_EQ(DerivedName(*need("x / y all > 1")), "alarm:x:per:y");
  EXPECT_EQ(DerivedName(*need("x rate lags 3")), "alarm:rate:x");
  const auto held = [](std::string_view text) {
    return HeldOf(Parsed(text), Parsed(text).conditions[0]);
  };
  EXPECT_EQ(DerivedName(*held("x_total any node rate < 1 for 3s")),
            "alarm:node:held:lt3ff0000000000000:rate:x_total");
  EXPECT_TRUE(CheckMetricName(DerivedName(*held("x / y any != -0.1 for 3s"))).ok());
  for (const char* text : {"x any > 1", "x > 1 for 3s", "x all > 1 for 3s", "x max > 1 for 3s",
                           "x any < 1 in 1m for 3s", "x lags 3 for 3s", "x absent for 3s"}) {
    EXPECT_FALSE(held(text)) << text;
  }
  EXPECT_TRUE(IsDerivedName("alarm:x:per:y"));
  EXPECT_FALSE(IsDerivedName("node_load1"));
}

TEST(AlarmRuleTest, AConditionOnOneNodeIsMadeThere) {
  for (const char* text : {"x{host=n3,mode=user} > 1", "x_total{host=n3} rate > 1",
                           "x{host=n3} / y > 50%", "x{host=n3} absent for 3s"}) {
    const Rule rule = Parsed(text);
    const auto need = NeedOf(rule.conditions[0]);
    ASSERT_TRUE(need) << text;
    EXPECT_EQ(*need->tags.Find("host"), "n3");
    EXPECT_TRUE(need->per_node);
    EXPECT_EQ(Parsed(ToText(rule)), rule) << ToText(rule);
  }
  EXPECT_EQ(ToText(Parsed("x{host=n3} max node > 1")), "x{host=\"n3\"} > 1");
}

TEST(AlarmRuleTest, DerivedSeriesTravel) {
  const std::vector<Derived> all = {
      {"x_total", {{"mode", "idle"}}, "", true, true},
      {"a", {}, "b", false, false},
      {"a", {{"x", "y"}}, "", false, false, alarms::Test::kNotEqual, -0.25},
      {"c", {}, "", true, true, alarms::Test::kGreater, 1e300}};
  std::string bytes;
  EncodeDerived(all, bytes);
  const auto read = DecodeDerived(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, all);
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodeDerived(std::string_view(bytes).substr(0, n)).ok());
  }
  bytes.clear();
  EncodeDerived({{"c", {}, "", true, true, alarms::Test::kGreater, std::nan("")}}, bytes);
  EXPECT_FALSE(DecodeDerived(bytes).ok());
}

TEST(AlarmRuleTest, MistakesAreNamed) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "alarm r: expected the name of a metric at the end"},
      {"1x > 1", "expected the name of a metric at character 1, where it says '1x > 1'"},
      {"x", "expected a comparison (> >= < <= = !=), absent, lags or leads at the end"},
      {"x > much", "expected a number at character 5"},
      {"x > 1 for ever", "expected a time such as 500ms, 30s or 5m, up to 7d, at character 11"},
      {"x > 1 for 8d", "up to 7d, at character 11"},
      {"x > 1Q", "perhaps with K, M, G, T or % behind it"},
      {"x > 1e999", "expected a number"},
      {"x > 1 loudly", "expected and, for, clear, calm, info, warning, critical or message"},
      {"x{a} > 1", "expected '=' after a tag's name"},
      {"x{a=1 > 1", "expected '}' after the tags"},
      {"x{a=1,a=2} > 1", "each tag once"},
      {"x{task=1} > 1", "no tag task"},
      {"x{host=n1} sum > 1", "no aggregate of nodes"},
      {"x{host=n1} any node > 1", "no aggregate of nodes"},
      {"x{host=n1} lags 3", "no aggregate of nodes"},
      {"x any = 1", "whether any of them is equal is not known"},
      {"x all != 1", "whether all of them differ is not known"},
      {"x sum node > 1", "before the word 'node'"},
      {"x max lags 2", "no aggregate but 'any node'"},
      {"x absent", "'for TIME' with 'absent'"},
      {"x rate absent for 3s", "no aggregate, rate or '/' with 'absent'"},
      {"x > 5 clear 6", "where the condition does not hold"},
      {"x = 5 clear 6", "'clear' with > >= < or <= only"},
      {"x > 1 message \"\"", "a message of 1 to 160 bytes"},
      {"x > 1 message \"a", "a closing double quote"},
      {"x > 1 and x > 1 and x > 1 and x > 1 and x > 1", "at most 4 conditions"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(Error(text).find(expected), std::string::npos) << text << ": " << Error(text);
  }
}

TEST(AlarmRuleTest, NamesAreChecked) {
  EXPECT_TRUE(CheckRuleName("My Alarm").ok());
  for (const char* name : {"", " x", "a:b", "a=b", "a\nb", "\"", "\xff"}) {
    EXPECT_FALSE(CheckRuleName(name).ok()) << name;
  }
  EXPECT_FALSE(CheckRuleName(std::string(kMaxRuleName + 1, 'x')).ok());
}

TEST(AlarmRuleTest, AFileHasARuleInALine) {
  const auto lines = ParseRules("# mine\r\n\nhot: x > 1\r\n memory : off\n", "f");
  ASSERT_TRUE(lines.ok()) << lines.status().message();
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ((*lines)[0].rule->name, "hot");
  EXPECT_EQ((*lines)[1].name, "memory");
  EXPECT_FALSE((*lines)[1].rule);
  std::vector<Rule> rules = {Parsed("y > 1"), Parsed("z > 1")};
  rules[1].name = "memory";
  Apply(*lines, rules);
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[1].name, "hot");
  const auto bad = ParseRules("a: x > 1\nb x > 1\n", "rules");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(), "rules:2: expected NAME: RULE");
}

// Whatever a rule is made of, its text means the same rule.
TEST(AlarmRuleTest, TextsParseToTheSameRule) {
  std::mt19937 random(7);
  const auto one_of = [&](std::initializer_list<const char*> all) {
    return std::string(*(all.begin() + random() % all.size()));
  };
  int parsed = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = one_of({"x", "a:b", "node_load1", "x{a=b}", "x{a=\"b,}\\\"\",c=d}"});
    text += one_of({"", "", " / y"});
    text += one_of({"", " sum", " avg", " min", " max", " count", " any", " all", " any node",
                    " all nodes", " max node"});
    text += one_of({"", " rate"});
    text += one_of({" > 1", " >= 0.1", " < 5% in 90s", " <= -2G", " = 3", " != 1e300", " absent",
                    " lags 3", " leads 2 by 50%"});
    text += one_of({"", " and z > 2", " and z{q=r} any rate < 1e-5"});
    text += one_of({"", " for 1500ms", " for 0.25s", " for 2h"});
    text += one_of({"", " calm 7s"});
    text += one_of({"", " info", " critical", " warning"});
    text += one_of({"", " message \"a \\\"b\\\" \\\\ {value}\""});
    const Result<Rule> rule = ParseRule("r", text);
    if (!rule.ok()) continue;
    ++parsed;
    const Result<Rule> again = ParseRule("r", ToText(*rule));
    ASSERT_TRUE(again.ok()) << ToText(*rule) << ": " << again.status().message();
    EXPECT_EQ(*again, *rule) << text << " | " << ToText(*rule);
  }
  EXPECT_GT(parsed, 1000);
}

}  // namespace
}  // namespace sonde::alarms
