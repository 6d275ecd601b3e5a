// The new process shares its launcher's memory until it executes its program. Linux before 5.16
// ends all processes that share memory when one of them dumps a core, and the job's user can have
// the new process do that: by a signal. So that memory must not be dumpable meanwhile, and must be
// afterwards as it was before.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "core/unique_fd.h"
#include "launcher/process.h"
#include "launcher/spawn.h"
#include "tests/unit/caught_calls.h"

namespace sonde::launch {
namespace {

using std::chrono::milliseconds;

constexpr uid_t kUser = 65534;

int Dumpable() { return ::prctl(PR_GET_DUMPABLE); }

NotExecuted BecomeUndumpableAndFail(const void*) {
  ::prctl(PR_SET_DUMPABLE, 0);
  return {1, ENOENT};
}

NotExecuted BecomeUndumpableAndExecute(const void*) {
  ::prctl(PR_SET_DUMPABLE, 0);
  char name[] = "true";
  char* const argv[] = {name, nullptr};
  ::execve("/bin/true", argv, argv + 1);
  return {1, errno};
}

NotExecuted BecomeUndumpableAndHang(const void*) {
  ::prctl(PR_SET_DUMPABLE, 0);
  for (;;) ::pause();
}

TEST(Dumpable, TheLauncherIsAsBeforeWhateverBecomesOfTheNewProcess) {
  const struct {
    Execute execute;
    Spawned::End end;
  } cases[] = {{BecomeUndumpableAndExecute, Spawned::End::kExecuted},
               {BecomeUndumpableAndFail, Spawned::End::kNotExecuted},
               {BecomeUndumpableAndHang, Spawned::End::kKilled}};
  ASSERT_EQ(Dumpable(), 1);
  for (const int before : {1, 0}) {
    ::prctl(PR_SET_DUMPABLE, before);
    for (const auto& [execute, end] : cases) {
      const bool hangs = end == Spawned::End::kKilled;
      const Result<Spawned> spawned = Spawn(execute, nullptr, milliseconds(hangs ? 50 : 10'000));
      const int after = Dumpable();
      ASSERT_TRUE(spawned.ok());
      EXPECT_EQ(spawned->end, end);
      EXPECT_EQ(after, before) << "end " << static_cast<int>(end);
    }
  }
  ::prctl(PR_SET_DUMPABLE, 1);
}

// Changes of its ids change that, too.
TEST(Dumpable, ALauncherThatStartsADaemonAsAnotherUserIsAsBefore) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  const Credentials user{kUser, kUser, {}};
  const Process process{
      .path = "/bin/true", .arguments = {"true"}, .environment = {}, .become = &user};
  ASSERT_EQ(Dumpable(), 1);
  ASSERT_TRUE(Start(process).ok());
  EXPECT_EQ(Dumpable(), 1);
}

std::string NameOf(const seccomp_data& call) {
  switch (call.nr) {
    case SYS_setresuid:
      return "setresuid";
    case SYS_prctl:
      return call.args[0] == PR_SET_DUMPABLE && call.args[1] == 0 ? "undumpable" : "prctl";
    case SYS_rt_sigprocmask:
      return "sigprocmask";
    default:
      return "execve";
  }
}

// The calls of others than this thread, in their order. The watching thread is there before calls
// are caught, so that its own are not.
class WatchedCalls {
 public:
  WatchedCalls() : thread_([this, own = ::gettid()] { Watch(own); }) {
    UniqueFd calls = CatchCalls({SYS_setresuid, SYS_prctl, SYS_rt_sigprocmask, SYS_execve});
    caught_ = static_cast<bool>(calls);
    calls_.set_value(std::move(calls));
  }
  ~WatchedCalls() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  bool caught() const { return caught_; }
  std::vector<std::string> End() {
    over_ = true;
    thread_.join();
    return names_;
  }

 private:
  void Watch(pid_t launcher) {
    const UniqueFd calls = calls_.get_future().get();
    while (!over_) {
      pollfd ready{calls.get(), POLLIN, 0};
      seccomp_notif call{};
      if (::poll(&ready, 1, 10) != 1) continue;
      if (::ioctl(calls.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
      if (static_cast<pid_t>(call.pid) != launcher) names_.push_back(NameOf(call.data));
      seccomp_notif_resp go_on{call.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
      ::ioctl(calls.get(), SECCOMP_IOCTL_NOTIF_SEND, &go_on);
    }
  }

  std::promise<UniqueFd> calls_;
  std::atomic<bool> over_ = false;
  bool caught_ = false;
  std::vector<std::string> names_;
  std::thread thread_;  // last: it uses the others
};

// Becoming the user makes the memory as dumpable as fs.suid_dumpable says.
TEST(Dumpable, TheNewProcessIsUndumpableFromItsUsersFirstSignalOn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  // In a process of its own, for the catching of calls stays.
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const Credentials user{kUser, kUser, {}};
    const Process process{
        .path = "/bin/true", .arguments = {"true"}, .environment = {}, .become = &user};
    WatchedCalls calls;
    EXPECT_TRUE(calls.caught());
    EXPECT_TRUE(Start(process).ok());
    std::vector<std::string> names = calls.End();
    // What sanitizers do before.
    names.erase(names.begin(), std::find(names.begin(), names.end(), "setresuid"));
    EXPECT_THAT(names, testing::ElementsAre("setresuid", "setresuid", "undumpable", "sigprocmask",
                                            "execve"))
        << "it becomes the user, checks that it cannot become root again, ...";
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sonde::launch
