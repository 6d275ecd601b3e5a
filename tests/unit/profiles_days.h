// An archive with a step on each of some days, and what tests ask of it: which jobs it has, and
// whether it is sound.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/upkeep/verify.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde {

inline constexpr Nanos kPatience = 60 * kSecond;
inline constexpr Nanos kDay = 86400 * kSecond;

class DaysTest : public testing::Test {
 protected:
  std::string root() const { return dir_.path() + "/archive"; }

  // Of the day `day`, by `user`: the job d0, d1 and so on.
  static JobDescription Job(int day, const std::string& user = "ada") {
    JobDescription job = TestJob("d" + std::to_string(day), kTestStart + day * kDay);
    job.user = user;
    return job;
  }
  static void FinishStep(const std::string& root, const JobDescription& job) {
    auto live = LiveArchive::Create(root, job);
    ASSERT_TRUE(live.ok()) << live.status().message();
    for (uint32_t node : {0u, 1u}) ASSERT_TRUE(PutNodeBlock(**live, node, 1, 0, 3).ok());
    Profile profile;
    profile.job = job;
    profile.job.state = EndState::kCompleted;
    profile.job.end = job.start + 3 * kSecond;
    profile.cost.stored_bytes = 10'000;
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    ASSERT_TRUE((*live)->Finish().ok());
  }
  void FinishStep(const JobDescription& job) const { FinishStep(root(), job); }
  OpenedArchive Open() const {
    auto archive = OpenArchive(root(), kPatience);
    EXPECT_TRUE(archive.ok()) << archive.status().message();
    EXPECT_EQ(archive->reader->note(), "");
    return *std::move(archive);
  }
  // The newest first.
  static std::vector<std::string> Jobs(const Archive& archive) {
    std::vector<std::string> jobs;
    const auto list = archive.List();
    EXPECT_TRUE(list.ok()) << list.status().message();
    for (const ProfileEntry& entry : *list) jobs.push_back(entry.job.id.job);
    return jobs;
  }
  void ExpectSound() const {
    const auto report = VerifyArchive(root(), nullptr);
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->ok()) << report->problems[0].what;
  }

  TempDir dir_{TempDir::Memory()};
};

}  // namespace sonde
