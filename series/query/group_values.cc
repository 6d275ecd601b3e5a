#include "series/query/group_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "series/block/number_column.h"
#include "series/query/aggregate.h"

namespace sonde {
namespace {

// Distinguishes the zeros, or their order would decide which one is kept.
bool Below(double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }

}  // namespace

GroupValues::GroupValues(Aggregator aggregator, size_t times)
    : aggregator_(Basis(aggregator)), counts_(times) {
  if (Numbers()) values_.resize(times);
  if (Percentiles()) sets_.resize(times);
}

void GroupValues::Add(size_t at, double value) {
  if (std::isnan(value)) return;
  if (Sums()) {
    AddSum(at, aggregator_ == Aggregator::kSquareSum ? value * value : value, 0);
  } else if (Percentiles()) {
    sets_[at].Add(value);
  } else if (Numbers()) {
    AddExtreme(at, value);
  }
  AddCount(at, 1);
}

void GroupValues::Merge(size_t at, const GroupValues& others, size_t from) {
  if (!others.Any(from)) return;
  if (Sums()) {
    const auto big = others.bigs_.find(from);
    if (big == others.bigs_.end()) {
      AddSum(at, others.values_[from], others.lows_.empty() ? 0 : others.lows_[from]);
    } else if (std::isfinite(values_[at])) {
      Big(at).Add(big->second);
    }
  } else if (Percentiles()) {
    sets_[at].Merge(others.sets_[from]);
  } else if (Numbers()) {
    AddExtreme(at, others.values_[from]);
  }
  AddCount(at, others.counts_[from]);
}

void GroupValues::AddCount(size_t at, uint32_t count) {
  if (!Counts()) {
    counts_[at] = 1;
  } else if (__builtin_add_overflow(counts_[at], count, &counts_[at])) {
    counts_[at] = UINT32_MAX;
  }
}

// A sum that is not finite is in values_, and only there.
void GroupValues::AddSum(size_t at, double high, double low) {
  double nothing = 0;
  if (!std::isfinite(high)) {
    AddExactly(values_[at], nothing, high);
    if (!lows_.empty()) lows_[at] = 0;
    bigs_.erase(at);
    return;
  }
  if (!std::isfinite(values_[at])) return;
  if (!bigs_.empty() && bigs_.contains(at)) {
    BigSum& big = bigs_[at];
    big.Add(high);
    big.Add(low);
    return;
  }
  double& mine = lows_.empty() ? nothing : lows_[at];
  const double value = values_[at];
  const double rest = mine;
  if (AddExactly(values_[at], mine, high) && AddExactly(values_[at], mine, low)) {
    if (nothing == 0) return;
    lows_.resize(size());
    lows_[at] = nothing;
    return;
  }
  values_[at] = value;
  mine = rest;
  BigSum& big = Big(at);
  big.Add(high);
  big.Add(low);
}

void GroupValues::AddExtreme(size_t at, double value) {
  double& mine = values_[at];
  const bool replaces = counts_[at] == 0 || aggregator_ == Aggregator::kNone ||
                        (aggregator_ == Aggregator::kMin ? Below(value, mine) : Below(mine, value));
  if (replaces) mine = value;
}

// The sum at `at`, which is finite, as a BigSum from now on.
BigSum& GroupValues::Big(size_t at) {
  const auto [big, added] = bigs_.try_emplace(at);
  if (!added) return big->second;
  big->second.Add(values_[at]);
  values_[at] = 0;
  if (!lows_.empty()) {
    big->second.Add(lows_[at]);
    lows_[at] = 0;
  }
  return big->second;
}

double GroupValues::Get(size_t at) const {
  if (aggregator_ == Aggregator::kCount) return counts_[at];
  if (!Any(at)) return std::numeric_limits<double>::quiet_NaN();
  if (Percentiles()) return sets_[at].Get(PercentileOf(aggregator_));
  double value = values_[at];
  if (!bigs_.empty()) {
    if (const auto big = bigs_.find(at); big != bigs_.end()) value = big->second.Value();
  }
  return aggregator_ == Aggregator::kAvg ? value / counts_[at] : value;
}

// --- Bytes ---

// Runs of equal counts.
void GroupValues::WriteCounts(ByteWriter& out) const {
  for (size_t i = 0; i < size();) {
    size_t end = i + 1;
    while (end < size() && counts_[end] == counts_[i]) ++end;
    out.Varint(counts_[i]);
    out.Varint(end - i);
    i = end;
  }
}

bool GroupValues::ReadCounts(ByteReader& in) {
  for (size_t i = 0; i < size();) {
    const uint64_t count = in.Varint();
    const uint64_t run = in.Varint();
    if (run == 0 || run > size() - i || count > (Counts() ? UINT32_MAX : 1)) return false;
    std::fill_n(counts_.begin() + static_cast<ptrdiff_t>(i), run, static_cast<uint32_t>(count));
    i += run;
  }
  return true;
}

void GroupValues::Write(ByteWriter& out) const {
  WriteCounts(out);
  if (aggregator_ == Aggregator::kCount) return;
  if (Percentiles()) {
    for (size_t i = 0; i < size(); ++i) {
      if (Any(i)) sets_[i].Write(out);
    }
    return;
  }
  std::vector<double> present;
  present.reserve(size());
  for (size_t i = 0; i < size(); ++i) {
    if (Any(i)) present.push_back(values_[i]);
  }
  WriteNumbers(present, out);
  if (!Sums()) return;
  out.Fixed<uint8_t>(lows_.empty() ? 0 : 1);
  if (!lows_.empty()) {
    present.clear();
    for (size_t i = 0; i < size(); ++i) {
      if (Any(i)) present.push_back(lows_[i]);
    }
    WriteNumbers(present, out);
  }
  out.Varint(bigs_.size());
  size_t next = 0;
  for (const auto& [at, sum] : bigs_) {
    out.Varint(at - next);
    sum.Encode(out);
    next = at + 1;
  }
}

void GroupValues::ReadValues(ByteReader& in) {
  const auto any = static_cast<size_t>(
      std::count_if(counts_.begin(), counts_.end(), [](uint32_t c) { return c != 0; }));
  const auto read = [&](std::vector<double>& column) {
    ReadNumbers(in, {column.data(), any});
    // From the front of the column to their places, the last first.
    for (size_t i = size(), left = any; left < i && i-- > 0;) {
      column[i] = Any(i) ? column[--left] : 0;
    }
  };
  read(values_);
  if (!Sums()) return;
  const auto has_lows = in.Fixed<uint8_t>();
  if (has_lows > 1) in.Fail();
  if (has_lows == 1 && in.ok()) {
    lows_.resize(size());
    read(lows_);
  }
}

void GroupValues::ReadBigs(ByteReader& in) {
  constexpr size_t kMinBytes = 4;
  const size_t count = in.Count(kMinBytes, size());
  uint64_t next = 0;
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const uint64_t at = next + in.Varint();
    if (at < next || at >= size() || !Any(at) || values_[at] != 0) return in.Fail();
    bigs_[at] = BigSum::Decode(in);
    next = at + 1;
  }
}

GroupValues GroupValues::Read(Aggregator aggregator, size_t times, ByteReader& in) {
  GroupValues values(aggregator, times);
  if (!values.ReadCounts(in)) in.Fail();
  if (aggregator == Aggregator::kCount || !in.ok()) return values;
  if (values.Percentiles()) {
    for (size_t i = 0; i < times && in.ok(); ++i) {
      if (values.Any(i)) values.sets_[i] = PercentileSet::Read(in);
    }
    return values;
  }
  values.ReadValues(in);
  for (size_t i = 0; i < values.lows_.size() && in.ok(); ++i) {
    if (!std::isfinite(values.lows_[i]) ||
        std::fabs(values.lows_[i]) > std::fabs(values.values_[i]))
      in.Fail();
  }
  if (values.Sums() && in.ok()) values.ReadBigs(in);
  return values;
}

}  // namespace sonde
