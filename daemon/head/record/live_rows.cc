#include "daemon/head/record/live_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "series/store/reduced.h"

namespace sonde::head {
namespace {

// Which of kStatNames; kStatColumns for what is none, such as a percentile.
size_t StatOf(const Series& column) {
  const std::string* stat = column.tags.Find(kStatTag);
  if (stat == nullptr) return kStatColumns;
  return static_cast<size_t>(std::find(kStatNames.begin(), kStatNames.end(), *stat) -
                             kStatNames.begin());
}

std::vector<Nanos> TimesOf(const std::vector<SeriesData>& columns, size_t limit) {
  std::vector<Nanos> times;
  for (const SeriesData& column : columns) {
    for (const Point& point : column.points) times.push_back(point.time);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  times.resize(std::min(times.size(), limit));
  return times;
}

}  // namespace

void PutTogether(const std::vector<SeriesData>& columns, size_t limit, web::LiveRows& rows) {
  const std::vector<Nanos> times = TimesOf(columns, limit);
  std::map<std::string, std::pair<Series, std::vector<double>>> found;
  for (const SeriesData& column : columns) {
    const size_t stat = StatOf(column.series);
    if (stat == kStatColumns) continue;
    Series series = column.series;
    series.tags.Erase(kStatTag);
    auto& [known, cells] = found[SeriesName(series.metric.name, series.tags)];
    known = std::move(series);
    cells.resize(times.size() * kStatColumns, std::nan(""));
    size_t row = 0;
    for (const Point& point : column.points) {
      while (row < times.size() && times[row] < point.time) ++row;
      if (row == times.size()) break;
      if (times[row] == point.time) cells[row * kStatColumns + stat] = point.value;
    }
  }
  for (const Nanos time : times) rows.rows.push_back({time, {}});
  for (auto& [name, entry] : found) {
    rows.series.push_back(std::move(entry.first));
    for (size_t row = 0; row < times.size(); ++row) {
      rows.rows[row].values.push_back(FromColumns(&entry.second[row * kStatColumns]));
    }
  }
}

}  // namespace sonde::head
