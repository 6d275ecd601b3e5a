// The command as its users run it: a process with an archive of its own.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "profiles/disk/archive_dir.h"
#include "profiles/upkeep/lock.h"
#include "tests/unit/cli_fixture.h"
#include "tests/unit/loopback.h"
#include "tests/unit/web_fake_source.h"
#include "web/server/server.h"

namespace sonde::cli_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(CliTest, AJobIsShownWithItsSteps) {
  for (int step = 0; step < 3; ++step) {
    JobDescription job = TestJob("77", kTestStart + step * 60 * kSecond);
    job.id.step = std::to_string(step);
    Finish(job);
  }
  const Outcome job = Sonde("show 77");
  EXPECT_EQ(job.code, 0) << job.err;
  EXPECT_THAT(job.out, AllOf(HasSubstr("Job 77: 3 steps (3 completed)"), HasSubstr("CPU time"),
                             HasSubstr("77.0"), HasSubstr("77.1"), HasSubstr("77.2 (heat)")));
  EXPECT_THAT(Sonde("show 77.1").out, Not(HasSubstr("3 steps")));
  const auto json = boost::json::parse(Sonde("show 77 --json").out);
  ASSERT_EQ(json.at("steps").as_array().size(), 3u);
  EXPECT_EQ(json.at("steps").at(2).at("step"), "0");
  EXPECT_EQ(json.at("steps").at(2).at("summary").at("duration_seconds").to_number<double>(), 10);
  EXPECT_EQ(boost::json::parse(Sonde("show 77.1 --json").out).as_object().count("steps"), 0u);
}

TEST_F(CliTest, FindsTextsInDescriptions) {
  JobDescription job = TestJob("100");
  job.command = "./solve --grid fine";
  job.environment = {{"OMP_NUM_THREADS", "16"}};
  Finish(job);
  Finish(TestJob("101", kTestStart + kSecond));
  EXPECT_EQ(Sonde("grep 'gr.d fine'").out, "100.0  command: ./solve --grid fine\n");
  EXPECT_EQ(Sonde("grep OMP_.*=16").out, "100.0  environment: OMP_NUM_THREADS=16\n");
  EXPECT_EQ(Sonde("grep -i 'GRID' --name heat").code, 0);
  EXPECT_EQ(Sonde("grep GRID").code, 3);
  const auto json = boost::json::parse(Sonde("grep '^n2$' --json -n 1").out).as_array();
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0].at("job"), "101");
  EXPECT_EQ(json[0].at("matches").at(0).at("field"), "node");
  const Outcome wrong = Sonde("grep '(a'");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("'(a' is no regular expression of RE2"));
}

TEST_F(CliTest, TagsAreShownChangedAndTakenAway) {
  Finish(TestJob("100"));
  EXPECT_EQ(Sonde("tag 100").out, "100.0\n");
  EXPECT_EQ(Sonde("tag 100 campaign=winter keep").out, "100.0 campaign=winter keep\n");
  EXPECT_EQ(Sonde("tag 100.0 --remove campaign --json").out,
            "[{\"key\":\"frost.100.0.1790000000000000000\",\"job\":\"100\",\"step\":\"0\","
            "\"tags\":{\"keep\":\"\"}}]\n");
  const Outcome wrong = Sonde("tag 100 a,b=c");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("expected NAME=VALUE or NAME"));
  EXPECT_EQ(Sonde("tag 999 keep").code, 3);
}

TEST_F(CliTest, PrunesAndCompacts) {
  for (int i = 0; i < 4; ++i) Finish(TestJob(std::to_string(100 + i), kTestStart + i * kSecond));
  const Outcome none = Sonde("archive prune", "SONDE_KEEP_AGE=0");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("there are no limits"), HasSubstr("keep_age")));
  ASSERT_EQ(Sonde("tag 100 keep").code, 0);
  const Outcome dry = Sonde("archive prune --profiles 2 --dry-run");
  EXPECT_THAT(dry.out,
              AllOf(HasSubstr("101.0"), HasSubstr("more than 2 profiles"),
                    HasSubstr("would be deleted"), HasSubstr("1 exceed a limit and stay")));
  const auto json = boost::json::parse(Sonde("archive prune --profiles 2 --json").out);
  EXPECT_EQ(json.at("profiles"), 2);
  EXPECT_EQ(json.at("pruned").at(0).at("why"), "more than 2 profiles");
  // sonde.conf's limits are applied to the user's own archive by any command that takes a step in,
  // and by none that only reads.
  EXPECT_EQ(Sonde("ls", "SONDE_KEEP_PROFILES=1").code, 0);
  EXPECT_EQ(boost::json::parse(Sonde("ls --json").out).as_array().size(), 2u);
  Finish(TestJob("104", kTestStart + 4 * kSecond));
  EXPECT_EQ(Sonde("ls", "SONDE_KEEP_PROFILES=1").code, 0);
  const auto left = boost::json::parse(Sonde("ls --json").out).as_array();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].at("job").at("job"), "100");
  EXPECT_THAT(Sonde("archive compact").out, HasSubstr("db/ took"));
  EXPECT_EQ(Sonde("archive verify").code, 0);
  EXPECT_EQ(boost::json::parse(Sonde("archive stats --json").out).at("pinned"), 1);
  EXPECT_THAT(Sonde("archive prune --age soon").err, HasSubstr("'soon' is no duration"));
}

TEST_F(CliTest, WhatOnlyReadsAsksNobodyForTheArchive) {
  Finish(TestJob("100"));
  ASSERT_EQ(Sonde("ls").code, 0);
  const auto lock = ArchiveLock::Acquire(ArchivePaths(root()), 0);
  ASSERT_TRUE(lock.ok());
  for (const char* command :
       {"show 100", "ls", "grep heat", "diff 100 100", "archive stats", "archive verify",
        "export 100 --to -", "tag 100", "archive prune --profiles 1 --dry-run"}) {
    const Outcome o = Sonde(command);
    EXPECT_EQ(o.code, 0) << command << ": " << o.err;
    EXPECT_THAT(o.err, Not(HasSubstr("has the archive open"))) << command;
  }
  EXPECT_THAT(Sonde("tag 100 keep").err, HasSubstr("has the archive open"));
}

TEST_F(CliTest, AnEmptyArchiveIsNoFailure) {
  const Outcome o = Sonde("ls");
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.out, "");
  EXPECT_THAT(o.err, AllOf(HasSubstr("no archive"), HasSubstr("--telemetry-level=2")));
}

TEST_F(CliTest, TellsWhatTheArchiveHolds) {
  Finish(TestJob("123"));
  Finish(TestJob("124", kTestStart + kSecond));
  const auto running = Start(TestJob("125", kTestStart + 2 * kSecond));
  const Outcome o = Sonde("archive stats");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("3 profiles, 1 running"), HasSubstr(" in db/")));
  const auto json = boost::json::parse(Sonde("archive stats --json").out);
  EXPECT_EQ(json.at("profiles"), 3);
  EXPECT_EQ(json.at("running"), 1);
  EXPECT_EQ(json.at("waiting"), 0);
  EXPECT_EQ(json.at("oldest"), kTestStart);
  EXPECT_EQ(json.at("newest"), kTestStart + 2 * kSecond);
  EXPECT_GT(json.at("db_bytes").to_number<uint64_t>(), 1000u);
}

TEST_F(CliTest, AnArchiveIsVerifiedAndRepaired) {
  Finish(TestJob("123"));
  Finish(TestJob("124", kTestStart + kSecond));
  ASSERT_EQ(Sonde("ls").code, 0);
  const Outcome good = Sonde("archive verify");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, AllOf(HasSubstr("2 profiles, 4 blocks"), HasSubstr("can be read")));

  std::filesystem::remove(root() + "/db/CURRENT");
  const Outcome bad = Sonde("archive verify --json");
  EXPECT_EQ(bad.code, 1);
  const auto found = boost::json::parse(bad.out);
  EXPECT_EQ(found.at("ok"), false);
  EXPECT_THAT(std::string(found.at("problems").at(0).at("what").as_string()),
              HasSubstr("CURRENT is gone"));
  EXPECT_THAT(Sonde("ls").err, HasSubstr("sonde archive repair"));

  const Outcome repaired = Sonde("archive repair");
  EXPECT_EQ(repaired.code, 0) << repaired.err;
  EXPECT_THAT(repaired.out, AllOf(HasSubstr("2 profiles with 4 blocks"),
                                  HasSubstr("kept in " + root() + "/db.damaged-1")));
  EXPECT_EQ(boost::json::parse(Sonde("archive verify --json").out).at("ok"), true);
  EXPECT_THAT(Sonde("archive repair --discard").out, HasSubstr("deleted db.damaged-1"));
  EXPECT_FALSE(std::filesystem::exists(root() + "/db.damaged-1"));
  EXPECT_EQ(Sonde("ls").err, "");
}

TEST_F(CliTest, TheArchiveWantsASubcommandThatItKnows) {
  EXPECT_EQ(Sonde("archive").code, 2);
  EXPECT_THAT(Sonde("archive").err, HasSubstr("subcommand is required"));
  EXPECT_EQ(Sonde("archive dust").code, 2);
}

TEST_F(CliTest, ShowsTheReportWithATableOfNodes) {
  Finish(TestJob());
  const Outcome o = Sonde("show 123");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("Sonde: 123.0 (heat) on frost: completed"),
                           HasSubstr("75 % of 4 tasks"), HasSubstr("*  n1"),
                           HasSubstr("100 %: 20 of 20 node samples")));
}

TEST_F(CliTest, ShowsExactValuesAsJson) {
  Finish(TestJob());
  const Outcome o = Sonde("show 123.0 --json");
  EXPECT_THAT(o.out, HasSubstr("\"cpu_seconds\":30.000000000000004"));
  const auto json = boost::json::parse(o.out);
  ASSERT_EQ(json.at("nodes").as_array().size(), 2u);
  EXPECT_EQ(json.at("nodes").at(1).at("host"), "n2");
  EXPECT_EQ(json.at("nodes").at(1).at("cpu_seconds").to_number<double>(), TestCpu(10, 1));
  EXPECT_TRUE(json.at("nodes").at(1).at("disk_read_bytes").is_null());
  EXPECT_EQ(json.at("profile").at("job").at("state"), "completed");
}

TEST_F(CliTest, SaysHowToFindAJobThatItDoesNotKnow) {
  Finish(TestJob());
  for (const char* command : {"show 999", "show 123.7", "url 999"}) {
    const Outcome o = Sonde(command);
    EXPECT_EQ(o.code, 3) << command;
    EXPECT_EQ(o.out, "");
    EXPECT_THAT(o.err, HasSubstr("'sonde ls' lists")) << command;
  }
}

TEST_F(CliTest, FindsTheTaskOfAnArray) {
  JobDescription job = TestJob("130");
  job.array_job = "120";
  job.array_task = "7";
  Finish(job);
  EXPECT_THAT(Sonde("show 120_7").out, HasSubstr("Sonde: 130.0"));
  EXPECT_THAT(Sonde("show 120_7.0").out, HasSubstr("Sonde: 130.0"));
  EXPECT_EQ(Sonde("show 120_8").code, 3);
}

TEST_F(CliTest, OfARequeuedStepEveryRunCanBeSeen) {
  JobDescription job = TestJob();
  Finish(job);
  job.name = "second";
  job.start += 60 * kSecond;
  Finish(job);
  const Outcome newest = Sonde("show 123.0");
  EXPECT_THAT(newest.out, HasSubstr("(second)"));
  EXPECT_THAT(newest.err, HasSubstr("ran 2 times"));
  EXPECT_THAT(Sonde("show 123.0 --run 2").out, HasSubstr("(heat)"));
  EXPECT_EQ(Sonde("show 123.0 --run 3").code, 3);
}

TEST_F(CliTest, WrongUsageHasItsOwnExitCode) {
  for (const char* arguments : {"", "fly", "show --what", "ls -n 0", "ls --what"}) {
    EXPECT_EQ(Sonde(arguments).code, 2) << arguments;
  }
  EXPECT_EQ(Sonde("--help").code, 0);
  EXPECT_THAT(Sonde("--version").out, HasSubstr("sonde "));
}

TEST_F(CliTest, AnArchiveThatIsAFileIsOneClearMessage) {
  std::ofstream(root()) << "x";
  const Outcome o = Sonde("ls");
  EXPECT_EQ(o.code, 1);
  EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("is not a directory"), HasSubstr("SONDE_ARCHIVE")));
}

// The head of a running step with that profile.
class Head final : public web::FakeSource {
 public:
  explicit Head(Profile profile)
      : FakeSource(Clock::System().Now()), profile_(std::move(profile)) {}
  void GetProfile(const JobStep&, ProfileCallback callback) const override { callback(profile_); }

  static std::unique_ptr<web::Server> Serve(Profile profile, const std::string& token) {
    web::Server::Options options;
    options.port = 0;
    options.token = token;
    auto server = web::Server::Start(options, std::make_shared<Head>(std::move(profile)));
    EXPECT_TRUE(server.ok()) << server.status().message();
    return *std::move(server);
  }

 private:
  const Profile profile_;
};

TEST_F(CliTest, OfARunningStepTheHeadIsAsked) {
  auto live = Start(TestJob());
  Profile profile;
  profile.job = TestJob();
  profile.job.name = "from-the-head";
  const auto serve = [&](const std::string& token) {
    auto head = Head::Serve(profile, token);
    EXPECT_TRUE(live->PutEndpoint({HostName(), "127.0.0.1", head->port(), "s3cret"}).ok());
    return head;
  };
  {
    const auto head = serve("s3cret");
    EXPECT_THAT(Sonde("show 123").out, HasSubstr("(from-the-head) on frost: running"));
  }
  {
    const auto another = serve("another");
    const Outcome stored = Sonde("show 123");
    EXPECT_EQ(stored.code, 0);
    EXPECT_THAT(stored.err, HasSubstr("does not prove to be the step's head"));
    EXPECT_THAT(stored.out, HasSubstr("(heat) on frost: running"));
  }
  ASSERT_TRUE(live->PutEndpoint({"login1", "127.0.0.1", 4242, "s3cret"}).ok());
  const Outcome elsewhere = Sonde("show 123");
  EXPECT_EQ(elsewhere.code, 0);
  EXPECT_THAT(elsewhere.err,
              HasSubstr("the step answers programs on login1 only: run this there (ssh login1)"));
  EXPECT_THAT(elsewhere.out, HasSubstr("(heat) on frost: running"));
}

TEST_F(CliTest, WithoutItsHeadARunningStepShowsWhatItStored) {
  auto live = Start(TestJob());
  ASSERT_TRUE(PutReducedBlock(*live, 1, 0, 10).ok());
  const uint16_t port = LoopbackListener(1).port;  // nobody listens there any more
  ASSERT_TRUE(live->PutEndpoint({HostName(), "127.0.0.1", port, "s3cret"}).ok());
  const Outcome o = Sonde("show 123");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.err, HasSubstr("stored so far"));
  EXPECT_THAT(o.out, AllOf(HasSubstr("running"), HasSubstr("30 s of CPU time"),
                           HasSubstr("20 of 20 node samples")));
  EXPECT_THAT(Sonde("ls").out, HasSubstr("running"));
}

TEST_F(CliTest, SaysWhereARunningStepIsWatched) {
  auto live = Start(TestJob());
  const Outcome none = Sonde("url 123");
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("serves no pages"));
  ASSERT_TRUE(live->PutEndpoint({"login1", "127.0.0.1", 4243, "s3cret"}).ok());
  const Outcome o = Sonde("url 123.0");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, AllOf(HasSubstr("http://localhost:4243/#token=s3cret\n"),
                           HasSubstr("ssh -NL 4243:localhost:4243 "), HasSubstr("@login1\n")));
  live.reset();
  const Outcome over = Sonde("url 123");
  EXPECT_EQ(over.code, 3);
  EXPECT_THAT(over.err, AllOf(HasSubstr("is not running any more"), HasSubstr("sonde serve")));
}

TEST_F(CliTest, RunLeavesTheCommandItsOptions) {
  // Without a daemon the command runs all the same.
  const std::string alone = "SONDE_SONDED=/nonexistent";
  const std::map<std::string, std::string> expected = {
      {"run -q echo -n 2 --level 7 -- x", "2 --level 7 -- x"},
      {"run --level 1 --io --period=1s echo -q", "-q\n"},
      {"run -q -- echo -q", "-q\n"},
      {"--archive run run printf %s --help", "--help"},
  };
  for (const auto& [arguments, output] : expected) {
    const Outcome outcome = Sonde(arguments, alone);
    EXPECT_EQ(outcome.code, 0) << arguments;
    EXPECT_EQ(outcome.out, output) << arguments;
  }
  EXPECT_EQ(Sonde("run -q", alone).code, 2);
  EXPECT_EQ(Sonde("run --bogus echo", alone).code, 2);
}

// A site that watches everybody fills all homes.
TEST_F(CliTest, DoctorWarnsOfProfilesThatNobodyAskedForAndNothingTakesAway) {
  const std::string conf = dir_.path() + "/sonde.conf";
  const auto retention = [&](const std::string& text) {
    std::ofstream(conf) << text;
    const std::string told = Sonde("--config '" + conf + "' doctor").out;
    const size_t at = told.find(" retention ");
    if (at == std::string::npos) return "nothing in " + told;
    const size_t begin = told.rfind('\n', at) + 1;
    return told.substr(begin, told.find('\n', at) - begin);
  };
  EXPECT_THAT(retention("default_level = 1\n"),
              testing::MatchesRegex("warning +retention +default_level .*set keep_age.*"));
  EXPECT_THAT(retention("[partition = bench]\ndefault_level = 2\n"), HasSubstr("warning"));
  EXPECT_THAT(retention("default_level = 1\nkeep_user_size = 1G\n"), HasSubstr("ok "));
  EXPECT_THAT(retention("default_level = 0\nmax_level = 2\n"), HasSubstr("ok "));
}

}  // namespace
}  // namespace sonde::cli_test
