// Intel's GPUs by Level Zero's Sysman, libze_loader.so.1.
//
// Power is the rise of the energy counter, and the load that of an engine's active time, from one
// reading to the next: the first has neither. Parts of a device (tiles, memory modules, engines)
// are listed once; their values are summed, or the highest is taken.
//
// Thread safety: as Library.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/gpu/call_gate.h"
#include "daemon/collect/gpu/library.h"
#include "daemon/collect/gpu/vendors/level_zero_api.h"

namespace sonde::collect::gpu {

class LevelZero final : public Library {
 public:
  explicit LevelZero(LibraryOptions options);

  std::string_view vendor() const override { return "Intel"; }
  std::string_view file() const override { return kFile; }
  const std::vector<Device>& devices() const override { return devices_; }

  Status Open() override;
  int Find(const std::string& uuid) override;
  Status Read(size_t device, Reading& reading) override;

 private:
  static constexpr char kFile[] = "libze_loader.so.1";

  enum Call : uint8_t {
    kCallMemory,
    kCallEnergy,
    kCallTemperature,
    kCallFrequency,
    kCallEngine,
    kCallPcie,
    kCallPorts,
    kCallErrors,
    kCallProcesses,
    kCalls,
  };
  // A part of a device, of which there may be several kinds.
  struct Part {
    ze::Handle handle;
    int kind;
  };
  struct State {
    ze::Handle handle = nullptr;
    uint64_t place = 0;  // on the PCI bus
    std::vector<ze::Handle> memories;
    ze::Handle power = nullptr;
    std::vector<Part> temperatures;
    std::vector<Part> frequencies;
    std::vector<ze::Handle> engines;
    std::vector<ze::Handle> ports;
    std::vector<Part> errors;

    std::array<CallGate, kCalls> gates;
    ze::EnergyCounter energy{};
    ze::EngineStats engine{};
    bool answered = false;
    uint32_t failure = ze::kSuccess;
  };

  Status List();
  bool AddDevice(ze::Handle handle);
  void ListParts(State& state) const;
  template <typename Properties>
  std::vector<Part> Parts(ze::Handle device, ze::Api::List list, ze::Type type,
                          uint32_t (*describe)(ze::Handle, Properties*)) const;

  template <typename Function>
  Taken Ask(State& state, Call call, bool possible, Function function);
  void ReadMemory(State& state, Reading& reading);
  void ReadEnergy(State& state, Reading& reading);
  void ReadTemperatures(State& state, Reading& reading);
  void ReadFrequencies(State& state, Reading& reading);
  void ReadEngines(State& state, Reading& reading);
  void ReadPcie(State& state, Reading& reading);
  void ReadPorts(State& state, Reading& reading);
  void ReadErrors(State& state, Reading& reading);
  void ReadProcesses(State& state, Reading& reading);

  LibraryOptions options_;
  ze::Api api_{};
  bool loaded_ = false;
  std::vector<Device> devices_;
  std::vector<State> states_;
  std::vector<ze::ProcessState> listed_;
};

}  // namespace sonde::collect::gpu
