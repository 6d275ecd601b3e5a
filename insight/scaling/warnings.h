// What a reader must know of a model before it is believed, in words.
//
// Thread safety: functions without state.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "insight/scaling/model.h"

namespace sonde::insight {

inline constexpr double kNoisy = 0.1;     // relative standard deviation of runs of one size
inline constexpr double kNarrow = 4;      // the largest size by the smallest
inline constexpr double kFarBeyond = 4;   // the largest size, by what was measured
inline constexpr double kPoorSmape = 20;  // percent
inline constexpr size_t kFewRuns = 3;     // degrees of freedom

// Warnings of the model itself; `names`: of its parameters, such as "nodes".
std::vector<std::string> WarningsOf(const ScalingModel& model,
                                    const std::array<std::string, 2>& names);
// And of what it says of that place.
std::vector<std::string> WarningsAt(const ScalingModel& model, const Place& place,
                                    const std::array<std::string, 2>& names);

}  // namespace sonde::insight
