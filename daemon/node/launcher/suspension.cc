#include "daemon/node/launcher/suspension.h"

#include <algorithm>
#include <string_view>

#include "daemon/collect/job/task_files.h"
#include "daemon/node/launcher/small_file.h"
#include "launcher/cgroup_path.h"

namespace sonde::node {

// Almost always the first one runs, and then the others are not looked at.
bool Suspension::Holds() const {
  return !tasks_.empty() && std::all_of(tasks_.begin(), tasks_.end(), [this](const auto& task) {
    return IsSuspended(task.second);
  });
}

bool Suspension::IsSuspended(pid_t task) const {
  collect::TaskStat stat;
  const std::string text = ReadSmall(options_.proc + "/" + std::to_string(task) + "/stat");
  if (!collect::ParseTaskStat(text, stat)) return false;
  return stat.state == 'T' || IsFrozen(task);
}

// Both versions say it of every group below the one that Slurm has frozen. The kernel gives a
// frozen process other states, which a process that only waits may have as well.
bool Suspension::IsFrozen(pid_t task) const {
  const std::string text = ReadSmall(options_.proc + "/" + std::to_string(task) + "/cgroup");
  if (const std::string path(launch::CgroupPath(text, "freezer")); !path.empty()) {
    return ReadSmall(options_.cgroups + "/freezer" + path + "/freezer.state").starts_with("FROZEN");
  }
  const std::string path(launch::CgroupPath(text, ""));
  if (path.empty()) return false;
  const std::string events = ReadSmall(options_.cgroups + path + "/cgroup.events");
  return events.find("frozen 1") != std::string::npos;
}

}  // namespace sonde::node
