// How warm the node is, whether its processors are slowed down for that, and how fast they run.
//
// Temperatures are those of /sys/class/hwmon, and of /sys/class/thermal only where hwmon has none:
// most zones are sensors of hwmon as well. Below level 4 only the processors' packages are read:
// the kernel interrupts a core to read its own sensor.
//
// Threads of one core count its throttling each, and all processors of a package that of the
// package; so the first of each is read. Both are of Intel's processors alone.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "daemon/collect/directory.h"
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/sensors/hwmon.h"
#include "daemon/collect/sensors/sensor.h"

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

constexpr MetricDecl DeclareCounter(std::string_view name, std::string_view unit, uint8_t level,
                                    std::string_view help) {
  return {name, unit, MetricType::kCounter, level, Reduction::kSum, help};
}

// A file of cpu*/thermal_throttle. The names of the counts are node_exporter's.
struct ThrottleFile {
  MetricDecl decl;
  std::string_view name;
  std::string_view siblings;  // lists the processors that count the same
  double scale;
};
constexpr ThrottleFile kThrottleFiles[] = {
    {DeclareCounter("node_cpu_core_throttles_total", "1", 2,
                    "Times a core was slowed down for its temperature; all cores together."),
     "core_throttle_count", "thread_siblings_list", 1},
    {DeclareCounter("node_cpu_package_throttles_total", "1", 2,
                    "Times a package was slowed down for its temperature; all together."),
     "package_throttle_count", "core_siblings_list", 1},
    {DeclareCounter("node_cpu_core_throttle_seconds_total", "seconds", 4,
                    "Time in which a core was slowed down for its temperature; all together."),
     "core_throttle_total_time_ms", "thread_siblings_list", 1e-3},
    {DeclareCounter("node_cpu_package_throttle_seconds_total", "seconds", 4,
                    "Time in which a package was slowed down for its temperature; all together."),
     "package_throttle_total_time_ms", "core_siblings_list", 1e-3},
};

// In the order of the columns.
constexpr MetricDecl kFrequencies[] = {
    {"node_cpu_frequency_mean_hertz", "hertz", MetricType::kGauge, 4, Reduction::kMean,
     "Mean frequency of the processors now. To read it, some kernels interrupt each of them."},
    {"node_cpu_frequency_lowest_hertz", "hertz", MetricType::kGauge, 4, Reduction::kMin,
     "Frequency of the slowest processor now."},
    {"node_cpu_frequency_highest_hertz", "hertz", MetricType::kGauge, 4, Reduction::kMax,
     "Frequency of the fastest processor now."},
};

constexpr int kAllSensorsLevel = 4;
constexpr int kFrequencyLevel = 4;
constexpr size_t kMaxSensors = 512;
constexpr size_t kTextSize = 64;
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
      FileReader reader(file.path, Shape::kWhole, kTextSize);
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

struct Processor {
  unsigned number = 0;
  std::string directory;
};

std::vector<Processor> ListProcessors(const Roots& roots) {
  std::vector<Processor> processors;
  const std::string directory = roots.sys + "/devices/system/cpu";
  constexpr std::string_view kPrefix = "cpu";
  for (const std::string& name : ListDirectory(directory)) {
    if (!name.starts_with(kPrefix)) continue;
    Processor p{0, directory + "/" + name};
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, p.number);
    if (error == std::errc() && stop == end) processors.push_back(std::move(p));
  }
  return processors;
}

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Files that are looked for once: a processor keeps its number, and its files come back with it.
class ThrottleSource final : public Source {
 public:
  ThrottleSource(const Roots& roots, int level, ReadBuffer& buffer)
      : roots_(roots), level_(level), buffer_(buffer) {}

  std::string_view name() const override { return "throttling"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return true; }
  void Sample(Nanos now) override {
    if (now < read_at_) return;
    read_at_ = now + kSensorPeriod;
    const bool first = !std::exchange(scanned_, true);
    if (first) Scan();
    std::fill(values_.begin(), values_.end(), kMissing);
    for (Count& count : counts_) {
      const double value = ParseSensor(count.reader.Read(buffer_, now));
      if (!(value >= 0)) continue;
      double& total = totals_[count.column];
      // A processor that comes later, or was away, had counted before.
      if (first || value > count.last) total += first ? value : value - count.last;
      count.last = value;
      values_[count.column] = 0;  // at least one could be read
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!std::isnan(values_[i])) values_[i] = totals_[i] * scales_[i];
    }
  }

 private:
  struct Count {
    FileReader reader;
    size_t column;
    double last = kMissing;
  };

  void Scan() {
    const std::vector<Processor> processors = ListProcessors(roots_);
    for (const ThrottleFile& file : kThrottleFiles) {
      if (file.decl.level > level_) continue;
      const size_t before = counts_.size();
      for (const Processor& p : processors) {
        std::string path = fmt::format("{}/thermal_throttle/{}", p.directory, file.name);
        if (!IsThere(path) || !IsFirst(p, file.siblings)) continue;
        counts_.push_back({FileReader(std::move(path), Shape::kWhole, kTextSize), series_.size()});
      }
      if (counts_.size() == before) continue;
      series_.emplace_back().metric = Metric(file.decl);
      scales_.push_back(file.scale);
    }
    values_.assign(series_.size(), kMissing);
    totals_.assign(series_.size(), 0);
    ++generation_;
  }
  // Lists are like "3,131" and "0-63,128-191". Without one, a processor is taken to be alone.
  bool IsFirst(const Processor& p, std::string_view siblings) {
    const std::string list =
        FirstLine(fmt::format("{}/topology/{}", p.directory, siblings), buffer_);
    uint64_t lowest = 0;
    return !Cursor(list).Unsigned(lowest) || lowest == p.number;
  }

  const Roots roots_;
  const int level_;
  ReadBuffer& buffer_;
  std::vector<Count> counts_;
  std::vector<double> totals_;  // by column, as the kernel counts
  std::vector<double> scales_;  // by column, to the metric's unit
  bool scanned_ = false;
  Nanos read_at_ = 0;
};

class FrequencySource final : public Source {
 public:
  FrequencySource(const Roots& roots, ReadBuffer& buffer) : roots_(roots), buffer_(buffer) {}

  std::string_view name() const override { return "frequencies"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override {
    if (now < read_at_) return;
    read_at_ = now + kSensorPeriod;
    if (!std::exchange(scanned_, true)) Scan();
    if (files_.empty()) return;
    double sum = 0;
    double count = 0;
    double lowest = kMissing;
    double highest = kMissing;
    for (FileReader& file : files_) {
      const double hertz = ParseSensor(file.Read(buffer_, now)) * 1e3;
      if (!(hertz > 0)) continue;  // offline, or not known
      sum += hertz;
      ++count;
      lowest = std::fmin(lowest, hertz);
      highest = std::fmax(highest, hertz);
    }
    values_[0] = count > 0 ? sum / count : kMissing;
    values_[1] = lowest;
    values_[2] = highest;
  }

 private:
  void Scan() {
    for (const Processor& p : ListProcessors(roots_)) {
      std::string path = p.directory + "/cpufreq/scaling_cur_freq";
      if (IsThere(path)) files_.emplace_back(std::move(path), Shape::kWhole, kTextSize);
    }
    if (files_.empty()) return;
    for (const MetricDecl& decl : kFrequencies) series_.emplace_back().metric = Metric(decl);
    values_.assign(series_.size(), kMissing);
    ++generation_;
  }

  const Roots roots_;
  ReadBuffer& buffer_;
  std::vector<FileReader> files_;
  bool scanned_ = false;
  Nanos read_at_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Source>> MakeThermalSources(const Roots& roots, int level,
                                                        ReadBuffer& buffer, const Clock& clock) {
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<TemperatureSource>(roots, level, buffer, clock));
  sources.push_back(std::make_unique<ThrottleSource>(roots, level, buffer));
  if (level >= kFrequencyLevel) {
    sources.push_back(std::make_unique<FrequencySource>(roots, buffer));
  }
  return sources;
}

std::vector<MetricDecl> ThermalMetrics() {
  std::vector<MetricDecl> metrics = {kPackageTemperature, kTemperature};
  for (const ThrottleFile& file : kThrottleFiles) metrics.push_back(file.decl);
  metrics.insert(metrics.end(), std::begin(kFrequencies), std::end(kFrequencies));
  return metrics;
}

}  // namespace sonde::collect
