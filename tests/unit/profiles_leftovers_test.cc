// What processes that were killed have left in live/ is in nobody's way.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "profiles/archive/ingest_one.h"
#include "profiles/records/keys.h"
#include "tests/unit/profiles_days.h"

namespace sonde::profiles_leftovers_test {
namespace {

namespace fs = std::filesystem;

class LeftoversTest : public DaysTest {
 protected:
  // Half of a directory that was being made or deleted.
  void Leave(const std::string& name) const {
    fs::create_directories(root() + "/live/" + name + "/blocks");
    std::ofstream(root() + "/live/" + name + "/blocks/CURRENT") << "MANIFEST-000009\n";
  }
  static std::string Name() { return keys::ProfileKey(Job(0)); }
};

// The process had the number of this one: on another host, or before it.
TEST_F(LeftoversTest, AStepIsMadeBesideOneThatWasHalfMade) {
  Leave(".new-" + std::to_string(::getpid()) + "-" + Name());
  FinishStep(Job(0));
  const OpenedArchive archive = Open();
  EXPECT_EQ(Jobs(*archive.reader), std::vector<std::string>{"d0"});
}

TEST_F(LeftoversTest, AStepIsTakenInBesideOneThatWasHalfDeleted) {
  FinishStep(Job(0));
  Leave(".gone-" + Name());
  const Status taken = IngestLive(root(), root() + "/live/" + Name(), 0);
  EXPECT_TRUE(taken.ok()) << taken.message();
  EXPECT_FALSE(fs::exists(root() + "/live/" + Name()));
  const OpenedArchive archive = Open();
  EXPECT_EQ(Jobs(*archive.reader), std::vector<std::string>{"d0"});
  EXPECT_TRUE(NamesIn(root() + "/live").empty());
}

}  // namespace
}  // namespace sonde::profiles_leftovers_test
