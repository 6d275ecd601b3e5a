#include "cli/top/screen.h"

#include <algorithm>

#include "core/text/names.h"

namespace sonde::cli::top {
namespace {

// The first character of a text that is not empty, and how many bytes it takes; 0xFFFD for bytes
// that are none.
char32_t Decode(std::string_view text, size_t at, size_t& length) {
  length = names::Utf8Length(text, at);
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[at + k]); };
  const auto low = [&](size_t k) { return static_cast<char32_t>(byte(k) & 0x3f); };
  switch (length) {
    case 1:
      return byte(0);
    case 2:
      return (static_cast<char32_t>(byte(0) & 0x1f) << 6) | low(1);
    case 3:
      return (static_cast<char32_t>(byte(0) & 0x0f) << 12) | (low(1) << 6) | low(2);
    case 4:
      return (static_cast<char32_t>(byte(0) & 0x07) << 18) | (low(1) << 12) | (low(2) << 6) |
             low(3);
    default:
      length = 1;
      return 0xfffd;
  }
}

void Encode(char32_t letter, std::string& out) {
  const auto add = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (letter < 0x80) {
    add(letter);
  } else if (letter < 0x800) {
    add(0xc0 | (letter >> 6));
    add(0x80 | (letter & 0x3f));
  } else {
    add(0xe0 | (letter >> 12));
    add(0x80 | ((letter >> 6) & 0x3f));
    add(0x80 | (letter & 0x3f));
  }
}

}  // namespace

// Latin, Greek and Cyrillic letters, and what the layout draws with. Others may take two places, or
// none, and terminals do not agree on which.
char32_t Shown(char32_t letter, bool unicode) {
  if (letter >= 0x20 && letter < 0x7f) return letter;
  if (!unicode) return U'?';
  const auto within = [&](char32_t first, char32_t last) {
    return letter >= first && letter <= last;
  };
  const bool fits = (within(0xa1, 0x2ff) && letter != 0xad) || within(0x370, 0x482) ||
                    within(0x48a, 0x52f) || letter == 0x25b2 || letter == 0x25bc ||
                    within(0x2500, 0x259f) || within(0x2800, 0x28ff);
  return fits ? letter : U'?';
}

size_t LettersOf(std::string_view text) {
  size_t letters = 0;
  for (size_t at = 0, length = 0; at < text.size(); at += length, ++letters) {
    Decode(text, at, length);
  }
  return letters;
}

size_t Screen::Put(size_t x, size_t y, std::string_view text, Style style, size_t most) {
  if (y >= height_ || x >= width_) return x;
  most = std::min(most, width_ - x);
  const size_t letters = LettersOf(text);
  size_t at = 0;
  for (size_t i = 0; i < std::min(letters, most); ++i) {
    size_t length = 0;
    const char32_t letter = Decode(text, at, length);
    at += length;
    const bool cut = i + 1 == most && letters > most;
    PutLetter(x + i, y, cut ? U'~' : letter, style);
  }
  return x + std::min(letters, most);
}

void Screen::PutRight(size_t x, size_t y, std::string_view text, Style style) {
  const size_t letters = LettersOf(text);
  Put(x - std::min(x, letters), y, text, style, x);
}

void Screen::PutLetter(size_t x, size_t y, char32_t letter, Style style) {
  if (x >= width_ || y >= height_) return;
  Cell& cell = cells_[y * width_ + x];
  cell.letter = Shown(letter, unicode_);
  cell.style = style;
}

void Screen::Select(size_t y) {
  if (y >= height_) return;
  for (size_t x = 0; x < width_; ++x) cells_[y * width_ + x].selected = true;
}

void Screen::Paint(size_t y, Style style) {
  if (y >= height_) return;
  for (size_t x = 0; x < width_; ++x) cells_[y * width_ + x].style = style;
}

std::string Screen::TextOf(size_t y) const {
  size_t end = width_;
  while (end > 0 && At(end - 1, y).letter == U' ') --end;
  std::string line;
  for (size_t x = 0; x < end; ++x) Encode(At(x, y).letter, line);
  return line;
}

std::string Screen::ToText() const {
  std::string text;
  for (size_t y = 0; y < height_; ++y) text += TextOf(y) + "\n";
  return text;
}

}  // namespace sonde::cli::top
