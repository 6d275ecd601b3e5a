// How fast the processors run: /sys/devices/system/cpu/cpuN/cpufreq.
#include <cmath>
#include <filesystem>
#include <iterator>
#include <utility>

#include "daemon/collect/sensors/hwmon.h"
#include "daemon/collect/sensors/processors.h"
#include "daemon/collect/sensors/sensor.h"
#include "daemon/collect/sensors/sensor_sources.h"

namespace sonde::collect {
namespace {

// In the order of the columns.
constexpr MetricDecl kFrequencies[] = {
    {"node_cpu_frequency_mean_hertz", "hertz", MetricType::kGauge, 4, Reduction::kMean,
     "Mean frequency of the processors now. To read it, some kernels interrupt each of them."},
    {"node_cpu_frequency_lowest_hertz", "hertz", MetricType::kGauge, 4, Reduction::kMin,
     "Frequency of the slowest processor now."},
    {"node_cpu_frequency_highest_hertz", "hertz", MetricType::kGauge, 4, Reduction::kMax,
     "Frequency of the fastest processor now."},
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
      std::error_code error;
      if (std::filesystem::exists(path, error))
        files_.emplace_back(std::move(path), Shape::kWhole, kNumberSize);
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

std::unique_ptr<Source> MakeFrequencySource(const Roots& roots, ReadBuffer& buffer) {
  return std::make_unique<FrequencySource>(roots, buffer);
}

std::vector<MetricDecl> FrequencyMetrics() {
  return {std::begin(kFrequencies), std::end(kFrequencies)};
}

}  // namespace sonde::collect
