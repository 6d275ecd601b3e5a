// Texts of /proc as kernels write them, for a machine of any number of processors. Every number is
// made from its place, so that a test knows what to expect: see the functions of one number each.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "tests/unit/collect_tree.h"

namespace sonde::collect {

class ProcFs {
 public:
  explicit ProcFs(int cpus) : cpus_(cpus) {}

  // What a counter of a processor has at a time, which counts up.
  static uint64_t Number(int row, int cpu, int time) {
    return static_cast<uint64_t>(1000 * (row + 1) + 10 * cpu + 7 * time);
  }
  uint64_t Sum(int row, int time) const {
    uint64_t sum = 0;
    for (int cpu = 0; cpu < cpus_; ++cpu) sum += Number(row, cpu, time);
    return sum;
  }

  std::string Stat(int time) const {
    std::string text = "cpu ";
    for (int mode = 0; mode < 10; ++mode) text += fmt::format(" {}", Sum(mode, time));
    text += '\n';
    for (int cpu = 0; cpu < cpus_; ++cpu) {
      text += fmt::format("cpu{}", cpu);
      for (int mode = 0; mode < 10; ++mode) text += fmt::format(" {}", Number(mode, cpu, time));
      text += '\n';
    }
    return text + fmt::format(
                      "intr {} 0 9 0\nctxt {}\nbtime 1700000000\nprocesses {}\nprocs_running 2\n"
                      "procs_blocked 0\nsoftirq 55 1 2 3 4 5 6 7 8 9 10\n",
                      Sum(20, time), Sum(21, time), 5000 + time);
  }
  std::string Head(int indent) const {
    std::string text(static_cast<size_t>(indent), ' ');
    for (int cpu = 0; cpu < cpus_; ++cpu) text += fmt::format("CPU{:<8}", cpu);
    return text + '\n';
  }
  std::string Row(std::string_view name, int row, int time, int width) const {
    std::string text = fmt::format("{:>{}}:", name, width);
    for (int cpu = 0; cpu < cpus_; ++cpu) text += fmt::format(" {:10}", Number(row, cpu, time));
    return text;
  }
  std::string Idle(std::string_view name, int width) const {
    std::string text = fmt::format("{:>{}}:", name, width);
    for (int cpu = 0; cpu < cpus_; ++cpu) text += fmt::format(" {:10}", 0);
    return text;
  }
  std::string Softirqs(int time) const {
    std::string text = Head(20);
    int row = 0;
    for (const std::string_view name : {"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL",
                                        "TASKLET", "SCHED", "HRTIMER", "RCU"}) {
      text += Row(name, row++, time, 12) + '\n';
    }
    return text;
  }
  std::string Interrupts(int time) const {
    return Head(11) + Row("24", 0, time, 4) + "  PCI-MSI 524288-edge      nvme0q0, nvme0q1\n" +
           Idle("25", 4) + "  PCI-MSI 524289-edge      eth0\n" + Row("26", 1, time, 4) +
           "  PCI-MSI 524290-edge\n" + Row("LOC", 2, time, 4) + "   Local timer interrupts\n" +
           Row("TLB", 3, time, 4) + "   TLB shootdowns\n" + fmt::format("ERR: {:10}\n", time) +
           "MIS:          0\n";
  }
  // `columns` 11 as until 5.9, 13 until 6.2, 15 now.
  std::string Softnet(int time, int columns) const {
    std::string text;
    for (int cpu = 0; cpu < cpus_; ++cpu) {
      for (int column = 0; column < columns; ++column) {
        const uint64_t number = column == 12 ? cpu : column > 10 ? 0 : Number(column, cpu, time);
        text += fmt::format("{}{:08x}", column == 0 ? "" : " ", number);
      }
      text += '\n';
    }
    return text;
  }
  std::string Schedstat(int time) const {
    std::string text = "version 15\ntimestamp 15819019232\n";
    for (int cpu = 0; cpu < cpus_; ++cpu) {
      text += fmt::format("cpu{} 498494191 0 3533438552 2553969831 3853684107 2465731542", cpu);
      for (int i = 0; i < 3; ++i) text += fmt::format(" {}", Number(i, cpu, time));
      text += "\ndomain0 00000000,00000003 212499247 210112015 1861015 1860405436 536440\n";
    }
    return text;
  }
  static std::string Buddyinfo(int nodes, int time) {
    std::string text;
    for (int node = 0; node < nodes; ++node) {
      for (const std::string_view zone : {"DMA", "Normal"}) {
        text += fmt::format("Node {}, zone {:>8} ", node, zone);
        for (int order = 0; order < 11; ++order) {
          text += fmt::format("{:6} ", Number(order, node, time));
        }
        text += '\n';
      }
    }
    return text;
  }
  void WriteTo(const Tree& tree, int time) const {
    tree.Write("proc/stat", Stat(time));
    tree.Write("proc/softirqs", Softirqs(time));
    tree.Write("proc/interrupts", Interrupts(time));
    tree.Write("proc/net/softnet_stat", Softnet(time, 15));
    tree.Write("proc/schedstat", Schedstat(time));
    tree.Write("proc/buddyinfo", Buddyinfo(std::max(cpus_ / 64, 1), time));
  }

 private:
  const int cpus_;
};

}  // namespace sonde::collect
