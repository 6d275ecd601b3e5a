// What srun does with the report of a head at its end, where nobody reads it, or slowly.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "core/unique_fd.h"
#include "tests/unit/spank_fake_slurm.h"

namespace sonde {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::milliseconds kLimit{2000};  // of the plugin
constexpr std::chrono::milliseconds kMore{3000};   // for the test on a busy machine
constexpr size_t kPage = 4096;

// As srun has them.
struct Ends {
  UniqueFd reader;
  UniqueFd writer;
};

class Report : public testing::Test {
 protected:
  Report() {
    char made[] = "/tmp/sonde-report-XXXXXX";
    directory_ = ::mkdtemp(made);
    int pipe[2];
    EXPECT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    ends_.reader.Reset(pipe[0]);
    ends_.writer.Reset(pipe[1]);
  }
  ~Report() override { fs::remove_all(directory_); }

  // A head that gives a report of `lines` lines of 64 bytes at once, in one packet.
  void WriteHead(size_t lines) const {
    std::ofstream packet(directory_ / "packet");
    packet << 'R';
    for (size_t i = 0; i < lines; ++i) {
      packet << std::string(60 - std::to_string(i).size(), '.') << i << "\n";
    }
    std::ofstream(directory_ / "head")
        << "#!/bin/sh\nexec cat " << (directory_ / "packet") << " >&3\n";
    fs::permissions(directory_ / "head", fs::perms::owner_all);
  }

  // All but `pages` of what the pipe takes.
  void FillPipe(size_t pages) const {
    const int flags = ::fcntl(ends_.writer.get(), F_GETFL);
    ::fcntl(ends_.writer.get(), F_SETFL, flags | O_NONBLOCK);
    const std::string page(kPage, '#');
    while (::write(ends_.writer.get(), page.data(), page.size()) > 0) {
    }
    ::fcntl(ends_.writer.get(), F_SETFL, flags);
    std::string taken(kPage, '\0');
    for (size_t i = 0; i < pages; ++i)
      EXPECT_GT(::read(ends_.reader.get(), taken.data(), kPage), 0);
  }

  // srun with the pipe, or another descriptor, as its stderr, from the start of its head to its
  // end.
  pid_t StartSrun() const { return StartSrun(ends_.writer.get()); }
  pid_t StartSrun(int fd) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::alarm(60);
    ::dup2(fd, STDERR_FILENO);
    Slurm().context = S_CTX_LOCAL;
    Slurm().items = {{S_JOB_ID, 7}, {S_JOB_STEPID, 0}, {S_JOB_NNODES, 1}};
    LoadedPlugin plugin;
    plugin.arguments = {"sonded=" + (directory_ / "head").string(), "config=/dev/null"};
    plugin.Call("slurm_spank_init");
    LoadedPlugin::Give("telemetry-level", "2");
    plugin.Call("slurm_spank_init_post_opt");
    plugin.Call("slurm_spank_local_user_init");
    plugin.Call("slurm_spank_exit");
    ::_exit(0);
  }

  // Whether it ended by itself within that time.
  static bool Ends(pid_t srun, std::chrono::milliseconds limit) {
    for (const auto begun = steady_clock::now(); steady_clock::now() - begun < limit;) {
      int status = 0;
      if (::waitpid(srun, &status, WNOHANG) == srun) return status == 0;
      ::poll(nullptr, 0, 5);
    }
    ::kill(srun, SIGKILL);
    ::waitpid(srun, nullptr, 0);
    return false;
  }

  // What lies in the pipe, without what filled it.
  std::string Left() {
    ends_.writer.Reset();
    std::string text, piece(kPage, '\0');
    for (ssize_t size; (size = ::read(ends_.reader.get(), piece.data(), kPage)) > 0;) {
      text.append(piece, 0, static_cast<size_t>(size));
    }
    return text.substr(std::min(text.find_first_not_of('#'), text.size()));
  }

  fs::path directory_;
  struct Ends ends_;
};

TEST_F(Report, IsShownAsItIs) {
  WriteHead(300);
  const pid_t srun = StartSrun();
  EXPECT_TRUE(Ends(srun, kLimit + kMore));
  const std::string text = Left();
  for (const char* line : {"...0\n", "...299\n"}) EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("only a part")));
}

TEST_F(Report, HoldsSrunNoLongerThanTwoSecondsWhereNobodyReads) {
  WriteHead(300);
  for (const size_t pages : {0, 2}) {
    SCOPED_TRACE(std::to_string(pages) + " pages are free");
    FillPipe(pages);
    EXPECT_TRUE(Ends(StartSrun(), kLimit + kMore));
    std::string all(16 * kPage, '\0');
    EXPECT_GT(::read(ends_.reader.get(), all.data(), all.size()), 0);
  }
}

TEST_F(Report, HoldsSrunNoLongerWhereATerminalIsStopped) {
  WriteHead(300);
  const UniqueFd user(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_EQ(::grantpt(user.get()), 0);
  ASSERT_EQ(::unlockpt(user.get()), 0);
  const UniqueFd terminal(::open(::ptsname(user.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  EXPECT_TRUE(Ends(StartSrun(terminal.get()), kLimit + kMore));
  // The user's shell has the same description, and expects it to block.
  EXPECT_EQ(::fcntl(terminal.get(), F_GETFL) & O_NONBLOCK, 0);
}

// As by a pager: what was written before the time was over is followed by a line.
TEST_F(Report, ThatWasReadInPartOnlySaysWhereAllOfItIs) {
  WriteHead(512);  // 8 pages
  ::fcntl(ends_.writer.get(), F_SETPIPE_SZ, 4 * kPage);
  FillPipe(0);
  const pid_t srun = StartSrun();
  ends_.writer.Reset();
  std::string text, piece(kPage, '\0');
  bool ended = false;
  for (ssize_t size; (size = ::read(ends_.reader.get(), piece.data(), kPage)) > 0;) {
    text.append(piece, 0, static_cast<size_t>(size));
    ended = ended || ::waitpid(srun, nullptr, WNOHANG) == srun;
    if (!ended) ::poll(nullptr, 0, 400);
  }
  if (!ended) ::waitpid(srun, nullptr, 0);
  EXPECT_THAT(text, HasSubstr("...0\n"));
  EXPECT_THAT(text, Not(HasSubstr("...511\n")));
  EXPECT_THAT(text, HasSubstr("sonde: only a part of the report was read within 2000 ms; see it "
                              "with: sonde show 7.0\n"));
}

}  // namespace
}  // namespace sonde
