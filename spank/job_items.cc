#include "spank/job_items.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "launcher/site/site_policy.h"
#include "launcher/site/slurm_node.h"

namespace sonde::spank {

launch::Environment JobEnvironment(spank_t spank) {
  char** variables = nullptr;
  if (spank_get_item(spank, S_JOB_ENV, &variables) != ESPANK_SUCCESS) return {};
  return launch::Environment(variables);
}

Result<launch::Credentials> JobCredentials(spank_t spank) {
  const std::optional<uid_t> uid = Item<uid_t>(spank, S_JOB_UID);
  const std::optional<gid_t> gid = Item<gid_t>(spank, S_JOB_GID);
  gid_t* groups = nullptr;
  int count = 0;
  if (!uid || !gid ||
      spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) != ESPANK_SUCCESS) {
    return Status(Code::kInternal, "Slurm does not tell the job's user and groups");
  }
  return launch::Credentials{*uid, *gid, std::vector<gid_t>(groups, groups + std::max(count, 0))};
}

std::string NodeName() {
  const char* name = std::getenv("SLURMD_NODENAME");
  if (name != nullptr) return name;
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  return host;
}

uint64_t AllocatedMemory(spank_t spank) {
  return Item<uint64_t>(spank, S_JOB_ALLOC_MEM).value_or(0) << 20;
}

uint64_t MemoryOfStep(spank_t spank) {
  const uint64_t own = Item<uint64_t>(spank, S_STEP_ALLOC_MEM).value_or(0) << 20;
  return own != 0 ? own : AllocatedMemory(spank);
}

bool IsAlone(spank_t spank, const launch::SlurmNode& node) {
  char* cores = nullptr;
  if (spank_get_item(spank, S_JOB_ALLOC_CORES, &cores) != ESPANK_SUCCESS) cores = nullptr;
  return launch::HasNodeAlone(cores == nullptr ? "" : cores,
                              Item<uint16_t>(spank, S_JOB_NCPUS).value_or(0),
                              ::sysconf(_SC_NPROCESSORS_ONLN), node);
}

}  // namespace sonde::spank
