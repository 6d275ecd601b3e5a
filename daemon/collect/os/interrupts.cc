// /proc/interrupts: which devices, and which of the kernel's own calls from processor to processor,
// interrupt programs. Each kind is the sum over all processors.
//
// Most lines are of queues and devices that never interrupt: a line counts once it is above 0. The
// file has a number for each processor in each line; where it is so large that writing it takes the
// kernel milliseconds, it is left out.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/os/rows_source.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl kInterrupts = {
    "node_interrupts_total",
    "1",
    MetricType::kCounter,
    4,
    Reduction::kSum,
    "Interrupts of one kind on all processors, sampled every 10 s. Tags type (a number, or the "
    "kernel's name: LOC timers, RES and CAL calls by other processors, TLB shootdowns) and device, "
    "where there is one."};

constexpr size_t kMaxSize = size_t{1} << 20;

//            CPU0       CPU1
//  24:          1          0  IO-APIC   5-edge      ACPI:Ged
// LOC:    6469382    5462942   Local timer interrupts
// ERR:          0
class InterruptsSource final : public RowsSource {
 public:
  InterruptsSource(const Roots& roots, ReadBuffer& buffer)
      : RowsSource(roots.proc + "/interrupts", Shape::kRecords, buffer) {}

  std::string_view name() const override { return "interrupts"; }

 private:
  bool TakeHead(std::string_view& text) override {
    if (text.size() > kMaxSize) {
      notes_.push_back(fmt::format(
          "interrupts are not recorded: /proc/interrupts has {} bytes here", text.size()));
      StopReading();
      text = {};
      return true;
    }
    Cursor lines(text);
    const bool same = head_.Take(lines.Line());
    text = lines.Rest();
    return same;
  }
  std::string_view TakeName(Cursor& line) override {
    const std::string_view word = line.Word();
    return word.size() > 1 && word.ends_with(':') ? word.substr(0, word.size() - 1) : "";
  }
  bool DeclareRow(std::string_view name, Cursor line) override {
    if (!(Sum(line) > 0)) return false;
    if (!CheckTag("type", name).ok()) return true;
    Tags tags = {{"type", std::string(name)}};
    const std::string_view device = Device(name, line);
    if (CheckTag("device", device).ok()) tags.Set("device", device);
    // Of a name that comes twice the first counts.
    const bool known = std::any_of(series_.begin(), series_.end(),
                                   [&](const Series& s) { return s.tags == tags; });
    if (!known) AddSeries(kInterrupts, std::move(tags));
    return true;
  }
  bool NeedsOthers(Cursor line, size_t /*series*/) const override { return Sum(line) > 0; }
  void ReadRow(Cursor& line, std::span<double> values) override {
    if (!values.empty()) values[0] = Sum(line);
  }

  // Of as many numbers as there are processors; some lines have but one.
  double Sum(Cursor& line) const {
    double sum = kMissing;
    for (size_t i = 0; i < head_.cpus().size(); ++i) {
      const double value = line.Number();
      if (std::isnan(value)) return sum;
      sum = i == 0 ? value : sum + value;
    }
    return sum;
  }
  // The last word is the device's, or the last of the devices', unless there is none.
  static std::string_view Device(std::string_view type, Cursor line) {
    if (type.empty() || type.front() < '0' || type.front() > '9') return {};
    std::string_view last;
    for (std::string_view word = line.Word(); !word.empty(); word = line.Word()) last = word;
    for (const std::string_view trigger : {"edge", "level", "fasteoi", "Edge", "Level"}) {
      if (last.ends_with(trigger)) return {};
    }
    return last;
  }

  CpuHead head_;
};

}  // namespace

std::unique_ptr<FileSource> MakeInterruptsSource(const Roots& roots, ReadBuffer& buffer) {
  return std::make_unique<InterruptsSource>(roots, buffer);
}

std::vector<MetricDecl> InterruptsMetrics() { return {kInterrupts}; }

}  // namespace sonde::collect
