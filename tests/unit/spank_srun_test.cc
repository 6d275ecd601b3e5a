// What the plugin does in srun with its head.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/unique_fd.h"
#include "tests/unit/spank_fake_slurm.h"

namespace sonde {
namespace {

namespace fs = std::filesystem;

// How long srun's end takes with a head that is this program of Python; `line` is its lifeline.
std::chrono::milliseconds TimeOfEnd(const fs::path& directory, const std::string& text) {
  std::ofstream(directory / "sonde.conf") << "";
  std::ofstream(directory / "sonded") << "#!/usr/bin/python3\nimport socket\n"
                                         "line = socket.socket(fileno=3)\n"
                                         "line.setblocking(True)\n"
                                      << text;
  fs::permissions(directory / "sonded", fs::perms::owner_all);
  ::setenv("SLURM_CONF", "/nonexistent", 1);
  Slurm().context = S_CTX_LOCAL;
  Slurm().items = {{S_JOB_ID, 7}, {S_JOB_STEPID, 0}};
  LoadedPlugin plugin;
  plugin.arguments = {"sonded=" + (directory / "sonded").string(),
                      "config=" + (directory / "sonde.conf").string()};
  plugin.Call("slurm_spank_init");
  LoadedPlugin::Give("telemetry-level", "2");
  plugin.Call("slurm_spank_init_post_opt");
  plugin.Call("slurm_spank_local_user_init");
  ::sleep(1);  // as long as the step takes
  const auto begin = std::chrono::steady_clock::now();
  plugin.Call("slurm_spank_exit");
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               begin);
}

// The plugin loads into a process of its own.
TEST(Srun, AHeadThatSendsAllTheWhileIsHeardForALimitedTime) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may have so large a buffer";
  char made[] = "/tmp/sonde-srun-XXXXXX";
  const fs::path directory = ::mkdtemp(made);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    // It takes longer to read a packet than to send one, and there is room for many.
    const auto took = TimeOfEnd(directory,
                                "SNDBUFFORCE = 32\n"
                                "line.setsockopt(socket.SOL_SOCKET, SNDBUFFORCE, 64 << 20)\n"
                                "packet = b'D' + 3500 * b'reason=a\\n'\n"
                                "while True: line.send(packet)\n");
    EXPECT_GE(took.count(), 2000);
    EXPECT_LT(took.count(), 5000);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  fs::remove_all(directory);
}

// The archive comes before the level in the packet that tells the head what to do.
TEST(Srun, StartsNoHeadThatItCannotTellAll) {
  char made[] = "/tmp/sonde-srun-XXXXXX";
  const fs::path directory = ::mkdtemp(made);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const UniqueFd log(::open((directory / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ::dup2(log.get(), STDERR_FILENO);
    ::setenv("SONDE_ARCHIVE", ("/" + std::string(40'000, 'a')).c_str(), 1);
    TimeOfEnd(directory,
              "open('" + (directory / "told").string() + "', 'wb').write(line.recv(65536))\n");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  std::stringstream log;
  log << std::ifstream(directory / "log").rdbuf();
  EXPECT_EQ(log.str(),
            "sonde: no telemetry for step 7.0: tell sonded what to do: that takes more than 31744 "
            "bytes, 40001 of them for 'archive'\n");
  EXPECT_FALSE(fs::exists(directory / "told"));
  fs::remove_all(directory);
}

// A file system that hangs would hold up every srun, also those that nobody watches.
TEST(Srun, LooksForSondedInNoOtherWayThanByStartingIt) {
  for (const bool watched : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string sonded = "/nonexistent/sonded";
      testing::internal::CaptureStderr();
      Slurm().context = S_CTX_LOCAL;
      Slurm().items = {{S_JOB_ID, 7}, {S_JOB_STEPID, 0}};
      LoadedPlugin plugin;
      plugin.arguments = {"sonded=" + sonded, "config=/dev/null"};
      plugin.Call("slurm_spank_init");
      if (watched) LoadedPlugin::Give("telemetry-level", "2");
      plugin.Call("slurm_spank_init_post_opt");
      plugin.Call("slurm_spank_local_user_init");
      plugin.Call("slurm_spank_exit");
      EXPECT_EQ(testing::internal::GetCapturedStderr(),
                watched ? "sonde: no telemetry for step 7.0: execute /nonexistent/sonded: No such "
                          "file or directory\n"
                        : "");
      EXPECT_THAT(Slurm().accessed, testing::Not(testing::Contains(sonded)));
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << watched;
  }
}

}  // namespace
}  // namespace sonde
