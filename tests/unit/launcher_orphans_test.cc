// What a dead daemon has left is found in time, whatever its user does with it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/unique_fd.h"
#include "launcher/process_id.h"
#include "tests/unit/in_child.h"
#include "tests/unit/temp_dir.h"

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

// In this process, whose mounts are its own, slurmstepd's control group has the processes of that
// text. False if that may not be.
bool ShowGroup(const std::string& directory, const std::string& processes) {
  const std::string group = directory + "/groups/step_0/slurm";
  std::filesystem::create_directories(group);
  std::ofstream(group + "/cgroup.procs") << processes;
  std::ofstream(directory + "/own") << "0::/step_0/slurm\n";
  const auto show = [](const std::string& what, const char* where) {
    return ::mount(what.c_str(), where, nullptr, MS_BIND, nullptr) == 0;
  };
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         show(directory + "/groups", "/sys/fs/cgroup") &&
         show(directory + "/own", "/proc/self/cgroup");
}

TEST(KillLeftInGroup, LooksAtEveryProcessHoweverManyThereAre) {
  const TempDir directory;
  const ProcessId daemon = Ended();
  const ProcessId across = Orphan([] { return true; }), last = Orphan([] { return true; });
  // Numbers that no process has; then one that lies on both sides of an edge of 16 KiB.
  std::string processes;
  while (processes.size() < 16360) processes += "4194305\n";
  processes += std::string(16383 - 1 - processes.size(), '0') + "\n";
  processes += std::to_string(across.pid) + "\n";
  while (processes.size() < 50'000) processes += "4194305\n";
  processes += std::to_string(last.pid) + "\n";
  SharedWithChild<std::atomic<bool>> shown;
  EXPECT_EQ(InChild([&] {
              *shown = ShowGroup(directory.path(), processes);
              if (!*shown) return;
              const Deadline deadline(milliseconds(10'000));
              EXPECT_TRUE(KillLeftInGroup(daemon, ::getuid(), deadline));
              EXPECT_TRUE(WaitForEnd(across, Deadline(milliseconds(0))));
              EXPECT_TRUE(WaitForEnd(last, Deadline(milliseconds(0))));
            }),
            0);
  for (const ProcessId& orphan : {across, last}) KillSession(orphan);
  if (!*shown) GTEST_SKIP() << "only root may mount";
}

}  // namespace
}  // namespace sonde::launch
