// /proc/net/softnet_stat: how the processors keep up with packets received. A line of hexadecimal
// numbers for each processor that is online; softnet_seq_show in net/core/net-procfs.c.
#include <array>
#include <charconv>
#include <iterator>

#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/os/rows_source.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl Sum(std::string_view name, std::string_view help) {
  return {name, "1", MetricType::kCounter, 2, Reduction::kSum, help};
}
constexpr MetricDecl Core(std::string_view name, std::string_view help) {
  return {name, "1", MetricType::kCounter, 4, Reduction::kSum, help};
}

struct SoftnetField {
  size_t index;  // of the number in its line
  MetricDecl sum;
  MetricDecl core;
};
constexpr SoftnetField kSoftnetFields[] = {
    {0, Sum("node_softnet_processed_total", "Packets received that processors worked on."),
     Core("node_softnet_core_processed_total",
          "Packets received that one processor worked on. Tag cpu.")},
    {1,
     Sum("node_softnet_dropped_total",
         "Packets received and dropped because a processor's queue was full."),
     Core("node_softnet_core_dropped_total",
          "Packets received and dropped because one processor's queue was full. Tag cpu.")},
    {2,
     Sum("node_softnet_times_squeezed_total",
         "Times a processor stopped working on packets, with some left, to let programs run."),
     Core("node_softnet_core_times_squeezed_total",
          "Times one processor stopped working on packets, with some left. Tag cpu.")},
    {9,
     Sum("node_softnet_received_rps_total",
         "Times a processor was woken to work on packets for another (RPS)."),
     Core("node_softnet_core_received_rps_total",
          "Times one processor was woken to work on packets for another (RPS). Tag cpu.")},
    {10,
     Sum("node_softnet_flow_limit_total",
         "Packets received and dropped so that one flow does not fill a processor's queue."),
     Core("node_softnet_core_flow_limit_total",
          "Packets received and dropped so that one flow does not fill this processor's queue. "
          "Tag cpu.")},
};
constexpr size_t kColumns = std::size(kSoftnetFields);
constexpr size_t kCpuIndex = 12;  // since 5.10: of the processor; before, the line's number
constexpr size_t kNumbers = kCpuIndex + 1;

using Numbers = std::array<double, kNumbers>;

// What is not there is missing.
Numbers ReadNumbers(Cursor& line) {
  Numbers numbers;
  numbers.fill(kMissing);
  for (double& number : numbers) {
    const std::string_view word = line.Word();
    const char* const end = word.data() + word.size();
    uint64_t value = 0;
    const auto [at, error] = std::from_chars(word.data(), end, value, 16);
    if (word.empty() || error != std::errc() || at != end) break;
    number = static_cast<double>(value);
  }
  return numbers;
}

class SoftnetSource final : public RowsSource {
 public:
  SoftnetSource(const Roots& roots, int level, ReadBuffer& buffer)
      : RowsSource(roots.proc + "/net/softnet_stat", Shape::kRecords, buffer),
        per_core_(level >= kSoftnetFields[0].core.level) {}

  std::string_view name() const override { return "softnet"; }

 private:
  void DeclareHead() override {
    unnamed_ = 0;
    for (const SoftnetField& field : kSoftnetFields) AddSeries(field.sum);
  }
  // Lines have no names: those with a processor's number have that, others are counted.
  std::string_view TakeName(Cursor& line) override {
    const std::string_view text = line.Rest();
    size_t word = 0;
    for (Cursor words(text); !words.AtEnd(); ++word) {
      const std::string_view number = words.Word();
      if (word == kCpuIndex) return number;
    }
    return word > 2 ? "-" : "";
  }
  bool DeclareRow(std::string_view name, Cursor line) override {
    if (!per_core_) return true;
    const double number = ReadNumbers(line)[kCpuIndex];
    const bool named = name != "-";
    if (named && !(number >= 0 && number < kMaxCpu)) return true;
    const std::string cpu = std::to_string(named ? static_cast<int>(number) : unnamed_++);
    for (const SoftnetField& field : kSoftnetFields) AddSeries(field.core, {{"cpu", cpu}});
    return true;
  }
  void Begin() override { sums_.fill(0); }
  void ReadRow(Cursor& line, std::span<double> values) override {
    const Numbers numbers = ReadNumbers(line);
    for (size_t i = 0; i < kColumns; ++i) {
      const double value = numbers[kSoftnetFields[i].index];
      sums_[i] += value;
      if (!values.empty()) values[i] = value;
    }
  }
  // Half a sum would look like a counter that fell, and then rose.
  void Finish(bool whole) override {
    for (size_t i = 0; i < kColumns; ++i) values_[i] = whole ? sums_[i] : kMissing;
  }

  static constexpr int kMaxCpu = 65536;

  const bool per_core_;
  int unnamed_ = 0;
  std::array<double, kColumns> sums_{};
};

}  // namespace

std::unique_ptr<FileSource> MakeSoftnetSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<SoftnetSource>(roots, level, buffer);
}

std::vector<MetricDecl> SoftnetMetrics() {
  std::vector<MetricDecl> metrics;
  for (const SoftnetField& field : kSoftnetFields) metrics.push_back(field.sum);
  for (const SoftnetField& field : kSoftnetFields) metrics.push_back(field.core);
  return metrics;
}

}  // namespace sonde::collect
