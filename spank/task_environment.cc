#include "spank/task_environment.h"

#include "launcher/preload.h"
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

}  // namespace

void ShowDaemon(spank_t spank, const PluginConfig& config, const PluginOptions& options,
                const std::string& socket) {
  spank_setenv(spank, "SONDE_SOCKET", socket.c_str(), 1);
  spank_setenv(spank, "SONDE_LEVEL", std::to_string(options.level).c_str(), 1);
  RemovePreloaded(spank, config);
}

void HideOuterDaemon(spank_t spank, const PluginConfig& config) {
  spank_unsetenv(spank, "SONDE_SOCKET");
  spank_unsetenv(spank, "SONDE_LEVEL");
  RemovePreloaded(spank, config);
}

void PreloadInTask(spank_t spank, const PluginConfig& config, const PluginOptions& options) {
  const bool mpi = WatchesMpi(options), io = WatchesIo(options);
  if (!mpi && !io) return;
  const launch::Environment job = JobEnvironment(spank);
  const std::string old(job.First(preload::kVariable));
  const bool visible = job.First(kContainer).empty();
  const std::string value = visible ? preload::With(old, config.libraries, mpi, io) : old;
  if (((mpi && value.find(preload::kMpi) == std::string::npos) ||
       (io && value.find(preload::kIo) == std::string::npos)) &&
      Item<int>(spank, S_TASK_ID) == 0) {
    slurm_info(
        "sonde: calls of MPI or for files are not counted: not all of the libraries are in %s%s",
        config.libraries.c_str(), visible ? "" : " for certain, in a container of Slurm's");
  }
  if (value == old) return;
  const std::string sanitizers = preload::SanitizerOptions(job.First(preload::kSanitizerVariable));
  // Each of these may move the array that `job` reads.
  spank_setenv(spank, preload::kSanitizerVariable, sanitizers.c_str(), 1);
  spank_setenv(spank, preload::kVariable, value.c_str(), 1);
}

}  // namespace sonde::spank
