// NVIDIA's GPUs by NVML, libnvidia-ml.so.1 of the driver.
//
// Memory used is what was allocated, as nvidia-smi shows it, where the driver tells that from what
// it reserves (since 510). Power is the mean of a second on GPUs since Ampere (but the A100), else
// of the moment. PCIe's traffic is counted where the driver counts it; elsewhere it is measured
// over 20 ms, which takes as long, and so is a detail.
//
// Thread safety: as Library.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/gpu/call_gate.h"
#include "daemon/collect/gpu/library.h"
#include "daemon/collect/gpu/vendors/nvml_api.h"

namespace sonde::collect::gpu {

inline constexpr char kNvmlFile[] = "libnvidia-ml.so.1";

// One gate for each of them and device.
enum NvmlCall : uint8_t {
  kCallUtilization,
  kCallEncoder,
  kCallDecoder,
  kCallMemory,
  kCallPower,
  kCallPowerLimit,
  kCallEnergy,
  kCallTemperature,
  kCallClock,
  kCallMemoryClock,
  kCallVideoClock,
  kCallThrottle,
  kCallEccCorrected,
  kCallEccUncorrected,
  kCallFan,
  kCallPcieReceive,
  kCallPcieTransmit,
  kCallPcieReplays,
  kCallFields,
  kCallLinks,
  kCallComputeProcesses,
  kCallGraphicsProcesses,
  kNvmlCalls,
};

// What is asked for as fields, in one call.
struct NvmlField {
  unsigned int field;
  unsigned int scope;
  Value value;
  double scale;
};
inline constexpr std::array kNvmlFields = {
    NvmlField{nvml::kFieldMemoryTemperature, 0, Value::kMemoryTemperature, 1},
    NvmlField{nvml::kFieldNvlinkTransmitted, nvml::kAllLinks, Value::kLinkTransmitted, 1024},
    NvmlField{nvml::kFieldNvlinkReceived, nvml::kAllLinks, Value::kLinkReceived, 1024},
    NvmlField{nvml::kFieldPcieTransmitted, 0, Value::kPcieTransmitted, 1},
    NvmlField{nvml::kFieldPcieReceived, 0, Value::kPcieReceived, 1},
};

class Nvml final : public Library {
 public:
  explicit Nvml(LibraryOptions options);
  ~Nvml() override;

  std::string_view vendor() const override { return "NVIDIA"; }
  std::string_view file() const override { return kNvmlFile; }
  const std::vector<Device>& devices() const override { return devices_; }

  Status Open() override;
  int Find(const std::string& uuid) override;
  Status Read(size_t device, Reading& reading) override;

 private:
  struct State {
    nvml::Handle handle = nullptr;
    std::array<CallGate, kNvmlCalls> gates;
    std::array<bool, kNvmlFields.size()> no_field{};
    unsigned links = 0;
    double xids = 0;
    double last_xid = kMissing;
    int failure = nvml::kSuccess;  // that of a device which does not answer
  };

  std::string Explain(int result) const;
  void AddDevice(unsigned index);
  void ListenForEvents();
  void TakeEvents();

  template <typename Function, typename... Arguments>
  Taken Ask(State& state, NvmlCall call, Function* function, Arguments... arguments);
  // For a function whose last argument is where it puts one number.
  template <typename Number, typename Function, typename... Arguments>
  void AskNumber(State& state, NvmlCall call, double scale, double& to, Function* function,
                 Arguments... arguments);
  void ReadLoad(State& state, Reading& reading);
  void ReadMemory(State& state, Reading& reading);
  void ReadPower(State& state, Reading& reading);
  void ReadClocks(State& state, Reading& reading);
  void ReadErrors(State& state, Reading& reading);
  void ReadFields(State& state, Reading& reading);
  void ReadPcieRates(State& state, Reading& reading);
  void ReadLinks(State& state, Reading& reading);
  void ReadProcesses(State& state, Reading& reading);
  Taken AddProcesses(State& state, NvmlCall call,
                     int (*list)(nvml::Handle, unsigned int*, nvml::ProcessInfo*));

  LibraryOptions options_;
  nvml::Api api_{};
  bool loaded_ = false;
  bool open_ = false;  // nvmlInit was called and is to be undone
  nvml::Handle events_ = nullptr;
  bool events_known_ = false;
  CallGate event_gate_;
  std::vector<Device> devices_;
  std::vector<State> states_;
  std::vector<nvml::ProcessInfo> listed_;
  std::array<nvml::FieldValue, 2 * kMaxLinks> link_fields_{};
  // Of the device being read: a list that is not due is not read anew.
  std::vector<Process> found_;
};

}  // namespace sonde::collect::gpu
