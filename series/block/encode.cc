#include <fmt/core.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "core/bytes.h"
#include "series/block/block.h"
#include "series/block/format.h"
#include "series/block/integers.h"
#include "series/block/siblings.h"

namespace sonde {
namespace {

using namespace block_format;

// What repeats in a block is long, what is short is noise that is better left to the entropy coder;
// and a table of 4096 places keeps the encoder small in a node's daemon.
constexpr std::pair<ZSTD_cParameter, int> kZstd[] = {{ZSTD_c_compressionLevel, 1},
                                                     {ZSTD_c_minMatch, 7},
                                                     {ZSTD_c_hashLog, 12},
                                                     {ZSTD_c_windowLog, 16}};
constexpr size_t kFewRows = 16;  // below it, a reference is not worth its bytes

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
int Width(uint64_t difference) { return BitWidth(ZigZagOf(difference)); }

// How a column's integers are written, and with which residuals.
struct Shape {
  Kind kind = Kind::kConstant;
  int64_t base = 0;  // of steady and level ones
};

// The middle one of at most 15 of `count` numbers.
template <typename F>
int64_t Middle(size_t count, const F& number) {
  std::array<int64_t, 15> some;
  const size_t n = std::min(some.size(), count);
  for (size_t i = 0; i < n; ++i) some[i] = number(i * count / n);
  const auto middle = some.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::nth_element(some.begin(), middle, some.begin() + static_cast<std::ptrdiff_t>(n));
  return *middle;
}

// The shape whose residuals have the fewest bits.
Shape BestShape(std::span<const int64_t> in) {
  const size_t n = in.size();
  if (n == 1) return {};
  const auto delta = [&](size_t i) { return static_cast<int64_t>(Difference(in[i + 1], in[i])); };
  const int64_t step = Middle(n - 1, delta);
  const int64_t level = Middle(n, [&](size_t i) { return in[i]; });
  // By kind; a base costs its own bits.
  std::array<int64_t, 5> bits{0, 0, 0, 8 + Width(static_cast<uint64_t>(step)), 8};
  bits[4] += Width(Difference(in[0], level));
  uint64_t different = 0;
  for (const int64_t i : in) different |= Difference(i, in[0]);
  if (different == 0) return {Kind::kConstant, 0};
  // With many rows, some runs of them are enough.
  constexpr size_t kRun = 8;
  const size_t stride = n <= 6 * kRun ? kRun : n / 6;
  for (size_t run = 0; run + 1 < n; run += stride) {
    uint64_t before = run == 0 ? 0 : Difference(in[run], in[run - 1]);
    const size_t end = std::min(run + kRun, n - 1);
    for (size_t r = run + 1; r <= end; ++r) {
      const uint64_t d = Difference(in[r], in[r - 1]);
      bits[1] += Width(d);
      bits[2] += Width(d - before);
      bits[3] += Width(d - static_cast<uint64_t>(step));
      bits[4] += Width(Difference(in[r], level));
      before = d;
    }
  }
  const auto best = std::min_element(bits.begin() + 1, bits.end()) - bits.begin();
  const auto kind = static_cast<Kind>(best);
  return {kind, kind == Kind::kSteady ? step : kind == Kind::kLevel ? level : 0};
}

// The zigzag forms of the residuals, as many as are returned.
size_t Residuals(std::span<const int64_t> in, const Shape& shape, uint64_t* out) {
  const auto base = static_cast<uint64_t>(shape.base);
  if (shape.kind == Kind::kLevel) {
    for (const int64_t i : in) *out++ = ZigZagOf(static_cast<uint64_t>(i) - base);
    return in.size();
  }
  uint64_t before = base;
  for (size_t r = 1; r < in.size(); ++r) {
    const uint64_t delta = Difference(in[r], in[r - 1]);
    *out++ = ZigZagOf(delta - before);
    if (shape.kind == Kind::kDeltaOfDelta) before = delta;
  }
  return in.size() - 1;
}

// Whether most of the residuals were there before, so that zstd finds them again as a whole.
bool Repeats(std::span<const uint64_t> residuals) {
  std::array<uint64_t, 64> seen{};
  size_t known = 0;
  for (const uint64_t z : residuals) {
    uint64_t& place = seen[(z * 0x9e3779b97f4a7c15) >> 58];
    known += place == z ? 1 : 0;
    place = z;
  }
  return known * 2 > residuals.size();
}

// How many low bits of the residuals are noise: what is left of three in four then has at most
// kHighBits, which is a byte of zstd's and differs little from column to column.
uint8_t LowBits(std::span<const uint64_t> residuals) {
  constexpr int kHighBits = 6;
  constexpr size_t kLooked = 64;  // this many are enough
  const size_t stride = residuals.size() / kLooked + 1;
  std::array<uint8_t, 65> widths{};
  size_t looked = 0;
  for (size_t i = 0; i < residuals.size(); i += stride, ++looked) {
    ++widths[static_cast<size_t>(BitWidth(residuals[i]))];
  }
  int width = 0;
  for (size_t below = widths[0]; below * 4 < looked * 3;) {
    below += widths[static_cast<size_t>(++width)];
  }
  if (width <= kHighBits || Repeats(residuals)) return 0;
  return static_cast<uint8_t>(std::min<int>(width - kHighBits, kMaxLowBits));
}

using GapMap = std::array<uint8_t, GapBytes(kMaxBlockRows)>;

// Which rows of a column are missing, and which are not.
struct Gaps {
  GapMap map{};
  std::array<uint16_t, kMaxBlockRows> rows{};  // that are present
  size_t count = 0;
};

GapMap MapOf(std::span<const double> column) {
  GapMap map{};
  for (size_t byte = 0; byte * 8 < column.size(); ++byte) {
    const size_t rows = std::min<size_t>(8, column.size() - byte * 8);
    const double* at = &column[byte * 8];
    unsigned missing = 0;
    for (size_t r = 0; r < rows; ++r) missing |= (Bits(at[r]) == kMissing ? 1u : 0u) << r;
    map[byte] = static_cast<uint8_t>(missing);
  }
  return map;
}

size_t CountMissing(std::span<const double> column) {
  // Four at a time, by whatever the processor has.
  using Lanes [[gnu::vector_size(32)]] = int64_t;
  Lanes counts{};
  size_t r = 0;
  for (; r + 4 <= column.size(); r += 4) {
    Lanes bits;
    std::memcpy(&bits, &column[r], sizeof bits);
    counts -= bits == static_cast<int64_t>(kMissing);
  }
  auto count = static_cast<size_t>(counts[0] + counts[1] + counts[2] + counts[3]);
  for (; r < column.size(); ++r) count += Bits(column[r]) == kMissing ? 1 : 0;
  return count;
}

bool HasGaps(std::span<const double> column, const Gaps& gaps) {
  if (CountMissing(column) + gaps.count != column.size()) return false;
  bool there = true;
  for (size_t i = 0; i < gaps.count; ++i) there &= Bits(column[gaps.rows[i]]) != kMissing;
  return there;
}

void NoteRows(size_t rows, Gaps& gaps) {
  gaps.count = 0;
  for (size_t r = 0; r < rows; ++r) {
    gaps.rows[gaps.count] = static_cast<uint16_t>(r);
    gaps.count += ((gaps.map[r / 8] >> (r % 8)) & 1) == 0 ? 1 : 0;
  }
}

// Bits one after the other, the lowest of a byte first.
class BitWriter {
 public:
  explicit BitWriter(Scratch& out) : out_(out) {}
  void Clear() {
    bits_ = 0;
    count_ = 0;
  }
  // The lowest `count` bits of each, at most kMaxLowBits.
  void Put(std::span<const uint64_t> values, int count) {
    if (count == 0) return;
    uint8_t* at = out_.Room(values.size() * 8 + 8);
    const uint64_t mask = (uint64_t{1} << count) - 1;
    for (const uint64_t v : values) {
      bits_ |= (v & mask) << count_;
      count_ += count;
      // Whole bytes go; at most 7 bits stay, so 56 more always fit.
      std::memcpy(at, &bits_, sizeof bits_);
      at += count_ / 8;
      bits_ >>= count_ & ~7;
      count_ &= 7;
    }
    out_.Wrote(at);
  }
  void Finish() {
    if (count_ > 0) out_.PutByte(static_cast<uint8_t>(bits_));
  }

 private:
  Scratch& out_;
  uint64_t bits_ = 0;
  int count_ = 0;
};

struct FreeEncoder {
  void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
};

}  // namespace

struct BlockEncoder::Rep {
  std::unique_ptr<ZSTD_CCtx, FreeEncoder> zstd{ZSTD_createCCtx()};
  Integers integers;
  std::array<uint64_t, kMaxBlockRows> residuals;
  SiblingSearch siblings;
  // Streams of the plain form, in its order: times and kinds lead, one by one.
  Scratch plain;
  Scratch scales;
  Scratch heads;
  Scratch bodies;
  Scratch low;
  BitWriter low_bits{low};

  // The block that is being encoded.
  const double* columns = nullptr;
  size_t stride = 0;
  size_t rows = 0;
  Gaps gaps;               // those written last
  uint32_t gap_count = 0;  // how many patterns were written
  bool new_gaps = false;   // the column's are not written yet
  std::array<double, kMaxBlockRows> packed;

  std::span<const double> Column(size_t i) const { return {columns + i * stride, rows}; }
  // The present values of a column that has the gaps written last.
  std::span<const double> Packed(std::span<const double> column) {
    for (size_t i = 0; i < gaps.count; ++i) packed[i] = column[gaps.rows[i]];
    return {packed.data(), gaps.count};
  }
  void PutTimes(std::span<const Nanos> times);
  void PutColumn(uint32_t i);
  void NoteGaps(std::span<const double> column);
  References TakeOutSiblings(uint32_t pattern);
  void PutHead(uint32_t i, const Shape& shape, const References& references, uint8_t low_count);
  void PutBody(size_t count, uint8_t low_count);
  Status Compress();
};

BlockEncoder::BlockEncoder() : rep_(std::make_unique<Rep>()) {}
BlockEncoder::~BlockEncoder() = default;

size_t BlockEncoder::MemoryUse() const {
  return sizeof(Rep) + ZSTD_sizeof_CCtx(rep_->zstd.get()) + rep_->plain.capacity() +
         rep_->scales.capacity() + rep_->heads.capacity() + rep_->bodies.capacity() +
         rep_->low.capacity() + rep_->siblings.MemoryUse();
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

// Of a column that has some.
void BlockEncoder::Rep::NoteGaps(std::span<const double> column) {
  new_gaps = gap_count == 0 || !HasGaps(column, gaps);
  if (!new_gaps) return;
  gaps.map = MapOf(column);
  NoteRows(rows, gaps);
  ++gap_count;
}

// Subtracts from the integers what other columns tell. `pattern`: of its gaps; 0: it has none.
References BlockEncoder::Rep::TakeOutSiblings(uint32_t pattern) {
  return siblings.TakeOut(integers.present(), pattern, [&](uint32_t other, int64_t* out) {
    // It has the same gaps.
    const std::span<const double> column = Column(other);
    ToIntegersOfScale(pattern == 0 ? column : Packed(column), scales.data()[other], out);
  });
}

// A column's entries in the streams of kinds, scales and heads.
void BlockEncoder::Rep::PutHead(uint32_t i, const Shape& shape, const References& references,
                                uint8_t low_count) {
  const bool has_gaps = integers.count < rows;
  plain.PutByte(static_cast<uint8_t>(static_cast<uint8_t>(shape.kind) | (has_gaps ? kGaps : 0) |
                                     (has_gaps && new_gaps ? kNewGaps : 0) |
                                     (references.count << kReferencesShift)));
  scales.PutByte(integers.scale);
  uint8_t* at = heads.Room(gaps.map.size() + 1 + kMaxVarint * (2 + kMaxReferences));
  if (has_gaps && new_gaps) at = std::copy_n(gaps.map.data(), GapBytes(rows), at);
  if (shape.kind != Kind::kConstant) *at++ = low_count;
  at = PutVarint(at, ZigZag(shape.kind == Kind::kLevel ? shape.base : integers.values[0]));
  if (shape.kind == Kind::kSteady) at = PutVarint(at, ZigZag(shape.base));
  for (size_t r = 0; r < references.count; ++r) {
    const Reference& reference = references.at[r];
    at = PutVarint(at, uint64_t{i - reference.column - 1} << 1 | (reference.negative ? 1 : 0));
  }
  heads.Wrote(at);
}

void BlockEncoder::Rep::PutBody(size_t count, uint8_t low_count) {
  uint8_t* at = bodies.Room(count * kMaxVarint);
  for (size_t r = 0; r < count; ++r) at = PutVarint(at, residuals[r] >> low_count);
  bodies.Wrote(at);
  low_bits.Put({residuals.data(), count}, low_count);
}

// A column without any value is a constant whose bits are those of a missing value.
void BlockEncoder::Rep::PutColumn(uint32_t i) {
  const std::span<const double> column = Column(i);
  if (IsConstant(column)) {
    if (!ToIntegers(column.first(1), integers)) {
      integers.values[0] = static_cast<int64_t>(kMissing);
      integers.scale = kBits;
    }
    integers.count = rows;
    PutHead(i, {}, {}, 0);
    return;
  }
  uint32_t pattern = 0;
  if (!ToIntegers(column, integers)) {
    NoteGaps(column);
    ToIntegers(Packed(column), integers);
    pattern = gap_count;
  }
  const bool has_siblings = integers.count >= kFewRows;
  const References references = has_siblings ? TakeOutSiblings(pattern) : References();
  const Shape shape = BestShape(integers.present());
  if (shape.kind == Kind::kConstant) {
    PutHead(i, shape, references, 0);
    return;
  }
  if (has_siblings) siblings.Offer(i);
  const size_t count = Residuals(integers.present(), shape, residuals.data());
  const uint8_t low_count = LowBits({residuals.data(), count});
  PutHead(i, shape, references, low_count);
  PutBody(count, low_count);
}

// Compresses `plain`, which has the bodies already, into `bodies`.
Status BlockEncoder::Rep::Compress() {
  ZSTD_CCtx* c = zstd.get();
  if (c == nullptr) throw std::bad_alloc();
  const size_t bound = ZSTD_compressBound(plain.size());
  Scratch& frame = bodies;
  frame.Clear();
  uint8_t* at = frame.Room(bound);
  for (const auto& [parameter, value] : kZstd) ZSTD_CCtx_setParameter(c, parameter, value);
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
    for (Scratch* stream : {&rep.plain, &rep.scales, &rep.heads, &rep.bodies, &rep.low}) {
      stream->Clear();
    }
    rep.low_bits.Clear();
    rep.siblings.Clear();
    rep.columns = columns;
    rep.stride = stride;
    rep.rows = rows;
    rep.gap_count = 0;
    rep.PutTimes(times);
    for (uint32_t c = 0; c < column_count; ++c) rep.PutColumn(c);
    rep.low_bits.Finish();
    rep.plain.Append(rep.scales);
    rep.plain.Append(rep.heads);
    rep.plain.Append(rep.bodies);
    SONDE_RETURN_IF_ERROR(rep.Compress());
    Scratch& frame = rep.bodies;
    const auto frame_size = static_cast<uint32_t>(frame.size());
    frame.Append(rep.low);
    const std::string_view body(reinterpret_cast<const char*>(frame.data()), frame.size());
    WriteHeader(
        {schema_id, static_cast<uint16_t>(rows), static_cast<uint32_t>(column_count), times.front(),
         times.back(), static_cast<uint32_t>(rep.plain.size()), frame_size, Crc32c(body)},
        out);
    out.append(body);
  } catch (const std::bad_alloc&) {
    return {Code::kLimit,
            fmt::format("encode a block of {} rows and {} columns: no memory", rows, column_count)};
  }
  return {};
}

}  // namespace sonde
