// Blocks: some hundred rows of one group, compressed into one frame.
//
// Format, version 2, is specified in docs/format.md. A shared time column, then one column per
// series by class (constant, integer, scaled decimal, float), predicted from its own past and from
// other columns; zigzag varints of what is left in one zstd frame, their noise behind it;
// checksums. Every double comes back bit for bit, NaN included.
//
// Cost, of a node's 400 series and 128 rows: 7 ns a value to encode, 2 to decode, 36 us for one
// series alone; 0.2 MB that an encoder keeps.
//
// Thread safety: a BlockEncoder is used by one thread at a time and keeps its buffers, so that
// sealing allocates nothing once warm; DecodeBlock may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "series/block/schema.h"

namespace sonde {

inline constexpr size_t kMaxBlockRows = 1024;
// Rows times columns: what a block may unfold to when it is read (64 MiB).
inline constexpr size_t kMaxBlockSamples = size_t{1} << 23;

struct BlockInfo {
  uint64_t schema_id = 0;
  size_t rows = 0;
  size_t columns = 0;
  Nanos first = 0;
  Nanos last = 0;
};

struct Block {
  uint64_t schema_id = 0;
  std::vector<Nanos> times;
  std::vector<double> values;  // column after column: values[column * times.size() + row]

  std::span<const double> Column(size_t i) const {
    return {values.data() + i * times.size(), times.size()};
  }
  size_t columns() const { return times.empty() ? 0 : values.size() / times.size(); }
};

class BlockEncoder {
 public:
  BlockEncoder();
  ~BlockEncoder();

  // `columns` holds column after column with `stride` doubles from one to the next. Appends the
  // block to `out`. Needs 1 to kMaxBlockRows rows, at most kMaxBlockSamples samples and times that
  // do not run backwards.
  Status Encode(uint64_t schema_id, std::span<const Nanos> times, const double* columns,
                size_t column_count, size_t stride, std::string& out);
  // What the encoder keeps between blocks, in bytes.
  size_t MemoryUse() const;

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

// The header alone, without decompressing. kCorrupt, or kUnsupported for a newer version.
Result<BlockInfo> ReadBlockInfo(std::string_view bytes);
// Everything; the checksum is verified, and no length in it is trusted.
Result<Block> DecodeBlock(std::string_view bytes);
// Only the columns that `wanted` is true for, which are the only ones of the result, in their
// order; the others cost little. `wanted` has an entry for every column, or kInvalid.
Result<Block> DecodeColumns(std::string_view bytes, const std::vector<bool>& wanted);

// A block decompressed, of which any column can be read by itself: for questions that come again
// and again, at some three times the memory of the block.
//
// Thread safety: immutable.
class PlainBlock {
 public:
  // Verifies what DecodeBlock does.
  static Result<std::shared_ptr<const PlainBlock>> Unpack(std::string_view bytes);
  ~PlainBlock();
  PlainBlock(const PlainBlock&) = delete;
  PlainBlock& operator=(const PlainBlock&) = delete;

  std::span<const Nanos> times() const;
  size_t columns() const;
  // Column `i`, which there is, into as many values as there are times.
  Status Read(size_t i, std::span<double> values) const;
  // Bytes that it holds.
  size_t MemoryUse() const;

 private:
  struct Rep;
  explicit PlainBlock(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace sonde
