#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/text/options.h"
#include "launcher/launch.h"
#include "launcher/machine_open.h"
#include "launcher/perf_open.h"
#include "launcher/process.h"
#include "launcher/site/site_policy.h"

namespace sonde::launch {
namespace {

std::string EventsPacket(const std::vector<launch::PerfEvent>& task,
                         const std::vector<launch::MachineEvent>& machine = {}) {
  std::string packet(1, launch::kEvents);
  const auto add = [&packet](const auto& events) {
    packet += static_cast<char>(events.size());
    packet.append(reinterpret_cast<const char*>(events.data()),
                  events.size() * sizeof(*events.data()));
  };
  add(task);
  add(machine);
  return packet;
}

using testing::HasSubstr;

launch::MachineEvent MachineEvent(std::string_view pmu, uint32_t cpu, uint64_t config) {
  launch::MachineEvent event{};
  pmu.copy(event.pmu, sizeof(event.pmu) - 1);
  event.cpu = cpu;
  event.config = config;
  return event;
}

TEST(PerfEvents, AMalformedListIsRefused) {
  const std::string good = EventsPacket({{PERF_TYPE_SOFTWARE, 1, 2, 0, 0}},
                                        {MachineEvent("power", 3, 7), MachineEvent("x", 0, 0)});
  ASSERT_TRUE(launch::ParseEvents(good).ok());
  EXPECT_EQ(launch::ParseEvents(good)->task.at(0).config, 2u);
  EXPECT_EQ(launch::ParseEvents(good)->machine.at(0).cpu, 3u);
  EXPECT_TRUE(launch::ParseEvents(EventsPacket({})).ok());
  const std::vector<launch::PerfEvent> many(launch::kMaxEvents + 1);
  const std::vector<launch::MachineEvent> machines(launch::kMaxMachineEvents + 1);
  for (const std::string& bad :
       {std::string(), std::string("E"), std::string("R\0\0", 3), std::string("E\0", 2), good + "x",
        good.substr(0, good.size() - 1), EventsPacket(many), EventsPacket({}, machines)}) {
    EXPECT_FALSE(launch::ParseEvents(bad).ok()) << bad.size();
  }
}

// Devices as the kernel lists them; "power" is the kernel's own clock of a processor, which every
// machine has and only root may count.
class MachineEvents : public testing::Test {
 protected:
  MachineEvents() {
    std::string pattern = testing::TempDir() + "sonde-devices-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    devices_ = pattern;
    for (const char* device : {"power", "breakpoint", "uncore_imc_0"}) Add(device);
  }
  ~MachineEvents() override { std::filesystem::remove_all(devices_); }

  void Add(const std::string& device) const {
    std::filesystem::create_directories(devices_ + "/" + device);
    std::ofstream(devices_ + "/" + device + "/type") << PERF_TYPE_SOFTWARE << "\n";
    std::ofstream(devices_ + "/" + device + "/cpumask") << "0,7-9\n";
  }
  std::string Results(const launch::MachineEvent& event) const {
    return launch::OpenMachineEvents(std::span(&event, 1), devices_).results;
  }

  std::string devices_;
};

TEST_F(MachineEvents, OnlyKnownDevicesOnTheirOwnProcessorsAreOpened) {
  const std::string denied = std::to_string(EACCES);
  EXPECT_EQ(Results(MachineEvent("breakpoint", 0, 0)), denied);
  EXPECT_EQ(Results(MachineEvent("../devices/power", 0, 0)), denied);
  EXPECT_EQ(Results(MachineEvent("", 0, 0)), denied);
  EXPECT_EQ(Results(MachineEvent("power", 1, 0)), denied);
  EXPECT_EQ(Results(MachineEvent("power", 10, 0)), denied);
  EXPECT_EQ(Results(MachineEvent("amd_umc_0", 0, 0)), std::to_string(ENODEV));
  launch::MachineEvent unended{};
  std::fill(std::begin(unended.pmu), std::end(unended.pmu), 'a');
  EXPECT_EQ(Results(unended), denied);
}

TEST_F(MachineEvents, WhatIsOpenedCounts) {
  const launch::MachineEvent event = MachineEvent("power", 0, PERF_COUNT_SW_CPU_CLOCK);
  const launch::TaskEvents opened = launch::OpenMachineEvents(std::span(&event, 1), devices_);
  if (opened.results != "0") GTEST_SKIP() << "not permitted here: errno " << opened.results;
  uint64_t words[3] = {};
  ASSERT_EQ(::read(opened.fds.at(0).get(), words, sizeof(words)), ssize_t{sizeof(words)});
  EXPECT_GT(words[0], 0u);
  EXPECT_EQ(words[1], words[2]);
}

TEST_F(MachineEvents, ComeInSmallPacketsWithTheirPlaces) {
  const std::vector<launch::MachineEvent> events(20, MachineEvent("breakpoint", 0, 0));
  std::vector<std::string> packets;
  launch::OfferMachineEvents(events, [&](const launch::Writer& packet, std::span<const int> fds) {
    EXPECT_TRUE(fds.empty());
    packets.push_back(packet.packet().substr(0, packet.packet().find('\n')));
  });
  EXPECT_THAT(packets, testing::ElementsAre("Mfirst=0", "Mfirst=8", "Mfirst=16"));
}

TEST(MachinePolicy, AStepMustHaveTheNodeToItselfUnlessTheSiteSaysOtherwise) {
  using enum launch::SitePolicy::Machine;
  constexpr auto kFollow = DaemonSettings::PerfEvents::kFollow;
  EXPECT_TRUE(launch::MayCountMachine(kExclusive, kFollow, true));
  EXPECT_FALSE(launch::MayCountMachine(kExclusive, kFollow, false));
  EXPECT_TRUE(launch::MayCountMachine(kAlways, kFollow, false));
  EXPECT_FALSE(launch::MayCountMachine(kNever, kFollow, true));
}

TEST(MachinePolicy, NobodyHasTheMachinesEventsWhereTheSiteForbidsEvents) {
  using enum launch::SitePolicy::Machine;
  EXPECT_FALSE(launch::MayCountMachine(kAlways, DaemonSettings::PerfEvents::kNever, true));
  EXPECT_FALSE(launch::MayCountMachine(kExclusive, DaemonSettings::PerfEvents::kNever, true));
  EXPECT_FALSE(launch::MayCountMachine(kNever, DaemonSettings::PerfEvents::kGrant, true));
}

TEST(SitePolicies, SayWhatTheDaemonOfAStepIs) {
  using enum launch::StepKind;
  launch::SitePolicy policy;
  EXPECT_EQ(launch::RoleOf(kOther, 2, policy, true), "node");
  EXPECT_EQ(launch::RoleOf(kOther, 2, policy, false), "");  // nobody to send to
  EXPECT_EQ(launch::RoleOf(kOther, 0, policy, true), "");
  EXPECT_EQ(launch::RoleOf(kBatch, 2, policy, false), "solo");
  EXPECT_EQ(launch::RoleOf(kBatch, 0, policy, false), "");
  EXPECT_EQ(launch::RoleOf(kInteractive, 2, policy, false), "");
  policy = {.monitor_steps = false, .monitor_batch = false, .monitor_interactive = true};
  EXPECT_EQ(launch::RoleOf(kOther, 2, policy, true), "");
  EXPECT_EQ(launch::RoleOf(kBatch, 2, policy, false), "");
  EXPECT_EQ(launch::RoleOf(kInteractive, 2, policy, false), "solo");
}

TEST(MachinePolicy, AJobIsAloneWithAllCoresOrAllThreads) {
  const launch::SlurmNode known{.cores_are_shared = false};
  EXPECT_TRUE(launch::HasNodeAlone("0-63", 1, 64, known));
  EXPECT_TRUE(launch::HasNodeAlone("0-31,32-63", 1, 64, known));
  EXPECT_FALSE(launch::HasNodeAlone("0-30,32-63", 63, 64, known));
  EXPECT_TRUE(launch::HasNodeAlone("0-31", 64, 64, known));  // two threads a core
  EXPECT_FALSE(launch::HasNodeAlone("", 1, 64, known));
  EXPECT_FALSE(launch::HasNodeAlone("", 0, -1, known));
  // 32 cores of two threads, of which the job uses one each; and two cores that no job gets.
  EXPECT_TRUE(launch::HasNodeAlone("0-31", 32, 64, {.cores = 32, .cores_are_shared = false}));
  EXPECT_TRUE(launch::HasNodeAlone("2-31", 30, 64, {.cores = 30, .cores_are_shared = false}));
  EXPECT_FALSE(launch::HasNodeAlone("0-30", 31, 64, {.cores = 32, .cores_are_shared = false}));
  EXPECT_FALSE(launch::HasNodeAlone("", 31, 64, {.cores = 32, .cores_are_shared = false}));
  EXPECT_TRUE(launch::HasNodeAlone("2-31", 30, 64,
                                   {.cores = 32, .specialized = 2, .cores_are_shared = false}));
  EXPECT_FALSE(launch::HasNodeAlone("0-31", 64, 64, {.cores = 32, .cores_are_shared = true}));
  EXPECT_EQ(launch::CountListed("0-3,8"), 5);
  for (const char* bad : {"x", "3-1", "0-3,", "1--2", "-"}) {
    EXPECT_LT(launch::CountListed(bad), 5) << bad;
  }
  EXPECT_FALSE(launch::HasNodeAlone("0-63", 64, 64, {})) << "slurm.conf is not known";
}

TEST(PerfEvents, RootOpensWhatUsersMightOrTheSiteGrants) {
  using enum DaemonSettings::PerfEvents;
  EXPECT_TRUE(launch::MayOpenEvents(kFollow, -1));
  EXPECT_TRUE(launch::MayOpenEvents(kFollow, 2));
  EXPECT_FALSE(launch::MayOpenEvents(kFollow, 3));
  EXPECT_TRUE(launch::MayOpenEvents(kGrant, 4));
  EXPECT_FALSE(launch::MayOpenEvents(kNever, -1));
  EXPECT_EQ(launch::RefuseEvents(3).results, "13,13,13");
  EXPECT_TRUE(launch::RefuseEvents(3).fds.empty());
}

TEST(PerfEvents, WhatWouldCountOthersIsRefused) {
  const launch::PerfEvent events[] = {
    {PERF_TYPE_TRACEPOINT, 1, 1, 0, 0},
    {PERF_TYPE_BREAKPOINT, 1, 0, 0, 0},
    {42, 1, 0, 0, 0},  // a device's own type, such as an uncore box
#if defined(__x86_64__)
    {PERF_TYPE_RAW, 1, 0x00c0 | 1u << 21, 0, 0},  // AnyThread
#endif
  };
  const launch::TaskEvents opened = launch::OpenEvents(::getpid(), events, 2);
  EXPECT_TRUE(opened.fds.empty());
  for (const char c : opened.results) EXPECT_THAT(std::string("13,"), HasSubstr(std::string(1, c)));
}

TEST(PerfEvents, SystemCallsAreForStepsAlone) {
  std::string kernel = testing::TempDir() + "sonde-kernel-XXXXXX";
  ASSERT_NE(::mkdtemp(kernel.data()), nullptr);
  EXPECT_EQ(launch::SyscallsTracepoint(false, kernel), -EPERM);
  EXPECT_EQ(launch::SyscallsTracepoint(true, kernel), -ENOENT);
  const std::string folder = kernel + "/debug/tracing/events/raw_syscalls/sys_enter";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/id") << "no number\n";
  EXPECT_EQ(launch::SyscallsTracepoint(true, kernel), -ENOENT);
  std::ofstream(folder + "/id") << "443\n";
  EXPECT_EQ(launch::SyscallsTracepoint(true, kernel), 443);
  std::filesystem::remove_all(kernel);
  const launch::PerfEvent events[] = {{PERF_TYPE_TRACEPOINT, 1, launch::kSyscalls, 0, 0}};
  EXPECT_EQ(launch::OpenEvents(::getpid(), events, 2).results, "1") << "not allowed: EPERM";
  EXPECT_EQ(launch::OpenEvents(::getpid(), events, 2, -ENOENT).results, "2");
}

// A child that waits for us, then execs: as a task of slurmstepd's does.
TEST(PerfEvents, CountFromExecOnInOneGroup) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t task = ::fork();
  if (task == 0) {
    char byte;
    ::close(go[1]);
    [[maybe_unused]] const ssize_t got = ::read(go[0], &byte, 1);
    ::execl("/bin/sh", "sh", "-c", "/bin/true; /bin/true", nullptr);
    ::_exit(127);
  }
  const launch::PerfEvent events[] = {
      {PERF_TYPE_TRACEPOINT, 1, 1, 0, 0},  // a leader that does not open
      {PERF_TYPE_SOFTWARE, 0, PERF_COUNT_SW_PAGE_FAULTS, 0, 0},
      {PERF_TYPE_SOFTWARE, 0, PERF_COUNT_SW_CONTEXT_SWITCHES, 0, 0},
  };
  const launch::TaskEvents opened = launch::OpenEvents(task, events, launch::PerfEventParanoid());
  ::close(go[0]);
  ::close(go[1]);
  ::waitpid(task, nullptr, 0);
  if (opened.results != "13,0,0") GTEST_SKIP() << "no perf events here: " << opened.results;
  ASSERT_EQ(opened.fds.size(), 2u);
  uint64_t values[5] = {};
  ASSERT_EQ(::read(opened.fds[0].get(), values, sizeof(values)), ssize_t{sizeof(values)});
  EXPECT_EQ(values[0], 2u);
  EXPECT_GT(values[2], 0u);
  EXPECT_GT(values[3], 50u) << "page faults of the shell and of what it ran";
  EXPECT_GT(values[4], 0u);
}

}  // namespace
}  // namespace sonde::launch
