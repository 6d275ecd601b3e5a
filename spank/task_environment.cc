#include "spank/task_environment.h"

#include "launcher/preload.h"
#include "spank/job_items.h"

namespace sonde::spank {
namespace {

void Preload(spank_t spank, const PluginConfig& config, const PluginOptions& options) {
  const std::string old(JobEnvironment(spank).First(preload::kVariable));
  const bool mpi = WatchesMpi(options), io = WatchesIo(options);
  if (!mpi && !io && old.find(preload::kClient) == std::string::npos) return;
  const std::string value = preload::With(old, config.libraries, mpi, io);
  if ((mpi && value.find(preload::kMpi) == std::string::npos) ||
      (io && value.find(preload::kIo) == std::string::npos)) {
    slurm_info(
        "sonde: calls of MPI or for files are not counted: not all of the libraries are in %s",
        config.libraries.c_str());
  }
  if (value == old) return;
  const std::string sanitizers =
      preload::SanitizerOptions(JobEnvironment(spank).First(preload::kSanitizerVariable));
  // Each of these may move the array that a JobEnvironment reads.
  spank_setenv(spank, preload::kSanitizerVariable, sanitizers.c_str(), 1);
  spank_setenv(spank, preload::kVariable, value.c_str(), 1);
}

}  // namespace

void ShowDaemon(spank_t spank, const PluginConfig& config, const PluginOptions& options,
                const std::string& socket) {
  spank_setenv(spank, "SONDE_SOCKET", socket.c_str(), 1);
  spank_setenv(spank, "SONDE_LEVEL", std::to_string(options.level).c_str(), 1);
  Preload(spank, config, options);
}

void HideOuterDaemon(spank_t spank, const PluginConfig& config) {
  spank_unsetenv(spank, "SONDE_SOCKET");
  spank_unsetenv(spank, "SONDE_LEVEL");
  const std::string old(JobEnvironment(spank).First(preload::kVariable));
  const std::string value = preload::Without(old, config.libraries);
  // An empty variable means the same as none.
  if (value != old) spank_setenv(spank, preload::kVariable, value.c_str(), 1);
}

}  // namespace sonde::spank
