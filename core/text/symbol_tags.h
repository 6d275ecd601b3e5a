// A function's symbol in the tags of a metric, as libsonde_functions registers it and the daemon
// reads it (docs/interpose.md). A C++ function's symbol is often longer than the value of a tag may
// be, and the name that people write is made of all of it. So it is cut into pieces, each the value
// of a tag of its own; the daemon puts them together and makes the name, because that takes memory,
// which the process must not ask for at that moment.
//
// Header-only and free of dependencies, as names.h is, and for the same users.
//
// Thread safety: functions without state; signal handlers too.
#pragma once

#include <stddef.h>
#include <string.h>

#include <string_view>

#include "core/text/names.h"
#include "core/text/tag_text.h"

namespace sonde {

inline constexpr char kFunctionCalls[] = "function_calls_total";
inline constexpr char kFunctionSeconds[] = "function_seconds_total";

// Together with the tag `object`, as many as a process may give a metric.
inline constexpr const char* kSymbolKeys[] = {"function",   "function_2", "function_3",
                                              "function_4", "function_5", "function_6"};
inline constexpr size_t kSymbolPieces = sizeof(kSymbolKeys) / sizeof(kSymbolKeys[0]);
inline constexpr size_t kMaxSymbol = kSymbolPieces * kMaxNameLength;

struct SymbolTags {
  TagText pieces[kSymbolPieces];
  size_t count;
};

// Whether it is the symbol of a C++ function.
constexpr bool IsMangled(std::string_view symbol) {
  return symbol.size() > 2 && symbol[0] == '_' && symbol[1] == 'Z';
}

// Whole if it is a C++ function's and fits, else as PutTagText has it.
inline void PutSymbol(std::string_view symbol, SymbolTags* out) {
  out->count = 0;
  const char* at = symbol.data();
  size_t left = IsMangled(symbol) && names::IsPlainText(symbol) ? symbol.size() : 0;
  while (left > 0 && out->count < kSymbolPieces) {
    size_t size = left < kMaxNameLength ? left : kMaxNameLength;
    while (size < left && (static_cast<unsigned char>(at[size]) & 0xc0) == 0x80) --size;
    memcpy(out->pieces[out->count], at, size);
    out->pieces[out->count++][size] = '\0';
    at += size;
    left -= size;
  }
  if (left == 0 && out->count > 0) return;
  PutTagText(symbol, out->pieces[0]);
  out->count = 1;
}

}  // namespace sonde
