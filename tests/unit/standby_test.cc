// The acting heads that a node starts leave nothing behind.
#include "daemon/node/links/standby.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/unit/temp_dir.h"

namespace sonde::node::standby_test {
namespace {

class StandbyTest : public testing::Test {
 protected:
  // Stands in for sonded-head: says who it is and stays.
  StandbyTest() {
    std::ofstream(program_) << "#!/bin/sh\necho $$ >> " << said_ << "\nexec sleep 1000\n";
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
  }

  // Starts one and gives its process.
  pid_t Act() {
    EXPECT_TRUE(standby_.Listen("127.0.0.1").ok());
    EXPECT_TRUE(standby_.Act(kSecond, 0, 3).ok());
    pid_t pid = 0;
    RunUntil([&] {
      std::ifstream said(said_);
      for (pid_t one; said >> one;) pid = one;
      return said.eof() && pid != 0 && pid != last_;
    });
    return last_ = pid;
  }
  template <typename F>
  void RunUntil(F&& is_so) {
    const Nanos limit = Clock::System().Monotonic() + 20 * kSecond;
    std::function<void()> look = [&] {
      if (is_so() || Clock::System().Monotonic() > limit) return loop_.Stop();
      loop_.After(kMillisecond, look);
    };
    loop_.Post(look);
    loop_.Run();
    EXPECT_TRUE(is_so());
  }
  // Neither alive nor waited for.
  static bool IsGone(pid_t pid) { return kill(pid, 0) != 0; }

  TempDir dir_;
  const std::string program_ = dir_.path() + "/head";
  const std::string said_ = dir_.path() + "/said";
  Loop loop_;
  LaunchMessage launch_;
  Standby standby_{loop_, launch_, "", HeldProgram::ByPath(program_)};
  pid_t last_ = 0;
};

TEST_F(StandbyTest, OneThatIsGivenUpIsNotLeftBehind) {
  const pid_t first = Act();
  kill(first, SIGSTOP);
  const pid_t second = Act();
  RunUntil([&] { return IsGone(first); });
  EXPECT_FALSE(IsGone(second));
}

TEST_F(StandbyTest, AllAreGoneBeforeTheNodeLeaves) {
  const pid_t first = Act();
  kill(first, SIGKILL);
  const pid_t second = Act();
  bool left = false;
  standby_.Leave(Clock::System().Monotonic() + 10 * kMillisecond, [&] { left = true; });
  RunUntil([&] { return left; });
  EXPECT_TRUE(IsGone(first));
  EXPECT_TRUE(IsGone(second));
}

}  // namespace
}  // namespace sonde::node::standby_test
