// Sketch::Decode: what it accepts is finite and comes back the same; merging it with itself doubles
// its counts.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "series/sketch/sketch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde;
  ByteReader in(std::string_view(reinterpret_cast<const char*>(data), size));
  const Result<Sketch> sketch = Sketch::Decode(in);
  if (!sketch.ok()) return 0;
  std::string bytes;
  ByteWriter out(bytes);
  sketch->Encode(out);
  ByteReader again(bytes);
  const Result<Sketch> back = Sketch::Decode(again);
  if (!back.ok() || !again.done() || !(*back == *sketch)) std::abort();
  if (!sketch->empty() && !std::isfinite(sketch->Quantile(0.5))) std::abort();

  Sketch twice = *sketch;
  twice.Merge(*sketch);
  const uint64_t count = sketch->count();
  if (twice.count() != (count > UINT64_MAX / 2 ? UINT64_MAX : 2 * count)) std::abort();
  if (twice.buckets().size() != sketch->buckets().size()) std::abort();
  if (twice.min() != sketch->min() || !std::isfinite(twice.sum())) std::abort();
  return 0;
}
