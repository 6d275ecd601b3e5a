// Which variables of a step's environment its profile keeps: how Slurm and OpenMP were set up and
// which modules were loaded, never what could be a secret.
//
// Header-only and free of dependencies: it is compiled into spank_sonde.so.
#pragma once

#include <cstddef>
#include <string_view>

namespace sonde {

inline constexpr size_t kMaxKeptVariables = 256;
inline constexpr size_t kMaxKeptName = 128;
inline constexpr size_t kMaxKeptValue = 1024;  // bytes; a longer one is cut
inline constexpr size_t kMaxKeptBytes = 12'288;

namespace names {

// Whether `text` contains `word`, which is in capitals, in either case.
constexpr bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = 0; at + word.size() <= text.size(); ++at) {
    size_t same = 0;
    for (; same < word.size(); ++same) {
      const char c = text[at + same];
      if ((c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c) != word[same]) break;
    }
    if (same == word.size()) return true;
  }
  return false;
}

}  // namespace names

constexpr bool KeepsVariable(std::string_view name) {
  if (name.size() > kMaxKeptName || name.starts_with("SLURM_SPANK_")) return false;
  if (!name.starts_with("SLURM_") && !name.starts_with("OMP_") && name != "LOADEDMODULES") {
    return false;
  }
  for (const std::string_view secret :
       {"TOKEN", "KEY", "SECRET", "PASS", "CRED", "AUTH", "JWT", "COOKIE"}) {
    if (names::HasWord(name, secret)) return false;
  }
  return true;
}

// Calls f(entry) for each "NAME=VALUE" of an environment that is kept, cut and bounded.
template <typename F>
class KeptEnvironment {
 public:
  explicit KeptEnvironment(F f) : f_(f) {}
  void Offer(std::string_view entry) {
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !KeepsVariable(entry.substr(0, equals))) return;
    entry = entry.substr(0, equals + 1 + kMaxKeptValue);
    if (count_ == kMaxKeptVariables || bytes_ + entry.size() > kMaxKeptBytes) return;
    ++count_;
    bytes_ += entry.size();
    f_(entry);
  }

 private:
  F f_;
  size_t count_ = 0;
  size_t bytes_ = 0;
};

}  // namespace sonde
