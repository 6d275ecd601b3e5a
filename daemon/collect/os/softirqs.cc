// /proc/softirqs: which processors do the work that timers, the network and disks bring. Their sums
// are in /proc/stat.
#include <algorithm>
#include <cctype>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/os/rows_source.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kCoreSoftirqs = {"node_softirqs_core_total",
                                      "1",
                                      MetricType::kCounter,
                                      4,
                                      Reduction::kSum,
                                      "Soft interrupts of one processor. Tags cpu, vector."};

//                     CPU0       CPU1
//           HI:          0          0
class SoftirqsSource final : public RowsSource {
 public:
  SoftirqsSource(const Roots& roots, ReadBuffer& buffer)
      : RowsSource(roots.proc + "/softirqs", Shape::kWhole, buffer) {}

  std::string_view name() const override { return "softirqs"; }

 private:
  bool TakeHead(std::string_view& text) override {
    Cursor lines(text);
    const bool same = head_.Take(lines.Line());
    text = lines.Rest();
    return same;
  }
  std::string_view TakeName(Cursor& line) override {
    const std::string_view word = line.Word();
    return word.size() > 1 && word.ends_with(':') ? word.substr(0, word.size() - 1) : "";
  }
  bool DeclareRow(std::string_view name, Cursor /*line*/) override {
    std::string vector(name);
    std::transform(vector.begin(), vector.end(), vector.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (vector == "irq_poll") vector = "block_iopoll";  // as /proc/stat's are called
    if (!CheckTag("vector", vector).ok()) return true;
    for (const std::string& cpu : head_.cpus()) {
      AddSeries(kCoreSoftirqs, {{"cpu", cpu}, {"vector", vector}});
    }
    return true;
  }
  void ReadRow(Cursor& line, std::span<double> values) override {
    for (double& value : values) value = line.Number();
  }

  CpuHead head_;
};

}  // namespace

std::unique_ptr<FileSource> MakeSoftirqsSource(const Roots& roots, ReadBuffer& buffer) {
  return std::make_unique<SoftirqsSource>(roots, buffer);
}

std::vector<MetricDecl> SoftirqsMetrics() { return {kCoreSoftirqs}; }

}  // namespace sonde::collect
