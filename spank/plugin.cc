// The symbols Slurm looks for, each a switch on where the plugin is.
//
// Nothing that goes wrong here may harm a job: exceptions are caught, and every callback but the
// options' validation in srun, sbatch and salloc succeeds.

#include "spank/plugin.h"

#include <exception>
#include <string>
#include <utility>

namespace sonde::spank {
namespace {

Context plugin_context;

// The process ends, or Slurm unloads the plugin. Declared after the context, so it goes first.
struct AtUnload {
  ~AtUnload();
} at_unload;

template <typename F>
int Protected(const char* where, F&& f) noexcept {
  try {
    f();
  } catch (const std::exception& e) {
    slurm_error("sonde: %s: %s", where, e.what());
  } catch (...) {
    slurm_error("sonde: %s: unknown exception", where);
  }
  return 0;
}

// The same, unless telemetry is switched off.
template <typename F>
int Guarded(const char* where, F&& f) noexcept {
  if (plugin_context.config.enable != PluginConfig::Enable::kYes) return 0;
  return Protected(where, std::forward<F>(f));
}

AtUnload::~AtUnload() {
  Guarded("unload", [] {
    SrunUnload(plugin_context);
    StepdUnload(plugin_context);
  });
}

// With enable=accept: whatever the options are, at most one line.
void Ignore(int id, const char* text) {
  if (plugin_context.told_ignored) return;
  const std::string told = TellIgnored(id, text);
  plugin_context.told_ignored = !told.empty();
  if (plugin_context.told_ignored) slurm_spank_log("sonde: %s", told.c_str());
}

// Non-zero, which only counts where options are given: the value is refused.
int TakeOption(int id, const char* text, int remote) noexcept {
  if (remote == 0 && plugin_context.config.enable == PluginConfig::Enable::kAccept) {
    return Protected("option", [&] { Ignore(id, text); });
  }
  int refused = 0;
  Guarded("option", [&] {
    if (remote != 0) {
      const Status status = TakeRemoteOption(id, text, plugin_context.options);
      if (!status.ok()) slurm_info("sonde: %s", std::string(status.message()).c_str());
      return;
    }
    std::string dropped;
    const Status status = TakeLocalOption(id, text, plugin_context.options, dropped);
    if (!dropped.empty()) slurm_spank_log("sonde: %s", dropped.c_str());
    if (status.ok()) return;
    slurm_error("sonde: %s", std::string(status.message()).c_str());
    refused = -1;
  });
  return refused;
}

void Init(spank_t spank, int argc, char** argv) {
  const spank_context_t where = spank_context();
  if (where != S_CTX_LOCAL && where != S_CTX_ALLOCATOR && where != S_CTX_REMOTE) return;
  const Status arguments = ParseArguments(argc, argv, plugin_context.config);
  if (!arguments.ok()) {
    slurm_error("sonde: %s; ignored", std::string(arguments.message()).c_str());
  }
  if (plugin_context.config.enable == PluginConfig::Enable::kNo) return;
  const Status options = RegisterOptions(spank, TakeOption);
  if (!options.ok()) {
    slurm_error("sonde: %s", std::string(options.message()).c_str());
    return;
  }
  if (plugin_context.config.enable == PluginConfig::Enable::kAccept) return;
  if (where != S_CTX_REMOTE) {
    for (const std::string& wrong : SetDefaultsFromEnvironment()) {
      slurm_error("sonde: %s", wrong.c_str());
    }
  }
  if (where == S_CTX_LOCAL) SrunInit(plugin_context);
  if (where == S_CTX_ALLOCATOR) AllocatorInit();
}

}  // namespace
}  // namespace sonde::spank

#pragma GCC visibility push(default)
extern "C" {

// Constants have internal linkage in C++ unless they were declared before.
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(sonde, 1)

using namespace sonde::spank;

int slurm_spank_init(spank_t spank, int argc, char** argv) {
  return Guarded("init", [&] { Init(spank, argc, argv); });
}

int slurm_spank_init_post_opt(spank_t spank, int, char**) {
  return Guarded("init_post_opt", [&] {
    const spank_context_t where = spank_context();
    if (where == S_CTX_LOCAL || where == S_CTX_ALLOCATOR)
      SettleOptions(spank, plugin_context.options);
    if (where == S_CTX_LOCAL) SrunInitPostOpt(plugin_context);
    if (where == S_CTX_ALLOCATOR) AllocatorInitPostOpt(plugin_context);
    if (where == S_CTX_REMOTE) StepdInitPostOpt(spank, plugin_context);
  });
}

int slurm_spank_local_user_init(spank_t spank, int, char**) {
  return Guarded("local_user_init", [&] { SrunLocalUserInit(spank, plugin_context); });
}

int slurm_spank_task_init(spank_t spank, int, char**) {
  return Guarded("task_init", [&] { StepdTaskInit(spank, plugin_context); });
}

int slurm_spank_task_post_fork(spank_t spank, int, char**) {
  return Guarded("task_post_fork", [&] { StepdTaskPostFork(spank, plugin_context); });
}

int slurm_spank_task_exit(spank_t spank, int, char**) {
  return Guarded("task_exit", [&] { StepdTaskExit(spank, plugin_context); });
}

int slurm_spank_exit(spank_t, int, char**) {
  return Guarded("exit", [&] {
    const spank_context_t where = spank_context();
    if (where == S_CTX_LOCAL) SrunExit(plugin_context);
    if (where == S_CTX_REMOTE) StepdExit(plugin_context);
  });
}

}  // extern "C"
#pragma GCC visibility pop
