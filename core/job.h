// The description of a step in its profile.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/kept_members.h"
#include "core/text/user_tags.h"
#include "core/time.h"

namespace sonde {

// "123.0", "123.batch", "123" (the job as a whole; step is empty), "run-x3k9.0" (`sonde run`).
struct JobStep {
  std::string job;
  std::string step;

  std::string ToString() const { return step.empty() ? job : job + "." + step; }
  // Splits at the last dot; anything is accepted, an unknown job is simply not found.
  static JobStep Parse(std::string_view text);
  // Of these the steps are the programs.
  bool IsScript() const { return step == "batch" || step == "interactive"; }
  auto operator<=>(const JobStep&) const = default;
};

// How a step ended. Written to disk as text; never rename.
enum class EndState : uint8_t {
  kRunning,      // not ended, or nobody saw the end yet
  kCompleted,    // every task ended with exit code 0
  kFailed,       // a task ended with another exit code or by a signal
  kOutOfMemory,  // a task was killed, and the kernel killed in its control group as memory ran out
  kCancelled,    // tasks were killed by scancel, the loss of srun, or for a reason nobody knows
  kTimeout,      // they were killed as the job's time limit was reached
  kPreempted,    // they were killed to make room for another job
  kNodeFail,     // they were killed as Slurm had lost a node of the job
  kLost,         // the record stops without an end: the head was killed
  kUnknown,      // as a later version of Sonde calls it; the description keeps the word
};
std::string_view ToString(EndState state);
EndState ParseEndState(std::string_view text);  // kUnknown for an unknown text

// One node of the step. The head gives the index in the order of registration; frames, blocks and
// owners of extremes carry it.
struct NodeInfo {
  std::string host;
  std::string job;       // differs between the components of a het step
  uint32_t node_id = 0;  // Slurm's, within the step's component
  uint32_t tasks = 0;
  Nanos joined = 0;
  Nanos left = 0;     // 0: still there, or lost
  bool lost = false;  // left without a goodbye message
  // Its last values came late: rows behind its end and before this one were made without them.
  // 0: there are none.
  Nanos end_in_rows = 0;
  std::string note;  // why something is missing, in words
  KeptMembers kept;

  bool IsGone() const { return left != 0 || lost; }
};

// Samples that a complete record would have, and those that this record has: node ticks, and each
// node's goodbye, which counts as one sample.
struct Coverage {
  uint64_t expected = 0;
  uint64_t got = 0;
  uint64_t skipped = 0;  // missing samples that were never taken, as a daemon did not run in time
  double Ratio() const {
    return expected == 0 ? 1.0 : static_cast<double>(got) / static_cast<double>(expected);
  }
};

// Which nodes are in the rows of the whole step: rows one behind the other that have samples of the
// same nodes. Ticks without any row are a run of 0 nodes. What is before the first run is not
// known. The last row, at or behind the step's end, has no tick and is in no run: its counters are
// the step's totals. daemon/head/record/presence.h has the rules.
struct PresenceRun {
  Nanos first = 0;      // tick of the first row
  uint32_t nodes = 0;   // in each row
  uint32_t joined = 0;  // of them were not in the row before
  uint32_t left = 0;    // were in the row before and are not in these
  // Some that joined had been there earlier, the one that was away longest last at this tick; of
  // those that came for the first time alone: 0. `first`: the rows are of different nodes, `nodes`
  // is the least that any of them has.
  Nanos back_from = 0;
  bool IsMixed() const { return back_from == first; }  // of different nodes
  bool operator==(const PresenceRun&) const = default;
};

// A figure of merit: a number that the run is judged by, as the application said it last.
struct Figure {
  std::string name;  // like a metric's
  std::string unit;
  double value = 0;
  uint64_t count = 0;  // how often it was said
  Nanos time = 0;      // when it was said last
  uint32_t node = 0xffffffff;
  uint32_t task = 0xffffffff;
  KeptMembers kept;
  bool operator==(const Figure&) const = default;
};

// A task that did not end with exit code 0.
struct TaskExit {
  uint32_t rank = 0;
  int32_t status = 0;  // as wait() gives it
  auto operator<=>(const TaskExit&) const = default;
};
// So many are listed; the others are counted.
inline constexpr size_t kMaxTaskExits = 4096;

// What the job asked Slurm for and got, as far as Slurm has told the head
// (daemon/head/slurm/squeue.h). It is of the job, while a step may have a part of that. 0 and "":
// not known.
struct JobRequest {
  static constexpr Nanos kNoLimit = std::numeric_limits<Nanos>::max();

  Nanos time_limit = 0;  // kNoLimit: there is none
  Nanos submitted = 0;
  Nanos begun = 0;
  uint32_t cpus = 0;  // of all its nodes
  std::string qos;
  std::string features;  // of nodes, as --constraint names them
  std::string gres;      // generic resources of each node, such as "gpu:2"
  KeptMembers kept;
  bool operator==(const JobRequest&) const = default;
};

// By name; user_tags.h says what they may be.
using UserTags = std::map<std::string, std::string>;

struct JobDescription {
  std::string cluster;
  JobStep id;
  std::string array_job;  // "" unless the job is an array task
  std::string array_task;
  std::string het_job;  // "" unless part of a het job
  std::string name;
  std::string user;
  uint32_t uid = 0;
  std::string account;
  std::string partition;
  std::string command;
  std::string workdir;
  std::string launch_host;  // where the head runs
  uint32_t expected_nodes = 0;
  uint32_t job_nodes = 0;  // of the allocation; more than expected_nodes for a batch step
  uint32_t expected_tasks = 0;
  int level = 0;
  Nanos period = kDefaultPeriod;
  Nanos start = 0;
  Nanos end = 0;  // 0 while running
  EndState state = EndState::kRunning;
  int exit_status = 0;                // the highest wait status of its tasks
  std::vector<TaskExit> exits;        // by rank
  uint64_t exits_left_out = 0;        // of tasks that are not among these
  std::optional<JobRequest> request;  // nothing: nobody asked Slurm
  Coverage coverage;
  std::vector<PresenceRun> presence;  // ascending; empty: not known, as of older releases
  // Of what an acting head wrote: runs before this time are those of the head before. 0: of a head
  // that began the step, of an acting head of an older release, or of all parts together.
  Nanos presence_from = 0;
  std::vector<NodeInfo> nodes;     // by index
  std::vector<std::string> notes;  // for readers: which data is missing, and why
  std::vector<Figure> figures;     // in the order in which they were first said
  UserTags tags;
  std::map<std::string, std::string> environment;  // the part kept (step_environment.h)
  std::string version;                             // of Sonde
  KeptMembers kept;
};

// Whether the step has ended, or its record has; an unknown state without an end is of a step that
// runs.
inline bool HasEnded(const JobDescription& job) {
  return job.state != EndState::kRunning && (job.state != EndState::kUnknown || job.end != 0);
}
// Adds those of tasks that are not listed yet.
void AddExits(const std::vector<TaskExit>& exits, JobDescription& job);
// The state as the description says it, known or not.
std::string StateWord(const JobDescription& job);

}  // namespace sonde
