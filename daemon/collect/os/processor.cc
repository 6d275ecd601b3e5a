// What kind of processors the node has. It never changes, and is read once.
#include <fmt/format.h>

#include "core/machine/processor_type.h"
#include "daemon/collect/os/os_sources.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kProcessorInfo = {
    "node_processor_info",
    "1",
    MetricType::kGauge,
    3,
    Reduction::kSum,
    "1 for a node with such processors: their number of nodes for the step. Tags model, cpus "
    "(hardware threads), sockets, and megahertz, the highest clock, where that is known."};

class ProcessorSource final : public Source {
 public:
  explicit ProcessorSource(const Roots& roots) {
    const ProcessorType type = ReadProcessorType(roots.proc, roots.sys);
    if (!type.known()) return;
    Series& series = series_.emplace_back();
    series.metric = Metric(kProcessorInfo);
    series.tags.Set("model", type.model);
    series.tags.Set("cpus", std::to_string(type.cpus));
    series.tags.Set("sockets", std::to_string(type.sockets));
    if (type.megahertz > 0) series.tags.Set("megahertz", std::to_string(type.megahertz));
    values_.push_back(1);
  }

  std::string_view name() const override { return "processor"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos /*now*/) override {}
};

}  // namespace

std::unique_ptr<Source> MakeProcessorSource(const Roots& roots) {
  return std::make_unique<ProcessorSource>(roots);
}

std::vector<MetricDecl> ProcessorMetrics() { return {kProcessorInfo}; }

}  // namespace sonde::collect
