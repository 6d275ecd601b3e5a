#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "core/bytes.h"
#include "series/block.h"
#include "series/block_format.h"

namespace sonde {
namespace {

using namespace block_format;

struct FreeContext {
  void operator()(ZSTD_DCtx* c) const { ZSTD_freeDCtx(c); }
};

// What a frame holds: exactly `size` bytes, and nothing may follow the frame.
class Plain {
 public:
  static Result<Plain> Unpack(std::string_view frame, size_t size) {
    if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != size ||
        ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
      return Corrupt("its frame is not as long as its header says");
    }
    const std::unique_ptr<ZSTD_DCtx, FreeContext> zstd(ZSTD_createDCtx());
    if (zstd == nullptr) throw std::bad_alloc();
    Plain plain;
    plain.size_ = size;
    plain.bytes_ = std::make_unique_for_overwrite<char[]>(size);
    const size_t got =
        ZSTD_decompressDCtx(zstd.get(), plain.bytes_.get(), size, frame.data(), frame.size());
    if (ZSTD_isError(got)) {
      return Corrupt(fmt::format("its frame is damaged: {}", ZSTD_getErrorName(got)));
    }
    if (got != size) return Corrupt("its frame is not as long as its header says");
    return plain;
  }
  std::string_view bytes() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
};

bool ReadTimes(const Header& h, ByteReader& in, std::vector<Nanos>& times) {
  times.resize(h.rows);
  uint64_t time = static_cast<uint64_t>(h.first);
  uint64_t delta = 0;
  times[0] = h.first;
  for (size_t r = 1; r < h.rows; ++r) {
    delta += static_cast<uint64_t>(in.Signed());
    time += delta;
    times[r] = static_cast<Nanos>(time);
    if (times[r] < times[r - 1]) return false;
  }
  return in.ok() && times.back() == h.last;
}

// Turns scaled integers back into doubles.
class Scale {
 public:
  // Whether the byte is a scale.
  bool Set(uint8_t scale) {
    if (scale > kDecimals) {
      divisor_ = scale <= kDecimals + kMaxDecimals ? kPowers[scale - kDecimals] : 0;
      return divisor_ != 0;
    }
    divisor_ = 0;
    factor_ = std::ldexp(1.0, scale);
    return scale <= kMaxShift;
  }
  void Apply(const int64_t* integers, size_t count, double* out) const {
    if (divisor_ != 0) {
      for (size_t r = 0; r < count; ++r) out[r] = static_cast<double>(integers[r]) / divisor_;
    } else {
      for (size_t r = 0; r < count; ++r) out[r] = static_cast<double>(integers[r]) * factor_;
    }
  }

 private:
  double divisor_ = 0;
  double factor_ = 1;
};

// Reads one block's columns from its plain form.
class ColumnReader {
 public:
  ColumnReader(size_t rows, std::string_view scales, std::string_view bodies)
      : rows_(rows), scales_(scales), bodies_(bodies) {}

  bool Read(uint8_t code, double* out) {
    const bool gaps = (code & kGaps) != 0;
    const auto kind = static_cast<Kind>(code & ~kGaps);
    if (gaps && kind != Kind::kDelta && kind != Kind::kDeltaOfDelta) return false;
    switch (kind) {
      case Kind::kConstantBits:
        std::fill_n(out, rows_, bodies_.Fixed<double>());
        return bodies_.ok();
      case Kind::kConstant:
        return ReadConstant(out);
      case Kind::kDelta:
      case Kind::kDeltaOfDelta:
        return gaps ? ReadWithGaps(kind, out) : ReadIntegers(kind, rows_, out);
      case Kind::kFloat:
        return ReadFloats(out);
    }
    return false;
  }
  bool done() const { return scales_.done() && bodies_.done(); }

 private:
  bool ReadConstant(double* out) {
    integers_[0] = bodies_.Signed();
    if (!scale_.Set(scales_.Fixed<uint8_t>())) return false;
    scale_.Apply(integers_.data(), 1, out);
    std::fill_n(out, rows_, out[0]);
    return bodies_.ok() && scales_.ok();
  }

  bool ReadIntegers(Kind kind, size_t count, double* out) {
    if (!scale_.Set(scales_.Fixed<uint8_t>())) return false;
    uint64_t value = static_cast<uint64_t>(bodies_.Signed());
    integers_[0] = static_cast<int64_t>(value);
    uint64_t delta = 0;
    const uint64_t keep = kind == Kind::kDeltaOfDelta ? ~uint64_t{0} : 0;
    for (size_t r = 1; r < count; ++r) {
      delta = (delta & keep) + static_cast<uint64_t>(bodies_.Signed());
      value += delta;
      integers_[r] = static_cast<int64_t>(value);
    }
    scale_.Apply(integers_.data(), count, out);
    return bodies_.ok() && scales_.ok();
  }

  // The present values are read to the front and then moved, last first, to their rows.
  bool ReadWithGaps(Kind kind, double* out) {
    const std::string_view map = bodies_.Raw(GapBytes(rows_));
    if (!bodies_.ok()) return false;
    const auto missing = [&](size_t r) { return ((map[r / 8] >> (r % 8)) & 1) != 0; };
    size_t present = 0;
    for (size_t r = 0; r < rows_; ++r) present += missing(r) ? 0 : 1;
    if (present == 0 || !ReadIntegers(kind, present, out)) return false;
    for (size_t r = rows_; r-- > 0;) {
      out[r] = missing(r) ? std::bit_cast<double>(kMissing) : out[--present];
    }
    return true;
  }

  bool ReadFloats(double* out) {
    const std::string_view planes = bodies_.Raw(8 * rows_);
    if (!bodies_.ok()) return false;
    uint64_t bits = 0;
    for (size_t r = 0; r < rows_; ++r) {
      uint64_t change = 0;
      for (size_t plane = 0; plane < 8; ++plane) {
        change |= uint64_t{static_cast<uint8_t>(planes[plane * rows_ + r])} << (8 * plane);
      }
      bits ^= change;
      out[r] = std::bit_cast<double>(bits);
    }
    return true;
  }

  size_t rows_;
  ByteReader scales_;
  ByteReader bodies_;
  Scale scale_;
  std::array<int64_t, kMaxBlockRows> integers_;
};

bool HasScale(char code) {
  const auto kind = static_cast<Kind>(static_cast<uint8_t>(code) & ~kGaps);
  return kind != Kind::kConstantBits && kind != Kind::kFloat;
}

Result<Block> Decode(std::string_view bytes) {
  const Result<Header> header = ReadHeader(bytes);
  if (!header.ok()) return header.status();
  const Header& h = *header;
  const Result<Plain> plain = Plain::Unpack(bytes.substr(kHeaderSize), h.plain_size);
  if (!plain.ok()) return plain.status();

  Block block;
  block.schema_id = h.schema_id;
  ByteReader in(plain->bytes());
  if (!ReadTimes(h, in, block.times)) return Corrupt("its times are damaged");
  const std::string_view kinds = in.Raw(h.columns);
  const std::string_view scales =
      in.Raw(static_cast<size_t>(std::count_if(kinds.begin(), kinds.end(), HasScale)));
  const std::string_view bodies = in.Raw(in.left());
  if (!in.done()) return Corrupt("its columns are damaged");
  block.values.resize(size_t{h.rows} * h.columns);
  ColumnReader reader(h.rows, scales, bodies);
  for (size_t c = 0; c < h.columns; ++c) {
    if (!reader.Read(static_cast<uint8_t>(kinds[c]), block.values.data() + c * h.rows)) {
      return Corrupt(fmt::format("its column {} is damaged", c));
    }
  }
  if (!reader.done()) return Corrupt("something follows its last column");
  return block;
}

}  // namespace

Result<BlockInfo> ReadBlockInfo(std::string_view bytes) {
  const Result<Header> header = ReadHeader(bytes);
  if (!header.ok()) return header.status();
  return BlockInfo{header->schema_id, header->rows, header->columns, header->first, header->last};
}

Result<Block> DecodeBlock(std::string_view bytes) {
  try {
    return Decode(bytes);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit, fmt::format("read a block of {} bytes: no memory", bytes.size()));
  }
}

}  // namespace sonde
