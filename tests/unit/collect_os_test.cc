// The operating system's sources, on files in the kernel's formats.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/registry.h"
#include "tests/unit/collect_tree.h"

namespace sonde::collect::collect_os_test {
namespace {

using testing::IsNan;
using testing::Not;

// Like the kernel's: user nice system idle iowait irq softirq steal guest guest_nice.
std::string CpuLine(std::string_view name, int seed) {
  return fmt::format("{}  {} {} {} {} {} {} {} {} 7 9\n", name, 100 * seed, seed, 30 * seed,
                     1000 * seed, 5 * seed, 2 * seed, 3 * seed, 4 * seed);
}
std::string StatText(const std::vector<int>& cores) {
  std::string text = CpuLine("cpu", 10);
  for (const int core : cores) text += CpuLine(fmt::format("cpu{}", core), core + 1);
  text += "intr 8885917 17";
  for (int i = 0; i < 2000; ++i) text += " 0";
  return text +
         "\nctxt 38014093\nbtime 1418183276\nprocesses 26442\nprocs_running 2\nprocs_blocked 1\n"
         "softirq 5057579 250191 1481983 1647 211099 186066 0 1783454 622196 12499 508444\n";
}

class OsSources : public testing::Test {
 protected:
  Tree tree_;
  ReadBuffer buffer_;
  Nanos now_ = kSecond;
};

TEST_F(OsSources, ProcessorsAreTimesByMode) {
  tree_.Write("proc/stat", StatText({0, 1}));
  const auto cpu = MakeCpuSource(tree_.roots(), 2, buffer_);
  cpu->Sample(now_);
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(Value(*cpu, "node_cpu_seconds_total{mode=\"user\"}"), 1000 * tick);
  EXPECT_DOUBLE_EQ(Value(*cpu, "node_cpu_seconds_total{mode=\"steal\"}"), 40 * tick);
  EXPECT_EQ(Value(*cpu, "node_intr_total"), 8885917);
  EXPECT_EQ(Value(*cpu, "node_context_switches_total"), 38014093);
  EXPECT_EQ(Value(*cpu, "node_forks_total"), 26442);
  EXPECT_EQ(Value(*cpu, "node_procs_running"), 2);
  EXPECT_EQ(Value(*cpu, "node_procs_blocked"), 1);
  EXPECT_EQ(Value(*cpu, "node_softirqs_total{vector=\"hi\"}"), 250191);
  EXPECT_EQ(Value(*cpu, "node_softirqs_total{vector=\"net_rx\"}"), 211099);
  EXPECT_EQ(Value(*cpu, "node_softirqs_total{vector=\"rcu\"}"), 508444);
  EXPECT_EQ(cpu->series().size(), 23u);
}

TEST_F(OsSources, SoftInterruptsAKernelDoesNotCountAreMissing) {
  tree_.Write("proc/stat", CpuLine("cpu", 1) + "softirq 60 10 20 30\nctxt 5\n");
  const auto cpu = MakeCpuSource(tree_.roots(), 2, buffer_);
  cpu->Sample(now_);
  EXPECT_EQ(Value(*cpu, "node_softirqs_total{vector=\"net_tx\"}"), 30);
  EXPECT_THAT(Value(*cpu, "node_softirqs_total{vector=\"net_rx\"}"), IsNan());
  EXPECT_EQ(Value(*cpu, "node_context_switches_total"), 5);
}

TEST_F(OsSources, ProcessorsAppearOneByOneAtLevelFourAndMayGoOffline) {
  tree_.Write("proc/stat", StatText({0, 1, 3}));
  const auto cpu = MakeCpuSource(tree_.roots(), 4, buffer_);
  cpu->Sample(now_);
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  const std::string third = "node_cpu_core_seconds_total{cpu=\"3\",mode=\"idle\"}";
  EXPECT_DOUBLE_EQ(Value(*cpu, third), 4000 * tick);
  const uint32_t generation = cpu->generation();
  cpu->Sample(now_);
  EXPECT_EQ(cpu->generation(), generation);
  tree_.Write("proc/stat", StatText({0, 3}));
  cpu->Sample(now_);
  EXPECT_NE(cpu->generation(), generation);
  EXPECT_DOUBLE_EQ(Value(*cpu, third), 4000 * tick);
  EXPECT_FALSE(Has(*cpu, "node_cpu_core_seconds_total{cpu=\"1\",mode=\"idle\"}"));
}

TEST_F(OsSources, MemoryIsInBytesUnderTheNamesOfNodeExporter) {
  tree_.Write(
      "proc/meminfo",
      "MemTotal:        3742148 kB\nMemFree:          225472 kB\nStrange:  5 kB\n"
      "Active:           70000 kB\nActive(anon):    2020004 kB\nHardwareCorrupted:     4 kB\n"
      "HugePages_Total:       3\nHugePages_Rsvd:        2\nHugetlb:            6144 kB\n");
  const auto two = MakeMeminfoSource(tree_.roots(), 2, buffer_);
  two->Sample(now_);
  EXPECT_EQ(Value(*two, "node_memory_MemTotal_bytes"), 3742148.0 * 1024);
  EXPECT_EQ(Value(*two, "node_memory_HugePages_Total"), 3);
  EXPECT_EQ(Value(*two, "node_memory_Active_anon_bytes"), 2020004.0 * 1024);
  EXPECT_EQ(Value(*two, "node_memory_HardwareCorrupted_bytes"), 4.0 * 1024);
  EXPECT_EQ(Value(*two, "node_memory_HugePages_Rsvd"), 2);
  EXPECT_EQ(Value(*two, "node_memory_Hugetlb_bytes"), 6144.0 * 1024);
  EXPECT_EQ(two->series().size(), 7u);
  const auto four = MakeMeminfoSource(tree_.roots(), 4, buffer_);
  four->Sample(now_);
  EXPECT_EQ(Value(*four, "node_memory_Active_bytes"), 70000.0 * 1024);
}

TEST_F(OsSources, LoadHasDecimalsAndTheThreadsThereAre) {
  tree_.Write("proc/loadavg", "0.20 12.18 100.02 1/80 11206\n");
  const auto load = MakeLoadavgSource(tree_.roots(), buffer_);
  load->Sample(now_);
  EXPECT_DOUBLE_EQ(Value(*load, "node_load1"), 0.20);
  EXPECT_DOUBLE_EQ(Value(*load, "node_load5"), 12.18);
  EXPECT_DOUBLE_EQ(Value(*load, "node_load15"), 100.02);
  EXPECT_EQ(Value(*load, "node_threads"), 80);
}

constexpr std::string_view kNetHead =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n";
std::string NetLine(std::string_view device, int first) {
  std::string line = fmt::format("{:>6}:", device);
  for (int i = 0; i < 16; ++i) line += fmt::format(" {:7}", first + i);
  return line + "\n";
}

TEST_F(OsSources, InterfacesComeAndGo) {
  tree_.Write("proc/net/dev", std::string(kNetHead) + NetLine("lo", 1) + NetLine("eth0", 100) +
                                  NetLine("ib0", 200));
  const auto net = MakeNetdevSource(tree_.roots(), 2, buffer_);
  net->Sample(now_);
  EXPECT_EQ(Value(*net, "node_network_receive_bytes_total{device=\"eth0\"}"), 100);
  EXPECT_EQ(Value(*net, "node_network_transmit_bytes_total{device=\"ib0\"}"), 208);
  EXPECT_EQ(Value(*net, "node_network_transmit_drop_total{device=\"ib0\"}"), 211);
  EXPECT_EQ(Value(*net, "node_network_receive_fifo_total{device=\"ib0\"}"), 204);
  EXPECT_EQ(Value(*net, "node_network_receive_frame_total{device=\"ib0\"}"), 205);
  EXPECT_EQ(Value(*net, "node_network_transmit_fifo_total{device=\"ib0\"}"), 212);
  EXPECT_EQ(Value(*net, "node_network_transmit_carrier_total{device=\"ib0\"}"), 214);
  EXPECT_EQ(Value(*net, "node_network_receive_multicast_total{device=\"ib0\"}"), 207);
  EXPECT_FALSE(Has(*net, "node_network_receive_bytes_total{device=\"lo\"}"));
  EXPECT_EQ(net->series().size(), 26u);
  const uint32_t generation = net->generation();

  tree_.Write("proc/net/dev", std::string(kNetHead) + NetLine("lo", 1) + NetLine("ib0", 300));
  net->Sample(now_);
  EXPECT_NE(net->generation(), generation);
  EXPECT_EQ(Value(*net, "node_network_receive_bytes_total{device=\"ib0\"}"), 300);
  EXPECT_EQ(net->series().size(), 13u);
}

TEST_F(OsSources, TheLoopbackInterfaceCountsAtLevelFour) {
  tree_.Write("proc/net/dev", std::string(kNetHead) + NetLine("lo", 1));
  const auto net = MakeNetdevSource(tree_.roots(), 4, buffer_);
  net->Sample(now_);
  EXPECT_EQ(Value(*net, "node_network_receive_bytes_total{device=\"lo\"}"), 1);
  EXPECT_EQ(Value(*net, "node_network_transmit_carrier_total{device=\"lo\"}"), 15);
  EXPECT_EQ(Value(*net, "node_network_receive_compressed_total{device=\"lo\"}"), 7);
  EXPECT_EQ(Value(*net, "node_network_transmit_compressed_total{device=\"lo\"}"), 16);
}

constexpr std::string_view kDiskNumbers = "10 11 12 13000 20 21 22 23000 2 24000 25000";
std::string DiskLine(std::string_view device) {
  return fmt::format(" 8       0 {} {} 1 2 3 4\n", device, kDiskNumbers);
}

TEST_F(OsSources, OnlyWholeDisksCountBelowLevelFour) {
  std::string text;
  for (const char* device :
       {"loop0", "ram1", "zram0", "sda", "sda1", "sda12", "sdaa", "nvme0n1", "nvme0n1p1", "mmcblk0",
        "mmcblk0p2", "dm-1", "dm-10", "md127", "sr0", "drbd1", "fd0"}) {
    text += DiskLine(device);
  }
  tree_.Write("proc/diskstats", text);
  const auto disks = MakeDisksSource(tree_.roots(), 2, buffer_);  // there is no /sys/block
  disks->Sample(now_);
  std::vector<std::string> devices;
  for (const Series& s : disks->series()) {
    if (s.metric.name == "node_disk_read_bytes_total") devices.push_back(*s.tags.Find("device"));
  }
  EXPECT_THAT(devices, testing::ElementsAre("sda", "sdaa", "nvme0n1", "mmcblk0", "drbd1"));
  EXPECT_EQ(Value(*disks, "node_disk_read_bytes_total{device=\"sda\"}"), 12 * 512);
  EXPECT_EQ(Value(*disks, "node_disk_io_time_seconds_total{device=\"sda\"}"), 24);

  const auto all = MakeDisksSource(tree_.roots(), 4, buffer_);
  all->Sample(now_);
  EXPECT_EQ(Value(*all, "node_disk_io_now{device=\"sda12\"}"), 2);
}

TEST_F(OsSources, DisksAreReadFromTheirOwnFiles) {
  for (const char* disk : {"loop0", "vda", "cciss!c0d0"}) {
    tree_.Write(fmt::format("sys/block/{}/stat", disk), std::string(kDiskNumbers) + "\n");
  }
  const auto disks = MakeDisksSource(tree_.roots(), 3, buffer_);
  disks->Sample(now_);
  EXPECT_EQ(disks->series().size(), 32u);
  EXPECT_EQ(Value(*disks, "node_disk_written_bytes_total{device=\"vda\"}"), 22 * 512);
  EXPECT_EQ(Value(*disks, "node_disk_reads_completed_total{device=\"cciss/c0d0\"}"), 10);
  // A new disk is found within a minute.
  tree_.Write("sys/block/vdb/stat", std::string(kDiskNumbers) + "\n");
  disks->Sample(now_ += 61 * kSecond);
  EXPECT_EQ(Value(*disks, "node_disk_write_time_seconds_total{device=\"vdb\"}"), 23);
}

TEST_F(OsSources, DiscardsAndFlushesAreCountedWhereTheKernelDoes) {
  tree_.Write("sys/block/old/stat", std::string(kDiskNumbers) + " 31 32 33 34000\n");
  tree_.Write("sys/block/vda/stat", std::string(kDiskNumbers) + " 31 32 33 34000 35 36000\n");
  const auto disks = MakeDisksSource(tree_.roots(), 2, buffer_);
  disks->Sample(now_);
  EXPECT_EQ(Value(*disks, "node_disk_flush_requests_total{device=\"vda\"}"), 35);
  EXPECT_EQ(Value(*disks, "node_disk_flush_requests_time_seconds_total{device=\"vda\"}"), 36);
  EXPECT_EQ(Value(*disks, "node_disk_io_time_weighted_seconds_total{device=\"vda\"}"), 25);
  EXPECT_EQ(Value(*disks, "node_disk_io_now{device=\"vda\"}"), 2);
  EXPECT_THAT(Value(*disks, "node_disk_flush_requests_total{device=\"old\"}"), IsNan());
  EXPECT_EQ(Value(*disks, "node_disk_discards_completed_total{device=\"old\"}"), 31);
  EXPECT_EQ(Value(*disks, "node_disk_discarded_bytes_total{device=\"vda\"}"), 33 * 512);
  EXPECT_EQ(Value(*disks, "node_disk_discard_time_seconds_total{device=\"vda\"}"), 34);
}

TEST_F(OsSources, PressureIsInSeconds) {
  tree_.Write("proc/pressure/io",
              "some avg10=0.18 avg60=0.34 avg300=0.10 total=159886802\n"
              "full avg10=0.18 avg60=0.34 avg300=0.10 total=159229614\n");
  const auto io = MakePressureSource(tree_.roots(), Pressure::kIo, buffer_);
  io->Sample(now_);
  EXPECT_DOUBLE_EQ(Value(*io, "node_pressure_io_waiting_seconds_total"), 159.886802);
  EXPECT_DOUBLE_EQ(Value(*io, "node_pressure_io_stalled_seconds_total"), 159.229614);
}

TEST_F(OsSources, WhatCannotBeReadIsMissingAndReadAgainLater) {
  const auto load = MakeLoadavgSource(tree_.roots(), buffer_);
  load->Sample(now_);
  EXPECT_THAT(Value(*load, "node_load1"), IsNan());
  tree_.Write("proc/loadavg", "1.00 2.00 3.00 1/80 11206\n");
  load->Sample(now_ += 10 * kSecond);
  EXPECT_EQ(Value(*load, "node_load1"), 1);
  tree_.Write("proc/loadavg", "4.00 ");
  load->Sample(now_ += kSecond);
  EXPECT_EQ(Value(*load, "node_load1"), 4);
  EXPECT_THAT(Value(*load, "node_load5"), IsNan());
  tree_.Write("proc/loadavg", "");
  load->Sample(now_ += kSecond);
  EXPECT_THAT(Value(*load, "node_load1"), IsNan());
  tree_.Write("proc/loadavg", "5.00 6.00 7.00 1/80 11206\n");
  load->Sample(now_ += kSecond);
  EXPECT_EQ(Value(*load, "node_load15"), 7);
}

// The numbers of a process that ends stand in for a kernel's file that fails.
TEST_F(OsSources, AFileThatFailsIsToldOnceAndTriedAgain) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  tree_.Write("proc/other", "");
  std::filesystem::create_symlink(fmt::format("/proc/{}/statm", child),
                                  tree_.path() + "/proc/loadavg");
  const auto load = MakeLoadavgSource(tree_.roots(), buffer_);
  load->Sample(now_);
  EXPECT_GT(Value(*load, "node_load1"), 0);
  EXPECT_THAT(load->TakeNotes(), testing::IsEmpty());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  load->Sample(now_ += kSecond);
  EXPECT_THAT(Value(*load, "node_load1"), IsNan());
  EXPECT_THAT(load->TakeNotes(),
              testing::ElementsAre(testing::AllOf(
                  testing::HasSubstr("proc/loadavg could not be read at 1970-01-01T00:00:02Z"),
                  testing::HasSubstr("No such process"))));
  load->Sample(now_ += kSecond);
  EXPECT_THAT(load->TakeNotes(), testing::IsEmpty());
  tree_.Remove("proc/loadavg");
  tree_.Write("proc/loadavg", "1.00 2.00 3.00 1/80 11206\n");
  load->Sample(now_ += 3 * kSecond);
  EXPECT_EQ(Value(*load, "node_load1"), 1);
}

TEST_F(OsSources, AFileLargerThanTheBufferIsReadWhole) {
  std::string text(kNetHead);
  for (int i = 0; i < 500; ++i) text += NetLine(fmt::format("veth{}", i), i);
  tree_.Write("proc/net/dev", text);
  const auto net = MakeNetdevSource(tree_.roots(), 2, buffer_);
  net->Sample(now_);
  EXPECT_EQ(Value(*net, "node_network_receive_bytes_total{device=\"veth499\"}"), 499);
}

TEST_F(OsSources, ADeviceWithAnImpossibleNameIsPassedOver) {
  tree_.Write("proc/net/dev", std::string(kNetHead) + NetLine("e\x01h", 1) + NetLine("eth0", 5) +
                                  NetLine("eth0", 6));
  const auto net = MakeNetdevSource(tree_.roots(), 2, buffer_);
  net->Sample(now_);
  EXPECT_EQ(net->series().size(), 13u);
  EXPECT_EQ(Value(*net, "node_network_receive_bytes_total{device=\"eth0\"}"), 5);
}

TEST_F(OsSources, ANodeSaysWhichProcessorsItHas) {
  tree_.Write("proc/cpuinfo",
              "processor : 0\nmodel name : Some CPU\nphysical id : 0\n\n"
              "processor : 1\nmodel name : Some CPU\nphysical id : 1\n");
  tree_.Write("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3000000\n");
  const auto source = MakeProcessorSource(tree_.roots());
  source->Sample(now_);
  EXPECT_EQ(Value(*source,
                  "node_processor_info{cpus=\"2\",megahertz=\"3000\",model=\"Some CPU\",sockets="
                  "\"2\"}"),
            1);
  tree_.Write("proc/cpuinfo", "nothing that is known\n");
  EXPECT_TRUE(MakeProcessorSource(tree_.roots())->series().empty());
}

TEST(OsSourcesLive, ThisMachineHasThem) {
  ReadBuffer buffer;
  const Roots roots;
  const auto cpu = MakeCpuSource(roots, 4, buffer);
  cpu->Sample(kSecond);
  for (const double value : cpu->values()) EXPECT_THAT(value, Not(IsNan()));
  const auto memory = MakeMeminfoSource(roots, 2, buffer);
  memory->Sample(kSecond);
  EXPECT_GT(Value(*memory, "node_memory_MemTotal_bytes"), 1 << 20);
  EXPECT_LE(Value(*memory, "node_memory_MemAvailable_bytes"),
            Value(*memory, "node_memory_MemTotal_bytes"));
}

}  // namespace
}  // namespace sonde::collect::collect_os_test
