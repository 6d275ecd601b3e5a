#include "core/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>
#include <vector>

#include "tests/unit/temp_dir.h"

namespace sonde {
namespace {

using testing::MatchesRegex;

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { EXPECT_TRUE(log::Open("test", "", log::Level::kInfo).ok()); }

  std::vector<std::string> Lines() const {
    std::ifstream file(path_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  TempDir dir_;
  const std::string path_ = dir_.path() + "/log";
};

TEST_F(LogTest, ALineSaysWhenWhoAndHowBad) {
  ASSERT_TRUE(log::Open("sonded", path_, log::Level::kInfo).ok());
  log::Debug("not this");
  log::Warning("node {}: link lost", "n3");
  log::Error("and {}", 2);
  const std::string stamp = "20[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+[.][0-9][0-9][0-9]Z ";
  const std::string who = "sonded.[0-9]+. ";
  EXPECT_THAT(Lines(),
              testing::ElementsAre(MatchesRegex(stamp + who + "warning: node n3: link lost"),
                                   MatchesRegex(stamp + who + "error: and 2")));
  EXPECT_FALSE(log::Enabled(log::Level::kDebug));
}

TEST_F(LogTest, AFileIsThePersonsOwnAndGrows) {
  const mode_t mask = umask(0);
  for (const char* line : {"first", "second"}) {
    ASSERT_TRUE(log::Open("sonded", path_, log::Level::kDebug).ok());
    log::Debug("{}", line);
  }
  umask(mask);
  EXPECT_EQ(Lines().size(), 2u);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(LogTest, LinesOfSeveralThreadsStayWhole) {
  ASSERT_TRUE(log::Open("sonded", path_, log::Level::kInfo).ok());
  const std::string text(2000, 'x');
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) log::Info("{}", text);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = Lines();
  EXPECT_EQ(lines.size(), 200u);
  for (const std::string& line : lines) EXPECT_TRUE(line.ends_with("info: " + text)) << line;
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsAnError) {
  const Status status = log::Open("sonded", dir_.path() + "/none/log", log::Level::kInfo);
  EXPECT_EQ(status.code(), Code::kNotFound) << status.message();
}

}  // namespace
}  // namespace sonde
