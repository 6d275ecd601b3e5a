// Which runs `sonde diff` puts beside each other, and which tell the noise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/archive/open_archive.h"
#include "profiles/compare/load.h"
#include "profiles/live/live_archive.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::cli::cli_diff_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Nanos kPatience = 60 * kSecond;
constexpr Nanos kHour = 3600 * kSecond;

class DiffLoad : public testing::Test {
 protected:
  // A step that began in the hour `hour`.
  LiveArchive* Begin(int hour, const std::string& command, const std::string& name = "job",
                     uint32_t tasks = 4) {
    job_ = TestJob(std::to_string(hour), kTestStart + hour * kHour);
    job_.command = command;
    job_.name = name;
    job_.expected_tasks = tasks;
    auto live = LiveArchive::Create(root(), job_);
    EXPECT_TRUE(live.ok()) << live.status().message();
    live_ = *std::move(live);
    return live_.get();
  }
  void Record(int hour, const std::string& command, const std::string& name = "job",
              uint32_t tasks = 4, EndState state = EndState::kCompleted) {
    LiveArchive* live = Begin(hour, command, name, tasks);
    ASSERT_TRUE(PutReducedBlock(*live, 1, 0, 3).ok());
    Profile profile;
    profile.job = job_;
    profile.job.state = state;
    profile.job.end = job_.start + 3 * kSecond;
    ASSERT_TRUE(live->PutProfile(profile).ok());
    ASSERT_TRUE(live->Finish().ok());
  }
  Result<Difference> Load(const DiffQuestion& question) {
    const auto archive = OpenArchive(root(), kPatience);
    EXPECT_TRUE(archive.ok());
    return LoadDifference(*archive->reader, question, nullptr);
  }
  // The jobs of each group.
  std::vector<std::string> Groups(const DiffQuestion& question) {
    const auto diff = Load(question);
    EXPECT_TRUE(diff.ok()) << diff.status().message();
    std::vector<std::string> groups;
    if (!diff.ok()) return groups;
    besides_ = diff->besides;
    for (const auto& group : diff->groups) {
      std::string jobs = group.label + ":";
      for (const ProfileEntry& entry : group.entries) jobs += " " + entry.job.id.job;
      groups.push_back(jobs);
    }
    return groups;
  }
  std::string root() const { return dir_.path() + "/archive"; }

  TempDir dir_{TempDir::Memory()};
  JobDescription job_;
  std::unique_ptr<LiveArchive> live_;
  size_t besides_ = 0;
};

TEST_F(DiffLoad, TheLastRunsOfACommandAreFoundByCommandAndByName) {
  Record(1, "/opt/lammps -in a");
  Record(2, "/opt/gromacs", "lammps-like");
  Record(3, "/opt/namd");
  Record(4, "/opt/lammps -in b");
  Record(5, "/opt/lammps -in c", "lammps");
  const LiveArchive* running = Begin(6, "/opt/lammps -in d");
  ASSERT_NE(running, nullptr);
  // The newest of them against those before.
  EXPECT_THAT(Groups({{}, "lammps", 10, ""}), ElementsAre("A: 4 2 1", "B: 5"));
  EXPECT_THAT(Groups({{}, "lammps", 2, ""}), ElementsAre("A: 4 2", "B: 5"));
  // A run that is named is not compared with itself.
  EXPECT_THAT(Groups({{"4.0"}, "lammps", 10, ""}), ElementsAre("A: 5 2 1", "B: 4"));
  EXPECT_THAT(std::string(Load({{}, "amber", 10, ""}).status().message()),
              HasSubstr("no runs of 'amber'"));
  EXPECT_EQ(Load({{"6.0", "4.0"}, "", 10, ""}).status().code(), Code::kNotFound) << "it runs";
}

TEST_F(DiffLoad, NoiseIsToldByRunsThatAreAlike) {
  const std::string command = "./app " + std::string(600, 'x');  // longer than a card has
  for (int hour : {1, 2, 3, 4}) Record(hour, command);
  Record(5, command, "job", 8);
  Record(6, command, "job", 4, EndState::kFailed);
  Record(7, "./app other");
  EXPECT_THAT(Groups({{"1.0", "2.0"}, "", 10, ""}), ElementsAre("A: 1", "B: 2"));
  EXPECT_EQ(besides_, 2u) << "3 and 4";
  // Groups that tell it themselves need no others.
  EXPECT_THAT(Groups({{"1.0,2.0,3.0", "4.0,5.0"}, "", 10, ""}), ElementsAre("A: 1 2 3", "B: 4 5"));
  EXPECT_EQ(besides_, 0u);
}

TEST_F(DiffLoad, AQuestionThatNamesTooFewOrTooManyIsRefused) {
  EXPECT_EQ(Load({{"1.0"}, "", 10, ""}).status().code(), Code::kInvalid);
  EXPECT_EQ(Load({std::vector<std::string>(kMostGroups + 1, "1.0"), "", 10, ""}).status().code(),
            Code::kInvalid);
  EXPECT_EQ(*ParseAlign("phase:solve"), "solve");
  EXPECT_EQ(*ParseAlign("start"), "");
  EXPECT_EQ(ParseAlign("end").status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace sonde::cli::cli_diff_test
