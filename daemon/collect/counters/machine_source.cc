#include "daemon/collect/counters/machine_source.h"

#include <fmt/core.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "daemon/collect/counters/probe.h"
#include "daemon/collect/read/parse.h"
#include "daemon/collect/sensors/energy.h"

namespace sonde::collect {
namespace {

using Kind = MachineCounter::Kind;

constexpr MetricDecl kTraffic = {
    "node_memory_traffic_bytes_total",
    "bytes",
    MetricType::kCounter,
    3,
    Reduction::kSum,
    "Bytes that the memory controllers moved, for whomever on the node. Tags direction (read, "
    "write), socket. Once a second at most, for steps with the node to themselves."};

// The value, the time enabled and the time running: the first, scaled where the counter was shared.
double ReadCounter(int fd) {
  std::array<uint64_t, 3> words{};
  if (read(fd, words.data(), sizeof(words)) != static_cast<ssize_t>(sizeof(words))) return kMissing;
  const auto value = static_cast<double>(words[0]);
  if (words[2] == 0) return words[1] == 0 ? value : kMissing;
  return value * (static_cast<double>(words[1]) / static_cast<double>(words[2]));
}

}  // namespace

MachineSource::MachineSource(const Roots& roots, int level)
    : counters_(FindMachineCounters(roots, level)) {
  const std::string powercap = roots.sys + "/class/powercap/intel-rapl:0/energy_uj";
  if (access(powercap.c_str(), R_OK) == 0) {
    std::erase_if(counters_, [](const MachineCounter& c) { return c.kind == Kind::kEnergy; });
  }
}

std::vector<launch::MachineEvent> MachineSource::events() const {
  std::vector<launch::MachineEvent> events;
  for (const MachineCounter& counter : counters_) events.push_back(counter.event);
  return events;
}

void MachineSource::Refuse() {
  if (counters_.empty() || std::exchange(refused_, true)) return;
  notes_.emplace_back(
      "the node's energy and memory traffic are not read: the step shares the node, or the site "
      "forbids it (machine_counters in plugstack.conf)");
}

void MachineSource::Take(size_t first, std::span<const int> descriptors) {
  for (size_t i = 0; i < descriptors.size(); ++i) {
    UniqueFd fd(descriptors[i]);
    if (first + i >= counters_.size()) continue;
    const MachineCounter& counter = counters_[first + i];
    const size_t series = SeriesOf(counter);
    if (fd) {
      opened_.push_back({std::move(fd), series, counter.scale});
      continue;
    }
    // A part of a sum is not the sum.
    whole_[series] = false;
    if (std::exchange(refused_, true)) continue;
    notes_.push_back(fmt::format("counter {} of processor {} is not read: {}", counter.event.pmu,
                                 counter.event.cpu, WhyNotCounted(-descriptors[i])));
  }
}

// A socket's memory controllers are one series.
size_t MachineSource::SeriesOf(const MachineCounter& counter) {
  Series wanted;
  if (counter.kind == Kind::kEnergy) {
    wanted.metric = Metric(kNodeEnergy);
    wanted.tags.Set("domain", counter.part);
    wanted.tags.Set("source", "perf");
  } else {
    wanted.metric = Metric(kTraffic);
    wanted.tags.Set("direction", counter.kind == Kind::kRead ? "read" : "write");
    wanted.tags.Set("socket", counter.part);
  }
  const auto known = std::find(series_.begin(), series_.end(), wanted);
  if (known != series_.end()) return static_cast<size_t>(known - series_.begin());
  series_.push_back(std::move(wanted));
  values_.push_back(kMissing);
  whole_.push_back(true);
  ++generation_;
  return series_.size() - 1;
}

void MachineSource::SetPaused(bool paused) {
  paused_ = paused;
  const unsigned long request = paused ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE;
  for (const Opened& counter : opened_) ioctl(counter.fd.get(), request, 0);
}

void MachineSource::Sample(Nanos now) {
  // By whole seconds, so that all nodes read at the same ticks.
  if (!paused_ && !opened_.empty() && now / kSecond != read_at_ / kSecond) return ReadAll(now);
  std::fill(values_.begin(), values_.end(), kMissing);
}

void MachineSource::ReadAll(Nanos now) {
  read_at_ = now;
  for (size_t i = 0; i < values_.size(); ++i) values_[i] = whole_[i] ? 0 : kMissing;
  for (const Opened& counter : opened_) {
    values_[counter.series] += ReadCounter(counter.fd.get()) * counter.scale;
  }
}

std::vector<MetricDecl> MachineMetrics() { return {kTraffic}; }

}  // namespace sonde::collect
