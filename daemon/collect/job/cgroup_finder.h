// Which control groups are the step's: in each hierarchy, the nearest one that holds all its tasks.
//
// Found from the tasks' pids and /proc/PID/cgroup: neither the job's id nor how a version of Slurm
// names its groups matters. A task may have a group to itself (task_0), so that one is left for the
// one above it. A group is not the step's if other things run in it: the root, a unit of systemd's,
// a group with process 1, one with this daemon (it is slurmstepd's child and no task), unless its
// name is a step's: version 1 of Slurm's plugin keeps slurmstepd there with the tasks.
//
// A task is announced before Slurm has moved it, so a group that was not found is looked for again,
// after 1 s, 2 s, 4 s and so on up to 17 minutes.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "daemon/collect/job/cgroup_files.h"
#include "daemon/collect/job/tasks.h"
#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

class CgroupFinder {
 public:
  // All outlive this.
  CgroupFinder(const Roots& roots, const TasksSource& tasks, ReadBuffer& buffer)
      : roots_(roots), tasks_(tasks), buffer_(buffer) {}

  // Looks if there is cause to. True if a result of the methods below changed; allocates only then.
  bool Look(Nanos now);

  // The group's directory; empty: there is none.
  const std::string& directory(Hierarchy hierarchy) const { return At(hierarchy).directory; }
  // How many directories from the group's own, upwards, are groups that may limit it.
  size_t depth(Hierarchy hierarchy) const { return At(hierarchy).depth; }
  // Version 1 has this controller, so version 2 has not.
  bool is_version_1(Hierarchy controller) const { return At(controller).listed; }
  // Whether the group has the files of a controller in this hierarchy, either that of version 2 or
  // the controller's own. kUnified as a controller: files that need none.
  bool HasFilesOf(Hierarchy hierarchy, Hierarchy controller) const {
    const bool elsewhere = hierarchy == Hierarchy::kUnified && controller != Hierarchy::kUnified &&
                           is_version_1(controller);
    return !elsewhere && !directory(hierarchy).empty();
  }
  // Directories of the groups below the step's in which tasks are, of the memory controller of
  // version 1.
  const std::vector<std::string>& task_directories() const { return task_directories_; }
  // Why there is no group; empty: there is one, or it is too early to say. Given once.
  std::string TakeNote() { return std::exchange(note_, {}); }

 private:
  struct Place {
    CgroupMount mount;
    std::string group;      // the step's
    std::string candidate;  // of this look
    std::string directory;
    size_t depth = 0;
    bool listed = false;
    bool refused = false;
  };
  const Place& At(Hierarchy hierarchy) const { return places_[static_cast<size_t>(hierarchy)]; }

  std::string_view ReadProc(std::string_view process, std::string_view file, size_t& size);
  // What it returns lies in the buffer.
  GroupPaths ReadMembership(pid_t pid);
  void ReadMounts();
  void GatherCandidates();
  void RefuseSharedWith(std::string_view process, bool unless_named_step);
  bool Adopt(Place& place, bool may_grow) const;
  bool AddTaskDirectories();
  void NoteMissing();
  // The directory where a group shows; empty: nowhere.
  std::string DirectoryOf(const CgroupMount& mount, std::string_view group) const;

  const Roots roots_;
  const TasksSource& tasks_;
  ReadBuffer& buffer_;
  size_t membership_size_ = 1024;
  size_t mounts_size_ = 8192;
  std::array<Place, kHierarchies> places_;
  std::vector<std::string> task_directories_;
  std::string note_;
  size_t tasks_seen_ = 0;
  Nanos look_at_ = 0;
  Nanos delay_ = 0;
  int failed_looks_ = 0;
};

}  // namespace sonde::collect
