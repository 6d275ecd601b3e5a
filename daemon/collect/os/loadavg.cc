// /proc/loadavg: how many threads ran, were ready or waited for a disk, on average; how many there
// are.
#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kLoads[] = {
    WithSpread({"node_load1", "1", MetricType::kGauge, 2, Reduction::kMean,
                "Load average over 1 minute."}),
    {"node_load5", "1", MetricType::kGauge, 2, Reduction::kMean, "Load average over 5 minutes."},
    {"node_load15", "1", MetricType::kGauge, 2, Reduction::kMean, "Load average over 15 minutes."},
};
constexpr MetricDecl kThreads = {
    "node_threads",
    "1",
    MetricType::kGauge,
    2,
    Reduction::kSum,
    "Threads of the whole node, those of the kernel and of other users included."};

class LoadavgSource final : public FileSource {
 public:
  LoadavgSource(const Roots& roots, ReadBuffer& buffer)
      : FileSource(roots.proc + "/loadavg", Shape::kWhole, 128, buffer) {
    for (const MetricDecl& decl : kLoads) AddSeries(decl);
    AddSeries(kThreads);
  }

  std::string_view name() const override { return "loadavg"; }
  bool counts_from_boot() const override { return false; }
  void Parse(std::string_view text) override {
    Cursor line(text);  // 0.20 0.18 0.12 1/80 11206: threads that run, threads, the newest pid
    for (size_t i = 0; i < std::size(kLoads); ++i) values_[i] = line.Decimal();
    line.Number();
    values_.back() = line.Skip("/") ? line.Number() : kMissing;
  }
};

}  // namespace

std::unique_ptr<FileSource> MakeLoadavgSource(const Roots& roots, ReadBuffer& buffer) {
  return std::make_unique<LoadavgSource>(roots, buffer);
}

std::vector<MetricDecl> LoadavgMetrics() {
  std::vector<MetricDecl> metrics(std::begin(kLoads), std::end(kLoads));
  metrics.push_back(kThreads);
  return metrics;
}

}  // namespace sonde::collect
