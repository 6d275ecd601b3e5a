// Room in a job's memory limit for the daemons of its steps.
//
// Slurm limits the memory of a job on a node, slurmstepd included, and the daemon runs in
// slurmstepd's control group. Without room of its own the daemon would take what an application at
// the limit needs: the kernel would slow the job down or kill the application, which might have
// lived without telemetry. So slurmstepd raises the job's limit while its steps are watched. In
// version 2 of control groups each step's tasks keep a limit of their own, so that they get nothing
// more; in version 1 daemon and tasks share the step's limit, which is raised, too.
//
// Slurm sets the job's limit anew whenever a step starts. The room is made after that, when the
// step's first task is about to run, and for all steps of the job that have a daemon on the node.
// slurmstepd marks their control groups by an extended attribute, which goes with the group. Where
// groups cannot be marked (version 1, as most systems mount it), all steps of the job count. The
// file of a limit is marked with what Slurm had set there: however many steps start at once, the
// limit never exceeds that and the room.
//
// A step that is not watched takes the room away when it starts. So slurmstepd makes it again then,
// as long as another step of the job is marked.
//
// Thread safety: none; slurmstepd's one thread that calls plugins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/unique_fd.h"

namespace sonde::launch {

class JobMemory {
 public:
  static constexpr uint64_t kMostSteps = 16;

  // Finds the control groups of this process, which is slurmstepd. Without control groups of Slurm
  // that limit memory there is nothing to do. The arguments are for tests.
  void Find(const std::string& proc = "/proc", const std::string& cgroups = "/sys/fs/cgroup");
  // Makes room of `bytes` for this step, and the room of the job's other steps that have a daemon,
  // of at most kMostSteps together, in the limits; `given` is what Slurm gave the job, bytes. A
  // limit that cannot be written, or that has the room, stays.
  void MakeRoom(uint64_t bytes, uint64_t given) const;
  // For a step that is not watched: makes the room again that others of the job have had. Without
  // such others it only looks.
  void KeepRoom(uint64_t given) const;
  bool found() const { return !limited_.empty(); }

 private:
  struct Limited {
    UniqueFd directory;
    bool unified = false;
  };
  void Raise(const Limited& limited, uint64_t room, uint64_t given) const;

  // The job's first. Open, as a child in the job's namespaces may not see the path.
  std::vector<Limited> limited_;
  UniqueFd step_;  // the control group of this step
};

}  // namespace sonde::launch
