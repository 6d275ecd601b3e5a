#include "series/block/joined.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/bytes.h"
#include "series/block/format.h"

namespace sonde {
namespace {

constexpr uint8_t kJoinedVersion = 1;
constexpr size_t kMaxJoinedGroup = 32;
constexpr size_t kLeastEntryBytes = 8;

Status WrongJoined(std::string_view why) {
  return {Code::kCorrupt, "joined blocks are damaged: " + std::string(why)};
}

void PutEntry(ByteWriter& w, const JoinedEntry& entry, Nanos& before) {
  w.Varint(entry.node);
  w.Text(entry.group);
  w.Varint(entry.sequence);
  w.Varint(entry.sequence - entry.first);
  w.Varint(entry.samples);
  w.Varint(entry.reasons);
  w.Varint(entry.stored);
  w.Varint(entry.times.size());
  for (const Nanos time : entry.times) {
    w.Signed(static_cast<int64_t>(static_cast<uint64_t>(time) - static_cast<uint64_t>(before)));
    before = time;
  }
}

bool GetEntry(ByteReader& r, JoinedEntry& entry, Nanos& before, size_t rows_left) {
  const uint64_t node = r.Varint();
  entry.group = r.Text(kMaxJoinedGroup);
  entry.sequence = r.Varint();
  const uint64_t earlier = r.Varint();
  entry.samples = r.Varint();
  const uint64_t reasons = r.Varint();
  entry.stored = r.Varint();
  const size_t rows = r.Count(1, rows_left);
  if (!r.ok() || node > UINT32_MAX || reasons > UINT32_MAX || earlier > entry.sequence)
    return false;
  if (rows == 0 || entry.group.find('\0') != std::string::npos) return false;
  entry.node = static_cast<uint32_t>(node);
  entry.reasons = static_cast<uint32_t>(reasons);
  entry.first = entry.sequence - earlier;
  entry.times.resize(rows);
  for (size_t i = 0; i < rows; ++i) {
    const auto step = static_cast<uint64_t>(r.Signed());
    entry.times[i] = static_cast<Nanos>(static_cast<uint64_t>(before) + step);
    if (i > 0 && entry.times[i] < before) return false;
    before = entry.times[i];
  }
  return r.ok();
}

size_t RowsBefore(const JoinedBlocks& joined, size_t entry) {
  return std::accumulate(
      joined.entries.begin(), joined.entries.begin() + static_cast<std::ptrdiff_t>(entry),
      size_t{0}, [](size_t rows, const JoinedEntry& one) { return rows + one.times.size(); });
}

}  // namespace

Result<std::string> JoinBlocks(std::vector<JoinedEntry> entries,
                               std::span<const std::string_view> blocks, BlockEncoder& encoder) {
  std::vector<Block> decoded;
  size_t rows = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    auto block = DecodeBlock(blocks[i]);
    if (!block.ok()) return block.status();
    rows += block->times.size();
    entries[i].times = block->times;
    decoded.push_back(*std::move(block));
    if (decoded[i].schema_id != decoded[0].schema_id ||
        decoded[i].columns() != decoded[0].columns()) {
      return Status(Code::kInvalid, "join blocks: they have different series");
    }
  }
  const size_t columns = decoded.empty() ? 0 : decoded[0].columns();
  if (rows == 0 || rows > kMaxBlockRows || rows * columns > kMaxBlockSamples) {
    return Status(Code::kInvalid, "join blocks: they have no row, or too many");
  }
  std::vector<double> values(rows * columns);
  for (size_t c = 0; c < columns; ++c) {
    auto at = values.begin() + static_cast<std::ptrdiff_t>(c * rows);
    for (const Block& block : decoded) {
      const auto column = block.Column(c);
      at = std::copy(column.begin(), column.end(), at);
    }
  }
  std::string bytes(1, static_cast<char>(kJoinedVersion));
  ByteWriter w(bytes);
  w.Varint(entries.size());
  Nanos before = 0;
  for (const JoinedEntry& entry : entries) PutEntry(w, entry, before);
  w.Fixed(block_format::Crc32c(bytes));
  std::vector<Nanos> numbers(rows);
  std::iota(numbers.begin(), numbers.end(), 0);
  SONDE_RETURN_IF_ERROR(
      encoder.Encode(decoded[0].schema_id, numbers, values.data(), columns, rows, bytes));
  return bytes;
}

Result<JoinedBlocks> ReadJoined(std::string_view bytes) {
  ByteReader r(bytes);
  const auto version = r.Fixed<uint8_t>();
  if (!r.ok() || version == 0) return WrongJoined("they have no version");
  if (version > kJoinedVersion) {
    return Status(Code::kUnsupported,
                  "joined blocks of version " + std::to_string(version) + " need a newer Sonde");
  }
  JoinedBlocks joined;
  const size_t count = r.Count(kLeastEntryBytes, kMaxBlockRows);
  if (!r.ok() || count == 0) return WrongJoined("their number is none");
  joined.entries.resize(count);
  Nanos before = 0;
  size_t rows = 0;
  for (JoinedEntry& entry : joined.entries) {
    if (!GetEntry(r, entry, before, kMaxBlockRows - rows)) return WrongJoined("an entry is none");
    rows += entry.times.size();
  }
  const std::string_view list = bytes.substr(0, bytes.size() - r.left());
  const auto checksum = r.Fixed<uint32_t>();
  if (!r.ok() || checksum != block_format::Crc32c(list))
    return WrongJoined("the checksum is wrong");
  joined.block = r.Raw(r.left());
  const auto info = ReadBlockInfo(joined.block);
  if (!info.ok()) return info.status();
  if (info->rows != rows) return WrongJoined("the block has another number of rows");
  joined.info = *info;
  return joined;
}

Result<Block> DecodeJoined(const JoinedBlocks& joined) { return DecodeBlock(joined.block); }

Block RowsOfEntry(const JoinedBlocks& joined, const Block& all, size_t entry) {
  Block rows;
  rows.schema_id = all.schema_id;
  rows.times = joined.entries[entry].times;
  const size_t from = RowsBefore(joined, entry);
  rows.values.reserve(rows.times.size() * all.columns());
  for (size_t c = 0; c < all.columns(); ++c) {
    const auto column = all.Column(c).subspan(from, rows.times.size());
    rows.values.insert(rows.values.end(), column.begin(), column.end());
  }
  return rows;
}

Result<std::string> BlockOfEntry(const JoinedBlocks& joined, const Block& all, size_t entry,
                                 BlockEncoder& encoder) {
  const Block rows = RowsOfEntry(joined, all, entry);
  std::string bytes;
  SONDE_RETURN_IF_ERROR(encoder.Encode(rows.schema_id, rows.times, rows.values.data(),
                                       rows.columns(), rows.times.size(), bytes));
  return bytes;
}

}  // namespace sonde
