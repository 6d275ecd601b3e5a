// The columns of a block in their stored form: the head of each, and reading its integers. Nothing
// that is read here is trusted.
//
// Thread safety: values; one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "series/block/block.h"
#include "series/block/format.h"

namespace sonde::block_format {

struct ColumnHead {
  uint64_t first = 0;                                 // integer; of a level column its base
  uint64_t step = 0;                                  // base of a steady column
  std::array<uint32_t, kMaxReferences> references{};  // columns that are added
  std::array<bool, kMaxReferences> negative{};        // or rather subtracted
  uint8_t reference_count = 0;
  Kind kind = Kind::kConstant;
  uint32_t gaps = 0;  // which of the patterns
  uint8_t scale = 0;
  uint8_t low_bits = 0;
  uint8_t summands = 1;  // itself and its references' summands
};

// Which rows are missing, and how many are present: at least one.
struct GapPattern {
  std::string_view map;  // empty: no row is missing
  size_t present = 0;
};

struct Heads {
  std::vector<ColumnHead> columns;
  std::vector<GapPattern> patterns;  // the first is that of columns without gaps

  size_t Present(const ColumnHead& head) const { return patterns[head.gaps].present; }
};

// Kinds, scales and heads of all columns, one array after the other; `in` must outlive the result.
// False if a column is of no known kind or refers to what it must not.
bool ReadHeads(size_t rows, size_t columns, ByteReader& in, Heads& heads);

// Where a column's residuals start.
struct ColumnPlace {
  uint32_t body = 0;  // offset in the bodies
  uint32_t low = 0;   // in bits
};

// Reads the bodies of columns, one after the other or each from its place.
class ColumnReader {
 public:
  // All must outlive the reader.
  ColumnReader(const Heads& heads, std::string_view bodies, std::string_view low)
      : heads_(heads), bodies_(bodies), in_(bodies), low_(low) {}

  ColumnPlace place() const {
    return {static_cast<uint32_t>(bodies_.size() - in_.left()), static_cast<uint32_t>(low_at_)};
  }
  void Go(const ColumnPlace& place) {
    in_ = ByteReader(bodies_.substr(place.body));
    low_at_ = place.low;
  }
  // The integers of the rows that are present, before any other column is added.
  bool ReadIntegers(const ColumnHead& head, int64_t* out);
  // Adds the integers to `sums`, or subtracts them.
  bool AddIntegers(const ColumnHead& head, bool negative, std::span<int64_t> sums);
  // Passes over the column without reading it.
  bool Skip(const ColumnHead& head);
  // Everything was read and nothing is left.
  bool done() const;

 private:
  bool ReadResiduals(size_t count, int low_bits);
  bool AddLowBits(size_t count, int low_bits);

  const Heads& heads_;
  std::string_view bodies_;
  ByteReader in_;
  std::string_view low_;
  size_t low_at_ = 0;  // in bits
  std::array<uint64_t, kMaxBlockRows> residuals_;
  std::array<int64_t, kMaxBlockRows> integers_;
};

// Moves the values of the rows that are present, which lie in front, to their places.
void SpreadOverGaps(const GapPattern& gaps, std::span<double> rows);

// Adds or subtracts the integers of another column.
void AddColumn(std::span<const int64_t> other, bool negative, int64_t* integers);

}  // namespace sonde::block_format
