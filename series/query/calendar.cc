#include "series/query/calendar.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace sonde {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;
using Unit = Calendar::Unit;

constexpr int64_t kDaySeconds = 86400;
constexpr int64_t kYearMonths = 12;

int64_t FloorTo(int64_t value, int64_t step) {
  const int64_t rest = value % step;
  return value - (rest < 0 ? rest + step : rest);
}

year_month_day DateOf(int64_t local) {
  return year_month_day(sys_days(std::chrono::days(FloorTo(local, kDaySeconds) / kDaySeconds)));
}

// Midnight of the first of a month, which is counted from January of the year 0.
int64_t MonthStart(int64_t month) {
  using namespace std::chrono;
  const auto date = year(static_cast<int>(month / kYearMonths)) /
                    std::chrono::month(static_cast<unsigned>(month % kYearMonths) + 1) / 1;
  return sys_days(date).time_since_epoch().count() * kDaySeconds;
}

int64_t YearStart(int64_t local) { return MonthStart(int{DateOf(local).year()} * kYearMonths); }

int64_t MonthOf(int64_t local) {
  const year_month_day date = DateOf(local);
  return int{date.year()} * kYearMonths + unsigned{date.month()} - 1;
}

// A unit that is always of one length, and the start from which its multiples are counted.
struct Fixed {
  Nanos length = kMillisecond;
  int64_t whole = 1000;  // units in one of the next larger unit, from which they are counted
  int64_t near = 1;      // that, in seconds
  int64_t far = 60;      // else, of a number that is no part of it, this; 0: the month
};

Fixed FixedUnit(Unit unit) {
  switch (unit) {
    case Unit::kSeconds:
      return {kSecond, 60, 60, 3600};
    case Unit::kMinutes:
      return {60 * kSecond, 60, 3600, kDaySeconds};
    case Unit::kHours:
      return {3600 * kSecond, 24, kDaySeconds, 0};
    default:
      return {};
  }
}

class Walk {
 public:
  Walk(const Calendar& calendar, const TimeZone& zone) : calendar_(calendar), zone_(zone) {}

  // The edges from the bucket that holds `start` on, until `next` says that they are enough.
  void Run(Nanos start, const std::function<bool(Nanos)>& next) const {
    const int64_t seconds = start / kSecond;
    const int64_t local = seconds + zone_.OffsetAt(seconds);
    if (calendar_.unit <= Unit::kHours) return RunFixed(start, local, next);
    // By clocks and calendars: days, or months.
    const int64_t n = calendar_.count;
    const bool months = calendar_.unit >= Unit::kMonths;
    int64_t at = FirstOf(local);
    const int64_t step = calendar_.unit == Unit::kYears   ? n * kYearMonths
                         : calendar_.unit == Unit::kWeeks ? 7 * n * kDaySeconds
                         : months                         ? n
                                                          : n * kDaySeconds;
    while (next(zone_.FromLocal(months ? MonthStart(at) : at) * kSecond)) at += step;
  }

 private:
  void RunFixed(Nanos start, int64_t local, const std::function<bool(Nanos)>& next) const {
    const Fixed unit = FixedUnit(calendar_.unit);
    const int64_t from = unit.whole % calendar_.count == 0 ? FloorTo(local, unit.near)
                         : unit.far != 0                   ? FloorTo(local, unit.far)
                                                           : MonthStart(MonthOf(local));
    const Nanos step = calendar_.count * unit.length;
    const Nanos base = zone_.FromLocal(from) * kSecond;
    for (Nanos at = base + FloorTo(start - base, step); next(at); at += step) {
    }
  }
  // Midnight of a day, or a month.
  int64_t FirstOf(int64_t local) const {
    const int64_t n = calendar_.count;
    const int64_t day = FloorTo(local, kDaySeconds);
    switch (calendar_.unit) {
      case Unit::kWeeks: {
        constexpr int64_t kSunday = 3 * kDaySeconds;  // the first of 1970
        return FloorTo(day - kSunday, 7 * kDaySeconds) + kSunday;
      }
      case Unit::kMonths:
        return MonthOf(local) / kYearMonths * kYearMonths +
               FloorTo(MonthOf(local) % kYearMonths, n);
      case Unit::kYears:
        return MonthOf(local) / kYearMonths * kYearMonths;
      default:
        return YearStart(local) + FloorTo(day - YearStart(local), n * kDaySeconds);
    }
  }

  const Calendar& calendar_;
  const TimeZone& zone_;
};

}  // namespace

Nanos Calendar::BucketOf(Nanos time) const {
  return *std::prev(std::upper_bound(edges.begin(), edges.end(), time));
}

Result<std::vector<Nanos>> CalendarEdges(const Calendar& calendar, const TimeZone& zone,
                                         Nanos start, Nanos end) {
  std::vector<Nanos> edges;
  Walk(calendar, zone).Run(start, [&](Nanos at) {
    at = std::max<Nanos>(at, 0);  // there are no points before 1970
    // A day that clocks leave out, as when a country crosses the date line, has no bucket.
    if (edges.empty() || at > edges.back()) edges.push_back(at);
    return at <= end && edges.size() <= Calendar::kMaxBuckets;
  });
  if (edges.back() <= end) {
    return Status(Code::kLimit,
                  fmt::format("downsampling by the calendar gives more than {} intervals; choose "
                              "longer ones or a shorter range",
                              Calendar::kMaxBuckets));
  }
  return edges;
}

bool EdgesHold(const std::vector<Nanos>& edges, Nanos start, Nanos end) {
  const bool ascending = std::adjacent_find(edges.begin(), edges.end(),
                                            [](Nanos a, Nanos b) { return a >= b; }) == edges.end();
  return edges.size() >= 2 && edges.size() <= Calendar::kMaxBuckets + 1 && ascending &&
         edges.front() >= 0 && edges.front() <= start && edges.back() > end;
}

}  // namespace sonde
