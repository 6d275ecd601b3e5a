#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "profiles/json/writer.h"
#include "profiles/model/profile.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_json_test {
namespace {

using testing::HasSubstr;

Profile FullProfile() {
  Profile p;
  p.job = TestJob();
  p.job.array_job = "120";
  p.job.array_task = "3";
  p.job.command = "./heat --name \"a\\b\"\t\x01";
  p.job.exit_status = 256;
  p.job.state = EndState::kFailed;
  p.job.end = p.job.start + 5;
  p.job.coverage = {100, 99};
  p.job.presence = {{10, 2, 2, 0, 0}, {30, 0, 0, 2, 0}, {40, 2, 2, 0, 20}};
  p.job.presence_from = 20;
  p.job.nodes[1].lost = true;
  p.job.nodes[1].end_in_rows = 40;
  p.job.nodes[1].note = "link lost: Connection reset by peer";
  p.job.notes = {"one", "zwei \xe2\x82\xac"};
  p.job.tags = {{"campaign", "winter"}, {"keep", ""}};
  p.job.environment = {{"OMP_PLACES", "{0}:4"}};
  FootprintEntry e;
  e.series =
      TestSeries("grid_points", MetricType::kCounter, {{"phase", "W\xc3\xa4rme"}}, Reduction::kMax);
  e.ticks = UINT64_MAX;
  e.last = 0.1 + 0.2;
  e.mean = 5e-324;
  e.min = -1.7976931348623157e308;
  e.max = 9007199254740993.0;
  e.min_owner = {1, 7};
  e.max_owner = {0, Owner::kNobody};
  p.footprint.push_back(e);
  e.series.metric.name = "load";
  e.series.metric.spread = true;
  e.spread = {{1, 2, 3, 4.5}, {0.1, 0.2, 0.3, 0.4}};
  p.footprint.push_back(e);
  p.cost = {0.25, 5e6, 1e5, 2e5};
  return p;
}

TEST(ProfileJson, ComesBackExactly) {
  const Profile p = FullProfile();
  const std::string json = ProfileToJson(p);
  const auto back = ProfileFromJson(json);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->footprint, p.footprint);
  EXPECT_EQ(back->job.command, p.job.command);
  EXPECT_EQ(back->job.start, p.job.start);
  EXPECT_EQ(back->job.state, EndState::kFailed);
  EXPECT_EQ(back->job.coverage.got, 99u);
  EXPECT_EQ(back->job.presence, p.job.presence);
  EXPECT_EQ(back->job.presence_from, 20);
  EXPECT_EQ(back->job.nodes[1].note, p.job.nodes[1].note);
  EXPECT_EQ(back->job.notes, p.job.notes);
  EXPECT_EQ(back->job.tags, p.job.tags);
  EXPECT_EQ(back->job.environment, p.job.environment);
  EXPECT_EQ(back->cost.cpu_seconds, 0.25);
  EXPECT_EQ(ProfileToJson(*back), json);
}

TEST(ProfileJson, EveryDoubleIsExact) {
  Profile p = FullProfile();
  uint64_t bits = 88172645463325252u;
  for (int i = 0; i < 20'000; ++i) {
    bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
    const double value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) continue;
    p.cost.cpu_seconds = value;
    const auto back = ProfileFromJson(ProfileToJson(p));
    ASSERT_TRUE(back.ok());
    ASSERT_EQ(back->cost.cpu_seconds, value);
    if (i == 200) p.job.nodes.clear(), p.footprint.clear();
  }
}

TEST(ProfileJson, WhatIsNotKnownIsNull) {
  Profile p = FullProfile();
  p.footprint[0].mean = std::nan("");
  p.footprint[0].max = std::numeric_limits<double>::infinity();
  const std::string json = ProfileToJson(p);
  EXPECT_THAT(json, HasSubstr("\"mean\":null"));
  const auto back = ProfileFromJson(json);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(std::isnan(back->footprint[0].mean));
  EXPECT_TRUE(std::isnan(back->footprint[0].max));
}

TEST(ProfileJson, TextThatIsNotUtf8CanBeReadBack) {
  JobDescription job = TestJob();
  job.name = "a\xff\xc3(\xed\xa0\x80z";
  const auto back = DescriptionFromJson(DescriptionToJson(job));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(back->name.starts_with("a\xef\xbf\xbd"));
  EXPECT_TRUE(back->name.ends_with("z"));
}

// With which codes for terminals begin, or that turn the text around them: they are there, escaped.
TEST(ProfileJson, WhatATerminalObeysIsEscaped) {
  JobDescription job = TestJob();
  job.name =
      "\x1b[m\x7f\xc2\x9b"
      "31m\xe2\x80\xae\xe2\x81\xa6"
      "gr\xc3\xbc\xc3\x9f";
  const std::string json = DescriptionToJson(job);
  EXPECT_NE(json.find("\\u001b[m\\u007f\\u009b31m\\u202e\\u2066gr\xc3\xbc\xc3\x9f"),
            std::string::npos)
      << json;
  const auto back = DescriptionFromJson(json);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->name, job.name);
}

TEST(ProfileJson, UnknownFieldsArePassedOver) {
  const auto job = DescriptionFromJson(R"({"job":"7","step":"0","colour":{"of":["the",1]}})");
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->id.job, "7");
}

TEST(ProfileJson, HostileTextIsRefusedAndNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "no JSON"},
      {"[]", "expected an object"},
      {"{\"level\":2} trailing", "no JSON"},
      {R"({"level":300})", "level"},
      {R"({"level":"2"})", "level"},
      {R"({"uid":-1})", "uid"},
      {R"({"uid":4294967296})", "uid"},
      {R"({"period":0})", "period"},
      {R"({"start":-5})", "start"},
      {R"({"start":1e300})", "start"},
      {R"({"expected_nodes":1.5})", "expected_nodes"},
      {R"({"nodes":{}})", "nodes"},
      {R"({"nodes":[1]})", "nodes"},
      {R"({"notes":[1]})", "notes"},
      {R"({"coverage":[]})", "coverage"},
      {R"({"presence":{}})", "presence"},
      {R"({"presence":[5]})", "presence"},
      {R"({"presence":[{"first":-1}]})", "first"},
      {R"({"presence":[{"first":5,"nodes":-1}]})", "nodes"},
      {R"({"presence":[{"first":5,"nodes":4294967296}]})", "nodes"},
      {R"({"presence":[{"first":5,"back_from":6}]})", "back_from"},
      {R"({"presence":[{"first":5},{"first":5}]})", "presence"},
      {R"({"presence_from":-1})", "presence_from"},
      {"{\"name\":\"" + std::string(100'000, 'x') + "\"}", "name"},
      {std::string(100'000, '['), "no JSON"},
      {"{\"name\":\"\xff\"}", "no JSON"},
  };
  for (const auto& [text, message] : cases) {
    const auto job = DescriptionFromJson(text);
    ASSERT_FALSE(job.ok()) << text.substr(0, 60);
    EXPECT_THAT(std::string(job.status().message()), HasSubstr(message)) << text.substr(0, 60);
    EXPECT_EQ(job.status().code(), Code::kCorrupt);
  }
}

TEST(ProfileJson, HostileFootprintsAreRefused) {
  const char* cases[] = {
      "{}",
      R"({"job":1})",
      R"({"job":{},"footprint":[{}]})",
      R"({"job":{},"footprint":[{"metric":"a b"}]})",
      R"({"job":{},"footprint":[{"metric":"m","type":3}]})",
      R"({"job":{},"footprint":[{"metric":"m","reduction":[]}]})",
      R"({"job":{},"footprint":[{"metric":"m","tags":{"a b":"c"}}]})",
      R"({"job":{},"footprint":[{"metric":"m","tags":{"a":1}}]})",
      R"({"job":{},"footprint":[{"metric":"m","last":"1"}]})",
      R"({"job":{},"footprint":[{"metric":"m","min_owner":{"node":-1}}]})",
      R"({"job":{},"cost":3})",
  };
  for (const char* text : cases) EXPECT_FALSE(ProfileFromJson(text).ok()) << text;
  EXPECT_TRUE(ProfileFromJson(R"({"job":{},"footprint":[{"metric":"m"}],"cost":{}})").ok());
}

}  // namespace
}  // namespace sonde::profiles_json_test
