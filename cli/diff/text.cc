#include "cli/diff/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/step_table.h"
#include "core/text/step_title.h"
#include "profiles/model/text.h"
#include "profiles/report/local_time.h"

namespace sonde::cli {
namespace {

using text::Printable;
using enum text::Table::Align;

constexpr size_t kMostWeighty = 24;
constexpr size_t kMostUnweighed = 12;  // rows of GPUs and the rest of the footprint
constexpr size_t kHeadlines = 4;

std::string Relative(double ratio) {
  if (std::abs(ratio) >= 10) return fmt::format("x{}", text::Number(std::round(ratio + 1)));
  return fmt::format("{:+.{}f} %", 100 * ratio, std::abs(ratio) < 0.0995 ? 1 : 0);
}

// "+12 %"; if the first value is 0, the difference itself.
std::string ChangeText(const CompareRow& row, size_t change) {
  const Band& base = row.groups.front();
  const Band& other = row.groups[change + 1];
  if (base.count == 0 && other.count == 0) return "-";
  if (base.count == 0) return "new";
  if (other.count == 0) return "gone";
  const double difference = row.changes[change].difference;
  if (difference == 0) return "same";
  if (base.mean != 0) return Relative(difference / std::abs(base.mean));
  return (difference > 0 ? "+" : "") + text::Value(difference, row.unit);
}

std::string NoiseText(const CompareRow& row, size_t change) {
  const double size =
      std::fmax(std::abs(row.groups.front().mean), std::abs(row.groups[change + 1].mean));
  const double noise = row.changes[change].noise;
  if (!(size > 0) || std::isnan(noise)) return "-";
  return fmt::format("{:.{}f} %", 100 * noise / size, noise / size < 0.0995 ? 1 : 0);
}

// "8.2 s", of several runs "8.2 s (8.0 s .. 8.5 s)".
std::string BandText(const Band& band, const std::string& unit) {
  std::string out = text::Value(band.mean, unit);
  if (band.count > 1 && band.min != band.max) {
    out += fmt::format(" ({} .. {})", text::Value(band.min, unit), text::Value(band.max, unit));
  }
  if (band.count > 0 && band.count < band.runs.size()) {
    out += fmt::format(" in {} of {}", band.count, band.runs.size());
  }
  return out;
}

bool IsDetail(const CompareRow& row) {
  return row.section == CompareSection::kOther || row.section == CompareSection::kGpu;
}

// What is shown without --all: what differs and matters; of what nobody can weigh a few.
std::vector<const CompareRow*> Chosen(const Difference& diff, bool all) {
  std::vector<const CompareRow*> rows;
  size_t unweighed = 0;
  for (const CompareRow& row : diff.comparison.rows) {
    const bool weighty = row.standing == Standing::kWeighty && rows.size() < kMostWeighty;
    const bool other =
        row.standing == Standing::kUnweighed && (!IsDetail(row) || ++unweighed <= kMostUnweighed);
    const bool slight = row.standing == Standing::kSlight && !IsDetail(row);
    if (all || weighty || other || slight) rows.push_back(&row);
  }
  return rows;
}

// What is not shown: "Within noise: duration, user and 310 series; 12 more differ ...".
std::string Folded(const Difference& diff, const std::vector<const CompareRow*>& shown) {
  std::string same;
  size_t same_series = 0;
  size_t differ = 0;
  size_t pseudo = 0;
  for (const CompareRow& row : diff.comparison.rows) {
    if (std::find(shown.begin(), shown.end(), &row) != shown.end()) continue;
    if (row.standing == Standing::kPseudo) {
      ++pseudo;
    } else if (row.beyond()) {
      ++differ;
    } else if (IsDetail(row) || row.section == CompareSection::kApplication) {
      ++same_series;
    } else {
      same += (same.empty() ? "" : ", ") + Printable(row.name);
    }
  }
  std::string out;
  if (same_series > 0) {
    same += fmt::format("{}{} series", same.empty() ? "" : " and ", same_series);
  }
  if (!same.empty()) out += "Within noise: " + same + "\n";
  if (differ > 0) out += fmt::format("{} more differ that matter less\n", differ);
  if (pseudo > 0) out += fmt::format("{} of /proc, /sys and the like\n", pseudo);
  return out.empty() ? out : out + "--all shows all of them\n";
}

std::string WeightText(const CompareRow& row) {
  if (std::isnan(row.weight)) return "-";
  if (row.weight > 0 && row.weight < kLeastWeight) return "< 0.1 %";
  return text::Percent(row.weight);
}

std::string NumbersTable(const Difference& diff, bool all, const Environment& env) {
  std::vector<text::Table::Column> columns = {{"", kLeft}, {"", kLeft}, {"", kLeft, true}};
  for (const auto& group : diff.groups) columns.push_back({group.label, kRight});
  const bool two = diff.groups.size() == 2;
  for (size_t g = 1; g < diff.groups.size(); ++g) {
    columns.push_back({two ? "change" : diff.groups[g].label + " to A", kRight});
    columns.push_back({"noise", kRight});
  }
  columns.push_back({"weight", kRight});
  text::Table table(std::move(columns));
  const std::vector<const CompareRow*> shown = Chosen(diff, all);
  for (const CompareRow* row : shown) {
    std::vector<std::string> cells = {row->beyond() ? "*" : "", std::string(ToString(row->section)),
                                      Printable(row->name)};
    for (const Band& band : row->groups) cells.push_back(BandText(band, row->unit));
    for (size_t c = 0; c < row->changes.size(); ++c) {
      cells.push_back(ChangeText(*row, c));
      cells.push_back(NoiseText(*row, c));
    }
    cells.push_back(WeightText(*row));
    table.Row(std::move(cells));
  }
  return (shown.empty() ? "" : table.Render("", env.width)) + Folded(diff, shown);
}

std::string StateOf(const Difference::Group& group) {
  std::string states;
  for (const ProfileEntry& entry : group.entries) {
    const std::string state(ToString(entry.job.state));
    if (states.find(state) == std::string::npos) states += (states.empty() ? "" : ", ") + state;
  }
  return states;
}

double LeastCoverage(const Difference::Group& group) {
  double least = 1;
  for (const ProfileEntry& entry : group.entries) {
    least = std::min(least, entry.job.coverage.Ratio());
  }
  return least;
}

std::string RunsTable(const Difference& diff, const Environment& env) {
  text::Table table({{"", kLeft},
                     {"step", kLeft},
                     {"name", kLeft, true},
                     {"state", kLeft},
                     {"nodes", kRight},
                     {"tasks", kRight},
                     {"level", kRight},
                     {"start", kLeft},
                     {"coverage", kRight},
                     {"command", kLeft, true}});
  for (const auto& group : diff.groups) {
    const JobDescription& job = group.entries.front().job;
    std::string steps = Printable(job.id.ToString());
    if (group.entries.size() > 1) steps += fmt::format(" and {} more", group.entries.size() - 1);
    table.Row({group.label, steps, Printable(StepTitle(job.name, job.command)), StateOf(group),
               std::to_string(job.expected_nodes), std::to_string(job.expected_tasks),
               std::to_string(job.level), FormatLocalMinute(job.start),
               text::Percent(LeastCoverage(group)), Printable(job.command)});
  }
  return table.Render("", env.width);
}

// The differences that matter most, in one line.
std::string Headline(const Difference& diff) {
  std::string out;
  size_t count = 0;
  for (const CompareRow& row : diff.comparison.rows) {
    if (!row.beyond() || row.section == CompareSection::kOther ||
        row.standing == Standing::kPseudo) {
      continue;
    }
    if (++count > kHeadlines) continue;
    for (size_t c = 0; c < row.changes.size(); ++c) {
      if (!row.changes[c].beyond) continue;
      const std::string who = diff.groups.size() > 2 ? " in " + diff.groups[c + 1].label : "";
      const bool summed = row.section <= CompareSection::kIo;
      out += fmt::format("{}{}{} {}{}", out.empty() ? "" : ", ",
                         summed ? "" : std::string(ToString(row.section)) + " ",
                         Printable(row.name), ChangeText(row, c), who);
      break;
    }
  }
  if (count == 0) return "No difference in what matters is beyond noise.\n";
  if (count > kHeadlines) out += fmt::format(", and {} more", count - kHeadlines);
  return "Beyond noise: " + out + "\n";
}

// Reasons to doubt the comparison itself.
std::string Warnings(const Difference& diff) {
  std::string out;
  const JobDescription& base = diff.groups.front().entries.front().job;
  for (const auto& group : diff.groups) {
    for (const ProfileEntry& entry : group.entries) {
      const JobDescription& job = entry.job;
      const std::string id = Printable(job.id.ToString());
      if (job.coverage.Ratio() < 0.95) {
        out += fmt::format("{}: only {} of its samples are there\n", id,
                           text::Percent(job.coverage.Ratio()));
      }
      if (job.state != EndState::kCompleted) {
        out += fmt::format("{}: it did not complete ({})\n", id, ToString(job.state));
      }
      if (job.expected_nodes != base.expected_nodes || job.expected_tasks != base.expected_tasks) {
        out += fmt::format("{}: {} nodes and {} tasks, against {} and {}\n", id, job.expected_nodes,
                           job.expected_tasks, base.expected_nodes, base.expected_tasks);
      }
      if (job.level != base.level || job.period != base.period) {
        out += fmt::format("{}: another level or period, so some series are in one only\n", id);
      }
    }
  }
  return out;
}

std::string Sparkline(const std::vector<double>& values, double top, bool unicode) {
  static constexpr std::string_view kBlocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                                 "\u2585", "\u2586", "\u2587", "\u2588"};
  static constexpr std::string_view kAscii = "_.,-=+*#";
  std::string out;
  for (const double value : values) {
    if (std::isnan(value)) {
      out += ' ';
      continue;
    }
    const double share = top > 0 ? std::clamp(value / top, 0.0, 1.0) : 0;
    const auto step = static_cast<size_t>(std::lround(share * 7));
    out += unicode ? kBlocks[step] : kAscii.substr(step, 1);
  }
  return out;
}

// Merges neighbours until there are at most `width`.
std::vector<double> Narrowed(const std::vector<Band>& bands, double Band::*which, size_t width) {
  std::vector<double> out;
  const size_t each = (bands.size() + width - 1) / width;
  for (size_t begin = 0; begin < bands.size(); begin += each) {
    std::vector<double> part;
    for (size_t i = begin; i < std::min(begin + each, bands.size()); ++i) {
      part.push_back(bands[i].*which);
    }
    out.push_back(BandOf(std::move(part)).mean);
  }
  return out;
}

std::string Plot(const Difference& diff, const std::string& metric, const Environment& env) {
  std::vector<std::vector<Band>> groups;
  double top = 0;
  const BinnedSeries* known = nullptr;
  for (const auto& group : diff.groups) {
    std::vector<std::vector<double>> runs;
    for (const BinnedRun& run : group.bins) {
      runs.push_back(SumOf(run, metric));
      for (const auto& [name, series] : run) {
        if (series.series.metric.name == metric) known = &series;
      }
    }
    groups.push_back(BandsOf(runs));
    for (const Band& band : groups.back()) top = std::fmax(top, band.max);
  }
  if (known == nullptr) return "";
  const Metric& what = known->series.metric;
  const size_t width = std::clamp<size_t>(env.width, 40, 110) - 12;
  std::string out =
      fmt::format("\n{}, 0 to {}\n", metric, text::Value(top, what.unit, known->PerSecond()));
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto line = [&](std::string_view name, double Band::*which) {
      out += fmt::format("  {} {:4} {}\n", diff.groups[g].label, name,
                         Sparkline(Narrowed(groups[g], which, width), top, env.unicode));
    };
    const bool several = diff.groups[g].runs.size() > 1;
    if (several) line("max", &Band::max);
    line(several ? "mean" : "", &Band::mean);
    if (several) line("min", &Band::min);
  }
  return out;
}

}  // namespace

std::string DiffToText(const Difference& diff, const DiffTextOptions& options,
                       const Environment& env) {
  std::string out = RunsTable(diff, env) + "\n";
  out += Headline(diff);
  out += NoiseStory(diff) + "\n\n";
  out += NumbersTable(diff, options.all, env);
  std::string plots;
  for (const std::string& metric : options.plots) plots += Plot(diff, metric, env);
  if (!plots.empty()) {
    out += plots;
    const std::string zero = diff.phase.empty() ? "the start" : "phase " + Printable(diff.phase);
    out += fmt::format("  from {} before {} to {} behind it\n",
                       text::Value(diff.axis.before, "seconds"), zero,
                       text::Value(diff.axis.behind, "seconds"));
  }
  const std::string warnings = Warnings(diff);
  return warnings.empty() ? out : out + "\n" + warnings;
}

}  // namespace sonde::cli
