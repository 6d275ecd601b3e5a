#include "daemon/collect/gpu/gpu_metrics.h"

#include <array>

namespace sonde::collect::gpu {
namespace {

using enum Reduction;

constexpr MetricDecl Gauge(std::string_view name, std::string_view unit, uint8_t level,
                           Reduction reduction, std::string_view help) {
  return {name, unit, MetricType::kGauge, level, reduction, help};
}
constexpr MetricDecl Counter(std::string_view name, std::string_view unit, uint8_t level,
                             std::string_view help) {
  return {name, unit, MetricType::kCounter, level, kSum, help};
}

constexpr double kRatio = 1.5;  // some devices round up
constexpr double kBytes = 1e15;
constexpr double kWatts = 1e5;
constexpr double kDegrees = 500;
constexpr double kHertz = 1e12;
constexpr double kErrors = 1e12;

constexpr MetricDecl kTemperature =
    Gauge("gpu_temperature_celsius", "celsius", 3, kMax,
          "Temperature. Tag sensor: gpu, memory or hotspot (the hottest place).");
constexpr MetricDecl kClock =
    Gauge("gpu_clock_hertz", "hertz", 3, kMean, "Clock now. Tag clock: compute or memory.");
constexpr MetricDecl kThrottled =
    Gauge("gpu_throttled", "1", 3, kMax,
          "1 while the clock is held down. Tag reason: power (the limit is reached), current, "
          "thermal, power_brake (from outside: the supply's or the rack's limit), hardware (a "
          "protection of the chip's, whatever its cause).");
constexpr MetricDecl kEcc =
    Counter("gpu_ecc_errors_total", "1", 3,
            "Errors of memories with ECC. Tag type: corrected, uncorrected.");

constexpr std::array kColumns = {
    Column{WithSpread(Gauge("gpu_utilization_ratio", "1", 3, kMean,
                            "Share of time in which anything ran on the GPU, however few of its "
                            "units it used.")),
           Value::kUtilization, "", "", kRatio},
    Column{Gauge("gpu_memory_utilization_ratio", "1", 3, kMean,
                 "Share of time in which the GPU's memory was read or written."),
           Value::kMemoryUtilization, "", "", kRatio},
    Column{
        WithSpread(Gauge("gpu_memory_used_bytes", "bytes", 3, kSum, "Memory of the GPU in use.")),
        Value::kMemoryUsed, "", "", kBytes},
    Column{Gauge("gpu_memory_total_bytes", "bytes", 3, kSum, "Memory of the GPU."),
           Value::kMemoryTotal, "", "", kBytes},
    Column{Gauge("gpu_power_watts", "watts", 3, kSum, "Power drawn, as the device gives it."),
           Value::kPower, "", "", kWatts},
    Column{
        Counter("gpu_energy_joules_total", "joules", 3,
                "Energy used, by the device's own counter; for a device that has none, its power "
                "summed over the samples."),
        Value::kEnergy, "", "", kWatts},
    Column{kTemperature, Value::kTemperature, "sensor", "gpu", kDegrees},
    Column{kTemperature, Value::kMemoryTemperature, "sensor", "memory", kDegrees},
    Column{kTemperature, Value::kHotspotTemperature, "sensor", "hotspot", kDegrees},
    Column{kClock, Value::kClock, "clock", "compute", kHertz},
    Column{kClock, Value::kMemoryClock, "clock", "memory", kHertz},
    Column{kThrottled, Value::kThrottlePower, "reason", "power", 1},
    Column{kThrottled, Value::kThrottleCurrent, "reason", "current", 1},
    Column{kThrottled, Value::kThrottleThermal, "reason", "thermal", 1},
    Column{kThrottled, Value::kThrottlePowerBrake, "reason", "power_brake", 1},
    Column{kThrottled, Value::kThrottleHardware, "reason", "hardware", 1},
    Column{Counter("gpu_pcie_received_bytes_total", "bytes", 3,
                   "Bytes the GPU got over PCIe, where they are counted."),
           Value::kPcieReceived, "", "", 1e12},
    Column{Counter("gpu_pcie_transmitted_bytes_total", "bytes", 3,
                   "Bytes the GPU sent over PCIe, where they are counted."),
           Value::kPcieTransmitted, "", "", 1e12},
    Column{Counter("gpu_link_received_bytes_total", "bytes", 3,
                   "Bytes the GPU got from others over its own links: NVLink, Infinity Fabric, Xe "
                   "Link."),
           Value::kLinkReceived, "", "", kMostLinkBytes},
    Column{Counter("gpu_link_transmitted_bytes_total", "bytes", 3,
                   "Bytes the GPU sent to others over its own links."),
           Value::kLinkTransmitted, "", "", kMostLinkBytes},
    Column{kEcc, Value::kEccCorrected, "type", "corrected", kErrors},
    Column{kEcc, Value::kEccUncorrected, "type", "uncorrected", kErrors},
    Column{
        Counter("gpu_xid_errors_total", "1", 3,
                "Errors that NVIDIA's driver reported of the GPU (XIDs); the profile's notes name "
                "them."),
        Value::kXidErrors, "", "", kErrors},
    Column{
        Gauge("gpu_last_xid", "1", 4, kMax, "Number of the newest XID; missing if there was none."),
        Value::kLastXid, "", "", 1e6},
    Column{Gauge("gpu_power_limit_watts", "watts", 4, kSum, "The most that the GPU may draw."),
           Value::kPowerLimit, "", "", kWatts},
    Column{Gauge("gpu_video_clock_hertz", "hertz", 4, kMean, "Clock of the video engines now."),
           Value::kVideoClock, "", "", kHertz},
    Column{Gauge("gpu_encoder_utilization_ratio", "1", 4, kMean,
                 "Share of time in which the video encoder ran."),
           Value::kEncoderUtilization, "", "", kRatio},
    Column{Gauge("gpu_decoder_utilization_ratio", "1", 4, kMean,
                 "Share of time in which the video decoder ran."),
           Value::kDecoderUtilization, "", "", kRatio},
    Column{Gauge("gpu_fan_speed_ratio", "1", 4, kMean, "Speed of the fan, of its highest."),
           Value::kFanSpeed, "", "", 3},
    Column{Gauge("gpu_pcie_receive_bytes_per_second", "bytes_per_second", 4, kSum,
                 "What the GPU gets over PCIe, measured over 20 ms, where bytes are not counted."),
           Value::kPcieReceiveRate, "", "", 1e12},
    Column{Gauge("gpu_pcie_transmit_bytes_per_second", "bytes_per_second", 4, kSum,
                 "What the GPU sends over PCIe, measured over 20 ms, where bytes are not counted."),
           Value::kPcieTransmitRate, "", "", 1e12},
    Column{Counter("gpu_pcie_replays_total", "1", 4, "PCIe packets that had to be sent again."),
           Value::kPcieReplays, "", "", kErrors},
};

}  // namespace

const MetricDecl kLinkReceivedDecl =
    Counter("gpu_single_link_received_bytes_total", "bytes", 4,
            "Bytes the GPU got over one of its links. Tag link, its number.");
const MetricDecl kLinkTransmittedDecl =
    Counter("gpu_single_link_transmitted_bytes_total", "bytes", 4,
            "Bytes the GPU sent over one of its links. Tag link, its number.");
const MetricDecl kProcessMemoryDecl =
    Gauge("gpu_task_memory_bytes", "bytes", 4, kSum,
          "Memory of the GPU in use by a task with its descendants. Tag task.");

std::span<const Column> Columns() { return kColumns; }

}  // namespace sonde::collect::gpu

namespace sonde::collect {

std::vector<MetricDecl> GpuMetrics() {
  std::vector<MetricDecl> metrics;
  for (const gpu::Column& column : gpu::Columns()) {
    if (metrics.empty() || metrics.back().name != column.decl.name) metrics.push_back(column.decl);
  }
  metrics.push_back(gpu::kLinkReceivedDecl);
  metrics.push_back(gpu::kLinkTransmittedDecl);
  metrics.push_back(gpu::kProcessMemoryDecl);
  return metrics;
}

}  // namespace sonde::collect
