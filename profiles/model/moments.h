// What a step's application reported besides values: its phases, its remarks and its histograms.
// Its figures of merit are in the description (core/job.h).
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/metric.h"
#include "core/text/kept_members.h"
#include "core/time.h"
#include "series/sketch/sketch.h"
#include "series/store/reduced.h"

namespace sonde {

// A time in which at least one task was in a phase. A phase that repeats has several of these
// intervals; if there are too many, neighbours are merged.
struct Phase {
  std::string name;
  Nanos begin = 0;   // the first begin
  Nanos end = 0;     // the last end so far; 0: none yet
  Nanos pauses = 0;  // of merged intervals: the time between them, without a task in the phase
  uint64_t began = 0;
  uint64_t ended = 0;
  Owner by;  // who began first
  KeptMembers kept;
  bool operator==(const Phase&) const = default;
};

// Equal remarks of tasks, each within 0.1 s of another.
struct Remark {
  std::string text;
  Nanos first = 0;
  Nanos last = 0;
  uint64_t count = 0;
  Owner by;  // who said it first
  KeptMembers kept;
  bool operator==(const Remark&) const = default;
};

// What an alarm rule found (series/alarm/rule.h), from when it was raised until it was over.
struct RaisedAlarm {
  std::string rule;
  std::string severity;  // info, warning, critical
  std::string text;      // in words, as it was raised
  Tags tags;             // of the series
  Nanos raised = 0;
  Nanos over = 0;    // 0: not yet, or not before the step was
  double value = 0;  // as it was raised; NaN: none
  Owner by;          // whose value it was
  KeptMembers kept;
  bool operator==(const RaisedAlarm&) const = default;
};

struct StepMoments {
  std::vector<Phase> phases;               // by begin
  std::vector<Remark> remarks;             // by time
  std::vector<NamedSketch> distributions;  // of all tasks; without the tags host and task
  std::vector<RaisedAlarm> alarms;         // by time
  uint64_t lost = 0;                       // events that came faster than a node could take them
  uint64_t left_out = 0;                   // events for which the profile had no room
  KeptMembers kept;
  // Of the distributions, by the names of their series.
  std::map<std::string, KeptMembers, std::less<>> kept_of_distributions;

  bool empty() const {
    return phases.empty() && remarks.empty() && distributions.empty() && alarms.empty() &&
           lost == 0 && left_out == 0 && kept.empty();
  }
};

// A phase over the whole step.
struct PhaseTotal {
  std::string name;
  double seconds = 0;  // in which at least one task was in the phase
  uint64_t began = 0;
  uint64_t ended = 0;
};

// The longest first. `end`, of the step, ends a phase that no task has ended. For a `running` step
// `end` is now, and a phase lasts until then while a task is in it.
std::vector<PhaseTotal> PhaseTotals(const StepMoments& moments, Nanos end, bool running);

// Raised alarms as notes of a profile, equal ones as one: "alarm memory (critical), n3: ...; raised
// 2026-11-21T12:00:03Z, over after 12 s". At most kMaxAlarmNotes; the last note may say how many
// more alarms there were.
inline constexpr size_t kMaxAlarmNotes = 16;
std::vector<std::string> AlarmNotes(const std::vector<RaisedAlarm>& alarms,
                                    const JobDescription& job);

// "" or a sentence that tells people what is missing.
std::string MissingMoments(uint64_t lost, uint64_t left_out);

}  // namespace sonde
