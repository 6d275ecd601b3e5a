#include "daemon/collect/app/distributions.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <utility>

#include "core/histogram_buckets.h"
#include "daemon/collect/app/segment.h"

namespace sonde::collect {
namespace {

using client::Distribution;

// No bucket of a process comes near it by counting; what is above was written by other means.
constexpr uint64_t kMaxCount = uint64_t{1} << 48;

const Distribution* DistributionAt(const char* base, size_t part) {
  return reinterpret_cast<const Distribution*>(base + client::kDistributionsOffset +
                                               part * client::kDistributionSize);
}

// For the outermost buckets: a caller that knows the extremes cuts the result off at these.
double Middle(uint32_t bucket) {
  if (bucket == histogram::kUnderflow) return 0;
  if (bucket == histogram::kOverflow) return DBL_MAX;
  return (histogram::LowerBound(bucket) + histogram::UpperBound(bucket)) / 2;
}

}  // namespace

void AppDistributions::Want(uint32_t histogram) {
  if (histogram >= histograms_.size()) histograms_.resize(histogram + 1);
  if (!std::exchange(histograms_[histogram].wanted, true)) ++wanted_;
}

Status AppDistributions::Read(const char* base, Extent extent, const Take& take) {
  SONDE_RETURN_IF_ERROR(FindParts(base));
  LookForChanges(base, extent);
  for (uint32_t i = 0; i < histograms_.size(); ++i) {
    if (!histograms_[i].changed) continue;
    histograms_[i].changed = false;
    Collect(base, i, take);
  }
  return {};
}

// Finds the distributions that were handed out since the last time.
Status AppDistributions::FindParts(const char* base) {
  const auto* header = reinterpret_cast<const client::Header*>(base);
  const uint32_t end = __atomic_load_n(&header->distributions, __ATOMIC_ACQUIRE);
  if (end > client::kDistributions) {
    return {Code::kCorrupt, fmt::format("it has {} distributions", end)};
  }
  const auto* owners = reinterpret_cast<const uint16_t*>(base + client::kOwnersOffset);
  for (auto i = static_cast<uint32_t>(parts_.size()); i < end; ++i) {
    const uint32_t owner = LoadRelaxed(owners + i);
    if (owner >= client::kMaxHistograms) {
      return {Code::kCorrupt, fmt::format("a distribution of histogram {}", owner)};
    }
    if (owner >= histograms_.size()) histograms_.resize(owner + 1);
    parts_.push_back({.histogram = owner, .next = histograms_[owner].first});
    histograms_[owner].first = i;
  }
  return {};
}

// An observation changes the sum, unless it is zero, which is counted among the small ones, or too
// small against the sum: that one is found with the next observation that changes the sum.
void AppDistributions::LookForChanges(const char* base, Extent extent) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (!histograms_[part.histogram].wanted) continue;
    const Distribution* distribution = DistributionAt(base, i);
    const auto sum = std::bit_cast<uint64_t>(LoadRelaxed(&distribution->sum));
    const uint64_t small = LoadRelaxed(&distribution->counts[histogram::kUnderflow]);
    const bool changed = sum != part.sum || small != part.small;
    if (changed || part.again || extent == Extent::kAll) {
      histograms_[part.histogram].changed = true;
    }
    part.again = changed;
    part.sum = sum;
    part.small = small;
  }
}

// The counts are read before sum and extremes: so these hold every counted observation, and an
// observation that only they hold yet is counted the next time.
void AppDistributions::Collect(const char* base, uint32_t number, const Take& take) {
  Histogram& histogram = histograms_[number];
  const Extremes before = ReadExtremes(base, histogram);
  if (!before.any()) return;
  const uint32_t low = histogram::BucketOf(before.min), high = histogram::BucketOf(before.max);
  AddCounts(base, histogram, low, high);
  AppObservations out;
  Difference(histogram, low, out);
  if (out.count == 0) return;
  const double sum = ReadSum(base, histogram);
  const Extremes after = ReadExtremes(base, histogram);
  SetExtremes(histogram, after.any() ? after : before, out);
  out.sum = sum - histogram.sum;
  histogram.sum = sum;
  out.total_count = histogram.count;
  out.total_sum = sum;
  take(number, out);
}

AppDistributions::Extremes AppDistributions::ReadExtremes(const char* base,
                                                          const Histogram& histogram) const {
  Extremes all = {DBL_MAX, -DBL_MAX};
  for (uint32_t i = histogram.first; i != kNone; i = parts_[i].next) {
    const Distribution* distribution = DistributionAt(base, i);
    const double min = LoadRelaxed(&distribution->min), max = LoadRelaxed(&distribution->max);
    if (!std::isfinite(min) || !std::isfinite(max) || min > max) continue;
    all.min = std::min(all.min, min);
    all.max = std::max(all.max, max);
  }
  return all;
}

// Buckets from `low` to `high` of all parts.
void AppDistributions::AddCounts(const char* base, const Histogram& histogram, uint32_t low,
                                 uint32_t high) {
  counts_.assign(high - low + 1, 0);
  for (uint32_t i = histogram.first; i != kNone; i = parts_[i].next) {
    const uint64_t* counts = DistributionAt(base, i)->counts + low;
    for (uint64_t& total : counts_) total += __atomic_load_n(counts++, __ATOMIC_ACQUIRE);
  }
}

// By how much counts_, from bucket `low`, exceeds the counts seen before.
void AppDistributions::Difference(Histogram& histogram, uint32_t low, AppObservations& out) {
  Cover(histogram, low, low + static_cast<uint32_t>(counts_.size()));
  came_.assign(counts_.size(), 0);
  uint64_t* seen = histogram.seen.data() + (low - histogram.low);
  for (size_t i = 0; i < counts_.size(); ++i, ++seen) {
    if (counts_[i] <= *seen || counts_[i] > kMaxCount) continue;
    came_[i] = counts_[i] - *seen;
    *seen = counts_[i];
    out.count += came_[i];
  }
  out.low = low;
  out.counts = &came_;
  histogram.count += out.count;
}

// Makes `seen` hold the buckets from `low` to below `end`, in whole powers of two so that it seldom
// grows.
void AppDistributions::Cover(Histogram& histogram, uint32_t low, uint32_t end) {
  constexpr uint32_t kStep = 1u << histogram::kSubBits;
  low = low / kStep * kStep;
  end = (end + kStep - 1) / kStep * kStep;
  std::vector<uint64_t>& seen = histogram.seen;
  if (seen.empty()) histogram.low = low;
  if (low < histogram.low) {
    seen.insert(seen.begin(), histogram.low - low, 0);
    histogram.low = low;
  }
  if (end > histogram.low + seen.size()) seen.resize(end - histogram.low);
}

void AppDistributions::SetExtremes(Histogram& histogram, const Extremes& extremes,
                                   AppObservations& out) {
  const auto came = [](uint64_t count) { return count > 0; };
  const auto first = std::find_if(came_.begin(), came_.end(), came);
  const auto last = std::find_if(came_.rbegin(), came_.rend(), came);
  out.min = Middle(out.low + static_cast<uint32_t>(first - came_.begin()));
  out.max = Middle(out.low + static_cast<uint32_t>(last.base() - came_.begin()) - 1);
  const bool new_min = extremes.min<histogram.min, new_max = extremes.max> histogram.max;
  if (new_min) histogram.min = out.min = extremes.min;
  if (new_max) histogram.max = out.max = extremes.max;
  if (!new_min) out.min = std::clamp(out.min, extremes.min, new_max ? out.max : extremes.max);
  if (!new_max) out.max = std::clamp(out.max, new_min ? out.min : extremes.min, extremes.max);
}

// A sum that is no number is left out: the old sum stays.
double AppDistributions::ReadSum(const char* base, const Histogram& histogram) const {
  double sum = 0;
  for (uint32_t i = histogram.first; i != kNone; i = parts_[i].next) {
    sum += LoadRelaxed(&DistributionAt(base, i)->sum);
  }
  return std::isfinite(sum) ? sum : histogram.sum;
}

}  // namespace sonde::collect
