// An archive of its own and the command over it, as its users run it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "profiles/archive/archive.h"
#include "profiles/live/live_archive.h"
#include "tests/unit/profiles_fixture.h"
#include "tests/unit/sonde_command.h"

namespace sonde {

class CliTest : public testing::Test {
 protected:
  Outcome Sonde(const std::string& arguments, const std::string& environment = "") {
    return RunSonde(dir_.path(), arguments, environment);
  }
  std::unique_ptr<LiveArchive> Start(const JobDescription& job) {
    auto live = LiveArchive::Create(root(), job);
    EXPECT_TRUE(live.ok()) << live.status().message();
    return *std::move(live);
  }
  void Finish(const JobDescription& job) {
    auto live = Start(job);
    for (uint32_t node : {0u, 1u}) ASSERT_TRUE(PutNodeBlock(*live, node, 1, 0, 10).ok());
    Profile profile;
    profile.job = job;
    profile.job.state = EndState::kCompleted;
    profile.job.end = job.start + 10 * kSecond;
    profile.job.coverage = {20, 20};
    FootprintEntry cpu;
    cpu.series = TaskSeries()[0];
    cpu.ticks = 10;
    cpu.last = 30.000000000000004;
    profile.footprint.push_back(cpu);
    ASSERT_TRUE(live->PutProfile(profile).ok());
    ASSERT_TRUE(live->Finish().ok());
  }
  std::string root() const { return dir_.path() + "/archive"; }

  TempDir dir_;
};

}  // namespace sonde
