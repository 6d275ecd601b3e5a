// A profile: what is known of a step after its end, or so far.
//
// Thread safety: values.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/text/kept_members.h"
#include "profiles/model/moments.h"
#include "series/block/schema.h"
#include "series/store/reduced.h"

namespace sonde {

// A number that was not measured.
inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Percentiles over nodes and tasks of a metric that declares its spread: of a gauge's values, of a
// counter's rates per second.
struct SpreadOverTime {
  Spread last{};  // of the last tick that had any
  Spread mean{};  // over ticks
  bool operator==(const SpreadOverTime&) const = default;
};

// One reduced series over the whole step.
struct FootprintEntry {
  Series series;
  uint64_t ticks = 0;  // reduced points from which the entry was made
  double last = 0;     // the step's number (by the metric's reduction) at the end; counters: total
  double mean = 0;     // over ticks, of the step's number; counters: total / duration, per second
  // Extremes over single nodes or tasks. Counters: over their final values.
  double min = 0;
  double max = 0;
  Owner min_owner;
  Owner max_owner;
  std::optional<SpreadOverTime> spread;
  KeptMembers kept;
  bool operator==(const FootprintEntry&) const = default;
};

// What Sonde itself used, over all daemons of the step.
struct OwnCost {
  double cpu_seconds = 0;
  double peak_node_memory = 0;  // bytes: the largest private memory of a node daemon
  double bytes_sent = 0;        // over links
  double stored_bytes = 0;      // what the profile takes in the archive: records/stored_bytes.h
  std::string carriers;         // what carried what was sent: "sockets, verbs"; "": not known
  KeptMembers kept;
};

struct Profile {
  JobDescription job;
  std::vector<FootprintEntry> footprint;
  OwnCost cost;
  StepMoments moments;
  KeptMembers kept;
};

// All of these are stored and served as JSON; docs/archive.md describes it.
std::string DescriptionToJson(const JobDescription& job);
Result<JobDescription> DescriptionFromJson(std::string_view json);
std::string ProfileToJson(const Profile& profile);
Result<Profile> ProfileFromJson(std::string_view json);
std::string MomentsToJson(const StepMoments& moments, const JobDescription& job);
Result<StepMoments> MomentsFromJson(std::string_view json);

}  // namespace sonde
