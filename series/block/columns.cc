#include "series/block/columns.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "series/block/integers.h"

namespace sonde::block_format {
namespace {

// How many residuals a column has if `present` of its rows are not missing.
size_t ResidualCount(const ColumnHead& head, size_t present) {
  if (head.kind == Kind::kConstant) return 0;
  return head.kind == Kind::kLevel ? present : present - 1;
}

bool IsMissing(std::string_view map, size_t row) { return ((map[row / 8] >> (row % 8)) & 1) != 0; }

bool ReadGaps(size_t rows, ByteReader& in, std::vector<GapPattern>& patterns) {
  const std::string_view map = in.Raw(GapBytes(rows));
  if (!in.ok()) return false;
  size_t present = 0;
  for (size_t r = 0; r < rows; ++r) present += IsMissing(map, r) ? 0 : 1;
  patterns.push_back({map, present});
  return present > 0;
}

bool ReadKind(uint8_t byte, size_t rows, ByteReader& in, std::vector<GapPattern>& patterns,
              ColumnHead& head) {
  head.kind = static_cast<Kind>(byte & kKindMask);
  head.reference_count = (byte >> kReferencesShift) & 3;
  if (head.kind > Kind::kLevel || head.reference_count > kMaxReferences) return false;
  if ((byte & kNewGaps) != 0 && ((byte & kGaps) == 0 || !ReadGaps(rows, in, patterns))) {
    return false;
  }
  if ((byte & kGaps) == 0) return true;
  head.gaps = static_cast<uint32_t>(patterns.size() - 1);
  return head.gaps > 0;
}

// References lead to earlier columns with the same rows missing, and to few columns in all: reading
// one column costs no more than reading these.
bool ReadReferences(ByteReader& in, std::span<const ColumnHead> before, ColumnHead& head) {
  for (size_t i = 0; i < head.reference_count; ++i) {
    const uint64_t reference = in.Varint();
    const uint64_t back = reference >> 1;
    if (back >= before.size()) return false;
    const size_t column = before.size() - 1 - back;
    if (before[column].gaps != head.gaps) return false;
    head.references[i] = static_cast<uint32_t>(column);
    head.negative[i] = (reference & 1) != 0;
    head.summands += before[column].summands;
  }
  return head.summands <= kMaxSummands;
}

}  // namespace

bool ReadHeads(size_t rows, size_t columns, ByteReader& in, Heads& heads) {
  const std::string_view kinds = in.Raw(columns);
  const std::string_view scales = in.Raw(columns);
  if (!in.ok()) return false;
  heads.patterns.assign(1, {{}, rows});
  heads.columns.resize(columns);
  for (size_t c = 0; c < columns; ++c) {
    ColumnHead& head = heads.columns[c];
    if (!ReadKind(static_cast<uint8_t>(kinds[c]), rows, in, heads.patterns, head)) return false;
    head.scale = static_cast<uint8_t>(scales[c]);
    if (head.kind != Kind::kConstant) head.low_bits = in.Fixed<uint8_t>();
    if (head.low_bits > kMaxLowBits) return false;
    head.first = static_cast<uint64_t>(in.Signed());
    if (head.kind == Kind::kSteady) head.step = static_cast<uint64_t>(in.Signed());
    if (!ReadReferences(in, std::span(heads.columns).first(c), head)) return false;
  }
  return in.ok();
}

// Into `residuals_`.
bool ColumnReader::ReadResiduals(size_t count, int low_bits) {
  in_.Varints(residuals_.data(), count);
  return in_.ok() && (low_bits == 0 || AddLowBits(count, low_bits));
}

bool ColumnReader::AddLowBits(size_t count, int low_bits) {
  const auto width = static_cast<size_t>(low_bits);
  const size_t end = low_at_ + count * width;
  if (end > low_.size() * 8) return false;
  const uint64_t mask = (uint64_t{1} << low_bits) - 1;
  size_t r = 0;
  for (; r < count && low_at_ / 8 + sizeof(uint64_t) <= low_.size(); ++r, low_at_ += width) {
    uint64_t bits;
    std::memcpy(&bits, low_.data() + low_at_ / 8, sizeof bits);
    residuals_[r] = residuals_[r] << low_bits | ((bits >> (low_at_ % 8)) & mask);
  }
  for (; r < count; ++r, low_at_ += width) {
    uint64_t bits = 0;
    std::memcpy(&bits, low_.data() + low_at_ / 8, low_.size() - low_at_ / 8);
    residuals_[r] = residuals_[r] << low_bits | ((bits >> (low_at_ % 8)) & mask);
  }
  return true;
}

bool ColumnReader::ReadIntegers(const ColumnHead& head, int64_t* out) {
  const size_t count = heads_.Present(head);
  const size_t residuals = ResidualCount(head, count);
  if (residuals > 0 && !ReadResiduals(residuals, head.low_bits)) return false;
  const auto residual = [&](size_t i) { return static_cast<uint64_t>(UnZigZag(residuals_[i])); };
  uint64_t value = head.first;
  uint64_t step = head.step;
  switch (head.kind) {
    case Kind::kConstant:
      std::fill_n(out, count, static_cast<int64_t>(value));
      return true;
    case Kind::kLevel:
      for (size_t r = 0; r < count; ++r) out[r] = static_cast<int64_t>(value + residual(r));
      return true;
    case Kind::kDelta:
    case Kind::kSteady:
      out[0] = static_cast<int64_t>(value);
      for (size_t r = 1; r < count; ++r) {
        value += step + residual(r - 1);
        out[r] = static_cast<int64_t>(value);
      }
      return true;
    case Kind::kDeltaOfDelta:
      out[0] = static_cast<int64_t>(value);
      for (size_t r = 1; r < count; ++r) {
        step += residual(r - 1);
        value += step;
        out[r] = static_cast<int64_t>(value);
      }
      return true;
  }
  return false;
}

bool ColumnReader::AddIntegers(const ColumnHead& head, bool negative, std::span<int64_t> sums) {
  if (!ReadIntegers(head, integers_.data())) return false;
  AddColumn({integers_.data(), sums.size()}, negative, sums.data());
  return true;
}

bool ColumnReader::Skip(const ColumnHead& head) {
  const size_t count = ResidualCount(head, heads_.Present(head));
  in_.SkipVarints(count);
  low_at_ += count * head.low_bits;
  return in_.ok() && low_at_ <= low_.size() * 8;
}

bool ColumnReader::done() const { return in_.done() && (low_at_ + 7) / 8 == low_.size(); }

void SpreadOverGaps(const GapPattern& gaps, std::span<double> rows) {
  if (gaps.map.empty()) return;
  std::array<double, kMaxBlockRows> values;
  std::copy_n(rows.begin(), gaps.present, values.begin());
  std::fill(rows.begin(), rows.end(), std::bit_cast<double>(kMissing));
  const double* next = values.data();
  for (size_t byte = 0; byte < gaps.map.size(); ++byte) {
    for (unsigned present = ~static_cast<unsigned char>(gaps.map[byte]) & 0xff; present != 0;
         present &= present - 1) {
      const size_t row = byte * 8 + static_cast<size_t>(std::countr_zero(present));
      if (row < rows.size()) rows[row] = *next++;
    }
  }
}

void AddColumn(std::span<const int64_t> other, bool negative, int64_t* integers) {
  const uint64_t sign = negative ? ~uint64_t{0} : 0;
  for (size_t r = 0; r < other.size(); ++r) {
    const uint64_t o = (static_cast<uint64_t>(other[r]) ^ sign) - sign;
    integers[r] = static_cast<int64_t>(static_cast<uint64_t>(integers[r]) + o);
  }
}

}  // namespace sonde::block_format
