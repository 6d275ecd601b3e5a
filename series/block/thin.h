// Thinning: fewer rows for the same span of time.
//
// Several successive rows become one, at the time of the last of them. For a counter the row has
// its last value, so that rates and totals stay right; for a gauge the mean and, as series of their
// own with the tag `thinned`, the smallest and the largest value. No row is left out: each thinned
// row says by its weight how many samples it is made of. Thinning twice gives the same as thinning
// once, up to the rounding of means; where values are missing, a mean counts each row by its
// weight.
//
// Since the smallest and the largest of two values are just these two, thinning by less than four
// saves nothing.
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
// itself, without extremes, if these were too many columns.
Schema::Ptr ThinnedSchema(const Schema& base);
bool IsExtreme(const Series& series);

// The part of a thinned schema that is needed to write its blocks; it is much smaller.
struct ThinnedShape {
  explicit ThinnedShape(const Schema& thinned) : id(thinned.id()), columns(thinned.size()) {}
  uint64_t id;
  size_t columns;
};

// A block to be thinned. `weights`: how many samples each row is made of; columns are then those of
// the thinned schema. Empty: rows are samples, and columns those of the base schema.
struct ThinSource {
  std::string_view bytes;
  std::span<const uint32_t> weights;
};

struct ThinnedBlock {
  BlockInfo info;
  std::shared_ptr<const std::string> bytes;
  std::vector<uint32_t> weights;  // of its rows
};

// Makes one block, by `thinned`, from blocks of the base schema in the order of time. Joins rows
// until the new row is made of at least `samples` samples. kLimit if the result has more than
// kMaxBlockRows rows.
Result<ThinnedBlock> Thin(const Schema& base, const ThinnedShape& thinned,
                          std::span<const ThinSource> blocks, uint32_t samples,
                          BlockEncoder& encoder);

}  // namespace sonde
