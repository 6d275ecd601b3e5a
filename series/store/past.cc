#include "series/store/past.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace sonde {
namespace {

constexpr auto kEarlier = [](const Point& a, const Point& b) { return a.time < b.time; };

}  // namespace

bool IsPastGroup(std::string_view group) {
  return group.starts_with(kPastGroup) &&
         (group.size() == kPastGroup.size() || group[kPastGroup.size()] == '+');
}

Series PastCounterOf(const std::string& metric) {
  Series series;
  series.metric.name = kPastCounter;
  series.metric.unit = "1";
  series.metric.help = "Values of a metric that were told of times that had passed.";
  series.metric.type = MetricType::kCounter;
  series.metric.level = 1;
  series.tags.Set(kPastMetricTag, metric);
  return series;
}

bool CountsPastOf(std::string_view metric, const Series& series) {
  if (series.metric.name != kPastCounter) return false;
  const std::string* of = series.tags.Find(kPastMetricTag);
  return of != nullptr && *of == metric;
}

void PutPast(std::vector<Point> past, std::vector<Point>& points) {
  // Of those of one time the last one told comes first, and stays.
  std::reverse(past.begin(), past.end());
  std::stable_sort(past.begin(), past.end(), kEarlier);
  std::vector<Point> all;
  all.reserve(past.size() + points.size());
  std::merge(past.begin(), past.end(), points.begin(), points.end(), std::back_inserter(all),
             kEarlier);
  const auto same = [](const Point& a, const Point& b) { return a.time == b.time; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  points = std::move(all);
}

void PutPast(std::vector<SeriesData> past, std::vector<SeriesData>& series) {
  if (past.empty()) return;
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < series.size(); ++i) {
    places.emplace(SeriesName(series[i].series.metric.name, series[i].series.tags), i);
  }
  for (SeriesData& one : past) {
    const auto [place, added] =
        places.try_emplace(SeriesName(one.series.metric.name, one.series.tags), series.size());
    if (added) series.push_back({std::move(one.series), {}});
    PutPast(std::move(one.points), series[place->second].points);
  }
}

}  // namespace sonde
