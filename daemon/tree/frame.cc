#include "daemon/tree/frame.h"

#include "core/bytes.h"

namespace sonde::tree {
namespace {

// What follows for one series, or for a run of them. On the wire: never reuse a number.
enum Tag : uint8_t {
  kSame = 0,    // varint n: the next n values are those of the frame before
  kOwn = 1,     // one value of the sending node itself: f64
  kSingle = 2,  // one value: f64, owner
  kMerged = 3,  // varint count, f64 sum, min, max, sum_sq, two owners
  kEmpty = 4,   // nothing was measured
};

bool SameValue(const Reduced& a, const Reduced& b) {
  return a.count == b.count && a.sum == b.sum && a.min == b.min && a.max == b.max &&
         a.sum_sq == b.sum_sq && a.min_owner == b.min_owner && a.max_owner == b.max_owner;
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

void PutValue(ByteWriter& w, const Reduced& v, uint32_t self) {
  if (v.count == 0) {
    w.Fixed<uint8_t>(kEmpty);
  } else if (v.count == 1) {
    const bool own = v.min_owner == Owner{self, Owner::kNobody};
    w.Fixed<uint8_t>(own ? kOwn : kSingle);
    w.Fixed(v.sum);
    if (!own) PutOwner(w, v.min_owner);
  } else {
    w.Fixed<uint8_t>(kMerged);
    w.Varint(static_cast<uint64_t>(v.count));
    w.Fixed(v.sum);
    w.Fixed(v.min);
    w.Fixed(v.max);
    w.Fixed(v.sum_sq);
    PutOwner(w, v.min_owner);
    PutOwner(w, v.max_owner);
  }
}

Reduced One(double value, Owner owner) {
  Reduced v;
  v.Add(value, owner);
  return v;
}

Reduced GetMerged(ByteReader& r) {
  Reduced v;
  v.count = static_cast<double>(r.Varint());
  v.sum = r.Fixed<double>();
  v.min = r.Fixed<double>();
  v.max = r.Fixed<double>();
  v.sum_sq = r.Fixed<double>();
  v.min_owner = GetOwner(r);
  v.max_owner = GetOwner(r);
  if (v.count == 0) r.Fail();
  return v;
}

}  // namespace

void FrameEncoder::Reset(size_t series) { last_.assign(series, Reduced()); }

void FrameEncoder::Encode(const Frame& frame, std::string& out) {
  ByteWriter w(out);
  w.Signed(frame.tick);
  w.Varint(frame.node);
  w.Varint(frame.nodes);
  w.Fixed<uint8_t>(frame.final ? 1 : 0);
  const size_t n = last_.size();
  for (size_t i = 0; i < n;) {
    size_t run = i;
    while (run < n && SameValue(frame.values[run], last_[run])) ++run;
    if (run > i) {
      w.Fixed<uint8_t>(kSame);
      w.Varint(run - i);
      i = run;
      continue;
    }
    PutValue(w, frame.values[i], frame.node);
    last_[i] = frame.values[i];
    ++i;
  }
}

void FrameDecoder::Reset(size_t series) { last_.values.assign(series, Reduced()); }

Result<const Frame*> FrameDecoder::Decode(std::string_view payload) {
  ByteReader r(payload);
  last_.tick = r.Signed();
  last_.node = static_cast<uint32_t>(r.Varint());
  last_.nodes = static_cast<uint32_t>(r.Varint());
  last_.final = r.Fixed<uint8_t>() != 0;
  std::vector<Reduced>& values = last_.values;
  for (size_t i = 0; i < values.size() && r.ok();) {
    switch (r.Fixed<uint8_t>()) {
      case kSame: {
        const uint64_t run = r.Varint();
        if (run == 0 || run > values.size() - i) r.Fail();
        i += run;
        break;
      }
      case kOwn:
        values[i++] = One(r.Fixed<double>(), {last_.node, Owner::kNobody});
        break;
      case kSingle: {
        const double value = r.Fixed<double>();
        values[i++] = One(value, GetOwner(r));
        break;
      }
      case kMerged:
        values[i++] = GetMerged(r);
        break;
      case kEmpty:
        values[i++] = Reduced();
        break;
      default:
        r.Fail();
    }
  }
  if (!r.done()) return Status(Code::kCorrupt, "frame is malformed");
  return &last_;
}

}  // namespace sonde::tree
