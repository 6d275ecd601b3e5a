// /proc/schedstat: how long each processor ran threads, and how long threads waited for it.
// Documentation/scheduler/sched-stats.rst; since version 15 of the file the last three numbers of a
// processor's line have been these. Kernels without CONFIG_SCHEDSTATS do not have it.
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/os/rows_source.h"

namespace sonde::collect {
namespace {

// The names are node_exporter's.
constexpr MetricDecl kRunning = {"node_schedstat_running_seconds_total",
                                 "seconds",
                                 MetricType::kCounter,
                                 4,
                                 Reduction::kSum,
                                 "Time threads ran on one processor. Tag cpu."};
constexpr MetricDecl kWaiting = {
    "node_schedstat_waiting_seconds_total",
    "seconds",
    MetricType::kCounter,
    4,
    Reduction::kSum,
    "Time threads were ready to run and waited for one processor, all together. Tag cpu."};
constexpr MetricDecl kTimeslices = {"node_schedstat_timeslices_total",
                                    "1",
                                    MetricType::kCounter,
                                    4,
                                    Reduction::kSum,
                                    "Times a thread began to run on one processor. "
                                    "Tag cpu."};
constexpr double kNano = 1e-9;
constexpr int kBefore = 6;  // numbers of a line that are not read

// cpu0 498494191 0 3533438552 2553969831 3853684107 2465731542 2045936778163039 343796328169361 47
class SchedstatSource final : public RowsSource {
 public:
  SchedstatSource(const Roots& roots, ReadBuffer& buffer)
      : RowsSource(roots.proc + "/schedstat", Shape::kRecords, buffer) {}

  std::string_view name() const override { return "schedstat"; }

 private:
  std::string_view TakeName(Cursor& line) override {
    if (!line.Skip("cpu")) return {};
    return line.Word();
  }
  bool DeclareRow(std::string_view name, Cursor /*line*/) override {
    Cursor number(name);
    uint64_t id = 0;
    if (!number.Unsigned(id) || !number.AtEnd()) return true;
    const std::string cpu = std::to_string(id);
    for (const MetricDecl& decl : {kRunning, kWaiting, kTimeslices}) {
      AddSeries(decl, {{"cpu", cpu}});
    }
    return true;
  }
  void ReadRow(Cursor& line, std::span<double> values) override {
    if (values.empty() || !line.SkipWords(kBefore)) return;
    values[0] = line.Number() * kNano;
    values[1] = line.Number() * kNano;
    values[2] = line.Number();
  }
};

}  // namespace

std::unique_ptr<FileSource> MakeSchedstatSource(const Roots& roots, ReadBuffer& buffer) {
  return std::make_unique<SchedstatSource>(roots, buffer);
}

std::vector<MetricDecl> SchedstatMetrics() { return {kRunning, kWaiting, kTimeslices}; }

}  // namespace sonde::collect
