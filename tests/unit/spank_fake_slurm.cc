#include "tests/unit/spank_fake_slurm.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

namespace sonde {
namespace {

// Numbers in some releases.
constexpr auto kDone = static_cast<spank_err_t>(ESPANK_SUCCESS);
constexpr auto kFailed = static_cast<spank_err_t>(ESPANK_ERROR);

// As Slurm does, whatever the descriptor is.
void Say(const char* level, const char* format, va_list arguments) {
  ::dprintf(STDERR_FILENO, "%s", level);
  ::vdprintf(STDERR_FILENO, format, arguments);
  ::dprintf(STDERR_FILENO, "\n");
}

// Slurm's items have the types that spank.h gives them.
bool GiveItem(spank_item_t item, va_list places) {
  const FakeSlurm& slurm = Slurm();
  static std::vector<char*> environment;
  static gid_t group = 0;
  if (item == S_JOB_ENV) {
    environment.clear();
    for (const std::string& entry : slurm.environment) {
      environment.push_back(const_cast<char*>(entry.c_str()));
    }
    environment.push_back(nullptr);
    *va_arg(places, char***) = environment.data();
    return true;
  }
  if (item == S_JOB_SUPPLEMENTARY_GIDS) {
    *va_arg(places, gid_t**) = &group;
    *va_arg(places, int*) = 0;
    return true;
  }
  const auto known = slurm.items.find(item);
  if (known == slurm.items.end()) return false;
  switch (item) {
    case S_JOB_NCPUS:
      *va_arg(places, uint16_t*) = static_cast<uint16_t>(known->second);
      return true;
    case S_JOB_ALLOC_MEM:
      *va_arg(places, uint64_t*) = known->second;
      return true;
    default:
      *va_arg(places, uint32_t*) = static_cast<uint32_t>(known->second);
      return true;
  }
}

}  // namespace

FakeSlurm& Slurm() {
  static FakeSlurm slurm;
  return slurm;
}

LoadedPlugin::LoadedPlugin() : library_(::dlopen(SONDE_PLUGIN, RTLD_LAZY | RTLD_LOCAL)) {
  if (library_ == nullptr) std::printf("%s\n", ::dlerror());
}

LoadedPlugin::~LoadedPlugin() {
  if (library_ != nullptr) ::dlclose(library_);
}

void LoadedPlugin::Call(const char* callback) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const auto function = reinterpret_cast<spank_f*>(::dlsym(library_, callback));
  if (function != nullptr) function(nullptr, static_cast<int>(argv.size()), argv.data());
}

bool LoadedPlugin::Give(const char* option, const char* value) {
  const spank_option& given = Slurm().options.at(option);
  return given.cb(given.val, value, Slurm().context == S_CTX_REMOTE ? 1 : 0) == 0;
}

}  // namespace sonde

#define SONDE_SAYS(name, level)           \
  void name(const char* format, ...) {    \
    va_list arguments;                    \
    va_start(arguments, format);          \
    sonde::Say(level, format, arguments); \
    va_end(arguments);                    \
  }

#pragma GCC visibility push(default)
extern "C" {

// In place of the C library's, for the plugin too.
int access(const char* path, int mode) noexcept {
  sonde::Slurm().accessed.emplace_back(path);
  return ::faccessat(AT_FDCWD, path, mode, 0);
}

SONDE_SAYS(slurm_error, "")
SONDE_SAYS(slurm_info, "")
SONDE_SAYS(slurm_verbose, "")
SONDE_SAYS(slurm_debug, "debug: ")
SONDE_SAYS(slurm_spank_log, "")

spank_context_t spank_context() { return sonde::Slurm().context; }
const char* spank_strerror(spank_err_t) { return "an error"; }
spank_err_t spank_option_register(spank_t, spank_option* option) {
  if (!sonde::Slurm().registers) return sonde::kFailed;
  sonde::Slurm().options[option->name] = *option;
  return sonde::kDone;
}
spank_err_t spank_option_getopt(spank_t, spank_option*, char**) { return sonde::kFailed; }
spank_err_t spank_get_item(spank_t, spank_item_t item, ...) {
  va_list places;
  va_start(places, item);
  const bool given = sonde::GiveItem(item, places);
  va_end(places);
  return given ? sonde::kDone : sonde::kFailed;
}
spank_err_t spank_setenv(spank_t, const char* name, const char* value, int) {
  spank_unsetenv(nullptr, name);
  sonde::Slurm().environment.push_back(std::string(name) + "=" + value);
  return sonde::kDone;
}
spank_err_t spank_unsetenv(spank_t, const char* name) {
  std::erase_if(sonde::Slurm().environment, [entry = std::string(name) + "="](const auto& given) {
    return given.starts_with(entry);
  });
  return sonde::kDone;
}
spank_err_t spank_job_control_setenv(spank_t, const char*, const char*, int) {
  return sonde::kDone;
}
spank_err_t spank_job_control_unsetenv(spank_t, const char*) { return sonde::kDone; }

}  // extern "C"
#pragma GCC visibility pop
