// A symbol in the tags of a metric: what a process cuts into pieces the daemon puts together.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/text/symbol_tags.h"
#include "daemon/collect/app/function_names.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde;
  const std::string_view symbol(reinterpret_cast<const char*>(data), size);
  SymbolTags tags;
  PutSymbol(symbol, &tags);
  Series series;
  series.metric.name = kFunctionCalls;
  if (tags.count == 0 || tags.count > kSymbolPieces) abort();
  for (size_t i = 0; i < tags.count; ++i) {
    if (!CheckTag(kSymbolKeys[i], tags.pieces[i]).ok()) abort();
    series.tags.Set(kSymbolKeys[i], tags.pieces[i]);
  }
  const std::string found = collect::SymbolOf(series);
  if (tags.count > 1 && found != symbol) abort();
  // Each piece but the last has all but three bytes of a character at least.
  const bool fits = size <= kSymbolPieces * (kMaxNameLength - 3);
  if (IsMangled(symbol) && names::IsPlainText(symbol) && fits && found != symbol) abort();
  return 0;
}
