#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "core/bytes.h"
#include "series/block.h"
#include "series/block_format.h"

namespace sonde {
namespace {

using namespace block_format;

constexpr int kZstdLevel = 1;
constexpr double kIntegerEnd = 4611686018427387904.0;  // 2^62: integers are below it
constexpr double kExactEnd = 9007199254740992.0;       // 2^53: decimals' integers are below it

// Bytes that grow as needed and are never cleared; the caller asks for room before it writes.
class Scratch {
 public:
  uint8_t* Room(size_t bytes) {
    if (size_ + bytes > capacity_) Grow(size_ + bytes);
    return data_.get() + size_;
  }
  void Wrote(const uint8_t* end) { size_ = static_cast<size_t>(end - data_.get()); }
  void Advance(size_t bytes) { size_ += bytes; }
  void PutByte(uint8_t byte) {
    *Room(1) = byte;
    ++size_;
  }
  void Append(const Scratch& other) {
    std::copy_n(other.data(), other.size(), Room(other.size()));
    Advance(other.size());
  }
  void Clear() { size_ = 0; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  const uint8_t* data() const { return data_.get(); }

 private:
  void Grow(size_t needed) {
    const size_t capacity = std::max(needed, capacity_ + capacity_ / 2);
    auto data = std::make_unique_for_overwrite<uint8_t[]>(capacity);
    std::copy_n(data_.get(), size_, data.get());
    data_ = std::move(data);
    capacity_ = capacity;
  }
  std::unique_ptr<uint8_t[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

uint8_t* PutVarint(uint8_t* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<uint8_t>(value);
  return at;
}

// Differences may wrap around: they are taken, and put back, modulo 2^64.
uint64_t Difference(int64_t a, int64_t b) {
  return static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
}
uint64_t ZigZagOf(uint64_t difference) { return ZigZag(static_cast<int64_t>(difference)); }

// The present values of one column as integers, and how they stand for doubles.
struct Integers {
  std::array<int64_t, kMaxBlockRows> values;
  size_t count = 0;  // present values
  uint8_t scale = 0;
};

bool IsConstant(std::span<const double> column) {
  const uint64_t first = Bits(column[0]);
  uint64_t different = 0;
  for (const double v : column) different |= Bits(v) ^ first;
  return different == 0;
}

// The integer i with i / 10^decimals == v bit for bit, if there is one.
bool ToDecimal(double v, uint8_t decimals, int64_t& i) {
  const double scaled = std::nearbyint(v * kPowers[decimals]);
  if (!(std::fabs(scaled) < kExactEnd)) return false;
  i = static_cast<int64_t>(scaled);
  return Bits(static_cast<double>(i) / kPowers[decimals]) == Bits(v);
}

bool ToInteger(double v, int64_t& i) {
  if (!(std::fabs(v) < kIntegerEnd)) return false;
  i = static_cast<int64_t>(v);
  return Bits(static_cast<double>(i)) == Bits(v);
}

// Fills `out` if every present value is an integer; a common power of two is taken out.
bool AsIntegers(std::span<const double> column, Integers& out) {
  uint64_t any = 0;
  size_t n = 0;
  for (const double v : column) {
    int64_t i = 0;
    if (ToInteger(v, i)) {
      out.values[n++] = i;
      any |= static_cast<uint64_t>(i);
    } else if (Bits(v) != kMissing) {
      return false;
    }
  }
  out.count = n;
  out.scale = any == 0 ? 0 : static_cast<uint8_t>(std::countr_zero(any));
  if (out.scale > 0) {
    for (size_t r = 0; r < n; ++r) out.values[r] >>= out.scale;
  }
  return true;
}

// Fills `out` if every present value has the same few decimals.
bool AsDecimals(std::span<const double> column, Integers& out) {
  uint8_t decimals = 1;
  size_t row = 0;
  size_t n = 0;
  while (row < column.size()) {
    const double v = column[row];
    if (Bits(v) == kMissing) {
      ++row;
    } else if (ToDecimal(v, decimals, out.values[n])) {
      ++row;
      ++n;
    } else {
      while (!ToDecimal(v, decimals, out.values[n])) {
        if (++decimals > kMaxDecimals) return false;
      }
      row = n = 0;  // the rows before need the same number of decimals
    }
  }
  out.count = n;
  out.scale = kDecimals + decimals;
  return true;
}

// Always possible. Doubles that are close have bits that are close.
void AsBits(std::span<const double> column, Integers& out) {
  size_t n = 0;
  for (const double v : column) {
    if (Bits(v) != kMissing) out.values[n++] = static_cast<int64_t>(Bits(v));
  }
  out.count = n;
  out.scale = kBits;
}

void AsBestIntegers(std::span<const double> column, Integers& out) {
  if (!AsIntegers(column, out) && !AsDecimals(column, out)) AsBits(column, out);
}

// Which differences take fewer bits.
Kind BetterKind(const Integers& in) {
  const auto width = [](uint64_t d) { return static_cast<int64_t>(std::bit_width(ZigZagOf(d))); };
  int64_t first = 0;
  int64_t second = 0;
  uint64_t before = 0;
  for (size_t r = 1; r < in.count; ++r) {
    const uint64_t delta = Difference(in.values[r], in.values[r - 1]);
    first += width(delta);
    second += width(delta - before);
    before = delta;
  }
  return second < first ? Kind::kDeltaOfDelta : Kind::kDelta;
}

uint8_t* PutIntegers(uint8_t* at, const Integers& in, Kind kind) {
  at = PutVarint(at, ZigZag(in.values[0]));
  uint64_t before = 0;
  for (size_t r = 1; r < in.count; ++r) {
    const uint64_t delta = Difference(in.values[r], in.values[r - 1]);
    at = PutVarint(at, ZigZagOf(delta - before));
    if (kind == Kind::kDeltaOfDelta) before = delta;
  }
  return at;
}

uint8_t* PutGaps(uint8_t* at, std::span<const double> column) {
  const size_t bytes = GapBytes(column.size());
  std::fill_n(at, bytes, uint8_t{0});
  for (size_t r = 0; r < column.size(); ++r) {
    if (Bits(column[r]) == kMissing) at[r / 8] |= static_cast<uint8_t>(1u << (r % 8));
  }
  return at + bytes;
}

struct FreeContext {
  void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
};

}  // namespace

struct BlockEncoder::Rep {
  std::unique_ptr<ZSTD_CCtx, FreeContext> zstd{ZSTD_createCCtx()};
  Integers integers;
  // Streams of the plain form, in its order: times and kinds lead, one by one.
  Scratch plain;
  Scratch scales;
  Scratch bodies;
  Scratch frame;

  void PutTimes(std::span<const Nanos> times);
  void PutColumn(std::span<const double> column);
  Status Compress();
};

BlockEncoder::BlockEncoder() : rep_(std::make_unique<Rep>()) {}
BlockEncoder::~BlockEncoder() = default;

size_t BlockEncoder::MemoryUse() const {
  return sizeof(Rep) + ZSTD_sizeof_CCtx(rep_->zstd.get()) + rep_->plain.capacity() +
         rep_->scales.capacity() + rep_->bodies.capacity() + rep_->frame.capacity();
}

void BlockEncoder::Rep::PutTimes(std::span<const Nanos> times) {
  uint8_t* at = plain.Room(times.size() * kMaxVarint);
  uint64_t before = 0;
  for (size_t r = 1; r < times.size(); ++r) {
    const uint64_t delta = Difference(times[r], times[r - 1]);
    at = PutVarint(at, ZigZagOf(delta - before));
    before = delta;
  }
  plain.Wrote(at);
}

// Writes kind, scale and body of one column, each to its stream. A column without any value is a
// constant whose bits are those of a missing value.
void BlockEncoder::Rep::PutColumn(std::span<const double> column) {
  uint8_t* at = bodies.Room(GapBytes(column.size()) + column.size() * kMaxVarint);
  auto kind = static_cast<uint8_t>(Kind::kConstant);
  if (IsConstant(column)) {
    AsBestIntegers(column.first(1), integers);
    if (integers.count == 0) {
      integers.values[0] = static_cast<int64_t>(kMissing);
      integers.scale = kBits;
    }
    at = PutVarint(at, ZigZag(integers.values[0]));
  } else {
    AsBestIntegers(column, integers);
    const Kind better = BetterKind(integers);
    kind = static_cast<uint8_t>(better);
    if (integers.count < column.size()) {
      kind |= kGaps;
      at = PutGaps(at, column);
    }
    at = PutIntegers(at, integers, better);
  }
  bodies.Wrote(at);
  plain.PutByte(kind);
  scales.PutByte(integers.scale);
}

Status BlockEncoder::Rep::Compress() {
  ZSTD_CCtx* c = zstd.get();
  if (c == nullptr) throw std::bad_alloc();
  const size_t bound = ZSTD_compressBound(plain.size());
  frame.Clear();
  uint8_t* at = frame.Room(bound);
  ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, kZstdLevel);
  const size_t size = ZSTD_compress2(c, at, bound, plain.data(), plain.size());
  if (ZSTD_isError(size)) {
    return {Code::kInternal,
            fmt::format("compress a block of {} bytes: {}", plain.size(), ZSTD_getErrorName(size))};
  }
  frame.Advance(size);
  return {};
}

Status BlockEncoder::Encode(uint64_t schema_id, std::span<const Nanos> times, const double* columns,
                            size_t column_count, size_t stride, std::string& out) {
  const size_t rows = times.size();
  if (rows == 0 || rows > kMaxBlockRows || column_count > kMaxSeries ||
      rows * column_count > kMaxBlockSamples || stride < rows ||
      !std::is_sorted(times.begin(), times.end())) {
    return {Code::kInvalid,
            fmt::format("encode a block of {} rows and {} columns: expected 1 to {} rows in the "
                        "order of time and at most {} samples",
                        rows, column_count, kMaxBlockRows, kMaxBlockSamples)};
  }
  try {
    Rep& rep = *rep_;
    for (Scratch* stream : {&rep.plain, &rep.scales, &rep.bodies}) stream->Clear();
    rep.PutTimes(times);
    for (size_t c = 0; c < column_count; ++c) {
      rep.PutColumn({columns + c * stride, rows});
    }
    rep.plain.Append(rep.scales);
    rep.plain.Append(rep.bodies);
    SONDE_RETURN_IF_ERROR(rep.Compress());
    const std::string_view frame(reinterpret_cast<const char*>(rep.frame.data()), rep.frame.size());
    WriteHeader(
        {schema_id, static_cast<uint16_t>(rows), static_cast<uint32_t>(column_count), times.front(),
         times.back(), static_cast<uint32_t>(rep.plain.size()), Crc32c(frame)},
        out);
    out.append(frame);
  } catch (const std::bad_alloc&) {
    return {Code::kLimit,
            fmt::format("encode a block of {} rows and {} columns: no memory", rows, column_count)};
  }
  return {};
}

}  // namespace sonde
