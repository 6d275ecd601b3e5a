#include "profiles/report/headline.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "profiles/model/hardware.h"
#include "profiles/model/text.h"
#include "profiles/report/calls.h"
#include "profiles/report/mpi_waiting.h"
#include "profiles/report/used.h"

namespace sonde {
namespace {

using text::Percent;
using text::Printable;
using text::Seconds;

// What is less is not worth a word in the first line.
constexpr double kMatters = 0.05;   // of the time
constexpr double kMostly = 0.9;     // of the CPUs: they were used
constexpr double kFewCpus = 0.7;    // of the CPUs: many were not
constexpr double kLittle = 0.1;     // of the memory, or of a GPU
constexpr double kAlmostAll = 0.9;  // of the memory
constexpr double kUneven = 0.2;     // more CPU time on one than on another
constexpr double kLittleMemory = 1 << 30;

class Headline {
 public:
  Headline(const Profile& profile, const Summary& summary, Nanos now)
      : profile_(profile),
        job_(profile.job),
        s_(summary),
        used_(AskedAndUsed(profile, summary, now)) {}

  std::vector<HeadlinePart> Make() {
    End();
    Calls();
    Gpus();
    Cpus();
    Memory();
    Balance();
    // What is wrong comes before what is merely so.
    std::stable_sort(parts_.begin(), parts_.end(),
                     [](const auto& a, const auto& b) { return a.bad > b.bad; });
    return std::move(parts_);
  }

 private:
  void Add(bool bad, std::string text) { parts_.push_back({bad, std::move(text)}); }
  const Used* Of(std::string_view what) const {
    const auto at =
        std::find_if(used_.begin(), used_.end(), [&](const Used& one) { return one.what == what; });
    return at == used_.end() ? nullptr : &*at;
  }

  void End() {
    const double kills = OutOfMemoryKills(profile_);
    switch (job_.state) {
      case EndState::kFailed: {
        const std::string exits = ExitsText(job_);
        const std::string how = job_.exit_status != 0 ? ExitText(job_.exit_status) : "";
        Add(true, "failed" + (!exits.empty() ? ": " + exits : how.empty() ? "" : ": " + how));
        break;
      }
      case EndState::kOutOfMemory:
        Add(true, "ran out of memory");
        break;
      case EndState::kTimeout:
        Add(true, "was ended by its time limit");
        break;
      case EndState::kCancelled:
        Add(true, "was cancelled");
        break;
      case EndState::kPreempted:
        Add(true, "was preempted by another job");
        break;
      case EndState::kNodeFail:
        Add(true, "ended as Slurm lost a node");
        break;
      case EndState::kLost:
        Add(true, "its record stops before its end");
        break;
      default:
        break;
    }
    if (kills > 0 && job_.state != EndState::kOutOfMemory) {
      Add(true, fmt::format("the kernel killed {:.0f} of its processes for want of memory", kills));
    }
  }

  void Calls() {
    const double tasks = TaskSeconds(profile_, s_);
    if (!(tasks > 0)) return;
    const CallTimes times = TimesOfCalls(profile_);
    const double mpi = times.mpi / tasks;
    if (mpi >= kMatters) {
      const MpiWaiting waited = WaitingInMpi(profile_, TaskCount(profile_, s_));
      const double waiting = waited.seconds / tasks;
      const bool waits = waiting >= mpi / 2;
      std::string text =
          waits ? fmt::format("waited for other ranks in MPI {} of the time", Percent(waiting))
                : fmt::format("in MPI {} of the time", Percent(mpi));
      if (waits && waited.slowest) {
        text += fmt::format(", slowest is {}", Printable(OwnerName(*waited.slowest, job_)));
      } else if (const std::vector<CallRow> functions = MpiFunctions(profile_);
                 !functions.empty()) {
        text += fmt::format(", most of it in {} ({})", Printable(functions.front().name),
                            Percent(functions.front().seconds / tasks));
      }
      Add(mpi >= 4 * kMatters, std::move(text));
    }
    const double files = times.files / tasks;
    if (files >= kMatters) {
      Add(files >= 4 * kMatters, fmt::format("in calls for files {} of the time", Percent(files)));
    }
  }

  void Gpus() {
    const Used* const used = Of("gpus");
    const HardwareSummary hardware = SummarizeHardware(profile_);
    if (used != nullptr && used->used < used->asked) {
      Add(true, fmt::format("{} of {} GPUs of a node did nothing",
                            text::Number(used->asked - used->used), text::Number(used->asked)));
    } else if (!std::isnan(hardware.gpu_utilization)) {
      Add(hardware.gpu_utilization < kLittle,
          fmt::format("GPUs {} busy", Percent(hardware.gpu_utilization)));
    }
  }

  void Cpus() {
    const Used* const used = Of("cpus");
    const double ratio = used != nullptr ? used->used / used->asked : s_.cpu_of_tasks;
    if (std::isnan(ratio)) return;
    if (used != nullptr && ratio < kFewCpus && used->asked - used->used >= 1) {
      Add(true, fmt::format("{:.1f} of {} CPUs busy", used->used, text::Number(used->asked)));
    } else if (used != nullptr || ratio >= kMostly) {
      Add(false, fmt::format("CPUs {} busy", Percent(ratio)));
    }
  }

  void Memory() {
    const double ratio = s_.memory_of_limit;
    if (std::isnan(ratio)) return;
    if (ratio >= kAlmostAll) {
      Add(true,
          fmt::format("{} of the memory it may have{}", Percent(ratio),
                      s_.memory_peak.by.empty() ? "" : " on " + Printable(s_.memory_peak.by)));
    } else if (ratio < kLittle && s_.memory_limit > kLittleMemory) {
      Add(false, fmt::format("{} of the memory asked for was used", Percent(ratio)));
    }
  }

  void Balance() {
    const Held& least = s_.least_cpu;
    const Held& most = s_.most_cpu;
    if (least.by.empty() || most.by.empty() || least.by == most.by) return;
    // Differences of little work are those of programs that start.
    if (!(most.value > 1) || !(most.value - least.value > kUneven * most.value)) return;
    Add(true, fmt::format("uneven: {} of CPU time on {}, {} on {}", Seconds(most.value),
                          Printable(most.by), Seconds(least.value), Printable(least.by)));
  }

  const Profile& profile_;
  const JobDescription& job_;
  const Summary& s_;
  const std::vector<Used> used_;
  std::vector<HeadlinePart> parts_;
};

}  // namespace

double TaskCount(const Profile& profile, const Summary& summary) {
  // A command of `sonde run` may start others, as mpirun does its ranks: their number is not known.
  const JobDescription& job = profile.job;
  if (job.expected_tasks == 0 || job.id.step == "run") return std::nan("");
  return summary.measured_tasks > 0 ? summary.measured_tasks : job.expected_tasks;
}

double TaskSeconds(const Profile& profile, const Summary& summary) {
  return summary.measured * TaskCount(profile, summary);
}

std::vector<HeadlinePart> HeadlineOf(const Profile& profile, const Summary& summary, Nanos now) {
  return Headline(profile, summary, now).Make();
}

std::string HeadlineText(const std::vector<HeadlinePart>& parts, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(most, parts.size()); ++i) {
    out += (i == 0 ? "" : "; ") + parts[i].text;
  }
  return out;
}

}  // namespace sonde
