// The tasks' source: known work of real processes, and trees that no real process makes in time.
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <thread>

#include "daemon/collect/job/tasks.h"
#include "daemon/collect/os/os_sources.h"
#include "tests/unit/collect_tree.h"

namespace sonde::collect::collect_tasks_test {
namespace {

using testing::IsNan;

double CpuSeconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
// Uses that much processor time in the calling thread.
void Spin(double seconds) {
  for (const double start = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
       CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - start < seconds;) {
  }
}

// A child process that does what it is told, step by step: it says when a step is done and waits
// until it may go on. Its own children use the same channel.
class Worker {
 public:
  class Channel {
   public:
    explicit Channel(int fd) : fd_(fd) {}
    // Child: says so and waits.
    void StepDone() const {
      char c = 's';
      if (write(fd_, &c, 1) != 1 || read(fd_, &c, 1) != 1) _exit(9);
    }

    // Stays until the test is over.
    [[noreturn]] void Hold() const {
      char c = 0;
      while (recv(fd_, &c, 1, MSG_PEEK) == 1) usleep(1000);  // for another process
      _exit(0);
    }

   private:
    int fd_;
  };

  explicit Worker(const std::function<void(const Channel&)>& work) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      work(Channel(ends[1]));
      _exit(0);
    }
    close(ends[1]);
    fd_ = ends[0];
  }
  ~Worker() {
    close(fd_);
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  pid_t pid() const { return pid_; }
  // Waits for the step, calling `tick` every 10 ms meanwhile. False if the worker is gone.
  bool Await(const std::function<void()>& tick = [] {}) const {
    for (;;) {
      pollfd p{fd_, POLLIN, 0};
      if (poll(&p, 1, 10) > 0) {
        char c = 0;
        return read(fd_, &c, 1) == 1;
      }
      tick();
    }
  }
  void GoOn() const {
    const char c = 'g';
    if (write(fd_, &c, 1) != 1) ADD_FAILURE() << "the worker is gone";
  }
  // Waits for its end; gives what it and its waited-for children used.
  rusage Finish() {
    rusage usage{};
    wait4(pid_, nullptr, 0, &usage);
    pid_ = -1;
    return usage;
  }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

class Tasks : public testing::Test {
 protected:
  Tasks() { cpu_->Sample(now_); }  // it keeps a descriptor
  // As the sampler does it: the node's forks are read first, so that children are looked for only
  // when there may be new ones.
  void Sample() {
    cpu_->Sample(now_ += kSecond);
    source_.Sample(now_);
  }
  double Get(std::string_view name, int rank = 0) {
    const size_t brace = name.find('{');
    const std::string tags =
        brace == std::string_view::npos
            ? fmt::format("{{task=\"{}\"}}", rank)
            : fmt::format("{},task=\"{}\"}}", name.substr(brace, name.size() - brace - 1), rank);
    return Value(source_, std::string(name.substr(0, brace)) + tags);
  }
  double Cpu(int rank = 0) {
    return Get("task_cpu_seconds_total{mode=\"user\"}", rank) +
           Get("task_cpu_seconds_total{mode=\"system\"}", rank);
  }

  ReadBuffer buffer_;
  double forks_ = kMissing;
  const std::unique_ptr<FileSource> cpu_ = MakeCpuSource(Roots{}, 2, buffer_, &forks_);
  TasksSource source_{Roots{}, buffer_, &forks_};
  Nanos now_ = kSecond;
};

// The kernel counts in ticks of 10 ms and rounds each number down.
constexpr double kTicks = 0.04;

#define EXPECT_WITHIN_2_PERCENT(actual, expected) EXPECT_NEAR(actual, expected, 0.02 * (expected))

TEST_F(Tasks, KnownProcessorTimeOfThreadsAndChildrenComesOut) {
  Worker worker([](const Worker::Channel& channel) {
    std::thread thread([] { Spin(0.6); });
    Spin(0.6);
    thread.join();
    for (int i = 0; i < 2; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        Spin(0.4);
        _exit(0);
      }
      waitpid(child, nullptr, 0);
    }
    channel.StepDone();
  });
  ASSERT_TRUE(source_.AddTask(0, worker.pid()).ok());
  ASSERT_TRUE(worker.Await([&] { Sample(); }));
  Sample();
  EXPECT_WITHIN_2_PERCENT(Cpu(), 2.0);
}

TEST_F(Tasks, CountersNeverFallWhileChildrenComeAndGo) {
  Worker worker([](const Worker::Channel& channel) {
    for (int i = 0; i < 80; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        const pid_t grandchild = fork();
        Spin(0.005 * (1 + i % 5));
        if (grandchild == 0) _exit(0);
        waitpid(grandchild, nullptr, 0);
        _exit(0);
      }
      waitpid(child, nullptr, 0);
    }
    channel.StepDone();
  });
  ASSERT_TRUE(source_.AddTask(0, worker.pid()).ok());
  std::vector<double> last;
  ASSERT_TRUE(worker.Await([&] {
    Sample();
    const auto values = source_.values();
    for (size_t i = 0; i < last.size(); ++i) {
      if (source_.series()[i].metric.type != MetricType::kCounter) continue;
      EXPECT_GE(values[i], last[i]) << source_.series()[i].metric.name;
    }
    last.assign(values.begin(), values.end());
  }));
  Sample();
  worker.GoOn();
  const rusage used = worker.Finish();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  EXPECT_WITHIN_2_PERCENT(Cpu(), seconds(used.ru_utime) + seconds(used.ru_stime));
  EXPECT_WITHIN_2_PERCENT(Get("task_minor_faults_total"), static_cast<double>(used.ru_minflt));
}

TEST_F(Tasks, WhatAChildUsedIsKeptThoughNobodyWaitsForIt) {
  Worker worker([](const Worker::Channel& channel) {
    signal(SIGCHLD, SIG_IGN);  // the kernel hands the child's times to nobody
    if (fork() == 0) {
      Spin(0.5);
      channel.StepDone();
      _exit(0);
    }
    while (waitpid(-1, nullptr, 0) > 0) {
    }
    channel.StepDone();
  });
  ASSERT_TRUE(source_.AddTask(0, worker.pid()).ok());
  ASSERT_TRUE(worker.Await());
  Sample();
  EXPECT_EQ(Get("task_processes"), 2);
  const double before = Cpu();
  EXPECT_NEAR(before, 0.5, kTicks);
  worker.GoOn();
  ASSERT_TRUE(worker.Await());
  Sample();
  EXPECT_EQ(Get("task_processes"), 1);
  EXPECT_GE(Cpu(), before);
  EXPECT_LT(Cpu(), before + kTicks);
}

TEST_F(Tasks, AnOrphanStillBelongsToItsTask) {
  Worker worker([](const Worker::Channel& channel) {
    const pid_t child = fork();
    if (child == 0) {
      if (fork() == 0) {
        channel.StepDone();  // seen
        Spin(0.3);
        channel.StepDone();
      }
      channel.Hold();
    }
    channel.StepDone();
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    channel.Hold();
  });
  ASSERT_TRUE(source_.AddTask(0, worker.pid()).ok());
  ASSERT_TRUE(worker.Await());
  ASSERT_TRUE(worker.Await());
  Sample();
  EXPECT_EQ(Get("task_processes"), 3);
  worker.GoOn();
  worker.GoOn();
  ASSERT_TRUE(worker.Await());
  Sample();
  EXPECT_EQ(Get("task_processes"), 2);
  EXPECT_NEAR(Cpu(), 0.3, kTicks);
}

TEST_F(Tasks, KnownBytesWrittenComeOut) {
  constexpr size_t kBytes = 16u << 20;
  Tree tree;
  Worker worker([&](const Worker::Channel& channel) {
    const int fd = open((tree.path() + "/data").c_str(), O_CREAT | O_WRONLY, 0600);
    const std::string block(1u << 20, 'x');
    for (size_t n = 0; n < kBytes; n += block.size()) {
      if (write(fd, block.data(), block.size()) < 0) _exit(1);
    }
    channel.StepDone();
  });
  ASSERT_TRUE(source_.AddTask(0, worker.pid()).ok());
  ASSERT_TRUE(worker.Await());
  Sample();
  EXPECT_WITHIN_2_PERCENT(Get("task_write_call_bytes_total"), static_cast<double>(kBytes));
  EXPECT_NEAR(Get("task_write_calls_total"), 16, 2);
  struct statfs fs {};
  constexpr long kTmpfs = 0x01021994;
  ASSERT_EQ(statfs(tree.path().c_str(), &fs), 0);
  if (fs.f_type != kTmpfs) {
    EXPECT_WITHIN_2_PERCENT(Get("task_written_bytes_total"), static_cast<double>(kBytes));
  }
}

TEST_F(Tasks, WhatWasDeletedBeforeItWasWrittenIsCancelled) {
  constexpr size_t kBytes = 4u << 20;
  Tree tree;
  struct statfs fs {};
  constexpr long kTmpfs = 0x01021994;
  ASSERT_EQ(statfs(tree.path().c_str(), &fs), 0);
  if (fs.f_type == kTmpfs) GTEST_SKIP() << "nothing here is written to storage";
  Worker worker([&](const Worker::Channel& channel) {
    const std::string name = tree.path() + "/data";
    const int fd = open(name.c_str(), O_CREAT | O_WRONLY, 0600);
    const std::string block(kBytes, 'x');
    if (write(fd, block.data(), block.size()) < 0 || ftruncate(fd, 0) != 0) _exit(1);
    channel.StepDone();
  });
  ASSERT_TRUE(source_.AddTask(0, worker.pid()).ok());
  ASSERT_TRUE(worker.Await());
  Sample();
  const double cancelled = Get("task_cancelled_write_bytes_total");
  EXPECT_GT(cancelled, 0);  // the kernel may have written some of it in between
  EXPECT_LE(cancelled, 1.02 * kBytes);
}

TEST_F(Tasks, ABoundTaskIsOnItsProcessor) {
  Worker worker([](const Worker::Channel& channel) {
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof(all), &all) != 0) _exit(1);
    int last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &all)) --last;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) _exit(1);
    channel.StepDone();
  });
  ASSERT_TRUE(source_.AddTask(0, worker.pid()).ok());
  ASSERT_TRUE(worker.Await());
  Sample();
  cpu_set_t bound;
  ASSERT_EQ(sched_getaffinity(worker.pid(), sizeof(bound), &bound), 0);
  EXPECT_EQ(CPU_COUNT(&bound), 1);
  const double processor = Get("task_processor");
  ASSERT_GE(processor, 0);
  EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(processor), &bound));
}

TEST_F(Tasks, KnownMemoryThreadsAndProcessesComeOut) {
  constexpr size_t kBytes = 64u << 20;
  Worker worker([](const Worker::Channel& channel) {
    void* const memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, kBytes);
    std::thread([] { pause(); }).detach();
    std::thread([] { pause(); }).detach();
    if (fork() == 0) channel.Hold();
    channel.StepDone();
    munmap(memory, kBytes);
    channel.StepDone();
  });
  ASSERT_TRUE(source_.AddTask(0, worker.pid()).ok());
  ASSERT_TRUE(worker.Await());
  Sample();
  EXPECT_EQ(Get("task_threads"), 4);
  EXPECT_EQ(Get("task_processes"), 2);
  EXPECT_GT(Get("task_resident_memory_bytes"), kBytes);
  EXPECT_GT(Get("task_virtual_memory_bytes"), Get("task_resident_memory_bytes"));
  EXPECT_GT(Get("task_minor_faults_total"), 0);
  worker.GoOn();
  ASSERT_TRUE(worker.Await());
  Sample();
  EXPECT_GT(Get("task_resident_memory_peak_bytes"), kBytes);
}

TEST_F(Tasks, APeakBetweenTwoTicksIsSeen) {
  constexpr size_t kBytes = 64u << 20;
  Worker worker([](const Worker::Channel& channel) {
    channel.StepDone();
    void* const memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, kBytes);
    munmap(memory, kBytes);
    channel.StepDone();
  });
  ASSERT_TRUE(source_.AddTask(0, worker.pid()).ok());
  ASSERT_TRUE(worker.Await());
  Sample();
  worker.GoOn();
  ASSERT_TRUE(worker.Await());
  for (int i = 0; i < 12; ++i) Sample();
  EXPECT_LT(Get("task_resident_memory_bytes"), kBytes);
  EXPECT_GT(Get("task_resident_memory_peak_bytes"), kBytes);
}

TEST_F(Tasks, AnEndedTaskKeepsItsCountersAndFreesItsDescriptors) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  {
    Worker worker([](const Worker::Channel& channel) {
      Spin(0.2);
      channel.StepDone();
    });
    ASSERT_TRUE(source_.AddTask(7, worker.pid()).ok());
    ASSERT_TRUE(worker.Await());
    Sample();
    worker.GoOn();
    worker.Finish();
  }
  source_.TaskExited(7, std::nullopt);
  Sample();
  Sample();
  EXPECT_GE(Cpu(7), 0.18);
  EXPECT_THAT(Get("task_resident_memory_bytes", 7), IsNan());
  EXPECT_THAT(Get("task_threads", 7), IsNan());
  EXPECT_GT(Get("task_resident_memory_peak_bytes", 7), 0);
  EXPECT_EQ(descriptors(), before);
}

TEST_F(Tasks, AnUnknownPidIsMissingAndSaysSoIfItsTotalsDoNotCome) {
  ASSERT_TRUE(source_.AddTask(1, 0x3ffffff).ok());
  Sample();
  EXPECT_THAT(Cpu(1), IsNan());
  EXPECT_THAT(source_.TakeNotes(), testing::IsEmpty());
  source_.TaskExited(1, std::nullopt);
  EXPECT_THAT(source_.TakeNotes(), testing::ElementsAre(testing::HasSubstr("is not counted")));
  EXPECT_FALSE(source_.AddTask(1, 1).ok());
  EXPECT_FALSE(source_.AddTask(2, 0).ok());
}

// Trees made of files: processes that are there for exactly as long as the test wants.
class TaskTree : public testing::Test {
 protected:
  struct Fake {
    pid_t parent = 1;
    int start = 100;
    int user = 0;
    int waited_user = 0;
    int faults = 10;
    int waited_faults = 0;
    std::string children = "";
    char state = 'S';
    int processor = 0;
    int threads = 1;
  };
  void Write(pid_t pid, const Fake& p) const {
    tree_.Write(
        fmt::format("proc/{}/stat", pid),
        fmt::format(
            "{} (a b) {} {} 1 1 0 -1 0 {} {} 0 0 {} 0 {} 0 20 0 {} 0 {} 5000 100 0 1 1 0 0 0 "
            "0 0 0 0 0 0 0 17 {} 0 0\n",
            pid, p.state, p.parent, p.faults, p.waited_faults, p.user, p.waited_user, p.threads,
            p.start, p.processor));
    tree_.Write(fmt::format("proc/{}/task/{}/children", pid, pid), p.children);
  }
  // As the kernel does it: what is open gives nothing more, and the name is gone.
  void End(pid_t pid) const {
    tree_.Write(fmt::format("proc/{}/stat", pid), "");
    tree_.Remove(fmt::format("proc/{}", pid));
  }
  double User() {
    source_.Sample(now_ += kSecond);
    return std::round(Value(source_, "task_cpu_seconds_total{mode=\"user\",task=\"0\"}") *
                      static_cast<double>(sysconf(_SC_CLK_TCK)));
  }
  double Get(const std::string& name, int rank = 0) {
    return Value(source_, fmt::format("{}{{task=\"{}\"}}", name, rank));
  }

  Tree tree_;
  ReadBuffer buffer_;
  double forks_ = kMissing;
  TasksSource source_{tree_.roots(), buffer_, &forks_};
  Nanos now_ = kSecond;
};

TEST_F(TaskTree, WhatAParentWasGivenIsNotCountedTwice) {
  Write(10, {.user = 5, .children = "11 "});
  Write(11, {.parent = 10, .user = 70, .faults = 30});
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  EXPECT_EQ(User(), 75);
  End(11);
  Write(10, {.user = 5, .waited_user = 72, .waited_faults = 31});
  EXPECT_EQ(User(), 77);
}

TEST_F(TaskTree, AWholeBranchMayEndBetweenTwoTicks) {
  Write(10, {.user = 5, .children = "11 "});
  Write(11, {.parent = 10, .user = 70, .faults = 30, .children = "12 "});
  Write(12, {.parent = 11, .user = 100, .faults = 50});
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  EXPECT_EQ(User(), 175);
  End(11);
  End(12);
  // 11 was waited for, 12 was not: its share of the branch is kept.
  Write(10, {.user = 5, .waited_user = 70, .waited_faults = 30});
  const double kept = User();
  EXPECT_GE(kept, 175);
  EXPECT_LE(kept, 185);
}

TEST_F(TaskTree, TextThatMakesNoSenseChangesNothing) {
  Write(10, {.user = 5});
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  EXPECT_EQ(User(), 5);
  tree_.Write("proc/10/stat", "10 (a b");
  EXPECT_EQ(User(), 5);
  EXPECT_EQ(Get("task_processes"), 1);
  Write(10, {.user = 6});
  EXPECT_EQ(User(), 6);
}

TEST_F(TaskTree, AnotherProcessWithTheSamePidIsAnother) {
  Write(10, {.start = 100, .user = 5});
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  EXPECT_EQ(User(), 5);
  Write(10, {.start = 900, .user = 4000});
  EXPECT_EQ(User(), 5);
  EXPECT_THAT(Get("task_processes"), IsNan());
}

TEST_F(TaskTree, AListedChildThatIsNoChildIsNotTaken) {
  Write(10, {.start = 100, .user = 5, .children = "11 12 10 "});
  Write(11, {.parent = 4, .start = 200, .user = 1000});  // the pid has gone to another's child
  Write(12, {.parent = 10, .start = 50, .user = 1000});  // older than its parent
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  EXPECT_EQ(User(), 5);
  EXPECT_EQ(Get("task_processes"), 1);
}

TEST_F(TaskTree, ChildrenOfOtherThreadsAreFoundLater) {
  Write(10, {.user = 5});
  tree_.Write("proc/10/stat", "10 (x) S 1 1 1 0 -1 0 10 0 0 0 5 0 0 0 20 0 2 0 100 0 100 0\n");
  tree_.Write("proc/10/task/20/children", "11 ");
  Write(11, {.parent = 10, .user = 7});
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  EXPECT_EQ(User(), 5);
  now_ += 2 * kSecond;
  EXPECT_EQ(User(), 12);
}

// Trees of files have children without forks, so one can see when they are looked for.
TEST_F(TaskTree, ChildrenAreLookedForWhenTheNodeHasForked) {
  forks_ = 1000;
  Write(10, {.user = 5});
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  User();
  forks_ = 1001;
  User();
  User();
  Write(10, {.user = 5, .children = "11 "});
  Write(11, {.parent = 10, .user = 70});
  EXPECT_EQ(User(), 5);
  forks_ = 1002;
  EXPECT_EQ(User(), 75);
  EXPECT_EQ(User(), 75);
}

TEST_F(TaskTree, ChildrenAreLookedForWhereTheForksAreNotKnown) {
  Write(10, {.user = 5});
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(User(), 5);
  Write(10, {.user = 5, .children = "11 "});
  Write(11, {.parent = 10, .user = 70});
  EXPECT_EQ(User(), 75);
}

TEST_F(TaskTree, ANumberOfForksThatNeverRisesIsNotBelieved) {
  forks_ = 0;  // as in some sandboxes
  Write(10, {.user = 5});
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(User(), 5);
  Write(10, {.user = 5, .children = "11 "});
  Write(11, {.parent = 10, .user = 70});
  EXPECT_EQ(User(), 75);
}

// Without a fork, what another thread or process had becomes a child when that ends.
TEST_F(TaskTree, ChildrenAreLookedForWhenAThreadOrAProcessEnded) {
  for (const bool thread : {true, false}) {
    const int rank = thread ? 0 : 1;
    const pid_t pid = thread ? 10 : 20;
    const auto user = [&] {
      source_.Sample(now_ += kSecond / 100);  // before anything is looked at closely
      const std::string name =
          fmt::format("task_cpu_seconds_total{{mode=\"user\",task=\"{}\"}}", rank);
      return std::round(Value(source_, name) * static_cast<double>(sysconf(_SC_CLK_TCK)));
    };
    forks_ = 2000;
    Write(pid, {.user = 5, .children = thread ? "" : "22 ", .threads = 2});
    Write(22, {.parent = 20, .user = 30});
    ASSERT_TRUE(source_.AddTask(static_cast<uint32_t>(rank), pid).ok());
    user();
    forks_ = 2001;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(user(), thread ? 5 : 35);
    if (!thread) End(22);
    Write(pid, {.user = 5, .children = fmt::format("{} ", pid + 1), .threads = thread ? 1 : 2});
    Write(pid + 1, {.parent = pid, .user = 70});
    EXPECT_EQ(user(), thread ? 75 : 105);
  }
}

TEST_F(TaskTree, StatesAndAddressSpaceAreThoseOfAllProcesses) {
  Write(10, {.children = "11 12 13 14 15 ", .state = 'D', .processor = 5});
  Write(11, {.parent = 10, .state = 'R', .processor = 3});
  Write(12, {.parent = 10, .state = 'R'});
  Write(13, {.parent = 10, .state = 'Z'});
  Write(14, {.parent = 10, .state = 'T'});
  Write(15, {.parent = 10, .state = 't'});
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  User();
  EXPECT_EQ(Get("task_processes"), 5);
  EXPECT_EQ(Get("task_processes_running"), 2);
  EXPECT_EQ(Get("task_processes_blocked"), 1);
  EXPECT_EQ(Get("task_processes_stopped"), 2);
  EXPECT_EQ(Get("task_processes_zombie"), 1);
  EXPECT_EQ(Get("task_virtual_memory_bytes"), 25000);
  EXPECT_EQ(Get("task_processor"), 5);
  End(10);
  User();
  EXPECT_EQ(Get("task_processes"), 4);
  EXPECT_THAT(Get("task_processor"), IsNan());
}

TEST_F(TaskTree, InputAndOutputThatMayNotBeReadIsMissingUntilItMay) {
  Write(10, {.user = 5});
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  EXPECT_EQ(User(), 5);
  EXPECT_THAT(Get("task_read_bytes_total"), IsNan());
  tree_.Write("proc/10/io",
              "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
              "cancelled_write_bytes: 4\n");
  User();
  User();
  EXPECT_EQ(Get("task_read_bytes_total"), 5);
  EXPECT_EQ(Get("task_written_bytes_total"), 6);
  EXPECT_EQ(Get("task_cancelled_write_bytes_total"), 4);
}

TEST_F(TaskTree, TheTotalsOfATaskReachBeyondTheLastTick) {
  Write(10, {.user = 5, .faults = 10});
  tree_.Write("proc/10/io",
              "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 512\nwrite_bytes: 8192\n"
              "cancelled_write_bytes: 0\n");
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  EXPECT_EQ(User(), 5);
  TaskTotals totals;
  totals.minor_faults = 12;
  totals.read_bytes = 1024;
  totals.written_bytes = 4096;  // a counter never falls
  source_.TaskExited(0, totals);
  User();
  EXPECT_EQ(Get("task_minor_faults_total"), 12);
  EXPECT_EQ(Get("task_read_bytes_total"), 1024);
  EXPECT_EQ(Get("task_written_bytes_total"), 8192);
  EXPECT_EQ(Get("task_read_calls_total"), 3);
}

TEST_F(TaskTree, ATaskThatNoTickSawHasItsTotalsAndNothingElse) {
  ASSERT_TRUE(source_.AddTask(0, 10).ok());
  ASSERT_TRUE(source_.AddTask(1, 11).ok());
  User();
  TaskTotals totals;
  totals.minor_faults = 12;
  totals.peak_bytes = 4096;
  source_.TaskExited(1, totals);  // a launcher that does not tell of storage
  totals.read_bytes = totals.written_bytes = 4096;
  source_.TaskExited(0, totals);
  User();
  EXPECT_EQ(Get("task_minor_faults_total"), 12);
  EXPECT_EQ(Get("task_written_bytes_total"), 4096);
  EXPECT_THAT(Get("task_write_call_bytes_total"), IsNan());
  EXPECT_THAT(Get("task_written_bytes_total", 1), IsNan());
}

}  // namespace
}  // namespace sonde::collect::collect_tasks_test
