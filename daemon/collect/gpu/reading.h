// What can be read of one GPU, whoever made it.
//
// Stands alone, like every file of this folder that gpu_probe.cc uses: it needs the standard
// library and nothing else.
//
// Thread safety: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace sonde::collect::gpu {

inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Libraries are believed up to here.
inline constexpr size_t kMaxDevices = 64;
inline constexpr size_t kMaxLinks = 36;
inline constexpr size_t kMaxProcesses = 1024;  // of one device

// Base units. What is marked as a counter counts from some time before; it may start again from 0.
enum class Value : uint8_t {
  kUtilization,         // ratio
  kMemoryUtilization,   // ratio: time in which the device's memory was busy
  kEncoderUtilization,  // ratio
  kDecoderUtilization,  // ratio
  kMemoryUsed,          // bytes
  kMemoryTotal,         // bytes
  kPower,               // watts
  kPowerLimit,          // watts
  kEnergy,              // joules, counter
  kTemperature,         // degrees Celsius
  kHotspotTemperature,
  kMemoryTemperature,
  kClock,  // hertz
  kMemoryClock,
  kVideoClock,
  kThrottlePower,  // 0 or 1
  kThrottleCurrent,
  kThrottleThermal,
  kThrottlePowerBrake,
  kThrottleHardware,
  kPcieReceived,  // bytes, counter; seen from the device
  kPcieTransmitted,
  kPcieReceiveRate,  // bytes per second
  kPcieTransmitRate,
  kPcieReplays,   // counter
  kLinkReceived,  // bytes, counter; links between GPUs, all of the device's
  kLinkTransmitted,
  kEccCorrected,  // counter
  kEccUncorrected,
  kXidErrors,  // counter, of those seen since the library was opened
  kLastXid,    // number of the newest of them
  kFanSpeed,   // ratio
};
inline constexpr size_t kValues = static_cast<size_t>(Value::kFanSpeed) + 1;

struct Link {
  double received = kMissing;  // bytes, counter
  double transmitted = kMissing;
};

struct Process {
  uint32_t pid = 0;
  double memory = kMissing;  // bytes
};

struct Reading {
  Reading() { Clear(); }
  void Clear() {
    values.fill(kMissing);
    links.fill(Link());
    processes.clear();
    processes_known = false;
  }
  double& operator[](Value value) { return values[static_cast<size_t>(value)]; }
  double operator[](Value value) const { return values[static_cast<size_t>(value)]; }

  std::array<double, kValues> values;
  std::array<Link, kMaxLinks> links;
  std::vector<Process> processes;
  bool processes_known = false;
};

struct Device {
  unsigned index = 0;  // among the vendor's devices of the node, in the order of the PCI bus
  std::string uuid;    // "" if the library gives none
  std::string pci;     // 0000:3b:00.0; "" if not known
  std::string name;    // the model
};

}  // namespace sonde::collect::gpu
