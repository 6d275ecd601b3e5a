#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "daemon/collect/gpu/vendors/level_zero.h"
#include "daemon/collect/gpu/vendors/scales.h"

namespace sonde::collect::gpu {
namespace {

// Keeps the highest of several values; missing as long as there is none.
void Raise(double& highest, double value) { highest = std::fmax(highest, value); }

}  // namespace

Status LevelZero::Read(size_t device, Reading& reading) {
  State& state = states_[device];
  if (state.failure != ze::kSuccess) {
    for (CallGate& gate : state.gates) gate.Reset();
    state.energy = {};
    state.engine = {};
  }
  state.failure = ze::kSuccess;
  state.answered = false;
  ReadMemory(state, reading);
  ReadEnergy(state, reading);
  ReadTemperatures(state, reading);
  ReadFrequencies(state, reading);
  ReadEngines(state, reading);
  ReadPcie(state, reading);
  ReadPorts(state, reading);
  ReadErrors(state, reading);
  if (options_.details) ReadProcesses(state, reading);
  const bool lost = state.failure == ze::kDeviceLost || state.failure == ze::kRequiresReset;
  if (!lost && (state.answered || state.failure == ze::kSuccess)) {
    state.failure = ze::kSuccess;
    return {};
  }
  reading.Clear();
  char text[64];
  std::snprintf(text, sizeof text, "%s0x%x", lost ? "the device is lost, error " : "error ",
                state.failure);
  return {Code::kUnavailable, text};
}

// `function` reads all parts of a kind, and gives the last result that is not success, or success
// if one of them could be read.
template <typename Function>
Taken LevelZero::Ask(State& state, Call call, bool possible, Function function) {
  return CallThrough(
      state.gates[call], *options_.clock,
      [&](uint32_t result) {
        switch (result) {
          case ze::kSuccess:
            state.answered = true;
            return Outcome::kRead;
          case ze::kPermissions:
          case ze::kUnsupportedVersion:
          case ze::kUnsupportedFeature:
          case ze::kInvalidArgument:
            return Outcome::kUnsupported;
          default:
            state.failure = result;
            return Outcome::kFailed;
        }
      },
      possible ? &function : nullptr);
}

void LevelZero::ReadMemory(State& state, Reading& reading) {
  double used = 0;
  double total = 0;
  const bool possible = api_.memory_state != nullptr && !state.memories.empty();
  const Taken taken = Ask(state, kCallMemory, possible, [&] {
    for (ze::Handle handle : state.memories) {
      ze::MemoryState memory{};
      memory.type = ze::kMemoryState;
      // A sum that lacks a part would be wrong.
      if (const uint32_t result = api_.memory_state(handle, &memory)) return result;
      total += static_cast<double>(memory.size);
      used += static_cast<double>(memory.size - std::min(memory.free, memory.size));
    }
    return uint32_t{ze::kSuccess};
  });
  Take(taken, used, reading[Value::kMemoryUsed]);
  Take(taken, total, reading[Value::kMemoryTotal]);
}

void LevelZero::ReadEnergy(State& state, Reading& reading) {
  ze::EnergyCounter now{};
  const bool possible = api_.energy != nullptr && state.power != nullptr;
  const Taken taken =
      Ask(state, kCallEnergy, possible, [&] { return api_.energy(state.power, &now); });
  Take(taken, static_cast<double>(now.energy) * kMicro, reading[Value::kEnergy]);
  double power = kMissing;
  if (taken == Taken::kNew) {
    const ze::EnergyCounter before = std::exchange(state.energy, now);
    if (before.timestamp != 0 && now.timestamp > before.timestamp && now.energy >= before.energy) {
      power = static_cast<double>(now.energy - before.energy) /
              static_cast<double>(now.timestamp - before.timestamp);
    }
  }
  Take(taken, power, reading[Value::kPower]);
}

void LevelZero::ReadTemperatures(State& state, Reading& reading) {
  double global = kMissing;
  double gpu = kMissing;
  double memory = kMissing;
  const bool possible = api_.temperature != nullptr && !state.temperatures.empty();
  const Taken taken = Ask(state, kCallTemperature, possible, [&] {
    auto best = uint32_t{ze::kNotAvailable};
    for (const Part& sensor : state.temperatures) {
      double degrees = kMissing;
      const uint32_t result = api_.temperature(sensor.handle, &degrees);
      if (best != ze::kSuccess) best = result;
      if (result != ze::kSuccess) continue;
      if (sensor.kind == ze::kSensorGlobal) Raise(global, degrees);
      if (sensor.kind == ze::kSensorGpu) Raise(gpu, degrees);
      if (sensor.kind == ze::kSensorMemory) Raise(memory, degrees);
    }
    return best;
  });
  Take(taken, gpu, reading[Value::kTemperature]);
  Take(taken, global, reading[Value::kHotspotTemperature]);
  Take(taken, memory, reading[Value::kMemoryTemperature]);
}

void LevelZero::ReadFrequencies(State& state, Reading& reading) {
  double gpu = kMissing;
  double memory = kMissing;
  double media = kMissing;
  uint32_t reasons = 0;
  const bool possible = api_.frequency != nullptr && !state.frequencies.empty();
  const Taken taken = Ask(state, kCallFrequency, possible, [&] {
    auto best = uint32_t{ze::kNotAvailable};
    for (const Part& domain : state.frequencies) {
      ze::FrequencyState frequency{};
      frequency.type = ze::kFrequencyState;
      const uint32_t result = api_.frequency(domain.handle, &frequency);
      if (best != ze::kSuccess) best = result;
      if (result != ze::kSuccess) continue;
      const double hertz = frequency.actual >= 0 ? frequency.actual * kMega : kMissing;
      if (domain.kind == ze::kFrequencyMemory) Raise(memory, hertz);
      if (domain.kind == ze::kFrequencyMedia) Raise(media, hertz);
      if (domain.kind != ze::kFrequencyGpu) continue;
      Raise(gpu, hertz);
      reasons |= frequency.throttle_reasons;
    }
    return best;
  });
  Take(taken, gpu, reading[Value::kClock]);
  Take(taken, memory, reading[Value::kMemoryClock]);
  if (options_.details) Take(taken, media, reading[Value::kVideoClock]);
  const auto take = [&](uint32_t bits, Value value) {
    Take(taken, (reasons & bits) != 0 ? 1 : 0, reading[value]);
  };
  take(ze::kThrottlePower, Value::kThrottlePower);
  take(ze::kThrottleCurrent, Value::kThrottleCurrent);
  take(ze::kThrottleThermal, Value::kThrottleThermal);
  take(ze::kThrottlePowerBrake, Value::kThrottlePowerBrake);
}

void LevelZero::ReadEngines(State& state, Reading& reading) {
  ze::EngineStats sum{};
  const bool possible = api_.activity != nullptr && !state.engines.empty();
  const Taken taken = Ask(state, kCallEngine, possible, [&] {
    for (ze::Handle engine : state.engines) {
      ze::EngineStats stats{};
      if (const uint32_t result = api_.activity(engine, &stats)) return result;
      sum.active += stats.active;
      sum.timestamp += stats.timestamp;
    }
    return uint32_t{ze::kSuccess};
  });
  double ratio = kMissing;
  if (taken == Taken::kNew) {
    const ze::EngineStats before = std::exchange(state.engine, sum);
    if (before.timestamp != 0 && sum.timestamp > before.timestamp && sum.active >= before.active) {
      ratio = static_cast<double>(sum.active - before.active) /
              static_cast<double>(sum.timestamp - before.timestamp);
    }
  }
  Take(taken, ratio > 1 ? 1 : ratio, reading[Value::kUtilization]);
}

void LevelZero::ReadPcie(State& state, Reading& reading) {
  ze::PciStats stats{};
  const Taken taken = Ask(state, kCallPcie, api_.pci_stats != nullptr,
                          [&] { return api_.pci_stats(state.handle, &stats); });
  Take(taken, static_cast<double>(stats.received), reading[Value::kPcieReceived]);
  Take(taken, static_cast<double>(stats.transmitted), reading[Value::kPcieTransmitted]);
  if (options_.details) {
    Take(taken, static_cast<double>(stats.replays), reading[Value::kPcieReplays]);
  }
}

void LevelZero::ReadPorts(State& state, Reading& reading) {
  double received = 0;
  double transmitted = 0;
  const bool possible = api_.throughput != nullptr && !state.ports.empty();
  const Taken taken = Ask(state, kCallPorts, possible, [&] {
    for (size_t i = 0; i < state.ports.size(); ++i) {
      ze::PortThroughput port{};
      if (const uint32_t result = api_.throughput(state.ports[i], &port)) return result;
      received += static_cast<double>(port.received);
      transmitted += static_cast<double>(port.transmitted);
      if (!options_.details) continue;
      reading.links[i] = {static_cast<double>(port.received),
                          static_cast<double>(port.transmitted)};
    }
    return uint32_t{ze::kSuccess};
  });
  Take(taken, received, reading[Value::kLinkReceived]);
  Take(taken, transmitted, reading[Value::kLinkTransmitted]);
  if (taken == Taken::kNothing) reading.links.fill(Link());
}

void LevelZero::ReadErrors(State& state, Reading& reading) {
  double corrected = kMissing;
  double uncorrected = kMissing;
  const bool possible = api_.error_state != nullptr && !state.errors.empty();
  const Taken taken = Ask(state, kCallErrors, possible, [&] {
    for (const Part& set : state.errors) {
      ze::RasState errors{};
      errors.type = ze::kRasState;
      if (const uint32_t result = api_.error_state(set.handle, 0, &errors)) return result;
      double count = 0;
      for (size_t i = ze::kRasFirst; i <= ze::kRasLast; ++i) {
        count += static_cast<double>(errors.category[i]);
      }
      double& sum = set.kind == ze::kRasCorrectable ? corrected : uncorrected;
      sum = std::fmax(sum, 0) + count;
    }
    return uint32_t{ze::kSuccess};
  });
  Take(taken, corrected, reading[Value::kEccCorrected]);
  Take(taken, uncorrected, reading[Value::kEccUncorrected]);
}

void LevelZero::ReadProcesses(State& state, Reading& reading) {
  auto count = static_cast<uint32_t>(listed_.size());
  const Taken taken = Ask(state, kCallProcesses, api_.processes != nullptr,
                          [&] { return api_.processes(state.handle, &count, listed_.data()); });
  if (taken == Taken::kOld) return;
  reading.processes.clear();
  reading.processes_known = taken == Taken::kNew;
  if (taken != Taken::kNew) return;
  for (size_t i = 0; i < std::min<size_t>(count, listed_.size()); ++i) {
    reading.processes.push_back({listed_[i].pid, static_cast<double>(listed_[i].memory)});
  }
}

}  // namespace sonde::collect::gpu
