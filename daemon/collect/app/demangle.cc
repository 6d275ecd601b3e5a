#include "daemon/collect/app/demangle.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "core/process/close_descriptors.h"
#include "core/text/names.h"
#include "core/text/tag_text.h"
#include "core/time.h"
#include "core/unique_fd.h"

namespace sonde::collect {
namespace {

// Of processor time: on a busy node a child may have to wait for it.
constexpr timeval kForOne = {.tv_sec = 0, .tv_usec = 50'000};
constexpr size_t kMemory = 32u << 20;

Nanos Now() { return Clock::System().Monotonic(); }

struct Free {
  void operator()(char* text) const { std::free(text); }
};
using CText = std::unique_ptr<char, Free>;

CText Translate(const std::string& symbol) {
  int status = 0;
  return CText(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status));
}

// The mark of a constructor or destructor that shares its name with another one: the symbol with
// another digit has the same name. C2 and D2, those of a base, have none, since a function that
// serves for an object by itself, too, is called by them (elf_symbols.h).
std::string_view MarkOf(const std::string& symbol, std::string_view name) {
  constexpr int kMostTries = 8;
  std::string other = symbol;
  int tries = 0;
  for (size_t i = 2; i + 1 < symbol.size() && tries < kMostTries; ++i) {
    const char kind = symbol[i] == 'I' ? symbol[i - 1] : symbol[i];
    const char digit = symbol[i + 1];
    const bool marked = (kind == 'C' && (digit == '1' || digit == '3')) ||
                        (kind == 'D' && (digit == '0' || digit == '1'));
    if (!marked) continue;
    ++tries;
    other[i + 1] = '2';
    const CText same = Translate(other);
    other[i + 1] = digit;
    if (same == nullptr || name != same.get()) continue;
    return digit == '0' ? " [deleting]" : digit == '1' ? " [complete]" : " [allocating]";
  }
  return {};
}

// What the process has now and a little more.
void LimitMemory() {
  FILE* const file = fopen("/proc/self/statm", "re");
  if (file == nullptr) return;
  unsigned long data = 0;
  if (std::fscanf(file, "%*u %*u %*u %*u %*u %lu", &data) == 1) {
    const rlim_t bytes = data * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kMemory;
    const rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_DATA, &limit);
  }
  std::fclose(file);
}

// Tells each answer at once: a byte with its size, 0 for none, and the text.
[[noreturn]] void BeTheChild(std::span<const CxxName> names, pid_t parent, int fd) {
  // It must not stay when the daemon is killed; nor dump a core of it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // A connection that the daemon closes meanwhile is to be closed.
  CloseDescriptors(STDERR_FILENO + 1, fd - 1);
  CloseDescriptors(fd + 1);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGPROF, SIGPIPE}) {
    std::signal(signal, SIG_DFL);
  }
  sigset_t blocked;
  sigemptyset(&blocked);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  LimitMemory();
  for (const CxxName& name : names) {
    const itimerval alarm = {.it_interval = {}, .it_value = kForOne};
    setitimer(ITIMER_PROF, &alarm, nullptr);  // ends the child
    TagText text;
    const std::string found = DemangleHere(std::string(name.symbol));
    size_t size = 0;
    if (!found.empty()) {
      PutTagText(found, text);
      size = std::string_view(text).size();
    }
    char answer[1 + sizeof(text)];
    answer[0] = static_cast<char>(size);
    std::copy_n(text, size, answer + 1);
    if (write(fd, answer, 1 + size) != static_cast<ssize_t>(1 + size)) _exit(1);
  }
  _exit(0);
}

// Takes answers as they come.
class Answers {
 public:
  Answers(std::span<const CxxName> names, int fd) : names_(names), fd_(fd) {}

  // Until all are there, or none comes any more; how many there are.
  size_t Take(Nanos end) {
    while (taken_ < names_.size() && Read(end)) {
      while (TakeOne()) {
      }
      if (broken_) break;
    }
    return taken_;
  }

 private:
  bool Read(Nanos end) {
    const Nanos left = end - Now();
    if (left <= 0) return false;
    pollfd readable = {.fd = fd_, .events = POLLIN, .revents = 0};
    const int ready = poll(&readable, 1, static_cast<int>(left / kMillisecond) + 1);
    if (ready < 0) return errno == EINTR;
    if (ready == 0) return false;
    char bytes[4096];
    const ssize_t got = read(fd_, bytes, sizeof(bytes));
    if (got < 0) return errno == EINTR;
    came_.append(bytes, static_cast<size_t>(got));
    return got > 0;
  }
  bool TakeOne() {
    if (came_.empty() || taken_ == names_.size()) return false;
    const size_t size = static_cast<unsigned char>(came_[0]);
    if (came_.size() < 1 + size) return false;
    const std::string_view text(came_.data() + 1, size);
    broken_ = size > 0 && !names::IsTagValue(text);
    if (broken_) return false;
    if (size > 0) names_[taken_].value->assign(text);
    ++taken_;
    came_.erase(0, 1 + size);
    return true;
  }

  std::span<const CxxName> names_;
  int fd_;
  std::string came_;
  size_t taken_ = 0;
  bool broken_ = false;
};

// How many names were answered; nothing if there is no child.
std::optional<size_t> AskAChild(std::span<const CxxName> names, Nanos end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return {};
  if (child == 0) BeTheChild(names, parent, to.get());
  to.Reset();
  const size_t answered = Answers(names, from.get()).Take(end);
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return answered;
}

}  // namespace

std::string DemangleHere(const std::string& symbol) {
  const CText name = Translate(symbol);
  if (name == nullptr) return {};
  std::string text = name.get();
  text += MarkOf(symbol, name.get());
  return text;
}

void LeaveMangled(std::span<const CxxName> names) {
  for (const CxxName& name : names) {
    TagText text;
    PutTagText(name.symbol, text);
    name.value->assign(text);
  }
}

bool Demangle(std::span<const CxxName> names, Nanos limit) {
  LeaveMangled(names);
  const Nanos end = Now() + limit;
  bool all = true;
  while (!names.empty()) {
    const std::optional<size_t> answered = AskAChild(names, end);
    if (!answered) return false;
    if (*answered == names.size()) return all;
    all = false;
    if (Now() >= end) return false;
    // The one that it stopped at would stop another one.
    names = names.subspan(*answered + 1);
  }
  return all;
}

}  // namespace sonde::collect
