// Blocks: some hundred rows of one group, compressed into one frame.
//
// Format, version 2, is specified in docs/format.md. A shared time column, then one column per
// series by class (constant, integer, scaled decimal, float), predicted from its own past and from
// other columns. The residuals are zigzag varints in one zstd frame, with their noisy low bits
// behind it; checksums. Every double comes back bit for bit, NaN included.
//
// Cost for a node's 400 series and 128 rows: 7 ns a value to encode, 2 to decode, 36 us to decode
// one series alone; an encoder keeps 0.2 MB.
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
// The largest rows times columns of a block: it unfolds to 64 MiB when it is read.
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

// Reads the header alone, without decompressing. kCorrupt, or kUnsupported for a newer version.
Result<BlockInfo> ReadBlockInfo(std::string_view bytes);
// Decodes everything; the checksum is verified, and no length in the block is trusted.
Result<Block> DecodeBlock(std::string_view bytes);
// Decodes only the columns for which `wanted` is true; the result has these alone, in their order,
// and the others cost little. kInvalid unless `wanted` has an entry for every column.
Result<Block> DecodeColumns(std::string_view bytes, const std::vector<bool>& wanted);

// A decompressed block, any column of which can be read by itself: for repeated questions, at some
// three times the memory of the block.
//
// Thread safety: immutable.
class PlainBlock {
 public:
  // Makes the same checks as DecodeBlock.
  static Result<std::shared_ptr<const PlainBlock>> Unpack(std::string_view bytes);
  ~PlainBlock();
  PlainBlock(const PlainBlock&) = delete;
  PlainBlock& operator=(const PlainBlock&) = delete;

  std::span<const Nanos> times() const;
  size_t columns() const;
  // Reads column `i`, which must exist, into as many values as there are times.
  Status Read(size_t i, std::span<double> values) const;
  // Bytes that the block holds.
  size_t MemoryUse() const;

 private:
  struct Rep;
  explicit PlainBlock(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace sonde
