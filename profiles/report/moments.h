// The parts of the report about what the application reported besides values: its figures of merit,
// phases and histograms.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "core/job.h"
#include "profiles/json/writer.h"
#include "profiles/model/profile.h"

namespace sonde {

// The counter that libsonde keeps per phase, by the tag `phase`: seconds of all tasks together.
inline constexpr std::string_view kPhaseSeconds = "phase_seconds_total";

// "245.1 cells/s": with enough digits to compare runs.
std::string FigureValue(const Figure& figure);

// Whether the tables below show this entry: a phase's seconds, the parts of a histogram.
bool IsToldAbove(const Profile& profile, const FootprintEntry& entry);

// Tables with a line for each, or "". `end` of the step, or now; `duration` in seconds.
std::string PhaseTable(const Profile& profile, Nanos end, double duration, size_t width);
// Histograms of the application, or sizes of MPI's messages. report/calls.h shows the sizes of
// calls for files.
enum class Observed : unsigned char { kApplication, kMpi };
std::string DistributionTable(const StepMoments& moments, Observed observed, size_t width);

// Members of the report's JSON: figures, phases, distributions.
void WriteMomentsReport(JsonWriter& w, const Profile& profile, Nanos end, double duration);

}  // namespace sonde
