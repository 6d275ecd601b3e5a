#include "series/block/number_column.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

namespace sonde {
namespace {

// On the wire: never reuse a number. From kScaled on: the values times kScales[form - kScaled].
enum Form : uint8_t { kPlain = 0, kConstant = 1, kScaled = 2 };

constexpr std::array<double, 4> kScales = {1, 10, 100, 1000};
constexpr double kLargest = 9007199254740992.0;  // 2^53: every whole number up to it is a double

bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

// Whether value is n / scale for a whole n, which is then in `n`. Negative zero is not.
bool Scale(double value, double scale, int64_t& n) {
  const double scaled = value * scale;
  if (!(std::fabs(scaled) <= kLargest)) return false;
  n = static_cast<int64_t>(std::nearbyint(scaled));
  return SameBits(static_cast<double>(n) / scale, value);
}

// False, and nothing of use in `bytes`, if values are not of that scale or take more bytes with it.
bool WriteScaled(std::span<const double> values, double scale, std::string& bytes) {
  ByteWriter out(bytes);
  int64_t before = 0;
  for (const double value : values) {
    int64_t n = 0;
    if (!Scale(value, scale, n)) return false;
    out.Signed(n - before);
    before = n;
  }
  return bytes.size() < values.size() * sizeof(double);
}

}  // namespace

void WriteNumbers(std::span<const double> values, ByteWriter& out) {
  if (values.empty()) return;
  if (std::all_of(values.begin(), values.end(),
                  [&](double v) { return SameBits(v, values.front()); })) {
    out.Fixed<uint8_t>(kConstant);
    out.Fixed(values.front());
    return;
  }
  std::string bytes;
  bytes.reserve(values.size() * 3);
  for (size_t i = 0; i < kScales.size(); ++i) {
    bytes.clear();
    if (!WriteScaled(values, kScales[i], bytes)) continue;
    out.Fixed(static_cast<uint8_t>(kScaled + i));
    out.Raw(bytes);
    return;
  }
  out.Fixed<uint8_t>(kPlain);
  out.Raw({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

void ReadNumbers(ByteReader& in, std::span<double> values) {
  if (values.empty()) return;
  const auto form = in.Fixed<uint8_t>();
  if (form == kConstant) {
    std::fill(values.begin(), values.end(), in.Fixed<double>());
  } else if (form == kPlain) {
    const std::string_view raw = in.Raw(values.size_bytes());
    if (in.ok()) std::memcpy(values.data(), raw.data(), raw.size());
  } else if (form - kScaled < static_cast<int>(kScales.size())) {
    const double scale = kScales[form - kScaled];
    uint64_t n = 0;
    for (double& value : values) {
      n += static_cast<uint64_t>(in.Signed());
      value = static_cast<double>(static_cast<int64_t>(n)) / scale;
    }
  } else {
    in.Fail();
  }
}

}  // namespace sonde
