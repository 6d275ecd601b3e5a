// srun's own words on its command line, by which a plugin can tell what Slurm does not tell.
//
// Thread safety: a function without state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace sonde::spank {

// Whether `--async`, or as much of it as no other option begins with, is among srun's options.
// `words`: as /proc/PID/cmdline has them; `program`: which of them is the program's name (the first
// is 0), behind which all words are the program's.
inline bool SaysAsync(std::string_view words, size_t program) {
  for (size_t i = 0; i < program && !words.empty(); ++i) {
    const std::string_view word = words.substr(0, words.find('\0'));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    if (word == "--") return false;
    if (word.size() >= 4 && std::string_view("--async").starts_with(word)) return true;
  }
  return false;
}

}  // namespace sonde::spank
