#include "spank/machine_open.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace sonde::spank {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

bool ParseWhole(std::string_view text, uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Calls f(first, last) for each range of a list such as "0-3,8". False at what is no range.
template <typename F>
bool ForEachRange(std::string_view list, F&& f) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view range = list.substr(0, comma);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    const size_t dash = range.find('-');
    uint32_t first = 0, last = 0;
    if (!ParseWhole(range.substr(0, dash), first)) return false;
    last = first;
    if (dash != std::string_view::npos && !ParseWhole(range.substr(dash + 1), last)) return false;
    if (last < first) return false;
    f(first, last);
  }
  return true;
}

bool HasProcessor(std::string_view list, uint32_t cpu) {
  bool has = false;
  const bool good = ForEachRange(
      list, [&](uint32_t first, uint32_t last) { has = has || (cpu >= first && cpu <= last); });
  return good && has;
}

// Energy meters, and memory controllers of Intel, AMD and NVIDIA processors.
bool IsKnown(std::string_view pmu) {
  constexpr std::string_view kPrefixes[] = {"uncore_imc", "amd_umc", "nvidia_scf_pmu"};
  if (pmu.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string_view::npos) {
    return false;
  }
  return pmu == "power" || std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                                       [&](std::string_view p) { return pmu.starts_with(p); });
}

// The descriptor, or -errno.
int Open(const launch::MachineEvent& event, const std::string& devices) {
  const std::string_view pmu(event.pmu, ::strnlen(event.pmu, sizeof(event.pmu)));
  if (!IsKnown(pmu)) return -EACCES;
  const std::string device = devices + "/" + std::string(pmu);
  const Result<std::string> mask = ReadFile(device + "/cpumask");
  const Result<std::string> type = ReadFile(device + "/type");
  perf_event_attr attr{};
  if (!mask.ok() || !type.ok() || !ParseWhole(Trim(*type), attr.type)) return -ENODEV;
  if (!HasProcessor(Trim(*mask), event.cpu)) return -EACCES;
  attr.size = PERF_ATTR_SIZE_VER1;
  attr.config = event.config;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  const long fd = ::syscall(SYS_perf_event_open, &attr, -1, static_cast<int>(event.cpu), -1,
                            PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

}  // namespace

long CountListed(std::string_view list) {
  long count = 0;
  const bool good = ForEachRange(list, [&](uint32_t first, uint32_t last) {
    count += static_cast<long>(last) - static_cast<long>(first) + 1;
  });
  return good ? count : 0;
}

bool HasNodeAlone(std::string_view cores, uint32_t cpus, long processors_online) {
  return processors_online > 0 &&
         (CountListed(cores) >= processors_online || static_cast<long>(cpus) >= processors_online);
}

bool MayCountMachine(PluginConfig::Machine choice, bool alone) {
  using enum PluginConfig::Machine;
  return choice == kAlways || (choice == kExclusive && alone);
}

TaskEvents OpenMachineEvents(std::span<const launch::MachineEvent> events,
                             const std::string& devices) {
  TaskEvents opened;
  for (const launch::MachineEvent& event : events) {
    const int fd = Open(event, devices);
    if (fd >= 0) opened.fds.emplace_back(fd);
    if (!opened.results.empty()) opened.results += ',';
    opened.results += std::to_string(fd >= 0 ? 0 : -fd);
  }
  return opened;
}

void OfferMachineEvents(
    std::span<const launch::MachineEvent> events,
    const std::function<void(const launch::Writer&, std::span<const int>)>& send) {
  constexpr size_t kBatch = 8;
  for (size_t first = 0; first < events.size(); first += kBatch) {
    const TaskEvents opened =
        OpenMachineEvents(events.subspan(first, std::min(kBatch, events.size() - first)));
    launch::Writer message(launch::kMachine);
    message.Add(launch::key::kFirst, static_cast<long long>(first));
    message.Add(launch::key::kPerf, opened.results);
    std::vector<int> fds;
    for (const UniqueFd& fd : opened.fds) fds.push_back(fd.get());
    send(message, fds);
  }
}

}  // namespace sonde::spank
