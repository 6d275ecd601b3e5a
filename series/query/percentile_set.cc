#include "series/query/percentile_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace sonde {

double PercentileAt(std::span<const double> sorted, double share) {
  const auto count = static_cast<double>(sorted.size());
  const double position = share * 100 * (count + 1) / 100;
  if (position < 1) return sorted.front();
  if (position >= count) return sorted.back();
  const auto rank = static_cast<size_t>(position);
  const double part = position - static_cast<double>(rank);
  return sorted[rank - 1] + part * (sorted[rank] - sorted[rank - 1]);
}

PercentileSet::PercentileSet(const PercentileSet& other)
    : values_(other.values_),
      sketch_(other.sketch_ ? std::make_unique<QuantileSketch>(*other.sketch_) : nullptr) {}

PercentileSet& PercentileSet::operator=(PercentileSet other) {
  std::swap(values_, other.values_);
  std::swap(sketch_, other.sketch_);
  return *this;
}

void PercentileSet::Sketch() {
  sketch_ = std::make_unique<QuantileSketch>();
  for (const double value : values_) sketch_->Add(value);
  std::vector<double>().swap(values_);
}

void PercentileSet::Add(double value) {
  if (!std::isfinite(value)) return;
  value += 0.0;  // -0 is 0, whichever comes first
  if (sketch_ == nullptr && values_.size() == kMaxExact) Sketch();
  if (sketch_ != nullptr) return sketch_->Add(value);
  values_.insert(std::upper_bound(values_.begin(), values_.end(), value), value);
}

void PercentileSet::Merge(const PercentileSet& other) {
  if (other.sketch_ == nullptr) {
    for (const double value : other.values_) Add(value);
    return;
  }
  if (sketch_ == nullptr) Sketch();
  sketch_->Merge(*other.sketch_);
}

double PercentileSet::Get(double share) const {
  if (sketch_ != nullptr) return sketch_->Percentile(share);
  if (values_.empty()) return std::numeric_limits<double>::quiet_NaN();
  return PercentileAt(values_, share);
}

// The number of values, then the values; or a number above the limit, then the sketch.
void PercentileSet::Write(ByteWriter& out) const {
  out.Varint(sketch_ == nullptr ? values_.size() : kMaxExact + 1);
  for (const double value : values_) out.Fixed(value);
  if (sketch_ != nullptr) sketch_->Encode(out);
}

PercentileSet PercentileSet::Read(ByteReader& in) {
  PercentileSet set;
  const uint64_t count = in.Varint();
  if (count == kMaxExact + 1) {
    set.sketch_ = std::make_unique<QuantileSketch>();
    const bool good = set.sketch_->Decode(in).ok() && set.sketch_->count() > kMaxExact;
    if (!good) in.Fail();
  } else if (count > kMaxExact || count > in.left() / sizeof(double)) {
    in.Fail();
  } else {
    set.values_.reserve(count);
    for (uint64_t i = 0; i < count; ++i) set.values_.push_back(in.Fixed<double>() + 0.0);
    const bool good = std::all_of(set.values_.begin(), set.values_.end(),
                                  [](double value) { return std::isfinite(value); }) &&
                      std::is_sorted(set.values_.begin(), set.values_.end());
    if (!good) in.Fail();
  }
  if (!in.ok()) set = PercentileSet();
  return set;
}

}  // namespace sonde
