// What the plugin does in slurmstepd, as root there, before there is a task.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/spank_fake_slurm.h"

namespace sonde {
namespace {

namespace fs = std::filesystem;

// A directory with a node's files.
class Slurmstepd : public testing::Test {
 protected:
  Slurmstepd() {
    char made[] = "/tmp/sonde-stepd-XXXXXX";
    directory_ = ::mkdtemp(made);
    Write("sonde.conf", "");
  }
  ~Slurmstepd() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ / name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }

  // Runs `calls` with the plugin in a slurmstepd of a batch script; it gives whether all is well.
  template <typename Calls>
  bool InStepd(const Calls& calls) const {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("SLURM_CONF", Path("slurm.conf").c_str(), 1);
      ::setenv("SLURMD_NODENAME", "n1", 1);
      Slurm().context = S_CTX_REMOTE;
      Slurm().items = {{S_JOB_ID, 7},         {S_JOB_STEPID, SLURM_BATCH_SCRIPT},
                       {S_JOB_UID, getuid()}, {S_JOB_GID, getgid()},
                       {S_JOB_NCPUS, 1},      {S_JOB_LOCAL_TASK_COUNT, 1},
                       {S_JOB_ALLOC_MEM, 100}};
      LoadedPlugin plugin;
      plugin.arguments = {"sonded=/bin/true", "config=" + Path("sonde.conf"),
                          "state=" + Path("state")};
      ::_exit(plugin.loaded() && calls(plugin) ? 0 : 1);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    return status == 0;
  }

 private:
  fs::path directory_;
};

TEST_F(Slurmstepd, ReadsSlurmConfOnceForAllThatItNeeds) {
  Write("slurm.conf", "SrunPortRange=60000-60100\ninclude nodes.conf\n");
  Write("nodes.conf", "NodeName=n1 CPUs=4 CoreSpecCount=1\n");
  Write("sonde.conf", "daemon_cpus = specialized\n");
  EXPECT_TRUE(InStepd([this](LoadedPlugin& plugin) {
    const int watch = ::inotify_init1(IN_NONBLOCK);
    // Of two files: of the same event twice in a row the kernel tells once.
    ::inotify_add_watch(watch, Path("slurm.conf").c_str(), IN_OPEN);
    ::inotify_add_watch(watch, Path("nodes.conf").c_str(), IN_OPEN);
    plugin.Call("slurm_spank_init");
    LoadedPlugin::Give("telemetry-level", "3");
    plugin.Call("slurm_spank_init_post_opt");
    char events[4096];
    const ssize_t size = ::read(watch, events, sizeof(events));
    return size == static_cast<ssize_t>(2 * sizeof(inotify_event));
  }));
}

// As with SlurmdParameters=contain_spank: the callbacks for tasks run in the mount namespace of the
// job, where something else may have the place of the directory.
TEST_F(Slurmstepd, CountsWhereTheNodeHasItsCountersAndNotTheJob) {
  EXPECT_TRUE(InStepd([this](LoadedPlugin& plugin) {
    plugin.Call("slurm_spank_init");
    LoadedPlugin::Give("telemetry-level", "2");
    plugin.Call("slurm_spank_init_post_opt");
    if (fs::exists(Path("state"))) fs::rename(Path("state"), Path("nodes"));
    fs::create_directory(Path("state"));
    plugin.Call("slurm_spank_task_post_fork");
    return fs::exists(Path("nodes/n1.prom")) && fs::is_empty(Path("state"));
  }));
}

}  // namespace
}  // namespace sonde
