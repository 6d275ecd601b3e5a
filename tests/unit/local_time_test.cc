// Times for people, in zones that the tests set.
#include "profiles/report/local_time.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

namespace sonde::local_time_test {
namespace {

constexpr Nanos kSummer = 1'785'758'400 * kSecond;  // 2026-08-03T12:00:00Z

// The zone as TZ tells it, so that no file is needed.
class LocalTimes : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = ::getenv("TZ")) before_ = before, had_ = true;
    Set("CET-1CEST,M3.5.0,M10.5.0/3");
  }
  void TearDown() override {
    had_ ? ::setenv("TZ", before_.c_str(), 1) : ::unsetenv("TZ");
    ::tzset();
  }
  static void Set(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }

 private:
  std::string before_;
  bool had_ = false;
};

TEST_F(LocalTimes, HaveTheZoneOfTheirDay) {
  EXPECT_EQ(FormatLocalTime(kSummer), "2026-08-03 14:00:00 CEST");
  EXPECT_EQ(FormatLocalTime(kSummer + 120 * 86400 * kSecond), "2026-12-01 13:00:00 CET");
  EXPECT_EQ(ZoneName(kSummer), "CEST");
  Set("UTC0");
  EXPECT_EQ(FormatLocalTime(kSummer), "2026-08-03 12:00:00 UTC");
  Set("<+0545>-5:45");
  EXPECT_EQ(FormatLocalTime(kSummer), "2026-08-03 17:45:00 +0545");
}

TEST_F(LocalTimes, OfASpanTellWhatIsCommonOnce) {
  EXPECT_EQ(FormatLocalSpan(kSummer, kSummer + 21 * kSecond),
            "2026-08-03 14:00:00 to 14:00:21 CEST");
  EXPECT_EQ(FormatLocalSpan(kSummer, kSummer + 86400 * kSecond),
            "2026-08-03 14:00:00 to 2026-08-04 14:00:00 CEST");
  // Clocks are set back meanwhile.
  constexpr Nanos kBefore = 1'792'886'400 * kSecond;  // 2026-10-25T00:00:00Z
  EXPECT_EQ(FormatLocalSpan(kBefore, kBefore + 7200 * kSecond),
            "2026-10-25 02:00:00 CEST to 2026-10-25 03:00:00 CET");
}

TEST_F(LocalTimes, StandInNotesForTheStoredOnes) {
  EXPECT_EQ(LocalTimesIn("stops at 2026-08-03T12:00:00Z with it; again 2026-08-03T12:00:01Z"),
            "stops at 2026-08-03 14:00:00 CEST with it; again 2026-08-03 14:00:01 CEST");
  // No times, or none of any calendar.
  for (const char* text : {"", "2026-08-03", "2026-08-03T12:00:00", "x2026-13-03T12:00:00Zx",
                           "0000-00-00T00:00:00Z", "1969-12-31T23:59:59Z"}) {
    EXPECT_EQ(LocalTimesIn(text), text);
  }
  EXPECT_EQ(LocalTimesIn("12026-08-03T12:00:00Z"), "12026-08-03 14:00:00 CEST");
}

}  // namespace
}  // namespace sonde::local_time_test
