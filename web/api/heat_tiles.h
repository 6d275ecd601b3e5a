// The tiles of a heatmap: many nodes or tasks over time, reduced to as many rows and columns as are
// drawn.
//
// A row is of one member, or of neighbours if there are more members than rows. A column is an
// interval. A tile has the mean, the extremes and their holders, over its members and its interval.
// A tile without any value is missing and not 0; one in which only some members have values says of
// how many it is.
//
// The size does not depend on how many values are added: 48 bytes a tile.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/time.h"
#include "series/store/store.h"

namespace sonde::web {

struct HeatTile {
  static constexpr uint32_t kNobody = UINT32_MAX;

  double sum = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  uint64_t values = 0;
  uint32_t members = 0;  // that have a value in it
  uint32_t min_at = kNobody;
  uint32_t max_at = kNobody;
  uint32_t last_member = kNobody;  // that added a value

  double Mean() const { return sum / static_cast<double>(values); }
};

class HeatTiles {
 public:
  struct Shape {
    size_t members = 0;
    size_t rows = 0;  // at most as many as members
    size_t columns = 0;
    Nanos start = 0;
    Nanos interval = 1;
  };

  explicit HeatTiles(const Shape& shape);

  // What points are of: each is all there is of its time, or its mean, its least or its most, of
  // which the others are added as well.
  enum class Of : uint8_t { kAll, kMeans, kMins, kMaxs };

  // The points of one member. NaN and what lies outside of the columns counts for nothing.
  void Add(size_t member, std::span<const Point> points, Of of = Of::kAll);

  const Shape& shape() const { return shape_; }
  const HeatTile& At(size_t row, size_t column) const {
    return tiles_[row * shape_.columns + column];
  }
  // Rows have equally many members, or one more.
  size_t FirstOf(size_t row) const;
  size_t CountOf(size_t row) const { return FirstOf(row + 1) - FirstOf(row); }
  size_t RowOf(size_t member) const { return member * shape_.rows / shape_.members; }

 private:
  Shape shape_;
  std::vector<HeatTile> tiles_;  // row by row
};

// How long columns are, and how fine the values are that tiles are made of. Both have equally many
// samples, as EvenInterval says, and an interval is a multiple of the resolution.
struct HeatSteps {
  Nanos interval = 0;
  Nanos resolution = 0;

  // The next longer interval.
  void Lengthen(Nanos period);
};

// The shortest interval of which at most `columns` cover `range`, and the finest resolution with
// which `members` have at most `most` values; where there is none it is the interval.
HeatSteps StepsOf(Nanos range, size_t columns, Nanos period, size_t members, size_t most);

}  // namespace sonde::web
