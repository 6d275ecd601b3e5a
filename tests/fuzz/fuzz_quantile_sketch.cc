// QuantileSketch::Decode: what it accepts is within its bounds and comes back the same; merging it
// with itself doubles its counts and adds no bucket.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "series/sketch/quantile_sketch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde;
  ByteReader in(std::string_view(reinterpret_cast<const char*>(data), size));
  QuantileSketch sketch;
  if (!sketch.Decode(in).ok()) return 0;
  if (sketch.buckets().size() > QuantileSketch::kMaxBuckets) std::abort();
  std::string bytes;
  ByteWriter out(bytes);
  sketch.Encode(out);
  if (bytes.size() > QuantileSketch::kMaxBytes) std::abort();
  ByteReader again(bytes);
  QuantileSketch back;
  if (!back.Decode(again).ok() || !again.done() || !(back == sketch)) std::abort();
  if (!sketch.empty() && !std::isfinite(sketch.Quantile(0.5))) std::abort();

  QuantileSketch twice = sketch;
  twice.Merge(sketch);
  const uint64_t count = sketch.count();
  if (twice.count() != (count > UINT64_MAX / 2 ? UINT64_MAX : 2 * count)) std::abort();
  if (twice.buckets().size() != sketch.buckets().size()) std::abort();
  back.Add(std::ldexp(1.0, static_cast<int>(size % 2000) - 1000));
  twice.Merge(back);
  if (twice.buckets().size() > QuantileSketch::kMaxBuckets) std::abort();
  return 0;
}
