#include "cli/join/step.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/text/names.h"
#include "libclient/sonde.h"

namespace sonde::join {
namespace {

// Seconds from boot to the start of a process; 0 if it cannot be read.
double StartOf(const std::string& proc, const std::string& pid) {
  std::ifstream file(proc + "/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i < 22; ++i) fields >> field;
  double ticks = 0;
  fields >> ticks;  // the 22nd
  return fields ? ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

double BootTime(const std::string& proc) {
  std::ifstream file(proc + "/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return 0;
}

}  // namespace

void* StepSink::Register(const Series& series) {
  std::vector<sonde_tag_t> tags;
  for (const auto& [key, value] : series.tags.pairs()) tags.push_back({key.c_str(), value.c_str()});
  const Metric& m = series.metric;
  const auto add = m.type == MetricType::kCounter ? &sonde_counter : &sonde_gauge;
  return add(m.name.c_str(), m.unit.c_str(), m.help.c_str(), m.level, tags.data(), tags.size());
}

void StepSink::Set(void* handle, double value) {
  sonde_set(static_cast<sonde_metric_t*>(handle), value);
}

void StepSink::Add(void* handle, double value) {
  sonde_add(static_cast<sonde_metric_t*>(handle), value);
}

double StepStart(const std::string& proc) {
  const char* task = std::getenv("SLURM_TASK_PID");
  const std::string pid = task == nullptr ? std::to_string(getppid()) : task;
  if (!std::all_of(pid.begin(), pid.end(), names::IsDigit)) return 0;
  const double boot = BootTime(proc), start = StartOf(proc, pid);
  return boot > 0 && start > 0 ? boot + start : 0;
}

}  // namespace sonde::join
