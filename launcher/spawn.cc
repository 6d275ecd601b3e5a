#include "launcher/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <new>

#include "core/unique_fd.h"
#include "launcher/lifeline.h"

namespace sonde::launch {
namespace {

// Of each of the two processes. They only make system calls.
constexpr size_t kStack = 64 << 10;
// How long a killed process may take to be gone.
constexpr std::chrono::milliseconds kKilled{100};

// What all three share.
struct Shared {
  Execute execute;
  const void* plan;
  pid_t pid = 0;        // the new process's; the kernel writes it before the process runs
  int clone_error = 0;  // why there is no new process
  bool failed = false;
  NotExecuted failure;
  alignas(64) char helper_stack[kStack];
  alignas(64) char stack[kStack];
};

// Memory for that, of which only the pages are there that are used.
class SharedMemory {
 public:
  SharedMemory()
      : at_(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                   0)) {}
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() {
    if (at_ != MAP_FAILED) ::munmap(at_, sizeof(Shared));
  }
  void* get() const { return at_ != MAP_FAILED ? at_ : nullptr; }
  // A process may still run on its stack there.
  void Leave() { at_ = MAP_FAILED; }

 private:
  void* at_;
};

// A process that runs `run` on a stack of its own. `flags` as for clone().
pid_t Clone(int (*run)(void*), char* stack_end, unsigned flags, Shared& shared) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // Sanitizers know the stacks of threads only: all memory is copied, but for `shared`.
  static_cast<void>(stack_end);
  const auto pid = static_cast<pid_t>(
      (flags & CLONE_VFORK) == 0
          ? ::fork()
          : ::syscall(SYS_clone, flags & ~CLONE_VM, nullptr, &shared.pid, nullptr, nullptr));
  if (pid == 0) ::_exit(run(&shared));
  return pid;
#else
  return ::clone(run, stack_end, static_cast<int>(flags), &shared, &shared.pid);
#endif
}

int RunNew(void* at) {
  auto& shared = *static_cast<Shared*>(at);
  shared.failure = shared.execute(shared.plan);
  shared.failed = true;
  return 127;
}

// Ends when the new process has executed its program or is gone.
int RunHelper(void* at) {
  auto& shared = *static_cast<Shared*>(at);
  const pid_t pid = Clone(RunNew, shared.stack + kStack,
                          CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, shared);
  if (pid < 0) shared.clone_error = errno;
  return 0;
}

// The helper is known by its number and by a pipe, whose other end it holds. It sends no signal
// when it ends, and nobody waits for it but who asks for __WALL: slurmstepd waits for any child.
class Helper {
 public:
  Helper(Shared& shared, const UniqueFd& pipe, UniqueFd& other_end)
      : pipe_(pipe.get()),
        pid_(Clone(RunHelper, shared.helper_stack + kStack, CLONE_VM, shared)),
        error_(pid_ < 0 ? errno : 0) {
    other_end.Reset();
  }

  int error() const { return error_; }  // why it could not be made
  // False at the deadline.
  bool WaitForEnd(std::chrono::milliseconds most) {
    const Deadline deadline(most);
    pollfd waiting{pipe_, 0, 0};
    while (!ended_) {
      const int left = deadline.LeftMs();
      const bool closed = ::poll(&waiting, 1, left) > 0;
      // What is left to the kernel takes no time; a process forked meanwhile may hold the pipe.
      ended_ = ::waitpid(pid_, nullptr, __WALL | (closed ? 0 : WNOHANG)) != 0;
      if (left == 0) break;
    }
    return ended_;
  }
  void Kill() const { ::kill(pid_, SIGKILL); }

 private:
  const int pipe_;
  const pid_t pid_;
  const int error_;
  bool ended_ = false;
};

// The new process has taken too long. As long as the helper has not ended, nobody has waited for
// the new process, and its number is its own. Gives whether both are gone.
bool Kill(const Shared& shared, Helper& helper) {
  if (shared.pid > 0) ::kill(shared.pid, SIGKILL);
  if (helper.WaitForEnd(kKilled)) return true;
  // The new process hangs in the kernel, and ends when the kernel lets it go.
  helper.Kill();
  helper.WaitForEnd(kKilled);
  return false;
}

// Whether the launcher may dump a core, and whether its user may look into its memory: a flag of
// the memory that all three share.
class DumpableFlag {
 public:
  // Not as long as one of the others is there: the new process may be another user's.
  void Restore() const {
    // The kernel sets 2 (fs.suid_dumpable) but lets nobody set it: then the new process's value
    // stays, which allows no more.
    if (::prctl(PR_GET_DUMPABLE) != before_) ::prctl(PR_SET_DUMPABLE, before_);
  }

 private:
  const int before_ = ::prctl(PR_GET_DUMPABLE);
};

// The calling thread's signals are blocked as long as this is there.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

Result<Spawned> Spawn(Execute execute, const void* plan, std::chrono::milliseconds most) {
  SharedMemory memory;
  if (memory.get() == nullptr) return SystemError("mmap");
  auto& shared = *new (memory.get()) Shared;
  shared.execute = execute;
  shared.plan = plan;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe");
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const DumpableFlag dumpable;
  const BlockedSignals blocked;
  Helper helper(shared, ours, theirs);
  if (helper.error() != 0) return SystemError("clone", helper.error());
  const bool in_time = helper.WaitForEnd(most);
  if (!in_time && !Kill(shared, helper)) {
    memory.Leave();
    return Spawned{Spawned::End::kKilled, shared.pid, {}};
  }
  dumpable.Restore();
  if (!in_time) return Spawned{Spawned::End::kKilled, shared.pid, {}};
  if (shared.clone_error != 0) return SystemError("clone", shared.clone_error);
  const auto end = shared.failed ? Spawned::End::kNotExecuted : Spawned::End::kExecuted;
  return Spawned{end, shared.pid, shared.failure};
}

}  // namespace sonde::launch
