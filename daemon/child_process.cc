#include "daemon/child_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/process/close_descriptors.h"
#include "core/time.h"
#include "core/unique_fd.h"
#include "launcher/process_id.h"

namespace sonde {
namespace {

// Where a descriptor is put aside before it gets its number: above all numbers that are given.
constexpr int kAside = 16;

constexpr Nanos kEndChildren = 200 * kMillisecond;

UniqueFd Aside(const UniqueFd& fd) { return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, kAside)); }

// All that the child needs, made before there is one: it must not allocate.
struct Plan {
  const ChildProgram& child;
  const std::vector<std::string>& paths;
  char* const* argv;
  char* const* envp;
  pid_t parent;
  int null;
  int failure;  // takes the errno to the parent; closed on exec
  sigset_t mask;
};

void ResetSignals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &action, nullptr);
}

// Libraries open descriptors that nobody marks: those of libfabric's providers would go on in a
// child. Standard input, output and error are the child's, whatever they are.
void LeaveOthers(const ChildProgram& child) {
  int next = STDERR_FILENO + 1;
  for (const auto& [ours, theirs] : child.descriptors) {
    if (theirs < next) continue;
    CloseDescriptorsOnExec(next, theirs - 1);
    next = theirs + 1;
  }
  CloseDescriptorsOnExec(next);
}

// Runs in the child; only system calls.
bool Prepare(const Plan& plan) {
  const ChildProgram& child = plan.child;
  if (!child.may_outlive_us) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    // The parent may have ended before that call.
    if (getppid() != plan.parent) return errno = ESRCH, false;
  }
  if (child.own_group && setpgid(0, 0) != 0) return false;
  if (child.default_signals) ResetSignals();
  for (const auto& [ours, theirs] : child.descriptors) {
    if (dup2(ours, theirs) < 0) return false;
  }
  if (child.silent) {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      if (dup2(plan.null, fd) < 0) return false;
    }
  }
  LeaveOthers(child);
  sigprocmask(SIG_SETMASK, &plan.mask, nullptr);
  return true;
}

// Returns why no path of the program could be executed.
int Execute(const Plan& plan) {
  int error = ENOENT;
  for (const std::string& path : plan.paths) {
    execve(path.c_str(), plan.argv, plan.envp);
    // A path that may not be executed says more than paths that are not there.
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    if (error != ENOENT && error != EACCES) break;
  }
  return error;
}

[[noreturn]] void Become(const Plan& plan) {
  const int error = Prepare(plan) ? Execute(plan) : errno;
  [[maybe_unused]] const ssize_t told = write(plan.failure, &error, sizeof(error));
  _exit(127);
}

// vfork: the child borrows our memory and this thread waits until it is another program.
[[gnu::noinline]] pid_t Fork(const Plan& plan) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // The sanitizers' vfork keeps one return address for both, so the child's call breaks ours.
  const pid_t pid = fork();
#else
  const pid_t pid = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
#endif
  if (pid == 0) Become(plan);
  return pid;
}

std::vector<std::string> Paths(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* const path = getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  std::vector<std::string> paths;
  while (!rest.empty()) {
    const std::string_view directory = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(directory.size() + 1, rest.size()));
    if (!directory.empty()) paths.push_back(std::string(directory) + "/" + program);
  }
  if (paths.empty()) paths.push_back("/usr/bin/" + program);
  return paths;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// So that slurmstepd finds what a child has left behind if this daemon is killed. The processes of
// an acting head stay those of the node's daemon.
void NameDaemon(std::vector<std::string>& environment) {
  const std::string name = launch::kChildOf + std::string("=");
  const char* const outer = getenv(launch::kChildOf);
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name); });
  environment.push_back(name + (outer ? outer : launch::NameOf(launch::Identify(getpid()))));
}

// The parent's number in /proc/PID/stat, behind the state, which is behind the command's name; 0 if
// the process is gone.
pid_t ParentOf(const std::string& pid) {
  const UniqueFd fd(open(("/proc/" + pid + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[512] = {};
  if (!fd || read(fd.get(), text, sizeof(text) - 1) <= 0) return 0;
  const char* const name_end = strrchr(text, ')');
  return name_end == nullptr || strlen(name_end) < 4 ? 0 : atoi(name_end + 3);
}

// Returns one of them, 0 if there is none.
pid_t KillChildren(pid_t parent) {
  pid_t child = 0;
  DIR* const processes = opendir("/proc");
  if (processes == nullptr) return 0;
  while (const dirent* entry = readdir(processes)) {
    const std::string name = entry->d_name;
    if (name.front() < '0' || name.front() > '9' || ParentOf(name) != parent) continue;
    child = atoi(name.c_str());
    kill(child, SIGKILL);
  }
  closedir(processes);
  return child;
}

}  // namespace

std::vector<std::string> ChildProgram::CurrentEnvironment() {
  std::vector<std::string> all;
  for (char** at = environ; *at != nullptr; ++at) all.emplace_back(*at);
  return all;
}

Result<pid_t> StartChild(const ChildProgram& wanted) {
  ChildProgram child = wanted;
  NameDaemon(child.environment);
  // Moves our descriptors out of the way of the numbers that they and others will get.
  std::vector<UniqueFd> aside;
  for (auto& [ours, theirs] : child.descriptors) {
    aside.emplace_back(fcntl(ours, F_DUPFD_CLOEXEC, kAside));
    if (!aside.back()) return SystemError("duplicate a descriptor for " + child.program);
    ours = aside.back().get();
  }
  const UniqueFd null = Aside(UniqueFd(open("/dev/null", O_WRONLY | O_CLOEXEC)));
  int failure[2];
  if (!null || pipe2(failure, O_CLOEXEC) != 0) return SystemError("start " + child.program);
  const UniqueFd told(failure[0]);
  UniqueFd tells = Aside(UniqueFd(failure[1]));
  if (!tells) return SystemError("start " + child.program);
  const std::vector<std::string> paths = Paths(child.program);
  const std::vector<char*> argv = Pointers(child.arguments);
  const std::vector<char*> envp = Pointers(child.environment);
  Plan plan{child, paths, argv.data(), envp.data(), getpid(), null.get(), tells.get(), {}};
  // No handler of ours may run in the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  plan.mask = before;
  if (child.default_signals) sigemptyset(&plan.mask);
  const pid_t pid = Fork(plan);
  int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return SystemError("fork for " + child.program, error);
  tells.Reset();
  ssize_t size = 0;
  while ((size = read(told.get(), &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  if (size == 0) return pid;  // closed by exec
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return SystemError("start " + child.program, error);
}

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void EndChildren() {
  const pid_t self = getpid();
  // A child that has become another user cannot be killed, and nobody may wait for it.
  const Nanos until = Clock::System().Monotonic() + kEndChildren;
  // The children of a killed process come to us, so go on until there are none.
  for (;;) {
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0) return;
    if (KillChildren(self) == 0 || Clock::System().Monotonic() > until) return;
    poll(nullptr, 0, 1);
  }
}

}  // namespace sonde
