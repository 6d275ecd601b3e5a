// The parts of a profile: what its head wrote and, if that died, what acting heads wrote after it.
//
// Each part is a live directory of its own with a unique name (PartId), so the archive knows which
// parts it has taken already. The merged profile does not depend on the order in which the parts
// come: each part's own record stays in the archive, and the profile is made anew from all of
// them.
//
// Thread safety: functions without state.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "profiles/model/profile.h"

namespace sonde {

// Who wrote a part: "head HOST PID TIME" or "acting HOST PID TIME", and then " again" for each time
// that this writer had to go on in another part: what such a part tells includes what the parts
// before told, but their blocks.
// Begins the note of a head that left the step to another one, which acts in its place. Its part is
// not finished, and yet it was not killed. Never to change.
inline constexpr std::string_view kYieldedNote = "Left the step to another head:";

struct PartId {
  // Of this process. `host`: the node's name, as Slurm has it; "": the machine's own.
  static PartId Make(bool acting, std::string_view host = {});
  PartId Again() const;
  // Accepts any text; a text that is no PartId counts as a head on an unknown host.
  static PartId Parse(std::string_view text);

  std::string text;
  bool acting = false;
  std::string host;
};
inline constexpr size_t kMaxPartId = 512;

struct Part {
  PartId id;
  // As its writer left it: if the writer was killed the state is kRunning, the footprint is empty
  // and the end is the last row.
  Profile profile;
  bool finished() const { return HasEnded(profile.job); }
};

// The profile of all parts, except for what the blocks tell: footprint, coverage and stored bytes.
// The state is kLost if no part has seen the end of the step.
//
//   nodes     by index: when it first joined and when it last left; lost if no part saw it leave
//   end       the last; state and exit status of the head if it finished, else of the last part
//   notes     each once, and which heads were killed and which heads went on
//   moments   phases of one name that overlap are one, equal remarks are one, figures the last
//             ones said, distributions added up
//   presence  what all that tell of a time say; where they differ, that it is not known
//   cost      added up; of memory the peak
//   kept      members that a later version wrote: of each the value of the part whose state
//             counts, else of any part that has it; those of the footprint stay in the parts
Profile MergeParts(std::vector<Part> parts);

// The nodes of all rows, added up.
uint64_t NodeTicks(const std::map<Nanos, double>& nodes_at);

// Coverage of a step of whose rows it is known how many nodes each has.
Coverage CoverageOf(const JobDescription& job, const std::map<Nanos, double>& nodes_at);

}  // namespace sonde
