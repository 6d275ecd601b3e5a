// The lines above the table: which step, how far it is, what is missing, and who stands out.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/top/layout.h"
#include "cli/top/standouts.h"
#include "core/text/hostlist.h"
#include "profiles/model/text.h"

namespace sonde::cli::top {
namespace {

constexpr size_t kMostNamed = 3;  // hosts that are named in a line

std::string Counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::vector<Parts> StepLine(const Model& model, const Look& look) {
  const JobDescription& job = model.job();
  Parts line = {{fmt::format(" {} ", model.id()), Style::kTitle}};
  if (!job.name.empty()) line.push_back({" " + job.name, Style::kBold});
  if (!job.command.empty()) line.push_back({"  " + job.command, Style::kPlain});
  size_t used = 0;
  for (const Part& part : line) used += LettersOf(part.text);
  const size_t user = LettersOf(job.user);
  // The user stands at the end, and the command is cut for that.
  if (user > 0 && look.width > user + 30) {
    const size_t room = look.width - user - 2;
    if (used > room) {
      Part& last = line.back();
      const size_t least = LettersOf(last.text) - std::min(LettersOf(last.text), used - room);
      last.text = text::Cut(Printable(last.text), least);
      used = room;
    }
    line.push_back({std::string(look.width - user - std::min(used, look.width - user), ' ')});
    line.push_back({job.user, Style::kDim});
  }
  return {line};
}

Parts Elapsed(const Model& model, const Look& look) {
  const JobDescription& job = model.job();
  const Nanos end = model.ended() ? model.ended_at() : look.now;
  Parts parts = {{ClockText(end - job.start), Style::kBold}};
  if (model.ended()) {
    parts.insert(parts.begin(), Part{"lasted "});
    return parts;
  }
  parts.push_back({" elapsed"});
  if (!job.request || job.request->time_limit <= 0 ||
      job.request->time_limit == JobRequest::kNoLimit) {
    return parts;
  }
  const Nanos limit = job.request->time_limit;
  const Nanos begun =
      job.request->begun > 0 && job.request->begun <= job.start ? job.request->begun : job.start;
  const Nanos left = limit - (end - begun);
  parts.back().text = fmt::format(" of {}", ClockText(limit));
  parts.push_back(
      {fmt::format(", {} left", ClockText(left)), left < limit / 20 ? Style::kBad : Style::kPlain});
  return parts;
}

std::vector<Parts> StateLines(const Model& model, const Look& look) {
  const JobDescription& job = model.job();
  std::vector<Parts> groups;
  groups.push_back({{fmt::format("{}, {}", Counted(job.expected_nodes, "node"),
                                 Counted(job.expected_tasks, "task"))}});
  groups.push_back(Elapsed(model, look));
  const double coverage = job.coverage.Ratio();
  groups.push_back(
      {{"coverage "}, {text::Percent(coverage), coverage < 0.99 ? Style::kWarn : Style::kPlain}});
  const size_t missing = model.LostHosts().size() + model.NotCome();
  if (missing == 0) {
    groups.push_back({{"no node missing"}});
  } else {
    groups.push_back({{Counted(missing, "node") + " missing", Style::kBad}});
  }
  if (model.alarms().empty()) {
    groups.push_back({{"no alarm"}});
  } else {
    groups.push_back({{Counted(model.alarms().size(), "alarm"), Style::kBad}, {" (a)"}});
  }
  return Flow(groups, look.width);
}

std::string Named(std::vector<std::string> hosts) {
  const size_t all = hosts.size();
  hosts.resize(std::min(all, kMostNamed));
  std::string text = CompressHosts(hosts);
  if (all > kMostNamed) text += fmt::format(" and {} more", all - kMostNamed);
  return text;
}

// What keeps the frame from being whole, each in a line of its own.
std::vector<Parts> TroubleLines(const Model& model, const Look& look) {
  std::vector<Parts> lines;
  if (model.ended()) {
    lines.push_back({{fmt::format(" The step has ended: {}, at {}. See it again: sonde show {}",
                                  StateWord(model.job()), TimeOfDay(model.ended_at()), model.id()),
                      Style::kTitle}});
    return lines;
  }
  if (model.silent_since() != 0) {
    lines.push_back({{fmt::format("no answer since {} ({}): {}", TimeOfDay(model.silent_since()),
                                  ClockText(look.now - model.silent_since()), model.problem()),
                      Style::kBad}});
  }
  if (const auto lost = model.LostHosts(); !lost.empty()) {
    lines.push_back({{fmt::format("lost: {}", Named(lost)), Style::kBad}});
  }
  if (model.NotCome() > 0 && model.known()) {
    lines.push_back(
        {{fmt::format("{} not come yet, or {} no Sonde",
                      Counted(model.NotCome(), "node") + (model.NotCome() == 1 ? " has" : " have"),
                      model.NotCome() == 1 ? "has" : "have"),
          Style::kWarn}});
  }
  return lines;
}

// "n3 CPU 12 % (the others 97 %)".
Part StandoutPart(const std::string& who, Column column, const Standout& found) {
  std::string text =
      fmt::format("{} {} {}", who, InfoOf(column).title, ValueOf(column, found.value));
  if (found.others > 0) text += fmt::format(" and {} more", found.others);
  text += fmt::format(" (median {})", ValueOf(column, found.median));
  const bool bad = column == Column::kMemory ? found.value >= 0.9 : true;
  return {text, bad ? Style::kBad : Style::kWarn};
}

// The rows that are compared: nodes, or the ranks of one.
std::vector<double> ValuesOf(const Model& model, bool of_ranks, Column column) {
  const size_t c = IndexOf(column);
  std::vector<double> values;
  values.reserve(of_ranks ? model.ranks().size() : model.nodes().size());
  if (of_ranks) {
    for (const Rank& rank : model.ranks()) values.push_back(rank.values[c]);
  } else {
    for (const Node& node : model.nodes()) values.push_back(node.values[c]);
  }
  return values;
}

bool IsJudged(const Model& model, bool of_ranks, Column column, Nanos now) {
  const ColumnInfo& info = InfoOf(column);
  return info.ratio && (of_ranks ? info.of_tasks : model.KnowsAll(column, now));
}

// "no node stands out", "no node stands out by CPU": by those of a large step that are known now.
std::string NobodyText(const Model& model, bool of_ranks, const Values& medians, Nanos now) {
  if (of_ranks) return "no rank stands out";
  std::vector<std::string_view> by;
  bool all = true;
  for (const Column column : model.columns()) {
    if (!std::isnan(medians[IndexOf(column)])) by.push_back(InfoOf(column).title);
    all = all && (!InfoOf(column).ratio || model.KnowsAll(column, now));
  }
  std::string text = "no node stands out";
  if (all) return text;
  for (size_t i = 0; i < by.size(); ++i) {
    text += i == 0 ? " by " : i + 1 == by.size() ? " and " : ", ";
    text += by[i];
  }
  return text;
}

size_t SilentNodes(const Model& model) {
  return static_cast<size_t>(
      std::count_if(model.nodes().begin(), model.nodes().end(),
                    [](const Node& node) { return node.silent && !node.lost; }));
}

// What is so on most nodes is no standout, and yet worth a look.
void AddWhole(Column column, double median, fmt::format_string<std::string> words,
              std::vector<Parts>& groups) {
  const bool low = InfoOf(column).low_is_worst;
  if (!(low ? median < 0.5 : median > 0.3)) return;
  groups.push_back({{fmt::format(words, ValueOf(column, median)), Style::kWarn}});
}

std::vector<Parts> StandoutLines(const Model& model, const View& view, const Look& look) {
  const bool of_ranks = view.level != Level::kNodes;
  std::vector<Parts> groups;
  if (const size_t silent = of_ranks ? 0 : SilentNodes(model); silent > 0) {
    groups.push_back({{Counted(silent, "node") + " without values", Style::kBad}});
  }
  Values medians = kNoValues;
  for (const Column column : model.columns()) {
    if (!IsJudged(model, of_ranks, column, look.now)) continue;
    const std::vector<double> values = ValuesOf(model, of_ranks, column);
    medians[IndexOf(column)] = MedianOf(values);
    const auto found = StandoutOf(column, values);
    if (!found) continue;
    const std::string who = of_ranks ? fmt::format("rank {}", model.ranks()[found->place].rank)
                                     : model.nodes()[found->place].host;
    groups.push_back({StandoutPart(who, column, *found)});
  }
  const bool judged = std::any_of(medians.begin(), medians.end(),
                                  [](double median) { return !std::isnan(median); });
  if (!judged && groups.empty()) return {};
  if (groups.empty()) {
    groups.push_back({{NobodyText(model, of_ranks, medians, look.now), Style::kGood}});
  } else {
    groups.front().insert(groups.front().begin(), Part{"look at: "});
  }
  if (!of_ranks) {
    const auto of = [&](Column column) { return medians[IndexOf(column)]; };
    AddWhole(Column::kCpu, of(Column::kCpu), "CPUs mostly idle: {} busy in the median", groups);
    AddWhole(Column::kMpi, of(Column::kMpi), "MPI waits {} of the time in the median", groups);
  }
  return Flow(groups, look.width, 2);  // a line that began with a name would look like a row
}

void Append(std::vector<Parts> more, std::vector<Parts>& lines) {
  for (Parts& line : more) lines.push_back(std::move(line));
}

}  // namespace

std::vector<Parts> Flow(const std::vector<Parts>& groups, size_t width, size_t indent) {
  std::vector<Parts> lines;
  size_t used = 0;
  for (const Parts& group : groups) {
    size_t letters = 0;
    for (const Part& part : group) letters += LettersOf(part.text);
    if (!lines.empty() && used + 3 + letters <= width) {
      lines.back().push_back({"   "});
      used += 3;
    } else {
      used = lines.empty() ? 0 : indent;
      lines.emplace_back();
      if (used > 0) lines.back().push_back({std::string(used, ' ')});
    }
    for (const Part& part : group) lines.back().push_back(part);
    used += letters;
  }
  return lines;
}

std::vector<Parts> HeadLines(const Model& model, const View& view, const Look& look) {
  std::vector<Parts> lines = StepLine(model, look);
  if (!model.known()) {
    if (model.silent_since() != 0) Append(TroubleLines(model, look), lines);
    lines.push_back({{"asking the head of the step ..."}});
    return lines;
  }
  Append(StateLines(model, look), lines);
  Append(TroubleLines(model, look), lines);
  if (!model.alarms().empty() && view.panel == Panel::kNone) {
    const Alarm& alarm = model.alarms().front();
    const std::string where = alarm.node.empty() ? "" : " on " + alarm.node;
    lines.push_back({{fmt::format("alarm {}{}: {}", alarm.name, where, alarm.text), Style::kBad}});
  }
  if (!model.ended()) Append(StandoutLines(model, view, look), lines);
  return lines;
}

}  // namespace sonde::cli::top
