// All sources of a step's level, sampled together, as one row per group.
//
// The sampler owns the sources. A group's row holds the values of its sources one after the other;
// its schema changes when a source's series do, and only then is anything allocated. Counters that
// started before the step are given as what was added since they were first read; if one falls (a
// device was reset), it stays where it was and goes on from there.
//
// Sources that are dear to read are read at slow ticks only (IsSlowTick), and whenever all are; at
// the ticks between, their values are missing.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/collect/counters/handover.h"
#include "daemon/collect/counters/machine_source.h"
#include "daemon/collect/counters/perf.h"
#include "daemon/collect/job/tasks.h"
#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/source.h"
#include "daemon/collect/self.h"
#include "series/block/schema.h"

namespace sonde::collect {

class Sampler {
 public:
  struct Options {
    int level = 2;
    std::string events;      // as given to --telemetry-events
    std::string event_sets;  // directory of the site's own event sets; "": none
    Roots roots = {};
    Nanos period = kDefaultPeriod;  // of the ticks
    std::string gpus = {};          // the step's, as the launcher names them
    // Types of filesystems to be asked for their space although the daemon may hang in them; see
    // filesystems/mounted.h.
    std::string ask_filesystems = {};
    uint64_t memory = 0;  // that Slurm has allocated, bytes; 0: the launcher does not say
  };
  explicit Sampler(const Options& options);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Another source, such as the application's cells; sampled after those that are there.
  void AddSource(std::unique_ptr<Source> source);

  // Reads the sources and renews the rows. At a tick, dear sources that are not due are passed
  // over, unless they were never read.
  enum class Extent : unsigned char { kTick, kAll };
  void Sample(Nanos now, Extent extent = Extent::kTick);
  // The columns of a group's row and its newest values, valid until the next Sample. A group
  // without series has a schema of size 0; before the first Sample there is none (nullptr).
  const Schema::Ptr& schema(Group group) const;
  std::span<const double> row(Group group) const;

  // The step's tasks. Below level 2 nothing reads them.
  TasksSource& tasks() { return *tasks_; }
  // The tasks' events; nullptr below level 3.
  PerfSource* perf() { return perf_; }
  // The counters beside the processors; nullptr below level 3.
  MachineSource* machine() { return machine_; }
  // Leaves the processor's counters to others until told otherwise.
  void PauseCounters(bool paused) {
    if (handover_ != nullptr) handover_->SetPaused(paused);
  }
  // To the task source and the perf source.
  void TaskExited(uint32_t rank, const std::optional<TaskTotals>& totals);
  // A tick was taken long after its time, or not at all.
  void CountLateTick() { self_->CountLateTick(); }
  void CountSkippedTicks(uint64_t ticks) { self_->CountSkippedTicks(ticks); }

  // What the daemon's links and stores have to tell, for the samples that follow.
  void SetDaemon(const DaemonState& state) { self_->SetDaemon(state); }

  // What the profile's reader must know; each note is given once.
  std::vector<std::string> TakeNotes();
  // In the order they are sampled; for benchmarks and tests.
  const std::vector<std::unique_ptr<Source>>& sources() const { return sources_; }
  // Whether that source is read at slow ticks only.
  bool IsDear(size_t source) const;

 private:
  struct Part;  // a source's columns in its group's row
  struct GroupRow {
    Schema::Ptr schema;
    std::vector<double> values;  // of all series; those at the end may have no room in the schema
    bool said_left_out = false;
  };

  enum class Price : unsigned char { kCheap, kDear };
  void AddSource(std::unique_ptr<Source> source, Price price);
  void AddSystemSources(const Options& options);
  void Read(Part& part, Source& source, Nanos now, Extent extent);
  void RebuildIfChanged(Group group);
  void Rebuild(Part& part);
  static void Copy(Part& part, double* to);
  static void FromStart(Part& part, std::span<const double> values, double* to);

  const Nanos period_;
  const bool times_sources_;
  ReadBuffer buffer_;
  double forks_ = kMissing;  // processes and threads the node ever created, at this tick
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Part> parts_;  // one for each source
  GroupRow groups_[kGroups];
  std::unique_ptr<TasksSource> idle_tasks_;  // below level 2
  SelfSource* self_ = nullptr;
  TasksSource* tasks_ = nullptr;
  PerfSource* perf_ = nullptr;
  MachineSource* machine_ = nullptr;
  const Source* cpu_ = nullptr;
  std::unique_ptr<Handover> handover_;
  std::vector<std::string> notes_;  // of its own
};

}  // namespace sonde::collect
