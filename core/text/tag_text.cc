#include "core/text/tag_text.h"

#include <stdint.h>
#include <string.h>

#include "core/text/hash.h"

namespace sonde {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

// Copies whole characters as long as they fit into `room` bytes; returns the number of bytes.
size_t CopyPlain(std::string_view text, char* out, size_t room) {
  size_t size = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t length = names::Utf8Length(text, i);
    const bool plain = length > 1 || (length == 1 && text[i] >= 0x20 && text[i] != 0x7f);
    const size_t taken = plain ? length : 1;
    if (size + taken > room) break;
    if (plain) {
      memcpy(out + size, text.data() + i, length);
    } else {
      out[size] = '?';
    }
    size += taken;
    i += taken;
  }
  return size;
}

}  // namespace

void PutTagText(std::string_view text, TagText& out) {
  constexpr size_t kHashDigits = 8;
  const bool fits = text.size() <= kMaxNameLength;
  size_t size = CopyPlain(text, out, fits ? kMaxNameLength : kMaxNameLength - 1 - kHashDigits);
  if (!fits) {
    const uint32_t hash = Fnv1a32(text);
    out[size++] = '~';
    for (size_t i = kHashDigits; i > 0; --i) out[size++] = kDigits[hash >> (4 * (i - 1)) & 0xf];
  }
  if (size == 0) out[size++] = '?';
  out[size] = '\0';
}

void PutPlace(std::string_view file, uint64_t place, TagText& out) {
  char digits[16];
  size_t count = 0;
  do {
    digits[count++] = kDigits[place & 0xf];
    place >>= 4;
  } while (place != 0);
  constexpr std::string_view kMark = "+0x";
  size_t size = CopyPlain(file, out, kMaxNameLength - kMark.size() - count);
  memcpy(out + size, kMark.data(), kMark.size());
  size += kMark.size();
  while (count > 0) out[size++] = digits[--count];
  out[size] = '\0';
}

}  // namespace sonde
