// Which tasks count as suspended, from files as kernels of both versions of control groups have
// them.
#include "daemon/node/launcher/suspension.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "launcher/cgroup_path.h"
#include "tests/unit/temp_dir.h"

namespace sonde::node::suspension_test {
namespace {

class SuspensionTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = directory_.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void WriteTask(int pid, char state, const std::string& cgroup) const {
    const std::string name = "proc/" + std::to_string(pid);
    Write(name + "/stat", std::to_string(pid) + " (app) " + state +
                              " 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 7 4096 1");
    Write(name + "/cgroup", cgroup);
  }
  Suspension Make() const {
    return Suspension({directory_.path() + "/proc", directory_.path() + "/cgroup"});
  }

  TempDir directory_;
};

constexpr const char* kUnified = "0::/slurm/job_1/step_0/user/task_0\n";
constexpr const char* kEvents = "cgroup/slurm/job_1/step_0/user/task_0/cgroup.events";

TEST_F(SuspensionTest, WithoutTasksThereIsNone) { EXPECT_FALSE(Make().Holds()); }

TEST_F(SuspensionTest, FrozenByTheUnifiedHierarchy) {
  WriteTask(100, 'S', kUnified);
  Write(kEvents, "populated 1\nfrozen 0\n");
  Suspension suspension = Make();
  suspension.Add(0, 100);
  EXPECT_FALSE(suspension.Holds());
  Write(kEvents, "populated 1\nfrozen 1\n");
  EXPECT_TRUE(suspension.Holds());
}

// As on a machine that has both: a group of version 2 that freezes nothing.
TEST_F(SuspensionTest, FrozenByVersionOne) {
  WriteTask(100, 'D',
            "9:memory:/slurm/job_1\n8:freezer:/slurm/uid_7/job_1/step_0\n0::/user.slice\n");
  const std::string state = "cgroup/freezer/slurm/uid_7/job_1/step_0/freezer.state";
  Write(state, "FREEZING\n");
  Suspension suspension = Make();
  suspension.Add(0, 100);
  EXPECT_FALSE(suspension.Holds());
  Write(state, "FROZEN\n");
  EXPECT_TRUE(suspension.Holds());
}

// The step's node has a living task: the head may be dead, and the step goes on.
TEST_F(SuspensionTest, EveryTaskMustBe) {
  WriteTask(100, 'T', "");
  WriteTask(101, 'R', "");
  Suspension suspension = Make();
  suspension.Add(0, 100);
  EXPECT_TRUE(suspension.Holds());
  suspension.Add(1, 101);
  EXPECT_FALSE(suspension.Holds());
  suspension.Ended(1);
  EXPECT_TRUE(suspension.Holds());
  suspension.Ended(0);
  EXPECT_FALSE(suspension.Holds());
}

TEST_F(SuspensionTest, ATaskThatIsGoneIsNot) {
  Suspension suspension = Make();
  suspension.Add(0, 100);
  EXPECT_FALSE(suspension.Holds());
}

TEST(CgroupPathTest, FindsTheLineOfAController) {
  const std::string text = "5:cpu,cpuacct:/a:b\n4:freezer:/f\nnonsense\n0::/u\n";
  EXPECT_EQ(launch::CgroupPath(text, "cpuacct"), "/a:b");
  EXPECT_EQ(launch::CgroupPath(text, "freezer"), "/f");
  EXPECT_EQ(launch::CgroupPath(text, ""), "/u");
  EXPECT_EQ(launch::CgroupPath(text, "acct"), "");
  EXPECT_EQ(launch::CgroupPath("", ""), "");
}

}  // namespace
}  // namespace sonde::node::suspension_test
