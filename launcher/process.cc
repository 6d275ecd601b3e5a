#include "launcher/process.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/process/close_descriptors.h"
#include "launcher/high_descriptor.h"
#include "launcher/launch.h"
#include "launcher/spawn.h"
#include "launcher/user_socket.h"

namespace sonde::launch {
namespace {

enum Step : int { kDescriptors, kCredentials, kListen, kExec };

constexpr std::chrono::milliseconds kRemoving{100};

constexpr int kIgnored[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM,
                            SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGXCPU, SIGXFSZ};

// Of a Unix socket.
struct Address {
  sockaddr_un address{};
  socklen_t size = 0;  // 0: none
};

// All that the new process needs, made before: it must not allocate.
struct Plan {
  const char* path;
  char* const* argv;
  char* const* envp;
  int lifeline;
  int listen;
  int errors;
  Address application;
  Address proxy;
  const Credentials* become;
  const Placement* placement;
};

void ResetSignals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  action.sa_handler = SIG_IGN;
  for (const int signal : kIgnored) ::sigaction(signal, &action, nullptr);
}

void UnblockSignals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
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
  CloseDescriptors(kListenFd + 1);
  return true;
}

bool Listen(const Address& at, int type, int place) {
  const int made = ::socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
  if (made < 0) return false;
  if (made != place && ::dup2(made, place) < 0) return false;
  if (made != place) ::close(made);
  const auto* const address = reinterpret_cast<const sockaddr*>(&at.address);
  return ::bind(place, address, at.size) == 0 && ::listen(place, SOMAXCONN) == 0;
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

// The user may send signals now, and Linux before 5.16 ends whoever shares memory with a process
// that dumps a core: the launcher too. Becoming the user has made the memory as dumpable as
// fs.suid_dumpable says. Spawn makes it as before again; the program has memory of its own.
bool ForbidCore() { return ::prctl(PR_SET_DUMPABLE, 0) == 0; }

// Runs in the new process. Everything here is async-signal-safe. It becomes the user late: from
// then on the user may send it signals.
NotExecuted BecomeDaemon(const void* at) {
  const Plan& plan = *static_cast<const Plan*>(at);
  Apply(*plan.placement);
  ResetSignals();
  ::setsid();
  if (!PlaceDescriptors(plan)) return {kDescriptors, errno};
  ::umask(077);
  [[maybe_unused]] const int moved = ::chdir("/");
  if (plan.become != nullptr && (!Become(*plan.become) || !ForbidCore())) {
    return {kCredentials, errno};
  }
  // A client sees the ids of the listener, so the user listens, and before there are tasks.
  if (plan.application.size != 0 && !Listen(plan.application, SOCK_SEQPACKET, kApplicationFd)) {
    return {kListen, errno};
  }
  if (plan.proxy.size != 0 && !Listen(plan.proxy, SOCK_STREAM, kProxyFd)) ::close(kProxyFd);
  UnblockSignals();
  ::execve(plan.path, plan.argv, plan.envp);
  const int error = errno;
  if (plan.proxy.size != 0) ::unlink(plan.proxy.address.sun_path);
  return {kExec, error};
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Status DescribeFailure(const NotExecuted& failed, const std::string& path) {
  switch (failed.step) {
    case kDescriptors:
      return SystemError("set up the descriptors of sonded", failed.error);
    case kCredentials:
      return SystemError("become the job's user for sonded", failed.error);
    case kListen:
      return SystemError("listen for the application", failed.error);
    default:
      return SystemError("execute " + path, failed.error);
  }
}

// With `abstract` the name is not one of the file system.
Result<Address> AddressOf(const std::string& name, bool abstract) {
  Address at;
  if (name.empty()) return at;
  at.address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof(at.address.sun_path)) {
    return Status(Code::kInvalid, "'" + name + "' is too long for the name of a socket");
  }
  // A path has a zero byte behind it, an abstract name before it.
  std::memcpy(at.address.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  at.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return at;
}

// Neither end blocks: a daemon whose launcher does not read loses words, and nothing else.
Status MakeErrorSocket(Ends& ends) {
  constexpr int kErrorBuffer = 128 << 10;  // some hundred lines
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
    return SystemError("socketpair");
  }
  ends.errors = UniqueFd(pair[0]);
  ends.stderr_end = UniqueFd(pair[1]);
  RefuseDescriptors(ends.errors.get());
  ::setsockopt(ends.stderr_end.get(), SOL_SOCKET, SO_SNDBUF, &kErrorBuffer, sizeof(kErrorBuffer));
  MoveUp(ends.errors);
  MoveUp(ends.stderr_end);
  return {};
}

}  // namespace

Result<Ends> MakeEnds() {
  Ends ends;
  SONDE_RETURN_IF_ERROR(MakeErrorSocket(ends));
  Result<Lifeline> lifeline = Lifeline::Create(ends.daemon);
  if (!lifeline.ok()) return lifeline.status();
  ends.lifeline = *std::move(lifeline);
  return ends;
}

Result<ProcessId> Start(const Process& process, Ends& ends) {
  const Result<Address> application = AddressOf(process.application, true);
  if (!application.ok()) return application.status();
  const Result<Address> proxy = AddressOf(process.proxy, false);
  const std::vector<char*> argv = Pointers(process.arguments);
  const std::vector<char*> envp = Pointers(process.environment);
  const Plan plan{.path = process.path.c_str(),
                  .argv = argv.data(),
                  .envp = envp.data(),
                  .lifeline = ends.daemon.get(),
                  .listen = process.listen_fd,
                  .errors = ends.stderr_end.get(),
                  .application = *application,
                  .proxy = proxy.ok() ? *proxy : Address(),
                  .become = process.become,
                  .placement = &process.placement};
  const Result<Spawned> spawned = Spawn(BecomeDaemon, &plan, process.patience);
  if (!spawned.ok()) return spawned.status().Within("start sonded");
  switch (spawned->end) {
    case Spawned::End::kExecuted:
      break;
    case Spawned::End::kNotExecuted:
      return DescribeFailure(spawned->failed, process.path);
    case Spawned::End::kKilled:
      RemoveLeftFile(process.proxy, kRemoving);
      return Status(Code::kTimeout, "start " + process.path + ": it has not begun after " +
                                        std::to_string(process.patience.count()) +
                                        " ms and is killed");
  }
  return Identify(spawned->pid);
}

Result<Daemon> Start(const Process& process) {
  Result<Ends> ends = MakeEnds();
  if (!ends.ok()) return ends.status();
  const Result<ProcessId> started = Start(process, *ends);
  if (!started.ok()) return started.status();
  return Daemon{std::move(ends->lifeline), *started, std::move(ends->errors)};
}

// unlink() follows no link at the path's end, and the directory before it is not a user's.
void RemoveLeftFile(const std::string& path, std::chrono::milliseconds most) {
  if (path.empty()) return;
  const Execute remove = [](const void* at) -> NotExecuted {
    return {::unlink(static_cast<const char*>(at)), errno};
  };
  static_cast<void>(Spawn(remove, path.c_str(), most));
}

}  // namespace sonde::launch
