// How warm the node is.
//
// Temperatures are those of /sys/class/hwmon, and of /sys/class/thermal only where hwmon has none:
// most zones are sensors of hwmon as well. Below level 4 only the processors' packages are read:
// the kernel interrupts a core to read its own sensor.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "daemon/collect/read/directory.h"
#include "daemon/collect/sensors/hwmon.h"
#include "daemon/collect/sensors/sensor.h"
#include "daemon/collect/sensors/sensor_sources.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kPackageTemperature = {
    "node_package_temperature_celsius",
    "celsius",
    MetricType::kGauge,
    2,
    Reduction::kMean,
    "Highest temperature of a processor's package. Tag chip."};
constexpr MetricDecl kTemperature = {"node_temperature_celsius", "celsius",
                                     MetricType::kGauge,         4,
                                     Reduction::kMean,           "Temperature. Tags chip, sensor."};

constexpr int kAllSensorsLevel = 4;
constexpr size_t kMaxSensors = 512;
constexpr Nanos kRescan = 60 * kSecond;
constexpr double kMilli = 1e-3;
constexpr double kAbsoluteZero = -273.15;
constexpr size_t kNone = std::numeric_limits<size_t>::max();

// Whether it tells how warm a processor's package is.
bool IsPackage(std::string_view driver, std::string_view sensor) {
  if (driver == "coretemp") return sensor.starts_with("Package");
  // AMD's; Tctl, Tdie and, of each chiplet, Tccd1, Tccd2...
  if (driver == "k10temp" || driver == "zenpower") return true;
  return driver == "x86_pkg_temp" || driver.find("cpu") != std::string_view::npos;
}

class TemperatureSource final : public Source {
 public:
  TemperatureSource(const Roots& roots, int level, ReadBuffer& buffer, const Clock& clock)
      : roots_(roots), all_(level >= kAllSensorsLevel), buffer_(buffer), slow_(clock) {}

  std::string_view name() const override { return "temperatures"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override {
    if (now < read_at_) return;
    read_at_ = now + kSensorPeriod;
    if (now >= rescan_at_) Rescan(now);
    std::fill(values_.begin(), values_.end(), kMissing);
    for (Sensor& sensor : sensors_) {
      const double celsius = ParseSensor(sensor.reader.Read(buffer_, now)) * kMilli;
      if (std::isnan(celsius)) {
        // Its driver may have been loaded again, under another number.
        rescan_at_ = std::min(rescan_at_, scanned_at_ + kRescan);
      } else if (celsius >= kAbsoluteZero) {
        if (sensor.column != kNone) values_[sensor.column] = celsius;
        if (sensor.package != kNone) {
          values_[sensor.package] = std::fmax(values_[sensor.package], celsius);
        }
      }
    }
  }

 private:
  struct Sensor {
    HwmonFile file;
    FileReader reader;
    size_t column = kNone;   // its own
    size_t package = kNone;  // its package's
  };

  void Rescan(Nanos now) {
    scanned_at_ = now;
    rescan_at_ = std::numeric_limits<Nanos>::max();
    std::vector<HwmonFile> files = List();
    std::vector<Sensor> found;
    for (HwmonFile& file : files) {
      if (found.size() == kMaxSensors) break;
      if (!all_ && !IsPackage(file.driver, file.sensor)) continue;
      FileReader reader(file.path, Shape::kWhole, kNumberSize);
      if (slow_.IsFast(file, reader, buffer_, now)) {
        found.push_back({std::move(file), std::move(reader)});
      }
    }
    std::string slow = slow_.TakeNote(name());
    if (!slow.empty()) notes_.push_back(std::move(slow));
    const bool same = std::equal(found.begin(), found.end(), sensors_.begin(), sensors_.end(),
                                 [](const Sensor& a, const Sensor& b) {
                                   return a.file.path == b.file.path &&
                                          a.file.chip == b.file.chip &&
                                          a.file.sensor == b.file.sensor;
                                 });
    if (!same) Declare(std::move(found));
  }
  std::vector<HwmonFile> List() {
    static constexpr HwmonKind kKinds[] = {{"temp", "_input"}};
    std::vector<HwmonFile> files = ListHwmon(roots_, kKinds);
    if (!files.empty()) return files;
    const std::string directory = roots_.sys + "/class/thermal";
    for (const std::string& zone : ListDirectory(directory)) {
      if (!zone.starts_with("thermal_zone") || !CheckTag("chip", zone).ok()) continue;
      const std::string type = FirstLine(directory + "/" + zone + "/type", buffer_);
      if (!CheckTag("sensor", type).ok()) continue;
      files.push_back({zone, type, type, directory + "/" + zone + "/temp"});
    }
    return files;
  }
  void Declare(std::vector<Sensor> found) {
    sensors_ = std::move(found);
    series_.clear();
    std::string_view chip;  // whose package series was added last
    size_t package = kNone;
    for (Sensor& sensor : sensors_) {
      if (IsPackage(sensor.file.driver, sensor.file.sensor)) {
        if (std::exchange(chip, sensor.file.chip) != sensor.file.chip) {
          package = AddSeries(kPackageTemperature, {{"chip", sensor.file.chip}});
        }
        sensor.package = package;
      }
      if (all_) {
        sensor.column =
            AddSeries(kTemperature, {{"chip", sensor.file.chip}, {"sensor", sensor.file.sensor}});
      }
    }
    values_.assign(series_.size(), kMissing);
    ++generation_;
  }
  size_t AddSeries(const MetricDecl& decl, Tags tags) {
    Series& s = series_.emplace_back();
    s.metric = Metric(decl);
    s.tags = std::move(tags);
    return series_.size() - 1;
  }

  const Roots roots_;
  const bool all_;
  ReadBuffer& buffer_;
  SlowChips slow_;
  std::vector<Sensor> sensors_;
  Nanos scanned_at_ = 0;
  Nanos rescan_at_ = 0;
  Nanos read_at_ = 0;
};

}  // namespace

std::unique_ptr<Source> MakeTemperatureSource(const Roots& roots, int level, ReadBuffer& buffer,
                                              const Clock& clock) {
  return std::make_unique<TemperatureSource>(roots, level, buffer, clock);
}

std::vector<MetricDecl> TemperatureMetrics() { return {kPackageTemperature, kTemperature}; }

}  // namespace sonde::collect
