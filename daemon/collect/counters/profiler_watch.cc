#include "daemon/collect/counters/profiler_watch.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemon/collect/read/file_reader.h"

namespace sonde::collect {
namespace {

struct Sign {
  std::string_view text;
  std::string_view tool;
};
// Names of processes, which the kernel cuts at 15 bytes.
constexpr Sign kNames[] = {{"perf", "perf"},
                           {"likwid-perfctr", "LIKWID"},
                           {"likwid-perfscop", "LIKWID"},
                           {"likwid-mpirun", "LIKWID"},
                           {"likwid-lua", "LIKWID"},
                           {"vtune", "VTune"},
                           {"amplxe-cl", "VTune"},
                           {"amplxe-perf", "VTune"},
                           {"sep", "VTune"},
                           {"emon", "VTune"},
                           {"AMDuProfCLI", "uProf"},
                           {"AMDuProfCLI-bin", "uProf"},
                           {"AMDuProfPcm", "uProf"},
                           {"nsys", "Nsight Systems"},
                           {"pcm", "PCM"},
                           {"tiptop", "tiptop"},
                           {"papi_command_l", "PAPI"}};
// What the path of a mapped library holds.
constexpr Sign kLibraries[] = {{"/libpapi.so", "PAPI"},
                               {"/liblikwid.so", "LIKWID"},
                               {"/libhpcrun.so", "HPCToolkit"},
                               {"/libmap-sampler", "MAP"}};

// Distributions call the program behind the command `perf` perf_5.10 and the like.
bool IsVersionedPerf(std::string_view process) {
  return process.size() > 5 && process.starts_with("perf_") && process[5] >= '0' &&
         process[5] <= '9';
}

}  // namespace

std::string_view ProfilerNamed(std::string_view process) {
  if (IsVersionedPerf(process)) return "perf";
  for (const Sign& sign : kNames) {
    if (process == sign.text) return sign.tool;
  }
  return {};
}

std::string_view ProfilerMapped(std::string_view maps) {
  for (const Sign& sign : kLibraries) {
    if (maps.find(sign.text) != std::string_view::npos) return sign.tool;
  }
  return {};
}

// Processes come in the same order every time, so each is looked for from behind the one before.
ProfilerWatch::Known& ProfilerWatch::Find(const TaskProcess& process) {
  for (size_t i = 0; i < known_.size(); ++i) {
    if (next_ >= known_.size()) next_ = 0;
    Known& known = known_[next_++];
    if (known.process.pid == process.pid && known.process.start == process.start) return known;
  }
  next_ = known_.size() + 1;
  return known_.emplace_back(Known{.process = process});
}

const std::string& ProfilerWatch::Look(const std::vector<TaskProcess>& processes) {
  for (Known& known : known_) known.present = false;
  next_ = 0;
  for (const TaskProcess& process : processes) {
    Known& known = Find(process);
    if (known.process.name != process.name) known = {.process = process};
    known.present = true;
    LookAt(known);
  }
  std::erase_if(known_, [](const Known& known) { return !known.present; });
  const auto tool = std::find_if(known_.begin(), known_.end(),
                                 [](const Known& known) { return !known.tool.empty(); });
  if (tool == known_.end()) {
    found_.clear();
  } else if (found_.empty()) {
    found_ = fmt::format("{} (process {})", tool->tool, tool->process.pid);
  }
  return found_;
}

void ProfilerWatch::LookAt(Known& known) {
  if (!known.tool.empty() || known.looks == kLooks) return;
  ++known.looks;
  known.tool = ProfilerNamed(known.process.name.data());
  if (!known.tool.empty()) return;
  ReadBuffer buffer;
  known.tool = ProfilerMapped(
      FileReader(fmt::format("{}/{}/maps", proc_, known.process.pid), Shape::kRecords, 65536)
          .Read(buffer, 0));
}

}  // namespace sonde::collect
