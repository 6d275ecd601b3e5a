// Energy and power of the node, from whichever of these it has:
//
//   rapl   /sys/class/powercap/intel-rapl:*/energy_uj, of Intel and AMD processors. Since
//   Linux 5.10
//          only root may read it, as it tells what other processes compute (CVE-2020-8694).
//   cray   /sys/cray/pm_counters, of HPE Cray nodes: "1234 J 1600000000 us"; ten times a second.
//   hwmon  power and energy sensors of boards, supplies and devices.
//
// A level is a choice among parts, not among metrics: what counts again what a larger domain does
// (the cores of a package, each of several processors) is for level 4.
#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/unique_fd.h"
#include "daemon/collect/read/directory.h"
#include "daemon/collect/sensors/energy.h"
#include "daemon/collect/sensors/hwmon.h"
#include "daemon/collect/sensors/sensor.h"
#include "daemon/collect/sensors/sensor_sources.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kPower = {"node_power_watts",
                               "watts",
                               MetricType::kGauge,
                               3,
                               Reduction::kSum,
                               "Power drawn as the hardware gives it. Tags domain, source, as for "
                               "node_energy_joules_total."};

constexpr int kPartsLevel = 4;
constexpr int kNotesLevel = 3;
constexpr size_t kMaxChannels = 512;
constexpr size_t kPowerTextSize = 128;
constexpr Nanos kPowerRescan = 60 * kSecond;
constexpr double kMicro = 1e-6;

enum class Origin : unsigned char { kRapl, kCray, kHwmon };
constexpr std::string_view kOriginNames[] = {"rapl", "cray", "hwmon"};

// One file, one series.
struct Channel {
  Channel(Origin from, const MetricDecl& metric, std::string of, std::string file)
      : origin(from),
        decl(&metric),
        domain(std::move(of)),
        path(std::move(file)),
        reader(path, Shape::kWhole, kPowerTextSize) {}

  bool Same(const Channel& other) const {
    return decl == other.decl && domain == other.domain && path == other.path;
  }

  Origin origin;
  const MetricDecl* decl;
  std::string domain;
  std::string path;
  FileReader reader;
  EnergyCounter counter;  // of kRapl
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "package-0", "psys"; for a part of package-0 such as dram, "dram-0".
std::string RaplDomain(const std::string& directory, std::string_view zone, ReadBuffer& buffer) {
  std::string name = FirstLine(fmt::format("{}/{}/name", directory, zone), buffer);
  const size_t parent_end = zone.rfind(':');
  if (parent_end == zone.find(':')) return name;
  const std::string parent =
      FirstLine(fmt::format("{}/{}/name", directory, zone.substr(0, parent_end)), buffer);
  constexpr std::string_view kPackage = "package";
  if (name.empty() || !parent.starts_with(kPackage)) return name;
  return name + parent.substr(kPackage.size());
}

bool IsPart(Origin origin, std::string_view domain) {
  switch (origin) {
    case Origin::kRapl:
      return domain.starts_with("core") || domain.starts_with("uncore");
    case Origin::kCray:
      return (domain.starts_with("cpu") || domain.starts_with("memory")) && IsDigit(domain.back());
    case Origin::kHwmon:
      return domain.find("/Ecore") != std::string_view::npos;  // amd_energy's, one for each core
  }
  return false;
}

// The domain of a file of pm_counters, such as accel0 of accel0_power and node of power; empty if
// it is not one that is wanted, such as power_cap or cpu_temp.
std::string CrayDomain(std::string_view file, std::string_view quantity) {
  if (file == quantity) return "node";
  if (!file.ends_with(quantity)) return {};
  file.remove_suffix(quantity.size());
  if (!file.ends_with('_')) return {};
  file.remove_suffix(1);
  std::string_view kind = file;
  while (!kind.empty() && IsDigit(kind.back())) kind.remove_suffix(1);
  return kind == "cpu" || kind == "memory" || kind == "accel" ? std::string(file) : std::string();
}

class PowerSource final : public Source {
 public:
  PowerSource(const Roots& roots, int level, ReadBuffer& buffer, const Clock& clock)
      : roots_(roots), level_(level), buffer_(buffer), slow_(clock) {}

  std::string_view name() const override { return "power"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return true; }
  void Sample(Nanos now) override {
    if (now >= rescan_at_) Rescan(now);
    const bool hwmon_due = now >= hwmon_at_;
    if (hwmon_due) hwmon_at_ = now + kSensorPeriod;
    for (size_t i = 0; i < channels_.size(); ++i) {
      if (channels_[i].origin == Origin::kHwmon && !hwmon_due) continue;
      values_[i] = Read(channels_[i], now);
      // Its driver may have been loaded again, under another number.
      if (std::isnan(values_[i])) rescan_at_ = std::min(rescan_at_, scanned_at_ + kPowerRescan);
    }
  }

 private:
  double Read(Channel& channel, Nanos now) {
    const std::string_view text = channel.reader.Read(buffer_, now);
    const bool energy = channel.decl == &kNodeEnergy;
    double value = kMissing;
    switch (channel.origin) {
      case Origin::kRapl:
        value = channel.counter.Add(ParseSensor(text), now) * kMicro;
        break;
      case Origin::kCray:
        value = ParseQuantity(text, energy ? "J" : "W");
        break;
      case Origin::kHwmon:
        value = ParseSensor(text) * kMicro;
        break;
    }
    return value >= 0 || !energy ? value : kMissing;
  }

  void Rescan(Nanos now) {
    scanned_at_ = now;
    rescan_at_ = std::numeric_limits<Nanos>::max();
    unreadable_.clear();
    std::vector<Channel> found;
    FindRapl(found);
    FindCray(found);
    FindHwmon(found, now);
    NoteUnreadable();
    std::string slow = slow_.TakeNote(name());
    if (!slow.empty()) notes_.push_back(std::move(slow));
    const bool same = std::equal(found.begin(), found.end(), channels_.begin(), channels_.end(),
                                 [](const Channel& a, const Channel& b) { return a.Same(b); });
    if (!same) Declare(std::move(found));
  }
  void FindRapl(std::vector<Channel>& found) {
    const std::string directory = roots_.sys + "/class/powercap";
    for (const std::string& zone : ListDirectory(directory)) {
      if (!zone.starts_with("intel-rapl:")) continue;
      const std::string path = directory + "/" + zone;
      Channel channel(Origin::kRapl, kNodeEnergy, RaplDomain(directory, zone, buffer_),
                      path + "/energy_uj");
      channel.counter =
          EnergyCounter(ParseSensor(FirstLine(path + "/max_energy_range_uj", buffer_)));
      Add(std::move(channel), found);
    }
  }
  void FindCray(std::vector<Channel>& found) {
    const std::string directory = roots_.sys + "/cray/pm_counters";
    for (const std::string& file : ListDirectory(directory)) {
      for (const auto& [decl, quantity] :
           {std::pair(&kNodeEnergy, "energy"), std::pair(&kPower, "power")}) {
        std::string domain = CrayDomain(file, quantity);
        if (domain.empty()) continue;
        Add(Channel(Origin::kCray, *decl, std::move(domain), directory + "/" + file), found);
      }
    }
  }
  void FindHwmon(std::vector<Channel>& found, Nanos now) {
    // Of a sensor that has both, the power now.
    static constexpr HwmonKind kKinds[] = {
        {"energy", "_input"}, {"power", "_input"}, {"power", "_average"}};
    for (const HwmonFile& file : ListHwmon(roots_, kKinds)) {
      Channel channel(Origin::kHwmon, file.kind == 0 ? kNodeEnergy : kPower,
                      file.chip + "/" + file.sensor, file.path);
      if (IsWanted(channel, found) && slow_.IsFast(file, channel.reader, buffer_, now)) {
        Add(std::move(channel), found);
      }
    }
  }
  bool IsWanted(const Channel& channel, const std::vector<Channel>& found) const {
    if (found.size() == kMaxChannels || !CheckTag("domain", channel.domain).ok()) return false;
    if (level_ < kPartsLevel && IsPart(channel.origin, channel.domain)) return false;
    return std::none_of(found.begin(), found.end(), [&](const Channel& other) {
      return other.decl == channel.decl && other.origin == channel.origin &&
             other.domain == channel.domain;
    });
  }
  void Add(Channel channel, std::vector<Channel>& found) {
    if (!IsWanted(channel, found)) return;
    if (const UniqueFd file(open(channel.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)); file) {
      found.push_back(std::move(channel));
    } else {
      unreadable_.push_back(channel.path);
    }
  }
  void NoteUnreadable() {
    if (unreadable_.empty() || level_ < kNotesLevel || std::exchange(noted_unreadable_, true)) {
      return;
    }
    notes_.push_back(fmt::format(
        "power: {} of the counters of energy, such as {}, cannot be read: the kernel lets only "
        "root read them, unless the administrator changes their mode",
        unreadable_.size(), unreadable_.front()));
  }
  // What was there before keeps its file and what it has counted.
  void Declare(std::vector<Channel> found) {
    for (Channel& channel : found) {
      const auto known = std::find_if(channels_.begin(), channels_.end(),
                                      [&](const Channel& other) { return other.Same(channel); });
      if (known != channels_.end()) channel = std::move(*known);
    }
    channels_ = std::move(found);
    series_.clear();
    for (const Channel& channel : channels_) {
      Series& s = series_.emplace_back();
      s.metric = Metric(*channel.decl);
      s.tags = {{"domain", channel.domain},
                {"source", std::string(kOriginNames[static_cast<size_t>(channel.origin)])}};
    }
    values_.assign(series_.size(), kMissing);
    hwmon_at_ = 0;
    ++generation_;
  }

  const Roots roots_;
  const int level_;
  ReadBuffer& buffer_;
  SlowChips slow_;
  std::vector<Channel> channels_;
  std::vector<std::string> unreadable_;  // paths, of the last scan
  bool noted_unreadable_ = false;
  Nanos scanned_at_ = 0;
  Nanos rescan_at_ = 0;
  Nanos hwmon_at_ = 0;
};

}  // namespace

std::unique_ptr<Source> MakePowerSource(const Roots& roots, int level, ReadBuffer& buffer,
                                        const Clock& clock) {
  return std::make_unique<PowerSource>(roots, level, buffer, clock);
}

std::vector<MetricDecl> PowerMetrics() { return {kNodeEnergy, kPower}; }

}  // namespace sonde::collect
