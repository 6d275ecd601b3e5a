// Keys of /push, /set and /accumulate, and the values on their way to a node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "web/source/pushed_value.h"

namespace sonde::web::web_pushed_value_test {
namespace {

using testing::HasSubstr;

TEST(PushedKey, IsANameWithOrWithoutTags) {
  EXPECT_EQ(ParsePushedKey("parts_total")->metric.name, "parts_total");
  EXPECT_EQ(ParsePushedKey("parts_total")->metric.type, MetricType::kCounter);
  const auto tagged = ParsePushedKey(R"(io{path="/a b",op="read"})");
  ASSERT_TRUE(tagged.ok()) << tagged.status().message();
  EXPECT_EQ(tagged->metric.name, "io");
  EXPECT_EQ(tagged->tags, (Tags{{"op", "read"}, {"path", "/a b"}}));
}

TEST(PushedKey, WhatIsNoneIsRefusedWithWhatWasExpected) {
  for (const char* wrong : {"", "{}", "{a=\"b\"}", "a b", "a{", "a{b}", "a{b=}", "a{b=\"c}",
                            "a{b=\"c\"", "a{b=\"c\"}x", "1a", "a\n"}) {
    const auto key = ParsePushedKey(wrong);
    ASSERT_FALSE(key.ok()) << wrong;
    EXPECT_FALSE(key.status().message().empty()) << wrong;
  }
  EXPECT_THAT(std::string(ParsePushedKey(std::string(kMaxPushedKey + 1, 'a')).status().message()),
              HasSubstr("at most 1024 bytes"));
  for (const char* own : {"host", "job", "task", "stat"}) {
    const auto key = ParsePushedKey(std::string("a{") + own + "=\"x\"}");
    ASSERT_FALSE(key.ok()) << own;
    EXPECT_THAT(std::string(key.status().message()), HasSubstr("given by Sonde itself")) << own;
  }
  std::string many = "a{";
  for (int i = 0; i < 9; ++i) many += "k" + std::to_string(i) + "=\"v\",";
  many.back() = '}';
  EXPECT_THAT(std::string(ParsePushedKey(many).status().message()), HasSubstr("at most 8 tags"));
}

PushedValue Value() {
  PushedValue value;
  value.kind = PushedValue::Kind::kAdd;
  value.series = *ParsePushedKey(R"(io{path="/a"})");
  value.series.metric.help = "Bytes done.";
  value.value = -0.5;
  return value;
}

TEST(PushedValue, ReachesTheNodeAsItWas) {
  const auto decoded = DecodePushed(EncodePushed(Value()));
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(*decoded, Value());
}

TEST(PushedValue, WhatIsCutOffOrTooLongIsRefused) {
  const std::string bytes = EncodePushed(Value());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodePushed(bytes.substr(0, size)).status().code(), Code::kCorrupt) << size;
  }
  EXPECT_FALSE(DecodePushed(bytes + "x").ok());
}

TEST(PushedValue, NothingThatIsNoValueGetsIn) {
  const auto refused = [](auto change) {
    PushedValue value = Value();
    change(value);
    return !DecodePushed(EncodePushed(value)).ok();
  };
  EXPECT_TRUE(refused([](PushedValue& v) { v.value = std::nan(""); }));
  EXPECT_TRUE(refused([](PushedValue& v) { v.value = std::numeric_limits<double>::infinity(); }));
  EXPECT_TRUE(refused([](PushedValue& v) { v.kind = static_cast<PushedValue::Kind>(3); }));
  EXPECT_TRUE(refused([](PushedValue& v) { v.series.metric.type = MetricType::kHistogram; }));
  EXPECT_TRUE(refused([](PushedValue& v) { v.series.metric.name = "a b"; }));
  EXPECT_TRUE(refused([](PushedValue& v) { v.series.metric.help = "two\nlines"; }));
  EXPECT_TRUE(refused([](PushedValue& v) { v.series.tags.Set("host", "n1"); }));
}

}  // namespace
}  // namespace sonde::web::web_pushed_value_test
