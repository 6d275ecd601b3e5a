#include "profiles/report/used.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "profiles/model/text.h"

namespace sonde {
namespace {

using text::Number;
using text::Percent;
using text::Printable;
using text::Seconds;

constexpr uint64_t kMostCpus = uint64_t{1} << 32;

// Of the step's nodes, from "4(x2),8": that many on two nodes, and another number on one more. 0 if
// these are not the step's nodes and differ.
double CpusOfNodes(std::string_view text, uint32_t nodes) {
  uint64_t cpus = 0, counted = 0, first = 0;
  bool same = true;
  const auto number = [&](std::string_view& from, uint64_t& to) {
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), to);
    from.remove_prefix(static_cast<size_t>(end - from.data()));
    return error == std::errc() && to <= kMostCpus;
  };
  while (!text.empty()) {
    uint64_t each = 0, times = 1;
    if (!number(text, each)) return 0;
    if (text.starts_with("(x")) {
      text.remove_prefix(2);
      if (!number(text, times) || !text.starts_with(")")) return 0;
      text.remove_prefix(1);
    }
    if (text.starts_with(",")) text.remove_prefix(1);
    if (counted == 0) first = each;
    same = same && each == first;
    cpus += each * times;
    counted += times;
    if (cpus > kMostCpus) return 0;
  }
  if (counted == nodes) return static_cast<double>(cpus);
  return same ? static_cast<double>(first) * nodes : 0;
}

std::string OfAsked(const std::string& used, const std::string& asked, double ratio) {
  return fmt::format("{} of {} ({})", used, asked, Percent(ratio));
}

void AddTime(const JobDescription& job, Nanos now, std::vector<Used>& all) {
  if (!job.request || job.request->time_limit <= 0) return;
  const JobRequest& request = *job.request;
  const bool known = request.begun > 0 && request.begun <= job.start;
  const Nanos end = job.end != 0 ? job.end : now;
  const auto used = static_cast<double>(end - (known ? request.begun : job.start)) / kSecond;
  if (!(used >= 0)) return;
  const std::string_view since = known && job.start - request.begun > kSecond
                                     ? ", from the job's begin to the end of this step"
                                     : "";
  if (request.time_limit == JobRequest::kNoLimit) {
    all.push_back({"time", "seconds", std::nan(""), used,
                   fmt::format("{}, without a time limit{}", Seconds(used), since)});
    return;
  }
  const auto asked = static_cast<double>(request.time_limit) / kSecond;
  all.push_back({"time", "seconds", asked, used,
                 OfAsked(Seconds(used), Seconds(asked), used / asked) + std::string(since)});
}

// Of steps that share a job each has some of its CPUs.
void AddCpus(const Profile& profile, const Summary& s, std::vector<Used>& all) {
  double asked = AskedCpus(profile.job);
  const double tasks = s.measured_tasks > 0 ? s.measured_tasks : profile.job.expected_tasks;
  const double own = std::round(StepCpus(profile, tasks));
  if (own > 0 && own < asked) asked = own;
  if (!(asked > 0) || !(s.measured > 0) || std::isnan(s.cpu_seconds)) return;
  const double used = s.cpu_seconds / s.measured;
  std::string text = fmt::format("{:.1f} of {} CPUs busy in the mean ({})", used, Number(asked),
                                 Percent(used / asked));
  // As the text has them: with one digit behind the point.
  const double idle = std::floor(asked - used + 0.05);
  if (idle >= 1) text += fmt::format(": {} idle", Number(idle));
  all.push_back({"cpus", "1", asked, used, std::move(text)});
}

void AddMemory(const Summary& s, std::vector<Used>& all) {
  const double used = s.memory_peak.value;
  if (!(s.memory_limit > 0) || std::isnan(used)) return;
  std::string text = OfAsked(text::Bytes(used), text::Bytes(s.memory_limit), used / s.memory_limit);
  text += " of memory at most";
  const std::string& by = s.memory_peak.by;
  if (!by.empty()) text += (by.starts_with("task ") ? ", by " : ", on ") + Printable(by);
  all.push_back({"memory", "bytes", s.memory_limit, used, std::move(text)});
}

void AddGpus(const Profile& profile, std::vector<Used>& all) {
  std::map<std::string, double> busiest;  // by number
  for (const FootprintEntry& entry : profile.footprint) {
    const std::string* gpu = entry.series.tags.Find("gpu");
    if (entry.series.metric.name != "gpu_utilization_ratio" || gpu == nullptr) continue;
    if (!std::isnan(entry.max)) busiest.emplace(*gpu, entry.max);
  }
  if (busiest.empty()) return;
  std::vector<std::string> idle;
  for (const auto& [gpu, most] : busiest) {
    if (most <= kIdleGpu) idle.push_back(gpu);
  }
  const auto asked = static_cast<double>(busiest.size());
  const double used = asked - static_cast<double>(idle.size());
  std::string text = fmt::format("{} of {} GPUs of a node used", Number(used), Number(asked));
  if (!idle.empty()) {
    text += ": nothing was done on any node by GPU ";
    for (size_t i = 0; i < idle.size(); ++i) {
      if (i > 0) text += i + 1 == idle.size() ? " and " : ", ";
      text += Printable(idle[i]);
    }
  }
  all.push_back({"gpus", "1", asked, used, std::move(text)});
}

// "3", "3 and 7-9", "1, 3 and 5": of ascending numbers, the first `most` ranges.
std::string Ranges(const std::vector<uint32_t>& numbers, size_t most) {
  std::vector<std::string> ranges;
  size_t told = 0;
  for (size_t i = 0; i < numbers.size() && ranges.size() < most;) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    ranges.push_back(last == i ? std::to_string(numbers[i])
                               : fmt::format("{}-{}", numbers[i], numbers[last]));
    told += last - i + 1;
    i = last + 1;
  }
  std::string text;
  const bool all = told == numbers.size();
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (i > 0) text += all && i + 1 == ranges.size() ? " and " : ", ";
    text += ranges[i];
  }
  if (!all) text += fmt::format(" and {} more", numbers.size() - told);
  return text;
}

}  // namespace

double AskedCpus(const JobDescription& job) {
  const auto at = job.environment.find("SLURM_JOB_CPUS_PER_NODE");
  if (at != job.environment.end()) return CpusOfNodes(at->second, job.expected_nodes);
  const bool whole = job.request && job.expected_nodes == job.job_nodes;
  return whole ? static_cast<double>(job.request->cpus) : 0;
}

double StepCpus(const Profile& profile, double tasks) {
  // A script waits for its steps, which have them.
  if (profile.job.id.IsScript()) return kMissing;
  double groups = 0;
  for (const FootprintEntry& entry : profile.footprint) {
    if (entry.series.metric.name == "cgroup_cpuset_cpus" && entry.mean > 0) groups += entry.mean;
  }
  return groups > 0 ? groups : AskedCpusPerTask(profile.job) * tasks;
}

double AskedCpusPerTask(const JobDescription& job) {
  const auto at = job.environment.find("SLURM_CPUS_PER_TASK");
  if (at == job.environment.end()) return kMissing;
  const std::string& text = at->second;
  uint32_t cpus = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpus);
  return error == std::errc() && end == text.data() + text.size() && cpus > 0 ? cpus : kMissing;
}

std::vector<Used> AskedAndUsed(const Profile& profile, const Summary& summary, Nanos now) {
  std::vector<Used> all;
  AddTime(profile.job, now, all);
  AddCpus(profile, summary, all);
  AddMemory(summary, all);
  AddGpus(profile, all);
  return all;
}

std::string OtherRequests(const JobDescription& job) {
  if (!job.request) return "";
  const JobRequest& request = *job.request;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (request.submitted > 0 && request.begun >= request.submitted) {
    const auto waited = static_cast<double>(request.begun - request.submitted) / kSecond;
    add(waited < 1 ? "did not wait in the queue"
                   : fmt::format("waited {} in the queue", Seconds(waited)));
  }
  if (!request.qos.empty()) add("QOS " + Printable(request.qos));
  if (!request.features.empty()) add("nodes with " + Printable(request.features));
  if (!request.gres.empty()) add(Printable(request.gres) + " on each node");
  return text;
}

std::string ExitText(int wait_status) {
  const int signal = wait_status & 0x7f;
  if (signal == 0) return fmt::format("code {}", wait_status >> 8 & 0xff);
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string ExitsText(const JobDescription& job) {
  constexpr size_t kMostRanges = 8;
  constexpr size_t kMostKinds = 4;
  std::map<int, std::vector<uint32_t>> tasks;  // by status
  for (const TaskExit& exit : job.exits) tasks[exit.status & 0xff7f].push_back(exit.rank);
  std::vector<std::pair<int, std::vector<uint32_t>>> kinds(tasks.begin(), tasks.end());
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (size_t i = 0; i < std::min(kinds.size(), kMostKinds); ++i) {
    const auto& [status, ranks] = kinds[i];
    text += fmt::format("{}{}: task{} {}", i == 0 ? "" : "; ", ExitText(status),
                        ranks.size() == 1 ? "" : "s", Ranges(ranks, kMostRanges));
  }
  if (kinds.size() > kMostKinds) text += fmt::format("; {} more", kinds.size() - kMostKinds);
  if (job.exits_left_out != 0) {
    text += fmt::format("; and {} tasks more that did not end with code 0", job.exits_left_out);
  }
  return text;
}

}  // namespace sonde
