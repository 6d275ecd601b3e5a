// Where a daemon runs, what it may take, and the room that a job's memory limit gets for it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/text/daemon_settings.h"
#include "core/unique_fd.h"
#include "launcher/placement.h"
#include "launcher/site/job_memory.h"
#include "tests/unit/temp_dir.h"

namespace sonde::launch {
namespace {

using Mask = std::vector<unsigned long>;

TEST(ProcessorMaskTest, HasABitForEachProcessor) {
  EXPECT_EQ(ProcessorMask("0-2,5"), Mask{0b100111});
  EXPECT_EQ(ProcessorMask("64"), (Mask{0, 1}));
  EXPECT_EQ(ProcessorMask(""), Mask{});
  EXPECT_EQ(ProcessorMask("3-1"), Mask{});
  EXPECT_EQ(ProcessorMask("0,99999"), Mask{});
}

// What a child sees of itself: oom_score_adj, nice, RLIMIT_DATA.
std::string SeenByChild(const Placement& placement) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    Apply(placement);
    char text[64] = "";
    const int file = open("/proc/self/oom_score_adj", O_RDONLY);
    const ssize_t size = read(file, text, 16);
    rlimit limit{};
    getrlimit(RLIMIT_DATA, &limit);
    const int more =
        snprintf(text + size - 1, sizeof text - 16, " %d %llu", getpriority(PRIO_PROCESS, 0),
                 static_cast<unsigned long long>(limit.rlim_cur));
    _exit(write(ends[1], text, size - 1 + more) > 0 ? 0 : 1);
  }
  close(ends[1]);
  char seen[64];
  const ssize_t size = read(ends[0], seen, sizeof seen);
  close(ends[0]);
  waitpid(pid, nullptr, 0);
  return std::string(seen, size < 0 ? 0 : static_cast<size_t>(size));
}

TEST(PlacementTest, TheKernelHasWhatWasAskedFor) {
  const int nice = getpriority(PRIO_PROCESS, 0);
  EXPECT_EQ(SeenByChild({.oom_score = 1000, .nice = 3, .memory = 256u << 20}),
            "1000 " + std::to_string(nice + 3) + " 268435456");
  EXPECT_EQ(SeenByChild({.oom_score = 990}).substr(0, 4), "990 ");
}

// --- JobMemory ---

class JobMemoryTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = directory_.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string Read(const std::string& path) const {
    std::stringstream text;
    text << std::ifstream(directory_.path() + "/" + path).rdbuf();
    return text.str();
  }
  // False: not permitted.
  bool Mark(const std::string& group, const std::string& room) const {
    return setxattr((directory_.path() + "/" + group).c_str(), "trusted.sonde.room", room.data(),
                    room.size(), 0) == 0;
  }
  JobMemory Find() const {
    JobMemory memory;
    memory.Find(directory_.path() + "/proc", directory_.path() + "/cgroup");
    return memory;
  }

  TempDir directory_;
};

TEST_F(JobMemoryTest, OfVersionTwoTheJobsLimitsRise) {
  Write("proc/self/cgroup", "0::/slurmstepd.scope/job_7/step_0/slurm\n");
  const std::string job = "cgroup/slurmstepd.scope/job_7/";
  Write(job + "memory.max", "1000000\n");
  Write(job + "memory.high", "max\n");
  Write(job + "step_0/user/memory.max", "1000000\n");
  const JobMemory memory = Find();
  memory.MakeRoom(5000, 1000000);
  EXPECT_EQ(Read(job + "memory.max"), "1005000\n");
  EXPECT_EQ(Read(job + "memory.high"), "max\n");
  EXPECT_EQ(Read(job + "step_0/user/memory.max"), "1000000\n");
}

// Slurm has set the limit anew for this step, and the script is watched, too.
TEST_F(JobMemoryTest, ThereIsRoomForEachWatchedStep) {
  Write("proc/self/cgroup", "0::/scope/s941M84PGGWF00/step_1/slurm\n");
  const std::string job = "cgroup/scope/s941M84PGGWF00/";
  Write(job + "memory.max", "1000000");
  Write(job + "memory.high", "1000000");
  for (const char* step : {"step_0", "step_1", "step_2", "step_batch", "step_extern"}) {
    std::filesystem::create_directories(directory_.path() + "/" + job + step);
  }
  if (!Mark(job + "step_batch", "1500")) GTEST_SKIP() << "only root marks a control group";
  Find().MakeRoom(1000, 1000000);
  EXPECT_EQ(Read(job + "memory.max"), "1002500");
  EXPECT_EQ(Read(job + "memory.high"), "1002500");
}

TEST_F(JobMemoryTest, WhereStepsCannotBeMarkedThereIsRoomForEach) {
  Write("proc/self/cgroup", "0::/scope/job_7/step_1/slurm\n");
  const std::string job = "cgroup/scope/job_7/";
  Write(job + "memory.max", "1000000");
  for (const char* step : {"step_0", "step_batch", "step_extern"}) {
    std::filesystem::create_directories(directory_.path() + "/" + job + step);
  }
  Find().MakeRoom(1000, 1000000);
  EXPECT_EQ(Read(job + "memory.max"), "1002000");
}

// AllowedRAMSpace may be more than 100 %, and the tasks may have that.
TEST_F(JobMemoryTest, ThereIsRoomAboveWhatASiteAllowsBeyondWhatItGives) {
  Write("proc/self/cgroup", "0::/scope/job_7/step_0/slurm\n");
  const std::string job = "cgroup/scope/job_7/";
  std::filesystem::create_directories(directory_.path() + "/" + job + "step_0");
  Write(job + "memory.max", "1200000");
  if (!Mark(job + "step_0", "0")) GTEST_SKIP() << "only root marks a limit";
  for (int i = 0; i < 3; ++i) Find().MakeRoom(1000, 1000000);
  EXPECT_EQ(Read(job + "memory.max"), "1201000");
  Write(job + "memory.max", "1200000");
  Find().KeepRoom(1000000);
  EXPECT_EQ(Read(job + "memory.max"), "1201000") << "a step that is not watched has begun";
  Write(job + "memory.max", "600000");
  Find().MakeRoom(1000, 500000);
  EXPECT_EQ(Read(job + "memory.max"), "601000") << "the job has been given less";
}

// Several steps begin at once: Slurm has set the limit for all of them before the first makes room.
TEST_F(JobMemoryTest, HoweverOftenRoomIsMadeTheLimitIsBounded) {
  Write("proc/self/cgroup", "0::/scope/job_7/step_1/slurm\n");
  const std::string job = "cgroup/scope/job_7/";
  Write(job + "memory.max", "1000000");
  Write(job + "memory.high", "900000");  // what AllowedRAMSpace leaves of it
  for (int step = 0; step < 100; ++step) {
    const std::string group = job + "step_" + std::to_string(step);
    std::filesystem::create_directories(directory_.path() + "/" + group);
    Mark(group, "1000");
  }
  for (int i = 0; i < 5; ++i) Find().MakeRoom(1000, 1000000);
  EXPECT_EQ(Read(job + "memory.max"), "1016000");
  EXPECT_LE(std::stoul(Read(job + "memory.high")), 1016000u);
  Write(job + "memory.max", "1200000");  // what somebody else has set since
  Find().MakeRoom(1000, 1000000);
  EXPECT_EQ(Read(job + "memory.max"), "1200000");
}

// Slurm has set the limit anew for a step that is not watched.
TEST_F(JobMemoryTest, RoomIsKeptAsLongAsAStepIsWatched) {
  if (setxattr(directory_.path().c_str(), "trusted.sonde.probe", "1", 1, 0) != 0) {
    GTEST_SKIP() << "only root marks a control group";
  }
  for (const char* group : {"0::/scope/job_7/step_%s/slurm\n", "5:memory:/scope/job_7/step_%s\n"}) {
    const bool unified = group[0] == '0';
    const std::string job = unified ? "cgroup/scope/job_7/" : "cgroup/memory/scope/job_7/";
    const std::string limit = unified ? "memory.max" : "memory.limit_in_bytes";
    const auto enter = [&](const char* step) {
      char line[100];
      snprintf(line, sizeof line, group, step);
      Write("proc/self/cgroup", line);
      std::filesystem::create_directories(directory_.path() + "/" + job + "step_" + step);
    };
    Write(job + limit, "1000000");
    enter("batch");
    Write(job + "step_batch/" + limit, "1000000");
    Find().KeepRoom(1000000);
    EXPECT_EQ(Read(job + limit), "1000000") << "nobody is watched";
    Find().MakeRoom(1000, 1000000);
    EXPECT_EQ(Read(job + limit), "1001000");
    Write(job + limit, "1000000");
    enter("0");
    Write(job + "step_0/" + limit, "1000000");
    Find().KeepRoom(1000000);
    EXPECT_EQ(Read(job + limit), "1001000") << "for the script's daemon alone";
    EXPECT_EQ(Read(job + "step_0/" + limit), "1000000") << "it has no daemon";
    std::filesystem::remove_all(directory_.path() + "/" + job + "step_batch");
    Write(job + limit, "1000000");
    Find().KeepRoom(1000000);
    EXPECT_EQ(Read(job + limit), "1000000") << "the watched step has ended";
  }
}

// As of a step whose daemon cannot be started: it may be the last, and has no room of its own.
TEST_F(JobMemoryTest, AStepWithoutADaemonKeepsRoomForOthersOnly) {
  Write("proc/self/cgroup", "0::/scope/job_7/step_0/slurm\n");
  const std::string job = "cgroup/scope/job_7/";
  Write(job + "memory.max", "1000000");
  Write(job + "memory.high", "1000000");
  for (const char* step : {"step_0", "step_1"}) {
    std::filesystem::create_directories(directory_.path() + "/" + job + step);
  }
  if (!Mark(job + "step_1", "1000")) GTEST_SKIP() << "only root marks a control group";
  const JobMemory memory = Find();
  for (const uint64_t unlimited : {uint64_t{0}, uint64_t{1} << 62}) {
    memory.KeepRoom(unlimited);
    EXPECT_EQ(Read(job + "memory.max"), "1000000");
  }
  memory.KeepRoom(1000000);
  memory.KeepRoom(1000000);
  EXPECT_EQ(Read(job + "memory.max"), "1001000");
  EXPECT_EQ(Read(job + "memory.high"), "1001000");
  char mark[8];
  EXPECT_LT(getxattr((directory_.path() + "/" + job + "step_0").c_str(), "trusted.sonde.room", mark,
                     sizeof(mark)),
            0)
      << "others would make room for it";
}

// With contain_spank a child of slurmstepd makes the room, in namespaces that do not show the
// group.
TEST_F(JobMemoryTest, RoomIsMadeAndKeptWhereThePathDoesNotLeadToTheGroup) {
  Write("proc/self/cgroup", "0::/scope/job_7/step_0/slurm\n");
  Write("cgroup/scope/job_7/memory.max", "1000000");
  std::filesystem::create_directories(directory_.path() + "/cgroup/scope/job_7/step_0");
  if (setxattr(directory_.path().c_str(), "trusted.sonde.probe", "1", 1, 0) != 0) {
    GTEST_SKIP() << "only root marks a control group";
  }
  const JobMemory memory = Find();
  std::filesystem::rename(directory_.path() + "/cgroup", directory_.path() + "/elsewhere");
  memory.MakeRoom(1000, 1000000);
  EXPECT_EQ(Read("elsewhere/scope/job_7/memory.max"), "1001000");
  Write("elsewhere/scope/job_7/memory.max", "1000000");
  memory.KeepRoom(1000000);
  EXPECT_EQ(Read("elsewhere/scope/job_7/memory.max"), "1001000");
}

// A step that is not watched and begins in between finds the mark, and makes the room again.
TEST_F(JobMemoryTest, AStepIsMarkedBeforeItHasRoom) {
  Write("proc/self/cgroup", "0::/scope/job_7/step_0/slurm\n");
  const std::string job = directory_.path() + "/cgroup/scope/job_7/";
  Write("cgroup/scope/job_7/memory.max", "1000000");
  std::filesystem::create_directories(job + "step_0");
  if (setxattr((job + "step_0").c_str(), "trusted.sonde.probe", "1", 1, 0) != 0) {
    GTEST_SKIP() << "only root marks a control group";
  }
  const UniqueFd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  const int mark = inotify_add_watch(watch.get(), (job + "step_0").c_str(), IN_ATTRIB);
  ASSERT_GE(mark, 0);
  ASSERT_GE(inotify_add_watch(watch.get(), (job + "memory.max").c_str(), IN_MODIFY), 0);
  Find().MakeRoom(1000, 1000000);
  inotify_event events[2];
  ASSERT_EQ(read(watch.get(), events, sizeof events), static_cast<ssize_t>(sizeof events));
  EXPECT_EQ(events[0].wd, mark);
  EXPECT_NE(events[1].wd, mark);
}

TEST_F(JobMemoryTest, OfVersionOneTheStepsRiseAsWell) {
  Write("proc/self/cgroup", "9:freezer:/x\n5:cpu,memory:/slurm/uid_7/job_7/step_0\n0::/\n");
  const std::string job = "cgroup/memory/slurm/uid_7/job_7/";
  for (const std::string& place : {job, job + "step_0/"}) {
    Write(place + "memory.memsw.limit_in_bytes", "2000");
    Write(place + "memory.limit_in_bytes", "1000");
    Write(place + "memory.soft_limit_in_bytes", "9223372036854771712");
  }
  Find().MakeRoom(10, 1000);
  for (const std::string& place : {job, job + "step_0/"}) {
    EXPECT_EQ(Read(place + "memory.memsw.limit_in_bytes"), "2010");
    EXPECT_EQ(Read(place + "memory.limit_in_bytes"), "1010");
    EXPECT_EQ(Read(place + "memory.soft_limit_in_bytes"), "9223372036854771712");
  }
}

TEST_F(JobMemoryTest, OutsideOfASlurmStepNothingIsTouched) {
  for (const char* line : {"0::/user.slice/session.scope\n", "0::/a/job_1/step_0/user/task_0\n",
                           "0::/slurm\n", "nonsense\n", ""}) {
    Write("proc/self/cgroup", line);
    EXPECT_FALSE(Find().found()) << line;
  }
}

// --- DaemonSettings ---

struct Case {
  const char* line;
  const char* wrong;  // what the message has; "": the line is right
};

TEST(DaemonSettingsTest, LinesAreChecked) {
  constexpr Case kCases[] = {
      {"daemon_cpus = 0,64-65", ""},
      {"daemon_cpus = specialized", ""},
      {"daemon_cpus =", ""},
      {"daemon_cpus = 3-1", "expected specialized, or a list of processors such as 0,64-65"},
      {"daemon_cpus = 1,", "expected specialized"},
      {"daemon_cpus = 70000", "expected specialized"},
      {"daemon_nice = 19", ""},
      {"daemon_nice = 20", "expected 0 to 19"},
      {"daemon_nice = -1", "expected 0 to 19"},
      {"daemon_memory = 0", ""},
      {"daemon_memory = 256M", ""},
      {"daemon_memory = 1M", "expected 0, or a size from 16M on such as 256M"},
      {"daemon_memory = 99999999999G", "expected 0, or a size"},
      {"daemon_memory = M", "expected 0, or a size"},
      {"daemon_oom_score = 1001", "expected 0 to 1000"},
      {"memory_allowance = 0", ""},
      {"memory_allowance = 2G", ""},
      {"memory_allowance = lots", "expected a size such as 64M; 0 for none"},
      {"perf_events = grant", ""},
      {"perf_events = yes", "expected follow, grant or never"},
      {"max_heads = 100", ""},
      {"max_heads = many", "expected a number; 0 for no limit"},
      {"ask_filesystems =", ""},
      {"ask_filesystems = lustre", ""},
      {"ask_filesystems = fuse.*, gpfs,beegfs", ""},
      {"ask_filesystems = lustre,", "expected types of filesystems such as lustre, fuse.*"},
      {"ask_filesystems = , lustre", "expected types of filesystems"},
      {"ask_filesystems = lustre gpfs", "expected types of filesystems"},
      {"ask_filesystems = /scratch", "expected types of filesystems"},
  };
  for (const Case& c : kCases) {
    ForEachSetting(c.line, [&](const Setting& setting) {
      EXPECT_TRUE(DaemonSettings::Takes(setting)) << c.line;
      const std::string wrong = DaemonSettings().Add(setting);
      EXPECT_EQ(wrong.empty(), *c.wrong == '\0') << c.line << ": " << wrong;
      EXPECT_NE(wrong.find(c.wrong), std::string::npos) << c.line << ": " << wrong;
      return true;
    });
  }
}

TEST(DaemonSettingsTest, ALineGivenTwiceIsWrongAndTheFirstCounts) {
  DaemonSettings settings;
  std::string wrong;
  ForEachSetting("daemon_nice = 5\ndaemon_nice = 6\ndaemon_memory = 1G\n",
                 [&](const Setting& line) {
                   wrong += settings.Add(line);
                   return true;
                 });
  EXPECT_EQ(wrong, "daemon_nice is given twice");
  EXPECT_EQ(settings.nice, 5);
  EXPECT_EQ(settings.memory, 1u << 30);
}

}  // namespace
}  // namespace sonde::launch
