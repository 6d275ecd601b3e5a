#include "cli/diff/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/step_table.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

using text::Printable;
using enum text::Table::Align;

constexpr size_t kMostOthers = 12;  // rows of the rest of the footprint
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

// A row's difference, in multiples of its noise.
double Weight(const CompareRow& row) {
  double most = 0;
  for (const Change& change : row.changes) {
    most = std::max(most, change.noise > 0 ? std::abs(change.difference) / change.noise
                                           : (change.beyond ? HUGE_VAL : 0));
  }
  return most;
}

std::vector<const CompareRow*> Chosen(const Difference& diff, bool all, size_t& hidden) {
  std::vector<const CompareRow*> rows;
  std::vector<const CompareRow*> others;
  for (const CompareRow& row : diff.comparison.rows) {
    const bool detail =
        row.section == CompareSection::kOther || row.section == CompareSection::kGpu;
    if (!detail || all) {
      rows.push_back(&row);
    } else if (row.beyond()) {
      others.push_back(&row);
    } else {
      ++hidden;
    }
  }
  std::stable_sort(others.begin(), others.end(), [](const CompareRow* a, const CompareRow* b) {
    return a->section != b->section ? a->section < b->section : Weight(*a) > Weight(*b);
  });
  if (others.size() > kMostOthers) {
    hidden += others.size() - kMostOthers;
    others.resize(kMostOthers);
  }
  rows.insert(rows.end(), others.begin(), others.end());
  std::stable_sort(rows.begin(), rows.end(), [](const CompareRow* a, const CompareRow* b) {
    return a->section < b->section;
  });
  return rows;
}

std::string NumbersTable(const Difference& diff, bool all, const Environment& env) {
  std::vector<text::Table::Column> columns = {{"", kLeft}, {"", kLeft}, {"", kLeft, true}};
  for (const auto& group : diff.groups) columns.push_back({group.label, kRight});
  const bool two = diff.groups.size() == 2;
  for (size_t g = 1; g < diff.groups.size(); ++g) {
    columns.push_back({two ? "change" : diff.groups[g].label + " to A", kRight});
    columns.push_back({"noise", kRight});
  }
  text::Table table(std::move(columns));
  size_t hidden = 0;
  CompareSection section = CompareSection::kOther;
  bool first = true;
  for (const CompareRow* row : Chosen(diff, all, hidden)) {
    const bool title = std::exchange(first, false) || row->section != section;
    section = row->section;
    std::vector<std::string> cells = {row->beyond() ? "*" : "",
                                      title ? std::string(ToString(section)) : "",
                                      Printable(row->name)};
    for (const Band& band : row->groups) cells.push_back(BandText(band, row->unit));
    for (size_t c = 0; c < row->changes.size(); ++c) {
      cells.push_back(ChangeText(*row, c));
      cells.push_back(NoiseText(*row, c));
    }
    table.Row(std::move(cells));
  }
  std::string out = table.Render("", env.width);
  if (hidden > 0) out += fmt::format("and {} more series; --all shows them\n", hidden);
  return out;
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
    table.Row({group.label, steps, Printable(job.name), StateOf(group),
               std::to_string(job.expected_nodes), std::to_string(job.expected_tasks),
               std::to_string(job.level), LocalTime(job.start), text::Percent(LeastCoverage(group)),
               Printable(job.command)});
  }
  return table.Render("", env.width);
}

// The differences that matter most, in one line.
std::string Headline(const Difference& diff) {
  std::string out;
  size_t count = 0;
  for (const CompareRow& row : diff.comparison.rows) {
    if (!row.beyond() || row.section == CompareSection::kOther) continue;
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
