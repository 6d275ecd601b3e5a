#include "profiles/report/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "core/text/hostlist.h"
#include "profiles/model/hardware.h"
#include "profiles/model/text.h"
#include "profiles/report/calls.h"
#include "profiles/report/moments.h"

namespace sonde {
namespace {

// A wait status in words; "" for success.
std::string HowItEnded(int wait_status) {
  if (wait_status == 0) return "";
  const int signal = wait_status & 0x7f;
  if (signal == 0) return fmt::format(", exit code {}", wait_status >> 8 & 0xff);
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format(", killed by SIG{}", name)
                         : fmt::format(", killed by signal {}", signal);
}

using text::Bytes;
using text::Percent;
using text::Printable;
using text::Seconds;

constexpr size_t kBarWidth = 24;
constexpr size_t kLabelWidth = 9;
constexpr size_t kMaxGaps = 8;      // nodes named for missing samples
constexpr size_t kMaxMetrics = 40;  // of the application; an exporter may serve thousands

std::string_view ColourOf(EndState state) {
  switch (state) {
    case EndState::kCompleted:
      return "\x1b[32m";
    case EndState::kRunning:
      return "\x1b[36m";
    default:
      return "\x1b[31m";
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

  std::string Short();
  std::string Full();

 private:
  void Header();
  void Cpu();
  void Memory();
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
  void Labelled(std::string_view label, std::string_view text);
  std::string Bar(double ratio) const { return text::Bar(ratio, kBarWidth, options_.unicode); }
  std::string State() const {
    const std::string name(ToString(job_.state));
    return options_.colour ? std::string(ColourOf(job_.state)) + name + "\x1b[0m" : name;
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

// "Label    text", as wide as the terminal: the rest of the text goes on the next line.
void Report::Labelled(std::string_view label, std::string_view text) {
  std::string line = fmt::format("{:<{}}", label, kLabelWidth);
  bool first = true;
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    if (!first && text::Width(line) + 1 + text::Width(word) > options_.width) {
      Line(line);
      line.assign(kLabelWidth, ' ');
      first = true;
    }
    if (!first) line += ' ';
    line += word;
    first = false;
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  }
  Line(line);
}

std::string Report::Short() {
  const Summary& s = summary_;
  out_ = fmt::format("sonde: {} {}", Printable(job_.id.ToString()), State());
  if (!std::isnan(s.duration)) out_ += " in " + Seconds(s.duration);
  if (!std::isnan(s.cpu_of_tasks)) out_ += ", CPU " + Percent(s.cpu_of_tasks);
  if (!std::isnan(s.memory_peak.value)) {
    out_ += ", memory " + Bytes(s.memory_peak.value);
    if (!s.memory_peak.by.empty()) out_ += fmt::format(" ({})", Printable(s.memory_peak.by));
  }
  for (size_t i = 0; i < std::min<size_t>(job_.figures.size(), 2); ++i) {
    out_ += fmt::format(", {} {}", job_.figures[i].name, FigureValue(job_.figures[i]));
  }
  if (job_.coverage.expected != 0) out_ += ", coverage " + Percent(job_.coverage.Ratio());
  Line(fmt::format("; see: sonde show {}", Printable(job_.id.ToString())));
  return std::move(out_);
}

void Report::Header() {
  std::string title = fmt::format("Sonde: {}", Printable(job_.id.ToString()));
  if (!job_.name.empty()) title += fmt::format(" ({})", Printable(job_.name));
  if (!job_.cluster.empty()) title += " on " + Printable(job_.cluster);
  Line(fmt::format("{}: {}{}", title, State(), HowItEnded(job_.exit_status)));
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
  Line(std::string(text::kIndent) + who);
  std::string when = FormatTime(job_.start);
  if (job_.end != 0) when += " to " + FormatTime(job_.end);
  if (!std::isnan(summary_.duration)) when += fmt::format(" ({})", Seconds(summary_.duration));
  Line(std::string(text::kIndent) + when);
  if (!job_.command.empty()) {
    const size_t room =
        options_.width > text::kIndent.size() ? options_.width - text::kIndent.size() : 0;
    Line(std::string(text::kIndent) + text::Cut(Printable(job_.command), room));
  }
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

// The node to look at first: the one whose tasks got the least CPU per task, if that differs a lot
// from the others; a shortened table is in that order.
std::vector<size_t> WorstFirst(const std::vector<NodeRow>& rows) {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto badness = [&](size_t i) {
    const NodeRow& row = rows[i];
    if (row.lost || std::isnan(row.cpu_seconds)) return -1.0;
    return row.cpu_seconds / std::max(1u, row.tasks);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return badness(a) < badness(b); });
  return order;
}

void Report::Nodes() {
  const auto& rows = options_.nodes;
  if (rows.empty()) return;
  const std::vector<size_t> worst = WorstFirst(rows);
  std::vector<size_t> shown(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                               rows.size(), options_.max_nodes)));
  if (rows.size() <= options_.max_nodes) {  // n2 before n10
    std::sort(shown.begin(), shown.end(), [&](size_t a, size_t b) {
      return strverscmp(rows[a].host.c_str(), rows[b].host.c_str()) < 0;
    });
  }
  const bool differ = rows.size() > 1 && summary_.least_cpu.value < summary_.most_cpu.value;
  using enum text::Table::Align;
  text::Table table({{"", kLeft},
                     {"node", kLeft, true},
                     {"tasks", kRight},
                     {"CPU", kRight},
                     {"memory", kRight},
                     {"received", kRight},
                     {"sent", kRight},
                     {"read", kRight},
                     {"written", kRight}});
  std::vector<double> measured = MeasuredSeconds(job_, options_.now, /*of_tasks=*/true);
  measured.resize(rows.size(), summary_.duration);
  for (const size_t i : shown) {
    const NodeRow& row = rows[i];
    const double share = row.cpu_seconds / (measured[i] * row.tasks);
    const bool is_worst = row.lost || (differ && i == worst.front());
    table.Row({is_worst ? "*" : "", Printable(row.host), std::to_string(row.tasks),
               row.tasks == 0 ? Seconds(row.cpu_seconds) : Percent(share), Bytes(row.memory_peak),
               Bytes(row.network_received), Bytes(row.network_sent), Bytes(row.disk_read),
               Bytes(row.disk_written)});
  }
  Line("");
  out_ += table.Render("", options_.width);
  if (shown.size() < rows.size()) {
    Line(fmt::format("{}the {} of {} nodes with the least CPU time per task; all with --json",
                     text::kIndent, shown.size(), rows.size()));
  }
  if (differ) Line(fmt::format("{}* the least CPU time per task, or lost", text::kIndent));
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
  const auto lines = HardwareLines(SummarizeHardware(profile_));
  if (!lines.empty()) Line("");
  for (const auto& [label, text] : lines) Labelled(label, text);
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
                     {"last", kRight},
                     {"mean", kRight},
                     {"min", kRight, false, true},
                     {"max", kRight},
                     {"max on", kLeft, true, true}});
  const size_t shown = std::min(entries.size(), kMaxMetrics);
  for (size_t i = 0; i < shown; ++i) {
    const FootprintEntry* e = entries[i];
    const Metric& metric = e->series.metric;
    const bool counts = IsCounting(metric.type);
    table.Row({Printable(SeriesName(metric.name, e->series.tags)),
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
  // A command of `sonde run` may start others, as mpirun does its ranks: their number is not known.
  const bool known = job_.expected_tasks != 0 && job_.id.step != "run";
  const double tasks = summary_.measured_tasks > 0 ? summary_.measured_tasks : job_.expected_tasks;
  const double task_seconds = known ? summary_.measured * tasks : std::nan("");
  const std::string mpi = MpiTable(profile_, task_seconds, options_.width);
  const std::string files = FileTable(profile_, task_seconds, options_.width);
  if (mpi.empty() && files.empty()) return;
  Line("");
  out_ += mpi;
  Line("");
  out_ += DistributionTable(profile_.moments, Observed::kMpi, options_.width);
  Line("");
  out_ += files;
  if (task_seconds > 0) {
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
    const std::string why = node.note.empty() ? "lost" : Printable(node.note);
    Labelled("", fmt::format("{}: {}{}", Printable(node.host), why,
                             node.left != 0 ? ", left " + FormatTime(node.left) : ""));
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
    Labelled("Note", Printable(who + std::string(group.text)));
  }
}

std::string Report::Full() {
  Header();
  Figures();
  const size_t before = out_.size();
  Cpu();
  Memory();
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
  Report report(profile, options);
  return options.form == ReportOptions::Form::kShort ? report.Short() : report.Full();
}

}  // namespace sonde
