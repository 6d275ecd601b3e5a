// The application's own metrics: group kApp.
//
// Sampling takes everything that is there: it accepts processes at the socket that SONDE_SOCKET
// names (door.h), finds new metrics, copies the values and notices which processes have gone. A
// process may therefore attach, set a metric and exit between two ticks: its memory waits in the
// socket's queue, and the last Sample before the daemon ends finds it. Nothing has to be watched in
// between; where ticks are far apart, fd() turns readable when Poll() has something to do.
//
// Every series gets the tag `task`, the rank of its process. Processes of one rank share a series:
// their counters add up, the sums of those that have ended stay in, and of their gauges the one
// that changed last counts. Histograms are recorded as several series (histograms.h). Series
// stay until the end of the step with their last values.
//
// Beside values there are moments, which TakeMoments() hands over, and values of the past, which
// TakePast() does.
//
// Processes are not trusted. One that breaks the layout is dropped with one log line and its values
// stay as they were last read; the limits below hold for all processes together.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "daemon/collect/app/annotations.h"
#include "daemon/collect/app/door.h"
#include "daemon/collect/app/function_names.h"
#include "daemon/collect/app/histograms.h"
#include "daemon/collect/app/moments.h"
#include "daemon/collect/app/past.h"
#include "daemon/collect/app/process.h"
#include "daemon/collect/app/segment.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

class AppSource final : public Source {
 public:
  struct Options : AppDoor::Options {  // metrics above its level are left out
    size_t max_metrics = 65536;        // registered at a time, and series
    size_t max_text = 16u << 20;       // bytes of the series' names, units, helps and tags
    size_t max_histograms = 8192;      // registered at a time; each takes up to 20 KiB
  };

  // What became of the processes that came, for tests and the source of Sonde's own metrics.
  struct Counts {
    uint64_t attached = 0;
    uint64_t refused = 0;   // another user's, too many, or no hello
    uint64_t dropped = 0;   // broke the layout
    uint64_t left_out = 0;  // metrics: a limit or a conflict
  };

  static Result<std::unique_ptr<AppSource>> Open(Options options);
  ~AppSource() override;

  std::string_view name() const override { return "app"; }
  Group group() const override { return Group::kApp; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override;

  // What was told and observed since the last call, up to the last Sample; each once.
  Moments TakeMoments();
  // The same of values of the past; their columns are those of series().
  std::vector<PastValue> TakePast() { return past_.Take(); }

  int fd() const { return door_.fd(); }
  void Poll(Nanos now);

  size_t processes() const { return door_.processes().size(); }
  Counts counts() const;

 private:
  explicit AppSource(Options options);

  void ReadProcess(AppProcess& process, Nanos now);
  Status FindNew(AppProcess& process);
  void Enlist(AppProcess& process, AppMetric metric);
  Status EnlistHistogram(AppProcess& process, AppMetric metric);
  void ReadValues(AppProcess& process, Nanos now);
  Status ReadHistograms(AppProcess& process);
  void ReadMoments(AppProcess& process, Nanos now);
  Status ReadPast(AppProcess& process, Nanos now);
  Status KeepPast(const PastValue& value);
  bool CountPast(uint32_t column);
  void Reap(Nanos now);

  std::optional<uint32_t> Column(Series series);
  std::optional<uint32_t> AddColumn(std::string name, Series series, bool derived);
  std::optional<uint32_t> HistogramOf(const Series& histogram);
  void LeaveOut(const std::string& why);
  void SayMangled();
  void AddUp();

  Options options_;
  AppDoor door_;
  AppHistograms histograms_;
  AppAnnotations annotations_;
  AppPast past_;
  FunctionNames function_names_;
  std::unordered_map<std::string, uint32_t> columns_;  // by SeriesName
  std::vector<double> ended_;                          // by column: what ended processes counted
  std::vector<bool> derived_;                          // by column: part of a histogram
  std::vector<client::Count> totals_;                  // of one process, by slot
  std::vector<AppMetric> found_;
  size_t links_ = 0;
  size_t process_histograms_ = 0;
  size_t text_ = 0;
  Nanos before_ = 0;  // the last sample, or the first time that is known
  uint64_t left_out_ = 0;
  bool said_left_out_ = false;
  bool said_past_lost_ = false;
};

}  // namespace sonde::collect
