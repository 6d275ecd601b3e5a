// What `sonde join` and /join may be pointed at.
#include "web/source/scrape_target.h"

#include <gtest/gtest.h>

namespace sonde::web::scrape_target_test {
namespace {

TEST(ScrapeTarget, FillsInWhatIsUsual) {
  const auto url = [](std::string_view text) { return ParseScrapeTarget(text).value().Url(); };
  EXPECT_EQ(url("localhost:9100"), "http://localhost:9100/metrics");
  EXPECT_EQ(url("http://n1"), "http://n1:80/metrics");
  EXPECT_EQ(url("http://n1/"), "http://n1:80/");
  EXPECT_EQ(url("n1:1/a?b=c:d"), "http://n1:1/a?b=c:d");
  EXPECT_EQ(url("[::1]:9100"), "http://[::1]:9100/metrics");
  EXPECT_EQ(url("http://[fe80::1%25eth0]/x"), "http://[fe80::1%25eth0]:80/x");
  EXPECT_EQ(ParseScrapeTarget("[::1]:9100").value().Instance(), "[::1]:9100");
  // As it stands: exporters have such parameters, and it is the exporter that reads them.
  EXPECT_EQ(url("n1:1/probe?m[]=a{b=c}|\"d\""), "http://n1:1/probe?m[]=a{b=c}|\"d\"");
  // What looks like an address and is none is a name that nobody has.
  EXPECT_EQ(url("1.2.3.999:1"), "http://1.2.3.999:1/metrics");
  EXPECT_EQ(url("node_1:1"), "http://node_1:1/metrics");
}

TEST(ScrapeTarget, SaysWhatWasExpected) {
  for (const char* wrong :
       {"", "localhost", ":9100", "localhost:", "localhost:0", "localhost:65536",
        "localhost:99999999", "localhost:9x", "a b:1", "a:1/with blank", "::1:9100", "[::1",
        "[::1]9100", "[]:1", "a\n:1", "user@host:1"}) {
    const auto target = ParseScrapeTarget(wrong);
    ASSERT_FALSE(target.ok()) << wrong;
    EXPECT_EQ(target.status().code(), Code::kInvalid) << wrong;
    EXPECT_NE(target.status().message().find("HOST:PORT"), std::string::npos) << wrong;
  }
  EXPECT_EQ(ParseScrapeTarget("https://a:1").status().code(), Code::kUnsupported);
}

TEST(ScrapeTarget, AUrlIsCheckedAsWell) {
  for (const char* wrong :
       {"http://", "http://a:/m", "http://a:0/m", "http://a:99999999/m", "http://user@a:1/m",
        "http://a:1/\xc3\xb6", "http://a%zz@b:1/m", "http://a,b:1/m"}) {
    EXPECT_EQ(ParseScrapeTarget(wrong).status().code(), Code::kInvalid) << wrong;
  }
}

TEST(ScrapeTarget, APeriodIsAsTheUserSaidOrAnError) {
  EXPECT_EQ(ParseScrapePeriod("500").value(), 500 * kMillisecond);
  EXPECT_EQ(ParseScrapePeriod("5s").value(), 5 * kSecond);
  EXPECT_EQ(ParseScrapePeriod("100ms").value(), 100 * kMillisecond);
  EXPECT_EQ(ParseScrapePeriod("1h").value(), 3600 * kSecond);
  for (const char* wrong : {"", "soon", "99ms", "2h", "-1", "0", "5"}) {
    const auto period = ParseScrapePeriod(wrong);
    ASSERT_FALSE(period.ok()) << wrong;
    EXPECT_NE(period.status().message().find("100ms to 1h"), std::string::npos) << wrong;
  }
}

TEST(ScrapeTarget, ReachesTheNodeAsItWasAskedFor) {
  ScrapeTarget target = ParseScrapeTarget("[::1]:9100/a?b=c").value();
  target.every = 250 * kMillisecond;
  const ScrapeTarget decoded = DecodeScrape(EncodeScrape(target)).value();
  EXPECT_EQ(decoded.Url(), target.Url());
  EXPECT_EQ(decoded.every, target.every);
  for (const char* damaged :
       {"", "http://a:1/m", "http://a:1/m ", "http://a:1/m 1x", "http://a:1/m 99",
        "http://a:1/m 3600001", " 100", "a 100", "http://a:1/m 100 100"}) {
    EXPECT_EQ(DecodeScrape(damaged).status().code(), Code::kCorrupt) << damaged;
  }
}

}  // namespace
}  // namespace sonde::web::scrape_target_test
