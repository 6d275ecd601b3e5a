#include "daemon/collect/job/tasks.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "daemon/collect/job/task_metrics.h"

namespace sonde::collect {
namespace {

constexpr size_t kMaxProcesses = 4096;  // of all tasks; more is no compute job
constexpr Nanos kCloseLook = 10 * kSecond;
// Processes that come and go while they are read are read again, but not for ever.
constexpr int kMaxPasses = 8;
constexpr uint32_t kMaxIoWait = 64;  // ticks

// What the processes of a task have at a tick.
struct Present {
  uint64_t resident_pages = 0;
  uint64_t virtual_bytes = 0;
  uint64_t threads = 0;
  int processes = 0;
  int running = 0;
  int blocked = 0;
  int stopped = 0;
  int zombies = 0;

  void Count(const TaskStat& stat) {
    if (stat.state == 'Z') {
      ++zombies;
      return;
    }
    resident_pages += stat.resident_pages;
    virtual_bytes += stat.virtual_bytes;
    threads += stat.threads;
    ++processes;
    running += stat.state == 'R' ? 1 : 0;
    blocked += stat.state == 'D' ? 1 : 0;
    stopped += stat.state == 'T' || stat.state == 't' ? 1 : 0;
  }
};

int OpenIn(int directory, const char* name, int flags = 0) {
  return openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
}

}  // namespace

struct TasksSource::Process {
  pid_t pid = 0;
  UniqueFd directory;
  UniqueFd stat_file;
  UniqueFd io_file;
  UniqueFd children_file;
  TaskStat stat;             // of the last reading; stat.counters holds the I/O counters too
  double waited_before = 0;  // stat.waited_minor_faults at the last tick
  TaskCounters left{};       // of descendants that ended since
  bool ended = false;
  bool io_known = false;
  uint32_t io_wait = 0;  // ticks until io is tried again
  uint32_t io_next_wait = 1;
  Nanos close_look_at = 0;
  double faults_looked_at = 0;
};

struct TasksSource::Task {
  uint32_t rank = 0;
  pid_t pid = 0;
  bool started = false;
  bool ended = false;
  bool io_known = false;
  bool storage_known = false;  // read and written bytes, which also come with its end
  double peak = kMissing;
  TaskCounters kept{};             // left behind by processes that handed it to nobody
  TaskCounters shown{};            // the last values given out
  std::vector<Process> processes;  // a parent before its children
};

TasksSource::TasksSource(const Roots& roots, ReadBuffer& buffer, const double* forks)
    : proc_(roots.proc),
      buffer_(buffer),
      forks_(forks),
      seconds_per_tick_(1.0 / static_cast<double>(sysconf(_SC_CLK_TCK))),
      page_size_(static_cast<double>(sysconf(_SC_PAGESIZE))) {}

TasksSource::~TasksSource() = default;

Status TasksSource::AddTask(uint32_t rank, pid_t pid) {
  if (pid <= 0) return {Code::kInvalid, fmt::format("task {}: {} is no pid", rank, pid)};
  for (const Task& task : tasks_) {
    if (task.rank == rank) {
      return {Code::kInvalid, fmt::format("task {} was announced twice", rank)};
    }
  }
  Task& task = tasks_.emplace_back();
  task.rank = rank;
  task.pid = pid;
  const auto add = [&](const MetricDecl& decl, const char* mode = nullptr) {
    Series& s = series_.emplace_back();
    s.metric = Metric(decl);
    s.tags.Set("task", std::to_string(rank));
    if (mode != nullptr) s.tags.Set("mode", mode);
    values_.push_back(kMissing);
  };
  add(task_metrics::kCpu, "user");
  add(task_metrics::kCpu, "system");
  for (const task_metrics::CounterColumn& column : task_metrics::kCounters) add(column.decl);
  for (const MetricDecl* decl : task_metrics::kGauges) add(*decl);
  ++generation_;
  return {};
}

void TasksSource::TaskExited(uint32_t rank, const std::optional<TaskTotals>& totals) {
  for (Task& task : tasks_) {
    if (task.rank != rank) continue;
    if (totals) {
      TakeTotals(task, *totals);
    } else if (task.started && task.ended && std::isnan(task.peak)) {
      notes_.push_back(fmt::format("task {} is not counted: it was over before it was seen", rank));
    }
    if (!task.started) task.ended = true;
    for (Process& process : task.processes) {
      if (process.pid == task.pid) process.ended = true;
    }
  }
}

size_t TasksSource::task_count() const { return tasks_.size(); }

pid_t TasksSource::MainProcess(size_t task) const {
  const Task& wanted = tasks_[task];
  if (wanted.ended) return 0;
  if (!wanted.started) return wanted.pid;
  const bool runs = std::any_of(
      wanted.processes.begin(), wanted.processes.end(),
      [&](const Process& process) { return process.pid == wanted.pid && !process.ended; });
  return runs ? wanted.pid : 0;
}

std::optional<uint32_t> TasksSource::RankOf(pid_t pid) const {
  for (const Task& task : tasks_) {
    for (const Process& process : task.processes) {
      if (process.pid == pid && !process.ended) return task.rank;
    }
  }
  return std::nullopt;
}

void TasksSource::ListProcesses(std::vector<TaskProcess>& to) const {
  for (const Task& task : tasks_) {
    for (const Process& process : task.processes) {
      if (process.ended || process.stat.state == 'Z') continue;
      to.push_back({process.pid, process.stat.start, process.stat.name});
    }
  }
}

// The kernel counts a new process in the moment in which it becomes its parent's child, so
// every child that came before the number was read is in the number. Without a fork, children
// only get another parent when theirs, or the thread that made them, ends: see DropEnded and
// ReadProcess.
bool TasksSource::MayHaveNewChildren() {
  const double forks = forks_ == nullptr ? kMissing : *forks_;
  if (forks > forks_before_) forks_rise_ = true;
  const bool same = forks == std::exchange(forks_before_, forks);
  return std::exchange(look_again_, false) || !same || !forks_rise_;
}

void TasksSource::Sample(Nanos now) {
  double* values = values_.data();
  bool look = MayHaveNewChildren();
  for (Task& task : tasks_) {
    if (!task.started && !task.ended) {
      Start(task, now);
      look_again_ = true;
    }
    if (!task.ended) {
      for (int pass = 0; pass < kMaxPasses && DropEnded(task); ++pass) look_again_ = true;
      KeepWhatIsLeft(task);
      look = look || look_again_;
      FindChildren(task, look, now);
      task.ended = task.processes.empty();
    }
    WriteValues(task, values);
    values += task_metrics::kColumns;
  }
}

void TasksSource::Start(Task& task, Nanos now) {
  task.started = true;
  if (!AddProcess(task, task.pid, nullptr, now)) task.ended = true;
}

bool TasksSource::AddProcess(Task& task, pid_t pid, const Process* parent, Nanos now) {
  if (process_count_ == kMaxProcesses) {
    if (!std::exchange(noted_limit_, true)) {
      notes_.push_back(fmt::format(
          "more than {} processes on this node; those that started later are not counted",
          kMaxProcesses));
    }
    return false;
  }
  Process process;
  process.pid = pid;
  process.directory =
      UniqueFd(OpenIn(AT_FDCWD, fmt::format("{}/{}", proc_, pid).c_str(), O_DIRECTORY));
  if (process.directory) process.stat_file = UniqueFd(OpenIn(process.directory.get(), "stat"));
  if (!process.stat_file) {
    NoteOpenFailure(pid, parent == nullptr || errno == EMFILE || errno == ENFILE ? errno : 0);
    return false;
  }
  process.children_file =
      UniqueFd(OpenIn(process.directory.get(), fmt::format("task/{}/children", pid).c_str()));
  if (!ReadProcess(process)) return false;
  // The pid may have gone to another process since it was listed.
  if (parent != nullptr &&
      (process.stat.parent != parent->pid || process.stat.start < parent->stat.start)) {
    return false;
  }
  process.waited_before = process.stat.waited_minor_faults;
  process.close_look_at = now + kSecond;
  task.processes.push_back(std::move(process));
  ++process_count_;
  return true;
}

void TasksSource::NoteOpenFailure(pid_t pid, int error) {
  // One that is over already: its totals come with its end.
  if (error == 0 || error == ENOENT || error == ESRCH) return;
  const bool descriptors = error == EMFILE || error == ENFILE;
  if (descriptors && std::exchange(noted_descriptors_, true)) return;
  notes_.push_back(fmt::format("process {} is not counted: open {}/{}: {}{}", pid, proc_, pid,
                               std::strerror(error),
                               descriptors ? "; raise the limit of open files" : ""));
}

// Reads stat and io. False once the process is gone; text that makes no sense changes nothing.
bool TasksSource::ReadProcess(Process& process) {
  int error = 0;
  const std::string_view text =
      ReadText(process.stat_file.get(), Shape::kWhole, stat_size_, buffer_, error);
  if (text.empty()) return false;
  TaskStat stat;
  if (!ParseTaskStat(text, stat)) return process.stat.start != 0;
  if (process.stat.start != 0 && stat.start != process.stat.start) return false;
  std::copy(process.stat.counters.begin() + kFirstIoCounter, process.stat.counters.end(),
            stat.counters.begin() + kFirstIoCounter);
  if (stat.threads != process.stat.threads) look_again_ = true;
  process.stat = stat;
  ReadIo(process);
  return true;
}

// A program that changed its user, or has not yet become the job's, does not let its io be read;
// it may later.
void TasksSource::ReadIo(Process& process) {
  if (!process.io_file) {
    if (process.io_wait > 0) {
      --process.io_wait;
      return;
    }
    process.io_file = UniqueFd(OpenIn(process.directory.get(), "io"));
    if (!process.io_file) {
      process.io_wait = process.io_next_wait;
      process.io_next_wait = std::min(2 * process.io_next_wait, kMaxIoWait);
      return;
    }
  }
  int error = 0;
  const std::string_view text =
      ReadText(process.io_file.get(), Shape::kWhole, small_size_, buffer_, error);
  if (ParseTaskIo(text, process.stat.counters)) process.io_known = true;
}

// Reads all processes, parents first, and marks those that ended. True if any had ended: parents
// may have been read before they waited for them, so all must be read once more.
bool TasksSource::DropEnded(Task& task) {
  bool any = false;
  for (Process& process : task.processes) {
    if (process.ended && !process.stat_file) continue;
    if (!process.ended && ReadProcess(process)) continue;
    process.ended = true;
    process.stat_file.Reset();
    any = true;
  }
  return any;
}

// What ended processes had used is in the counters of the nearest ancestor that is still there, if
// it waited for them. Minor faults tell which share of it is: no process goes without any. The
// other share is kept here.
void TasksSource::KeepWhatIsLeft(Task& task) {
  const auto find = [&](pid_t pid) {
    return std::find_if(task.processes.begin(), task.processes.end(),
                        [&](const Process& process) { return process.pid == pid; });
  };
  const auto add = [](TaskCounters& to, const TaskCounters& what, double share) {
    for (size_t i = 0; i < kTaskCounters; ++i) to[i] += share * what[i];
  };
  for (const Process& process : task.processes) {
    if (!process.ended) continue;
    task.io_known = task.io_known || process.io_known;
    auto heir = find(process.stat.parent);
    for (size_t depth = 0; heir != task.processes.end() && heir->ended; ++depth) {
      heir = depth < task.processes.size() ? find(heir->stat.parent) : task.processes.end();
    }
    add(heir == task.processes.end() ? task.kept : heir->left, process.stat.counters, 1);
  }
  for (Process& process : task.processes) {
    const double received = process.stat.waited_minor_faults - process.waited_before;
    process.waited_before = process.stat.waited_minor_faults;
    const double left = process.left[kMinorFaults];
    if (left > 0) add(task.kept, process.left, std::clamp(1 - received / left, 0.0, 1.0));
    process.left = {};
  }
  process_count_ -=
      std::erase_if(task.processes, [](const Process& process) { return process.ended; });
}

void TasksSource::FindChildren(Task& task, bool look, Nanos now) {
  for (size_t i = 0; i < task.processes.size(); ++i) {  // grows as it goes
    if (look) ReadChildren(task, i, now);
    if (now >= task.processes[i].close_look_at) LookClosely(task, i, now);
  }
}

void TasksSource::ReadChildren(Task& task, size_t parent, Nanos now) {
  const Process& process = task.processes[parent];
  if (process.children_file) {
    int error = 0;
    const std::string_view children =
        ReadText(process.children_file.get(), Shape::kRecords, small_size_, buffer_, error);
    AddChildren(task, parent, children, now);
  } else if (!std::exchange(noted_children_, true)) {
    notes_.emplace_back(
        "child processes of tasks are counted only once they were waited for: the kernel has no "
        "/proc/PID/task/TID/children (CONFIG_PROC_CHILDREN)");
  }
}

void TasksSource::AddChildren(Task& task, size_t parent, std::string_view children, Nanos now) {
  // Adding a process reads into the buffer that `children` lies in.
  const auto known = [&](pid_t pid) {
    return std::any_of(task.processes.begin(), task.processes.end(),
                       [&](const Process& process) { return process.pid == pid; });
  };
  pid_t found[64];  // if there are more, the next tick finds them
  size_t count = 0;
  ForEachChild(children, [&](pid_t pid) {
    if (known(pid)) return;
    if (count < std::size(found)) found[count++] = pid;
    look_again_ = true;  // also for those that cannot be added now
  });
  for (size_t i = 0; i < count; ++i) {
    if (!known(found[i])) AddProcess(task, found[i], &task.processes[parent], now);
  }
}

// What is too dear for every tick: the children of the other threads and the kernel's own peak.
void TasksSource::LookClosely(Task& task, size_t index, Nanos now) {
  Process& process = task.processes[index];
  process.close_look_at = now + kCloseLook;
  const int directory = process.directory.get();
  int error = 0;
  // When a peak rose unseen between ticks, page faults came with it.
  const double faults = process.stat.counters[kMinorFaults] + process.stat.counters[kMajorFaults];
  if (std::exchange(process.faults_looked_at, faults) != faults) {
    if (const UniqueFd status(OpenIn(directory, "status")); status) {
      const std::string_view text =
          ReadText(status.get(), Shape::kWhole, status_size_, buffer_, error);
      task.peak = std::fmax(task.peak, ParsePeakResident(text));
    }
  }
  if (process.stat.threads < 2) return;
  const UniqueFd threads(OpenIn(directory, "task", O_DIRECTORY));
  alignas(dirent64) char entries[4096];
  for (ssize_t n; threads && (n = getdents64(threads.get(), entries, sizeof(entries))) > 0;) {
    for (ssize_t at = 0; at < n;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      char name[280];
      if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
      *fmt::format_to_n(name, sizeof(name) - 1, "{}/children", entry->d_name).out = '\0';
      const UniqueFd file(OpenIn(threads.get(), name));
      if (!file) continue;
      const std::string_view children =
          ReadText(file.get(), Shape::kRecords, small_size_, buffer_, error);
      AddChildren(task, index, children, now);
    }
  }
}

void TasksSource::TakeTotals(Task& task, const TaskTotals& totals) const {
  const auto raise = [&](TaskCounter counter, double value) {
    task.shown[counter] = std::max(task.shown[counter], value);
  };
  raise(kUserTicks, totals.user_seconds / seconds_per_tick_);
  raise(kSystemTicks, totals.system_seconds / seconds_per_tick_);
  raise(kMinorFaults, totals.minor_faults);
  raise(kMajorFaults, totals.major_faults);
  if (!std::isnan(totals.read_bytes) && !std::isnan(totals.written_bytes)) {
    raise(kReadBytes, totals.read_bytes);
    raise(kWriteBytes, totals.written_bytes);
    task.storage_known = true;
  }
  task.peak = std::fmax(task.peak, totals.peak_bytes);
}

void TasksSource::WriteValues(Task& task, double* values) {
  TaskCounters sums = task.kept;
  Present present;
  double processor = kMissing;
  for (const Process& process : task.processes) {
    for (size_t i = 0; i < kTaskCounters; ++i) sums[i] += process.stat.counters[i];
    task.io_known = task.io_known || process.io_known;
    present.Count(process.stat);
    if (process.pid == task.pid && process.stat.state != 'Z') processor = process.stat.processor;
  }
  const double resident = static_cast<double>(present.resident_pages) * page_size_;
  // The sums may fall by a few ticks where the kernel rounds; counters never do.
  for (size_t i = 0; i < kTaskCounters; ++i) task.shown[i] = std::max(task.shown[i], sums[i]);
  const bool here = !task.processes.empty();
  if (here) task.peak = std::fmax(task.peak, resident);
  const bool measured = !std::isnan(task.peak);
  values[task_metrics::kUserColumn] =
      measured ? task.shown[kUserTicks] * seconds_per_tick_ : kMissing;
  values[task_metrics::kSystemColumn] =
      measured ? task.shown[kSystemTicks] * seconds_per_tick_ : kMissing;
  for (size_t i = 0; i < std::size(task_metrics::kCounters); ++i) {
    const TaskCounter counter = task_metrics::kCounters[i].counter;
    const bool told = task.storage_known && (counter == kReadBytes || counter == kWriteBytes);
    const bool known = counter < kFirstIoCounter ? measured : task.io_known || told;
    values[task_metrics::kCountersColumn + i] = known ? task.shown[counter] : kMissing;
  }
  values[task_metrics::kResidentColumn] = here ? resident : kMissing;
  values[task_metrics::kPeakColumn] = task.peak;
  values[task_metrics::kThreadsColumn] = here ? static_cast<double>(present.threads) : kMissing;
  values[task_metrics::kProcessesColumn] = here ? present.processes : kMissing;
  values[task_metrics::kVirtualColumn] =
      here ? static_cast<double>(present.virtual_bytes) : kMissing;
  values[task_metrics::kRunningColumn] = here ? present.running : kMissing;
  values[task_metrics::kBlockedColumn] = here ? present.blocked : kMissing;
  values[task_metrics::kStoppedColumn] = here ? present.stopped : kMissing;
  values[task_metrics::kZombiesColumn] = here ? present.zombies : kMissing;
  values[task_metrics::kProcessorColumn] = processor;
}

std::vector<MetricDecl> TasksMetrics() {
  std::vector<MetricDecl> metrics = {task_metrics::kCpu};
  for (const task_metrics::CounterColumn& column : task_metrics::kCounters)
    metrics.push_back(column.decl);
  for (const MetricDecl* decl : task_metrics::kGauges) metrics.push_back(*decl);
  return metrics;
}

}  // namespace sonde::collect
