// The units of vendors' libraries, in ours.
#pragma once

namespace sonde::collect::gpu {

inline constexpr double kMicro = 1e-6;
inline constexpr double kMilli = 1e-3;
inline constexpr double kMega = 1e6;
inline constexpr double kKilo = 1000;
inline constexpr double kKibi = 1024;
inline constexpr double kPercent = 0.01;

}  // namespace sonde::collect::gpu
