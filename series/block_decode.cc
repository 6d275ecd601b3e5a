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

// Turns integers back into doubles; false if the byte is no scale.
bool ApplyScale(uint8_t scale, std::span<const int64_t> integers, double* out) {
  if (scale == kBits) {
    for (size_t r = 0; r < integers.size(); ++r) out[r] = std::bit_cast<double>(integers[r]);
    return true;
  }
  if (scale <= kMaxShift) {
    const double factor = std::ldexp(1.0, scale);
    for (size_t r = 0; r < integers.size(); ++r) out[r] = static_cast<double>(integers[r]) * factor;
    return true;
  }
  if (scale <= kDecimals || scale > kDecimals + kMaxDecimals) return false;
  const double power = kPowers[scale - kDecimals];
  for (size_t r = 0; r < integers.size(); ++r) out[r] = static_cast<double>(integers[r]) / power;
  return true;
}

// Reads one block's columns, one after the other.
class ColumnReader {
 public:
  ColumnReader(size_t rows, std::string_view bodies) : rows_(rows), in_(bodies) {}

  bool Read(uint8_t kind, uint8_t scale, double* out) {
    switch (kind) {
      case static_cast<uint8_t>(Kind::kConstant):
        integers_[0] = in_.Signed();
        if (!in_.ok() || !ApplyScale(scale, {integers_.data(), 1}, out)) return false;
        std::fill_n(out, rows_, out[0]);
        return true;
      case static_cast<uint8_t>(Kind::kDelta):
      case static_cast<uint8_t>(Kind::kDeltaOfDelta):
        return ReadIntegers(kind, rows_) && ApplyScale(scale, {integers_.data(), rows_}, out);
      case static_cast<uint8_t>(Kind::kDelta) | kGaps:
      case static_cast<uint8_t>(Kind::kDeltaOfDelta) | kGaps:
        return ReadWithGaps(kind & ~kGaps, scale, out);
      default:
        return false;
    }
  }
  // Passes over the column without reading it.
  bool Skip(uint8_t kind) {
    size_t count = kind == static_cast<uint8_t>(Kind::kConstant) ? 1 : rows_;
    if ((kind & kGaps) != 0) {
      const std::string_view map = in_.Raw(GapBytes(rows_));
      for (size_t r = 0; r < rows_ && in_.ok(); ++r) count -= (map[r / 8] >> (r % 8)) & 1;
    }
    in_.SkipVarints(count);
    return in_.ok();
  }
  bool done() const { return in_.done(); }
  size_t left() const { return in_.left(); }

 private:
  bool ReadIntegers(int kind, size_t count) {
    const uint64_t keep = kind == static_cast<int>(Kind::kDeltaOfDelta) ? ~uint64_t{0} : 0;
    auto value = static_cast<uint64_t>(in_.Signed());
    uint64_t delta = 0;
    integers_[0] = static_cast<int64_t>(value);
    for (size_t r = 1; r < count; ++r) {
      delta = (delta & keep) + static_cast<uint64_t>(in_.Signed());
      value += delta;
      integers_[r] = static_cast<int64_t>(value);
    }
    return in_.ok();
  }

  // The present values are put to the front and then moved, last first, to their rows.
  bool ReadWithGaps(int kind, uint8_t scale, double* out) {
    const std::string_view map = in_.Raw(GapBytes(rows_));
    if (!in_.ok()) return false;
    const auto missing = [&](size_t r) { return ((map[r / 8] >> (r % 8)) & 1) != 0; };
    size_t present = 0;
    for (size_t r = 0; r < rows_; ++r) present += missing(r) ? 0 : 1;
    if (present == 0 || !ReadIntegers(kind, present) ||
        !ApplyScale(scale, {integers_.data(), present}, out)) {
      return false;
    }
    for (size_t r = rows_; r-- > 0;) {
      out[r] = missing(r) ? std::bit_cast<double>(kMissing) : out[--present];
    }
    return true;
  }

  size_t rows_;
  ByteReader in_;
  std::array<int64_t, kMaxBlockRows> integers_;
};

// What DecodeBlock and PlainBlock have in common: header, checksum, frame.
Result<Plain> UnpackFrame(std::string_view bytes, const Header& h) {
  const std::string_view frame = bytes.substr(kHeaderSize);
  if (Crc32c(frame) != h.frame_crc) return Corrupt("its checksum is wrong");
  return Plain::Unpack(frame, h.plain_size);
}

// `wanted`: nullptr for all columns.
Result<Block> Decode(std::string_view bytes, const std::vector<bool>* wanted) {
  const Result<Header> header = ReadHeader(bytes);
  if (!header.ok()) return header.status();
  const Header& h = *header;
  const Result<Plain> plain = UnpackFrame(bytes, h);
  if (!plain.ok()) return plain.status();

  Block block;
  block.schema_id = h.schema_id;
  ByteReader in(plain->bytes());
  if (!ReadTimes(h, in, block.times)) return Corrupt("its times are damaged");
  const std::string_view kinds = in.Raw(h.columns);
  const std::string_view scales = in.Raw(h.columns);
  const std::string_view bodies = in.Raw(in.left());
  if (!in.done()) return Corrupt("its columns are damaged");
  if (wanted != nullptr && wanted->size() != h.columns) {
    return Status(Code::kInvalid, fmt::format("read a block: it has {} columns, asked for are {}",
                                              h.columns, wanted->size()));
  }
  const size_t columns =
      wanted == nullptr ? h.columns
                        : static_cast<size_t>(std::count(wanted->begin(), wanted->end(), true));
  block.values.resize(size_t{h.rows} * columns);
  ColumnReader reader(h.rows, bodies);
  double* out = block.values.data();
  for (size_t c = 0; c < h.columns; ++c) {
    if (wanted != nullptr && !(*wanted)[c]) {
      if (!reader.Skip(static_cast<uint8_t>(kinds[c]))) {
        return Corrupt(fmt::format("its column {} is damaged", c));
      }
      continue;
    }
    if (!reader.Read(static_cast<uint8_t>(kinds[c]), static_cast<uint8_t>(scales[c]), out)) {
      return Corrupt(fmt::format("its column {} is damaged", c));
    }
    out += h.rows;
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
    return Decode(bytes, nullptr);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit, fmt::format("read a block of {} bytes: no memory", bytes.size()));
  }
}

Result<Block> DecodeColumns(std::string_view bytes, const std::vector<bool>& wanted) {
  try {
    return Decode(bytes, &wanted);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit, fmt::format("read a block of {} bytes: no memory", bytes.size()));
  }
}

// --- PlainBlock ---

struct PlainBlock::Rep {
  Plain plain;
  std::vector<Nanos> times;
  std::string_view kinds, scales, bodies;  // in plain
  std::vector<uint32_t> starts;            // of each column's body, and their end
};

PlainBlock::PlainBlock(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
PlainBlock::~PlainBlock() = default;

std::span<const Nanos> PlainBlock::times() const { return rep_->times; }
size_t PlainBlock::columns() const { return rep_->kinds.size(); }

size_t PlainBlock::MemoryUse() const {
  return rep_->plain.bytes().size() + rep_->times.size() * sizeof(Nanos) +
         rep_->starts.size() * sizeof(uint32_t);
}

Status PlainBlock::Read(size_t i, std::span<double> values) const {
  const Rep& rep = *rep_;
  const std::string_view body = rep.bodies.substr(rep.starts[i], rep.starts[i + 1] - rep.starts[i]);
  ColumnReader reader(rep.times.size(), body);
  if (reader.Read(static_cast<uint8_t>(rep.kinds[i]), static_cast<uint8_t>(rep.scales[i]),
                  values.data()) &&
      reader.done()) {
    return {};
  }
  return Corrupt(fmt::format("its column {} is damaged", i));
}

Result<std::shared_ptr<const PlainBlock>> PlainBlock::Unpack(std::string_view bytes) {
  const Result<Header> header = ReadHeader(bytes);
  if (!header.ok()) return header.status();
  const Header& h = *header;
  try {
    auto rep = std::make_unique<Rep>();
    Result<Plain> plain = UnpackFrame(bytes, h);
    if (!plain.ok()) return plain.status();
    rep->plain = *std::move(plain);
    ByteReader in(rep->plain.bytes());
    if (!ReadTimes(h, in, rep->times)) return Corrupt("its times are damaged");
    rep->kinds = in.Raw(h.columns);
    rep->scales = in.Raw(h.columns);
    rep->bodies = in.Raw(in.left());
    if (!in.done()) return Corrupt("its columns are damaged");
    ColumnReader reader(h.rows, rep->bodies);
    rep->starts.reserve(h.columns + size_t{1});
    for (size_t c = 0; c < h.columns; ++c) {
      rep->starts.push_back(static_cast<uint32_t>(rep->bodies.size() - reader.left()));
      if (!reader.Skip(static_cast<uint8_t>(rep->kinds[c]))) {
        return Corrupt(fmt::format("its column {} is damaged", c));
      }
    }
    if (!reader.done()) return Corrupt("something follows its last column");
    rep->starts.push_back(static_cast<uint32_t>(rep->bodies.size()));
    return std::shared_ptr<const PlainBlock>(new PlainBlock(std::move(rep)));
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit, fmt::format("read a block of {} bytes: no memory", bytes.size()));
  }
}

}  // namespace sonde
