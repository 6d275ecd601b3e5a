// Thinning: the same time in fewer rows.
//
// Some rows that follow each other become one, at the time of the last of them. Of a counter it has
// what it had come to, so that rates and totals stay right; of a gauge the mean, and beside it, as
// series of their own with the tag `thinned`, the smallest and the largest value. No row is left
// out: each thinned row says, by its weight, how many samples it is made of. Thinning again what
// was thinned gives what thinning once would have given, up to the rounding of means; where values
// are missing, a mean counts each row by its weight.
//
// Since the smallest and the largest of two values are the two, thinning by less than four saves
// nothing.
//
// Thread safety: functions without state; a BlockEncoder is used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "series/block/block.h"
#include "series/block/schema.h"

namespace sonde {

// The tag of the series of extremes; its value is "min" or "max".
inline constexpr std::string_view kThinnedTag = "thinned";
inline constexpr uint32_t kLeastThinning = 4;

// The columns of thinned rows: those of `base`, then smallest and largest of each gauge. `base`
// itself, without extremes, where that would be too many.
Schema::Ptr ThinnedSchema(const Schema& base);
bool IsExtreme(const Series& series);

// What must be known of a thinned schema to write its blocks; it is much smaller.
struct ThinnedShape {
  explicit ThinnedShape(const Schema& thinned) : id(thinned.id()), columns(thinned.size()) {}
  uint64_t id;
  size_t columns;
};

// A block to be thinned. `weights`: how many samples each of its rows is made of; empty: they are
// samples, and its columns are those of the base schema, else of the thinned one.
struct ThinSource {
  std::string_view bytes;
  std::span<const uint32_t> weights;
};

struct ThinnedBlock {
  BlockInfo info;
  std::shared_ptr<const std::string> bytes;
  std::vector<uint32_t> weights;  // of its rows
};

// One block, by `thinned`, of blocks of the base schema in the order of time. Rows are put together
// until they are made of at least `samples` samples. kLimit if the result has more than
// kMaxBlockRows rows.
Result<ThinnedBlock> Thin(const Schema& base, const ThinnedShape& thinned,
                          std::span<const ThinSource> blocks, uint32_t samples,
                          BlockEncoder& encoder);

}  // namespace sonde
