// The numbers that people ask for first: the report, `sonde ls` and its JSON are made from these. A
// number that was not measured is NaN.
//
// Thread safety: values and functions without state.
#pragma once

#include <string>
#include <vector>

#include "core/time.h"
#include "profiles/model/profile.h"
#include "series/store/store.h"

namespace sonde {

// One node of the step. Counters are totals at its last sample.
struct NodeRow {
  std::string host;
  uint32_t tasks = 0;
  double cpu_seconds = 0;       // of its tasks
  double node_cpu_seconds = 0;  // of all its processors in any mode, idle too: the time available
  double memory_peak = 0;       // bytes, of its tasks together
  double memory_total = 0;      // bytes, of the node
  double memory_limit = 0;      // bytes, the step's there: its control group's or Slurm's, the less
  double network_received = 0;  // bytes, of the node
  double network_sent = 0;
  double disk_read = 0;  // bytes, of the node
  double disk_written = 0;
  double task_read = 0;  // bytes, of its tasks
  double task_written = 0;
  bool lost = false;
  std::string note;
};

// The rows of a profile, in the order of the description's nodes; a host whose daemon was started
// anew has its numbers in the row of the newest one. They are made from the per-node series
// that IsOfNodeRows accepts, of the metrics that HasNodeRows; of thinned series the maxima.
// archive/node_rows.h reads them.
bool HasNodeRows(const Metric& metric);
bool IsOfNodeRows(const Series& series);
std::vector<NodeRow> NodeRowsOf(const std::vector<SeriesData>& data, const JobDescription& job);

// A value and who holds it, in words: "n2", "task 3 on n2"; "" if unknown.
struct Held {
  double value = 0;
  std::string by;
};

struct Summary {
  double duration = 0;        // seconds
  double measured_tasks = 0;  // tasks on nodes that came; NaN: nobody noted which
  double measured = 0;        // seconds of the duration for which these were, in the mean
  double cpu_seconds = 0;     // of the tasks
  double cpu_user = 0;
  double cpu_system = 0;
  double cpu_of_tasks = 0;  // ratio to the measured time of tasks; threads can make it more than 1
  double cpu_of_nodes = 0;  // ratio to the time that the nodes' processors had
  double node_cpus = 0;     // processors of all nodes
  Held least_cpu;           // seconds, of a node or, without rows, a task
  Held most_cpu;
  // Bytes, of the worst node's tasks. Without rows that of its control group without files or, if
  // that is not known either, the worst task; of one of several tasks on a node all ratios to the
  // node's memory, and that memory, are missing.
  Held memory_peak;
  double memory_of_node = 0;    // ratio of that to the node's memory
  double memory_total = 0;      // bytes of that node
  double memory_of_limit = 0;   // ratio to what the step may use there
  double memory_limit = 0;      // bytes: its control group's, allocated or asked for, the least
  double network_received = 0;  // bytes, over all nodes
  double network_sent = 0;
  double disk_read = 0;
  double disk_written = 0;
  double task_read = 0;
  double task_written = 0;
};

// For how many seconds of the step each node of the description was measured, by index: from its
// joining until it left. `of_tasks`: until the last node left, for a task that has ended is known
// to use nothing more; of a lost node, and of one whose daemon was started anew, until then. The
// newest daemon of a host stands for all that the host had, as in the rows. `now` ends a running
// step.
std::vector<double> MeasuredSeconds(const JobDescription& job, Nanos now, bool of_tasks);
// What the job asked for on each node, as Slurm's variables tell; NaN: not known, or all there is.
double AskedMemory(const JobDescription& job);

// Processes in the step's control groups that the kernel killed for want of memory; NaN if that is
// not known.
double OutOfMemoryKills(const Profile& profile);

// If `rows` is empty, extremes come from the footprint. `now` ends a running step.
Summary Summarize(const Profile& profile, const std::vector<NodeRow>& rows, Nanos now);

// The application's own entries of the footprint.
std::vector<const FootprintEntry*> ApplicationEntries(const Profile& profile);

// "n2", "task 3 on n2", "" for nobody.
std::string OwnerName(const Owner& owner, const JobDescription& job);

}  // namespace sonde
