// `sonde ls`: what it lists, in which order and form.
#include <gmock/gmock.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <sstream>

#include "tests/unit/cli_fixture.h"

namespace sonde::cli_list_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(CliTest, ListsTheNewestFirst) {
  for (int i = 0; i < 25; ++i) Finish(TestJob(std::to_string(100 + i), kTestStart + i * kSecond));
  const Outcome some = Sonde("ls");
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_EQ(std::count(some.out.begin(), some.out.end(), '\n'), 21);
  EXPECT_LT(some.out.find("124.0"), some.out.find("123.0"));
  EXPECT_THAT(some.out, AllOf(HasSubstr("heat"), HasSubstr("completed"), HasSubstr("75 %"),
                              HasSubstr("100 %"), Not(HasSubstr("\x1b")), Not(HasSubstr("104.0"))));
  EXPECT_THAT(Sonde("ls -n 2").out, Not(HasSubstr("122.0")));
  EXPECT_THAT(Sonde("ls --all").out, HasSubstr("100.0"));
}

TEST_F(CliTest, ListsWhatIsAskedForInTheOrderThatIsAskedFor) {
  for (int i = 0; i < 6; ++i) {
    JobDescription job = TestJob(std::to_string(100 + i), kTestStart + i * 3600 * kSecond);
    job.name = i % 2 == 0 ? "melt" : "heat";
    job.command = i < 3 ? "/opt/lammps/lmp -in x" : "python train.py";
    job.nodes[1].host = "n" + std::to_string(i);
    if (i == 4) job.tags["campaign"] = "winter";
    Finish(job);
  }
  const auto jobs = [&](const std::string& arguments) {
    const Outcome o = Sonde("ls --json " + arguments);
    EXPECT_EQ(o.code, 0) << o.err;
    std::string ids;
    const auto list = boost::json::parse(o.out);
    for (const auto& one : list.as_array()) {
      ids += std::string(one.at("job").at("job").as_string()) + " ";
    }
    return ids;
  };
  EXPECT_EQ(jobs("--cmd lammps"), "102 101 100 ");
  EXPECT_EQ(jobs("--name melt --limit 2"), "104 102 ");
  EXPECT_EQ(jobs("--node n5"), "105 ");
  EXPECT_EQ(jobs("--tag campaign=winter"), "104 ");
  EXPECT_EQ(jobs("--tag campaign --user ada --state completed"), "104 ");
  EXPECT_EQ(jobs("--state failed"), "");
  EXPECT_EQ(jobs("--search 'TRAIN heat'"), "105 103 ");
  EXPECT_EQ(jobs("--search n5 --level 2"), "105 ");
  EXPECT_EQ(jobs("--level 3"), "");
  // kTestStart is 2026-09-21 14:13:20 UTC.
  EXPECT_EQ(jobs("--since '2026-09-21 17:00' --until 2026-09-22"), "105 104 103 ");
  EXPECT_EQ(jobs("--sort cpu --reverse -n 1"), "105 ");
  EXPECT_EQ(jobs("--reverse -n 2"), "100 101 ");
  // Called by its script only where nobody named it.
  JobDescription unnamed = TestJob("200", kTestStart);
  unnamed.name = "python3";
  unnamed.command = "python3 -u train.py";
  Finish(unnamed);
  EXPECT_THAT(Sonde("ls --search 200").out, HasSubstr("train.py"));
  EXPECT_THAT(Sonde("show 200.0").out, HasSubstr("Sonde: 200.0 (train.py)"));
  EXPECT_THAT(Sonde("ls --sort size").out,
              AllOf(HasSubstr("stored"), HasSubstr("campaign=winter")));
  EXPECT_THAT(Sonde("ls --cmd fortran").err, HasSubstr("no profile is like that"));
}

TEST_F(CliTest, WrongFiltersSayWhatIsExpected) {
  const std::pair<const char*, const char*> cases[] = {
      {"--since never", "'never' is no time; expected so long ago (90m, 36h, 2d, 1w)"},
      {"--since 1d --until 2d", "--since 1d is later than --until 2d"},
      {"--state broken", "--state broken: expected one of running, completed, failed"},
      {"--sort colour", "--sort colour: expected one of start, time, cpu, use, mem, energy"},
      {"--level 5", "--level 5: expected 0 to 4"},
      {"--tag =x", "tag '=x': expected NAME=VALUE or NAME"}};
  for (const auto& [arguments, message] : cases) {
    const Outcome o = Sonde(std::string("ls ") + arguments);
    EXPECT_EQ(o.code, 2) << arguments;
    EXPECT_THAT(o.err, HasSubstr(message)) << arguments;
  }
}

TEST_F(CliTest, ListsAsJson) {
  Finish(TestJob());
  const Outcome o = Sonde("ls --json");
  const auto list = boost::json::parse(o.out).as_array();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].at("job").at("job"), "123");
  EXPECT_EQ(list[0].at("running"), false);
  EXPECT_EQ(list[0].at("summary").at("duration_seconds").to_number<double>(), 10);
}

TEST_F(CliTest, ListsFitTheTerminalAndKeepTheStepsWhole) {
  JobDescription job = TestJob("12345678", kTestStart);
  job.name = "lid-driven-cavity-at-high-reynolds-numbers";
  job.user = "firstname.lastname";
  job.tags["campaign"] = "winter-of-2026";
  Finish(job);
  for (const auto& [width, titles] : std::map<int, std::string>{
           {60, "step name state start (UTC) duration "},
           {80, "step name state nodes start (UTC) duration CPU "},
           {120, "step name state nodes start (UTC) duration CPU tags "},
           {200, "step name user state nodes level start (UTC) duration CPU coverage tags "}}) {
    const Outcome o = Sonde("ls", "COLUMNS=" + std::to_string(width));
    std::istringstream lines(o.out);
    std::string line;
    std::getline(lines, line);
    std::istringstream words(line);
    std::string found;
    for (std::string word; words >> word;) found += word + " ";
    EXPECT_EQ(found, titles) << width;
    EXPECT_LE(line.size(), width);
    std::getline(lines, line);
    EXPECT_LE(line.size(), width) << line;
    EXPECT_TRUE(line.starts_with("12345678.0  lid")) << line;
  }
}

}  // namespace
}  // namespace sonde::cli_list_test
