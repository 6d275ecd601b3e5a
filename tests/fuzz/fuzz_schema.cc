// Schema::Decode: what it accepts is exactly what Encode writes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "series/block/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto schema = sonde::Schema::Decode(bytes);
  (void)sonde::SchemaCache().Decode(bytes);
  if (schema.ok()) {
    const auto back = sonde::SchemaCache().Decode(sonde::PackSchema(**schema));
    if (!back.ok() || (*back)->id() != (*schema)->id()) std::abort();
  }
  if (schema.ok() && (*schema)->encoded() != bytes) std::abort();
  return 0;
}
