#include "launcher/process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "launcher/high_descriptor.h"
#include "launcher/launch.h"

namespace sonde::launch {
namespace {

// A packet that only a child before exec sends: what it could not do, and errno.
constexpr char kFailure = 'F';
enum class Step : unsigned char { kFork, kDescriptors, kCredentials, kExec, kListen };

constexpr int kIgnored[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM,
                            SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGXCPU, SIGXFSZ};

// All the child needs, made before fork: it must not allocate.
struct Plan {
  const char* path;
  char* const* argv;
  char* const* envp;
  int lifeline;
  int listen;
  int application;
  int errors;
  int handoff;  // takes the daemon's number to the launcher
  const Credentials* become;
  const Placement* placement;
};

// A child that runs Child. Copying the page tables of srun or slurmstepd, twice for each daemon,
// would cost more than all else here. The child may share their memory: it only makes system calls
// and writes to its own stack frames, and this thread waits until it has called exec or is gone.
template <void (*Child)(const Plan&)>
[[gnu::noinline]] pid_t Fork(const Plan& plan) {
#ifdef __SANITIZE_ADDRESS__
  // The sanitizer's vfork keeps one return address for both, so the child's call breaks ours.
  const pid_t pid = ::fork();
#else
  const pid_t pid = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
#endif
  if (pid == 0) Child(plan);
  return pid;
}

[[noreturn]] void Fail(int fd, Step step, int error) {
  char packet[2 + sizeof(int)] = {kFailure, static_cast<char>(step)};
  std::memcpy(packet + 2, &error, sizeof(error));
  ::send(fd, packet, sizeof(packet), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::_exit(127);
}

void ResetSignals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  action.sa_handler = SIG_IGN;
  for (const int signal : kIgnored) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void CloseFrom(int first) {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, ~0u, 0) == 0) return;
#endif
  // Before Linux 5.9. Slurm's own descriptors are closed on exec anyway.
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int end = limit.rlim_cur < 65536 ? static_cast<int>(limit.rlim_cur) : 65536;
  for (int fd = first; fd < end; ++fd) ::close(fd);
}

bool PlaceDescriptors(const Plan& plan) {
  const int null = ::open("/dev/null", O_RDWR | O_NOCTTY);
  if (null < 0) return false;
  for (int fd = 0; fd <= 1; ++fd) {
    if (null != fd && ::dup2(null, fd) < 0) return false;
  }
  if (::dup2(plan.errors, STDERR_FILENO) < 0) return false;
  if (::dup2(plan.lifeline, kLifelineFd) < 0) return false;
  if (plan.listen >= 0 && ::dup2(plan.listen, kListenFd) < 0) return false;
  if (plan.listen < 0) ::close(kListenFd);
  if (plan.application < 0) {
    CloseFrom(kApplicationFd);
    return true;
  }
  if (::dup2(plan.application, kApplicationFd) < 0) return false;
  CloseFrom(kApplicationFd + 1);
  return true;
}

// By system calls: the C library's functions change the ids of all threads that they know of, and
// take locks that a thread of the parent may hold.
bool Become(const Credentials& to) {
  if (::syscall(SYS_setgroups, to.groups.size(), to.groups.data()) != 0) return false;
  if (::syscall(SYS_setresgid, to.gid, to.gid, to.gid) != 0) return false;
  if (::syscall(SYS_setresuid, to.uid, to.uid, to.uid) != 0) return false;
  uid_t uid[3];
  gid_t gid[3];
  if (::getresuid(&uid[0], &uid[1], &uid[2]) != 0 || ::getresgid(&gid[0], &gid[1], &gid[2]) != 0) {
    return false;
  }
  for (int i = 0; i < 3; ++i) {
    if (uid[i] != to.uid || gid[i] != to.gid) return errno = EPERM, false;
  }
  // If the process can become root again, something is badly wrong.
  if (to.uid != 0 && ::syscall(SYS_setresuid, -1, 0, -1) == 0) return errno = EPERM, false;
  return true;
}

// Runs in the grandchild. Everything here is async-signal-safe.
[[noreturn]] void BecomeDaemon(const Plan& plan) {
  ResetSignals();
  ::setsid();
  if (!PlaceDescriptors(plan)) Fail(plan.lifeline, Step::kDescriptors, errno);
  ::umask(077);
  [[maybe_unused]] const int moved = ::chdir("/");
  ::execve(plan.path, plan.argv, plan.envp);
  Fail(kLifelineFd, Step::kExec, errno);
}

// Runs in the child: leaves the daemon to init. Everything here is async-signal-safe.
[[noreturn]] void RunChild(const Plan& plan) {
  Apply(*plan.placement);
  if (plan.become != nullptr && !Become(*plan.become)) {
    Fail(plan.lifeline, Step::kCredentials, errno);
  }
  // A client sees the ids of the listener, so the user listens, and before there are tasks.
  if (plan.application >= 0 && ::listen(plan.application, SOMAXCONN) != 0) {
    Fail(plan.lifeline, Step::kListen, errno);
  }
  const pid_t pid = Fork<BecomeDaemon>(plan);
  if (pid < 0) Fail(plan.lifeline, Step::kFork, errno);
  ::send(plan.handoff, &pid, sizeof(pid), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::_exit(0);
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// If `packet` says that the child did not become a daemon: why. Otherwise ok.
Status DescribeFailure(std::string_view packet, std::string_view path) {
  int error = 0;
  if (packet.size() != 2 + sizeof(error) || packet[0] != kFailure) return {};
  std::memcpy(&error, packet.data() + 2, sizeof(error));
  switch (static_cast<Step>(packet[1])) {
    case Step::kFork:
      return SystemError("fork sonded", error);
    case Step::kDescriptors:
      return SystemError("set up the descriptors of sonded", error);
    case Step::kCredentials:
      return SystemError("become the job's user for sonded", error);
    case Step::kListen:
      return SystemError("listen for the application", error);
    case Step::kExec:
      break;
  }
  return SystemError("execute " + std::string(path), error);
}

// Bound to an abstract name, not listening yet.
Result<UniqueFd> ApplicationSocket(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof(address.sun_path)) {
    return Status(Code::kInvalid, "'" + name + "' is too long for the name of a socket");
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return SystemError("bind the application's socket @" + name);
  }
  MoveUp(fd);
  return fd;
}

// Neither end blocks: a daemon whose launcher does not read loses words, and nothing else.
Status MakeErrorPipe(Ends& ends) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) return SystemError("pipe");
  ends.errors = UniqueFd(pipe[0]);
  ends.stderr_end = UniqueFd(pipe[1]);
  MoveUp(ends.errors);
  MoveUp(ends.stderr_end);
  return {};
}

}  // namespace

Result<Ends> MakeEnds(const std::string& application) {
  Ends ends;
  SONDE_RETURN_IF_ERROR(MakeErrorPipe(ends));
  Result<Lifeline> lifeline = Lifeline::Create(ends.daemon);
  if (!lifeline.ok()) return lifeline.status();
  ends.lifeline = *std::move(lifeline);
  if (application.empty()) return ends;
  Result<UniqueFd> socket = ApplicationSocket(application);
  if (!socket.ok()) return socket.status();
  ends.application = *std::move(socket);
  return ends;
}

Result<ProcessId> Start(const Process& process, Ends& ends) {
  const std::vector<char*> argv = Pointers(process.arguments);
  const std::vector<char*> envp = Pointers(process.environment);
  int handoff[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, handoff) != 0) {
    return SystemError("socketpair");
  }
  const UniqueFd ours(handoff[0]), theirs(handoff[1]);
  const Plan plan{process.path.c_str(),  argv.data(),       envp.data(),
                  ends.daemon.get(),     process.listen_fd, ends.application.get(),
                  ends.stderr_end.get(), theirs.get(),      process.become,
                  &process.placement};
  // No handler of Slurm's may run in the child.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = Fork<RunChild>(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return SystemError("fork", error);
  // It only forks, and slurmstepd does not wait for children while it calls a plugin.
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  // By now it has become the daemon or said why not.
  std::string packet;
  if (ends.lifeline.Peek() == kFailure &&
      ends.lifeline.Receive(packet, Deadline(std::chrono::milliseconds(0))) ==
          Lifeline::Event::kPacket) {
    const Status failed = DescribeFailure(packet, process.path);
    if (!failed.ok()) return failed;
  }
  pid_t daemon = 0;
  if (::recv(ours.get(), &daemon, sizeof(daemon), MSG_DONTWAIT) != sizeof(daemon)) daemon = 0;
  return Identify(daemon);
}

Result<Daemon> Start(const Process& process) {
  Result<Ends> ends = MakeEnds(process.application);
  if (!ends.ok()) return ends.status();
  const Result<ProcessId> started = Start(process, *ends);
  if (!started.ok()) return started.status();
  return Daemon{std::move(ends->lifeline), *started, std::move(ends->errors)};
}

}  // namespace sonde::launch
