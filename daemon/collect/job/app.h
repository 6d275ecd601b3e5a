// The application's own metrics: group kApp.
//
// Owns the socket that SONDE_SOCKET names, and the mappings of the processes that have attached to
// it (libclient/layout.h). Sampling takes everything that is there: it accepts, reads hellos, finds
// new metrics, copies the values and notices who has gone. A process may therefore attach, set a
// metric and exit between two ticks: its memory waits in the socket's queue, and the last Sample
// before the daemon ends finds it. Nothing has to be watched in between; where ticks are far apart,
// fd() turns readable when Poll() has something to do.
//
// Every series gets the tag `task`, the rank of its process. Processes of one rank share a series:
// their counters add up, the sums of those that have ended stay in, and of their gauges the one
// that changed last counts. Series stay until the end of the step with their last values.
//
// Processes are not trusted. One that breaks the layout is dropped with one log line and its values
// stay as they were last read; the limits below hold for all processes together.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "daemon/collect/fd.h"
#include "daemon/collect/job/app_segment.h"
#include "daemon/collect/source.h"

namespace sonde::collect {

class AppSource final : public Source {
 public:
  struct Options {
    std::string socket;  // abstract, without the leading zero byte
    int listener = -1;   // that socket, if it listens already; owned from Open on
    uint32_t uid = 0;    // whose processes may attach
    int level = 1;       // metrics above it are left out
    Nanos period = kDefaultPeriod;
    size_t max_processes = 512;        // attached at a time
    size_t max_metrics = 65536;        // registered at a time, and series
    size_t max_text = 16u << 20;       // bytes of the series' names, units, helps and tags
    Nanos hello_within = 5 * kSecond;  // of attaching
  };

  // What became of those that came, for tests and the source of Sonde's own metrics.
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

  int fd() const { return epoll_.get(); }
  void Poll(Nanos now);

  size_t processes() const { return processes_.size(); }
  const Counts& counts() const { return counts_; }

 private:
  struct Link;
  struct Process;

  explicit AppSource(Options options);
  Status Listen();
  Status Bind();

  void AcceptAll(Nanos now);
  void Admit(Fd connection, Nanos now);
  void Receive(Process& process);
  void OnPacket(Process& process, const char* packet, size_t size, Fd memory);
  Status Greet(Process& process, std::string_view packet, const Fd& memory);
  void SendWelcome(const Process& process);
  void Drop(Process& process, const Status& why);
  void Refuse(const std::string& why);
  void DropSilent(Nanos now);

  void ReadProcess(Process& process, Nanos now);
  Status FindNew(Process& process);
  void Enlist(Process& process, AppMetric metric);
  std::optional<uint32_t> Column(Series series);
  void LeaveOut(const std::string& why);
  void ReadValues(Process& process, Nanos now);
  void AddUp();
  void Reap(Nanos now);

  Options options_;
  Fd listener_;
  Fd epoll_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::unordered_map<std::string, uint32_t> columns_;  // by SeriesName
  std::vector<double> ended_;                          // by column: what ended processes counted
  std::vector<client::Count> totals_;                  // of one process, by slot
  std::vector<AppMetric> found_;
  size_t links_ = 0;
  size_t text_ = 0;
  Counts counts_;
  int complaints_ = 0;
  bool said_refused_ = false;
  bool said_left_out_ = false;
};

}  // namespace sonde::collect
