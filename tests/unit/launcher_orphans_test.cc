// What a dead daemon has left is found in time, whatever its user does with it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/unique_fd.h"
#include "launcher/process_id.h"

namespace sonde::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Makes this process's environment so long that nobody reads it to its end, as any process may
// where the kernel can checkpoint processes.
bool LengthenEnvironment() {
  constexpr uint64_t kSize = uint64_t{1} << 40;
  void* const at =
      ::mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  std::string text;
  std::getline(std::ifstream("/proc/self/stat"), text);
  std::istringstream rest(text.substr(text.rfind(')') + 2));
  std::vector<std::string> fields(3);  // what follows is field 3, as proc(5) counts
  for (std::string word; rest >> word;) fields.push_back(word);
  const auto field = [&](size_t number) { return std::stoull(fields.at(number)); };
  prctl_mm_map map{};
  map.start_code = field(26);
  map.end_code = field(27);
  map.start_stack = field(28);
  map.start_data = field(45);
  map.end_data = field(46);
  map.start_brk = field(47);
  map.brk = reinterpret_cast<uint64_t>(::sbrk(0));
  map.arg_start = field(48);
  map.arg_end = field(49);
  map.env_start = reinterpret_cast<uint64_t>(at);
  map.env_end = map.env_start + kSize - 1;
  map.exe_fd = ~0u;
  return ::prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) == 0;
}

// A process that is nobody's child but init's, runs `prepare` and waits; none if that is false.
template <typename Prepare>
ProcessId Orphan(const Prepare& prepare) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const UniqueFd told(ends[0]);
  UniqueFd tell(ends[1]);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const pid_t orphan = ::fork();
    if (orphan != 0) ::_exit(0);
    const pid_t own = prepare() ? ::getpid() : 0;
    if (::write(tell.get(), &own, sizeof(own)) != sizeof(own) || own == 0) ::_exit(1);
    for (;;) ::pause();
  }
  ::waitpid(parent, nullptr, 0);
  tell.Reset();
  pid_t pid = 0;
  return ::read(told.get(), &pid, sizeof(pid)) == sizeof(pid) ? Identify(pid) : ProcessId{};
}

// The identity of a process that has ended.
ProcessId Ended() {
  const ProcessId process = Orphan([] { return true; });
  KillSession(process);
  EXPECT_TRUE(WaitForEnd(process, Deadline(milliseconds(10'000))));
  return process;
}

TEST(KillOrphans, WaitsNoLongerThanItMayForAnEnvironment) {
  const ProcessId daemon = Ended();
  const ProcessId orphan = Orphan(LengthenEnvironment);
  if (orphan.pid == 0) GTEST_SKIP() << "this kernel moves no environment";
  const auto begin = steady_clock::now();
  KillOrphans(daemon, ::getuid(), Deadline(milliseconds(100)));
  EXPECT_LT(steady_clock::now() - begin, milliseconds(5000));
  EXPECT_FALSE(WaitForEnd(orphan, Deadline(milliseconds(0)))) << "it does not name the daemon";
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1) << "whoever has looked is gone";
  ::kill(orphan.pid, SIGKILL);
}

}  // namespace
}  // namespace sonde::launch
