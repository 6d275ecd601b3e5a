#include <fmt/core.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "core/bytes.h"
#include "series/block/block.h"
#include "series/block/columns.h"
#include "series/block/format.h"
#include "series/block/integers.h"

namespace sonde {
namespace {

using namespace block_format;

struct FreeDecoder {
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
    const std::unique_ptr<ZSTD_DCtx, FreeDecoder> zstd(ZSTD_createDCtx());
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

// The part common to DecodeBlock and PlainBlock: header, checksum, frame.
Result<Plain> UnpackFrame(std::string_view bytes, const Header& h) {
  const std::string_view body = bytes.substr(kHeaderSize);
  if (Crc32c(body) != h.body_crc) return Corrupt("its checksum is wrong");
  return Plain::Unpack(body.substr(0, h.frame_size), h.plain_size);
}

Status DamagedColumn(size_t c) { return Corrupt(fmt::format("its column {} is damaged", c)); }

// Decodes columns in their order. The integers of those that others refer to are kept.
class Decoder {
 public:
  Decoder(size_t rows, const Heads& heads, ColumnReader& reader)
      : rows_(rows), all_(heads), heads_(heads.columns), reader_(reader), uses_(heads_.size()) {}

  // `wanted`: nullptr for all columns.
  Status Decode(const std::vector<bool>* wanted, double* out) {
    Plan(wanted);
    for (size_t c = 0; c < heads_.size(); ++c) {
      const bool is_wanted = wanted == nullptr || (*wanted)[c];
      const bool good = is_wanted || uses_[c] != kUnused ? DecodeOne(c, is_wanted ? out : nullptr)
                                                         : reader_.Skip(heads_[c]);
      if (!good) return DamagedColumn(c);
      if (is_wanted) out += rows_;
    }
    if (!reader_.done()) return Corrupt("something follows its last column");
    return {};
  }

 private:
  static constexpr uint32_t kUnused = 0;

  // Which columns must be decoded for the wanted ones, and where their integers are kept: from the
  // last to the first, as references lead forward only.
  void Plan(const std::vector<bool>* wanted) {
    uint32_t kept = 0;
    for (size_t c = heads_.size(); c-- > 0;) {
      if (uses_[c] == kUnused && wanted != nullptr && !(*wanted)[c]) continue;
      for (size_t i = 0; i < heads_[c].reference_count; ++i) {
        uint32_t& use = uses_[heads_[c].references[i]];
        if (use == kUnused) use = ++kept;
      }
    }
    kept_.resize((size_t{kept} + 1) * rows_);
  }

  // `out`: nullptr if only others want it.
  bool DecodeOne(size_t c, double* out) {
    const ColumnHead& head = heads_[c];
    // A constant that no column refers to is one number.
    if (head.kind == Kind::kConstant && head.reference_count == 0 && head.gaps == 0 &&
        uses_[c] == kUnused) {
      const auto integer = static_cast<int64_t>(head.first);
      if (!ToDoubles(head.scale, {&integer, 1}, out)) return false;
      std::fill_n(out + 1, rows_ - 1, *out);
      return true;
    }
    const GapPattern& gaps = all_.patterns[head.gaps];
    int64_t* integers = kept_.data() + uses_[c] * rows_;
    if (!reader_.ReadIntegers(head, integers)) return false;
    for (size_t i = 0; i < head.reference_count; ++i) {
      const int64_t* other = kept_.data() + uses_[head.references[i]] * rows_;
      AddColumn({other, gaps.present}, head.negative[i], integers);
    }
    if (out == nullptr) return true;
    if (!ToDoubles(head.scale, {integers, gaps.present}, out)) return false;
    SpreadOverGaps(gaps, {out, rows_});
    return true;
  }

  size_t rows_;
  const Heads& all_;
  const std::vector<ColumnHead>& heads_;
  ColumnReader& reader_;
  std::vector<uint32_t> uses_;  // by column: its place in kept_; place 0 is shared
  std::vector<int64_t> kept_;
};

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
  Heads heads;
  if (!ReadHeads(h.rows, h.columns, in, heads)) return Corrupt("its columns are damaged");
  if (wanted != nullptr && wanted->size() != h.columns) {
    return Status(Code::kInvalid, fmt::format("read a block: it has {} columns, asked for are {}",
                                              h.columns, wanted->size()));
  }
  const size_t columns =
      wanted == nullptr ? h.columns
                        : static_cast<size_t>(std::count(wanted->begin(), wanted->end(), true));
  block.values.resize(size_t{h.rows} * columns);
  const std::string_view bodies = in.Raw(in.left());
  ColumnReader reader(heads, bodies, bytes.substr(kHeaderSize + h.frame_size));
  SONDE_RETURN_IF_ERROR(Decoder(h.rows, heads, reader).Decode(wanted, block.values.data()));
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
  std::string low;
  std::vector<Nanos> times;
  Heads heads;  // its patterns are in plain
  std::vector<ColumnPlace> places;
  std::string_view bodies;  // in plain

  // Adds the summands of column `i` to `out`, at most kMaxSummands; or subtracts them.
  bool Accumulate(ColumnReader& reader, size_t i, bool negative,
                  std::span<int64_t> out) const {  // NOLINT(misc-no-recursion)
    const ColumnHead& head = heads.columns[i];
    reader.Go(places[i]);
    if (!reader.AddIntegers(head, negative, out)) return false;
    for (size_t r = 0; r < head.reference_count; ++r) {
      if (!Accumulate(reader, head.references[r], negative != head.negative[r], out)) return false;
    }
    return true;
  }
};

PlainBlock::PlainBlock(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
PlainBlock::~PlainBlock() = default;

std::span<const Nanos> PlainBlock::times() const { return rep_->times; }
size_t PlainBlock::columns() const { return rep_->heads.columns.size(); }

size_t PlainBlock::MemoryUse() const {
  return rep_->plain.bytes().size() + rep_->low.size() + rep_->times.size() * sizeof(Nanos) +
         rep_->heads.columns.size() * (sizeof(ColumnHead) + sizeof(ColumnPlace)) +
         rep_->heads.patterns.size() * sizeof(GapPattern);
}

Status PlainBlock::Read(size_t i, std::span<double> values) const {
  const Rep& rep = *rep_;
  const ColumnHead& head = rep.heads.columns[i];
  const GapPattern& gaps = rep.heads.patterns[head.gaps];
  ColumnReader reader(rep.heads, rep.bodies, rep.low);
  std::array<int64_t, kMaxBlockRows> integers{};
  const std::span<int64_t> used(integers.data(), gaps.present);
  if (rep.Accumulate(reader, i, false, used) && ToDoubles(head.scale, used, values.data())) {
    SpreadOverGaps(gaps, values);
    return {};
  }
  return DamagedColumn(i);
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
    rep->low = bytes.substr(kHeaderSize + h.frame_size);
    ByteReader in(rep->plain.bytes());
    if (!ReadTimes(h, in, rep->times)) return Corrupt("its times are damaged");
    if (!ReadHeads(h.rows, h.columns, in, rep->heads)) return Corrupt("its columns are damaged");
    rep->bodies = in.Raw(in.left());
    ColumnReader reader(rep->heads, rep->bodies, rep->low);
    rep->places.reserve(h.columns);
    for (size_t c = 0; c < h.columns; ++c) {
      rep->places.push_back(reader.place());
      if (!reader.Skip(rep->heads.columns[c])) return DamagedColumn(c);
    }
    if (!reader.done()) return Corrupt("something follows its last column");
    return std::shared_ptr<const PlainBlock>(new PlainBlock(std::move(rep)));
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit, fmt::format("read a block of {} bytes: no memory", bytes.size()));
  }
}

}  // namespace sonde
