#include "daemon/collect/job/cgroup_finder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "core/unique_fd.h"

namespace sonde::collect {
namespace {

constexpr Nanos kLongestDelay = 1024 * kSecond;
// Slurm may take some time to move the tasks; afterwards it is worth a note.
constexpr int kLooksBeforeNote = 3;
// More tasks than a node has processors: their groups are no longer worth a descriptor each.
constexpr size_t kMaxTaskDirectories = 1024;

std::string_view LastName(std::string_view group) { return group.substr(group.rfind('/') + 1); }

// Units of systemd's: slurmd's own service, the scope of all slurmstepds, a session, a slice.
bool IsUnit(std::string_view group) {
  return group.ends_with(".slice") || group.ends_with(".service") || group.ends_with(".scope");
}

// Such a group lies above what shows here: a namespace hides where it is.
bool IsOutside(std::string_view group) {
  return group == "/.." || group.starts_with("/../") || group.ends_with("/..") ||
         group.find("/../") != std::string_view::npos;
}

}  // namespace

bool CgroupFinder::Look(Nanos now) {
  const size_t tasks = tasks_.task_count();
  const bool more_tasks = tasks != tasks_seen_;
  if (tasks == 0 || (!more_tasks && now < look_at_)) return false;
  if (more_tasks) delay_ = kSecond;
  tasks_seen_ = tasks;
  look_at_ = now + delay_;
  delay_ = std::min(2 * delay_, kLongestDelay);
  if (std::all_of(places_.begin(), places_.end(),
                  [](const Place& place) { return place.mount.point.empty(); })) {
    ReadMounts();
  }
  GatherCandidates();
  RefuseSharedWith("self", true);
  RefuseSharedWith("1", false);
  bool changed = false;
  for (Place& place : places_) changed = Adopt(place, more_tasks) || changed;
  changed = AddTaskDirectories() || changed;
  NoteMissing();
  return changed;
}

std::string_view CgroupFinder::ReadProc(std::string_view process, std::string_view file,
                                        size_t& size) {
  char path[1024];
  *fmt::format_to_n(path, sizeof(path) - 1, "{}/{}/{}", roots_.proc, process, file).out = '\0';
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return {};
  int error = 0;
  return ReadText(fd.get(), Shape::kRecords, size, buffer_, error);
}

GroupPaths CgroupFinder::ReadMembership(pid_t pid) {
  char name[16];
  const char* const end = std::to_chars(std::begin(name), std::end(name), pid).ptr;
  return ParseMembership(
      ReadProc({name, static_cast<size_t>(end - name)}, "cgroup", membership_size_));
}

void CgroupFinder::ReadMounts() {
  auto mounts = ParseCgroupMounts(ReadProc("self", "mountinfo", mounts_size_));
  for (size_t i = 0; i < kHierarchies; ++i) places_[i].mount = std::move(mounts[i]);
}

void CgroupFinder::GatherCandidates() {
  for (Place& place : places_) {
    place.candidate.clear();
    place.refused = false;
  }
  for (size_t task = 0; task < tasks_seen_; ++task) {
    const pid_t pid = tasks_.MainProcess(task);
    if (pid == 0) continue;
    const GroupPaths paths = ReadMembership(pid);
    for (size_t i = 0; i < kHierarchies; ++i) {
      Place& place = places_[i];
      if (paths[i].empty()) continue;
      place.listed = true;
      // A task that has ended and was not waited for is in the root of version 1.
      if (paths[i] == "/") continue;
      const std::string_view group = GroupOfAllTasks(paths[i]);
      if (place.candidate.empty()) {
        place.candidate.assign(group);
      } else {
        place.candidate.resize(CommonGroup(place.candidate, group).size());
      }
    }
  }
}

void CgroupFinder::RefuseSharedWith(std::string_view process, bool unless_named_step) {
  const GroupPaths paths = ParseMembership(ReadProc(process, "cgroup", membership_size_));
  for (size_t i = 0; i < kHierarchies; ++i) {
    Place& place = places_[i];
    if (unless_named_step && LastName(place.candidate).starts_with("step_")) continue;
    place.refused = place.refused || HoldsGroup(place.candidate, paths[i]);
  }
}

// `may_grow`: tasks have come that the group known so far may not hold.
bool CgroupFinder::Adopt(Place& place, bool may_grow) const {
  const std::string& group = place.candidate;
  place.refused = place.refused || group == "/" || IsUnit(group) || IsOutside(group);
  if (group.empty() || place.refused || group == place.group) return false;
  if (!place.group.empty() && !(may_grow && HoldsGroup(group, place.group))) return false;
  std::string directory = DirectoryOf(place.mount, group);
  if (directory.empty() || access(directory.c_str(), F_OK) != 0) return false;
  // The hierarchy's root limits nothing; any other group that shows at the mount point may.
  const bool whole = place.mount.root == "/";
  const size_t hidden = whole ? 0 : place.mount.root.size();
  place.group = group;
  place.directory = std::move(directory);
  place.depth = static_cast<size_t>(std::count(group.begin() + static_cast<std::ptrdiff_t>(hidden),
                                               group.end(), '/')) +
                (whole ? 0 : 1);
  return true;
}

std::string CgroupFinder::DirectoryOf(const CgroupMount& mount, std::string_view group) const {
  if (mount.point.empty() || IsOutside(mount.root) || !HoldsGroup(mount.root, group)) return {};
  constexpr std::string_view kSys = "/sys/";
  std::string directory = mount.point.starts_with(kSys)
                              ? roots_.sys + mount.point.substr(kSys.size() - 1)
                              : mount.point;
  return directory.append(mount.root == "/" ? group : group.substr(mount.root.size()));
}

bool CgroupFinder::AddTaskDirectories() {
  const Place& memory = At(Hierarchy::kMemory);
  if (memory.group.empty()) return false;
  bool added = false;
  for (size_t task = 0; task < tasks_seen_; ++task) {
    const pid_t pid = tasks_.MainProcess(task);
    if (pid == 0 || task_directories_.size() >= kMaxTaskDirectories) continue;
    const GroupPaths paths = ReadMembership(pid);
    const std::string_view path = paths[static_cast<size_t>(Hierarchy::kMemory)];
    if (path == memory.group || !HoldsGroup(memory.group, path)) continue;
    const std::string_view below = path.substr(memory.group.size());
    const auto known = [&](const std::string& directory) {
      return directory.size() == memory.directory.size() + below.size() &&
             directory.ends_with(below);
    };
    if (std::any_of(task_directories_.begin(), task_directories_.end(), known)) continue;
    task_directories_.push_back(memory.directory + std::string(below));
    added = true;
  }
  return added;
}

void CgroupFinder::NoteMissing() {
  const auto has_group = [](const Place& place) { return !place.group.empty(); };
  const bool missing = std::none_of(places_.begin(), places_.end(), has_group);
  if (!missing || ++failed_looks_ != kLooksBeforeNote) return;
  const auto named = std::find_if(places_.begin(), places_.end(),
                                  [](const Place& place) { return !place.candidate.empty(); });
  note_ = fmt::format(
      "cgroup: the step has no control group of its own ({}); its metrics are not recorded",
      named == places_.end() ? std::string("its tasks are in the root group, or in none")
      : named->refused
          ? fmt::format("{}, where its tasks are, is not theirs alone", named->candidate)
          : fmt::format("{}, where its tasks are, is not mounted here", named->candidate));
}

}  // namespace sonde::collect
