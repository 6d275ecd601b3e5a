#include "core/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "core/unique_fd.h"
#include "tests/unit/temp_dir.h"

namespace sonde::log_test {
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

// Names of metrics, of jobs and of files are other people's.
TEST_F(LogTest, AMessageIsOneLineWhateverIsInIt) {
  ASSERT_TRUE(log::Open("sonded", path_, log::Level::kInfo).ok());
  log::Warning("metric {}", "a\n2026-01-01T00:00:00.000Z sonded[1] error: forged \033[31m");
  log::Info("{}", "J\xc3\xbcrgen");
  EXPECT_THAT(Lines(), testing::ElementsAre(testing::EndsWith("Z sonded[1] error: forged ?[31m"),
                                            testing::EndsWith("info: J\xc3\xbcrgen")));
}

// A log's directory is often one in which everybody may create files.
TEST_F(LogTest, AFileThatSomebodyElseMayHavePutThereIsNotWrittenTo) {
  const std::string own = dir_.path() + "/own";
  std::ofstream(own) << "mine\n";
  ASSERT_EQ(symlink(own.c_str(), path_.c_str()), 0);
  EXPECT_FALSE(log::Open("sonded", path_, log::Level::kInfo).ok()) << "a link";
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(link(own.c_str(), path_.c_str()), 0);
  EXPECT_EQ(log::Open("sonded", path_, log::Level::kInfo).code(), Code::kPermission) << "a name";
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(log::Open("sonded", path_, log::Level::kInfo).ok()) << "a FIFO without a reader";
  const UniqueFd reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(log::Open("sonded", path_, log::Level::kInfo).code(), Code::kPermission) << "a FIFO";
  ASSERT_EQ(unlink(path_.c_str()), 0);
  std::ofstream(path_) << "";
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
    EXPECT_EQ(log::Open("sonded", path_, log::Level::kInfo).code(), Code::kPermission) << "theirs";
  }
  std::ifstream file(own);
  std::string text;
  std::getline(file, text, '\0');
  EXPECT_EQ(text, "mine\n");
}

class SystemLogTest : public LogTest {
 protected:
  SystemLogTest() : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    Bind();
  }
  ~SystemLogTest() override { log::AddSystemLog(""); }

  void Bind() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, at_.c_str());
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  std::string Received() {
    char text[8192];
    const ssize_t size = recv(socket_.get(), text, sizeof text, 0);
    return std::string(text, size < 0 ? 0 : static_cast<size_t>(size));
  }

  const std::string at_ = dir_.path() + "/syslog";
  UniqueFd socket_;
};

TEST_F(SystemLogTest, GetsWarningsAndErrorsBesidesTheFile) {
  ASSERT_TRUE(log::Open("sonded", path_, log::Level::kInfo).ok());
  log::AddSystemLog(at_);
  log::Info("not this");
  log::Warning("node {}: link lost", "n3");
  log::Error("and this");
  const std::string stamp = "[A-Z][a-z][a-z] [ 0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9] ";
  EXPECT_THAT(Received(),
              MatchesRegex("<12>" + stamp + "sonded.[0-9]+.: warning: node n3: link lost"));
  EXPECT_THAT(Received(), MatchesRegex("<11>" + stamp + "sonded.[0-9]+.: error: and this"));
  EXPECT_EQ(Received(), "");
  EXPECT_EQ(Lines().size(), 3u);
}

TEST_F(SystemLogTest, GetsOneLineWhateverIsInTheMessage) {
  log::Discard("sonded");
  log::AddSystemLog(at_);
  log::Error("metric {}", "a\n<0>Jan  1 00:00:00 kernel: forged\033[31m");
  EXPECT_THAT(Received(),
              testing::EndsWith("error: metric a; <0>Jan  1 00:00:00 kernel: forged?[31m"));
  log::Error("{}", std::string(1 << 20, 'x'));
  EXPECT_THAT(Received(), testing::EndsWith("xxx...")) << "a part of what is too long";
}

TEST_F(SystemLogTest, GetsThemWithoutAFileAsWell) {
  log::Discard("sonded");
  log::AddSystemLog(at_);
  log::Error("alone");
  EXPECT_THAT(Received(), testing::EndsWith("error: alone"));
}

TEST_F(SystemLogTest, ThatHangsOrIsGoneHoldsNobodyUp) {
  log::Discard("sonded");
  log::AddSystemLog(at_);
  for (int i = 0; i < 1000; ++i) log::Warning("line {}", i);  // more than the socket takes
  EXPECT_THAT(Received(), testing::EndsWith("line 0"));
  socket_.Reset();
  log::Warning("to nobody");
  ASSERT_EQ(unlink(at_.c_str()), 0);
  socket_ = UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Bind();
  log::Warning("to the next one");
  EXPECT_THAT(Received(), testing::EndsWith("to the next one"));
}

}  // namespace
}  // namespace sonde::log_test
