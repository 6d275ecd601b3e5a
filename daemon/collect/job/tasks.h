// The step's own tasks: processor time, memory, I/O and faults of each, its descendants included.
//
// The launcher says which process is which task. Descendants are found through
// /proc/PID/task/TID/children: those of main threads at every tick before which the node
// created a process or a thread, those of the other threads every 10 s. A descendant that leaves
// the task's tree between two ticks, unseen, is not counted unless an ancestor in the tree waits
// for it.
//
// Counters never fall. The kernel adds what a child has used to its parent when the parent waits
// for it; what a process leaves to nobody (the task itself, orphans, children of a parent that
// ignores SIGCHLD) is kept here, as it was when it was last read. A task that ended keeps its
// counters and its peak; what it has now (memory, threads) is missing from then on.
//
// A process is read through its directory's descriptor, opened once, which never shows another
// process that got the same pid. Each takes four descriptors.
//
// When a task ends, the process that waited for it tells what it used in all. Nobody tells how many
// bytes and calls it read and wrote: these counters are those of the last tick before.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/unique_fd.h"
#include "daemon/collect/job/task_files.h"
#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

// What a task and the descendants it waited for had used when it ended, as wait4() gives it.
struct TaskTotals {
  double user_seconds = 0;
  double system_seconds = 0;
  double peak_bytes = 0;  // the largest of its processes
  double minor_faults = 0;
  double major_faults = 0;
  // From and to storage; kMissing from a launcher that does not tell.
  double read_bytes = kMissing;
  double written_bytes = kMissing;
};

// A process of a task.
struct TaskProcess {
  pid_t pid = 0;
  uint64_t start = 0;  // with the pid it is one process for ever
  ProcessName name{};
};

class TasksSource final : public Source {
 public:
  // `buffer` is shared with other sources and outlives this one, and so does `forks`: how many
  // processes and threads the node had ever created shortly before Sample is called, NaN if that is
  // not known. While none is created, no children are looked for.
  TasksSource(const Roots& roots, ReadBuffer& buffer, const double* forks = nullptr);
  ~TasksSource() override;

  // A task starts; `rank` must be new. Nothing is read before the next Sample.
  Status AddTask(uint32_t rank, pid_t pid);
  // The task's main process has ended. `totals`: what it used in all, if whoever waited for it
  // knows: the last tick is up to a period old. Unknown ranks are passed over.
  void TaskExited(uint32_t rank, const std::optional<TaskTotals>& totals);

  // For sources that look at the same processes: how many tasks were announced, and the main
  // process of one of them; 0 if it has ended, so that nobody mistakes another process with the
  // same pid for it.
  size_t task_count() const;
  pid_t MainProcess(size_t task) const;
  // Adds the processes of the last sample that had not ended.
  void ListProcesses(std::vector<TaskProcess>& to) const;
  // The task that a process belongs to, by the last Sample.
  std::optional<uint32_t> RankOf(pid_t pid) const;

  std::string_view name() const override { return "tasks"; }
  Group group() const override { return Group::kTask; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override;

 private:
  struct Process;
  struct Task;

  bool MayHaveNewChildren();
  bool ReadProcess(Process& process);
  void ReadIo(Process& process);
  // Opens /proc/`pid`; `parent` is nullptr for the task's main process.
  bool AddProcess(Task& task, pid_t pid, const Process* parent, Nanos now);
  void NoteOpenFailure(pid_t pid, int error);
  void Start(Task& task, Nanos now);
  bool DropEnded(Task& task);
  void KeepWhatIsLeft(Task& task);
  void FindChildren(Task& task, bool look, Nanos now);
  void ReadChildren(Task& task, size_t parent, Nanos now);
  void AddChildren(Task& task, size_t parent, std::string_view children, Nanos now);
  void LookClosely(Task& task, size_t index, Nanos now);
  void TakeTotals(Task& task, const TaskTotals& totals) const;
  void WriteValues(Task& task, double* values);

  const std::string proc_;
  ReadBuffer& buffer_;
  const double* const forks_;
  double forks_before_ = kMissing;
  bool forks_rise_ = false;  // the number is the kernel's, and not what a container is told
  bool look_again_ = true;   // children may be there that were not found
  const double seconds_per_tick_;
  const double page_size_;
  size_t stat_size_ = 1024;
  size_t small_size_ = 512;
  size_t status_size_ = 4096;
  size_t process_count_ = 0;
  bool noted_limit_ = false;
  bool noted_descriptors_ = false;
  bool noted_children_ = false;
  std::vector<Task> tasks_;
};

std::vector<MetricDecl> TasksMetrics();

}  // namespace sonde::collect
