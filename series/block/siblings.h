// Which earlier columns of a block a column can be predicted from: many of a node's series are the
// same number from another file, or the sum or the difference of others.
//
// The search compares the differences of 16 rows with those of the last 64 columns that were worth
// keeping, and checks what it finds on all rows. A pair of columns costs some 15 ns, so a column
// that moves in every row costs at most 2 us.
//
// Thread safety: none. Memory: under 5 KiB, and 8 bytes a row.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "series/block/format.h"

namespace sonde::block_format {

struct Reference {
  uint32_t column = 0;
  bool negative = false;
};

// The columns that are added to the integers of one column.
struct References {
  std::array<Reference, kMaxReferences> at;
  size_t count = 0;
};

class SiblingSearch {
 public:
  // `integers_of` puts the integers of an earlier column, which was offered, into an array.
  using IntegersOf = std::function<void(uint32_t column, int64_t* out)>;

  void Clear();
  // Subtracts columns from `integers` as long as that makes these smaller: only columns of the same
  // `gaps`, which have as many integers.
  References TakeOut(std::span<int64_t> integers, uint32_t gaps, const IntegersOf& integers_of);
  // Offers the column whose integers TakeOut was given last to later columns.
  void Offer(uint32_t column);
  size_t MemoryUse() const;

 private:
  static constexpr size_t kSamples = 16;
  using Sample = std::array<float, kSamples>;
  struct Candidate {
    uint32_t column;
    uint32_t gaps;
    uint8_t summands;
  };
  struct Match {
    size_t candidate;
    bool negative;
    int cost;
  };

  static Sample SampleOf(std::span<const int64_t> integers);
  Match BestMatch(const Sample& rest, int own) const;

  // The columns offered last; the next one goes to place `next_`.
  std::vector<Sample> samples_;
  std::vector<Candidate> candidates_;
  size_t next_ = 0;
  // Of the column that TakeOut was given last.
  Sample sample_{};
  uint32_t gaps_ = 0;
  uint8_t summands_ = 1;
  std::vector<int64_t> others_;
};

}  // namespace sonde::block_format
