#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <memory>
#include <string>

#include "core/time.h"
#include "libclient/ask/condition.h"

namespace sonde::client {
namespace {

using testing::HasSubstr;

class Conditions : public testing::Test {
 protected:
  bool Parse(const char* text) { return ParseCondition(text, parsed_.get(), why_, sizeof(why_)); }
  const sonde_condition_t& condition() const { return parsed_->condition; }
  const sonde_filter_t& filter(size_t i) const { return condition().of.filters[i]; }

  std::unique_ptr<ParsedCondition> parsed_ = std::make_unique<ParsedCondition>();
  char why_[512] = "";
};

TEST_F(Conditions, TheShortestHasAMetricAComparisonAndANumber) {
  ASSERT_TRUE(Parse("load>1.5")) << why_;
  EXPECT_STREQ(condition().of.metric, "load");
  EXPECT_EQ(condition().of.aggregator, nullptr);
  EXPECT_EQ(condition().of.filter_count, 0u);
  EXPECT_EQ(condition().compare, SONDE_GREATER);
  EXPECT_EQ(condition().bound, 1.5);
  EXPECT_EQ(condition().for_seconds, 0);
}

TEST_F(Conditions, TheLongestHasEveryPartInOrder) {
  ASSERT_TRUE(
      Parse(" io:bytes_total{phase = read|write, device!=sda,fs=/scratch/*} sum rate "
            "by host, task <= -2.5e3 for 1.5m "))
      << why_;
  EXPECT_STREQ(condition().of.metric, "io:bytes_total");
  EXPECT_STREQ(condition().of.aggregator, "sum");
  EXPECT_EQ(condition().of.flags, SONDE_RATE);
  ASSERT_EQ(condition().of.filter_count, 5u);
  EXPECT_STREQ(filter(0).type, "literal_or");
  EXPECT_STREQ(filter(0).key, "phase");
  EXPECT_STREQ(filter(0).value, " read|write");
  EXPECT_STREQ(filter(1).type, "not_literal_or");
  EXPECT_STREQ(filter(1).value, "sda");
  EXPECT_STREQ(filter(2).type, "wildcard");
  EXPECT_STREQ(filter(2).value, "/scratch/*");
  EXPECT_EQ(filter(2).group_by, 0);
  EXPECT_STREQ(filter(3).key, "host");
  EXPECT_STREQ(filter(4).key, "task");
  EXPECT_EQ(filter(4).group_by, 1);
  EXPECT_EQ(condition().compare, SONDE_LESS_EQUAL);
  EXPECT_EQ(condition().bound, -2500);
  EXPECT_EQ(condition().for_seconds, 90);
}

TEST_F(Conditions, EveryComparisonAndUnit) {
  const std::pair<const char*, int> comparisons[] = {
      {">", SONDE_GREATER},     {">=", SONDE_GREATER_EQUAL}, {"<", SONDE_LESS},
      {"<=", SONDE_LESS_EQUAL}, {"==", SONDE_EQUAL},         {"!=", SONDE_NOT_EQUAL}};
  for (const auto& [text, compare] : comparisons) {
    ASSERT_TRUE(Parse((std::string("m max") + text + "3").c_str())) << why_;
    EXPECT_EQ(condition().compare, compare) << text;
  }
  const std::pair<const char*, double> units[] = {
      {"20ms", 0.02}, {"3s", 3}, {"2m", 120}, {"1h", 3600}};
  for (const auto& [text, seconds] : units) {
    ASSERT_TRUE(Parse((std::string("m > 1 for ") + text).c_str())) << why_;
    EXPECT_DOUBLE_EQ(condition().for_seconds, seconds) << text;
  }
}

TEST_F(Conditions, WhatIsWrongIsNamedWithItsPlace) {
  const std::pair<const char*, const char*> bad[] = {
      {"", "a metric's name at character 1"},
      {"9lives > 1", "a metric's name"},
      {"m", "a comparison (> >= < <= == !=) at character 2"},
      {"m ~ 3", "a comparison (> >= < <= == !=) at character 3"},
      {"m > x", "a number after the comparison at character 5"},
      {"m > nan", "a number after the comparison"},
      {"m > 1 for", "a time after for"},
      {"m > 1 for -3s", "a time after for"},
      {"m > 1 for 3 lightyears", "a unit of time"},
      {"m > 1 twice", "the end"},
      {"m median > 1", "a comparison"},
      {"m{a=b > 1", "} after the tags"},
      {"m{a} > 1", "= or != after a tag's name"},
      {"m{a=} > 1", "a tag's value"},
      {"m{a!=b*} > 1", "a value without * after !="},
      {"m by > 1", "a tag's name after by"},
  };
  for (const auto& [text, expected] : bad) {
    ASSERT_FALSE(Parse(text)) << text;
    EXPECT_THAT(why_, HasSubstr(std::string("expected ") + expected)) << text;
  }
  EXPECT_FALSE(Parse(nullptr));
  EXPECT_FALSE(Parse(std::string(ParsedCondition::kMaxText, 'm').c_str()));
  std::string many = "m by a";
  for (int i = 0; i < 16; ++i) many += ",a";
  EXPECT_FALSE(Parse((many + " > 1").c_str()));
  EXPECT_THAT(why_, HasSubstr("at most 16 tags"));
}

TEST_F(Conditions, NumbersDoNotDependOnTheLocale) {
  // Any that writes a comma; a machine without one has nothing to test.
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"}) {
    if (std::setlocale(LC_NUMERIC, name) != nullptr) break;
  }
  const bool parsed = Parse("m > 1.25");
  std::setlocale(LC_NUMERIC, "C");
  ASSERT_TRUE(parsed) << why_;
  EXPECT_EQ(condition().bound, 1.25);
}

// --- Whether it holds

class Holding : public testing::Test {
 protected:
  // The changes of one value a second, from second 1 on.
  std::string Run(const std::vector<double>& values) {
    std::string changes;
    for (const double value : values) changes += Take(++second_, value);
    return changes;
  }
  char Take(int second, double value) {
    const Change change = Advance(condition_, state_, second * kSecond, value);
    return change == Change::kNone ? '.' : change == Change::kBegins ? 'B' : 'E';
  }

  sonde_condition_t condition_ = {{}, SONDE_GREATER, 10, 0};
  GroupState state_ = {0, INT64_MIN, 0, false, false};
  int second_ = 0;
};

TEST_F(Holding, ItIsToldOnceEachTime) {
  EXPECT_EQ(Run({1, 10, 11, 12, 9, 8, 11, 11, 3}), "..B.E.B.E");
}

TEST_F(Holding, ForATimeEveryValueOfThatTimeCounts) {
  condition_.for_seconds = 3;
  EXPECT_EQ(Run({11, 11, 11, 11, 11, 9}), "...B.E");
  EXPECT_EQ(Run({11, 11, 11, 9, 11, 11, 11, 11}), ".......B") << "interrupted";
}

TEST_F(Holding, WhatIsMissingIsPassedOver) {
  condition_.for_seconds = 2;
  EXPECT_EQ(Run({11, std::nan(""), 11, std::nan(""), 9}), "..B.E");
}

TEST_F(Holding, ATickCountsOnceAndInOrder) {
  EXPECT_EQ(Take(5, 11), 'B');
  EXPECT_EQ(Take(5, 1), '.') << "again";
  EXPECT_EQ(Take(4, 1), '.') << "late";
  EXPECT_EQ(Take(6, 1), 'E');
}

TEST_F(Holding, EveryComparison) {
  const auto holds = [&](int compare, double value) {
    condition_.compare = compare;
    state_ = {0, INT64_MIN, 0, false, false};
    return Take(1, value) == 'B';
  };
  EXPECT_FALSE(holds(SONDE_GREATER, 10));
  EXPECT_TRUE(holds(SONDE_GREATER_EQUAL, 10));
  EXPECT_TRUE(holds(SONDE_LESS, 9.9));
  EXPECT_FALSE(holds(SONDE_LESS, 10));
  EXPECT_TRUE(holds(SONDE_LESS_EQUAL, 10));
  EXPECT_TRUE(holds(SONDE_EQUAL, 10));
  EXPECT_FALSE(holds(SONDE_EQUAL, 10.5));
  EXPECT_TRUE(holds(SONDE_NOT_EQUAL, 10.5));
  EXPECT_FALSE(holds(SONDE_NOT_EQUAL, 10));
}

TEST(Groups, AreToldApartByTheTagsThatAreGroupedByAlone) {
  const sonde_filter_t filters[] = {{nullptr, "kind", "x", 0}, {"wildcard", "host", "*", 1}};
  sonde_question_t question = {};
  question.filters = filters;
  question.filter_count = 2;
  const auto group = [&](const char* host, const char* kind) {
    const sonde_tag_t tags[] = {{"host", host}, {"kind", kind}};
    sonde_series_t series = {};
    series.tags = tags;
    series.tag_count = 2;
    return GroupOf(question, series);
  };
  EXPECT_EQ(group("n1", "a"), group("n1", "b"));
  EXPECT_NE(group("n1", "a"), group("n2", "a"));
  question.flags = SONDE_BY_TASK;
  question.filter_count = 0;
  EXPECT_EQ(group("n1", "a"), group("n2", "a"));
}

}  // namespace
}  // namespace sonde::client
