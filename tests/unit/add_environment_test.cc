// Variables that a process gets while others of its threads read the environment.
#include "daemon/add_environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace sonde::add_environment_test {
namespace {

TEST(AddToEnvironment, ReplacesWhatIsThereAndKeepsTheRest) {
  setenv("SONDE_TEST_KEPT", "kept", 1);
  setenv("SONDE_TEST_OLD", "old", 1);
  {
    const std::vector<std::string> entries = {"SONDE_TEST_OLD=new", "SONDE_TEST_MORE="};
    AddToEnvironment(entries);
  }
  EXPECT_STREQ(getenv("SONDE_TEST_KEPT"), "kept");
  EXPECT_STREQ(getenv("SONDE_TEST_OLD"), "new");
  EXPECT_STREQ(getenv("SONDE_TEST_MORE"), "");
  size_t times = 0;
  for (char** at = environ; *at != nullptr; ++at) {
    if (std::string(*at).starts_with("SONDE_TEST_OLD=")) ++times;
  }
  EXPECT_EQ(times, 1u);
  setenv("SONDE_TEST_MORE", "later", 1);
  EXPECT_STREQ(getenv("SONDE_TEST_MORE"), "later");
}

// With setenv() sanitizers find here that freed memory is read.
TEST(AddToEnvironment, HarmsNobodyWhoReads) {
  setenv("SONDE_TEST_LAST", "here", 1);
  std::atomic<bool> over = false, missed = false;
  std::thread reader([&] {
    while (!over) {
      if (getenv("SONDE_TEST_LAST") == nullptr) missed = true;
    }
  });
  for (int i = 0; i < 300; ++i) {
    const std::vector<std::string> one = {"SONDE_TEST_" + std::to_string(i) + "=" +
                                          std::string(100, 'x')};
    AddToEnvironment(one);
  }
  over = true;
  reader.join();
  EXPECT_FALSE(missed);
}

}  // namespace
}  // namespace sonde::add_environment_test
