// Calls that somebody asked to have counted, and of which nothing came: the libraries that count
// them (docs/interpose.md) reach a program by LD_PRELOAD, which it may not heed, and which a
// launcher inside of the step may have replaced. Nobody else would say so.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "core/metric.h"
#include "launcher/preload.h"

namespace sonde::head {

// The note about the calls asked for of which no process of the step has recorded any, "" if there
// are none. A library registers its metrics at the first call that it sees, so there may have been
// no call: the note says that, too.
std::string UncountedNote(const preload::Calls& asked, const std::vector<Series>& series);

}  // namespace sonde::head
