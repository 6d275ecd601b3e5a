// What the stand-ins for the vendors' libraries say; each is a shared library with the real names
// of functions, and gives its state to a test by one function more.
//
// They do what a careless library might: they write texts without an end and count devices that are
// not there, if told to. A function's result, 0 for success, can be set for all devices.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpu_standin {

inline constexpr size_t kGpus = 4;

// Functions that can be told to fail, and whose calls are counted.
enum Function {
  kInit,
  kCount,
  kHandle,
  kUtilization,
  kEncoder,
  kMemory,
  kPower,
  kPowerLimit,
  kEnergy,
  kTemperature,
  kClock,
  kThrottle,
  kEcc,
  kFan,
  kPcieRate,
  kReplays,
  kFields,
  kProcesses,
  kEventRegister,
  kShutdown,
  kFunctions,
};

struct Process {
  uint32_t pid = 0;
  uint64_t memory = 0;
};

struct Gpu {
  int lost = 0;       // every call fails with this
  int place = 0;      // on the PCI bus
  uint32_t busy = 0;  // percent
  uint32_t memory_busy = 0;
  uint64_t memory_used = 0;  // bytes
  uint64_t memory_total = 0;
  uint64_t power = 0;   // in the library's unit
  uint64_t energy = 0;  // in the library's unit
  uint64_t energy_time = 0;
  int64_t temperature = 0;  // in the library's unit
  uint64_t clock = 0;       // MHz
  uint64_t memory_clock = 0;
  uint64_t throttle = 0;  // the library's bits
  uint64_t corrected = 0;
  uint64_t uncorrected = 0;
  uint64_t received[2] = {};  // by link, in the library's unit
  uint64_t transmitted[2] = {};
  uint64_t pcie_received = 0;  // bytes
  uint64_t pcie_transmitted = 0;
  uint64_t active = 0;  // microseconds
  Process processes[4] = {};
};

struct State {
  uint32_t count = 0;  // what is said; there are never more than kGpus
  Gpu gpus[kGpus] = {};
  int results[kFunctions] = {};
  int calls[kFunctions] = {};
  bool endless_texts = false;
  bool no_fields = false;      // each field is not supported
  uint32_t process_count = 0;  // what is said
  // Events that wait.
  int events = 0;
  uint32_t event_gpu = 0;
  uint64_t event_data = 0;
  // Called by every function.
  void (*on_call)(Function function) = nullptr;

  int Call(Function function) {
    ++calls[function];
    if (on_call != nullptr) on_call(function);
    return results[function];
  }
};

}  // namespace gpu_standin
