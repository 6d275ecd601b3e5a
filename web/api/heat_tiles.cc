#include "web/api/heat_tiles.h"

#include <algorithm>
#include <cmath>

#include "web/api/time_grid.h"

namespace sonde::web {

HeatTiles::HeatTiles(const Shape& shape) : shape_(shape) {
  shape_.rows = std::min(shape_.rows, shape_.members);
  tiles_.resize(shape_.rows * shape_.columns);
}

size_t HeatTiles::FirstOf(size_t row) const {
  // The first member whose row it is.
  return (row * shape_.members + shape_.rows - 1) / shape_.rows;
}

void HeatTiles::Add(size_t member, std::span<const Point> points, Of of) {
  if (member >= shape_.members || shape_.rows == 0) return;
  HeatTile* const row = tiles_.data() + RowOf(member) * shape_.columns;
  const auto who = static_cast<uint32_t>(member);
  for (const Point& point : points) {
    if (std::isnan(point.value) || point.time < shape_.start) continue;
    const auto column = static_cast<size_t>((point.time - shape_.start) / shape_.interval);
    if (column >= shape_.columns) continue;
    HeatTile& tile = row[column];
    if (of == Of::kAll || of == Of::kMeans) {
      tile.sum += point.value;
      ++tile.values;
      if (tile.last_member != who) ++tile.members;
      tile.last_member = who;
    }
    const bool least = of == Of::kAll || of == Of::kMins;
    if (least && (tile.min_at == HeatTile::kNobody || point.value < tile.min)) {
      tile.min = point.value;
      tile.min_at = who;
    }
    const bool most = of == Of::kAll || of == Of::kMaxs;
    if (most && (tile.max_at == HeatTile::kNobody || point.value > tile.max)) {
      tile.max = point.value;
      tile.max_at = who;
    }
  }
}

void HeatSteps::Lengthen(Nanos period) {
  do {
    interval += resolution - interval % resolution;
  } while (EvenInterval(interval, period) != interval);
}

HeatSteps StepsOf(Nanos range, size_t columns, Nanos period, size_t members, size_t most) {
  const auto count = static_cast<Nanos>(std::max<size_t>(columns, 1));
  HeatSteps steps;
  steps.interval = EvenInterval((range + count - 1) / count, period);
  const double finest =
      std::ceil(static_cast<double>(range) * static_cast<double>(std::max<size_t>(members, 1)) /
                static_cast<double>(std::max<size_t>(most, 1)));
  steps.resolution =
      finest >= static_cast<double>(steps.interval)
          ? steps.interval
          : std::min(EvenInterval(static_cast<Nanos>(finest), period), steps.interval);
  // Within the period of slow ticks few intervals are even, so the resolution is what gives way.
  while (steps.interval <= kSlowPeriod && steps.interval % steps.resolution != 0) {
    steps.resolution = EvenInterval(steps.resolution + period, period);
  }
  if (steps.interval % steps.resolution != 0) steps.Lengthen(period);
  return steps;
}

}  // namespace sonde::web
