#include <algorithm>
#include <array>
#include <cmath>

#include "daemon/collect/gpu/vendors/nvml.h"
#include "daemon/collect/gpu/vendors/scales.h"

namespace sonde::collect::gpu {
template <typename Function, typename... Arguments>
Taken Nvml::Ask(State& state, NvmlCall call, Function* function, Arguments... arguments) {
  // A lost device is asked nothing more: each call may take long to fail.
  if (state.failure != nvml::kSuccess) return Taken::kNothing;
  return CallThrough(
      state.gates[call], *options_.clock,
      [&](int result) {
        switch (result) {
          case nvml::kSuccess:
            return Outcome::kRead;
          case nvml::kGpuIsLost:
          case nvml::kResetRequired:
          case nvml::kUninitialized:
            state.failure = result;
            return Outcome::kFailed;
          case nvml::kInvalidArgument:
          case nvml::kNotSupported:
          case nvml::kNoPermission:
          case nvml::kFunctionNotFound:
          case nvml::kArgumentVersionMismatch:
          case nvml::kDeprecated:
            return Outcome::kUnsupported;
          default:
            return Outcome::kFailed;
        }
      },
      function, state.handle, arguments...);
}

template <typename Number, typename Function, typename... Arguments>
void Nvml::AskNumber(State& state, NvmlCall call, double scale, double& to, Function* function,
                     Arguments... arguments) {
  Number number{};
  const Taken taken = Ask(state, call, function, arguments..., &number);
  Take(taken, static_cast<double>(number) * scale, to);
}

Status Nvml::Read(size_t device, Reading& reading) {
  State& state = states_[device];
  TakeEvents();
  if (state.failure != nvml::kSuccess) {
    if (state.failure == nvml::kUninitialized) api_.init();
    const int result = api_.handle_by_index(devices_[device].index, &state.handle);
    state.failure = result;
    for (CallGate& gate : state.gates) gate.Reset();
    state.no_field.fill(false);
  }
  ReadLoad(state, reading);
  ReadMemory(state, reading);
  ReadPower(state, reading);
  ReadClocks(state, reading);
  ReadErrors(state, reading);
  ReadFields(state, reading);
  if (options_.details) {
    ReadPcieRates(state, reading);
    ReadLinks(state, reading);
    ReadProcesses(state, reading);
  }
  const int failure = state.failure;
  if (failure != nvml::kSuccess) reading.Clear();
  if (events_known_) {
    reading[Value::kXidErrors] = state.xids;
    reading[Value::kLastXid] = state.last_xid;
  }
  if (failure == nvml::kSuccess) return {};
  return {Code::kUnavailable, Explain(failure)};
}

void Nvml::ReadLoad(State& state, Reading& reading) {
  nvml::Utilization load{};
  const Taken taken = Ask(state, kCallUtilization, api_.utilization, &load);
  Take(taken, load.gpu * kPercent, reading[Value::kUtilization]);
  Take(taken, load.memory * kPercent, reading[Value::kMemoryUtilization]);
  if (!options_.details) return;
  unsigned int percent = 0;
  unsigned int period = 0;
  const Taken encoder = Ask(state, kCallEncoder, api_.encoder, &percent, &period);
  Take(encoder, percent * kPercent, reading[Value::kEncoderUtilization]);
  const Taken decoder = Ask(state, kCallDecoder, api_.decoder, &percent, &period);
  Take(decoder, percent * kPercent, reading[Value::kDecoderUtilization]);
  AskNumber<unsigned int>(state, kCallFan, kPercent, reading[Value::kFanSpeed], api_.fan);
}

void Nvml::ReadMemory(State& state, Reading& reading) {
  Taken taken = Taken::kNothing;
  unsigned long long used = 0;
  unsigned long long total = 0;
  if (api_.memory_v2 != nullptr) {
    nvml::MemoryV2 memory{};
    memory.version = nvml::kMemoryV2;
    taken = Ask(state, kCallMemory, api_.memory_v2, &memory);
    used = memory.used;
    total = memory.total;
  } else {
    nvml::Memory memory{};
    taken = Ask(state, kCallMemory, api_.memory, &memory);
    used = memory.used;
    total = memory.total;
  }
  Take(taken, static_cast<double>(used), reading[Value::kMemoryUsed]);
  Take(taken, static_cast<double>(total), reading[Value::kMemoryTotal]);
}

void Nvml::ReadPower(State& state, Reading& reading) {
  AskNumber<unsigned int>(state, kCallPower, kMilli, reading[Value::kPower], api_.power);
  AskNumber<unsigned long long>(state, kCallEnergy, kMilli, reading[Value::kEnergy], api_.energy);
  if (!options_.details) return;
  AskNumber<unsigned int>(state, kCallPowerLimit, kMilli, reading[Value::kPowerLimit],
                          api_.power_limit);
}

void Nvml::ReadClocks(State& state, Reading& reading) {
  AskNumber<unsigned int>(state, kCallTemperature, 1, reading[Value::kTemperature],
                          api_.temperature, nvml::kTemperatureGpu);
  AskNumber<unsigned int>(state, kCallClock, kMega, reading[Value::kClock], api_.clock,
                          nvml::kClockSm);
  AskNumber<unsigned int>(state, kCallMemoryClock, kMega, reading[Value::kMemoryClock], api_.clock,
                          nvml::kClockMemory);
  if (options_.details) {
    AskNumber<unsigned int>(state, kCallVideoClock, kMega, reading[Value::kVideoClock], api_.clock,
                            nvml::kClockVideo);
  }
  unsigned long long reasons = 0;
  const Taken taken = Ask(state, kCallThrottle, api_.throttle, &reasons);
  const auto take = [&](unsigned long long bits, Value value) {
    Take(taken, (reasons & bits) != 0 ? 1 : 0, reading[value]);
  };
  take(nvml::kReasonSoftwarePowerCap, Value::kThrottlePower);
  take(nvml::kReasonSoftwareThermal | nvml::kReasonHardwareThermal, Value::kThrottleThermal);
  take(nvml::kReasonPowerBrake, Value::kThrottlePowerBrake);
  take(nvml::kReasonHardwareSlowdown, Value::kThrottleHardware);
}

void Nvml::ReadErrors(State& state, Reading& reading) {
  AskNumber<unsigned long long>(state, kCallEccCorrected, 1, reading[Value::kEccCorrected],
                                api_.ecc, nvml::kEccCorrected, nvml::kEccVolatile);
  AskNumber<unsigned long long>(state, kCallEccUncorrected, 1, reading[Value::kEccUncorrected],
                                api_.ecc, nvml::kEccUncorrected, nvml::kEccVolatile);
  if (!options_.details) return;
  AskNumber<unsigned int>(state, kCallPcieReplays, 1, reading[Value::kPcieReplays],
                          api_.pcie_replays);
}

void Nvml::ReadFields(State& state, Reading& reading) {
  std::array<nvml::FieldValue, kNvmlFields.size()> fields{};
  std::array<size_t, kNvmlFields.size()> which{};
  int count = 0;
  for (size_t i = 0; i < kNvmlFields.size(); ++i) {
    if (state.no_field[i]) continue;
    fields[count].field = kNvmlFields[i].field;
    fields[count].scope = kNvmlFields[i].scope;
    fields[count].result = nvml::kNotSupported;
    which[count++] = i;
  }
  if (count == 0) return;
  const Taken taken = Ask(state, kCallFields, api_.fields, count, fields.data());
  for (int i = 0; i < count; ++i) {
    const NvmlField& field = kNvmlFields[which[i]];
    Take(taken, nvml::Number(fields[i]) * field.scale, reading[field.value]);
    const int result = fields[i].result;
    if (taken == Taken::kNew &&
        (result == nvml::kNotSupported || result == nvml::kInvalidArgument)) {
      state.no_field[which[i]] = true;
    }
  }
}

void Nvml::ReadPcieRates(State& state, Reading& reading) {
  // Slow: for devices that do not count.
  const bool counts = api_.fields != nullptr && !state.no_field[kNvmlFields.size() - 1];
  if (counts) return;
  AskNumber<unsigned int>(state, kCallPcieReceive, kKilo, reading[Value::kPcieReceiveRate],
                          api_.pcie_rate, nvml::kPcieReceive);
  AskNumber<unsigned int>(state, kCallPcieTransmit, kKilo, reading[Value::kPcieTransmitRate],
                          api_.pcie_rate, nvml::kPcieTransmit);
}

void Nvml::ReadLinks(State& state, Reading& reading) {
  if (std::isnan(reading[Value::kLinkReceived])) return;
  if (state.links == 0) {
    nvml::FieldValue field{};
    field.field = nvml::kFieldNvlinkCount;
    if (api_.fields(state.handle, 1, &field) != nvml::kSuccess) return;
    const double links = nvml::Number(field);
    if (!(links >= 1)) return;
    state.links = static_cast<unsigned>(std::min<double>(links, kMaxLinks));
  }
  for (unsigned i = 0; i < state.links; ++i) {
    nvml::FieldValue* const field = &link_fields_[2 * i];
    field[0] = field[1] = nvml::FieldValue();
    field[0].field = nvml::kFieldNvlinkReceived;
    field[1].field = nvml::kFieldNvlinkTransmitted;
    field[0].scope = field[1].scope = i;
  }
  const Taken taken =
      Ask(state, kCallLinks, api_.fields, static_cast<int>(2 * state.links), link_fields_.data());
  for (unsigned i = 0; i < state.links; ++i) {
    Take(taken, nvml::Number(link_fields_[2 * i]) * kKibi, reading.links[i].received);
    Take(taken, nvml::Number(link_fields_[2 * i + 1]) * kKibi, reading.links[i].transmitted);
  }
}

void Nvml::ReadProcesses(State& state, Reading& reading) {
  found_.clear();
  const Taken compute = AddProcesses(state, kCallComputeProcesses, api_.compute_processes);
  const Taken graphics = AddProcesses(state, kCallGraphicsProcesses, api_.graphics_processes);
  if (compute == Taken::kOld || graphics == Taken::kOld) return;
  reading.processes.assign(found_.begin(), found_.end());
  reading.processes_known = compute == Taken::kNew || graphics == Taken::kNew;
}

Taken Nvml::AddProcesses(State& state, NvmlCall call,
                         int (*list)(nvml::Handle, unsigned int*, nvml::ProcessInfo*)) {
  auto count = static_cast<unsigned int>(listed_.size());
  const Taken taken = Ask(state, call, list, &count, listed_.data());
  if (taken != Taken::kNew) return taken;
  for (size_t i = 0; i < std::min<size_t>(count, listed_.size()); ++i) {
    constexpr unsigned long long kUnknown = ~0ULL;
    const nvml::ProcessInfo& process = listed_[i];
    if (process.used_memory == kUnknown) continue;
    // A process that computes and draws is in both lists, with the same memory.
    const bool twice = std::any_of(found_.begin(), found_.end(),
                                   [&](const Process& known) { return known.pid == process.pid; });
    if (!twice) found_.push_back({process.pid, static_cast<double>(process.used_memory)});
  }
  return taken;
}

}  // namespace sonde::collect::gpu
