// What the plugin does in slurmstepd, as root there.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/unique_fd.h"
#include "launcher/process_id.h"
#include "tests/unit/in_child.h"
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
  std::string Read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }
  // A program of Python that is the daemon; `line` is its lifeline.
  void WriteDaemon(const std::string& text) const {
    Write("sonded",
          "#!/usr/bin/python3\n"
          "import os, signal, socket, subprocess, time\n"
          "line = socket.socket(fileno=3)\n"
          "line.setblocking(True)\n" +
              text);
    fs::permissions(Path("sonded"), fs::perms::owner_all);
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
      plugin.arguments = {"sonded=" + (fs::exists(Path("sonded")) ? Path("sonded") : "/bin/true"),
                          "config=" + Path("sonde.conf"), "state=" + Path("state")};
      ::_exit(plugin.loaded() && calls(plugin) ? 0 : 1);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    return status == 0;
  }

 private:
  fs::path directory_;
};

// The errno of a program that connects to the application's socket of that name, or 0.
int Connect(const std::string& name) {
  const UniqueFd program(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(program.get(), at, length) == 0 ? 0 : errno;
}

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
  Write("sonde.conf", "proxy_socket = no\n");  // nobody here would remove it
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

// As by the kernel when memory is short; it had started a command.
TEST_F(Slurmstepd, EndsWhatADaemonLeftThatWasKilledWhileItFinished) {
  for (const std::string last : {"", "line.send(b'Dstate=done\\n')\n"}) {
    fs::remove_all(Path("state"));
    Write("sonde.conf", "");
    WriteDaemon(
        "line.send(b'Dstate=up\\nlast=ended\\n')\n"
        "start = open('/proc/self/stat').read().rsplit(')', 1)[1].split()[19]\n"
        "name = f'{os.getpid()}.{start}'\n"
        "left = subprocess.Popen(['sleep', '1000'], env={'SONDE_CHILD_OF': name}, "
        "start_new_session=True)\n"
        "open('" +
        Path("left.new") +
        "', 'w').write(str(left.pid))\n"
        "os.rename('" +
        Path("left.new") + "', '" + Path("left") +
        "')\n"
        "while line.recv(65536): pass\n" +
        last + "os.kill(os.getpid(), signal.SIGKILL)\n");
    EXPECT_TRUE(InStepd([this](LoadedPlugin& plugin) {
      plugin.Call("slurm_spank_init");
      LoadedPlugin::Give("telemetry-level", "2");
      plugin.Call("slurm_spank_init_post_opt");
      plugin.Call("slurm_spank_task_post_fork");
      for (int i = 0; i < 3000 && !fs::exists(Path("left")); ++i) ::usleep(10'000);
      if (!fs::exists(Path("left"))) return false;
      const auto left = launch::Identify(std::stoi(Read("left")));
      EXPECT_NE(left.pid, 0);
      plugin.Call("slurm_spank_task_exit");
      EXPECT_TRUE(launch::WaitForEnd(left, launch::Deadline(std::chrono::milliseconds(0))));
      launch::KillSession(left);
      return !testing::Test::HasFailure();
    })) << last;
    EXPECT_THAT(Read("state/n1.prom"),
                testing::HasSubstr("failures_total{node=\"n1\",reason=\"killed\"} 1\n"))
        << last;
    fs::remove(Path("left"));
  }
}

// As by Slurm before 25.05, which kills all that is in the step's control group.
TEST_F(Slurmstepd, ADaemonThatIsKilledWithItsTaskHasNotFailed) {
  WriteDaemon(
      "line.send(b'Dstate=up\\nlast=ended\\n')\n"
      "os.rename('" +
      Path("sonded") + "', '" + Path("gone") +
      "')\n"
      "os.kill(os.getpid(), signal.SIGKILL)\n");
  for (const int status : {SIGKILL, SIGTERM, 0}) {
    fs::remove_all(Path("state"));
    if (fs::exists(Path("gone"))) fs::rename(Path("gone"), Path("sonded"));
    EXPECT_TRUE(InStepd([this, status](LoadedPlugin& plugin) {
      const UniqueFd log(::open(Path("log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
      ::dup2(log.get(), STDERR_FILENO);
      Slurm().items[S_TASK_EXIT_STATUS] = static_cast<uint64_t>(status);
      plugin.Call("slurm_spank_init");
      LoadedPlugin::Give("telemetry-level", "2");
      plugin.Call("slurm_spank_init_post_opt");
      plugin.Call("slurm_spank_task_post_fork");
      for (int i = 0; i < 3000 && !fs::exists(Path("gone")); ++i) ::usleep(10'000);
      plugin.Call("slurm_spank_task_exit");
      return true;
    }));
    const bool with_task = status == SIGKILL;
    EXPECT_THAT(Read("state/n1.prom"),
                testing::HasSubstr("failures_total{node=\"n1\",reason=\"killed\"} " +
                                   std::string(with_task ? "0" : "1") + "\n"))
        << status;
    EXPECT_THAT(Read("log"),
                testing::HasSubstr(
                    with_task ? "debug: sonde: the daemon of step 7.batch was killed with the tasks"
                              : "it was killed, or ended without a word"));
  }
}

// At level 3 the first task waits for the list of events, for 1 s; the end takes 1.8 s.
TEST_F(Slurmstepd, ADaemonThatSendsAllTheWhileIsHeardForALimitedTime) {
  Write("sonde.conf", "");
  // It takes longer to read one than to send one, and there is room for many.
  WriteDaemon(
      "SNDBUFFORCE = 32\n"
      "line.setsockopt(socket.SOL_SOCKET, SNDBUFFORCE, 64 << 20)\n"
      "packet = b'D' + 3500 * b'reason=a\\n'\n"
      "while True: line.send(packet)\n");
  EXPECT_TRUE(InStepd([](LoadedPlugin& plugin) {
    ::alarm(20);
    const auto begin = std::chrono::steady_clock::now();
    Slurm().items[S_TASK_PID] = static_cast<uint64_t>(getpid());
    Slurm().items[S_TASK_GLOBAL_ID] = 0;
    plugin.Call("slurm_spank_init");
    LoadedPlugin::Give("telemetry-level", "3");
    plugin.Call("slurm_spank_init_post_opt");
    plugin.Call("slurm_spank_task_post_fork");
    // Looks for the list again, which has not come.
    plugin.Call("slurm_spank_task_post_fork");
    plugin.Call("slurm_spank_task_exit");
    return std::chrono::steady_clock::now() - begin < std::chrono::seconds(7);
  }));
}

// With SlurmdParameters=contain_spank a child of slurmstepd starts the daemon.
TEST_F(Slurmstepd, ContainedKeepsNoSocketOfADaemonThatIsGone) {
  Write("sonde.conf", "proxy_socket = no\n");  // nobody here would remove it
  WriteDaemon(
      "programs = socket.socket(fileno=5)\n"
      "open('" +
      Path("name.new") +
      "', 'wb').write(b'%d %s' % (os.getpid(), programs.getsockname()[1:]))\n"
      "os.rename('" +
      Path("name.new") + "', '" + Path("name") +
      "')\n"
      "while line.recv(65536): pass\n");
  EXPECT_TRUE(InStepd([this](LoadedPlugin& plugin) {
    plugin.Call("slurm_spank_init");
    LoadedPlugin::Give("telemetry-level", "2");
    plugin.Call("slurm_spank_init_post_opt");
    EXPECT_EQ(InChild([&] { plugin.Call("slurm_spank_task_post_fork"); }), 0);
    for (int i = 0; i < 3000 && !fs::exists(Path("name")); ++i) ::usleep(10'000);
    size_t blank = 0;
    const launch::ProcessId daemon = launch::Identify(std::stoi(Read("name"), &blank));
    const std::string name = Read("name").substr(blank + 1);
    EXPECT_EQ(Connect(name), 0);
    launch::KillSession(daemon);
    EXPECT_TRUE(launch::WaitForEnd(daemon, launch::Deadline(std::chrono::seconds(10))));
    EXPECT_EQ(Connect(name), ECONNREFUSED) << "a program would wait for a daemon that is gone";
    return !testing::Test::HasFailure();
  }));
}

// At level 3 the first task has the daemon's list of events opened: here one of the machine's.
TEST_F(Slurmstepd, OpensNoEventOfTheMachineWhereTheSiteForbidsEvents) {
  Write("sonde.conf", "perf_events = never\n");
  WriteDaemon(
      "import struct\n"
      "line.send(b'E\\0\\1' + struct.pack('32sIIQ', b'power', 0, 0, 1))\n"
      "while packet := line.recv(65536):\n"
      "  if packet[:1] == b'M': open('" +
      Path("machine") + "', 'wb').write(packet)\n");
  EXPECT_TRUE(InStepd([this](LoadedPlugin& plugin) {
    plugin.arguments.emplace_back("machine_counters=always");
    Slurm().items[S_TASK_PID] = static_cast<uint64_t>(getpid());
    Slurm().items[S_TASK_GLOBAL_ID] = 0;
    plugin.Call("slurm_spank_init");
    LoadedPlugin::Give("telemetry-level", "3");
    plugin.Call("slurm_spank_init_post_opt");
    // Again where the list was not there in time.
    for (int i = 0; i < 3000 && !fs::exists(Path("machine")); ++i) {
      plugin.Call("slurm_spank_task_post_fork");
      ::usleep(10'000);
    }
    plugin.Call("slurm_spank_task_exit");
    return true;
  }));
  EXPECT_EQ(Read("machine"), "M") << "not even tried";
}

// A watched step of one task, which is over at once.
bool RunTask(LoadedPlugin& plugin) {
  plugin.Call("slurm_spank_init");
  LoadedPlugin::Give("telemetry-level", "2");
  plugin.Call("slurm_spank_init_post_opt");
  plugin.Call("slurm_spank_task_post_fork");
  plugin.Call("slurm_spank_task_exit");
  return true;
}

// In a packet the directory of the user's home comes before the level.
TEST_F(Slurmstepd, StartsNoDaemonThatItCannotTellAll) {
  WriteDaemon("open('" + Path("told") + "', 'wb').write(line.recv(65536))\n");
  EXPECT_TRUE(InStepd([this](LoadedPlugin& plugin) {
    const UniqueFd log(::open(Path("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ::dup2(log.get(), STDERR_FILENO);
    Slurm().environment = {"HOME=/" + std::string(40'000, 'h')};
    return RunTask(plugin);
  }));
  EXPECT_EQ(
      Read("log"),
      "sonde: no telemetry for step batch: tell sonded what to do: that takes more than 31744 "
      "bytes, 40001 of them for 'home'\n");
  EXPECT_EQ(Read("told"), "");
  EXPECT_THAT(Read("state/n1.prom"),
              testing::HasSubstr("failures_total{node=\"n1\",reason=\"start\"} 1\n"));
}

TEST_F(Slurmstepd, TellsThatNobodyIsAloneWhereSlurmConfIsNotReadCompletely) {
  Write("slurm.conf", "include gone.conf\n");
  EXPECT_TRUE(InStepd([this](LoadedPlugin& plugin) {
    const UniqueFd log(::open(Path("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ::dup2(log.get(), STDERR_FILENO);
    plugin.Call("slurm_spank_init");
    LoadedPlugin::Give("telemetry-level", "3");
    plugin.Call("slurm_spank_init_post_opt");
    return true;
  }));
  EXPECT_EQ(Read("log"), "sonde: no job counts as alone on this node: open " + Path("gone.conf") +
                             ": No such file or directory\n");
}

// A file system that hangs would hold slurmstepd up for ever; a start takes a limited time.
TEST_F(Slurmstepd, LooksForSondedInNoOtherWayThanByStartingIt) {
  EXPECT_TRUE(InStepd([this](LoadedPlugin& plugin) {
    const UniqueFd log(::open(Path("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ::dup2(log.get(), STDERR_FILENO);
    plugin.arguments[0] = "sonded=" + Path("missing");
    RunTask(plugin);
    EXPECT_THAT(Slurm().accessed, testing::Not(testing::Contains(Path("missing"))));
    return !testing::Test::HasFailure();
  }));
  EXPECT_EQ(Read("log"), "sonde: no telemetry for step 7.batch: execute " + Path("missing") +
                             ": No such file or directory\n");
  EXPECT_THAT(Read("state/n1.prom"),
              testing::HasSubstr("failures_total{node=\"n1\",reason=\"start\"} 1\n"));
}

TEST_F(Slurmstepd, ForLackOfRoomThereAreFewerVariablesInTheProfile) {
  WriteDaemon("open('" + Path("told") + "', 'wb').write(line.recv(65536))\n");
  EXPECT_TRUE(InStepd([](LoadedPlugin& plugin) {
    Slurm().environment = {"HOME=/" + std::string(28'000, 'h'), "OMP_NUM_THREADS=4"};
    for (int i = 0; i < 20; ++i) {
      Slurm().environment.push_back("OMP_" + std::to_string(i) + "=" + std::string(1000, 'v'));
    }
    return RunTask(plugin);
  }));
  const std::string told = Read("told");
  EXPECT_THAT(told, testing::HasSubstr("\nlevel=2\n"));
  EXPECT_THAT(told, testing::HasSubstr("\nconfig=" + Path("sonde.conf") + "\n"));
  EXPECT_THAT(told, testing::HasSubstr("\nenv=OMP_NUM_THREADS=4\n"));
  EXPECT_THAT(told, testing::Not(testing::HasSubstr("OMP_10=")));
}

std::string ProxyPath() {
  for (const std::string& entry : Slurm().environment) {
    if (entry.starts_with("PROXY_PATH=")) return entry.substr(11);
  }
  return "";
}

// What PROXY_PATH is in the task of a step whose daemon has its sockets.
std::string ProxyPathOfTask(LoadedPlugin& plugin) {
  plugin.Call("slurm_spank_init");
  LoadedPlugin::Give("telemetry-level", "2");
  plugin.Call("slurm_spank_init_post_opt");
  plugin.Call("slurm_spank_task_post_fork");
  plugin.Call("slurm_spank_task_init");
  return ProxyPath();
}

TEST_F(Slurmstepd, SendsProgramsForMetricProxyToTheDaemonAndLeavesNoFile) {
  // One that is killed, and so does not remove the file.
  WriteDaemon("while line.recv(65536): pass\nos.kill(os.getpid(), signal.SIGKILL)\n");
  for (const std::string inherited : {"", "PROXY_PATH=/tmp/sonde-7-7.0-0-abc.proxy"}) {
    EXPECT_TRUE(InStepd([&](LoadedPlugin& plugin) {
      if (!inherited.empty()) Slurm().environment = {inherited};
      const std::string path = ProxyPathOfTask(plugin);
      EXPECT_THAT(path,
                  testing::StartsWith("/tmp/sonde-" + std::to_string(::getuid()) + "-7.batch-0-"));
      EXPECT_TRUE(fs::is_socket(path)) << path;
      plugin.Call("slurm_spank_task_exit");
      EXPECT_FALSE(fs::exists(path));
      return !testing::Test::HasFailure();
    })) << inherited;
  }
}

TEST_F(Slurmstepd, LeavesAProxyOfTheUsersAlone) {
  WriteDaemon("while line.recv(65536): pass\n");
  EXPECT_TRUE(InStepd([](LoadedPlugin& plugin) {
    Slurm().environment = {"PROXY_PATH=/tmp/mine"};
    EXPECT_EQ(ProxyPathOfTask(plugin), "/tmp/mine");
    plugin.Call("slurm_spank_task_exit");
    return !testing::Test::HasFailure();
  }));
}

TEST_F(Slurmstepd, HasNoSocketForMetricProxyWhereTheSiteWantsNone) {
  Write("sonde.conf", "proxy_socket = no\n");
  WriteDaemon("open('" + Path("has") +
              "', 'w').write(str(os.path.exists('/proc/self/fd/6')))\n"
              "while line.recv(65536): pass\n");
  EXPECT_TRUE(InStepd([](LoadedPlugin& plugin) {
    EXPECT_EQ(ProxyPathOfTask(plugin), "");
    plugin.Call("slurm_spank_task_exit");
    return !testing::Test::HasFailure();
  }));
  EXPECT_EQ(Read("has"), "False");
}

// A step that is not watched, within one that is.
TEST_F(Slurmstepd, HidesTheSocketOfAStepAroundOneThatIsNotWatched) {
  EXPECT_TRUE(InStepd([](LoadedPlugin& plugin) {
    Slurm().environment = {"PROXY_PATH=/tmp/sonde-7-7.0-0-abc.proxy", "SONDE_SOCKET=outer"};
    plugin.Call("slurm_spank_init");
    LoadedPlugin::Give("telemetry-level", "0");
    plugin.Call("slurm_spank_init_post_opt");
    plugin.Call("slurm_spank_task_init");
    EXPECT_THAT(Slurm().environment, testing::IsEmpty());
    return !testing::Test::HasFailure();
  }));
}

}  // namespace
}  // namespace sonde
