#include "series/block_format.h"

#include <fmt/format.h>

#include "core/bytes.h"
#include "series/block.h"

namespace sonde::block_format {
namespace {

// The most bytes that `rows` x `columns` samples take before compression.
uint64_t MaxPlainSize(uint64_t rows, uint64_t columns) {
  return rows * kMaxVarint + columns * (2 + GapBytes(rows) + rows * kMaxVarint);
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78 : 0);
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

Status Corrupt(std::string_view why) {
  return {Code::kCorrupt, fmt::format("read a block: {}", why)};
}

void WriteHeader(const Header& h, std::string& out) {
  const size_t start = out.size();
  ByteWriter w(out);
  w.Raw(kMagic);
  w.Fixed(kVersion);
  w.Fixed(uint8_t{0});
  w.Fixed(h.schema_id);
  w.Fixed(h.rows);
  w.Fixed(h.columns);
  w.Fixed(h.first);
  w.Fixed(h.last);
  w.Fixed(h.plain_size);
  w.Fixed(h.frame_crc);
  w.Fixed(Crc32c(std::string_view(out).substr(start)));
}

Result<Header> ReadHeader(std::string_view bytes) {
  if (bytes.size() < kHeaderSize) return Corrupt("it is shorter than its header");
  ByteReader in(bytes.substr(0, kHeaderSize));
  if (in.Raw(kMagic.size()) != kMagic) {
    return Corrupt("it does not start like one");
  }
  const auto version = in.Fixed<uint8_t>();
  if (version > kVersion) {
    return Status(
        Code::kUnsupported,
        fmt::format("read a block: it has version {} and this program knows up to {}; use "
                    "a newer Sonde",
                    version, kVersion));
  }
  const auto flags = in.Fixed<uint8_t>();
  Header h;
  h.schema_id = in.Fixed<uint64_t>();
  h.rows = in.Fixed<uint16_t>();
  h.columns = in.Fixed<uint32_t>();
  h.first = in.Fixed<int64_t>();
  h.last = in.Fixed<int64_t>();
  h.plain_size = in.Fixed<uint32_t>();
  h.frame_crc = in.Fixed<uint32_t>();
  if (in.Fixed<uint32_t>() != Crc32c(bytes.substr(0, kHeaderSize - 4))) {
    return Corrupt("its header's checksum is wrong");
  }
  if (version != kVersion || flags != 0 || h.rows == 0 || h.rows > kMaxBlockRows ||
      h.columns > kMaxSeries || size_t{h.rows} * h.columns > kMaxBlockSamples || h.first > h.last ||
      h.plain_size > MaxPlainSize(h.rows, h.columns)) {
    return Corrupt("its header holds impossible values");
  }
  return h;
}

}  // namespace sonde::block_format
