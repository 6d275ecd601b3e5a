#include "launcher/machine_open.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/text/ascii.h"
#include "core/text/cpu_list.h"
#include "launcher/read_file.h"

namespace sonde::launch {
namespace {

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
int Open(const MachineEvent& event, const std::string& devices) {
  const std::string_view pmu(event.pmu, ::strnlen(event.pmu, sizeof(event.pmu)));
  if (!IsKnown(pmu)) return -EACCES;
  const std::string device = devices + "/" + std::string(pmu);
  const Result<std::string> mask = ReadFile(device + "/cpumask");
  const Result<std::string> type = ReadFile(device + "/type");
  perf_event_attr attr{};
  if (!mask.ok() || !type.ok() || !ParseNumber(TrimLine(*type), attr.type)) return -ENODEV;
  if (!HasProcessor(TrimLine(*mask), event.cpu)) return -EACCES;
  attr.size = PERF_ATTR_SIZE_VER1;
  attr.config = event.config;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  const long fd = ::syscall(SYS_perf_event_open, &attr, -1, static_cast<int>(event.cpu), -1,
                            PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

}  // namespace

TaskEvents OpenMachineEvents(std::span<const MachineEvent> events, const std::string& devices) {
  TaskEvents opened;
  for (const MachineEvent& event : events) {
    const int fd = Open(event, devices);
    if (fd >= 0) opened.fds.emplace_back(fd);
    if (!opened.results.empty()) opened.results += ',';
    opened.results += std::to_string(fd >= 0 ? 0 : -fd);
  }
  return opened;
}

void OfferMachineEvents(std::span<const MachineEvent> events,
                        const std::function<void(const Writer&, std::span<const int>)>& send) {
  constexpr size_t kBatch = 8;
  for (size_t first = 0; first < events.size(); first += kBatch) {
    const TaskEvents opened =
        OpenMachineEvents(events.subspan(first, std::min(kBatch, events.size() - first)));
    Writer message(kMachine);
    message.Add(key::kFirst, static_cast<long long>(first));
    message.Add(key::kPerf, opened.results);
    std::vector<int> fds;
    for (const UniqueFd& fd : opened.fds) fds.push_back(fd.get());
    send(message, fds);
  }
}

}  // namespace sonde::launch
