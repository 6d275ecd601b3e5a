// What a site decides in sonde.conf: the lines, and what each step gets by them.
#include "core/text/site_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/config.h"

namespace sonde::site_rules_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kMs = 1'000'000;

// alice is user 1001 in the groups 100 (staff) and 200 (hpc-dev).
class MadeUpAccounts : public Accounts {
 public:
  Truth IsUser(uint32_t uid, std::string_view pattern) override {
    ++asked;
    if (uid != 1001) return Truth::kUnknown;
    return MatchesPattern(pattern, "alice") ? Truth::kYes : Truth::kNo;
  }
  Truth IsGroup(std::span<const uint32_t> gids, std::string_view pattern) override {
    ++asked;
    const auto has = [&](uint32_t gid, std::string_view name) {
      return std::find(gids.begin(), gids.end(), gid) != gids.end() &&
             MatchesPattern(pattern, name);
    };
    return has(100, "staff") || has(200, "hpc-dev") ? Truth::kYes : Truth::kNo;
  }
  int asked = 0;
};

const Applicant kAlice{1001, {100, 200}, "physics", "debug", "high"};

// The lines of a file as the plugin takes them: wrong ones are told and do not count.
SiteRules Rules(std::string_view text, std::vector<std::string>* wrong = nullptr) {
  SiteRules rules;
  ForEachSetting(text, [&](const Setting& setting) {
    if (!rules.Takes(setting)) return true;
    const std::string what = rules.Add(setting);
    if (!what.empty() && wrong != nullptr) {
      wrong->push_back(std::to_string(setting.line) + ": " + what);
    }
    return true;
  });
  return rules;
}

Granted Grant(std::string_view text, const Asked& asked, const Applicant& applicant = kAlice) {
  MadeUpAccounts accounts;
  return Rules(text).Grant(asked, applicant, accounts, "sonde.conf");
}

TEST(SiteRules, WithoutLinesAStepGetsWhatItAsksFor) {
  for (int level = 0; level <= 4; ++level) {
    const Granted granted = Grant("", {level, 10 * kMs, "cycles,x"});
    EXPECT_EQ(granted.level, level);
    EXPECT_EQ(granted.period, 10 * kMs);
    EXPECT_EQ(granted.events, "cycles,x");
    EXPECT_THAT(granted.lowered, IsEmpty());
  }
  const Granted unasked = Grant("", {});
  EXPECT_EQ(unasked.level, 0);
  EXPECT_EQ(unasked.period, 1000 * kMs);
}

TEST(SiteRules, WhatIsNotGrantedIsToldWithItsLine) {
  const Granted granted =
      Grant("max_level = 3\nmin_period = 1s\nallow_events = instructions, cache-*\n",
            {4, 100 * kMs, "instructions:u,CACHE-misses,cycles,branches"});
  EXPECT_EQ(granted.level, 3);
  EXPECT_EQ(granted.period, 1000 * kMs);
  EXPECT_EQ(granted.events, "instructions:u,CACHE-misses");
  EXPECT_THAT(
      granted.lowered,
      ElementsAre("--telemetry-level=4: at most 3 here (max_level, sonde.conf:1); watched at 3",
                  "--telemetry-period=100ms: at least 1s here (min_period, sonde.conf:2); "
                  "sampled every 1s",
                  "--telemetry-events: cycles,branches: not allowed here (allow_events, "
                  "sonde.conf:3); left out"));
}

TEST(SiteRules, AtLevel0NothingElseIsTold) {
  const Granted granted =
      Grant("max_level = 0\nmin_period = 1s\nallow_events = none", {2, 10 * kMs, "cycles"});
  EXPECT_EQ(granted.level, 0);
  EXPECT_THAT(
      granted.lowered,
      ElementsAre("--telemetry-level=2: at most 0 here (max_level, sonde.conf:1); not watched"));
}

TEST(SiteRules, TheDefaultLevelIsForThoseWhoAskForNone) {
  EXPECT_EQ(Grant("default_level = 2", {}).level, 2);
  EXPECT_EQ(Grant("default_level = 2", {0, {}, ""}).level, 0);
  EXPECT_EQ(Grant("default_level = 2", {1, {}, ""}).level, 1);
  const Granted lowered = Grant("default_level = 4\nmax_level = 2\nmin_period = 10s", {});
  EXPECT_EQ(lowered.level, 2);
  EXPECT_EQ(lowered.period, 10000 * kMs);
  EXPECT_THAT(lowered.lowered, IsEmpty()) << "nobody asked";
}

TEST(SiteRules, WatchesUnaskedIfALineMaySo) {
  EXPECT_FALSE(Rules("").WatchesUnasked());
  EXPECT_FALSE(Rules("default_level = 0\nmax_level = 2").WatchesUnasked());
  EXPECT_TRUE(Rules("[user = nobody]\ndefault_level = 1").WatchesUnasked());
}

TEST(SiteRules, DependOnTheAllocationIfAConditionDoes) {
  EXPECT_FALSE(Rules("max_level = 1\n[user = a; group = b]\nmax_level = 2").DependOnAllocation());
  for (const char* brackets : {"[account = a]", "[user = a; partition = b]", "[qos = a]"}) {
    EXPECT_TRUE(Rules(brackets).DependOnAllocation()) << brackets;
  }
}

TEST(SiteRules, ConditionsSayWhoseStepsALineIsFor) {
  const std::pair<const char*, int> cases[] = {
      {"[user = alice]", 4},
      {"[user = bob]", 1},
      {"[user = bob, alice]", 4},
      {"[user=ali*]", 4},
      {"[user = 1001]", 4},
      {"[user = 1002]", 1},
      {"[group = hpc-*]", 4},
      {"[group = wheel]", 1},
      {"[group = 100]", 4},
      {"[group = 300, 301]", 1},
      {"[account = Physics]", 4},
      {"[account = chem*]", 1},
      {"[partition = debug]", 4},
      {"[partition = Debug]", 1},
      {"[partition = gpu*, *bug]", 4},
      {"[qos = HIGH]", 4},
      {"[user = alice; partition = debug]", 4},
      {"[user = alice; partition = bench]", 1},
      {"[ user = alice ;group=100;account=*;qos=*h ] # comment", 4},
  };
  for (const auto& [brackets, level] : cases) {
    const std::string text = "max_level = 1\n" + std::string(brackets) + "\nmax_level = 4\n";
    EXPECT_EQ(Grant(text, {4, {}, ""}).level, level) << brackets;
  }
}

TEST(SiteRules, TheLastLineOfAKeyThatIsForTheStepCounts) {
  const char* const text =
      "max_level = 2\nmin_period = 1s\n"
      "[user = alice]\nmax_level = 4\n"
      "[partition = debug]\nmax_level = 1\nmin_period = 2s\n"
      "[partition = bench]\nmax_level = 3\n";
  Applicant alice = kAlice;
  EXPECT_EQ(Grant(text, {4, {}, ""}, alice).level, 1);
  EXPECT_EQ(Grant(text, {4, {}, ""}, alice).period, 2000 * kMs);
  alice.partition = "bench";
  EXPECT_EQ(Grant(text, {4, {}, ""}, alice).level, 3);
  alice.partition = "other";
  EXPECT_EQ(Grant(text, {4, {}, ""}, alice).level, 4);
  alice.uid = 1002;
  EXPECT_EQ(Grant("max_level = 2\n[user = 1001]\nmax_level = 4", {4, {}, ""}, alice).level, 2);
}

TEST(SiteRules, WhatIsNotKnownGivesNobodyMore) {
  Applicant nobody;
  nobody.uid = 77;
  const auto grant = [&](std::string_view text, const Asked& asked = {4, 10 * kMs, "cycles,x"}) {
    return Grant(text, asked, nobody);
  };
  for (const char* brackets : {"[account = a]", "[partition = a]", "[qos = a]", "[user = a]",
                               "[group = staff, 5; account = a]", "[partition = *]"}) {
    const std::string section = std::string(brackets) + "\n";
    const bool never = section.starts_with("[group");
    EXPECT_EQ(grant("max_level = 2\n" + section + "max_level = 4").level, 2) << brackets;
    EXPECT_EQ(grant("max_level = 2\n" + section + "max_level = 1").level, never ? 2 : 1);
    EXPECT_EQ(grant("min_period = 1s\n" + section + "min_period = 10ms").period, 1000 * kMs);
    EXPECT_EQ(grant("min_period = 1s\n" + section + "min_period = 2s").period,
              (never ? 1000 : 2000) * kMs);
    EXPECT_EQ(grant("allow_events = cycles\n" + section + "allow_events = all").events, "cycles");
    EXPECT_EQ(grant("allow_events = c*\n" + section + "allow_events = none").events,
              never ? "cycles" : "");
    EXPECT_EQ(grant("default_level = 1\n" + section + "default_level = 2", {}).level, 1);
    EXPECT_EQ(grant("default_level = 1\n" + section + "default_level = 0", {}).level, never);
  }
}

TEST(SiteRules, NamesAreLookedUpOnlyIfALineHasSome) {
  MadeUpAccounts accounts;
  const Asked asked{4, {}, ""};
  const SiteRules plain = Rules(
      "max_level = 2\n[user = 5]\nmax_level = 3\n[group = 5]\nmax_level = 1\n"
      "[partition = none; group = staff]\nmax_level = 1\n[user = alice]\n");
  plain.Grant(asked, kAlice, accounts, "f");
  EXPECT_EQ(accounts.asked, 0);
  Rules("[group = staff]\nmax_level = 1\nmin_period = 1s").Grant(asked, kAlice, accounts, "f");
  EXPECT_EQ(accounts.asked, 1);
}

TEST(SiteRules, EventsByNameWhateverStandsBehindAColon) {
  const std::pair<const char*, const char*> cases[] = {
      {"all", "cycles,cycles:u,skx::X:Y"},
      {"none", ""},
      {"cycles", "cycles,cycles:u"},
      {"cycles:u", "cycles:u"},
      {"skx", ""},
      {"skx::*", "skx::X:Y"},
      {"CYC*", "cycles,cycles:u"},
  };
  for (const auto& [allowed, events] : cases) {
    EXPECT_EQ(
        Grant(std::string("allow_events = ") + allowed, {3, {}, "cycles,cycles:u,skx::X:Y"}).events,
        events)
        << allowed;
  }
}

TEST(SiteRules, PatternsMatchWholeTexts) {
  const std::tuple<const char*, const char*, bool> cases[] = {
      {"", "", true},           {"", "a", false},         {"*", "", true},
      {"**", "abc", true},      {"a*", "abc", true},      {"*c", "abc", true},
      {"*b", "abc", false},     {"a*c", "ac", true},      {"a*bc", "abbc", true},
      {"a*b*c", "aXbYc", true}, {"a*b*c", "aXbY", false}, {"a?c", "abc", false},
  };
  for (const auto& [pattern, text, matches] : cases) {
    EXPECT_EQ(MatchesPattern(pattern, text), matches) << pattern << " " << text;
  }
  const std::string stars = "*a*a*a*a*a*a*a*a*a*a*a*a*b", text(20000, 'a');
  EXPECT_FALSE(MatchesPattern(stars, text));
}

TEST(SiteRules, AWrongLineIsNamedAndCountsForNobody) {
  const std::pair<const char*, const char*> cases[] = {
      {"max_level = 5",
       "max_level = 5: expected 0 (off), 1 (application), 2 (system), 3 (counters, GPUs, power) or "
       "4 (details)"},
      {"default_level = high", "default_level = high: expected 0 (off)"},
      {"min_period = 1ms", "min_period = 1ms: expected a time from 10ms to 1h"},
      {"allow_events =", "allow_events = : expected all, none or names of events"},
      {"allow_events = a, b c", "expected all, none or names of events"},
      {"max_level", "expected key = value"},
      {"max_level = 2\nmax_level = 3", "max_level is given twice"},
      {"[user = alice", "expected conditions such as [partition = gpu*, bench], with ] at the end"},
      {"[]", "expected conditions such as [partition = gpu*, bench]"},
      {"[alice]", "expected conditions such as [partition = gpu*, bench]"},
      {"[users = alice]",
       "unknown condition 'users', expected user, group, account, partition or qos"},
      {"[user =]", "expected names separated by commas after user"},
      {"[user = alice,]", "expected names separated by commas after user"},
      {"[user = alice;]", "expected conditions such as [partition = gpu*, bench]"},
      {"[user = alice]\nfanout = 3",
       "'fanout' stands below the brackets of line 1: there only default_level, max_level, "
       "min_period and allow_events may stand; put it above the first brackets"},
      {"[user = alice]\nmax_levl = 3", "'max_levl' stands below the brackets of line 1"},
      {"[user = alice]\nhello", "expected key = value"},
  };
  for (const auto& [text, message] : cases) {
    std::vector<std::string> wrong;
    Rules(text, &wrong);
    const std::string line = std::to_string(std::count(text, text + strlen(text), '\n') + 1);
    ASSERT_EQ(wrong.size(), 1u) << text;
    EXPECT_THAT(wrong[0], testing::StartsWith(line + ": ")) << text;
    EXPECT_THAT(wrong[0], testing::HasSubstr(message)) << text;
    // The daemon and the command name the same line.
    const Result<Config> config = ParseConfig(text, "sonde.conf");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.status().message(), "sonde.conf:" + wrong[0]) << text;
  }
}

TEST(SiteRules, BelowWrongBracketsCountsWhatTakesAway) {
  std::vector<std::string> wrong;
  const SiteRules rules = Rules(
      "max_level = 3\n[usr = bob]\nmax_level = 1\n[usr = eve]\nmax_level = 4\n"
      "[user = alice]\nmin_period = 2s\n",
      &wrong);
  EXPECT_THAT(wrong, ElementsAre(testing::HasSubstr("unknown condition 'usr'"),
                                 testing::HasSubstr("unknown condition 'usr'")));
  MadeUpAccounts accounts;
  const Granted granted = rules.Grant({4, {}, ""}, kAlice, accounts, "f");
  EXPECT_EQ(granted.level, 1);
  EXPECT_EQ(granted.period, 2000 * kMs);
}

TEST(SiteRules, StandInSondeConfBesideItsOtherKeys) {
  const Result<Config> config = ParseConfig(
      "fanout = 4\nmax_level = 2\nreport = off\n[partition = gpu*, bench] # fast\nmax_level = 4\n",
      "sonde.conf");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->fanout, 4u);
  EXPECT_EQ(config->report, "off");
}

}  // namespace
}  // namespace sonde::site_rules_test
