// The block format, version 2: constants and header, shared by the encoder and the decoder.
// docs/format.md specifies it byte for byte. Never to change: values written to disk and to the
// wire.
//
// Thread safety: functions without state.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"

namespace sonde::block_format {

inline constexpr std::string_view kMagic = "Sb";
inline constexpr uint8_t kVersion = 2;
inline constexpr size_t kHeaderSize = 50;

// How a column's integers are written: how the residuals are made from them.
enum class Kind : uint8_t {
  kConstant = 0,      // one integer for all rows, no residuals
  kDelta = 1,         // differences from row to row
  kDeltaOfDelta = 2,  // differences of differences
  kSteady = 3,        // differences, less a base
  kLevel = 4,         // the integers, less a base
};
inline constexpr uint8_t kKindMask = 0x0f;
inline constexpr uint8_t kGaps = 0x10;       // added to a kind: rows are missing
inline constexpr uint8_t kNewGaps = 0x80;    // its head has the gaps; else they are as last read
inline constexpr int kReferencesShift = 5;   // two bits: how many columns to add
inline constexpr size_t kMaxReferences = 2;  // of a column
inline constexpr uint8_t kMaxSummands = 16;  // of a column: itself and those of its references
inline constexpr uint8_t kMaxLowBits = 56;   // uncompressed bits of a residual

// How a column's integers stand for doubles.
inline constexpr uint8_t kMaxShift = 61;  // 0 to 61: the integer shifted left by so much
inline constexpr uint8_t kDecimals = 64;  // 65 to 73: the integer divided by 10^(scale - 64)
inline constexpr uint8_t kMaxDecimals = 9;
inline constexpr uint8_t kBits = 128;  // 128 to 191: shifted left by the rest, the double's bits
inline constexpr uint8_t kMaxScale = 191;

inline constexpr uint64_t kMissing = 0x7ff8000000000000;  // the NaN of a missing value

inline constexpr size_t kMaxVarint = 10;
inline constexpr std::array<double, kMaxDecimals + 1> kPowers = {1,   1e1, 1e2, 1e3, 1e4,
                                                                 1e5, 1e6, 1e7, 1e8, 1e9};

inline uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }
// Bits of a number; 1 for 0, so that no branch is needed: a branch costs most where values are few.
inline int BitWidth(uint64_t value) { return 64 - std::countl_zero(value | 1); }
inline constexpr size_t GapBytes(size_t rows) { return (rows + 7) / 8; }

struct Header {
  uint64_t schema_id = 0;
  uint16_t rows = 0;
  uint32_t columns = 0;
  Nanos first = 0;
  Nanos last = 0;
  uint32_t plain_size = 0;  // of what the zstd frame holds
  uint32_t frame_size = 0;  // of the zstd frame; low bits follow it
  uint32_t body_crc = 0;    // of everything behind the header
};

uint32_t Crc32c(std::string_view bytes);
// The same on processors without an instruction for it.
uint32_t Crc32cByTables(std::string_view bytes);

void WriteHeader(const Header& header, std::string& out);
// Checks the header's checksum and every bound; the frame is not looked at.
Result<Header> ReadHeader(std::string_view bytes);

Status Corrupt(std::string_view why);

}  // namespace sonde::block_format
