// The rules that differ for counters: docs/queries.md, "Counters".
#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "series/query/aggregate.h"
#include "series/query/steps.h"

namespace sonde::query_steps {
namespace {

// Where in a bucket the function's value lies: the time after the bucket's start. 0 for functions
// whose values have no such time.
double PlaceIn(const Point& bucket, std::span<const Point> points, Aggregator function) {
  const auto after = [&](const Point& p) { return static_cast<double>(p.time - bucket.time); };
  switch (function) {
    case Aggregator::kMin:
    case Aggregator::kMimmin:
    case Aggregator::kFirst:
      return after(points.front());
    case Aggregator::kMax:
    case Aggregator::kMimmax:
    case Aggregator::kLast:
      return after(points.back());
    case Aggregator::kAvg: {
      double sum = 0;
      for (const Point& p : points) sum += after(p);
      return sum / static_cast<double>(points.size());
    }
    default:
      return 0;
  }
}

// The last bucket of a series mostly holds a point beside the ticks, its last one: then the count
// between the starts of two buckets is not that of the time between these starts.
std::vector<Nanos> PlacesIn(const std::vector<Point>& buckets, const std::vector<Point>& points,
                            Aggregator function) {
  std::vector<Nanos> places;
  places.reserve(buckets.size());
  const auto earlier = [](const Point& p, Nanos time) { return p.time < time; };
  auto from = points.begin();
  for (size_t i = 0; i < buckets.size(); ++i) {
    from = std::lower_bound(from, points.end(), buckets[i].time, earlier);
    const auto to = i + 1 == buckets.size()
                        ? points.end()
                        : std::lower_bound(from, points.end(), buckets[i + 1].time, earlier);
    // The last bucket has no points behind the range, for points end with it.
    const double place = from == to ? 0 : PlaceIn(buckets[i], {from, to}, function);
    places.push_back(buckets[i].time + static_cast<Nanos>(std::llround(place)));
    from = to;
  }
  return places;
}

std::vector<Point> RatesOfBuckets(const std::vector<Point>& points, const Downsample& how,
                                  const TimeRange& range, const RateOptions& options) {
  const std::vector<Point> buckets = ApplyDownsample(points, how, range.first, range.last);
  const std::vector<Nanos> places = PlacesIn(buckets, points, how.function);
  std::vector<Point> moved = buckets;
  for (size_t i = 0; i < moved.size(); ++i) moved[i].time = places[i];
  std::vector<Point> rates = ApplyRate(moved, options);
  // Each point belongs to the bucket at whose place it is.
  size_t bucket = 0;
  for (Point& rate : rates) {
    while (places[bucket] != rate.time) ++bucket;
    rate.time = buckets[bucket].time;
  }
  return rates;
}

// Where the first bucket starts that is filled in whole; without buckets, 0.
Nanos FirstBucket(const QuerySpec& spec) {
  if (!spec.downsample) return 0;
  const Downsample& how = *spec.downsample;
  if (how.calendar != nullptr) return how.calendar->edges.front();
  if (how.interval == 0) return spec.start;
  const Nanos from = DataRange(spec).first + how.interval - 1;
  return from - from % how.interval;
}

// The bucket of a point before those of the calendar is not known.
Nanos BucketBefore(Nanos time, const Downsample& how) {
  if (how.calendar != nullptr || how.interval == 0) return time;
  return time - time % how.interval;
}

// Where the buckets of a downsample lie.
TimeRange BucketRange(const QuerySpec& spec) {
  const bool all = spec.downsample && spec.downsample->interval == 0;
  return all ? TimeRange{spec.start, spec.end} : DataRange(spec);
}

std::vector<Point> DownsampleAndRate(std::vector<Point> points, const QuerySpec& spec) {
  if (points.empty()) return points;
  if (!spec.downsample) return spec.rate ? ApplyRate(points, spec.rate_options) : points;
  const TimeRange range = BucketRange(spec);
  Downsample how = *spec.downsample;
  how.fill = Downsample::Fill::kNone;  // when the answer is there
  if (spec.rate) return RatesOfBuckets(points, how, range, spec.rate_options);
  return ApplyDownsample(points, how, range.first, range.last);
}

}  // namespace

bool Counts(const Metric& metric) { return IsCounting(metric.type); }

void GoOnAfterResets(std::vector<Point>& points) {
  double had = 0;
  double before = 0;
  for (Point& p : points) {
    if (p.value < before) had += before;
    before = p.value;
    p.value += had;
  }
}

std::vector<Point> PrepareCounter(std::vector<Point> points, const QuerySpec& spec,
                                  std::optional<double>* held) {
  const bool holds = HoldsCounters(spec);
  TimeRange range = DataRange(spec);
  const Nanos first = range.first;
  if (holds) range.first = 0;
  std::vector<Point> counted = Within(std::move(points), range);
  const bool as_it_is = KeepsSeries(spec) && !spec.rate;
  if (!as_it_is && !spec.rate_options.counter) GoOnAfterResets(counted);
  if (!holds) return DownsampleAndRate(std::move(counted), spec);
  const bool of_values = !spec.downsample || KeepsOneValue(spec.downsample->function);
  if (held != nullptr && of_values && !counted.empty()) *held = counted.back().value;
  // Its value before the range leads into the range, or is all there is.
  const Nanos start = std::max(first, FirstBucket(spec));
  const auto inside = std::lower_bound(counted.begin(), counted.end(), start,
                                       [](const Point& p, Nanos time) { return p.time < time; });
  std::vector<Point> before;
  if (inside != counted.begin()) before.push_back(*std::prev(inside));
  counted.erase(counted.begin(), inside);
  std::vector<Point> prepared = DownsampleAndRate(std::move(counted), spec);
  if (before.empty() || !of_values) return prepared;
  if (spec.downsample) before[0].time = BucketBefore(before[0].time, *spec.downsample);
  before.insert(before.end(), prepared.begin(), prepared.end());
  return before;
}

std::vector<Point> PrepareRows(std::vector<Point> points, const QuerySpec& spec) {
  return DownsampleAndRate(Within(std::move(points), DataRange(spec)), spec);
}

bool HoldsCounters(const QuerySpec& spec) { return !spec.rate && !KeepsSeries(spec); }

Between BetweenCounts(const QuerySpec& spec) {
  const Between between = BetweenPoints(spec);
  return between == Between::kLine ? between : Between::kPrevious;
}

void FillBuckets(const QuerySpec& spec, std::vector<Point>& points) {
  if (!spec.downsample || spec.downsample->fill == Downsample::Fill::kNone) return;
  Downsample how = *spec.downsample;
  if (how.interval == 0) return;
  how.function = Aggregator::kLast;  // of one value, which stays
  points = ApplyDownsample(points, how, spec.start, spec.end);
}

}  // namespace sonde::query_steps
