// The report of a step at its end, with what to change in it (insight/hints), from what the head
// knows.
//
// The hints are those of `sonde hints`, but for those that compare ranks. Steps that completed and
// are shorter than kShortestForHints have none. The site's rules are in hints.d beside
// `config_path`; what is wrong in them is logged, and there are no hints then.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>

#include "core/time.h"
#include "daemon/head/record/step_record.h"

namespace sonde::head {

inline constexpr Nanos kShortestForHints = 5 * kSecond;

// `brief`: in some six lines. `columns`: of the terminal; 0: there is none.
std::string ReportOf(const StepRecord& record, bool brief, uint32_t columns,
                     const std::string& config_path);

}  // namespace sonde::head
