#include "series/query/query.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/text/ascii.h"

namespace sonde {
namespace {

constexpr Nanos kHour = 3600 * kSecond;
constexpr Nanos kDay = 24 * kHour;

// In the order of Calendar::Unit.
constexpr std::array<std::pair<std::string_view, Nanos>, 8> kUnits = {{
    {"ms", kMillisecond},
    {"s", kSecond},
    {"m", 60 * kSecond},
    {"h", kHour},
    {"d", kDay},
    {"w", 7 * kDay},
    {"n", 30 * kDay},
    {"y", 365 * kDay},
}};

constexpr std::array<std::pair<std::string_view, Downsample::Fill>, 4> kFills = {{
    {"none", Downsample::Fill::kNone},
    {"null", Downsample::Fill::kNull},
    {"nan", Downsample::Fill::kNan},
    {"zero", Downsample::Fill::kZero},
}};

constexpr std::array<std::pair<std::string_view, TagFilter::Type>, 8> kFilterTypes = {{
    {"literal_or", TagFilter::Type::kLiteralOr},
    {"not_literal_or", TagFilter::Type::kNotLiteralOr},
    {"iliteral_or", TagFilter::Type::kILiteralOr},
    {"not_iliteral_or", TagFilter::Type::kNotILiteralOr},
    {"wildcard", TagFilter::Type::kWildcard},
    {"iwildcard", TagFilter::Type::kIWildcard},
    {"regexp", TagFilter::Type::kRegexp},
    {"not_key", TagFilter::Type::kNotKey},
}};

// "0all", "all"
bool IsAll(std::string_view lower) {
  return lower.ends_with("all") && lower.find_first_not_of("0123456789") == lower.size() - 3;
}

// "30s", "1dc" or "0all". False for what is none of these.
bool ParseInterval(std::string_view text, bool calendar, Downsample& how) {
  std::string lower = Lower(text);
  how.interval = 0;
  if (IsAll(lower)) return true;
  if (lower.ends_with('c')) {
    lower.pop_back();
    calendar = true;
  }
  Nanos amount = 0;
  const auto [unit, error] = std::from_chars(lower.data(), lower.data() + lower.size(), amount);
  if (error != std::errc() || amount <= 0) return false;
  const std::string_view name(unit, lower.data() + lower.size());
  for (size_t i = 0; i < kUnits.size(); ++i) {
    if (kUnits[i].first != name) continue;
    if (__builtin_mul_overflow(amount, kUnits[i].second, &how.interval)) return false;
    if (calendar) {
      auto of = std::make_shared<Calendar>();
      of->count = amount;
      of->unit = static_cast<Calendar::Unit>(i);
      how.calendar = std::move(of);
    }
    return how.interval <= kMaxQueryTime;
  }
  return false;
}

Status BadDownsample(std::string_view text, std::string_view why) {
  return {Code::kInvalid,
          fmt::format("'{}' is no downsampling: {}; expected interval-function[-fill], such as "
                      "1m-avg or 30s-max-nan",
                      text.substr(0, 64), why)};
}

}  // namespace

const std::vector<std::string_view>& AggregatorNames() {
  static const std::vector<std::string_view> names = {
      "sum",    "avg",       "min",    "max",    "count",  "none",   "zimsum", "pfsum",   "mimmin",
      "mimmax", "squareSum", "dev",    "median", "mult",   "diff",   "first",  "last",    "p50",
      "p75",    "p90",       "p95",    "p99",    "p999",   "ep50r3", "ep75r3", "ep90r3",  "ep95r3",
      "ep99r3", "ep999r3",   "ep50r7", "ep75r7", "ep90r7", "ep95r7", "ep99r7", "ep999r7", "p5"};
  return names;
}

double PercentileOf(Aggregator aggregator) {
  switch (aggregator) {
    case Aggregator::kP5:
      return 0.05;
    case Aggregator::kP50:
      return 0.5;
    case Aggregator::kP75:
      return 0.75;
    case Aggregator::kP90:
      return 0.9;
    case Aggregator::kP95:
      return 0.95;
    case Aggregator::kP99:
      return 0.99;
    case Aggregator::kP999:
      return 0.999;
    default:
      return 0;
  }
}

Result<Aggregator> ParseAggregator(std::string_view name) {
  const auto& names = AggregatorNames();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) {
    return Status(Code::kInvalid, fmt::format("No such aggregator: '{}'; expected one of {}",
                                              name.substr(0, 64), fmt::join(names, ", ")));
  }
  return static_cast<Aggregator>(at - names.begin());
}

std::string_view ToString(Aggregator aggregator) {
  return AggregatorNames()[static_cast<size_t>(aggregator)];
}

Result<Downsample> ParseDownsample(std::string_view text, bool calendar) {
  std::string_view rest = text;
  if (rest.ends_with('-')) rest.remove_suffix(1);
  const size_t first = rest.find('-');
  if (first == std::string_view::npos) return BadDownsample(text, "it names no function");
  const size_t second = rest.find('-', first + 1);

  Downsample how;
  if (!ParseInterval(rest.substr(0, first), calendar, how)) {
    return BadDownsample(text,
                         "the interval is a number above 0 with a unit of ms, s, m, h, d, w, "
                         "n, y, with a c behind it for the calendar's, or it is 0all");
  }
  const Result<Aggregator> function = ParseAggregator(
      rest.substr(first + 1, second == std::string_view::npos ? second : second - first - 1));
  if (!function.ok()) return BadDownsample(text, function.status().message());
  if (*function == Aggregator::kNone) return BadDownsample(text, "none cannot downsample");
  how.function = *function;
  if (second != std::string_view::npos) {
    const std::string fill = Lower(rest.substr(second + 1));
    const auto at =
        std::find_if(kFills.begin(), kFills.end(), [&](const auto& f) { return f.first == fill; });
    if (at == kFills.end()) return BadDownsample(text, "fills are none, null, nan and zero");
    how.fill = at->second;
  }
  return how;
}

Status ResolveCalendar(const TimeZone& zone, std::string_view name, Nanos start, Nanos end,
                       Downsample& how) {
  if (how.calendar == nullptr) return {};
  if (start < 0 || end <= start || end > kMaxQueryTime) {
    return {Code::kInvalid, "downsampling by the calendar: the end must lie after the start"};
  }
  auto resolved = std::make_shared<Calendar>(*how.calendar);
  Result<std::vector<Nanos>> edges = CalendarEdges(*resolved, zone, start, end);
  if (!edges.ok()) return edges.status();
  resolved->edges = *std::move(edges);
  resolved->zone = name;
  how.calendar = std::move(resolved);
  return {};
}

Result<TagFilter::Type> ParseFilterType(std::string_view name) {
  for (const auto& [known, type] : kFilterTypes) {
    if (known == name) return type;
  }
  return Status(Code::kInvalid,
                fmt::format("No such filter: '{}'; expected literal_or, not_literal_or, "
                            "iliteral_or, not_iliteral_or, wildcard, iwildcard, regexp or not_key",
                            name.substr(0, 64)));
}

Status CheckQuery(const QuerySpec& spec) {
  const auto bad = [&](std::string_view why) {
    return Status(Code::kInvalid, fmt::format("query of '{}': {}", spec.metric.substr(0, 64), why));
  };
  if (spec.metric.empty() || spec.metric.size() > kMaxNameLength) return bad("a metric is needed");
  if (spec.filters.size() > kMaxFilters) return bad("it has too many filters");
  if (spec.start < 0 || spec.end <= spec.start || spec.end > kMaxQueryTime) {
    return bad("its end must lie after its start");
  }
  if (spec.downsample) {
    const Downsample& d = *spec.downsample;
    if (d.interval < 0 || d.interval > kMaxQueryTime || d.function == Aggregator::kNone) {
      return bad("its downsampling has no interval or no function");
    }
    if (d.calendar != nullptr && !EdgesHold(d.calendar->edges, spec.start, spec.end)) {
      return bad("intervals of the calendar are for questions over HTTP");
    }
    const TimeRange range = DataRange(spec);
    if (d.fill != Downsample::Fill::kNone && d.interval > 0 &&
        (range.last - range.first) / d.interval > kMaxFilledBuckets) {
      return Status(Code::kLimit,
                    fmt::format("query of '{}': filling gives more than {} points; choose a longer "
                                "interval",
                                spec.metric.substr(0, 64), kMaxFilledBuckets));
    }
  }
  return SeriesFilter::Make(spec).status();
}

TimeRange DataRange(const QuerySpec& spec) {
  const auto floor = [](Nanos time, Nanos interval) { return time - time % interval; };
  if (!spec.downsample) return {floor(spec.start, kHour), floor(spec.end, kHour) + kHour - 1};
  const Nanos interval = spec.downsample->interval;
  if (interval == 0) return {spec.start, spec.end - 1};
  if (const Calendar* calendar = spec.downsample->calendar.get()) {
    return {calendar->edges.front(), calendar->edges.back() - 1};
  }
  // Whole hours around whole buckets.
  const Nanos end = floor(spec.end, interval) + interval;
  return {floor(floor(spec.start, interval), kHour), floor(end + kHour - 1, kHour) - 1};
}

}  // namespace sonde
