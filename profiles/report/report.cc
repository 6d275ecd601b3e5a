#include "profiles/report/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <unordered_set>
#include <utility>

#include "core/text/hostlist.h"
#include "core/text/step_title.h"
#include "profiles/model/hardware.h"
#include "profiles/model/text.h"
#include "profiles/report/call_tables.h"
#include "profiles/report/calls.h"
#include "profiles/report/headline.h"
#include "profiles/report/local_time.h"
#include "profiles/report/moments.h"
#include "profiles/report/mpi_waiting.h"
#include "profiles/report/node_table.h"
#include "profiles/report/short_report.h"
#include "profiles/report/used.h"

namespace sonde {
namespace {

// A wait status in words; "" for success.
std::string HowItEnded(int wait_status) {
  if (wait_status == 0) return "";
  const bool killed = (wait_status & 0x7f) != 0;
  return (killed ? ", killed by " : ", exit ") + ExitText(wait_status);
}

using text::Bytes;
using text::Percent;
using text::Printable;
using text::Seconds;

constexpr size_t kBarWidth = 24;
constexpr size_t kHeadlineParts = 5;
constexpr size_t kMaxGaps = 8;      // nodes named for missing samples
constexpr size_t kMaxMetrics = 40;  // of the application; an exporter may serve thousands

std::string_view ColourOf(EndState state) {
  switch (state) {
    case EndState::kCompleted:
      return kGreen;
    case EndState::kRunning:
      return kCyan;
    default:
      return kRed;
  }
}

// One report that is being written.
class Report {
 public:
  Report(const Profile& profile, const ReportOptions& options)
      : profile_(profile),
        job_(profile.job),
        options_(options),
        summary_(Summarize(profile, options.nodes, options.now)) {}

  std::string Full();

 private:
  void Header();
  void Headline();
  void Asked();
  void Hints();
  void Cpu();
  void Memory();
  void TimeInCalls();
  void Spread(std::string_view metric, std::string_view mode,
              const std::function<std::string(double)>& text, std::string_view what);
  void Nodes();
  void Traffic();
  void Hardware();
  void Figures();
  void Moments();
  void Application();
  void Calls();
  void Covered();
  void Cost();
  void Notes();

  void Line(std::string_view text) { out_.append(text).append("\n"); }
  void Labelled(std::string_view label, std::string_view text) {
    out_ += text::Labelled(label, text, options_.width);
  }
  std::string Bar(double ratio) const { return text::Bar(ratio, kBarWidth, options_.unicode); }
  std::string State() const {
    const std::string name(ToString(job_.state));
    return options_.colour ? fmt::format("{}{}{}", ColourOf(job_.state), name, kNoColour) : name;
  }
  std::string Tasks() const {
    return fmt::format("{} task{}", job_.expected_tasks, job_.expected_tasks == 1 ? "" : "s");
  }

  std::string MeasuredTasks() const {
    const double tasks = summary_.measured_tasks;
    return tasks > 0 && tasks < job_.expected_tasks ? fmt::format("{:.0f} of {}", tasks, Tasks())
                                                    : Tasks();
  }
  // "measured for 12 s of 30 s", where that is clearly less than the step; or "".
  std::string MeasuredPart() const;

  const Profile& profile_;
  const JobDescription& job_;
  const ReportOptions& options_;
  const Summary summary_;
  std::string out_;
};

void Report::Header() {
  std::string title = fmt::format("Sonde: {}", Printable(job_.id.ToString()));
  const std::string called = StepTitle(job_.name, job_.command);
  if (!called.empty()) title += fmt::format(" ({})", Printable(called));
  if (!job_.cluster.empty()) title += " on " + Printable(job_.cluster);
  out_ += text::Wrapped("", text::kIndent,
                        fmt::format("{}: {}{}", title, State(), HowItEnded(job_.exit_status)),
                        options_.width);
  std::string who;
  const auto add = [&](std::string_view before, std::string_view value) {
    if (value.empty()) return;
    if (!who.empty()) who += ", ";
    who.append(before).append(Printable(value));
  };
  add("", job_.user);
  add("account ", job_.account);
  add("partition ", job_.partition);
  add("", fmt::format("{} node{}, {}", job_.expected_nodes, job_.expected_nodes == 1 ? "" : "s",
                      Tasks()));
  add("", fmt::format("level {} every {}", job_.level, FormatDuration(job_.period)));
  out_ += text::Wrapped(text::kIndent, text::kIndent, who, options_.width);
  std::string when =
      job_.end != 0 ? FormatLocalSpan(job_.start, job_.end) : FormatLocalTime(job_.start);
  if (!std::isnan(summary_.duration)) when += fmt::format(" ({})", Seconds(summary_.duration));
  Line(std::string(text::kIndent) + when);
  if (!job_.command.empty()) {
    const size_t room =
        options_.width > text::kIndent.size() ? options_.width - text::kIndent.size() : 0;
    Line(std::string(text::kIndent) + text::Cut(Printable(job_.command), room));
  }
  Line("");
}

void Report::Headline() {
  const auto parts = HeadlineOf(profile_, summary_, options_.now);
  if (parts.empty()) return;
  Labelled("In short", HeadlineText(parts, kHeadlineParts));
  Line("");
}

// The first numbers: what it was asked for decides how long the next job waits.
void Report::Asked() {
  std::string_view label = "Asked";
  const auto line = [&](std::string_view text) {
    if (text.empty()) return;
    Labelled(label, text);
    label = "";
  };
  for (const Used& one : AskedAndUsed(profile_, summary_, options_.now)) line(one.text);
  line(OtherRequests(job_));
  const std::string exits = ExitsText(job_);
  if (!exits.empty() && job_.expected_tasks > 1) Labelled("Exits", exits);
  if (label.empty() || !exits.empty()) Line("");
}

void Report::Hints() {
  if (options_.hints.empty()) return;
  Line("What to change");
  out_ += HintsText(options_.hints, options_.width);
  Line("");
}

void Report::Cpu() {
  const Summary& s = summary_;
  if (std::isnan(s.cpu_seconds)) return;
  if (!std::isnan(s.cpu_of_tasks)) {
    Labelled("CPU", fmt::format("{} {} of {} x {}", Bar(s.cpu_of_tasks), Percent(s.cpu_of_tasks),
                                MeasuredTasks(), Seconds(s.measured)));
    const std::string part = MeasuredPart();
    if (!part.empty()) Labelled("", part);
  }
  std::string used = fmt::format("{} of CPU time", Seconds(s.cpu_seconds));
  if (s.cpu_seconds > 0 && !std::isnan(s.cpu_system)) {
    used += fmt::format(", {} of it in the system", Percent(s.cpu_system / s.cpu_seconds));
  }
  if (!std::isnan(s.cpu_of_nodes)) {
    used += fmt::format("; {} of all {} CPUs", Percent(s.cpu_of_nodes), text::Number(s.node_cpus));
  }
  Labelled(std::isnan(s.cpu_of_tasks) ? "CPU" : "", used);
  if (s.least_cpu.by != s.most_cpu.by && s.least_cpu.value < s.most_cpu.value) {
    Labelled("", fmt::format("most on {} ({}), least on {} ({})", Printable(s.most_cpu.by),
                             Seconds(s.most_cpu.value), Printable(s.least_cpu.by),
                             Seconds(s.least_cpu.value)));
  }
  Spread("task_cpu_seconds_total", "user", Percent, "of a CPU in user mode, ");
}

std::string Report::MeasuredPart() const {
  constexpr double kClearly = 0.9;
  const Summary& s = summary_;
  if (!(s.measured < kClearly * s.duration && s.measured < s.duration - 1)) return "";
  return fmt::format("measured for {} of {}", Seconds(s.measured), Seconds(s.duration));
}

// The values of most tasks, which the two extremes do not show.
void Report::Spread(std::string_view metric, std::string_view mode,
                    const std::function<std::string(double)>& text, std::string_view what) {
  constexpr uint32_t kFewTasks = 8;
  if (job_.expected_tasks < kFewTasks) return;
  for (const FootprintEntry& entry : profile_.footprint) {
    const std::string* of = entry.series.tags.Find("mode");
    if (entry.series.metric.name != metric || !entry.spread || (of == nullptr ? "" : *of) != mode) {
      continue;
    }
    const auto& [p5, p50, p95, p99] = entry.spread->mean;
    Labelled("", fmt::format("5, 50 and 95 % of the tasks below {}, {} and {} ({}mean over time)",
                             text(p5), text(p50), text(p95), what));
  }
}

void Report::Memory() {
  const Summary& s = summary_;
  if (std::isnan(s.memory_peak.value)) return;
  const std::string& by = s.memory_peak.by;
  std::string whose;
  if (!by.empty()) whose = (by.starts_with("task ") ? " for " : " on ") + Printable(by);
  if (!std::isnan(s.memory_of_limit)) {
    Labelled("Memory", fmt::format("{} {}: {} of {} allowed{}", Bar(s.memory_of_limit),
                                   Percent(s.memory_of_limit), Bytes(s.memory_peak.value),
                                   Bytes(s.memory_limit), whose));
  } else if (std::isnan(s.memory_of_node)) {
    Labelled("Memory", Bytes(s.memory_peak.value) + whose);
  } else {
    Labelled("Memory",
             fmt::format("{} {}: {} of {}{}", Bar(s.memory_of_node), Percent(s.memory_of_node),
                         Bytes(s.memory_peak.value), Bytes(s.memory_total), whose));
  }
  Spread("task_resident_memory_bytes", "", Bytes, "");
  const double kills = OutOfMemoryKills(profile_);
  if (kills > 0) {
    Labelled("", fmt::format("the kernel killed {:.0f} process{} for want of memory", kills,
                             kills == 1 ? "" : "es"));
  }
}

// Of the time of all tasks.
void Report::TimeInCalls() {
  const double tasks = TaskSeconds(profile_, summary_);
  if (!(tasks > 0)) return;
  const CallTimes times = TimesOfCalls(profile_);
  if (times.mpi > 0) {
    std::string text =
        fmt::format("{} {} of the time", Bar(times.mpi / tasks), Percent(times.mpi / tasks));
    const MpiWaiting waiting = WaitingInMpi(profile_, TaskCount(profile_, summary_));
    if (waiting.seconds > 0) {
      text += fmt::format(", {} waiting for other ranks", Percent(waiting.seconds / tasks));
    }
    Labelled("MPI", text);
  }
  if (times.files > 0) {
    Labelled("Files", fmt::format("{} {} of the time", Bar(times.files / tasks),
                                  Percent(times.files / tasks)));
  }
}

void Report::Nodes() {
  if (options_.nodes.empty()) return;
  Line("");
  out_ += NodeTable(profile_.job, summary_, options_);
}

void Report::Traffic() {
  const Summary& s = summary_;
  const auto both = [&](std::string_view label, double in, std::string_view in_name, double out,
                        std::string_view out_name, std::string_view whose) {
    if (std::isnan(in) && std::isnan(out)) return;
    std::string parts;
    if (!std::isnan(in)) parts = fmt::format("{} {}", Bytes(in), in_name);
    if (!std::isnan(out)) {
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", Bytes(out), out_name);
    }
    Labelled(label, fmt::format("{} ({})", parts, whose));
  };
  Line("");
  both("I/O", s.task_read, "read", s.task_written, "written", "the tasks, from and to storage");
  both("Disks", s.disk_read, "read", s.disk_written, "written", "whole nodes");
  both("Network", s.network_received, "received", s.network_sent, "sent", "whole nodes");
}

void Report::Hardware() {
  const HardwareSummary hardware = SummarizeHardware(profile_);
  const auto lines = HardwareLines(hardware);
  if (!lines.empty()) Line("");
  for (const auto& [label, text] : lines) {
    const bool bar = label == "GPUs" && !std::isnan(hardware.gpu_utilization);
    Labelled(label, bar ? Bar(hardware.gpu_utilization) + " " + text : text);
  }
}

// The values by which users judge a run come first.
void Report::Figures() {
  std::string_view label = "Figures";
  for (const Figure& figure : job_.figures) {
    Labelled(label, fmt::format("{} {}", Printable(figure.name), FigureValue(figure)));
    label = "";
  }
  if (!job_.figures.empty()) Line("");
}

void Report::Moments() {
  const Nanos end = job_.end != 0 ? job_.end : options_.now;
  Line("");
  out_ += PhaseTable(profile_, end, summary_.duration, options_.width);
  Line("");
  out_ += DistributionTable(profile_.moments, Observed::kApplication, options_.width);
}

void Report::Application() {
  auto entries = ApplicationEntries(profile_);
  std::erase_if(entries, [this](const FootprintEntry* e) {
    return IsToldAbove(profile_, *e) || CountsCalls(e->series);
  });
  if (entries.empty()) return;
  using enum text::Table::Align;
  text::Table table({{"application metric", kLeft, true},
                     {"over time", kLeft, false, 1},
                     {"last", kRight},
                     {"mean", kRight},
                     {"min", kRight, false, 1},
                     {"max", kRight},
                     {"max on", kLeft, true, 1}});
  const size_t shown = std::min(entries.size(), kMaxMetrics);
  for (size_t i = 0; i < shown; ++i) {
    const FootprintEntry* e = entries[i];
    const Metric& metric = e->series.metric;
    const bool counts = IsCounting(metric.type);
    const std::string name = SeriesName(metric.name, e->series.tags);
    const auto line = options_.sparklines.find(name);
    const bool drawn = line != options_.sparklines.end();
    table.Row({Printable(name), drawn ? text::Sparkline(line->second, options_.unicode) : "",
               text::Value(e->last, metric.unit), text::Value(e->mean, metric.unit, counts),
               text::Value(e->min, metric.unit), text::Value(e->max, metric.unit),
               Printable(OwnerName(e->max_owner, job_))});
  }
  Line("");
  out_ += table.Render("", options_.width);
  if (entries.size() > shown) {
    Line(fmt::format("{}and {} metrics more; all with --json", text::kIndent,
                     entries.size() - shown));
  }
}

void Report::Calls() {
  const double task_seconds = TaskSeconds(profile_, summary_);
  const std::string mpi = MpiTable(profile_, task_seconds, options_.width);
  const std::string files = FileTable(profile_, task_seconds, options_.width);
  const std::string functions = FunctionTable(profile_, task_seconds, options_.width);
  Line("");
  out_ += mpi;
  Line("");
  out_ += MpiFunctionTable(profile_, task_seconds, options_.width);
  Line("");
  out_ += DistributionTable(profile_.moments, Observed::kMpi, options_.width);
  Line("");
  out_ += files;
  Line("");
  out_ += functions;
  // Functions that nobody timed have none.
  const bool shares = !(mpi + files).empty() || functions.find(" share\n") != std::string::npos;
  if (task_seconds > 0 && shares) {
    Line(fmt::format("{}share: of {} x {}", text::kIndent, MeasuredTasks(),
                     Seconds(summary_.measured)));
  }
}

void Report::Covered() {
  Line("");
  if (job_.coverage.expected == 0) {
    Labelled("Coverage", "no samples");
  } else {
    Labelled("Coverage", fmt::format("{}: {} of {} node samples", Percent(job_.coverage.Ratio()),
                                     job_.coverage.got, job_.coverage.expected));
    if (job_.coverage.skipped != 0) {
      Labelled("", fmt::format("{} never taken: a node was too busy at the time",
                               job_.coverage.skipped));
    }
  }
  if (job_.nodes.size() < job_.expected_nodes) {
    Labelled("", fmt::format("{} of {} nodes reported", job_.nodes.size(), job_.expected_nodes));
  }
  size_t gaps = 0;
  for (const NodeInfo& node : job_.nodes) {
    if (!node.lost && node.note.empty()) continue;
    if (++gaps > kMaxGaps) continue;
    const std::string why = node.note.empty() ? "lost" : Printable(LocalTimesIn(node.note));
    Labelled("", fmt::format("{}: {}{}", Printable(node.host), why,
                             node.left != 0 ? ", left " + FormatLocalTime(node.left) : ""));
  }
  if (gaps > kMaxGaps) Labelled("", fmt::format("and {} nodes more", gaps - kMaxGaps));
}

void Report::Cost() {
  const OwnCost& cost = profile_.cost;
  std::string parts;
  const auto add = [&](double value, const std::string& part) {
    if (std::isnan(value)) return;
    if (!parts.empty()) parts += ", ";
    parts += part;
  };
  add(cost.cpu_seconds, Seconds(cost.cpu_seconds) + " of CPU time");
  add(cost.peak_node_memory, Bytes(cost.peak_node_memory) + " of memory on a node at most");
  add(cost.bytes_sent, Bytes(cost.bytes_sent) + " sent" +
                           (cost.carriers.empty() ? "" : " over " + Printable(cost.carriers)));
  add(cost.stored_bytes, Bytes(cost.stored_bytes) + " stored");
  if (!parts.empty()) Labelled("Own cost", parts);
}

// If several nodes say the same, "n1: ..." and "n2: ...", it is shown once.
void Report::Notes() {
  std::unordered_set<std::string_view> names;
  for (const NodeInfo& node : job_.nodes) names.insert(node.host);
  struct Group {
    std::vector<std::string> hosts;
    std::string_view text;
  };
  std::vector<Group> groups;
  std::map<std::pair<bool, std::string_view>, size_t> index;  // of a node, text
  for (const std::string_view note : job_.notes) {
    const size_t colon = note.find(": ");
    const bool of_node = colon != std::string_view::npos && names.contains(note.substr(0, colon));
    const std::string_view text = of_node ? note.substr(colon + 2) : note;
    const auto [at, added] = index.try_emplace({of_node, text}, groups.size());
    if (added) groups.push_back({{}, text});
    if (of_node) groups[at->second].hosts.emplace_back(note.substr(0, colon));
  }
  for (const Group& group : groups) {
    const std::string who = group.hosts.empty() ? "" : NameHosts(group.hosts) + ": ";
    Labelled("Note", Printable(who + LocalTimesIn(group.text)));
  }
}

std::string Report::Full() {
  Header();
  Headline();
  Figures();
  Asked();
  Hints();
  const size_t before = out_.size();
  Cpu();
  Memory();
  TimeInCalls();
  if (out_.size() == before) {
    Labelled("CPU", job_.level < 2 ? "not measured at this level (2 and above measure it)"
                                   : "nothing was measured");
  }
  Nodes();
  Traffic();
  Hardware();
  Moments();
  Application();
  Calls();
  Covered();
  Cost();
  Notes();
  // Parts without text leave empty lines.
  for (size_t at = 0; (at = out_.find("\n\n\n", at)) != std::string::npos;) out_.erase(at, 1);
  return std::move(out_);
}

}  // namespace

std::string RenderReport(const Profile& profile, const ReportOptions& options) {
  if (options.form == ReportOptions::Form::kShort) return ShortReport(profile, options);
  return Report(profile, options).Full();
}

}  // namespace sonde
