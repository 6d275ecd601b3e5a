// Text for terminals: numbers with units, tables, and nothing that could steer the terminal.
//
// Thread safety: functions without state; Table by one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/printable.h"

namespace sonde::text {

using sonde::Printable;

// Characters of printable text.
size_t Width(std::string_view text);
// Cuts to `width` characters; the last one is "~" if something was cut.
std::string Cut(std::string_view text, size_t width);
// As wide, with a "~" for the part left out of the middle: names that begin alike differ at their
// ends. The tags of name{key="value"} keep half of the room and are shortened likewise.
std::string Shorten(std::string_view name, size_t width);

// "3.1 GiB"; "-" for NaN, here and below.
std::string Bytes(double bytes);
// "78 %", "0.4 %".
std::string Percent(double ratio);
// At most four significant digits.
std::string Number(double value);
// A value of a metric by its unit: bytes, seconds and ratios in their usual form, else the number
// and the unit. `per_second` for rates.
std::string Value(double value, std::string_view unit, bool per_second = false);

// 3 s, 250 ms.
inline std::string Seconds(double seconds) { return Value(seconds, "seconds"); }

// A bar of `width` characters, the share `ratio` of them full.
std::string Bar(double ratio, size_t width, bool unicode);

// A character of block elements, or of _.,-=+*#, for each value, the least one low and the largest
// high; a blank for a missing one. "" if there are less than two values, or all are equal. Not
// finite: missing.
std::string Sparkline(std::span<const double> values, bool unicode);

// Words in lines of at most `width` characters, each of which ends in a newline; the first line
// begins with `first`, the others with `rest`. A longer word has a line of its own.
std::string Wrapped(std::string_view first, std::string_view rest, std::string_view text,
                    size_t width);

// "Label    text" in such lines; the label takes kLabelWidth, also before the lines that follow.
std::string Labelled(std::string_view label, std::string_view text, size_t width);
inline constexpr size_t kLabelWidth = 9;

// Comes before text that belongs to a title.
inline constexpr std::string_view kIndent = "  ";

// Columns as wide as their widest cell, two blanks between them.
class Table {
 public:
  enum class Align : unsigned char { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool shrinks = false;  // is shortened if the table is too wide
    // Is left out where columns that shrink would become hard to read: those with the highest
    // number first, of equal ones from the left. 0: never.
    int spare = 0;
    size_t readable = 32;  // the least width of one that shrinks while there is a spare column
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // Lines that end in a newline, each after `indent`. Columns whose cells are all empty or "-" are
  // left out. At most `width` characters if columns that shrink or are spare allow it.
  std::string Render(std::string_view indent, size_t width) const;

 private:
  std::vector<size_t> Widest() const;
  std::vector<size_t> Widths(size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace sonde::text
