// An application for the tests of libsonde_functions: carries out the commands that it reads from
// standard input, one a line, and answers each with one line. What it calls of instrumented.h was
// compiled with -finstrument-functions, its own functions were not.
#include <dlfcn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/commands.h"
#include "tests/unit/instrumented.h"

// Of the library that the program is linked with.
extern "C" void needed_work(int times);

namespace {

// TIMES [THREADS]
std::string Work(std::istream& in) {
  int times = 1, threads = 1;
  in >> times >> threads;
  if (threads == 1) {
    work(times);
    return "ok";
  }
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([times] { work(times); });
  for (std::thread& thread : all) thread.join();
  return "ok";
}

std::string Needed(std::istream&) {
  needed_work(5);
  return "ok";
}

std::string Load(std::istream&) {
  void* const library = dlopen(LOADED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  const auto entry = reinterpret_cast<void (*)(int)>(dlsym(library, "loaded_work"));
  if (entry == nullptr) return dlerror();
  entry(7);
  return "ok";
}

std::string Cxx(std::istream&) {
  call_cxx();
  return "ok";
}

std::string CxxLongName(std::istream&) {
  call_cxx_long_name();
  return "ok";
}

std::string CxxConstructors(std::istream&) {
  call_cxx_constructors();
  return "ok";
}

std::string CxxInHandler(std::istream&) {
  call_cxx_in_handler();
  return "ok";
}

std::string LongName(std::istream&) {
  call_long_name();
  return "ok";
}

std::string Many(std::istream&) {
  call_many();
  return "ok";
}

// The seconds of processor time that it takes.
std::string TimeMany(std::istream&) {
  const auto now = [] {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double begin = now();
  call_many();
  return std::to_string(now() - begin);
}

std::string Fork(std::istream&) { return fork_and_count(9) == 0 ? "ok" : "a child failed"; }

std::string TimedFork(std::istream&) { return std::to_string(time_fork()); }

// DEPTH
std::string Recursion(std::istream& in) {
  int depth = 1;
  in >> depth;
  return std::to_string(time_recursion(depth));
}

// JUMPS
std::string Jumps(std::istream& in) {
  int jumps = 1;
  in >> jumps;
  return std::to_string(time_after_jumps(jumps));
}

// Not linked with libsonde, which some tests leave out.
void Register(const std::string& name) {
  using Counter = void*(const char*, const char*, const char*, int, const void*, size_t);
  static auto* const counter = reinterpret_cast<Counter*>(dlsym(RTLD_DEFAULT, "sonde_counter"));
  counter(name.c_str(), "1", "", 0, nullptr, 0);
}

// Alarms while the program registers metrics and forks, which hold libsonde's mutex, and asks for
// memory. Answers how many it had.
std::string Handler(std::istream&) {
  handle_alarms();
  const itimerval often{{0, 200}, {0, 200}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; alarms_handled() < 1000; ++i) {
    Register("metric_" + std::to_string(i % 5000));
    if (i % 100 != 0) continue;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  return std::to_string(alarms_handled());
}

// What the other tool has counted.
std::string Tool(std::istream&) {
  std::string answer;
  for (const char* name : {"tool_enters", "tool_exits"}) {
    const auto count = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, name));
    answer += (answer.empty() ? "" : " ") + (count == nullptr ? "none" : std::to_string(count()));
  }
  return answer;
}

const sonde::Commands kCommands = {
    {"work", Work},
    {"needed", Needed},
    {"load", Load},
    {"cxx", Cxx},
    {"cxx_in_handler", CxxInHandler},
    {"cxx_long_name", CxxLongName},
    {"cxx_constructors", CxxConstructors},
    {"many", Many},
    {"time_many", TimeMany},
    {"fork", Fork},
    {"recursion", Recursion},
    {"jumps", Jumps},
    {"timed_fork", TimedFork},
    {"tool", Tool},
    {"handler", Handler},
    {"long_name", LongName},
};

}  // namespace

int main() { return sonde::CarryOut(kCommands); }
