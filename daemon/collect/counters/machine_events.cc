#include "daemon/collect/counters/machine_events.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "daemon/collect/counters/words.h"
#include "daemon/collect/read/directory.h"
#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/parse.h"

namespace sonde::collect {
namespace {

using Kind = MachineCounter::Kind;

struct KnownEvent {
  std::string_view device;  // the name's beginning
  std::string_view event;   // its file, or the terms themselves if they hold '='
  Kind kind;
  std::string_view part;  // of energy
  int level;
  double scale;  // if no file says it
};
constexpr KnownEvent kKnown[] = {
    {"power", "energy-pkg", Kind::kEnergy, "package", 3, kMissing},
    {"power", "energy-ram", Kind::kEnergy, "dram", 3, kMissing},
    {"power", "energy-psys", Kind::kEnergy, "psys", 3, kMissing},
    {"power", "energy-cores", Kind::kEnergy, "core", 4, kMissing},
    {"uncore_imc", "cas_count_read", Kind::kRead, "", 3, kMissing},
    {"uncore_imc", "cas_count_write", Kind::kWritten, "", 3, kMissing},
    {"uncore_imc", "data_read", Kind::kRead, "", 3, kMissing},
    {"uncore_imc", "data_write", Kind::kWritten, "", 3, kMissing},
    {"amd_umc", "event=0x0a,rdwrmask=0x1", Kind::kRead, "", 3, 64},
    {"amd_umc", "event=0x0a,rdwrmask=0x2", Kind::kWritten, "", 3, 64},
    {"nvidia_scf_pmu", "cmem_rd_data", Kind::kRead, "", 3, 32},
    {"nvidia_scf_pmu", "cmem_wr_total_bytes", Kind::kWritten, "", 3, 1},
};

constexpr size_t kMaxTerms = 8;
constexpr size_t kMaxProcessors = 64;  // of one device

// Puts the lowest bits of `value` into the places, "0-7,21", in their order. False if bits are left
// or the places make no sense.
bool Deposit(std::string_view places, uint64_t value, uint64_t& config) {
  while (!places.empty()) {
    std::string_view range = TakeUntil(places, ',');
    const std::optional<uint64_t> first = ParseWhole<uint64_t>(TakeUntil(range, '-'));
    const std::optional<uint64_t> last = range.empty() ? first : ParseWhole<uint64_t>(range);
    if (!first || !last || *last < *first || *last > 63) return false;
    for (uint64_t bit = *first; bit <= *last; ++bit, value >>= 1) {
      if ((value & 1) != 0) config |= uint64_t{1} << bit;
    }
  }
  return value == 0;
}

// The processors that a device names, "0,32" or "0-1".
std::vector<uint32_t> Processors(std::string_view list) {
  std::vector<uint32_t> processors;
  while (!list.empty()) {
    std::string_view range = TakeUntil(list, ',');
    const std::optional<uint64_t> first = ParseWhole<uint64_t>(TakeUntil(range, '-'));
    const std::optional<uint64_t> last = range.empty() ? first : ParseWhole<uint64_t>(range);
    if (!first || !last || *last > UINT16_MAX) break;
    for (uint64_t p = *first; p <= *last && processors.size() < kMaxProcessors; ++p) {
      processors.push_back(static_cast<uint32_t>(p));
    }
  }
  return processors;
}

// Of a file such as "2.3283064365386962890625e-10"; missing if it is not there.
double Scale(const std::string& path, ReadBuffer& buffer) {
  const std::string text = FirstLine(path, buffer);
  double value = kMissing;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::isfinite(value) && value > 0 ? value : kMissing;
}

double UnitFactor(std::string_view unit) {
  if (unit == "MiB") return 1024.0 * 1024.0;
  if (unit == "Joules" || unit == "Bytes" || unit == "bytes" || unit.empty()) return 1;
  return kMissing;
}

class Finder {
 public:
  Finder(const Roots& roots, int level)
      : roots_(roots), devices_(roots.sys + "/bus/event_source/devices"), level_(level) {}

  std::vector<MachineCounter> Run() {
    for (const std::string& device : ListDirectory(devices_)) {
      for (const KnownEvent& known : kKnown) {
        if (known.level <= level_ && device.starts_with(known.device)) Add(device, known);
      }
    }
    return std::move(found_);
  }

 private:
  void Add(const std::string& device, const KnownEvent& known) {
    MachineCounter counter;
    if (device.size() >= sizeof(counter.event.pmu)) return;
    const std::string path = fmt::format("{}/{}", devices_, device);
    const bool spelled = known.event.find('=') != std::string_view::npos;
    const std::string file = fmt::format("{}/events/{}", path, known.event);
    const std::string terms = spelled ? std::string(known.event) : FirstLine(file, buffer_);
    if (terms.empty()) return;
    const Result<uint64_t> config = EncodeTerms(terms, path + "/format");
    counter.scale = std::isnan(known.scale) ? Scale(file + ".scale", buffer_) *
                                                  UnitFactor(FirstLine(file + ".unit", buffer_))
                                            : known.scale;
    if (!config.ok() || std::isnan(counter.scale)) return;
    counter.kind = known.kind;
    counter.event.config = *config;
    device.copy(counter.event.pmu, sizeof(counter.event.pmu) - 1);
    for (const uint32_t cpu : Processors(FirstLine(path + "/cpumask", buffer_))) {
      if (found_.size() == launch::kMaxMachineEvents) return;
      counter.event.cpu = cpu;
      const std::string socket = Socket(cpu);
      counter.part =
          known.kind == Kind::kEnergy ? fmt::format("{}-{}", known.part, socket) : socket;
      found_.push_back(counter);
    }
  }

  std::string Socket(uint32_t cpu) {
    const std::string id = FirstLine(
        fmt::format("{}/devices/system/cpu/cpu{}/topology/physical_package_id", roots_.sys, cpu),
        buffer_);
    return ParseWhole<uint64_t>(id) ? id : "0";
  }

  const Roots& roots_;
  const std::string devices_;
  const int level_;
  ReadBuffer buffer_;
  std::vector<MachineCounter> found_;
};

}  // namespace

Result<uint64_t> EncodeTerms(std::string_view terms, const std::string& format) {
  ReadBuffer buffer;
  uint64_t config = 0;
  for (size_t i = 0; !terms.empty(); ++i) {
    std::string_view value = TakeUntil(terms, ',');
    const std::string_view name = TakeUntil(value, '=');
    const std::optional<uint64_t> number = value.empty() ? 1 : ParseWhole<uint64_t>(value);
    const bool plain =
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
    if (i == kMaxTerms || name.empty() || !plain || !number) {
      return Status(Code::kInvalid, fmt::format("'{}' is no term of an event", name));
    }
    const std::string places = FirstLine(fmt::format("{}/{}", format, name), buffer);
    constexpr std::string_view kConfig = "config:";
    if (!places.starts_with(kConfig) ||
        !Deposit(std::string_view(places).substr(kConfig.size()), *number, config)) {
      return Status(Code::kInvalid, fmt::format("'{}' has no place in config", name));
    }
  }
  return config;
}

std::vector<MachineCounter> FindMachineCounters(const Roots& roots, int level) {
  return Finder(roots, level).Run();
}

}  // namespace sonde::collect
