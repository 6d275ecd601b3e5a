#include "profiles/model/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/time.h"

namespace sonde::text {
namespace {

constexpr std::string_view kNothing = "-";
constexpr size_t kNarrowest = 6;  // the least width of a column that shrinks

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

size_t Width(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), Continues));
}

std::string Cut(std::string_view text, size_t width) {
  if (Width(text) <= width) return std::string(text);
  if (width == 0) return "";
  size_t end = 0;
  for (size_t left = width - 1; end < text.size(); ++end) {
    if (!Continues(text[end]) && left-- == 0) break;
  }
  return std::string(text.substr(0, end)) + "~";
}

namespace {

// The byte position of character `n`, or the end.
size_t PlaceOf(std::string_view text, size_t n) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (!Continues(text[at]) && n-- == 0) break;
  }
  return at;
}

std::string WithoutMiddle(std::string_view text, size_t width) {
  const size_t all = Width(text);
  if (all <= width) return std::string(text);
  if (width < 3) return Cut(text, width);
  const size_t tail = width / 2;
  std::string out(text.substr(0, PlaceOf(text, width - 1 - tail)));
  return out.append("~").append(text.substr(PlaceOf(text, all - tail)));
}

}  // namespace

std::string Shorten(std::string_view name, size_t width) {
  const size_t brace = name.find('{');
  if (brace == std::string_view::npos || Width(name) <= width) return WithoutMiddle(name, width);
  const std::string_view metric = name.substr(0, brace);
  const std::string_view tags = name.substr(brace);
  const size_t of_metric = std::max(width - width / 2, width - std::min(width, Width(tags)));
  const std::string first = WithoutMiddle(metric, of_metric);
  return first + WithoutMiddle(tags, width - Width(first));
}

std::string Number(double value) {
  if (std::isnan(value)) return std::string(kNothing);
  if (std::abs(value) < 1e6 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

std::string Bytes(double bytes) {
  static constexpr std::array<std::string_view, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                             "TiB", "PiB", "EiB"};
  if (!std::isfinite(bytes)) return Number(bytes);
  size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < kUnits.size()) bytes /= 1024, ++unit;
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{:.{}f} {}", bytes, std::abs(bytes) < 100 ? 1 : 0, kUnits[unit]);
}

std::string Percent(double ratio) {
  if (std::isnan(ratio)) return std::string(kNothing);
  const double percent = ratio * 100;
  // A part must not look like all, nor a little like nothing.
  if (percent < 100 && percent >= 99.5) return fmt::format("{:.2f} %", std::min(percent, 99.99));
  return fmt::format("{:.{}f} %", percent, percent != 0 && std::abs(percent) < 10 ? 1 : 0);
}

namespace {

// Units that take a prefix of the SI, and how people write them.
struct Scaled {
  std::string_view unit;
  std::string_view symbol;
};
constexpr Scaled kScaled[] = {
    {"hertz", "Hz"}, {"flops_per_second", "FLOP/s"}, {"joules", "J"}, {"watts", "W"}};

std::string WithPrefix(double value, std::string_view symbol) {
  constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t i = 0;
  while (std::abs(value) >= 1000 && i + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++i;
  }
  return fmt::format("{} {}{}", Number(value), kPrefixes[i], symbol);
}

}  // namespace

std::string Value(double value, std::string_view unit, bool per_second) {
  const std::string_view rate = per_second ? "/s" : "";
  if (std::isnan(value)) return std::string(kNothing);
  if (unit == "bytes") return Bytes(value) + std::string(rate);
  if (unit == "seconds" && !per_second && std::abs(value) < 9e9) {
    return FormatDuration(static_cast<Nanos>(value * static_cast<double>(kSecond)));
  }
  if (unit == "seconds" && per_second) return Number(value) + " s/s";
  if (unit == "bytes_per_second") return Bytes(value) + "/s";
  if (unit == "ratio" && !per_second) return Percent(value);
  // Energy per second is power.
  if (unit == "joules" && per_second) return WithPrefix(value, "W");
  for (const Scaled& known : kScaled) {
    if (unit == known.unit) return WithPrefix(value, known.symbol) + std::string(rate);
  }
  if (unit.empty() || unit == "1") return Number(value) + std::string(rate);
  return Number(value) + " " + Printable(unit) + std::string(rate);
}

std::string Labelled(std::string_view label, std::string_view text, size_t width) {
  return Wrapped(fmt::format("{:<{}}", label, kLabelWidth), std::string(kLabelWidth, ' '), text,
                 width);
}

std::string Sparkline(std::span<const double> values, bool unicode) {
  static constexpr std::string_view kSteps[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::string_view kAscii = "_.,-=+*#";
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (!(least < most)) return "";
  std::string out;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      out += ' ';
      continue;
    }
    // Halves, so that the difference of two large numbers is finite.
    const double share = (value / 2 - least / 2) / (most / 2 - least / 2);
    const auto step =
        std::min(static_cast<size_t>(share * std::size(kSteps)), std::size(kSteps) - 1);
    out += unicode ? kSteps[step] : kAscii.substr(step, 1);
  }
  return out;
}

std::string Wrapped(std::string_view first, std::string_view rest, std::string_view text,
                    size_t width) {
  std::string out;
  std::string line(first);
  bool empty = true;
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    if (!empty && Width(line) + 1 + Width(word) > width) {
      out += line + "\n";
      line = rest;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  }
  return out + line + "\n";
}

std::string Bar(double ratio, size_t width, bool unicode) {
  const double share = std::isfinite(ratio) ? std::clamp(ratio, 0.0, 1.0) : 0.0;
  const auto full = static_cast<size_t>(std::lround(share * static_cast<double>(width)));
  std::string bar;
  for (size_t i = 0; i < width; ++i) {
    if (unicode) {
      bar += i < full ? "\u2588" : "\u2591";
    } else {
      bar += i < full ? '#' : '.';
    }
  }
  return bar;
}

// The width that each column wants, 0 for an empty column.
std::vector<size_t> Table::Widest() const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (size_t c = 0; c < columns_.size(); ++c) {
    bool useful = false;
    size_t widest = Width(columns_[c].title);
    for (const auto& row : rows_) {
      widest = std::max(widest, Width(row[c]));
      useful = useful || (!row[c].empty() && row[c] != kNothing);
    }
    if (useful) widths[c] = widest;
  }
  return widths;
}

std::vector<size_t> Table::Widths(size_t width) const {
  std::vector<size_t> widths = Widest();
  size_t total = 0;   // with two blanks after each column except the last
  size_t needed = 0;  // if all that shrink had the least readable width
  const auto least = [&](size_t c) {
    const Column& column = columns_[c];
    return (column.shrinks ? std::min(widths[c], column.readable) : widths[c]) + 2;
  };
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (widths[c] == 0) continue;
    total += widths[c] + 2;
    needed += least(c);
  }
  std::vector<size_t> spare;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].spare > 0 && widths[c] > 0) spare.push_back(c);
  }
  std::stable_sort(spare.begin(), spare.end(),
                   [&](size_t a, size_t b) { return columns_[a].spare > columns_[b].spare; });
  for (const size_t c : spare) {
    if (needed <= width + 2) break;
    total -= widths[c] + 2;
    needed -= least(c);
    widths[c] = 0;
  }
  while (total > width + 2) {  // the widest column shrinks first
    size_t widest = columns_.size();
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (!columns_[c].shrinks || widths[c] <= kNarrowest) continue;
      if (widest == columns_.size() || widths[c] > widths[widest]) widest = c;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
    --total;
  }
  return widths;
}

std::string Table::Render(std::string_view indent, size_t width) const {
  const std::vector<size_t> widths =
      Widths(width > indent.size() ? width - indent.size() : size_t{0});
  std::string out;
  const auto line = [&](const auto& cell_of) {
    std::string text(indent);
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      const std::string cell = Shorten(cell_of(c), widths[c]);
      const std::string blanks(widths[c] - Width(cell), ' ');
      text += columns_[c].align == Align::kRight ? blanks + cell : cell + blanks;
      text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([&](size_t c) { return columns_[c].title; });
  for (const auto& row : rows_) {
    line([&](size_t c) { return row[c]; });
  }
  return out;
}

}  // namespace sonde::text
