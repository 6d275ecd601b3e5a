// DecodeBlock over three readings of the input: as it is, with its checksums put right, and as what
// the frame of a block holds, whose schema id's first byte says how many of the last are low bits.
// What decodes must survive being encoded again.
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "series/block/block.h"
#include "series/block/format.h"

namespace {

using namespace sonde;

constexpr size_t kSchemaAt = 4;
constexpr size_t kPlainSizeAt = block_format::kHeaderSize - 16;
constexpr size_t kFrameSizeAt = block_format::kHeaderSize - 12;
constexpr size_t kBodyCrcAt = block_format::kHeaderSize - 8;
constexpr size_t kHeaderCrcAt = block_format::kHeaderSize - 4;

void Put(std::string& block, size_t at, uint32_t value) {
  std::memcpy(block.data() + at, &value, sizeof(value));
}

void FixChecksums(std::string& block) {
  const std::string_view all(block);
  Put(block, kBodyCrcAt, block_format::Crc32c(all.substr(block_format::kHeaderSize)));
  Put(block, kHeaderCrcAt, block_format::Crc32c(all.substr(0, kHeaderCrcAt)));
}

void Decode(std::string_view bytes) {
  (void)ReadBlockInfo(bytes);
  const Result<Block> block = DecodeBlock(bytes);
  if (!block.ok()) {
    (void)PlainBlock::Unpack(bytes);
    return;
  }
  std::vector<bool> odd(block->columns());
  for (size_t c = 1; c < odd.size(); c += 2) odd[c] = true;
  const Result<Block> some = DecodeColumns(bytes, odd);
  if (!some.ok() || some->columns() != odd.size() / 2) std::abort();
  for (size_t c = 0; c < some->columns(); ++c) {
    const auto whole = block->Column(2 * c + 1);
    if (std::memcmp(some->Column(c).data(), whole.data(), whole.size_bytes()) != 0) std::abort();
  }
  const auto plain = PlainBlock::Unpack(bytes);
  if (!plain.ok() || (*plain)->columns() != block->columns()) std::abort();
  std::vector<double> column(block->times.size());
  for (size_t c = block->columns(); c-- > 0;) {
    const auto whole = block->Column(c);
    if (!(*plain)->Read(c, column).ok() ||
        std::memcmp(column.data(), whole.data(), whole.size_bytes()) != 0) {
      std::abort();
    }
  }
  static BlockEncoder encoder;
  std::string again;
  const size_t rows = block->times.size();
  if (!encoder
           .Encode(block->schema_id, block->times, block->values.data(), block->columns(), rows,
                   again)
           .ok()) {
    std::abort();
  }
  const Result<Block> second = DecodeBlock(again);
  if (!second.ok() || second->times != block->times ||
      second->values.size() != block->values.size() ||
      (!block->values.empty() && std::memcmp(second->values.data(), block->values.data(),
                                             block->values.size() * sizeof(double)) != 0)) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Decode(bytes);
  if (size < block_format::kHeaderSize) return 0;
  FixChecksums(bytes);
  Decode(bytes);

  std::string block = bytes.substr(0, block_format::kHeaderSize);
  std::string_view plain = std::string_view(bytes).substr(block_format::kHeaderSize);
  const size_t low_size = std::min<size_t>(static_cast<uint8_t>(block[kSchemaAt]), plain.size());
  const std::string_view low = plain.substr(plain.size() - low_size);
  plain.remove_suffix(low_size);
  std::string frame(ZSTD_compressBound(plain.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), plain.data(), plain.size(), 1));
  block += frame;
  block += low;
  Put(block, kPlainSizeAt, static_cast<uint32_t>(plain.size()));
  Put(block, kFrameSizeAt, static_cast<uint32_t>(frame.size()));
  FixChecksums(block);
  Decode(block);
  return 0;
}
