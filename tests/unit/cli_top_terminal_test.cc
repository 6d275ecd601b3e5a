// The terminal of `sonde top` after a signal: each that ends a program, in a child with a terminal
// of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "cli/top/terminal.h"

namespace sonde::cli::top::cli_top_terminal_test {
namespace {

using testing::HasSubstr;

// All whose default action ends a process, but for SIGKILL, of which nobody is told.
std::vector<int> Ending() {
  const std::set<int> others = {SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGURG,
                                SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH};
  std::vector<int> all;
  for (int signal = 1; signal <= SIGSYS; ++signal) {
    if (!others.contains(signal)) all.push_back(signal);
  }
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) all.push_back(signal);
  return all;
}

// What ShowAll and Top do, with a signal in between.
[[noreturn]] void BeEndedBy(int signal) {
  const rlimit none{};
  ::setrlimit(RLIMIT_CORE, &none);
  ::setenv("TERM", "xterm", 1);
  for (const int one : Ending()) std::signal(one, SIG_DFL);
  int come = 0;
  {
    const Signals signals;
    const auto terminal = Terminal::Open(false, false);
    if (!terminal.ok()) ::_exit(98);
    ::raise(signal);
    pollfd wait{signals.fd(), POLLIN, 0};
    ::poll(&wait, 1, 20'000);
    come = signals.Next();
  }
  std::signal(come, SIG_DFL);
  ::raise(come);
  ::_exit(99);
}

// All that was written on the terminal: a read may give a part of it, and fails at the end, when
// nobody has the terminal open any more.
std::string ReadAll(int master) {
  std::string written;
  std::array<char, 4096> part{};
  while (true) {
    const ssize_t size = ::read(master, part.data(), part.size());
    if (size <= 0) return written;
    written.append(part.data(), static_cast<size_t>(size));
  }
}

TEST(TopTerminal, IsAsItWasAfterEverySignalThatEndsTheProgram) {
  for (const int signal : Ending()) {
    SCOPED_TRACE(::strsignal(signal));
    int master = -1;
    int slave = -1;
    ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    termios before{};
    ASSERT_EQ(::tcgetattr(slave, &before), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(master);
      if (::login_tty(slave) != 0) ::_exit(97);
      BeEndedBy(signal);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << "exit status " << WEXITSTATUS(status);
    EXPECT_EQ(WTERMSIG(status), signal);
    termios after{};
    ASSERT_EQ(::tcgetattr(slave, &after), 0);
    EXPECT_EQ(after.c_lflag, before.c_lflag) << "echo, lines, signals by keys";
    EXPECT_EQ(after.c_iflag, before.c_iflag);
    EXPECT_EQ(after.c_oflag, before.c_oflag);
    ::close(slave);
    const std::string written = ReadAll(master);
    const size_t begun = written.find("\x1b[?1049h");
    ASSERT_NE(begun, std::string::npos) << "another screen";
    EXPECT_THAT(written.substr(begun), HasSubstr("\x1b[?1049l")) << "the screen of before";
    ::close(master);
  }
}

}  // namespace
}  // namespace sonde::cli::top::cli_top_terminal_test
