// /proc/loadavg: how many threads ran, were ready or waited for a disk, on average.
#include "daemon/collect/os_sources.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kLoads[] = {
    {"node_load1", "1", MetricType::kGauge, 2, Reduction::kMean, "Load average over 1 minute."},
    {"node_load5", "1", MetricType::kGauge, 2, Reduction::kMean, "Load average over 5 minutes."},
    {"node_load15", "1", MetricType::kGauge, 2, Reduction::kMean, "Load average over 15 minutes."},
};

class LoadavgSource final : public FileSource {
 public:
  LoadavgSource(const Roots& roots, ReadBuffer& buffer)
      : FileSource(roots.proc + "/loadavg", Shape::kWhole, 128, buffer) {
    for (const MetricDecl& decl : kLoads) AddSeries(decl);
  }

  std::string_view name() const override { return "loadavg"; }
  bool counts_from_boot() const override { return false; }
  void Parse(std::string_view text) override {
    Cursor line(text);
    for (double& value : values_) value = line.Decimal();
  }
};

}  // namespace

std::unique_ptr<FileSource> MakeLoadavgSource(const Roots& roots, ReadBuffer& buffer) {
  return std::make_unique<LoadavgSource>(roots, buffer);
}

std::vector<MetricDecl> LoadavgMetrics() { return {std::begin(kLoads), std::end(kLoads)}; }

}  // namespace sonde::collect
