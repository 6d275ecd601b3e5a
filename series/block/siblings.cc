#include "series/block/siblings.h"

#include <algorithm>
#include <bit>

#include "core/bytes.h"

namespace sonde::block_format {
namespace {

constexpr size_t kMaxCandidates = 64;
constexpr int kFraction = 15;  // costs of samples count in 2^-15 bits
// What a reference must save to be worth its bytes and what zstd would have found itself: of a
// sample, and of all rows in bits.
constexpr int kWorthSample = 4 << kFraction;
constexpr int64_t kWorth = 64;
// A sample that costs less is not worth a search.
constexpr int kCheap = 16 << kFraction;

// Four at a time, by whatever the processor has.
using Floats [[gnu::vector_size(16)]] = float;
using Ints [[gnu::vector_size(16)]] = int32_t;

// About the logarithm of 1 + |x|, in fractions of a bit: the upper bits of the float are just that.
Ints Logs(Floats x) {
  const Floats magnitude = (Floats)((Ints)x & 0x7fffffff) + 1.0F;
  return ((Ints)magnitude >> (23 - kFraction)) - (127 << kFraction);
}

int Sum(Ints x) { return x[0] + x[1] + x[2] + x[3]; }

Floats Load(const float* at) {
  Floats x;
  __builtin_memcpy(&x, at, sizeof x);
  return x;
}

int Cost(std::span<const float> sample) {
  Ints sum{};
  for (size_t i = 0; i < sample.size(); i += 4) sum += Logs(Load(&sample[i]));
  return Sum(sum);
}

int64_t Width(uint64_t difference) { return BitWidth(ZigZag(static_cast<int64_t>(difference))); }

// What the differences of `a` less those of `b` would save.
int64_t Saved(std::span<const int64_t> a, const int64_t* b, bool negative) {
  int64_t saved = 0;
  const uint64_t sign = negative ? ~uint64_t{0} : 0;
  for (size_t r = 1; r < a.size(); ++r) {
    const uint64_t d = static_cast<uint64_t>(a[r]) - static_cast<uint64_t>(a[r - 1]);
    const uint64_t o = static_cast<uint64_t>(b[r]) - static_cast<uint64_t>(b[r - 1]);
    saved += Width(d) - Width(d - ((o ^ sign) - sign));
  }
  return saved;
}

}  // namespace

void SiblingSearch::Clear() {
  samples_.clear();
  candidates_.clear();
  next_ = 0;
}

SiblingSearch::Sample SiblingSearch::SampleOf(std::span<const int64_t> integers) {
  Sample sample{};
  const size_t deltas = integers.size() - 1;
  const size_t n = std::min(kSamples, deltas);
  for (size_t i = 0; i < n; ++i) {
    const size_t r = i * deltas / n;
    sample[i] = static_cast<float>(static_cast<int64_t>(static_cast<uint64_t>(integers[r + 1]) -
                                                        static_cast<uint64_t>(integers[r])));
  }
  return sample;
}

// The hot loop of encoding: per candidate some 40 instructions.
SiblingSearch::Match SiblingSearch::BestMatch(const Sample& rest, int own) const {
  Match best{SIZE_MAX, false, own - kWorthSample};
  for (size_t c = 0; c < candidates_.size(); ++c) {
    const Candidate& candidate = candidates_[c];
    if (candidate.gaps != gaps_ || summands_ + candidate.summands > kMaxSummands) continue;
    const float* const others = samples_[c].data();
    Ints with{};
    Ints against{};
    for (size_t i = 0; i < kSamples; i += 4) {
      const Floats mine = Load(&rest[i]);
      const Floats other = Load(others + i);
      with += Logs(mine - other);
      against += Logs(mine + other);
    }
    const int minus = Sum(with);
    const int plus = Sum(against);
    if (std::min(minus, plus) < best.cost) best = {c, plus < minus, std::min(minus, plus)};
  }
  return best;
}

References SiblingSearch::TakeOut(std::span<int64_t> integers, uint32_t gaps,
                                  const IntegersOf& integers_of) {
  References found;
  sample_ = SampleOf(integers);
  gaps_ = gaps;
  summands_ = 1;
  Sample rest = sample_;
  int own = Cost(rest);
  others_.resize(integers.size());
  while (found.count < kMaxReferences && own > kCheap) {
    const Match match = BestMatch(rest, own);
    if (match.candidate == SIZE_MAX) break;
    const Candidate& other = candidates_[match.candidate];
    integers_of(other.column, others_.data());
    if (Saved(integers, others_.data(), match.negative) < kWorth) break;
    for (size_t r = 0; r < integers.size(); ++r) {
      const auto o = static_cast<uint64_t>(others_[r]);
      integers[r] =
          static_cast<int64_t>(static_cast<uint64_t>(integers[r]) + (match.negative ? o : -o));
    }
    const float sign = match.negative ? 1 : -1;
    for (size_t i = 0; i < kSamples; ++i) rest[i] += sign * samples_[match.candidate][i];
    own = match.cost;
    summands_ = static_cast<uint8_t>(summands_ + other.summands);
    found.at[found.count++] = {other.column, match.negative};
  }
  return found;
}

void SiblingSearch::Offer(uint32_t column) {
  if (summands_ >= kMaxSummands || Cost(sample_) <= kCheap) return;
  if (candidates_.size() < kMaxCandidates) {
    samples_.push_back(sample_);
    candidates_.push_back({column, gaps_, summands_});
    return;
  }
  samples_[next_] = sample_;
  candidates_[next_] = {column, gaps_, summands_};
  next_ = (next_ + 1) % kMaxCandidates;
}

size_t SiblingSearch::MemoryUse() const {
  return samples_.capacity() * sizeof(Sample) + candidates_.capacity() * sizeof(Candidate) +
         others_.capacity() * sizeof(int64_t);
}

}  // namespace sonde::block_format
