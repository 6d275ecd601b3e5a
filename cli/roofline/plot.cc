#include "cli/roofline/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

constexpr size_t kLabel = 16;  // "  12.3 GFLOP/s |"
constexpr size_t kDotsAcross = 2;
constexpr size_t kDotsDown = 4;
constexpr double kMostDecades = 9;

bool CanStand(const PlottedPhase& phase) {
  return phase.intensity > 0 && phase.flops > 0 && std::isfinite(phase.intensity) &&
         std::isfinite(phase.flops);
}

// From the exponent at one end to that at the other.
struct Axis {
  double low = 0;
  double high = 1;
  // 0 to 1 along the axis.
  double At(double value) const { return (std::log10(value) - low) / (high - low); }
  double Value(double share) const { return std::pow(10, low + share * (high - low)); }
};

// Whole decades around all of these, not too many.
Axis AxisAround(double low, double high) {
  Axis axis{std::floor(std::log10(low)), std::ceil(std::log10(high))};
  axis.low = std::max(axis.low, axis.high - kMostDecades);
  if (axis.high - axis.low < 1) axis.low = axis.high - 1;
  return axis;
}

class Canvas {
 public:
  Canvas(size_t width, size_t height, bool unicode)
      : width_(width), height_(height), unicode_(unicode), cells_(width * height) {}

  // From the left and from the bottom, 0 to 1.
  void Roof(const Axis& x, const Axis& y, const insight::Roof& roof) {
    const size_t across = unicode_ ? width_ * kDotsAcross : width_;
    for (size_t i = 0; i < across; ++i) {
      const double intensity =
          x.Value((static_cast<double>(i) + 0.5) / static_cast<double>(across));
      const char ascii = intensity < roof.Ridge() ? '/' : '-';
      Dot((static_cast<double>(i) + 0.5) / static_cast<double>(across), y.At(roof.At(intensity)),
          ascii);
    }
  }
  void Letter(double across, double up, char letter) {
    size_t column = std::min(Index(across, width_), width_ - 1);
    const size_t row = Row(up, height_);
    while (column + 1 < width_ && cells_[row * width_ + column].letter) ++column;
    Cell& cell = cells_[row * width_ + column];
    cell.letter = true;
    cell.ascii = letter;
  }
  std::string Line(size_t row) const {
    std::string out;
    for (size_t column = 0; column < width_; ++column) {
      const Cell& cell = cells_[row * width_ + column];
      if (cell.letter || !unicode_ || cell.dots == 0) {
        out += cell.ascii;
      } else {
        constexpr unsigned kBraille = 0x2800;  // U+2800, whose low bits are the dots
        const unsigned code = kBraille + cell.dots;
        out += static_cast<char>(0xe0 | (code >> 12));
        out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
        out += static_cast<char>(0x80 | (code & 0x3f));
      }
    }
    while (out.ends_with(' ')) out.pop_back();
    return out;
  }

 private:
  struct Cell {
    bool letter = false;
    char ascii = ' ';
    unsigned dots = 0;
  };
  static size_t Index(double share, size_t count) {
    const double index = std::floor(std::clamp(share, 0.0, 1.0) * static_cast<double>(count));
    return std::min(static_cast<size_t>(index), count - 1);
  }
  static size_t Row(double up, size_t count) { return count - 1 - Index(up, count); }
  void Dot(double across, double up, char ascii) {
    if (up < 0 || up > 1) return;
    if (!unicode_) {
      cells_[Row(up, height_) * width_ + Index(across, width_)].ascii = ascii;
      return;
    }
    // Bits of the dots of one letter: the left column from the top, then the right one.
    constexpr unsigned kBits[kDotsDown][kDotsAcross] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const size_t column = Index(across, width_ * kDotsAcross);
    const size_t row = Row(up, height_ * kDotsDown);
    cells_[row / kDotsDown * width_ + column / kDotsAcross].dots |=
        kBits[row % kDotsDown][column % kDotsAcross];
  }

  size_t width_;
  size_t height_;
  bool unicode_;
  std::vector<Cell> cells_;
};

// Numbers under the axis at whole decades.
std::string DecadesOf(const Axis& x, size_t width) {
  std::string line(kLabel + width, ' ');
  size_t free = 0;
  for (double exponent = x.low; exponent <= x.high + 0.5; ++exponent) {
    const std::string label = text::Number(std::pow(10, exponent));
    const double share = (exponent - x.low) / (x.high - x.low);
    size_t at = kLabel + static_cast<size_t>(share * static_cast<double>(width - 1));
    at = std::min(at, line.size() - label.size());
    if (at < free) continue;
    line.replace(at, label.size(), label);
    free = at + label.size() + 1;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace

std::string RooflinePlot(std::span<const PlottedPhase> phases, const insight::Roof& roof,
                         const PlotSize& size, bool unicode) {
  if (!(roof.flops > 0) || !(roof.bytes_per_second > 0) || size.width < 2 * kLabel) return {};
  double left = roof.Ridge() / 10;
  double right = roof.Ridge() * 10;
  double bottom = roof.flops / 10;
  double top = roof.flops;
  for (const PlottedPhase& phase : phases) {
    if (!CanStand(phase)) continue;
    left = std::min(left, phase.intensity);
    right = std::max(right, phase.intensity);
    bottom = std::min(bottom, phase.flops);
    top = std::max(top, phase.flops);
  }
  const Axis x = AxisAround(left, right);
  const Axis y = AxisAround(bottom, top);
  const size_t width = size.width - kLabel;
  Canvas canvas(width, size.height, unicode);
  canvas.Roof(x, y, roof);
  for (const PlottedPhase& phase : phases) {
    if (CanStand(phase)) canvas.Letter(x.At(phase.intensity), y.At(phase.flops), phase.letter);
  }
  std::string out;
  double next = y.high;  // the decade that the next label names
  for (size_t row = 0; row < size.height; ++row) {
    const double here =
        y.high - (y.high - y.low) * static_cast<double>(row) / static_cast<double>(size.height);
    std::string label;
    if (here <= next + 1e-9) {
      label = text::Value(std::pow(10, next), "flops_per_second");
      next -= 1;
    }
    out += fmt::format("{:>{}} |{}\n", label, kLabel - 2, canvas.Line(row));
  }
  out += fmt::format("{:>{}} +{}\n", "", kLabel - 2, std::string(width, '-'));
  out += DecadesOf(x, width) + "\n";
  constexpr std::string_view kName = "FLOP per byte";
  out += std::string(size.width - kName.size(), ' ') + std::string(kName) + "\n";
  return out;
}

}  // namespace sonde::cli
