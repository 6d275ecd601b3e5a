// /sys/kernel/mm/hugepages/hugepages-SIZE: the pools of huge pages, by size, at level 4.
// /proc/meminfo has those of the default size alone. Pools change slowly: they are read every 10 s.
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/read/directory.h"
#include "daemon/collect/read/number_files_source.h"

namespace sonde::collect {
namespace {

constexpr NumberField Gauge(std::string_view file, std::string_view name, Reduction reduction,
                            std::string_view help) {
  return {file, 1, {name, "1", MetricType::kGauge, 4, reduction, help}};
}
// As the kernel's Documentation/admin-guide/mm/hugetlbpage.rst.
constexpr NumberField kHugepagesFields[] = {
    Gauge("nr_hugepages", "node_hugepages", Reduction::kSum,
          "Huge pages in the pool of a size. Tag size, such as 2048kB."),
    Gauge("free_hugepages", "node_hugepages_free", Reduction::kMin,
          "Those that are not in use. Tag size."),
    Gauge("resv_hugepages", "node_hugepages_reserved", Reduction::kSum,
          "Those that are promised and not yet in use. Tag size."),
    Gauge("surplus_hugepages", "node_hugepages_surplus", Reduction::kSum,
          "Those above the pool's size, made when it ran out. Tag size."),
};

constexpr Nanos kPeriod = 10 * kSecond;

class HugepagesSource final : public NumberFilesSource {
 public:
  HugepagesSource(const Roots& roots, int level, ReadBuffer& buffer)
      : NumberFilesSource(roots.sys + "/kernel/mm/hugepages", level, kHugepagesFields, buffer,
                          kPeriod) {}

  std::string_view name() const override { return "hugepages"; }
  bool counts_from_boot() const override { return false; }

 private:
  std::vector<Device> ListDevices() const override {
    constexpr std::string_view kPrefix = "hugepages-";
    std::vector<Device> pools;
    for (const std::string& pool : ListDirectory(root())) {
      if (!pool.starts_with(kPrefix)) continue;
      std::string size = pool.substr(kPrefix.size());
      if (!CheckTag("size", size).ok()) continue;
      pools.push_back({{{"size", std::move(size)}}, root() + "/" + pool});
    }
    return pools;
  }
};

}  // namespace

std::unique_ptr<Source> MakeHugepagesSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<HugepagesSource>(roots, level, buffer);
}

std::vector<MetricDecl> HugepagesMetrics() {
  std::vector<MetricDecl> metrics;
  for (const NumberField& field : kHugepagesFields) metrics.push_back(field.decl);
  return metrics;
}

}  // namespace sonde::collect
