// The step's control group: found from its tasks in trees like Slurm's, and read in the kernel's
// formats of version 1 and 2.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "daemon/collect/job/cgroup.h"
#include "tests/unit/collect_tree.h"

namespace sonde::collect::collect_cgroup_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

constexpr std::string_view kScope = "/system.slice/slurmstepd.scope";
constexpr std::string_view kStep2 = "/system.slice/slurmstepd.scope/job_7/step_0/user";
constexpr std::string_view kStep1 = "/slurm/uid_1000/job_7/step_0";

class CgroupTest : public testing::Test {
 protected:
  // A task whose process is in the groups that the lines say.
  void AddTask(uint32_t rank, pid_t pid, std::string_view membership) {
    tree_.Write(fmt::format("proc/{}/stat", pid),
                fmt::format("{} (app) S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 100 1000 10 "
                            "18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n",
                            pid));
    tree_.Write(fmt::format("proc/{}/cgroup", pid), membership);
    ASSERT_TRUE(tasks_.AddTask(rank, pid).ok());
  }
  void MountVersion2() const {
    tree_.Write("proc/self/mountinfo",
                "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void MountVersion1() const {
    tree_.Write("proc/self/mountinfo",
                "30 22 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
                "31 30 0:27 / /sys/fs/cgroup/unified rw shared:5 - cgroup2 cgroup2 rw\n"
                "32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:6 - cgroup cgroup "
                "rw,cpu,cpuacct\n"
                "33 30 0:29 / /sys/fs/cgroup/memory rw shared:7 - cgroup cgroup rw,memory\n"
                "34 30 0:30 / /sys/fs/cgroup/blkio rw shared:8 - cgroup cgroup rw,blkio\n"
                "35 30 0:31 / /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,pids\n"
                "36 30 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n");
  }
  static std::string Membership1(std::string_view group) {
    return fmt::format(
        "12:pids:/system.slice/slurmd.service\n10:blkio:{0}\n9:memory:{0}\n"
        "4:cpu,cpuacct:{0}\n1:name=systemd:/system.slice/slurmd.service\n"
        "0::/system.slice/slurmd.service\n",
        group);
  }
  // A file of a group, by its hierarchy's folder ("" for version 2).
  void WriteGroup(std::string_view hierarchy, std::string_view group, std::string_view file,
                  std::string_view text) const {
    tree_.Write(fmt::format("sys/fs/cgroup{}{}/{}", hierarchy, group, file), text);
  }
  // A step of two tasks, each in a group of its own.
  void MakeVersion2() {
    MountVersion2();
    AddTask(0, 100, fmt::format("0::{}/task_0\n", kStep2));
    AddTask(1, 101, fmt::format("0::{}/task_1\n", kStep2));
    tree_.Write("proc/self/cgroup", fmt::format("0::{}/job_7/step_0/slurm\n", kScope));
    tree_.Write("proc/1/cgroup", "0::/init.scope\n");
    WriteGroup("", kStep2, "memory.current", "5000000\n");
  }
  void MakeVersion1() {
    MountVersion1();
    AddTask(0, 100, Membership1(fmt::format("{}/task_0", kStep1)));
    AddTask(1, 101, Membership1(fmt::format("{}/task_1", kStep1)));
    tree_.Write("proc/self/cgroup", Membership1("/system.slice/slurmd.service"));
    for (const char* hierarchy : {"/cpu,cpuacct", "/memory", "/blkio"}) {
      WriteGroup(hierarchy, kStep1, "tasks", "");
    }
  }
  void Sample(Nanos after = kSecond) {
    now_ += after;
    tasks_.Sample(now_);
    cgroup_.Sample(now_);
  }
  double Get(std::string_view name) const { return Value(cgroup_, name); }

  Tree tree_;
  ReadBuffer buffer_;
  TasksSource tasks_{tree_.roots(), buffer_};
  CgroupSource cgroup_{tree_.roots(), tasks_, buffer_};
  Nanos now_ = 0;
};

TEST_F(CgroupTest, Version2IsReadInTheGroupAboveThoseOfTheTasks) {
  MakeVersion2();
  WriteGroup("", kStep2, "cpu.stat",
             "usage_usec 9000000\nuser_usec 7000000\nsystem_usec 2000000\nnr_periods 10\n"
             "nr_throttled 4\nthrottled_usec 1500000\nnr_bursts 0\nburst_usec 0\n");
  WriteGroup("", kStep2, "memory.peak", "6000000\n");
  WriteGroup("", kStep2, "memory.stat",
             "anon 100\nfile 200\nkernel 90\nkernel_stack 30\npagetables 40\nsock 5\nshmem 60\n"
             "file_mapped 70\nfile_dirty 8\nfile_writeback 9\nslab_reclaimable 1\nslab 50\n"
             "pgfault 1234\npgmajfault 12\n");
  WriteGroup("", kStep2, "memory.events", "low 0\nhigh 3\nmax 4\noom 2\noom_kill 1\n");
  WriteGroup("", kStep2, "memory.swap.current", "4096\n");
  WriteGroup("", kStep2, "pids.current", "33\n");
  WriteGroup("", kStep2, "io.pressure",
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\n"
             "full avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n");
  Sample();
  EXPECT_DOUBLE_EQ(Get("cgroup_cpu_seconds_total{mode=\"user\"}"), 7);
  EXPECT_DOUBLE_EQ(Get("cgroup_cpu_seconds_total{mode=\"system\"}"), 2);
  EXPECT_EQ(Get("cgroup_cpu_periods_total"), 10);
  EXPECT_EQ(Get("cgroup_cpu_throttled_periods_total"), 4);
  EXPECT_DOUBLE_EQ(Get("cgroup_cpu_throttled_seconds_total"), 1.5);
  EXPECT_EQ(Get("cgroup_memory_bytes"), 5000000);
  EXPECT_EQ(Get("cgroup_memory_peak_bytes"), 6000000);
  EXPECT_EQ(Get("cgroup_memory_anon_bytes"), 100);
  EXPECT_EQ(Get("cgroup_memory_file_bytes"), 200);
  EXPECT_EQ(Get("cgroup_memory_shmem_bytes"), 60);
  EXPECT_EQ(Get("cgroup_memory_slab_bytes"), 50);
  EXPECT_EQ(Get("cgroup_memory_major_faults_total"), 12);
  EXPECT_EQ(Get("cgroup_swap_bytes"), 4096);
  EXPECT_EQ(Get("cgroup_oom_events_total"), 2);
  EXPECT_EQ(Get("cgroup_oom_kills_total"), 1);
  EXPECT_EQ(Get("cgroup_memory_limit_events_total"), 4);
  EXPECT_EQ(Get("cgroup_pids"), 33);
  EXPECT_DOUBLE_EQ(Get("cgroup_pressure_io_waiting_seconds_total"), 2.5);
  EXPECT_DOUBLE_EQ(Get("cgroup_pressure_io_stalled_seconds_total"), 0.5);
  EXPECT_THAT(Get("cgroup_pressure_memory_stalled_seconds_total"), IsNan());
  EXPECT_THAT(cgroup_.TakeNotes(), IsEmpty());
}

TEST_F(CgroupTest, Version2SaysHowManyProcessorsItMayUse) {
  MakeVersion2();
  WriteGroup("", kStep2, "cpu.max", "max 100000\n");
  WriteGroup("", "/system.slice/slurmstepd.scope/job_7", "cpu.max", "250000 100000\n");
  WriteGroup("", kScope, "cpu.max", "1600000 100000\n");
  WriteGroup("", kStep2, "cpuset.cpus.effective", "0-3,8,64-65\n");
  WriteGroup("", kScope, "cpuset.cpus.effective", "0-127\n");
  Sample();
  EXPECT_DOUBLE_EQ(Get("cgroup_cpu_quota_cpus"), 2.5);
  EXPECT_EQ(Get("cgroup_cpuset_cpus"), 7);
  WriteGroup("", "/system.slice/slurmstepd.scope/job_7", "cpu.max", "max 100000\n");
  WriteGroup("", kStep2, "cpuset.cpus.effective", "\n");
  Sample(9 * kSecond);
  EXPECT_DOUBLE_EQ(Get("cgroup_cpu_quota_cpus"), 2.5) << "read too often";
  Sample(kSecond);
  EXPECT_DOUBLE_EQ(Get("cgroup_cpu_quota_cpus"), 16);
  EXPECT_EQ(Get("cgroup_cpuset_cpus"), 128);
}

TEST_F(CgroupTest, Version1SaysHowManyProcessorsItMayUse) {
  tree_.Write("proc/self/mountinfo",
              "32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
              "33 30 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  const auto membership = [](std::string_view group) {
    return fmt::format("9:cpuset:{0}\n4:cpu,cpuacct:{0}\n", group);
  };
  AddTask(0, 100, membership(fmt::format("{}/task_0", kStep1)));
  tree_.Write("proc/self/cgroup", membership("/system.slice/slurmd.service"));
  WriteGroup("/cpu,cpuacct", kStep1, "cpu.cfs_quota_us", "-1\n");
  WriteGroup("/cpu,cpuacct", kStep1, "cpu.cfs_period_us", "100000\n");
  WriteGroup("/cpu,cpuacct", "/slurm/uid_1000/job_7", "cpu.cfs_quota_us", "150000\n");
  WriteGroup("/cpu,cpuacct", "/slurm/uid_1000/job_7", "cpu.cfs_period_us", "50000\n");
  WriteGroup("/cpuset", kStep1, "cpuset.effective_cpus", "2,4\n");
  Sample();
  EXPECT_DOUBLE_EQ(Get("cgroup_cpu_quota_cpus"), 3);
  EXPECT_EQ(Get("cgroup_cpuset_cpus"), 2);
  WriteGroup("/cpu,cpuacct", "/slurm/uid_1000/job_7", "cpu.cfs_period_us", "0\n");
  Sample(10 * kSecond);
  EXPECT_THAT(Get("cgroup_cpu_quota_cpus"), IsNan());
}

TEST_F(CgroupTest, ALimitIsTheSmallestOfTheGroupsAndOfThoseAbove) {
  MakeVersion2();
  WriteGroup("", kStep2, "memory.max", "max\n");
  WriteGroup("", "/system.slice/slurmstepd.scope/job_7/step_0", "memory.max", "900\n");
  WriteGroup("", "/system.slice/slurmstepd.scope/job_7", "memory.max", "800\n");
  WriteGroup("", kScope, "memory.max", "max\n");
  WriteGroup("", kStep2, "memory.high", "max\n");
  WriteGroup("", "/system.slice", "pids.max", "4000\n");
  Sample();
  EXPECT_EQ(Get("cgroup_memory_limit_bytes"), 800);
  EXPECT_THAT(Get("cgroup_memory_high_bytes"), IsNan());
  EXPECT_THAT(Get("cgroup_swap_limit_bytes"), IsNan());
  EXPECT_EQ(Get("cgroup_pids_limit"), 4000);
  WriteGroup("", kStep2, "memory.max", "700\n");
  Sample(10 * kSecond);
  EXPECT_EQ(Get("cgroup_memory_limit_bytes"), 700);
}

TEST_F(CgroupTest, DevicesAreNamedAndAppearOneByOne) {
  MakeVersion2();
  std::filesystem::create_directories(tree_.path() + "/sys/dev/block");
  std::filesystem::create_symlink("../../devices/pci0/nvme/nvme0n1",
                                  tree_.path() + "/sys/dev/block/259:0");
  WriteGroup("", kStep2, "io.stat", "259:0 rbytes=10 wbytes=20 rios=3 wios=4 dbytes=0 dios=0\n");
  Sample();
  EXPECT_EQ(Get("cgroup_io_read_bytes_total{device=\"nvme0n1\"}"), 10);
  EXPECT_EQ(Get("cgroup_io_written_bytes_total{device=\"nvme0n1\"}"), 20);
  EXPECT_EQ(Get("cgroup_io_reads_total{device=\"nvme0n1\"}"), 3);
  EXPECT_EQ(Get("cgroup_io_writes_total{device=\"nvme0n1\"}"), 4);
  const uint32_t generation = cgroup_.generation();
  // A device with nothing to say runs into the next one on some kernels.
  WriteGroup("", kStep2, "io.stat", "8:16 8:0 rbytes=7 wbytes=0 rios=1 wios=0\n");
  Sample();
  EXPECT_NE(cgroup_.generation(), generation);
  EXPECT_EQ(Get("cgroup_io_read_bytes_total{device=\"8:0\"}"), 7);
  EXPECT_THAT(Get("cgroup_io_read_bytes_total{device=\"8:16\"}"), IsNan());
  EXPECT_THAT(Get("cgroup_io_read_bytes_total{device=\"nvme0n1\"}"), IsNan());
  EXPECT_EQ(cgroup_.values().size(), cgroup_.series().size());
}

TEST_F(CgroupTest, Version1IsReadByController) {
  MakeVersion1();
  WriteGroup("/cpu,cpuacct", kStep1, "cpuacct.stat", "user 700\nsystem 200\n");
  WriteGroup("/cpu,cpuacct", kStep1, "cpu.stat",
             "nr_periods 10\nnr_throttled 4\nthrottled_time 1500000000\n");
  WriteGroup("/memory", kStep1, "memory.usage_in_bytes", "5000000\n");
  WriteGroup("/memory", kStep1, "memory.max_usage_in_bytes", "6000000\n");
  WriteGroup("/memory", kStep1, "memory.failcnt", "4\n");
  WriteGroup("/memory", kStep1, "memory.stat",
             "cache 1\nrss 2\nshmem 3\nhierarchical_memory_limit 800\ntotal_cache 200\n"
             "total_rss 100\ntotal_shmem 60\ntotal_swap 4096\ntotal_pgmajfault 12\n");
  WriteGroup("/blkio", kStep1, "blkio.throttle.io_service_bytes_recursive",
             "8:0 Read 10\n8:0 Write 20\n8:0 Sync 5\n8:0 Total 30\nTotal 30\n");
  WriteGroup("/blkio", kStep1, "blkio.throttle.io_serviced_recursive", "8:0 Read 3\n8:0 Write 4\n");
  Sample();
  EXPECT_DOUBLE_EQ(Get("cgroup_cpu_seconds_total{mode=\"user\"}"), 7);
  EXPECT_DOUBLE_EQ(Get("cgroup_cpu_seconds_total{mode=\"system\"}"), 2);
  EXPECT_DOUBLE_EQ(Get("cgroup_cpu_throttled_seconds_total"), 1.5);
  EXPECT_EQ(Get("cgroup_memory_bytes"), 5000000);
  EXPECT_EQ(Get("cgroup_memory_peak_bytes"), 6000000);
  EXPECT_EQ(Get("cgroup_memory_limit_bytes"), 800);
  EXPECT_EQ(Get("cgroup_memory_limit_events_total"), 4);
  EXPECT_EQ(Get("cgroup_memory_anon_bytes"), 100);
  EXPECT_EQ(Get("cgroup_memory_file_bytes"), 200);
  EXPECT_EQ(Get("cgroup_swap_bytes"), 4096);
  EXPECT_EQ(Get("cgroup_memory_major_faults_total"), 12);
  EXPECT_EQ(Get("cgroup_io_written_bytes_total{device=\"8:0\"}"), 20);
  EXPECT_EQ(Get("cgroup_io_reads_total{device=\"8:0\"}"), 3);
  // slurmd's own groups are not the step's.
  EXPECT_FALSE(Has(cgroup_, "cgroup_pids"));
  EXPECT_FALSE(Has(cgroup_, "cgroup_pressure_cpu_waiting_seconds_total"));
}

TEST_F(CgroupTest, Version1WithoutALimitHasNone) {
  MakeVersion1();
  WriteGroup("/memory", kStep1, "memory.stat", "hierarchical_memory_limit 9223372036854771712\n");
  Sample();
  EXPECT_THAT(Get("cgroup_memory_limit_bytes"), IsNan());
}

TEST_F(CgroupTest, Version1AddsUpTheKillsOfTheTasksGroups) {
  MakeVersion1();
  const auto write = [&](std::string_view group, int kills) {
    WriteGroup("/memory", fmt::format("{}{}", kStep1, group), "memory.oom_control",
               fmt::format("oom_kill_disable 0\nunder_oom 0\noom_kill {}\n", kills));
  };
  write("", 0);
  write("/task_0", 1);
  write("/task_1", 2);
  Sample();
  EXPECT_EQ(Get("cgroup_oom_kills_total"), 3);
  tree_.Remove(fmt::format("sys/fs/cgroup/memory{}/task_1", kStep1));
  Sample();
  EXPECT_EQ(Get("cgroup_oom_kills_total"), 3);
}

TEST_F(CgroupTest, Version1MayKeepTheDaemonInTheStepsGroup) {
  MakeVersion1();
  tree_.Write("proc/self/cgroup", Membership1(kStep1));
  WriteGroup("/memory", kStep1, "memory.usage_in_bytes", "5\n");
  Sample();
  EXPECT_EQ(Get("cgroup_memory_bytes"), 5);
}

TEST_F(CgroupTest, AHybridHasEachControllerWhereItIs) {
  MountVersion1();
  AddTask(0, 100, fmt::format("9:memory:{}/task_0\n0::{}/task_0\n", kStep1, kStep2));
  WriteGroup("/memory", kStep1, "memory.usage_in_bytes", "5\n");
  WriteGroup("/unified", kStep2, "memory.current", "6\n");
  WriteGroup("/unified", kStep2, "pids.current", "7\n");
  Sample();
  EXPECT_EQ(Get("cgroup_memory_bytes"), 5);
  EXPECT_EQ(Get("cgroup_pids"), 7);
  std::vector<std::string> names;
  for (const Series& s : cgroup_.series()) names.push_back(SeriesName(s.metric.name, s.tags));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST_F(CgroupTest, AContainersMountShowsOnlyItsOwnGroups) {
  tree_.Write("proc/self/mountinfo",
              "30 22 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
  AddTask(0, 100, "0::/box/step/user/task_0\n");
  WriteGroup("", "/step/user", "memory.current", "5\n");
  WriteGroup("", "", "memory.max", "800\n");
  Sample();
  EXPECT_EQ(Get("cgroup_memory_bytes"), 5);
  EXPECT_EQ(Get("cgroup_memory_limit_bytes"), 800);
}

class NoGroup : public CgroupTest, public testing::WithParamInterface<const char*> {};

TEST_P(NoGroup, HasNoSeriesAndIsNoNewsForTheProfile) {
  MountVersion2();
  const std::string group = GetParam();
  AddTask(0, 100, fmt::format("0::{}\n", group));
  WriteGroup("", group, "memory.current", "5\n");
  tree_.Write("proc/self/cgroup", "0::/docker/abc\n");
  tree_.Write("proc/1/cgroup", "0::/pod/init\n");
  for (int i = 0; i < 20; ++i) Sample(kSecond);
  EXPECT_THAT(cgroup_.series(), IsEmpty());
  EXPECT_THAT(cgroup_.TakeNotes(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Cgroup, NoGroup,
                         testing::Values("/", "/system.slice", "/system.slice/slurmd.service",
                                         "/system.slice/slurmstepd.scope",
                                         "/user.slice/user-0.slice/session-3.scope", "/docker/abc",
                                         "/docker", "/pod", "/../other"));

TEST_F(CgroupTest, TasksFarApartHaveNoGroupInCommon) {
  MountVersion2();
  AddTask(0, 100, "0::/a/step_0/task_0\n");
  AddTask(1, 101, "0::/b/step_0/task_1\n");
  Sample();
  EXPECT_THAT(cgroup_.series(), IsEmpty());
}

TEST_F(CgroupTest, ALaterTaskMayWidenTheGroup) {
  MountVersion2();
  AddTask(0, 100, "0::/job_7/step_0/box/a\n");
  WriteGroup("", "/job_7/step_0/box/a", "memory.current", "5\n");
  WriteGroup("", "/job_7/step_0/box", "memory.current", "9\n");
  Sample();
  EXPECT_EQ(Get("cgroup_memory_bytes"), 5);
  AddTask(1, 101, "0::/job_7/step_0/box/b\n");
  Sample();
  EXPECT_EQ(Get("cgroup_memory_bytes"), 9);
}

TEST_F(CgroupTest, ATaskThatIsMovedAfterItsStartIsFoundLater) {
  MountVersion2();
  tree_.Write("proc/self/cgroup", fmt::format("0::{}/job_7/step_0/slurm\n", kScope));
  AddTask(0, 100, fmt::format("0::{}/job_7/step_0/slurm\n", kScope));
  WriteGroup("", fmt::format("{}/job_7/step_0/slurm", kScope), "memory.current", "1\n");
  WriteGroup("", kStep2, "memory.current", "5\n");
  Sample();
  EXPECT_THAT(cgroup_.series(), IsEmpty());
  tree_.Write("proc/100/cgroup", fmt::format("0::{}/task_0\n", kStep2));
  Sample();
  EXPECT_EQ(Get("cgroup_memory_bytes"), 5);
}

TEST_F(CgroupTest, AGroupThatDisappearsIsMissingAndMayComeBack) {
  MakeVersion2();
  Sample();
  EXPECT_EQ(Get("cgroup_memory_bytes"), 5000000);
  // A file of a real group can no longer be read; one of a tree is only emptied.
  WriteGroup("", kStep2, "memory.current", "");
  tree_.Remove(fmt::format("sys/fs/cgroup{}", kScope));
  Sample();
  EXPECT_THAT(Get("cgroup_memory_bytes"), IsNan());
}

TEST_F(CgroupTest, AFileThatComesLateIsRead) {
  MakeVersion2();
  Sample();
  EXPECT_THAT(Get("cgroup_memory_peak_bytes"), IsNan());
  WriteGroup("", kStep2, "memory.peak", "6\n");
  for (int i = 0; i < 3; ++i) Sample(64 * kSecond);
  EXPECT_EQ(Get("cgroup_memory_peak_bytes"), 6);
}

TEST_F(CgroupTest, WhatIsNoNumberIsMissing) {
  MakeVersion2();
  for (const std::string_view text : {"", "\n", "-1\n", "max\n", "12", "12 \n", "12abc\n", "1.5\n",
                                      "18446744073709551616\n", "99999999999999999999999999\n"}) {
    WriteGroup("", kStep2, "memory.current", text);
    WriteGroup("", kStep2, "memory.stat", fmt::format("file 5\nanon {}", text));
    WriteGroup("", kStep2, "cpu.pressure", fmt::format("some avg10=0.00 total={}", text));
    WriteGroup("", kStep2, "memory.max", text);
    Sample(10 * kSecond);
    EXPECT_THAT(Get("cgroup_memory_bytes"), IsNan()) << text;
    EXPECT_THAT(Get("cgroup_memory_anon_bytes"), IsNan()) << text;
    EXPECT_EQ(Get("cgroup_memory_file_bytes"), 5) << text;
    EXPECT_THAT(Get("cgroup_pressure_cpu_waiting_seconds_total"), IsNan()) << text;
    EXPECT_THAT(Get("cgroup_memory_limit_bytes"), IsNan()) << text;
  }
  WriteGroup("", kStep2, "memory.current", "18446744073709551615\n");
  Sample();
  EXPECT_EQ(Get("cgroup_memory_bytes"), 18446744073709551615.0);
}

TEST(CgroupFiles, MembershipIsByControllerAndWithoutRemovedGroups) {
  const GroupPaths paths = ParseMembership(
      "5:cpuacct,cpu:/a:b/c\n4:memory:/gone "
      "(deleted)\n3:name=memory:/x\nstrange\n0::/u\n2:pids:/cut");
  EXPECT_EQ(paths[static_cast<size_t>(Hierarchy::kCpu)], "/a:b/c");
  EXPECT_EQ(paths[static_cast<size_t>(Hierarchy::kCpuacct)], "/a:b/c");
  EXPECT_EQ(paths[static_cast<size_t>(Hierarchy::kMemory)], "");
  EXPECT_EQ(paths[static_cast<size_t>(Hierarchy::kUnified)], "/u");
  EXPECT_EQ(paths[static_cast<size_t>(Hierarchy::kPids)], "");
}

TEST(CgroupFiles, MountPointsAreUnescaped) {
  const auto mounts = ParseCgroupMounts(
      "1 2 0:1 /a\\040b /mnt/x\\134y rw opt:1 opt:2 - cgroup none rw,memory\n"
      "1 2 0:1 / /second rw - cgroup none rw,memory,pids\nshort\n - cgroup2\n");
  EXPECT_EQ(mounts[static_cast<size_t>(Hierarchy::kMemory)].point, "/mnt/x\\y");
  EXPECT_EQ(mounts[static_cast<size_t>(Hierarchy::kMemory)].root, "/a b");
  EXPECT_EQ(mounts[static_cast<size_t>(Hierarchy::kPids)].point, "/second");
  EXPECT_EQ(mounts[static_cast<size_t>(Hierarchy::kUnified)].point, "");
}

TEST(CgroupFiles, GroupsAreComparedByWholeNames) {
  EXPECT_EQ(CommonGroup("/a/b1/c", "/a/b2/c"), "/a");
  EXPECT_EQ(CommonGroup("/a/b", "/a/b/c"), "/a/b");
  EXPECT_EQ(CommonGroup("/a/bc", "/a/b"), "/a");
  EXPECT_EQ(CommonGroup("/a", "/b"), "/");
  EXPECT_EQ(GroupOfAllTasks("/s/task_0"), "/s");
  EXPECT_EQ(GroupOfAllTasks("/s/task_special"), "/s");
  EXPECT_EQ(GroupOfAllTasks("/s/task_12/pod/x"), "/s");
  EXPECT_EQ(GroupOfAllTasks("/s/task_x"), "/s/task_x");
  EXPECT_EQ(GroupOfAllTasks("/task_0"), "/");
}

TEST(CgroupFiles, ProcessorsAreCountedByTheirList) {
  EXPECT_EQ(CountCpus("0\n"), 1);
  EXPECT_EQ(CountCpus("0-3,8\n"), 5);
  EXPECT_EQ(CountCpus("0-127\n"), 128);
  for (const std::string_view text :
       {"", "\n", "0", "0-3,8", "3-0\n", "0-\n", "-3\n", "0,\n", ",1\n", "0--3\n", "0 1\n", "x\n",
        "0-99999999999999999999\n", "max\n"}) {
    EXPECT_THAT(CountCpus(text), IsNan()) << text;
  }
}

TEST(CgroupFiles, ProcessorTimeIsItsShareOfAPeriod) {
  EXPECT_DOUBLE_EQ(ParseCpuMax("50000 100000\n"), 0.5);
  for (const std::string_view text :
       {"", "max 100000\n", "50000\n", "50000 \n", "50000 0\n", "50000 100000", "50000 x\n",
        "-1 100000\n", "99999999999999999999 1\n", "5 99999999999999999999\n"}) {
    EXPECT_THAT(ParseCpuMax(text), IsNan()) << text;
  }
}

TEST(CgroupFiles, OnlySoManyDevicesAreKept) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("8:{} rbytes=1\n", i);
  std::vector<CgroupDevice> devices;
  ParseIoStat(text, devices);
  EXPECT_EQ(devices.size(), kMaxCgroupDevices);
}

}  // namespace
}  // namespace sonde::collect::collect_cgroup_test
