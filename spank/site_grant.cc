#include "spank/site_grant.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "launcher/site/system_accounts.h"
#include "spank/job_items.h"

namespace sonde::spank {
namespace {

void Grant(const PluginConfig& config, const Applicant& applicant, PluginOptions& options) {
  launch::SystemAccounts accounts;
  Granted granted = config.rules.Grant(options.asked, applicant, accounts, config.path);
  options.level = granted.level;
  options.period = granted.period;
  options.events = std::move(granted.events);
  options.lowered = std::move(granted.lowered);
}

Applicant ApplicantOf(uint32_t uid, std::vector<uint32_t> gids,
                      const launch::Environment& environment) {
  return {uid, std::move(gids), std::string(environment.First("SLURM_JOB_ACCOUNT")),
          std::string(environment.First("SLURM_JOB_PARTITION")),
          std::string(environment.First("SLURM_JOB_QOS"))};
}

std::vector<uint32_t> OwnGroups() {
  std::vector<uint32_t> gids(static_cast<size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int got = ::getgroups(static_cast<int>(gids.size()), gids.data());
  gids.resize(static_cast<size_t>(std::max(got, 0)));
  gids.push_back(::getgid());
  return gids;
}

}  // namespace

void GrantInCommand(const launch::Environment& environment, const PluginConfig& config,
                    PluginOptions& options) {
  if (!MayBeWatched(config, options)) return;
  // Not S_JOB_UID, which some releases get wrong in srun.
  Grant(config, ApplicantOf(::getuid(), OwnGroups(), environment), options);
}

Status GrantOnNode(spank_t spank, const PluginConfig& config, PluginOptions& options) {
  if (!MayBeWatched(config, options)) return {};
  Result<launch::Credentials> credentials = JobCredentials(spank);
  if (!credentials.ok()) return credentials.status();
  std::vector<uint32_t> gids(credentials->groups.begin(), credentials->groups.end());
  gids.push_back(credentials->gid);
  Grant(config, ApplicantOf(credentials->uid, std::move(gids), JobEnvironment(spank)), options);
  return {};
}

}  // namespace sonde::spank
