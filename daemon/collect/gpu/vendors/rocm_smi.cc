// AMD's GPUs by ROCm SMI, librocm_smi64 of ROCm.
//
// PCIe's traffic is left out: the library measures it by sleeping for a second. Clocks, reasons of
// throttling and the traffic of Infinity Fabric links come from the table that the driver makes at
// once (gpu_metrics).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "daemon/collect/gpu/call_gate.h"
#include "daemon/collect/gpu/library.h"
#include "daemon/collect/gpu/vendors/rocm_smi_api.h"
#include "daemon/collect/gpu/vendors/scales.h"

namespace sonde::collect::gpu {
namespace {

constexpr char kFile[] = "librocm_smi64.so";

enum Call : uint8_t {
  kCallBusy,
  kCallMemoryBusy,
  kCallMemoryUsed,
  kCallMemoryTotal,
  kCallPower,
  kCallPowerCap,
  kCallEnergy,
  kCallEdge,
  kCallJunction,
  kCallMemoryTemperature,
  kCallFan,
  kCallReplays,
  kCallEcc,
  kCallMetrics,
  kCallProcesses,
  kCalls,
};

template <typename Number>
double OrMissing(Number number) {
  return number == std::numeric_limits<Number>::max() ? kMissing : static_cast<double>(number);
}

// The bus in front, parts of one device behind: BDFID holds the partition in bits 28 to 31.
uint64_t BusOrder(uint64_t bdf) {
  return (bdf >> 32 << 32) | ((bdf & 0xffff) << 4) | (bdf >> 28 & 0xf);
}

class RocmSmi final : public Library {
 public:
  explicit RocmSmi(LibraryOptions options) : options_(std::move(options)) {
    if (!options_.paths.empty()) return;
    for (const char* version : {".7", ".6", ".5", ".1", ""}) {
      options_.paths.push_back(std::string(kFile) + version);
    }
    options_.paths.push_back("/opt/rocm/lib/" + std::string(kFile));
  }
  ~RocmSmi() override {
    if (open_ && api_.shut_down != nullptr) api_.shut_down();
  }

  std::string_view vendor() const override { return "AMD"; }
  std::string_view file() const override { return kFile; }
  const std::vector<Device>& devices() const override { return devices_; }

  Status Open() override {
    if (!loaded_) {
      void* const handle = LoadFirst(options_.paths);
      if (handle == nullptr) {
        return {Code::kNotFound, std::string(kFile) + " is not installed here"};
      }
      Load(handle);
      loaded_ = true;
    }
    if (api_.init == nullptr || api_.count == nullptr) {
      return {Code::kUnsupported, std::string(kFile) + " lacks the basic functions of ROCm SMI"};
    }
    const uint32_t result =
        open_ ? uint32_t{rocm::kSuccess} : api_.init(rocm::kInitThreadOnlyMutex);
    // What it says where there is no such GPU, or no driver.
    if (result == rocm::kInitError || result == rocm::kNotFound) return {};
    if (result != rocm::kSuccess) return {Code::kUnavailable, "rsmi_init: " + Explain(result)};
    open_ = true;
    uint32_t count = 0;
    if (const uint32_t error = api_.count(&count); error != rocm::kSuccess) {
      return {Code::kUnavailable, "rsmi_num_monitor_devices: " + Explain(error)};
    }
    AddDevices(std::min<uint32_t>(count, kMaxDevices));
    return {};
  }
  int Find(const std::string& uuid) override {
    const auto at = std::find_if(devices_.begin(), devices_.end(),
                                 [&](const Device& device) { return device.uuid == uuid; });
    return at == devices_.end() ? -1 : static_cast<int>(at - devices_.begin());
  }
  Status Read(size_t device, Reading& reading) override {
    State& state = states_[device];
    if (state.failure != rocm::kSuccess) {
      for (CallGate& gate : state.gates) gate.Reset();
    }
    state.failure = rocm::kSuccess;
    state.answered = false;
    ReadLoad(state, reading);
    ReadPower(state, reading);
    ReadTemperatures(state, reading);
    ReadMetrics(state, reading);
    ReadErrors(state, reading);
    if (options_.details) ReadProcesses(state, reading);
    if (state.answered || state.failure == rocm::kSuccess) {
      state.failure = rocm::kSuccess;
      return {};
    }
    reading.Clear();
    return {Code::kUnavailable, Explain(state.failure)};
  }

 private:
  struct State {
    uint32_t device = 0;  // the library's number
    std::array<CallGate, kCalls> gates;
    bool blocks_known = false;
    uint64_t blocks = 0;  // that count errors
    bool answered = false;
    uint32_t failure = rocm::kSuccess;
  };

  void Load(void* handle) {
    FindSymbol(handle, api_.init, "rsmi_init");
    FindSymbol(handle, api_.shut_down, "rsmi_shut_down");
    FindSymbol(handle, api_.status_string, "rsmi_status_string");
    FindSymbol(handle, api_.count, "rsmi_num_monitor_devices");
    FindSymbol(handle, api_.pci_id, "rsmi_dev_pci_id_get");
    FindSymbol(handle, api_.unique_id, "rsmi_dev_unique_id_get");
    FindSymbol(handle, api_.name, "rsmi_dev_name_get");
    FindSymbol(handle, api_.busy, "rsmi_dev_busy_percent_get");
    FindSymbol(handle, api_.memory_busy, "rsmi_dev_memory_busy_percent_get");
    FindSymbol(handle, api_.memory_used, "rsmi_dev_memory_usage_get");
    FindSymbol(handle, api_.memory_total, "rsmi_dev_memory_total_get");
    FindSymbol(handle, api_.power, "rsmi_dev_power_get");
    FindSymbol(handle, api_.average_power, "rsmi_dev_power_ave_get");
    FindSymbol(handle, api_.power_cap, "rsmi_dev_power_cap_get");
    FindSymbol(handle, api_.energy, "rsmi_dev_energy_count_get");
    FindSymbol(handle, api_.temperature, "rsmi_dev_temp_metric_get");
    FindSymbol(handle, api_.fan, "rsmi_dev_fan_speed_get");
    FindSymbol(handle, api_.pcie_replays, "rsmi_dev_pci_replay_counter_get");
    FindSymbol(handle, api_.ecc_enabled, "rsmi_dev_ecc_enabled_get");
    FindSymbol(handle, api_.ecc, "rsmi_dev_ecc_count_get");
    FindSymbol(handle, api_.metrics, "rsmi_dev_gpu_metrics_info_get");
    FindSymbol(handle, api_.processes, "rsmi_compute_process_info_get");
    FindSymbol(handle, api_.process_on_device, "rsmi_compute_process_info_by_device_get");
  }

  std::string Explain(uint32_t result) const {
    const char* text = nullptr;
    if (api_.status_string != nullptr) api_.status_string(result, &text);
    return text == nullptr ? "error " + std::to_string(result) : Bounded(text, 200);
  }

  void AddDevices(uint32_t count) {
    std::vector<std::pair<uint64_t, uint32_t>> order;  // place on the bus, the library's number
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t bdf = 0;
      const bool known = api_.pci_id != nullptr && api_.pci_id(i, &bdf) == rocm::kSuccess;
      order.emplace_back(known ? BusOrder(bdf) : i, i);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [place, number] : order) {
      Device device;
      device.index = static_cast<unsigned>(devices_.size());
      char text[97] = {};
      uint64_t id = 0;
      // As ROCR_VISIBLE_DEVICES names it.
      if (api_.unique_id != nullptr && api_.unique_id(number, &id) == rocm::kSuccess) {
        std::snprintf(text, sizeof text, "GPU-%016llx", static_cast<unsigned long long>(id));
        device.uuid = text;
      }
      std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", static_cast<unsigned>(place >> 32),
                    static_cast<unsigned>(place >> 12 & 0xff),
                    static_cast<unsigned>(place >> 7 & 0x1f),
                    static_cast<unsigned>(place >> 4 & 7));
      device.pci = text;
      std::memset(text, 0, sizeof text);
      if (api_.name != nullptr && api_.name(number, text, sizeof text - 1) == rocm::kSuccess) {
        device.name = Bounded(text, sizeof text - 1);
      }
      devices_.push_back(std::move(device));
      State& state = states_.emplace_back();
      state.device = number;
    }
    if (options_.details) listed_.resize(kMaxProcesses);
  }

  template <typename Function, typename... Arguments>
  Taken Ask(State& state, Call call, Function* function, Arguments... arguments) {
    return CallThrough(
        state.gates[call], *options_.clock,
        [&](uint32_t result) {
          switch (result) {
            case rocm::kSuccess:
              state.answered = true;
              return Outcome::kRead;
            case rocm::kInvalidArguments:
            case rocm::kNotSupported:
            case rocm::kPermission:
            case rocm::kNotYetImplemented:
              return Outcome::kUnsupported;
            default:
              state.failure = result;
              return Outcome::kFailed;
          }
        },
        function, state.device, arguments...);
  }
  // For a function whose last argument is where it puts one number.
  template <typename Number, typename Function, typename... Arguments>
  void AskNumber(State& state, Call call, double scale, double& to, Function* function,
                 Arguments... arguments) {
    Number number{};
    const Taken taken = Ask(state, call, function, arguments..., &number);
    Take(taken, static_cast<double>(number) * scale, to);
  }

  void ReadLoad(State& state, Reading& reading) {
    AskNumber<uint32_t>(state, kCallBusy, kPercent, reading[Value::kUtilization], api_.busy);
    AskNumber<uint32_t>(state, kCallMemoryBusy, kPercent, reading[Value::kMemoryUtilization],
                        api_.memory_busy);
    AskNumber<uint64_t>(state, kCallMemoryUsed, 1, reading[Value::kMemoryUsed], api_.memory_used,
                        rocm::kMemoryVram);
    AskNumber<uint64_t>(state, kCallMemoryTotal, 1, reading[Value::kMemoryTotal], api_.memory_total,
                        rocm::kMemoryVram);
    if (!options_.details) return;
    AskNumber<int64_t>(state, kCallFan, 1.0 / rocm::kMaxFanSpeed, reading[Value::kFanSpeed],
                       api_.fan, 0U);
  }
  void ReadPower(State& state, Reading& reading) {
    if (api_.power != nullptr) {
      uint64_t microwatts = 0;
      int type = 0;
      const Taken taken = Ask(state, kCallPower, api_.power, &microwatts, &type);
      Take(taken, static_cast<double>(microwatts) * kMicro, reading[Value::kPower]);
    } else {
      AskNumber<uint64_t>(state, kCallPower, kMicro, reading[Value::kPower], api_.average_power,
                          0U);
    }
    uint64_t count = 0;
    float resolution = 0;
    uint64_t timestamp = 0;
    const Taken energy = Ask(state, kCallEnergy, api_.energy, &count, &resolution, &timestamp);
    const double microjoules = static_cast<double>(count) * static_cast<double>(resolution);
    Take(energy, resolution > 0 ? microjoules * kMicro : kMissing, reading[Value::kEnergy]);
    if (!options_.details) return;
    AskNumber<uint64_t>(state, kCallPowerCap, kMicro, reading[Value::kPowerLimit], api_.power_cap,
                        0U);
  }
  void ReadTemperatures(State& state, Reading& reading) {
    const auto read = [&](Call call, uint32_t sensor, Value value) {
      AskNumber<int64_t>(state, call, kMilli, reading[value], api_.temperature, sensor,
                         rocm::kTemperatureCurrent);
    };
    read(kCallEdge, rocm::kTemperatureEdge, Value::kTemperature);
    read(kCallJunction, rocm::kTemperatureJunction, Value::kHotspotTemperature);
    read(kCallMemoryTemperature, rocm::kTemperatureMemory, Value::kMemoryTemperature);
  }
  void ReadMetrics(State& state, Reading& reading) {
    std::memset(&metrics_, 0xff, sizeof metrics_);
    const rocm::Metrics& m = metrics_.metrics;
    const Taken taken = Ask(state, kCallMetrics, api_.metrics, &metrics_);
    Take(taken, OrMissing(m.current_gfxclk) * kMega, reading[Value::kClock]);
    Take(taken, OrMissing(m.current_uclk) * kMega, reading[Value::kMemoryClock]);
    if (options_.details) {
      Take(taken, OrMissing(m.current_vclk0) * kMega, reading[Value::kVideoClock]);
    }
    const uint64_t throttled = m.indep_throttle_status;
    const auto take = [&](uint64_t bits, Value value) {
      Take(taken, OrMissing(throttled) * 0 + ((throttled & bits) != 0 ? 1 : 0), reading[value]);
    };
    take(rocm::kThrottlePower, Value::kThrottlePower);
    take(rocm::kThrottleCurrent, Value::kThrottleCurrent);
    take(rocm::kThrottleThermal, Value::kThrottleThermal);
    double received = kMissing;
    double transmitted = kMissing;
    for (size_t i = 0; i < rocm::kMaxXgmiLinks; ++i) {
      const Link link = {OrMissing(m.xgmi_read_data_acc[i]) * kKilo,
                         OrMissing(m.xgmi_write_data_acc[i]) * kKilo};
      if (!std::isnan(link.received)) received = std::fmax(received, 0) + link.received;
      if (!std::isnan(link.transmitted)) transmitted = std::fmax(transmitted, 0) + link.transmitted;
      if (!options_.details) continue;
      Take(taken, link.received, reading.links[i].received);
      Take(taken, link.transmitted, reading.links[i].transmitted);
    }
    Take(taken, received, reading[Value::kLinkReceived]);
    Take(taken, transmitted, reading[Value::kLinkTransmitted]);
  }
  void ReadErrors(State& state, Reading& reading) {
    if (!state.blocks_known && api_.ecc_enabled != nullptr) {
      state.blocks_known = true;
      if (api_.ecc_enabled(state.device, &state.blocks) != rocm::kSuccess) state.blocks = 0;
    }
    rocm::ErrorCount sum{};
    // All blocks as one call: together they may be slow.
    const auto count = [&](uint32_t device) {
      uint32_t best = rocm::kNotSupported;
      for (uint64_t block = rocm::kFirstBlock; block <= rocm::kLastBlock; block <<= 1) {
        rocm::ErrorCount errors{};
        if ((state.blocks & block) == 0 || api_.ecc(device, block, &errors) != rocm::kSuccess) {
          continue;
        }
        best = rocm::kSuccess;
        sum.correctable += errors.correctable;
        sum.uncorrectable += errors.uncorrectable;
      }
      return best;
    };
    const Taken taken = Ask(state, kCallEcc, api_.ecc == nullptr ? nullptr : &count);
    Take(taken, static_cast<double>(sum.correctable), reading[Value::kEccCorrected]);
    Take(taken, static_cast<double>(sum.uncorrectable), reading[Value::kEccUncorrected]);
    if (!options_.details) return;
    AskNumber<uint64_t>(state, kCallReplays, 1, reading[Value::kPcieReplays], api_.pcie_replays);
  }
  void ReadProcesses(State& state, Reading& reading) {
    if (api_.process_on_device == nullptr) return;
    auto items = static_cast<uint32_t>(listed_.size());
    const auto list = [&](uint32_t device) {
      const uint32_t result = api_.processes(listed_.data(), &items);
      if (result != rocm::kSuccess) return result;
      reading.processes.clear();
      for (size_t i = 0; i < std::min<size_t>(items, listed_.size()); ++i) {
        rocm::ProcessInfo process{};
        if (api_.process_on_device(listed_[i].pid, device, &process) == rocm::kSuccess) {
          reading.processes.push_back({listed_[i].pid, static_cast<double>(process.vram_usage)});
        }
      }
      return result;
    };
    const Taken taken = Ask(state, kCallProcesses, api_.processes == nullptr ? nullptr : &list);
    if (taken != Taken::kOld) reading.processes_known = taken == Taken::kNew;
  }

  LibraryOptions options_;
  rocm::Api api_{};
  bool loaded_ = false;
  bool open_ = false;
  std::vector<Device> devices_;
  std::vector<State> states_;
  std::vector<rocm::ListedProcess> listed_;
  rocm::MetricsBuffer metrics_{};
};

}  // namespace

std::unique_ptr<Library> MakeRocmSmi(LibraryOptions options) {
  return std::make_unique<RocmSmi>(std::move(options));
}

}  // namespace sonde::collect::gpu
