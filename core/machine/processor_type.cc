#include "core/machine/processor_type.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

#include "core/text/settings.h"

namespace sonde {
namespace {

std::string TextOfFile(const std::string& path) {
  std::stringstream text;
  if (std::ifstream file(path); file) text << file.rdbuf();
  return std::move(text).str();
}

// Single blanks between words, and nothing that is not printable ASCII.
std::string PlainModel(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') continue;
    if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
    if (out.size() == kMaxProcessorModel) break;
    out += c;
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

std::string ProcessorType::ToString() const {
  std::string out = fmt::format("{}, {} CPU{}, {} socket{}", model, cpus, cpus == 1 ? "" : "s",
                                sockets, sockets == 1 ? "" : "s");
  if (megahertz > 0) out += fmt::format(", at most {} MHz", megahertz);
  return out;
}

ProcessorType ParseProcessorType(std::string_view cpuinfo) {
  ProcessorType type;
  std::set<std::string_view> packages;
  std::string_view implementer;
  std::string_view part;
  std::string_view cpu;
  while (!cpuinfo.empty()) {
    const size_t end = std::min(cpuinfo.find('\n'), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(0, end);
    cpuinfo.remove_prefix(std::min(end + 1, cpuinfo.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = TrimLine(line.substr(0, colon));
    const std::string_view value = TrimLine(line.substr(colon + 1));
    if (key == "processor") ++type.cpus;
    if (key == "model name" && type.model.empty()) type.model = PlainModel(value);
    if (key == "physical id") packages.insert(value);
    if (key == "CPU implementer") implementer = value;
    if (key == "CPU part") part = value;
    if (key == "cpu") cpu = value;  // POWER
  }
  // Arm's kernels name no model, but the same two numbers for all processors of one design.
  if (!implementer.empty()) type.model = PlainModel(fmt::format("arm {} {}", implementer, part));
  if (type.model.empty()) type.model = PlainModel(cpu);
  type.sockets = packages.empty() ? 0 : static_cast<uint32_t>(packages.size());
  return type;
}

ProcessorType ReadProcessorType(const std::string& proc, const std::string& sys) {
  ProcessorType type = ParseProcessorType(TextOfFile(proc + "/cpuinfo"));
  if (type.sockets == 0 && type.cpus > 0) {  // as on Arm
    std::set<std::string> packages;
    for (uint32_t cpu = 0; cpu < type.cpus; ++cpu) {
      const std::string id = TextOfFile(
          fmt::format("{}/devices/system/cpu/cpu{}/topology/physical_package_id", sys, cpu));
      if (!id.empty()) packages.insert(id);
    }
    type.sockets = packages.empty() ? 1 : static_cast<uint32_t>(packages.size());
  }
  const std::string most = TextOfFile(sys + "/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  uint64_t kilohertz = 0;
  std::from_chars(most.data(), most.data() + most.size(), kilohertz);
  constexpr uint64_t kMostMegahertz = 100'000;
  if (kilohertz / 1000 <= kMostMegahertz) type.megahertz = static_cast<uint32_t>(kilohertz / 1000);
  return type;
}

}  // namespace sonde
