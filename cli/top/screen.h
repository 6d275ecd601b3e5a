// A frame as cells: what stands where on the terminal, and how it is marked.
//
// Whatever text is put here, no cell ever holds a character that steers a terminal, that takes more
// or less than one place, or that the terminal cannot show: it becomes a '?'.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::cli::top {

enum class Style : uint8_t { kPlain, kDim, kBold, kTitle, kGood, kWarn, kBad, kCool };
inline constexpr size_t kStyles = 8;

struct Cell {
  char32_t letter = U' ';
  Style style = Style::kPlain;
  bool selected = false;
  bool operator==(const Cell&) const = default;
};

// Text in one style; a line is made of several.
struct Part {
  std::string text;
  Style style = Style::kPlain;
};

// The character of untrusted text as a cell may hold it.
char32_t Shown(char32_t letter, bool unicode);
// As many characters as cells will show.
size_t LettersOf(std::string_view text);

class Screen {
 public:
  Screen(size_t width, size_t height, bool unicode)
      : width_(width), height_(height), unicode_(unicode), cells_(width * height) {}

  size_t width() const { return width_; }
  size_t height() const { return height_; }
  bool unicode() const { return unicode_; }
  const Cell& At(size_t x, size_t y) const { return cells_[y * width_ + x]; }

  // From x on, at most `most` characters; a text that is cut ends in '~'. The place behind it.
  size_t Put(size_t x, size_t y, std::string_view text, Style style = Style::kPlain,
             size_t most = SIZE_MAX);
  // The same, so that it ends before x.
  void PutRight(size_t x, size_t y, std::string_view text, Style style = Style::kPlain);
  void PutLetter(size_t x, size_t y, char32_t letter, Style style);
  // Marks a row as the one under the cursor.
  void Select(size_t y);
  // A whole row in one style.
  void Paint(size_t y, Style style);

  // Lines without blanks at their ends.
  std::string ToText() const;
  std::string TextOf(size_t y) const;

 private:
  size_t width_;
  size_t height_;
  bool unicode_;
  std::vector<Cell> cells_;
};

}  // namespace sonde::cli::top
