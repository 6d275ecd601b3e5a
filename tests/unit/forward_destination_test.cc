// Destinations as they are written in sonde.conf.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "forward/formats/destination.h"
#include "forward/formats/line.h"
#include "profiles_fixture.h"

namespace sonde::forward {
namespace {

using testing::HasSubstr;

Destination Parse(std::string_view text) {
  const auto parsed = ParseDestination(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() ? *parsed : Destination();
}

std::string Refusal(std::string_view text) {
  const auto parsed = ParseDestination(text);
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

TEST(DestinationTest, ThePathTellsTheProtocol) {
  EXPECT_EQ(Parse("http://h:9090/api/v1/write").protocol, Protocol::kPrometheus);
  EXPECT_EQ(Parse("https://h/api/v1/push").protocol, Protocol::kPrometheus);
  EXPECT_EQ(Parse("http://h/api/v1/receive").protocol, Protocol::kPrometheus);
  EXPECT_EQ(Parse("http://h:8086/write?db=x").protocol, Protocol::kInflux);
  EXPECT_EQ(Parse("http://h:8086/api/v2/write?org=a&bucket=b").protocol, Protocol::kInflux);
  EXPECT_EQ(Parse("http://h:4242/api/put").protocol, Protocol::kOpenTsdb);
  EXPECT_EQ(Parse("influx+http://h/x").protocol, Protocol::kInflux);
  EXPECT_EQ(Parse("steps.om").protocol, Protocol::kOpenMetrics);
  EXPECT_EQ(Parse("-").url, "-");
  EXPECT_EQ(Parse("file:/tmp/x").url, "/tmp/x");
  EXPECT_EQ(Parse("http://h:4242/api/put").url, "http://h:4242/api/put?details");
  EXPECT_EQ(Parse("http://h:4242/api/put?sync").url, "http://h:4242/api/put?sync&details");
  // As it was written: who sends it escapes nothing, and records on disk carry it.
  EXPECT_EQ(Parse("http://h/api/v1/write?x={a}|[b]").url, "http://h/api/v1/write?x={a}|[b]");
  EXPECT_EQ(Parse("http://[fe80::1%25eth0]/api/v1/write").url,
            "http://[fe80::1%25eth0]/api/v1/write");
}

TEST(DestinationTest, OptionsFollow) {
  const Destination to = Parse(
      "http://h/api/v1/write  scope=node metrics=node_*,!node_disk_* batch=7 token_file=/t "
      "ca_file=/c label.site=here");
  EXPECT_EQ(to.scope, SeriesScope::kNodes);
  EXPECT_EQ(to.batch, 7u);
  EXPECT_EQ(to.token_file, "/t");
  EXPECT_EQ(to.ca_file, "/c");
  EXPECT_EQ(to.labels, (Tags{{"site", "here"}}));
  EXPECT_TRUE(Wants(to, "node_load1"));
  EXPECT_FALSE(Wants(to, "node_disk_read_bytes_total"));
  EXPECT_FALSE(Wants(to, "task_processes"));
}

TEST(DestinationTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(Refusal(""), HasSubstr("expected a URL"));
  EXPECT_THAT(Refusal("gopher://h"), HasSubstr("http://"));
  EXPECT_THAT(Refusal("http://h/somewhere"), HasSubstr("prometheus+, influx+ or opentsdb+"));
  EXPECT_THAT(Refusal("http://a:b@h/api/v1/write"), HasSubstr("password_file"));
  EXPECT_EQ(Refusal("http://h/api/v1/write?x=a@b"), "");
  EXPECT_THAT(Refusal("http://h/api/v1/write?x=\xc3\xb6"), HasSubstr("expected a URL"));
  const std::string url = "http://h/api/v1/write ";
  EXPECT_THAT(Refusal(url + "scope=all"), HasSubstr("job or node"));
  EXPECT_THAT(Refusal(url + "batch=0"), HasSubstr("1 to"));
  EXPECT_THAT(Refusal(url + "batch=1e9"), HasSubstr("1 to"));
  EXPECT_THAT(Refusal(url + "metrics=a,,b"), HasSubstr("between commas"));
  EXPECT_THAT(Refusal(url + "token_file=t"), HasSubstr("absolute"));
  EXPECT_THAT(Refusal(url + "token=secret"), HasSubstr("expected scope="));
  EXPECT_THAT(Refusal(url + "token_file=/a password_file=/b"), HasSubstr("not both"));
}

TEST(DestinationTest, TheIdIsThatOfWhatIsSent) {
  const std::string url = "http://h/api/v1/write";
  EXPECT_EQ(Parse(url).Id(), Parse(url + " batch=5 token_file=/t").Id());
  EXPECT_NE(Parse(url).Id(), Parse(url + " scope=node").Id());
  EXPECT_NE(Parse(url).Id(), Parse(url + " metrics=a*").Id());
  EXPECT_NE(Parse(url).Id(), Parse(url + " label.a=b").Id());
  // Records on disk carry it.
  EXPECT_EQ(Parse(url).Id(), "462ee9940664d4a9");
}

TEST(GlobTest, MatchesAsShellsDo) {
  EXPECT_TRUE(MatchesGlob("*", ""));
  EXPECT_TRUE(MatchesGlob("a*b*c", "axxbyyc"));
  EXPECT_FALSE(MatchesGlob("a*b*c", "axxbyy"));
  EXPECT_TRUE(MatchesGlob("a?c", "abc"));
  EXPECT_FALSE(MatchesGlob("a?c", "ac"));
  EXPECT_FALSE(MatchesGlob("", "a"));
  // No exponential time.
  EXPECT_FALSE(MatchesGlob(std::string(60, '*') + "b", std::string(10000, 'a')));
}

TEST(SecretTest, IsReadFromAFileThatOthersCannotRead) {
  const TempDir dir;
  const std::string path = dir.path() + "/token";
  std::ofstream(path) << "s3cret\nmore\n";
  for (const mode_t mode : {0600, 0400, 0640}) {
    ::chmod(path.c_str(), mode);
    const auto secret = ReadSecret(path);
    ASSERT_TRUE(secret.ok()) << secret.status().message();
    EXPECT_EQ(*secret, "s3cret");
  }
  for (const mode_t mode : {0644, 0604, 0602, 0620, 0660}) {
    ::chmod(path.c_str(), mode);
    const auto secret = ReadSecret(path);
    ASSERT_FALSE(secret.ok()) << mode;
    EXPECT_THAT(std::string(secret.status().message()), HasSubstr("chmod"));
  }
  EXPECT_FALSE(ReadSecret(dir.path()).ok());
  EXPECT_FALSE(ReadSecret(dir.path() + "/none").ok());
  ::chmod(path.c_str(), 0600);
  std::ofstream(path) << "bad\x01header";
  EXPECT_FALSE(ReadSecret(path).ok());
  EXPECT_EQ(*ReadSecret(""), "");
}

TEST(LineTest, HasPrometheusNamesAndTheStepsLabels) {
  const JobDescription job = TestJob();
  const Series series = TestSeries("app.heat-1", MetricType::kGauge, {{"a", "b"}});
  const Line line = MakeLine(series, "_spread", job, Parse("-"));
  EXPECT_EQ(line.name, "app_heat_1_spread");
  EXPECT_EQ(line.labels,
            (Tags{{"a", "b"}, {"cluster", "frost"}, {"job", "123.0"}, {"user", "ada"}}));
  EXPECT_EQ(ToMillis(5 * kMillisecond), 5);
  EXPECT_EQ(ToMillis(5 * kMillisecond + 1), 6);
}

}  // namespace
}  // namespace sonde::forward
