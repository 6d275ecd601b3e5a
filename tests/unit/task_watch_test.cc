// Which ends of tasks make a daemon finish by itself.
#include "daemon/node/launcher/task_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

namespace sonde::node::task_watch_test {
namespace {

// A process that only waits. Killed, it stays a zombie until the test has ended, as a task does
// whose launcher has given up on the step.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) pause();
    }
  }
  ~Child() {
    Kill();
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void Kill() const { kill(pid_, SIGKILL); }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// As the kernel writes it; `begin` is the name, the state and the parent.
std::string Stat(const std::string& pid, const std::string& begin, int start = 0) {
  const std::string between = " 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 ";
  return pid + " " + begin + between + std::to_string(start) + " 4096 1";
}

class TaskWatchTest : public testing::Test {
 protected:
  static constexpr Nanos kPatience = 20 * kMillisecond;
  static constexpr Nanos kInterval = 5 * kMillisecond;
  static constexpr Nanos kForEver = 3600 * kSecond;

  TaskWatch::Options Options() const {
    return {.patience = kPatience,
            .patience_after_epilog = kInterval,
            .patience_with_epilogs = kForEver,
            .interval = kInterval,
            .look = kInterval,
            .proc = "/proc",
            .cgroups = "/nonexistent"};
  }
  // Until the tasks are found to be gone, or `limit` has passed; how often they were.
  int Run(Nanos limit) {
    const Loop::TimerId timer = loop_.After(limit, [this] { loop_.Stop(); });
    loop_.Run();
    loop_.Cancel(timer);
    return std::exchange(gone_, 0);
  }
  std::function<void()> Gone() {
    return [this] {
      ++gone_;
      loop_.Stop();
    };
  }
  // Of two tasks that nobody waits for.
  void ExpectToEndWithTheLast(const TaskWatch::Options& options) {
    const Child first, second;
    TaskWatch watch(loop_, options, Gone());
    watch.Add(0, first.pid());
    watch.Add(1, second.pid());
    EXPECT_EQ(Run(kLong), 0) << "both live";
    first.Kill();
    EXPECT_EQ(Run(kLong), 0) << "one lives";
    second.Kill();
    EXPECT_EQ(Run(kMost), 1);
    EXPECT_EQ(Run(kLong), 0) << "once";
  }
  // Long enough for what must not happen to happen.
  static constexpr Nanos kLong = 10 * kPatience;
  static constexpr Nanos kMost = 30 * kSecond;

  Loop loop_;
  int gone_ = 0;
};

TEST_F(TaskWatchTest, TasksThatNobodyWaitsForAreFoundToBeGone) {
  ExpectToEndWithTheLast(Options());
}

// Before Linux 5.3.
int NoPidfds(pid_t) { return errno = ENOSYS, -1; }

TEST_F(TaskWatchTest, WhereTheKernelHasNoDescriptorsOfProcessesTheirEndsAreFoundToo) {
  TaskWatch::Options options = Options();
  options.open = NoPidfds;
  ExpectToEndWithTheLast(options);
}

// As when the daemon has too many open files for a while.
TEST_F(TaskWatchTest, ADescriptorThatCannotBeHadIsTriedForAgain) {
  static int failures;
  failures = 3;
  const Child task;
  TaskWatch::Options options = Options();
  options.open = [](pid_t pid) {
    return failures-- > 0 ? (errno = EMFILE, -1) : TaskWatch::OpenPidfd(pid);
  };
  options.proc = "/nonexistent";  // nor can files be opened
  options.patience_with_epilogs = 0;
  TaskWatch watch(loop_, options, Gone());
  watch.Add(0, task.pid());
  EXPECT_EQ(Run(kLong), 0) << "it lives";
  EXPECT_LT(failures, 0);
  task.Kill();
  EXPECT_EQ(Run(kMost), 1);
}

TEST_F(TaskWatchTest, AProcessThatHasTakenTheNumberOverIsNotTheTask) {
  const std::filesystem::path tree =
      std::filesystem::path(testing::TempDir()) / ("number." + std::to_string(getpid()));
  const Child other;
  const std::string pid = std::to_string(other.pid());
  std::filesystem::create_directories(tree / pid);
  std::ofstream(tree / pid / "stat") << Stat(pid, "(task) S 1", 100);
  TaskWatch::Options options = Options();
  options.open = NoPidfds;
  options.proc = tree;
  options.patience_with_epilogs = 0;
  TaskWatch watch(loop_, options, Gone());
  watch.Add(0, other.pid());
  EXPECT_EQ(Run(kLong), 0) << "it lives";
  std::ofstream(tree / pid / "stat") << Stat(pid, "(other) S 1", 101);
  EXPECT_EQ(Run(kMost), 1);
  std::filesystem::remove_all(tree);
}

TEST_F(TaskWatchTest, EndsThatTheLauncherTellsAreItsAffair) {
  const Child first, second;
  TaskWatch watch(loop_, Options(), Gone());
  watch.Add(0, first.pid());
  watch.Add(1, second.pid());
  first.Kill();
  second.Kill();
  watch.Ended(1);
  watch.Ended(0);
  EXPECT_EQ(Run(kLong), 0);
}

TEST_F(TaskWatchTest, ATaskThatIsGoneBeforeItIsToldOfCounts) {
  const Child task;
  task.Kill();
  TaskWatch watch(loop_, Options(), Gone());
  watch.Add(0, task.pid());
  EXPECT_EQ(Run(kMost), 1);
}

// TaskEpilog runs between slurmstepd's waiting for a task and its telling of it.
TEST_F(TaskWatchTest, AnEndThatTheLauncherHasWaitedForIsToldLater) {
  pid_t waited_for = 0;
  {
    const Child child;
    waited_for = child.pid();
  }
  TaskWatch::Options options = Options();
  TaskWatch watch(loop_, options, Gone());
  watch.Add(0, waited_for);
  EXPECT_EQ(Run(kLong), 0);
  options.patience_with_epilogs = kLong;
  TaskWatch bounded(loop_, options, Gone());
  bounded.Add(0, waited_for);
  EXPECT_EQ(Run(kMost), 1) << "but not for ever";
}

// Slurm's own group of a step: slurmstepd, the daemon and its children, and an epilog.
TEST_F(TaskWatchTest, WhereAnEpilogIsSeenItDecides) {
  namespace fs = std::filesystem;
  const fs::path tree = fs::path(testing::TempDir()) / ("epilog." + std::to_string(getpid()));
  const fs::path group = tree / "cgroup/job_1/step_0/slurm";
  fs::create_directories(group);
  const auto write = [](const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  const std::string self = std::to_string(getpid());
  const auto stat = [&](const std::string& pid, const std::string& begin, int start) {
    write(tree / "proc" / pid / "stat", Stat(pid, begin, start));
  };
  write(tree / "proc" / self / "cgroup", "0::/job_1/step_0/slurm\n");
  stat(self, "(sonded) S 1", 500);
  stat("10", "(slurmstepd) S 1", 400);
  stat("11", "(some plugin's) S 10", 499);
  stat("20", "(alarm command) S " + self, 501);
  stat("21", "(its child) S 20", 501);
  stat("30", "(sh) S 10", 501);
  const std::string expected = "10\n11\n" + self + "\n20\n21\n99\n";  // 99 has ended meanwhile
  write(group / "cgroup.procs", expected + "30\n");
  pid_t waited_for = 0;
  {
    const Child child;
    waited_for = child.pid();
  }
  TaskWatch::Options options = Options();
  options.patience_with_epilogs = 0;
  options.proc = tree / "proc";
  options.cgroups = tree / "cgroup";
  {
    TaskWatch watch(loop_, options, Gone());
    watch.Add(0, waited_for);
    EXPECT_EQ(Run(kLong), 0) << "the epilog runs";
    write(group / "cgroup.procs", expected);
    EXPECT_EQ(Run(kMost), 1);
  }
  // slurmstepd finds that out within a second, and tells the task's end then.
  {
    write(group / "cgroup.procs", expected + "30\n");
    options.patience_after_epilog = kForEver;
    TaskWatch watch(loop_, options, Gone());
    watch.Add(0, waited_for);
    EXPECT_EQ(Run(kLong), 0);
    write(group / "cgroup.procs", expected);
    EXPECT_EQ(Run(kLong), 0) << "it has just ended";
  }
  // Slurm waits for the daemon alone then: another plugin has kept the end from ours.
  options.patience_with_epilogs = kForEver;
  TaskWatch watch(loop_, options, Gone());
  watch.Add(0, waited_for);
  EXPECT_EQ(Run(kMost), 1);
  fs::remove_all(tree);
}

TEST_F(TaskWatchTest, WhatIsInATasksControlGroupKeepsItThere) {
  const std::filesystem::path tree =
      std::filesystem::path(testing::TempDir()) / ("task_watch." + std::to_string(getpid()));
  const Child task;
  const std::filesystem::path proc = tree / "proc" / std::to_string(task.pid());
  const std::filesystem::path cgroup = tree / "cgroup/job_1/step_0/user/task_0";
  std::filesystem::create_directories(proc);
  std::filesystem::create_directories(cgroup);
  const auto write = [](const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path) << text;
  };
  write(proc / "cgroup", "3:memory:/elsewhere\n0::/job_1/step_0/user/task_0\n");
  write(proc / "stat", Stat(std::to_string(task.pid()), "(a) Z) Z 1"));
  write(cgroup / "cgroup.events", "populated 1\nfrozen 0\n");
  TaskWatch::Options options = Options();
  options.proc = tree / "proc";
  options.cgroups = tree / "cgroup";
  TaskWatch watch(loop_, options, Gone());
  watch.Add(0, task.pid());
  task.Kill();
  EXPECT_EQ(Run(kLong), 0) << "its children go on";
  write(cgroup / "cgroup.events", "populated 0\nfrozen 0\n");
  EXPECT_EQ(Run(kMost), 1);
  std::filesystem::remove_all(tree);
}

}  // namespace
}  // namespace sonde::node::task_watch_test
