#include "daemon/head/forwarding.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>

#include "forward/job.h"
#include "profiles/keys.h"

namespace sonde::head {

Forwarding::Forwarding(Loop& loop, std::string config_path, const Config& config,
                       std::string archive, JobDescription job,
                       std::function<void(std::string)> note)
    : loop_(loop),
      config_path_(std::move(config_path)),
      archive_(std::move(archive)),
      job_(std::move(job)),
      note_(std::move(note)) {
  Status wrong;
  const bool any = !forward::ConfiguredDestinations(config, wrong).empty();
  if (!wrong.ok()) note_(fmt::format("not forwarded as configured: {}", wrong.message()));
  if (any) timer_ = loop_.After(kStartAfter, [this] { Start(); });
}

Forwarding::~Forwarding() {
  if (timer_ != 0) Start();
}

void Forwarding::Start() {
  loop_.Cancel(std::exchange(timer_, 0));
  const Status started = Spawn();
  if (!started.ok()) note_(fmt::format("not forwarded: {}", started.message()));
}

Status Forwarding::Spawn() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("make a pipe");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::array<std::string, 5> words = {"sonded-head", "--forward", config_path_, archive_,
                                      keys::ProfileKey(job_)};
  std::array<char*, 6> arguments{};
  for (size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, "/proc/self/exe", &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(ends[0]);
  // The other end stays open as long as this process lives.
  if (error == 0) return {};
  close(ends[1]);
  return SystemError("start sonded-head --forward", error);
}

}  // namespace sonde::head
