#include "cli/commands/doctor_checks.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "cli/install.h"
#include "core/unique_fd.h"

namespace sonde::cli {
namespace {

// 22.5.8 of Slurm is 0x160508.
std::string SlurmVersionText(unsigned version) {
  return fmt::format("{}.{:02}.{}", version >> 16, version >> 8 & 0xff, version & 0xff);
}

// Without newlines at the end.
std::string ReadAll(std::FILE* file) {
  std::string text;
  std::array<char, 4096> part;
  size_t n = 0;
  while ((n = std::fread(part.data(), 1, part.size(), file)) > 0) text.append(part.data(), n);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::string OutputOf(const std::string& command) {
  std::FILE* pipe = popen(("exec 2>/dev/null; " + command).c_str(), "re");
  if (pipe == nullptr) return "";
  const std::string text = ReadAll(pipe);
  pclose(pipe);
  return text;
}

std::string OutputOfProgram(const std::string& path, const std::string& argument) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string words[] = {path, argument};
  char* const arguments[] = {words[0].data(), words[1].data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, path.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  write_end.Reset();
  if (failed != 0) return "";
  std::string text;
  if (std::FILE* const output = fdopen(dup(read_end.get()), "re")) {
    text = ReadAll(output);
    std::fclose(output);
  }
  waitpid(child, nullptr, 0);
  return text;
}

Finding CheckConfig(const Environment& env) {
  const Result<Config> config = LoadConfig(env.config_path);
  if (!config.ok()) return Bad("configuration", std::string(config.status().message()));
  const bool exists = std::filesystem::exists(env.config_path);
  return Good(
      "configuration",
      env.config_path +
          (exists ? "" : " (absent: defaults; where plugstack.conf names it, no step is watched)"));
}

Finding CheckDaemon() {
  const Result<std::string> path = SondedPath();
  if (!path.ok()) return Bad("daemon", std::string(path.status().message()));
  for (const char* suffix : {"-head", ""}) {
    const std::string program = *path + suffix;
    const std::string version = OutputOf("'" + program + "' --version 2>&1");
    const std::string expected = fmt::format("sonded{} {}", suffix, SONDE_VERSION);
    if (version != expected) {
      return Bad("daemon",
                 fmt::format("{} says '{}', expected '{}': install one version of all parts",
                             program, version, expected));
    }
  }
  return Good("daemon", fmt::format("{} (sonded {})", *path, SONDE_VERSION));
}

Finding CheckPlugin(const std::string& slurm) {
  const Result<std::string> path = PluginPath();
  if (!path.ok()) return Bad("plugin", std::string(path.status().message()));
  void* plugin = dlopen(path->c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (plugin == nullptr) return Bad("plugin", fmt::format("cannot be loaded: {}", dlerror()));
  const auto* version = static_cast<const unsigned*>(dlsym(plugin, "plugin_version"));
  const std::string built = version == nullptr ? "?" : SlurmVersionText(*version);
  dlclose(plugin);
  if (slurm.empty()) {
    return Warning("plugin",
                   fmt::format("{} was built for Slurm {}; which Slurm is here is not known: there "
                               "is no srun or slurmd in PATH that says it. Slurm refuses a "
                               "plugin of another release",
                               *path, built));
  }
  const std::string release = built.substr(0, built.rfind('.'));
  if (slurm.starts_with(release + ".")) {
    return Good("plugin", fmt::format("{}, built for Slurm {}", *path, built));
  }
  return Bad("plugin", fmt::format("{} was built for Slurm {}, this is {}: Slurm will refuse it; "
                                   "install the package for {}",
                                   *path, built, slurm, slurm.substr(0, slurm.rfind('.'))));
}

}  // namespace sonde::cli
