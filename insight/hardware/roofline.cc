#include "insight/hardware/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sonde::insight {

double Roof::At(double intensity) const { return std::min(flops, intensity * bytes_per_second); }

Result<Roof> RoofOf(const NodePeaks& peaks, double cpus) {
  const double measured = peaks.allowed;
  if (!(cpus > 0)) return Status(Code::kInvalid, "the CPUs of the step are not known");
  if (cpus > measured) {
    return Status(Code::kUnsupported,
                  fmt::format("peaks were measured with {} CPUs, and the step had {:.0f} on a node",
                              peaks.allowed, cpus));
  }
  return Roof{peaks.all.double_flops * cpus / measured,
              std::min(peaks.all.bytes_per_second, cpus * peaks.one.bytes_per_second),
              peaks.all.single_flops * cpus / measured};
}

Roof operator+(const Roof& a, const Roof& b) {
  return {a.flops + b.flops, a.bytes_per_second + b.bytes_per_second,
          a.single_flops + b.single_flops};
}

std::string_view ToString(RoofBound bound) {
  switch (bound) {
    case RoofBound::kUnknown:
      break;
    case RoofBound::kMemory:
      return "memory";
    case RoofBound::kCompute:
      return "compute";
  }
  return "unknown";
}

Placed PlaceUnder(double flops, double bytes_per_second, const Roof& roof) {
  Placed placed;
  placed.flops = flops;
  placed.bytes_per_second = bytes_per_second;
  if (!(flops >= 0) || !(bytes_per_second >= 0) || flops + bytes_per_second == 0) return placed;
  placed.intensity = flops / bytes_per_second;  // infinite: nothing moves
  if (!(roof.flops > 0) || !(roof.bytes_per_second > 0)) return placed;
  placed.attainable = roof.At(placed.intensity);
  placed.bound = placed.intensity < roof.Ridge() ? RoofBound::kMemory : RoofBound::kCompute;
  placed.share = placed.bound == RoofBound::kMemory ? bytes_per_second / roof.bytes_per_second
                                                    : flops / roof.flops;
  return placed;
}

}  // namespace sonde::insight
