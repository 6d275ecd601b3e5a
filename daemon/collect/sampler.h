// All sources of a step's level, sampled together, as one row per group.
//
// The sampler owns the sources. A group's row holds the values of its sources one after the other;
// its schema changes when a source's series do, and only then is anything allocated. Counters that
// started before the step are given as what was added since they were first read; if one falls (a
// device was reset), it stays where it was and goes on from there.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/collect/counters/perf.h"
#include "daemon/collect/file_reader.h"
#include "daemon/collect/job/tasks.h"
#include "daemon/collect/self.h"
#include "daemon/collect/source.h"
#include "series/schema.h"

namespace sonde::collect {

class Sampler {
 public:
  struct Options {
    int level = 2;
    std::string events;  // as given to --telemetry-events
    Roots roots = {};
    std::string gpus = {};  // the step's, as the launcher names them
  };
  explicit Sampler(const Options& options);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Another source, such as the application's cells; sampled after those that are there.
  void AddSource(std::unique_ptr<Source> source);

  // Reads all sources and renews the rows.
  void Sample(Nanos now);
  // The columns of a group's row and its newest values, valid until the next Sample. A group
  // without series has a schema of size 0; before the first Sample there is none (nullptr).
  const Schema::Ptr& schema(Group group) const;
  std::span<const double> row(Group group) const;

  // The step's tasks. Below level 2 nothing reads them.
  TasksSource& tasks() { return *tasks_; }
  // The tasks' events; nullptr below level 3.
  PerfSource* perf() { return perf_; }
  // To both of them.
  void TaskExited(uint32_t rank, const std::optional<TaskTotals>& totals);
  // The last tick came too late to be taken at its time.
  void CountLateTick() { self_->CountLateTick(); }

  // What the profile's reader must know; each note is given once.
  std::vector<std::string> TakeNotes();
  // In the order they are sampled; for benchmarks and tests.
  const std::vector<std::unique_ptr<Source>>& sources() const { return sources_; }

 private:
  struct Part;  // a source's columns in its group's row
  struct GroupRow {
    Schema::Ptr schema;
    std::vector<double> values;
  };

  void RebuildIfChanged(Group group);
  void Rebuild(Part& part);
  static void Copy(Part& part, double* to);

  ReadBuffer buffer_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Part> parts_;  // one for each source
  GroupRow groups_[kGroups];
  std::unique_ptr<TasksSource> idle_tasks_;  // below level 2
  SelfSource* self_ = nullptr;
  TasksSource* tasks_ = nullptr;
  PerfSource* perf_ = nullptr;
};

}  // namespace sonde::collect
