// /proc/buddyinfo: in pieces of what size memory is free. Where large ones are lacking, huge pages
// are not to be had however much is free.
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/os/rows_source.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kBlocks = {"node_buddyinfo_blocks",
                                "1",
                                MetricType::kGauge,
                                4,
                                Reduction::kSum,
                                "Free pieces of 2 to the power of `order` pages, sampled every "
                                "10 s. Tags node, zone, order."};
constexpr size_t kMaxOrders = 32;

// Node 0, zone   Normal   3155   2696   1927 ...
class BuddyinfoSource final : public RowsSource {
 public:
  BuddyinfoSource(const Roots& roots, ReadBuffer& buffer)
      : RowsSource(roots.proc + "/buddyinfo", Shape::kRecords, buffer) {}

  std::string_view name() const override { return "buddyinfo"; }
  bool counts_from_boot() const override { return false; }

 private:
  std::string_view TakeName(Cursor& line) override {
    const std::string_view text = line.Rest();
    uint64_t node = 0;
    if (!line.Skip("Node ") || !line.Unsigned(node) || !line.Skip(", zone") ||
        line.Word().empty()) {
      return {};
    }
    return text.substr(0, text.size() - line.Rest().size());
  }
  bool DeclareRow(std::string_view name, Cursor line) override {
    Cursor words(name);
    words.Skip("Node ");
    uint64_t node = 0;
    words.Unsigned(node);
    words.Skip(", zone");
    const std::string_view zone = words.Word();
    if (!CheckTag("zone", zone).ok()) return true;
    const size_t orders = Orders(line);
    for (size_t order = 0; order < orders; ++order) {
      AddSeries(kBlocks, {{"node", std::to_string(node)},
                          {"order", std::to_string(order)},
                          {"zone", std::string(zone)}});
    }
    return false;
  }
  bool NeedsOthers(Cursor line, size_t series) const override { return Orders(line) != series; }
  void ReadRow(Cursor& line, std::span<double> values) override {
    for (double& value : values) value = line.Number();
  }
  static size_t Orders(Cursor line) {
    uint64_t blocks = 0;
    size_t orders = 0;
    while (orders < kMaxOrders && line.Unsigned(blocks)) ++orders;
    return orders;
  }
};

}  // namespace

std::unique_ptr<FileSource> MakeBuddyinfoSource(const Roots& roots, ReadBuffer& buffer) {
  return std::make_unique<BuddyinfoSource>(roots, buffer);
}

std::vector<MetricDecl> BuddyinfoMetrics() { return {kBlocks}; }

}  // namespace sonde::collect
