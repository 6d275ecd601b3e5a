// The decoders of what travels through the tree, and what a daemon then does with it: a query's
// filter and range, and its evaluation over the series.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "series/query.h"

namespace {

// Filled buckets are many by intention; the fuzzer is after other things.
bool IsCheap(const sonde::QuerySpec& spec) {
  return !spec.downsample || spec.downsample->interval == 0 ||
         (spec.end - spec.start) / spec.downsample->interval < 1000;
}

}  // namespace

// The input: the query with its length before it, then the series.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sonde::ByteReader in({reinterpret_cast<const char*>(data), size});
  const auto spec = sonde::DecodeQuery(in.Text(size));
  const auto series = sonde::DecodeSeriesData(in.Raw(in.left()));
  if (!spec.ok()) return 0;
  (void)sonde::DataRange(*spec);
  (void)sonde::AnswersFromReduced(*spec);
  if (!series.ok() || !IsCheap(*spec)) return 0;
  (void)sonde::Evaluate(*spec, *series);
  (void)sonde::EvaluateReduced(*spec, *series);
  return 0;
}
