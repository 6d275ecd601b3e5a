// Zones of the tz database: what their files say, what is asked of them, and files that are
// damaged.
#include "core/time_zone.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sonde::time_zone_test {
namespace {

std::string Number(int64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// A file with these transitions (when, and the offset from then on) and this rule for later.
std::string File(const std::vector<std::pair<int64_t, int64_t>>& transitions,
                 const std::string& rule, int64_t first = 0, int64_t leaps = 0) {
  const std::string start = "TZif2" + std::string(15, '\0');
  std::string bytes = start + std::string(24, '\0') + start;
  const auto count = static_cast<int64_t>(transitions.size());
  for (const int64_t n : {int64_t{0}, int64_t{0}, leaps, count, count + 1, int64_t{4}}) {
    bytes += Number(n, 4);
  }
  for (const auto& [when, offset] : transitions) bytes += Number(when, 8);
  for (int64_t i = 0; i < count; ++i) bytes += Number(i + 1, 1);
  bytes += Number(first, 4) + Number(0, 2);
  for (const auto& [when, offset] : transitions) bytes += Number(offset, 4) + Number(0, 2);
  bytes += std::string("ABC\0", 4) + std::string(static_cast<size_t>(leaps) * 12, '\0');
  return bytes + "\n" + rule + "\n";
}

TimeZone Zone(const std::string& file) {
  Result<TimeZone> zone = TimeZone::Decode(file);
  EXPECT_TRUE(zone.ok()) << zone.status().message();
  return zone.ok() ? *zone : TimeZone();
}

constexpr int64_t kHour = 3600;
// 2026-03-29 01:00 and 2026-10-25 01:00 UTC.
constexpr int64_t kSpring = 1'774'746'000;
constexpr int64_t kAutumn = 1'792'890'000;

TEST(TimeZone, TransitionsHoldFromTheirSecondOn) {
  const TimeZone zone = Zone(File({{100, kHour}, {200, -kHour}}, "", 60));
  EXPECT_EQ(zone.OffsetAt(99), 60);
  EXPECT_EQ(zone.OffsetAt(100), kHour);
  EXPECT_EQ(zone.OffsetAt(199), kHour);
  EXPECT_EQ(zone.OffsetAt(200), -kHour);
  EXPECT_EQ(zone.OffsetAt(int64_t{1} << 50), -kHour);
}

TEST(TimeZone, TheRuleHoldsAfterTheLastTransition) {
  const TimeZone zone = Zone(File({{100, 0}}, "CET-1CEST,M3.5.0,M10.5.0/3"));
  EXPECT_EQ(zone.OffsetAt(50), 0);
  EXPECT_EQ(zone.OffsetAt(kSpring - 1), kHour);
  EXPECT_EQ(zone.OffsetAt(kSpring), 2 * kHour);
  EXPECT_EQ(zone.OffsetAt(kAutumn - 1), 2 * kHour);
  EXPECT_EQ(zone.OffsetAt(kAutumn), kHour);
}

TEST(TimeZone, RulesOfTheSouthAndOfOtherForms) {
  // Summer at the turn of the year, changes of half an hour.
  const TimeZone island = Zone(File({}, "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"));
  EXPECT_EQ(island.OffsetAt(1'767'225'600), 11 * kHour);         // 1 January 2026
  EXPECT_EQ(island.OffsetAt(1'782'864'000), 10 * kHour + 1800);  // 1 July
  EXPECT_EQ(Zone(File({}, "<-03>3")).OffsetAt(0), -3 * kHour);
  // Days of the year: 1 March is 60 with J in every year; 59 counts from 0, in 2028 29 February.
  const TimeZone julian = Zone(File({}, "AAA0BBB,J60/0,J300/0"));
  EXPECT_EQ(julian.OffsetAt(1'772'323'199), 0);      // 2026-02-28 23:59:59
  EXPECT_EQ(julian.OffsetAt(1'772'323'200), kHour);  // 2026-03-01
  EXPECT_EQ(julian.OffsetAt(1'835'481'599), 0);      // 2028-02-29 23:59:59
  EXPECT_EQ(julian.OffsetAt(1'835'481'600), kHour);  // 2028-03-01
  EXPECT_EQ(Zone(File({}, "AAA0BBB,59/0,300/0")).OffsetAt(1'835'395'200), kHour);
}

TEST(TimeZone, LocalTimesAreFoundAroundChanges) {
  const TimeZone zone = Zone(File({}, "CET-1CEST,M3.5.0,M10.5.0/3"));
  for (const int64_t time : {kSpring - 1, kSpring, kAutumn - kHour - 1, kAutumn - kHour,
                             kAutumn - 1, kAutumn + kHour, kAutumn + 9 * kHour}) {
    EXPECT_EQ(zone.FromLocal(time + zone.OffsetAt(time)), time);
  }
  // Shown twice: the first time. Left out: as if clocks had not been moved.
  EXPECT_EQ(zone.FromLocal(kAutumn + kHour), kAutumn - kHour);
  EXPECT_EQ(zone.FromLocal(kSpring + kHour + 1800), kSpring + 1800);
}

TEST(TimeZone, DamagedFilesAreRefused) {
  const std::string good = File({{100, kHour}, {200, 0}}, "CET-1CEST,M3.5.0,M10.5.0/3");
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(TimeZone::Decode(good.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(TimeZone::Decode(File({{200, 0}, {100, 0}}, "")).ok());
  EXPECT_FALSE(TimeZone::Decode(File({}, "", 0, 1)).ok()) << "leap seconds";
  EXPECT_FALSE(TimeZone::Decode(File({}, "", 8 * 86400)).ok());
  for (const char* rule : {"C-1", "CET", "CET-1CEST", "CET-1CEST,M13.1.0,M10.5.0",
                           "CET-1CEST,M3.5.0", "CET-1CEST,M0.5.0,M10.5.0", "CET-1CEST,J0,J5",
                           "CET-1CEST,366,1", "CET-1CEST,M3.5.0,M10.5.0,", "<CET-1", "CET-200"}) {
    EXPECT_FALSE(TimeZone::Decode(File({}, rule)).ok()) << rule;
  }
  std::string kind = good;
  kind[good.find("ABC") - 3 * 6 - 1] = 9;
  EXPECT_FALSE(TimeZone::Decode(kind).ok());
}

TEST(TimeZone, NamesStayInTheirFolder) {
  EXPECT_EQ(TimeZone::Load("")->OffsetAt(kSpring), 0);
  EXPECT_EQ(TimeZone::Load("UTC")->OffsetAt(kSpring), 0);
  EXPECT_EQ(TimeZone::Load("Europe/Berlin")->OffsetAt(kSpring), 2 * kHour);
  for (const char* name : {"Nowhere", "Europe", "../../../etc/passwd", "/etc/localtime", "a b",
                           "Europe/Berlin.", "tzdata.zi"}) {
    const auto zone = TimeZone::Load(name);
    ASSERT_FALSE(zone.ok()) << name;
    EXPECT_NE(zone.status().message().find("there is no time zone"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace sonde::time_zone_test
