#include "series/block/integers.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sonde::block_format {
namespace {

constexpr double kIntegerEnd = 4611686018427387904.0;  // 2^62: integers are below it
constexpr double kExactEnd = 9007199254740992.0;       // 2^53: decimals' integers are below it

// To the nearest. For halves either will do: neither is a decimal that comes back.
int64_t Round(double v) { return static_cast<int64_t>(v + (v < 0 ? -0.5 : 0.5)); }

// The integer i with i / 10^decimals == v bit for bit, if there is one.
bool ToDecimal(double v, uint8_t decimals, int64_t& i) {
  const double scaled = v * kPowers[decimals];
  if (!(std::fabs(scaled) < kExactEnd)) return false;
  i = Round(scaled);
  return Bits(static_cast<double>(i) / kPowers[decimals]) == Bits(v);
}

bool ToInteger(double v, int64_t& i) {
  if (!(std::fabs(v) < kIntegerEnd)) return false;
  i = static_cast<int64_t>(v);
  return Bits(static_cast<double>(i)) == Bits(v);
}

// The lowest bit set in any value, 0 if none is set: the trailing zeros common to all values.
int CommonZeros(std::span<const int64_t> integers) {
  uint64_t any = 0;
  for (const int64_t i : integers) any |= static_cast<uint64_t>(i);
  return any == 0 ? 0 : std::countr_zero(any);
}

enum class Fits : uint8_t { kNo, kYes, kMissing };

Fits Unfit(double v) { return Bits(v) == kMissing ? Fits::kMissing : Fits::kNo; }

// Fills `out` if every value is an integer; a common power of two is taken out.
Fits ToWholeNumbers(std::span<const double> values, Integers& out) {
  for (size_t row = 0; row < values.size(); ++row) {
    if (!ToInteger(values[row], out.values[row])) return Unfit(values[row]);
  }
  out.count = values.size();
  out.scale = static_cast<uint8_t>(CommonZeros(out.present()));
  if (out.scale > 0) {
    for (int64_t& i : out.present()) i >>= out.scale;
  }
  return Fits::kYes;
}

// Fills `out` if every value has the same few decimals.
Fits ToDecimals(std::span<const double> values, Integers& out) {
  uint8_t decimals = 1;
  for (size_t row = 0; row < values.size(); ++row) {
    const double v = values[row];
    if (ToDecimal(v, decimals, out.values[row])) continue;
    if (Bits(v) == kMissing) return Fits::kMissing;
    while (!ToDecimal(v, decimals, out.values[row])) {
      if (++decimals > kMaxDecimals) return Fits::kNo;
    }
    row = SIZE_MAX;  // the rows before need the same number of decimals
  }
  out.count = values.size();
  out.scale = kDecimals + decimals;
  return Fits::kYes;
}

// Doubles that are close have bits that are close, and those that were floats end in 29 zeros.
Fits ToBits(std::span<const double> values, Integers& out) {
  uint64_t missing = 0;
  for (size_t row = 0; row < values.size(); ++row) {
    out.values[row] = static_cast<int64_t>(Bits(values[row]));
    missing |= Bits(values[row]) == kMissing ? 1 : 0;
  }
  if (missing != 0) return Fits::kMissing;
  out.count = values.size();
  const int zeros = CommonZeros(out.present());
  out.scale = static_cast<uint8_t>(kBits + zeros);
  if (zeros > 0) {
    for (int64_t& i : out.present()) i >>= zeros;
  }
  return Fits::kYes;
}

}  // namespace

bool IsConstant(std::span<const double> column) {
  const uint64_t first = Bits(column[0]);
  // Most columns that are not constant show it soon.
  for (size_t from = 0; from < column.size(); from += 16) {
    uint64_t different = 0;
    for (const double v : column.subspan(from, std::min<size_t>(16, column.size() - from))) {
      different |= Bits(v) ^ first;
    }
    if (different != 0) return false;
  }
  return true;
}

bool ToIntegers(std::span<const double> values, Integers& out) {
  Fits fits = ToWholeNumbers(values, out);
  if (fits == Fits::kNo) fits = ToDecimals(values, out);
  if (fits == Fits::kNo) fits = ToBits(values, out);
  return fits == Fits::kYes;
}

void ToIntegersOfScale(std::span<const double> values, uint8_t scale, int64_t* out) {
  const auto convert = [&](const auto& of) {
    for (const double v : values) *out++ = of(v);
  };
  if (scale <= kMaxShift) {
    convert([&](double v) { return static_cast<int64_t>(v) >> scale; });
  } else if (scale < kBits) {
    const double power = kPowers[scale - kDecimals];
    convert([&](double v) { return Round(v * power); });
  } else {
    convert([&](double v) { return static_cast<int64_t>(Bits(v)) >> (scale - kBits); });
  }
}

bool ToDoubles(uint8_t scale, std::span<const int64_t> integers, double* out) {
  if (scale <= kMaxShift) {
    const double factor = std::ldexp(1.0, scale);
    for (const int64_t i : integers) *out++ = static_cast<double>(i) * factor;
  } else if (scale > kDecimals && scale <= kDecimals + kMaxDecimals) {
    const double power = kPowers[scale - kDecimals];
    for (const int64_t i : integers) *out++ = static_cast<double>(i) / power;
  } else if (scale >= kBits && scale <= kMaxScale) {
    for (const int64_t i : integers) *out++ = std::bit_cast<double>(i << (scale - kBits));
  } else {
    return false;
  }
  return true;
}

}  // namespace sonde::block_format
