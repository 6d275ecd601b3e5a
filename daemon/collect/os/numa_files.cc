#include "daemon/collect/os/numa_files.h"

namespace sonde::collect {
namespace {

void Parse(std::string_view text, int words_before, std::span<const NumaKey> keys, double* values) {
  std::fill(values, values + keys.size(), kMissing);
  size_t next = 0;
  for (Cursor lines(text); lines.Rest().find('\n') != std::string_view::npos;) {
    Cursor line(lines.Line());
    for (int i = 0; i < words_before; ++i) line.Word();
    const std::string_view word = line.Word();
    for (size_t tried = 0; tried < keys.size(); ++tried) {
      const size_t i = (next + tried) % keys.size();
      if (keys[i].key != word) continue;
      values[i] = line.Number() * keys[i].scale;
      next = i + 1;
      break;
    }
  }
}

}  // namespace

void ParseNumaMemory(std::string_view text, std::span<const NumaKey> keys, double* values) {
  Parse(text, 2, keys, values);
}

void ParseNumaCounts(std::string_view text, std::span<const NumaKey> keys, double* values) {
  Parse(text, 0, keys, values);
}

}  // namespace sonde::collect
