// FNV-1a, a hash of short texts: fast, and no protection against texts that are made to collide.
// Never to change: ids on disk are made of it.
//
// Header-only and free of dependencies, as names.h is, and for the same users.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string_view>

namespace sonde {

// `hash`: that of the text before this one.
constexpr uint32_t Fnv1a32(std::string_view text, uint32_t hash = 2166136261u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

constexpr uint64_t Fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace sonde
