// The roofline model: how fast a program could be on its node, for the bytes that it moves.
//
//   intensity    FLOP / bytes between processor and memory
//   attainable   min(peak FLOP/s, intensity * peak bytes/s)
//   ridge        peak FLOP/s / peak bytes/s: below it memory is the bound, above it arithmetic
//   share        FLOP/s / attainable
//
// (Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore
// architectures", CACM 52(4), 2009.)
//
// A step that has only `cpus` of a node's n gets a part of the roofs:
//
//   FLOP/s    all n's * cpus / n. Slurm gives whole cores; a step that leaves the others idle may
//             clock higher, and reach more than its share.
//   bytes/s   min(all n's, cpus * those of one thread): a few threads cannot saturate the memory,
//             and many cannot have more than there is. Others on the node take from the same.
//
// Units: bytes and FLOP per second, FLOP per byte; NaN: not known.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/machine/processor_type.h"
#include "core/status.h"
#include "core/time.h"

namespace sonde::insight {

// What a node's processors were measured to do at most (cli/peaks/measure.h).
struct Peaks {
  double bytes_per_second = 0;  // the best triad, as STREAM counts
  double double_flops = 0;      // per second, fused multiply-adds count twice
  double single_flops = 0;
  bool operator==(const Peaks&) const = default;
};
struct NodePeaks {
  ProcessorType type;
  uint32_t allowed = 0;         // CPUs that were measured together, one thread on each
  Peaks all;                    // of these
  Peaks one;                    // of one thread, the others idle
  std::string vectors;          // what was fastest in double precision: "AVX-512"
  double array_bytes = 0;       // of each of the triad's arrays
  double last_cache_bytes = 0;  // of all last caches together; 0: not known
  std::string host;             // where it was measured
  Nanos time = 0;               // and when
  bool operator==(const NodePeaks&) const = default;
};

struct Roof {
  double flops = 0;
  double bytes_per_second = 0;
  double single_flops = 0;  // in single precision; what follows is of double precision
  double Ridge() const { return flops / bytes_per_second; }
  double At(double intensity) const;
};

// Of `cpus` CPUs of such a node, in double precision. kUnsupported if they are more than were
// measured: what more of them do together nobody knows.
Result<Roof> RoofOf(const NodePeaks& peaks, double cpus);
// Of several nodes together.
Roof operator+(const Roof& a, const Roof& b);

enum class RoofBound : unsigned char { kUnknown, kMemory, kCompute };
std::string_view ToString(RoofBound bound);  // "unknown", "memory", "compute"

struct Placed {
  double flops = std::numeric_limits<double>::quiet_NaN();
  double bytes_per_second = std::numeric_limits<double>::quiet_NaN();
  double intensity = std::numeric_limits<double>::quiet_NaN();
  double attainable = std::numeric_limits<double>::quiet_NaN();
  double share = std::numeric_limits<double>::quiet_NaN();
  RoofBound bound = RoofBound::kUnknown;
};

// Without a roof (flops 0) only the intensity is known. Where nothing is computed (0 FLOP/s) and
// bytes move, the share is that of the bandwidth.
Placed PlaceUnder(double flops, double bytes_per_second, const Roof& roof);

}  // namespace sonde::insight
