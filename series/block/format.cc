#include "series/block/format.h"

#include <fmt/core.h>

#include <array>
#include <cstring>

#include "core/bytes.h"
#include "series/block/block.h"

namespace sonde::block_format {
namespace {

// The most bytes that `rows` x `columns` samples take before compression.
uint64_t MaxPlainSize(uint64_t rows, uint64_t columns) {
  return rows * kMaxVarint + columns * (3 + GapBytes(rows) + (rows + 4) * kMaxVarint);
}

// The most bytes that low bits take.
uint64_t MaxLowSize(uint64_t rows, uint64_t columns) {
  return (rows * columns * kMaxLowBits + 7) / 8;
}

#ifdef __x86_64__
// By the processor's instruction.
__attribute__((target("sse4.2"))) uint32_t Crc32cByProcessor(std::string_view bytes) {
  uint64_t crc = 0xffffffff;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t eight;
    std::memcpy(&eight, bytes.data(), sizeof eight);
    crc = __builtin_ia32_crc32di(crc, eight);
  }
  auto rest = static_cast<uint32_t>(crc);
  for (const char c : bytes) rest = __builtin_ia32_crc32qi(rest, static_cast<uint8_t>(c));
  return ~rest;
}
#endif

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
#ifdef __x86_64__
  static const bool kHasInstruction = __builtin_cpu_supports("sse4.2");
  if (kHasInstruction) return Crc32cByProcessor(bytes);
#endif
  return Crc32cByTables(bytes);
}

// Eight bytes at a time, by eight tables (slicing-by-8).
uint32_t Crc32cByTables(std::string_view bytes) {
  static constexpr auto kTables = [] {
    std::array<std::array<uint32_t, 256>, 8> tables{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78 : 0);
      tables[0][i] = value;
    }
    for (size_t t = 1; t < tables.size(); ++t) {
      for (size_t i = 0; i < 256; ++i) {
        const uint32_t before = tables[t - 1][i];
        tables[t][i] = (before >> 8) ^ tables[0][before & 0xff];
      }
    }
    return tables;
  }();
  uint32_t crc = 0xffffffff;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t eight;
    std::memcpy(&eight, bytes.data(), sizeof eight);
    eight ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(eight >> (8 * i)) & 0xff];
  }
  for (const char c : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint8_t>(c)) & 0xff];
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
  w.Fixed(h.frame_size);
  w.Fixed(h.body_crc);
  w.Fixed(Crc32c(std::string_view(out).substr(start)));
}

namespace {

// Whether this would be the header of a whole block if it had our version: another version's
// checksum does not cover ours.
bool OnlyVersionDiffers(std::string_view header) {
  std::string ours(header);
  ours[kMagic.size()] = static_cast<char>(kVersion);
  ByteReader sum(std::string_view(ours).substr(kHeaderSize - 4));
  return sum.Fixed<uint32_t>() == Crc32c(std::string_view(ours).substr(0, kHeaderSize - 4));
}

}  // namespace

Result<Header> ReadHeader(std::string_view bytes) {
  if (bytes.size() < kHeaderSize) return Corrupt("it is shorter than its header");
  ByteReader in(bytes.substr(0, kHeaderSize));
  if (in.Raw(kMagic.size()) != kMagic) {
    return Corrupt("it does not start like one");
  }
  const auto version = in.Fixed<uint8_t>();
  if (version != kVersion && OnlyVersionDiffers(bytes.substr(0, kHeaderSize))) {
    return Corrupt("its version is damaged");
  }
  if (version > kVersion) {
    return Status(
        Code::kUnsupported,
        fmt::format("read a block: it has version {} and this program knows up to {}; use "
                    "a newer Sonde",
                    version, kVersion));
  }
  if (version < kVersion) {
    return Status(
        Code::kUnsupported,
        fmt::format("read a block: it has version {}, from before the first release, and this "
                    "program reads version {}; use the Sonde that wrote it",
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
  h.frame_size = in.Fixed<uint32_t>();
  h.body_crc = in.Fixed<uint32_t>();
  if (in.Fixed<uint32_t>() != Crc32c(bytes.substr(0, kHeaderSize - 4))) {
    return Corrupt("its header's checksum is wrong");
  }
  if (flags != 0 || h.rows == 0 || h.rows > kMaxBlockRows || h.columns > kMaxSeries ||
      size_t{h.rows} * h.columns > kMaxBlockSamples || h.first > h.last ||
      h.plain_size > MaxPlainSize(h.rows, h.columns) || h.frame_size > bytes.size() - kHeaderSize ||
      bytes.size() - kHeaderSize - h.frame_size > MaxLowSize(h.rows, h.columns)) {
    return Corrupt("its header holds impossible values");
  }
  return h;
}

}  // namespace sonde::block_format
