// What kind of processors a node has: nodes of the same type have the same peaks of memory and
// arithmetic (cli/peaks/).
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sonde {

// What is not known is "" or 0.
struct ProcessorType {
  std::string model;       // "AMD EPYC 9654 96-Core Processor", "arm 0x41 0xd4f", "POWER9"
  uint32_t cpus = 0;       // hardware threads that are online
  uint32_t sockets = 0;    // packages
  uint32_t megahertz = 0;  // the highest clock that cpufreq names; virtual machines name none

  bool known() const { return !model.empty() && cpus > 0; }
  // "AMD EPYC, 2 CPUs, 1 socket, at most 3700 MHz".
  std::string ToString() const;
  bool operator==(const ProcessorType&) const = default;
};

// A model's name has at most so many bytes, which are ASCII that a tag may hold; others are left
// out.
inline constexpr size_t kMaxProcessorModel = 96;

// From the text of /proc/cpuinfo.
ProcessorType ParseProcessorType(std::string_view cpuinfo);

// Of this machine; `proc` and `sys` are where the kernel's files lie. To read cpuinfo takes
// milliseconds on machines with many processors.
ProcessorType ReadProcessorType(const std::string& proc = "/proc", const std::string& sys = "/sys");

}  // namespace sonde
