#include "spank/task_environment.h"

#include <unistd.h>

#include <optional>
#include <string_view>

#include "launcher/preload.h"
#include "launcher/proxy_socket.h"
#include "spank/job_items.h"

namespace sonde::spank {
namespace {

// Slurm's own containers (--container): the step's OCI bundle. Its root is made after the last
// callback, so what is in it cannot be seen.
constexpr std::string_view kContainer = "SLURM_CONTAINER";

// Before the tasks, so that TaskEpilog, which has slurmstepd's environment, has none of it. A step
// has inherited the libraries of the step or script around it.
void RemovePreloaded(spank_t spank, const PluginConfig& config) {
  const std::string old(JobEnvironment(spank).First(preload::kVariable));
  const std::string value = preload::Without(old, config.libraries);
  if (value == old) return;
  if (value.empty()) {
    spank_unsetenv(spank, preload::kVariable);
  } else {
    spank_setenv(spank, preload::kVariable, value.c_str(), 1);
  }
}

// A step has inherited that of the script or step around it, too.
void RemoveOuterProxy(spank_t spank) {
  const std::string_view value = JobEnvironment(spank).First(proxy_socket::kVariable);
  if (proxy_socket::IsOurs(value)) spank_unsetenv(spank, proxy_socket::kVariable);
}

bool IsMissing(const preload::Calls& calls, std::string_view value) {
  for (const std::string_view library : preload::kAll) {
    if (calls.Counts(library) && value.find(library) == std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

void ShowDaemon(spank_t spank, const PluginConfig& config, const PluginOptions& options,
                const std::string& socket) {
  spank_setenv(spank, "SONDE_SOCKET", socket.c_str(), 1);
  spank_setenv(spank, "SONDE_LEVEL", std::to_string(options.level).c_str(), 1);
  RemovePreloaded(spank, config);
  RemoveOuterProxy(spank);
}

void HideOuterDaemon(spank_t spank, const PluginConfig& config) {
  spank_unsetenv(spank, "SONDE_SOCKET");
  spank_unsetenv(spank, "SONDE_LEVEL");
  RemovePreloaded(spank, config);
  RemoveOuterProxy(spank);
}

void ShowProxyInTask(spank_t spank, const std::string& path) {
  const std::optional<std::string_view> named = JobEnvironment(spank).Find(proxy_socket::kVariable);
  if (!proxy_socket::IsFor(named, path, getuid())) return;
  spank_setenv(spank, proxy_socket::kVariable, path.c_str(), 1);
}

void PreloadInTask(spank_t spank, const PluginConfig& config, const PluginOptions& options) {
  const preload::Calls calls = WatchedCalls(options);
  if (!calls.any()) return;
  const launch::Environment job = JobEnvironment(spank);
  const std::string old(job.First(preload::kVariable));
  const bool visible = job.First(kContainer).empty();
  const std::string value = visible ? preload::With(old, config.libraries, calls) : old;
  if (IsMissing(calls, value) && Item<int>(spank, S_TASK_ID) == 0) {
    slurm_info(
        "sonde: calls of MPI, for files or of functions are not counted: not all of the libraries "
        "are in %s%s",
        config.libraries.c_str(), visible ? "" : " for certain, in a container of Slurm's");
  }
  if (value == old) return;
  const std::string sanitizers = preload::SanitizerOptions(job.First(preload::kSanitizerVariable));
  // Each of these may move the array that `job` reads.
  spank_setenv(spank, preload::kSanitizerVariable, sanitizers.c_str(), 1);
  spank_setenv(spank, preload::kVariable, value.c_str(), 1);
}

}  // namespace sonde::spank
