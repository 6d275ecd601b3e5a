#include "tests/surfaces/algebra.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace sonde::surfaces {
namespace {

constexpr Nanos kHour = 3600 * kSecond;
constexpr double kUlp = std::numeric_limits<double>::epsilon();
// Of more values than these percentiles come from a sketch, whose values are within 1/128.
constexpr size_t kMostExact = 64;
constexpr double kSketchError = 1.0 / 128;

__extension__ typedef __float128 Quad;  // NOLINT(modernize-use-using): no extension there

using Points = std::vector<std::pair<Nanos, Number>>;

struct Member {
  const Line* line;
  Points points;
  std::optional<Number> held = {};  // what a counter keeps after its last point
};

Nanos Floor(Nanos time, Nanos interval) { return time - time % interval; }
double Seconds(Nanos time) { return static_cast<double>(time) / kSecond; }
double Size(const Number& number) { return std::fabs(number.value); }

// --- Which series ---

bool Fits(const std::string& pattern, const std::string& value) {
  if (pattern.ends_with('*')) return value.starts_with(pattern.substr(0, pattern.size() - 1));
  return ("|" + pattern + "|").find("|" + value + "|") != std::string::npos;
}

bool Matches(const Question& q, const Line& line) {
  return std::all_of(q.filters.begin(), q.filters.end(), [&](const Filter& filter) {
    const auto tag = line.tags.find(filter.key);
    return tag != line.tags.end() && Fits(filter.pattern, tag->second);
  });
}

// --- Kinds of questions ---

// Aggregators that need all values at once treat counters as any series.
bool TakesSeriesAsTheyAre(const Question& q) {
  static const std::set<std::string> kSuch = {"none", "median", "diff", "first", "last"};
  return kSuch.contains(q.aggregator);
}

// Counters keep what they had counted.
bool Holds(const Question& q) { return !q.rate && !TakesSeriesAsTheyAre(q); }

// Where the bucket starts that holds the time.
Nanos BucketOf(const Question& q, Nanos time) {
  if (!q.calendar || kHour % q.interval == 0) return Floor(time, q.interval);
  const Nanos midnight = Floor(q.start, 24 * kHour);
  return midnight + Floor(time - midnight, q.interval);
}

// The hours of the epoch that the question reads; of the calendar whole buckets.
std::pair<Nanos, Nanos> Hours(const Question& q) {
  if (!q.downsampled) return {Floor(q.start, kHour), Floor(q.end, kHour) + kHour - 1};
  if (q.interval == 0) return {q.start, q.end - 1};
  if (q.calendar) return {BucketOf(q, q.start), BucketOf(q, q.end) + q.interval - 1};
  const Nanos behind = Floor(q.end, q.interval) + q.interval;
  return {Floor(Floor(q.start, q.interval), kHour), Floor(behind + kHour - 1, kHour) - 1};
}

// --- One series ---

double Fold(const std::string& function, const std::vector<double>& values) {
  if (function == "count") return static_cast<double>(values.size());
  if (function == "first") return values.front();
  if (function == "last") return values.back();
  if (function == "min") return *std::min_element(values.begin(), values.end());
  if (function == "max") return *std::max_element(values.begin(), values.end());
  double sum = 0;  // in the order of time
  for (const double value : values) sum += value;
  return function == "avg" ? sum / static_cast<double>(values.size()) : sum;
}

// Where in its bucket a counter has the function's value.
Nanos PlaceOf(const std::string& function, Nanos bucket, const std::vector<Nanos>& times) {
  if (function == "min" || function == "first") return times.front();
  if (function == "max" || function == "last") return times.back();
  if (function != "avg") return bucket;
  double sum = 0;
  for (const Nanos time : times) sum += static_cast<double>(time - bucket);
  return bucket + std::llround(sum / static_cast<double>(times.size()));
}

struct Bucket {
  Nanos start = 0;
  Nanos place = 0;
  double value = 0;
};

std::vector<Bucket> Downsample(const Question& q, const Points& points) {
  std::map<Nanos, std::pair<std::vector<Nanos>, std::vector<double>>> found;
  for (const auto& [time, number] : points) {
    if (q.interval == 0 && (time < q.start || time >= q.end)) continue;
    const Nanos bucket = q.interval == 0 ? q.start : BucketOf(q, time);
    if (q.interval != 0 && bucket < Hours(q).first) continue;  // it lies in the hour before as well
    auto& [times, values] = found[bucket];
    times.push_back(time);
    values.push_back(number.value);
  }
  std::vector<Bucket> buckets;
  for (const auto& [start, bucket] : found) {
    buckets.push_back(
        {start, PlaceOf(q.function, start, bucket.first), Fold(q.function, bucket.second)});
  }
  return buckets;
}

// Every bucket of the hours that are read.
void Fill(const Question& q, Points& points) {
  const auto [first, last] = Hours(q);
  Points filled;
  const Nanos from = q.calendar ? first : Floor(first + q.interval - 1, q.interval);
  for (Nanos at = from; at <= last; at += q.interval) {
    const auto known = std::find_if(points.begin(), points.end(),
                                    [&](const auto& point) { return point.first == at; });
    const double filler = q.fill == "zero" ? 0 : std::nan("");
    filled.emplace_back(at, known == points.end() ? Number{filler, 0} : known->second);
  }
  points = std::move(filled);
}

// The change per second. Nothing: the point is left out.
std::optional<Number> RateOf(const Question& q, double before, double now, double seconds) {
  const double change = now - before;
  if (q.falls.empty() || !(change < 0)) return Number{change / seconds, 0};
  if (q.falls == "dropcounter") return {};
  const double end = q.counter_max > 0 ? q.counter_max : std::ldexp(1, 63);
  const double more = end - before + now;
  // Their order is not told.
  const double error = 4 * kUlp * (end + std::fabs(before) + std::fabs(now)) / seconds;
  if (q.reset > 0 && more / seconds > q.reset) return Number{0, 0};
  return Number{more / seconds, error};
}

Points RatesOf(const Question& q, const Points& points) {
  Points rates;
  for (size_t i = 1; i < points.size(); ++i) {
    const auto& [before, had] = points[i - 1];
    const auto& [now, has] = points[i];
    const auto rate = RateOf(q, had.value, has.value, Seconds(now - before));
    if (rate) rates.push_back({now, *rate});
  }
  return rates;
}

Points PrepareGauge(const Question& q, const Line& line) {
  const auto [first, last] = Hours(q);
  Points points;
  for (const auto& [time, value] : line.points) {
    if (time >= first && time <= last) points.push_back({time, {value, 0}});
  }
  if (points.empty()) return points;
  if (q.downsampled) {
    Points buckets;
    for (const Bucket& bucket : Downsample(q, points)) {
      buckets.push_back({bucket.start, {bucket.value, 0}});
    }
    points = std::move(buckets);
    if (!q.fill.empty() && q.interval > 0) Fill(q, points);
  }
  return q.rate ? RatesOf(q, points) : points;
}

// A counter that falls has begun anew and goes on from what it had.
void GoOn(Points& points) {
  double had = 0;
  double before = 0;
  for (auto& [time, number] : points) {
    if (number.value < before) had += before;
    before = number.value;
    number.value += had;
  }
}

// Where the first bucket that is read begins; what a counter had before stays.
Nanos FirstBucket(const Question& q) {
  const Nanos first = Hours(q).first;
  if (!q.downsampled || q.interval == 0) return std::max(first, q.downsampled ? q.start : first);
  return q.calendar ? first : Floor(first + q.interval - 1, q.interval);
}

Points DownsampleCounter(const Question& q, const Points& points) {
  if (!q.downsampled) return q.rate ? RatesOf(q, points) : points;
  Points out;
  const std::vector<Bucket> buckets = Downsample(q, points);
  for (size_t i = q.rate ? 1 : 0; i < buckets.size(); ++i) {
    std::optional<Number> value = Number{buckets[i].value, 0};
    if (q.rate) {
      value = RateOf(q, buckets[i - 1].value, buckets[i].value,
                     Seconds(buckets[i].place - buckets[i - 1].place));
    }
    if (value) out.push_back({buckets[i].start, *value});
  }
  return out;
}

Points PrepareCounter(const Question& q, const Line& line, std::optional<Number>& held) {
  const auto [first, last] = Hours(q);
  Points points;
  for (const auto& [time, value] : line.points) {
    if (time <= last && (Holds(q) || time >= first)) points.push_back({time, {value, 0}});
  }
  if ((!TakesSeriesAsTheyAre(q) || q.rate) && q.falls.empty()) GoOn(points);
  if (!Holds(q)) return DownsampleCounter(q, points);
  // A number of points says nothing of what was counted.
  const bool of_values = !q.downsampled || q.function != "count";
  if (of_values && !points.empty()) held = points.back().second;
  const Nanos from = FirstBucket(q);
  std::optional<std::pair<Nanos, Number>> before;
  Points inside;
  for (const auto& point : points) {
    if (point.first >= from) {
      inside.push_back(point);
    } else {
      before = point;
    }
  }
  Points prepared = DownsampleCounter(q, inside);
  if (!before || !of_values) return prepared;
  if (q.downsampled && q.interval > 0 && !q.calendar)
    before->first = Floor(before->first, q.interval);
  prepared.insert(prepared.begin(), *before);
  return prepared;
}

// --- A group ---

// What a series counts for between two of its points.
Number Between(const Question& q, bool holds, Nanos time, const std::pair<Nanos, Number>& a,
               const std::pair<Nanos, Number>& b) {
  const std::string& name = q.aggregator;
  if (q.rate || name == "pfsum") return a.second;
  const bool zero = name == "zimsum" || name == "count" || name == "squareSum" || name == "first" ||
                    name == "last";
  const bool extreme = name == "mimmin" || name == "mimmax";
  if (zero || extreme) {
    if (holds) return a.second;
    constexpr double kMost = std::numeric_limits<double>::max();
    return {zero ? 0 : name == "mimmin" ? kMost : -kMost, 0};
  }
  const double part = Seconds(time - a.first) / Seconds(b.first - a.first);
  const double value = a.second.value + part * (b.second.value - a.second.value);
  // Four operations, of which the documents do not tell the order.
  return {value, 4 * kUlp * (Size(a.second) + Size(b.second)) + a.second.error + b.second.error};
}

// Nothing: the series takes no part at that time.
std::optional<Number> At(const Question& q, const Member& member, Nanos time) {
  const bool holds = member.line->counts && Holds(q);
  const Points& points = member.points;
  if (points.empty() || time < points.front().first) return {};
  if (time > points.back().first) {
    if (!holds) return {};
    return member.held ? member.held : points.back().second;
  }
  size_t i = 0;
  while (i + 1 < points.size() && points[i + 1].first <= time) ++i;
  if (points[i].first == time) return points[i].second;
  return Between(q, holds, time, points[i], points[i + 1]);
}

double SharesOf(const std::string& percentile) {
  return percentile == "p999" ? 0.999 : std::stod(percentile.substr(1)) / 100;
}

Number Aggregate(const Question& q, const std::vector<Number>& all) {
  const std::string& name = q.aggregator;
  std::vector<double> values;
  double error = 0;
  double most = 0;
  for (const Number& number : all) {
    if (std::isnan(number.value)) continue;
    values.push_back(number.value);
    error += number.error;
    most = std::max(most, number.error);
  }
  const auto count = static_cast<double>(values.size());
  if (name == "count") return {count, 0};
  if (values.empty()) return {std::nan(""), 0};
  if (name == "min" || name == "mimmin") {
    return {*std::min_element(values.begin(), values.end()), most};
  }
  if (name == "max" || name == "mimmax") {
    return {*std::max_element(values.begin(), values.end()), most};
  }
  if (name == "first") return {values.front(), most};
  if (name == "last") return {values.back(), most};
  if (name == "diff") return {values.back() - values.front(), 2 * most};
  if (name == "median") {
    std::sort(values.begin(), values.end());
    return {values[values.size() / 2], most};
  }
  if (name[0] == 'p' && name != "pfsum") {
    const bool sketched = q.sketched || values.size() > kMostExact;
    Number percentile = PercentileOf(values, SharesOf(name), sketched);
    percentile.error += most;
    return percentile;
  }
  if (name == "squareSum") {
    for (double& value : values) value *= value;
  }
  const double sum = ExactSum(values);
  // What was not exact before may be rounded another way.
  if (error > 0) error += kUlp * std::fabs(sum);
  if (name == "avg") return {sum / count, error / count};
  return {sum, error};
}

void Name(const std::vector<Member>& members, Result& result) {
  for (const Member& member : members) {
    for (const auto& [key, value] : member.line->tags) {
      const auto known = result.tags.emplace(key, value).first;
      if (known->second != value) result.other_keys.insert(key);
    }
  }
  for (const std::string& key : result.other_keys) result.tags.erase(key);
}

// Empty buckets of a counter are filled when the answer is there.
void FillAnswer(const Question& q, Result& result) {
  if (!q.downsampled || q.fill.empty() || q.interval == 0) return;
  const Nanos from = BucketOf(q, q.start);
  for (Nanos at = from < q.start ? from + q.interval : from; at <= q.end; at += q.interval) {
    result.points.try_emplace(at, Number{q.fill == "zero" ? 0 : std::nan(""), 0});
  }
}

Result Combine(const Question& q, std::vector<Member> members) {
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.line->tags < b.line->tags; });
  Result result;
  Name(members, result);
  std::set<Nanos> times;
  for (const Member& member : members) {
    for (const auto& [time, number] : member.points) {
      if (time >= q.start && time <= q.end) times.insert(time);
    }
  }
  for (const Nanos time : times) {
    std::vector<Number> values;
    for (const Member& member : members) {
      if (const std::optional<Number> value = At(q, member, time)) values.push_back(*value);
    }
    result.points[time] = q.aggregator == "none" ? values.front() : Aggregate(q, values);
  }
  if (!result.points.empty() && members.front().line->counts) FillAnswer(q, result);
  return result;
}

}  // namespace

std::string TextOf(const Question& q) {
  std::string text = q.aggregator + ":";
  if (q.rate && q.falls.empty()) text += "rate:";
  if (!q.falls.empty()) {
    text += fmt::format("rate{{{},{},{}}}:", q.falls,
                        q.counter_max > 0 ? fmt::format("{:.0f}", q.counter_max) : "",
                        q.reset > 0 ? fmt::format("{:.0f}", q.reset) : "");
  }
  if (q.downsampled) {
    text += q.interval == 0 ? "0all"
            : q.calendar    ? fmt::format("{}mc", q.interval / (60 * kSecond))
                            : fmt::format("{}ms", q.interval / kMillisecond);
    text += "-" + q.function + (q.fill.empty() ? "" : "-" + q.fill) + ":";
  }
  text += q.metric;
  for (const bool groups : {true, false}) {
    std::string filters;
    for (const Filter& filter : q.filters) {
      if (filter.groups != groups) continue;
      filters += fmt::format("{}{}={}", filters.empty() ? "" : ",", filter.key, filter.pattern);
    }
    text += "{" + filters + "}";
  }
  return text;
}

double ExactSum(const std::vector<double>& values) {
  // 113 bits hold the sums of whatever the campaign draws.
  Quad sum = 0;
  for (const double value : values) sum += value;
  return static_cast<double>(sum);
}

Number PercentileOf(std::vector<double> values, double share, bool sketched) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const double place = share * 100 * (count + 1) / 100;
  if (place < 1) return {values.front(), 0};
  if (place >= count) return {values.back(), 0};
  const auto rank = static_cast<size_t>(place);
  const double low = values[rank - 1];
  const double high = values[rank];
  const double size = std::max(std::fabs(low), std::fabs(high));
  const double value = low + (place - static_cast<double>(rank)) * (high - low);
  // Between two values, of which a sketch knows each within 1/128.
  return {value, sketched ? kSketchError * size + 4 * kUlp * size : 4 * kUlp * size};
}

std::vector<Result> Evaluate(const Question& q, const std::vector<Line>& lines) {
  std::map<std::vector<std::string>, std::vector<Member>> groups;
  for (const Line& line : lines) {
    if (!Matches(q, line)) continue;
    Member member{&line, {}};
    member.points = line.counts ? PrepareCounter(q, line, member.held) : PrepareGauge(q, line);
    if (member.points.empty()) continue;
    std::vector<std::string> place;
    if (q.aggregator == "none") {
      for (const auto& [key, value] : line.tags) place.insert(place.end(), {key, value});
    } else {
      std::set<std::string> keys;
      for (const Filter& filter : q.filters) {
        if (filter.groups) keys.insert(filter.key);
      }
      for (const std::string& key : keys) place.push_back(line.tags.at(key));
    }
    groups[place].push_back(std::move(member));
  }
  std::vector<Result> results;
  for (auto& [place, members] : groups) {
    Result result = Combine(q, std::move(members));
    if (!result.points.empty()) results.push_back(std::move(result));
  }
  return results;
}

}  // namespace sonde::surfaces
