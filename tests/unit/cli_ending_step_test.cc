// Commands about a step whose head has closed its server and still stores the profile: srun may
// have ended by then, and what is stored is not all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>

#include "profiles/disk/archive_dir.h"
#include "profiles/live/live_archive.h"
#include "tests/unit/loopback.h"
#include "tests/unit/profiles_fixture.h"
#include "tests/unit/sonde_command.h"
#include "tests/unit/temp_dir.h"

namespace sonde::cli::cli_ending_step_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class EndingStep : public testing::Test {
 protected:
  void SetUp() override {
    auto live = LiveArchive::Create(scratch_.path() + "/archive", TestJob("4711"));
    ASSERT_TRUE(live.ok()) << live.status().message();
    live_ = *std::move(live);
    ASSERT_TRUE(live_->PutEndpoint({HostName(), "127.0.0.1", head_.port, "a-token"}).ok());
  }
  // Runs the command; the head ends when the command has asked it twice, without an answer.
  Outcome EndWhileAsked(const std::string& command) {
    auto outcome = std::async(std::launch::async,
                              [this, command] { return RunSonde(scratch_.path(), command); });
    for (int asked = 0; asked < 2;) {
      if (outcome.wait_for(std::chrono::seconds(0)) == std::future_status::ready) break;
      pollfd waiting{head_.fd.get(), POLLIN, 0};
      if (poll(&waiting, 1, /*ms=*/20) != 1) continue;
      const UniqueFd connection(accept(head_.fd.get(), nullptr, nullptr));
      ++asked;
    }
    head_.fd.Reset();
    // It takes its endpoint away first.
    for (const auto& step :
         std::filesystem::directory_iterator(scratch_.path() + "/archive/live")) {
      std::filesystem::remove(step.path() / "endpoint.json");
    }
    outcome.wait_for(std::chrono::milliseconds(100));  // meanwhile the command looks every 20 ms
    Profile profile;
    profile.job = TestJob("4711");
    profile.job.state = EndState::kCompleted;
    profile.job.end = profile.job.start + 10 * kSecond;
    profile.job.notes.emplace_back("the last word");
    EXPECT_TRUE(live_->PutProfile(profile).ok());
    EXPECT_TRUE(live_->Finish().ok());
    return outcome.get();
  }

  const TempDir scratch_;
  LoopbackListener head_{64};
  std::unique_ptr<LiveArchive> live_;
};

TEST_F(EndingStep, IsShownWhole) {
  const Outcome shown = EndWhileAsked("show 4711.0");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("the last word"));
  EXPECT_THAT(shown.err, Not(HasSubstr("is running")));
}

TEST_F(EndingStep, CanBeLookedAt) {
  const Outcome shown = EndWhileAsked("stragglers 4711.0");
  EXPECT_THAT(shown.err, Not(HasSubstr("is running"))) << shown.out;
}

TEST_F(EndingStep, HasItsAlarmsRead) {
  const Outcome shown = EndWhileAsked("alarms list 4711.0");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("no alarm was raised"));
}

}  // namespace
}  // namespace sonde::cli::cli_ending_step_test
