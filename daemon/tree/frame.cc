#include "daemon/tree/frame.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/bytes.h"

namespace sonde::tree {
namespace {

// What stands before a value, or in place of some.
enum Kind : uint8_t {
  kSame = 0,         // varint n: the next n values are as they were
  kEmpty = 1,        // nothing was measured
  kOwn = 2,          // f64: one value, of the frame's only node
  kSingle = 3,       // f64, owner: one value
  kGrown = 4,        // signed: one value and owner as before, by so much more
  kMerged = 5,       // count, sum, min, max, sum_sq, owners
  kMergedGrown = 6,  // byte of Change: as before but for these
};

// What stands before a sketch, or in place of some.
enum SpreadKind : uint8_t {
  kSameSpread = 0,  // varint n: the next n are as they were
  kTold = 1,        // varint n: the next n are of one or two values of a gauge, or none: see there
  kNoSpread = 2,
  kOneValue = 3,  // f64
  kSketch = 4,    // as it encodes itself
};

// Which parts of a merged value follow; the others are as they were.
enum Change : uint8_t {
  kCount = 1,
  kMinOwner = 2,
  kMaxOwner = 4,
  kSum = 8,  // as a difference, like the extremes
  kMin = 16,
  kMax = 32,
  kSumSq = 64,  // f64
};

constexpr double kWhole = 9007199254740992;  // 2^53: whole numbers up to it are exact

bool SameValue(const Reduced& a, const Reduced& b) {
  return a.count == b.count && a.sum == b.sum && a.min == b.min && a.max == b.max &&
         a.sum_sq == b.sum_sq && a.min_owner == b.min_owner && a.max_owner == b.max_owner;
}

bool IsWhole(double v) {
  return std::abs(v) <= kWhole && static_cast<double>(static_cast<int64_t>(v)) == v;
}

bool BothWhole(double a, double b) { return IsWhole(a) && IsWhole(b); }

void PutDifference(ByteWriter& w, double from, double to) {
  w.Signed(static_cast<int64_t>(to) - static_cast<int64_t>(from));
}

double GetDifference(ByteReader& r, double from) {
  const int64_t difference = r.Signed();
  constexpr auto kMost = static_cast<int64_t>(2 * kWhole);
  if (!IsWhole(from) || difference > kMost || difference < -kMost) {
    r.Fail();
    return 0;
  }
  return static_cast<double>(static_cast<int64_t>(from) + difference);
}

void PutOwner(ByteWriter& w, Owner owner) {
  w.Varint(owner.node);
  w.Varint(owner.rank == Owner::kNobody ? 0 : owner.rank + 1);
}

Owner GetOwner(ByteReader& r) {
  const uint64_t node = r.Varint();
  const uint64_t rank = r.Varint();
  if (node > UINT32_MAX || rank > UINT32_MAX) r.Fail();
  return {static_cast<uint32_t>(node),
          rank == 0 ? Owner::kNobody : static_cast<uint32_t>(rank - 1)};
}

void PutSingle(ByteWriter& w, const Reduced& v, const Reduced& last, uint32_t self) {
  if (last.count == 1 && v.min_owner == last.min_owner && BothWhole(v.sum, last.sum)) {
    w.Fixed<uint8_t>(kGrown);
    return PutDifference(w, last.sum, v.sum);
  }
  const bool own = v.min_owner == Owner{self, Owner::kNobody};
  w.Fixed<uint8_t>(own ? kOwn : kSingle);
  w.Fixed(v.sum);
  if (!own) PutOwner(w, v.min_owner);
}

void PutMerged(ByteWriter& w, const Reduced& v, const Reduced& last) {
  const bool grown = last.count > 1 && BothWhole(v.sum, last.sum) && BothWhole(v.min, last.min) &&
                     BothWhole(v.max, last.max);
  if (!grown) {
    w.Fixed<uint8_t>(kMerged);
    w.Varint(static_cast<uint64_t>(v.count));
    w.Fixed(v.sum);
    w.Fixed(v.min);
    w.Fixed(v.max);
    w.Fixed(v.sum_sq);
    PutOwner(w, v.min_owner);
    return PutOwner(w, v.max_owner);
  }
  unsigned changed = 0;
  if (v.count != last.count) changed |= kCount;
  if (v.min_owner != last.min_owner) changed |= kMinOwner;
  if (v.max_owner != last.max_owner) changed |= kMaxOwner;
  if (v.sum != last.sum) changed |= kSum;
  if (v.min != last.min) changed |= kMin;
  if (v.max != last.max) changed |= kMax;
  if (v.sum_sq != last.sum_sq) changed |= kSumSq;
  w.Fixed<uint8_t>(kMergedGrown);
  w.Fixed<uint8_t>(static_cast<uint8_t>(changed));
  if (changed & kCount) w.Varint(static_cast<uint64_t>(v.count));
  if (changed & kMinOwner) PutOwner(w, v.min_owner);
  if (changed & kMaxOwner) PutOwner(w, v.max_owner);
  if (changed & kSum) PutDifference(w, last.sum, v.sum);
  if (changed & kMin) PutDifference(w, last.min, v.min);
  if (changed & kMax) PutDifference(w, last.max, v.max);
  if (changed & kSumSq) w.Fixed(v.sum_sq);
}

Reduced One(double value, Owner owner) {
  Reduced v;
  v.Add(value, owner);
  return v;
}

double GetCount(ByteReader& r) {
  const uint64_t count = r.Varint();
  if (count == 0) r.Fail();
  return static_cast<double>(count);
}

Reduced GetMerged(ByteReader& r) {
  Reduced v;
  v.count = GetCount(r);
  v.sum = r.Fixed<double>();
  v.min = r.Fixed<double>();
  v.max = r.Fixed<double>();
  v.sum_sq = r.Fixed<double>();
  v.min_owner = GetOwner(r);
  v.max_owner = GetOwner(r);
  return v;
}

void GetMergedGrown(ByteReader& r, Reduced& v) {
  const auto changed = r.Fixed<uint8_t>();
  if (v.count == 0 || changed > 127) return r.Fail();
  if (changed & kCount) v.count = GetCount(r);
  if (changed & kMinOwner) v.min_owner = GetOwner(r);
  if (changed & kMaxOwner) v.max_owner = GetOwner(r);
  if (changed & kSum) v.sum = GetDifference(r, v.sum);
  if (changed & kMin) v.min = GetDifference(r, v.min);
  if (changed & kMax) v.max = GetDifference(r, v.max);
  if (changed & kSumSq) v.sum_sq = r.Fixed<double>();
}

// A value that is about to be empty, among those that were before.
void Keep(const std::vector<Reduced>& values, size_t i, std::vector<Reduced>& kept) {
  if (values[i].count == 0) return;
  kept.resize(values.size());
  kept[i] = values[i];
}

std::vector<Reduced> WithKept(std::vector<Reduced> values, const std::vector<Reduced>& kept) {
  for (size_t i = 0; i < kept.size(); ++i) {
    if (values[i].count == 0) values[i] = kept[i];
  }
  return values;
}

// The first byte of a frame.
constexpr uint8_t kStreamBits = 3;
constexpr uint8_t kLost = 4;
constexpr uint8_t kSameNodes = 8;

}  // namespace

SpreadColumns::SpreadColumns(const Schema& schema) {
  for (size_t i = 0; i < schema.size() && columns_.size() < kMax; ++i) {
    const Metric& metric = schema[i].metric;
    if (metric.spread) columns_.emplace_back(i, metric.type == MetricType::kGauge);
  }
}

void FrameEncoder::Reset(const Schema& schema, NodeSet nodes) {
  last_.assign(schema.size(), Reduced());
  kept_.clear();
  if (schema.id() != schema_) columns_ = SpreadColumns(schema);
  schema_ = schema.id();
  last_spreads_.resize(columns_.size());
  for (QuantileSketch& spread : last_spreads_) spread.Clear();
  nodes_ = std::move(nodes);
}

void FrameEncoder::Encode(const FrameInfo& header, const FrameValues& frame, std::string& out) {
  ByteWriter w(out);
  const bool same_nodes = header.nodes == nodes_;
  w.Fixed<uint8_t>(static_cast<uint8_t>(static_cast<uint8_t>(header.stream) |
                                        (header.lost ? kLost : 0) | (same_nodes ? kSameNodes : 0)));
  w.Varint(header.number);
  w.Signed(header.tick);
  if (!same_nodes) {
    header.nodes.Encode(w);
    nodes_ = header.nodes;
  }
  PutValues(header, frame.values, w);
  if (header.stream != Stream::kEnded) PutSpreads(frame, out);
}

void FrameEncoder::PutValues(const FrameInfo& header, std::span<const Reduced> values,
                             ByteWriter& w) {
  const uint32_t self = header.nodes.first();
  const size_t n = last_.size();
  for (size_t i = 0; i < n;) {
    size_t run = i;
    while (run < n && SameValue(values[run], last_[run])) ++run;
    if (run > i) {
      w.Fixed<uint8_t>(kSame);
      w.Varint(run - i);
      i = run;
      continue;
    }
    const Reduced& v = values[i];
    if (v.count == 0) {
      Keep(last_, i, kept_);
      w.Fixed<uint8_t>(kEmpty);
    } else if (v.count == 1) {
      PutSingle(w, v, last_[i], self);
    } else {
      PutMerged(w, v, last_[i]);
    }
    last_[i++] = v;
  }
}

std::vector<Reduced> FrameEncoder::LastKnown() const { return WithKept(last_, kept_); }

void FrameEncoder::PutSpreads(const FrameValues& frame, std::string& out) {
  static const QuantileSketch kNothing;
  ByteWriter w(out);
  const size_t n = columns_.size();
  const auto spread = [&](size_t i) -> const QuantileSketch& {
    return i < frame.spreads.size() ? frame.spreads[i] : kNothing;
  };
  for (size_t i = 0; i < n;) {
    size_t told = i;
    while (told < n && columns_.IsTold(told, frame.values[columns_[told]])) ++told;
    size_t same = i;
    while (same < n && spread(same) == last_spreads_[same]) ++same;
    const size_t end = std::max(told, same);
    if (end > i) {
      w.Fixed<uint8_t>(told >= same ? kTold : kSameSpread);
      w.Varint(end - i);
      for (; i < end; ++i) last_spreads_[i] = spread(i);
      continue;
    }
    const QuantileSketch& s = spread(i);
    if (s.empty()) {
      w.Fixed<uint8_t>(kNoSpread);
    } else if (s.count() == 1) {
      w.Fixed<uint8_t>(kOneValue);
      w.Fixed(s.min());
    } else {
      w.Fixed<uint8_t>(kSketch);
      s.Encode(w);
    }
    last_spreads_[i++] = s;
  }
}

Result<Stream> StreamOf(std::string_view bytes) {
  const unsigned stream = bytes.empty() ? kStreams : static_cast<uint8_t>(bytes[0]) & kStreamBits;
  if (stream >= kStreams) return Status(Code::kCorrupt, "frame of no stream");
  return static_cast<Stream>(stream);
}

Nanos TickOf(std::string_view bytes) {
  ByteReader r(bytes);
  r.Fixed<uint8_t>();
  r.Varint();
  return r.Signed();
}

void FrameDecoder::Reset(const Schema& schema, NodeSet nodes) {
  frame_.values.assign(schema.size(), Reduced());
  columns_ = SpreadColumns(schema);
  frame_.spreads.resize(columns_.size());
  for (QuantileSketch& spread : frame_.spreads) spread.Clear();
  frame_.nodes = std::move(nodes);
  kept_.clear();
}

Result<const Frame*> FrameDecoder::Decode(std::string_view bytes) {
  ByteReader r(bytes);
  const auto first = r.Fixed<uint8_t>();
  const unsigned stream = first & kStreamBits;
  if (stream >= kStreams || first > (kStreamBits | kLost | kSameNodes)) r.Fail();
  frame_.stream = static_cast<Stream>(stream);
  frame_.lost = (first & kLost) != 0;
  frame_.number = r.Varint();
  frame_.tick = r.Signed();
  if ((first & kSameNodes) == 0) frame_.nodes.Decode(r);
  if (frame_.nodes.empty()) r.Fail();
  if (frame_.lost && (frame_.stream != Stream::kEnded || frame_.nodes.size() != 1)) r.Fail();
  GetValues(r);
  if (frame_.stream != Stream::kEnded) GetSpreads(r);
  if (!r.done()) return Status(Code::kCorrupt, "frame is malformed");
  return &frame_;
}

void FrameDecoder::GetValues(ByteReader& r) {
  std::vector<Reduced>& values = frame_.values;
  const Owner self{frame_.nodes.first(), Owner::kNobody};
  for (size_t i = 0; i < values.size() && r.ok();) {
    switch (r.Fixed<uint8_t>()) {
      case kSame: {
        const uint64_t run = r.Varint();
        if (run == 0 || run > values.size() - i) r.Fail();
        i += run;
        break;
      }
      case kEmpty:
        Keep(values, i, kept_);
        values[i++] = Reduced();
        break;
      case kOwn:
        values[i++] = One(r.Fixed<double>(), self);
        break;
      case kSingle: {
        const double value = r.Fixed<double>();
        values[i++] = One(value, GetOwner(r));
        break;
      }
      case kGrown: {
        const Owner owner = values[i].min_owner;
        if (values[i].count == 0) r.Fail();
        values[i] = One(GetDifference(r, values[i].sum), owner);
        ++i;
        break;
      }
      case kMerged:
        values[i++] = GetMerged(r);
        break;
      case kMergedGrown:
        GetMergedGrown(r, values[i++]);
        break;
      default:
        r.Fail();
    }
  }
}

void FrameDecoder::GetSpreads(ByteReader& r) {
  const size_t n = columns_.size();
  for (size_t i = 0; i < n && r.ok();) {
    QuantileSketch& spread = frame_.spreads[i];
    const auto kind = r.Fixed<uint8_t>();
    if (kind == kSameSpread || kind == kTold) {
      const uint64_t run = r.Varint();
      if (run == 0 || run > n - i) return r.Fail();
      for (const size_t end = i + run; i < end; ++i) {
        if (kind == kTold) Tell(i);
      }
      continue;
    }
    spread.Clear();
    if (kind == kOneValue) {
      spread.Add(r.Fixed<double>());
    } else if (kind == kSketch) {
      if (!spread.Decode(r).ok()) return;
    } else if (kind != kNoSpread) {
      return r.Fail();
    }
    ++i;
  }
}

// From what the value says.
void FrameDecoder::Tell(size_t i) {
  const Reduced& value = frame_.values[columns_[i]];
  frame_.spreads[i].Clear();
  if (value.count >= 1) frame_.spreads[i].Add(value.min);
  if (value.count >= 2) frame_.spreads[i].Add(value.max);
}

std::vector<Reduced> FrameDecoder::LastKnown() const { return WithKept(frame_.values, kept_); }

}  // namespace sonde::tree
