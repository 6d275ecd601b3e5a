#include "cli/check/judged.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiles/compare/find_runs.h"

namespace sonde::cli {
namespace {

using insight::Better;
using insight::Judgement;

constexpr size_t kSearched = 400;  // runs of the command, among which those like it are

// The run that is asked about.
Result<ProfileEntry> Asked(const Archive& archive, const std::string& word) {
  auto run = FindRun(archive, word);
  if (run.ok() || run.status().code() != Code::kNotFound) return run;
  auto runs = RunsOf(archive, word, {}, {}, 1);
  if (!runs.ok()) return runs.status();
  if (!runs->empty()) return std::move(runs->front());
  return Status(Code::kNotFound,
                fmt::format("'{}': expected a step that has ended, as in 4711.0, or the text of a "
                            "command or name of which there are runs",
                            word));
}

bool IsLike(const JobDescription& one, const JobDescription& run,
            const std::vector<std::string>& same) {
  const auto tag = [](const JobDescription& job, const std::string& key) {
    const auto at = job.tags.find(key);
    return at == job.tags.end() ? std::string() : at->second;
  };
  return one.command == run.command && one.expected_nodes == run.expected_nodes &&
         one.expected_tasks == run.expected_tasks && one.cluster == run.cluster &&
         one.partition == run.partition && one.start < run.start &&
         std::all_of(same.begin(), same.end(),
                     [&](const std::string& key) { return tag(one, key) == tag(run, key); });
}

Result<Entries> Earlier(const Archive& archive, const ProfileEntry& run,
                        const CheckQuestion& question) {
  const std::string& text = run.job.command.empty() ? run.job.name : run.job.command;
  auto runs = RunsOf(archive, text, EndState::kCompleted, {{run}}, kSearched);
  if (!runs.ok()) return runs;
  std::erase_if(*runs,
                [&](const ProfileEntry& one) { return !IsLike(one.job, run.job, question.same); });
  if (runs->size() > question.last) runs->resize(question.last);
  return runs;
}

// Which way a row is better; nothing: it is not judged.
std::optional<Better> DirectionOf(const CompareRow& row) {
  switch (row.section) {
    case CompareSection::kTime:
    case CompareSection::kMemory:
    case CompareSection::kPhases:
      return Better::kLess;
    case CompareSection::kCpu:
      if (row.name == "CPU time") return Better::kLess;
      return {};
    case CompareSection::kFigures:
      return BetterOf(row.unit);
    default:
      return {};
  }
}

}  // namespace

Better BetterOf(std::string_view unit) {
  if (unit.ends_with("/s") || unit.ends_with("per_second") || unit == "hertz") return Better::kMore;
  for (const std::string_view time : {"s", "ms", "us", "ns", "seconds", "minutes", "hours"}) {
    if (unit == time) return Better::kLess;
  }
  return Better::kUnknown;
}

bool CheckedRun::worse() const {
  return std::any_of(numbers.begin(), numbers.end(),
                     [](const JudgedNumber& one) { return one.judged.worse; });
}

Result<CheckedRun> CheckRun(const Archive& archive, const CheckQuestion& question,
                            const OnStep& on_step) {
  const auto run = Asked(archive, question.word);
  if (!run.ok()) return run.status();
  const auto earlier = Earlier(archive, *run, question);
  if (!earlier.ok()) return earlier.status();
  std::vector<ComparedGroup> groups(2);
  uint64_t done = 0;
  const auto load = [&](const ProfileEntry& entry, ComparedGroup& group) -> Status {
    auto one = LoadRun(archive, entry);
    if (!one.ok()) return one.status();
    group.push_back(*std::move(one));
    on_step(++done, earlier->size() + 1);
    return {};
  };
  SONDE_RETURN_IF_ERROR(load(*run, groups[1]));
  for (const ProfileEntry& entry : *earlier) SONDE_RETURN_IF_ERROR(load(entry, groups[0]));
  CheckedRun out;
  out.key = run->key;
  out.earlier = groups[0].size();
  const Comparison all = Compare(groups, {});
  out.profile = std::move(groups[1].front().profile);
  std::vector<std::pair<const CompareRow*, Better>> rows;
  size_t counting = 0;
  for (const CompareRow& row : all.rows) {
    const std::optional<Better> better = DirectionOf(row);
    if (!better) continue;
    rows.emplace_back(&row, *better);
    counting += *better != Better::kUnknown ? 1 : 0;
  }
  const double chance = CheckedRun::kByChance / static_cast<double>(std::max<size_t>(counting, 1));
  for (const auto& [row, better] : rows) {
    const Judgement judged =
        insight::JudgeRun(row->groups[0].runs, row->groups[1].mean, better, chance, question.least);
    out.numbers.push_back({row->section, row->name, row->unit, better, judged});
  }
  return out;
}

}  // namespace sonde::cli
