// How a step ended, by what its nodes say.
#include "daemon/head/record/end_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

namespace sonde::head::end_state_test {
namespace {

tree::Bye Ends(int wait_status, bool launcher_gone = false) {
  tree::Bye bye;
  bye.exit_status = wait_status;
  bye.launcher_gone = launcher_gone;
  return bye;
}

TEST(EndState, ComesFromTheWorstTask) {
  EXPECT_EQ(StateOf(Ends(0), 0), EndState::kCompleted);
  EXPECT_EQ(StateOf(Ends(3 << 8), 0), EndState::kFailed);
  EXPECT_EQ(StateOf(Ends(SIGSEGV), 0), EndState::kFailed);
  for (const int signal : {SIGTERM, SIGINT, SIGKILL}) {
    EXPECT_EQ(StateOf(Ends(signal), 0), EndState::kCancelled) << signal;
  }
  EXPECT_EQ(StateOf(Ends(0, true), 0), EndState::kLost) << "nobody told how they ended";
}

TEST(EndState, KillsForWantOfMemoryAreTheKernels) {
  EXPECT_EQ(StateOf(Ends(SIGKILL), 1), EndState::kOutOfMemory);
  EXPECT_EQ(StateOf(Ends(137 << 8), 1), EndState::kOutOfMemory) << "by a shell";
  EXPECT_EQ(StateOf(Ends(137 << 8), 0), EndState::kFailed);
  EXPECT_EQ(StateOf(Ends(SIGKILL), std::nan("")), EndState::kCancelled);
  // A child of a task was killed, and the task coped.
  EXPECT_EQ(StateOf(Ends(0), 1), EndState::kCompleted);
  EXPECT_EQ(StateOf(Ends(SIGTERM), 1), EndState::kCancelled);
}

}  // namespace
}  // namespace sonde::head::end_state_test
