// A column over time, in dots of Braille: two by four to a cell. Without UTF-8 a '*' is one dot.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/top/layout.h"

namespace sonde::cli::top {
namespace {

constexpr size_t kScale = 7;  // letters of the numbers at the side

class Canvas {
 public:
  Canvas(size_t width, size_t height, bool unicode)
      : width_(width),
        across_(unicode ? 2 : 1),
        down_(unicode ? 4 : 1),
        cells_(width * height, 0) {}
  size_t across() const { return width_ * across_; }
  size_t down() const { return cells_.size() / width_ * down_; }
  void Dot(size_t x, size_t y) {
    static constexpr uint8_t kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    uint8_t& cell = cells_[y / down_ * width_ + x / across_];
    cell |= across_ == 1 ? 1 : kDots[y % 4][x % 2];
  }
  // All dots between two heights, so that a line has no gaps.
  void Between(size_t x, size_t from, size_t to) {
    for (size_t y = std::min(from, to); y <= std::max(from, to); ++y) Dot(x, y);
  }
  void Put(Screen& screen, size_t x, size_t y) const {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i] == 0) continue;
      screen.PutLetter(x + i % width_, y + i / width_,
                       across_ == 1 ? U'*' : U'\u2800' + char32_t{cells_[i]}, Style::kGood);
    }
  }

 private:
  size_t width_;
  size_t across_;
  size_t down_;
  std::vector<uint8_t> cells_;
};

struct Extremes {
  double least = kNoValue;
  double most = kNoValue;
  double last = kNoValue;
};

Extremes ExtremesOf(const Series& series) {
  Extremes found;
  for (const auto& [time, value] : series.points) {
    if (std::isnan(value)) continue;
    found.least = std::isnan(found.least) ? value : std::min(found.least, value);
    found.most = std::isnan(found.most) ? value : std::max(found.most, value);
    found.last = value;
  }
  return found;
}

// Points further apart than three times the usual have nothing measured between them.
Nanos LongestStep(const Series& series) {
  Nanos least = INT64_MAX;
  for (size_t i = 1; i < series.points.size(); ++i) {
    least = std::min(least, series.points[i].first - series.points[i - 1].first);
  }
  return least == INT64_MAX ? 0 : 3 * least;
}

void DrawLine(const Series& series, double top, Canvas& canvas) {
  const auto width = static_cast<double>(canvas.across() - 1);
  const auto height = static_cast<double>(canvas.down() - 1);
  const auto span = static_cast<double>(std::max<Nanos>(series.end - series.start, 1));
  const auto x_of = [&](Nanos time) {
    return std::clamp(static_cast<double>(time - series.start) / span, 0.0, 1.0) * width;
  };
  const auto y_of = [&](double value) { return (1 - std::clamp(value / top, 0.0, 1.0)) * height; };
  const Nanos longest = LongestStep(series);
  std::optional<std::pair<Nanos, double>> before;
  for (const auto& [time, value] : series.points) {
    if (std::isnan(value)) {
      before.reset();
      continue;
    }
    const double x = x_of(time), y = y_of(value);
    const auto at = static_cast<size_t>(std::lround(x));
    canvas.Dot(at, static_cast<size_t>(std::lround(y)));
    if (before && time - before->first <= longest) {
      const double from = x_of(before->first), start = y_of(before->second);
      auto last = static_cast<size_t>(std::lround(start));
      for (auto i = static_cast<size_t>(std::lround(from)) + 1; i <= at; ++i) {
        const double share = x > from ? (static_cast<double>(i) - from) / (x - from) : 1;
        const auto here =
            static_cast<size_t>(std::lround(start + std::clamp(share, 0.0, 1.0) * (y - start)));
        canvas.Between(i, last, here);
        last = here;
      }
    }
    before.emplace(time, value);
  }
}

std::string Whose(const Series& series) {
  if (series.host.empty()) return "the whole step";
  return series.rank.empty() ? series.host : fmt::format("rank {} on {}", series.rank, series.host);
}

}  // namespace

void DrawPlot(const Model& model, const Box& box, Screen& screen) {
  const Series& series = model.series();
  if (box.height < 4 || box.width < kScale + 10) return;
  const ColumnInfo& info = InfoOf(series.column);
  const Extremes found = ExtremesOf(series);
  const std::string title =
      fmt::format("{} of {}: min {}  max {}  last {}", info.title, Whose(series),
                  LongValueOf(series.column, found.least), LongValueOf(series.column, found.most),
                  LongValueOf(series.column, found.last));
  screen.Put(box.x, box.y, title, Style::kBold, box.width);
  if (std::isnan(found.last)) {
    screen.Put(box.x, box.y + 1, series.known ? "no values" : "asking for it ...", Style::kDim);
    return;
  }
  const double top = std::max({found.most, info.ratio ? 1.0 : 0.0, 1e-9});
  const size_t rows = box.height - 2;
  const size_t left = box.x + kScale;
  Canvas canvas(box.width - kScale, rows, screen.unicode());
  DrawLine(series, top, canvas);
  screen.PutRight(left - 1, box.y + 1, ValueOf(series.column, top), Style::kDim);
  if (rows > 2) {
    screen.PutRight(left - 1, box.y + 1 + (rows - 1) / 2, ValueOf(series.column, top / 2),
                    Style::kDim);
  }
  screen.PutRight(left - 1, box.y + rows, ValueOf(series.column, 0), Style::kDim);
  canvas.Put(screen, left, box.y + 1);
  const Nanos span = series.end - series.start;
  const size_t foot = box.y + rows + 1;
  screen.Put(left, foot, "0:00 since the start", Style::kDim, (box.width - kScale) / 2);
  screen.PutRight(left + (box.width - kScale) / 2 + 4, foot, ClockText(span / 2), Style::kDim);
  screen.PutRight(box.width, foot, ClockText(span), Style::kDim);
}

}  // namespace sonde::cli::top
