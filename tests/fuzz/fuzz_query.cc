// The decoders of what travels through the tree for a question, and what a daemon then does with
// it: a query's filter and range, its evaluation over series, and parts that are merged and passed
// on.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "series/query/part.h"
#include "series/query/query.h"

namespace {

using namespace sonde;

// Filled buckets are many by intention; the fuzzer is after other things.
bool IsCheap(const QuerySpec& spec) {
  return !spec.downsample || spec.downsample->interval == 0 ||
         (spec.end - spec.start) / spec.downsample->interval < 1000;
}

// Series with any times and values.
std::vector<SeriesData> ReadSeries(const std::string& metric, ByteReader& in) {
  std::vector<SeriesData> all;
  while (in.left() > 0 && all.size() < 16) {
    const auto shape = in.Fixed<uint8_t>();
    SeriesData& data = all.emplace_back();
    data.series.metric.name = metric;
    if ((shape & 1) != 0)
      data.series.tags.Set("host", std::string(1, static_cast<char>('a' + shape % 5)));
    if ((shape & 2) != 0) data.series.tags.Set("stat", shape % 5 == 0 ? "sum" : "count");
    for (int points = shape >> 4; points > 0 && in.ok(); --points) {
      data.points.push_back({in.Signed(), in.Fixed<double>()});
    }
  }
  return all;
}

// What decodes can be merged, finished and sent again, and is the same then.
void TryPart(const QuerySpec& spec, std::string_view bytes, const QueryPart& own) {
  const auto part = DecodePart(spec, bytes);
  if (!part.ok()) return;
  if (part->Points() > kMaxPartPoints) __builtin_trap();
  QueryPart fresh = *part;
  for (GroupPart& group : fresh.groups) group.encoded.clear();
  const auto again = EncodePart(fresh);
  if (again.ok() && !DecodePart(spec, *again).ok()) __builtin_trap();
  QueryPart merged = own;
  const QueryGrid grid{kSecond, {}};
  for (int i = 0; i < 2; ++i) {
    if (!MergePart(spec, grid, *part, merged).ok()) return;
  }
  (void)OddTimes(spec, merged, grid);
  (void)FinishPart(spec, merged);
  const auto up = EncodePart(merged);
  if (up.ok() && !DecodePart(spec, *up).ok()) __builtin_trap();
}

}  // namespace

// The input: the query, a grid and a part, each with its length before it, then series.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader in({reinterpret_cast<const char*>(data), size});
  const auto spec = DecodeQuery(in.Text(size));
  const auto grid = DecodeGrid(in.Text(size));
  const std::string_view part = in.Text(size);
  if (!spec.ok()) return 0;
  (void)DataRange(*spec);
  (void)AnswersFromReduced(*spec);
  if (!IsCheap(*spec)) return 0;
  const std::vector<SeriesData> series = ReadSeries(spec->metric, in);
  (void)Evaluate(*spec, series);
  (void)EvaluateReduced(*spec, series);
  QueryPart own = EmptyPart(*spec);
  if (grid.ok() && spec->filters.empty()) {
    auto evaluated = EvaluatePart(*spec, series, &*grid);
    if (evaluated.ok()) own = *std::move(evaluated);
  }
  TryPart(*spec, part, own);
  return 0;
}
