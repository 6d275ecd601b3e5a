// gpu_probe: what Sonde reads of NVIDIA's GPUs, by itself.
//
// For machines with a GPU and little else: it needs neither Slurm nor Boost nor any library but the
// driver's. From the root of the tree:
//
//   g++ -std=c++20 -D_GNU_SOURCE -I. -o gpu_probe daemon/collect/gpu/gpu_probe.cc
//       daemon/collect/gpu/call_gate.cc daemon/collect/gpu/gpu_metrics.cc
//       daemon/collect/gpu/vendors/nvml.cc daemon/collect/gpu/vendors/nvml_api.cc
//       daemon/collect/gpu/vendors/nvml_read.cc
//
//   gpu_probe [--details] [--count N] [--period SECONDS] [--library PATH]
//
// For every device and reading it prints
//
//   device INDEX UUID PCI NAME
//   metric INDEX NAME{TAG="VALUE"} NUMBER UNIT      as docs/metrics.md declares it
//   field INDEX QUERY NUMBER                        as `nvidia-smi --query-gpu=QUERY` would print
//   process INDEX PID BYTES                         with --details
//   took INDEX MICROSECONDS                         what it took to read it
//
// each reading behind `reading INDEX SECONDS`, on a clock that only rises, and `opened
// MICROSECONDS` first of all; and nothing for what the device does not have.
// tests/gpu/compare_with_nvidia_smi.py compares. Exit status: 0; 1 if there is a failure; 3 if
// there is no library or no device.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "daemon/collect/gpu/gpu_metrics.h"
#include "daemon/collect/gpu/library.h"

namespace sonde::collect::gpu {
namespace {

constexpr int kNoDevice = 3;

class SteadyClock final : public Clock {
 public:
  Nanos Now() const override { return Monotonic(); }
  Nanos Monotonic() const override {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

// nvidia-smi's fields, and what a value is multiplied with to be in their units.
struct SmiField {
  const char* query;
  Value value;
  double scale;
};
constexpr double kPercent = 100;
constexpr double kMebi = 1.0 / (1024 * 1024);
constexpr double kMega = 1e-6;
constexpr SmiField kSmiFields[] = {
    {"utilization.gpu", Value::kUtilization, kPercent},
    {"utilization.memory", Value::kMemoryUtilization, kPercent},
    {"utilization.encoder", Value::kEncoderUtilization, kPercent},
    {"utilization.decoder", Value::kDecoderUtilization, kPercent},
    {"memory.used", Value::kMemoryUsed, kMebi},
    {"memory.total", Value::kMemoryTotal, kMebi},
    {"power.draw", Value::kPower, 1},
    {"enforced.power.limit", Value::kPowerLimit, 1},
    {"temperature.gpu", Value::kTemperature, 1},
    {"temperature.memory", Value::kMemoryTemperature, 1},
    {"clocks.sm", Value::kClock, kMega},
    {"clocks.mem", Value::kMemoryClock, kMega},
    {"clocks.video", Value::kVideoClock, kMega},
    {"fan.speed", Value::kFanSpeed, kPercent},
    {"ecc.errors.corrected.volatile.total", Value::kEccCorrected, 1},
    {"ecc.errors.uncorrected.volatile.total", Value::kEccUncorrected, 1},
    {"clocks_throttle_reasons.sw_power_cap", Value::kThrottlePower, 1},
    {"clocks_throttle_reasons.hw_power_brake_slowdown", Value::kThrottlePowerBrake, 1},
    {"clocks_throttle_reasons.hw_slowdown", Value::kThrottleHardware, 1},
};

struct Arguments {
  bool details = false;
  int count = 1;
  double period = 1;
  std::vector<std::string> paths;
};

void PrintMetric(unsigned index, const MetricDecl& decl, std::string_view tag,
                 std::string_view tag_value, double value) {
  if (std::isnan(value)) return;
  std::printf("metric %u %.*s", index, static_cast<int>(decl.name.size()), decl.name.data());
  if (!tag.empty()) {
    std::printf("{%.*s=\"%.*s\"}", static_cast<int>(tag.size()), tag.data(),
                static_cast<int>(tag_value.size()), tag_value.data());
  }
  std::printf(" %.15g %.*s\n", value, static_cast<int>(decl.unit.size()), decl.unit.data());
}

void Print(const Device& device, const Reading& reading) {
  for (const Column& column : Columns()) {
    PrintMetric(device.index, column.decl, column.tag, column.tag_value, reading[column.value]);
  }
  for (size_t i = 0; i < reading.links.size(); ++i) {
    const std::string link = std::to_string(i);
    PrintMetric(device.index, kLinkReceivedDecl, "link", link, reading.links[i].received);
    PrintMetric(device.index, kLinkTransmittedDecl, "link", link, reading.links[i].transmitted);
  }
  for (const SmiField& field : kSmiFields) {
    const double value = reading[field.value] * field.scale;
    if (!std::isnan(value)) std::printf("field %u %s %.15g\n", device.index, field.query, value);
  }
  for (const Process& process : reading.processes) {
    std::printf("process %u %u %.15g\n", device.index, process.pid, process.memory);
  }
}

bool Parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const char* const next = i + 1 < argc ? argv[i + 1] : nullptr;
    if (word == "--details") {
      arguments.details = true;
      continue;
    }
    if (next == nullptr) return false;
    if (word == "--count")
      arguments.count = std::atoi(next);
    else if (word == "--period")
      arguments.period = std::atof(next);
    else if (word == "--library")
      arguments.paths = {next};
    else
      return false;
    ++i;
  }
  return arguments.count > 0 && arguments.period >= 0;
}

int Run(const Arguments& arguments) {
  const SteadyClock clock;
  const std::unique_ptr<Library> library =
      MakeNvml({.paths = arguments.paths, .details = arguments.details, .clock = &clock});
  const Nanos start = clock.Monotonic();
  const Status status = library->Open();
  if (!status.ok()) {
    std::fprintf(stderr, "gpu_probe: %.*s\n", static_cast<int>(status.message().size()),
                 status.message().data());
    return status.code() == Code::kNotFound ? kNoDevice : 1;
  }
  const std::vector<Device>& devices = library->devices();
  if (devices.empty()) {
    std::fprintf(stderr, "gpu_probe: there is no NVIDIA GPU here\n");
    return kNoDevice;
  }
  std::printf("opened %lld\n", static_cast<long long>((clock.Monotonic() - start) / kMicrosecond));
  for (const Device& device : devices) {
    std::printf("device %u %s %s %s\n", device.index, device.uuid.c_str(), device.pci.c_str(),
                device.name.c_str());
  }
  std::vector<Reading> readings(devices.size());
  int result = 0;
  for (int round = 0; round < arguments.count; ++round) {
    if (round > 0) std::this_thread::sleep_for(std::chrono::duration<double>(arguments.period));
    for (size_t i = 0; i < devices.size(); ++i) {
      const Nanos before = clock.Monotonic();
      const Status read = library->Read(i, readings[i]);
      const Nanos took = clock.Monotonic() - before;
      if (!read.ok()) {
        result = 1;
        std::fprintf(stderr, "gpu_probe: GPU %u: %.*s\n", devices[i].index,
                     static_cast<int>(read.message().size()), read.message().data());
      }
      std::printf("reading %u %.9f\n", devices[i].index, static_cast<double>(before) / 1e9);
      Print(devices[i], readings[i]);
      std::printf("took %u %.1f\n", devices[i].index, static_cast<double>(took) / kMicrosecond);
    }
    std::fflush(stdout);
  }
  return result;
}

}  // namespace
}  // namespace sonde::collect::gpu

int main(int argc, char** argv) {
  sonde::collect::gpu::Arguments arguments;
  if (!sonde::collect::gpu::Parse(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: gpu_probe [--details] [--count N] [--period SECONDS] [--library PATH]\n");
    return 2;
  }
  return sonde::collect::gpu::Run(arguments);
}
