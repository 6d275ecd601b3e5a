#include "profiles/compare/load.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "profiles/compare/find_runs.h"
#include "profiles/records/card.h"
#include "profiles/select/select.h"

namespace sonde {
namespace {

constexpr size_t kMostBesides = 20;
constexpr size_t kEnoughDegrees = 3;
constexpr size_t kBins = 240;
constexpr std::string_view kPhase = "phase:";

Result<Entries> FindGroup(const Archive& archive, std::string_view word) {
  Entries group;
  while (true) {
    const std::string one(word.substr(0, word.find(',')));
    auto entry = FindRun(archive, one);
    if (!entry.ok()) return entry.status();
    group.push_back(*std::move(entry));
    if (one.size() == word.size()) return group;
    word.remove_prefix(one.size() + 1);
  }
}

// The groups that are compared. With a command the first one is of that command's last runs.
Result<std::vector<Entries>> FindGroups(const Archive& archive, const DiffQuestion& question) {
  std::vector<Entries> groups;
  for (const std::string& word : question.groups) {
    auto group = FindGroup(archive, word);
    if (!group.ok()) return group.status();
    groups.push_back(*std::move(group));
  }
  if (question.command.empty()) return groups;
  const bool alone = groups.empty();
  auto runs = RunsOf(archive, question.command, {}, groups, question.last + (alone ? 1 : 0));
  if (!runs.ok()) return runs.status();
  if (alone && !runs->empty()) {
    groups.push_back({std::move(runs->front())});
    runs->erase(runs->begin());
  }
  if (runs->empty()) {
    return Status(Code::kNotFound,
                  fmt::format("there are no runs of '{}' to compare with", question.command));
  }
  groups.insert(groups.begin(), *std::move(runs));
  return groups;
}

// Other runs of the same command with as many nodes and tasks; they show the noise.
Result<Entries> FindBesides(const Archive& archive, const std::vector<Entries>& groups) {
  size_t degrees = 0;
  for (const Entries& group : groups) degrees += group.size() - 1;
  if (degrees >= kEnoughDegrees) return Entries();
  const JobDescription& job = groups.front().front().job;
  Selection selection;
  selection.command = CardText(job.command, kMaxCardCommand);
  selection.state = EndState::kCompleted;
  auto besides = EndedOf(archive, selection, groups, kMostBesides, [&](const Card& card) {
    return card.command == selection.command && card.nodes == job.expected_nodes &&
           card.tasks == job.expected_tasks && card.level == job.level;
  });
  // A card holds only the beginning of a long command line.
  if (besides.ok()) {
    std::erase_if(*besides, [&](const ProfileEntry& e) { return e.job.command != job.command; });
  }
  return besides;
}

// Loads everything; the profiles first, since the axis depends on them.
class Loading {
 public:
  Loading(const Archive& archive, const std::vector<Entries>& groups, const Entries& besides,
          const OnStep& on_step)
      : archive_(archive), groups_(groups), besides_(besides), on_step_(on_step) {
    total_ = besides.size();
    for (const Entries& group : groups) total_ += 2 * group.size();
  }

  Result<Difference> Load(const std::string& phase) {
    Difference diff;
    diff.phase = phase;
    diff.besides = besides_.size();
    for (const Entries& entries : groups_) {
      Difference::Group group;
      group.label = std::string(1, static_cast<char>('A' + diff.groups.size()));
      group.entries = entries;
      SONDE_RETURN_IF_ERROR(LoadRuns(entries, group.runs));
      diff.groups.push_back(std::move(group));
    }
    ComparedGroup besides;
    SONDE_RETURN_IF_ERROR(LoadRuns(besides_, besides));
    SONDE_RETURN_IF_ERROR(LoadBins(diff));
    diff.comparison = Compare(Runs(diff), besides);
    PutWeightiestFirst(diff.comparison);
    return diff;
  }

 private:
  Status LoadRuns(const Entries& entries, ComparedGroup& runs) {
    for (const ProfileEntry& entry : entries) {
      auto run = LoadRun(archive_, entry);
      if (!run.ok()) return run.status().Within(entry.job.id.ToString());
      runs.push_back(*std::move(run));
      if (on_step_) on_step_(++done_, total_);
    }
    return {};
  }
  Status LoadBins(Difference& diff) {
    std::vector<const Profile*> profiles;
    std::vector<Nanos> zeros;
    for (const auto& group : diff.groups) {
      for (const ComparedRun& run : group.runs) {
        const Result<Nanos> zero = ZeroOf(run.profile, diff.phase);
        if (!zero.ok()) return zero.status();
        profiles.push_back(&run.profile);
        zeros.push_back(*zero);
      }
    }
    diff.axis = AxisOf(profiles, zeros, kBins);
    size_t at = 0;
    WantedMetrics all;
    for (auto& group : diff.groups) {
      for (size_t i = 0; i < group.runs.size(); ++i) {
        auto bins = ReadBins(archive_, group.entries[i], zeros[at++], diff.axis, all);
        if (!bins.ok()) return bins.status().Within(group.entries[i].job.id.ToString());
        group.runs[i].variation = VariationOf(*bins);
        group.bins.push_back(*std::move(bins));
        if (on_step_) on_step_(++done_, total_);
      }
    }
    return {};
  }
  static std::vector<ComparedGroup> Runs(const Difference& diff) {
    std::vector<ComparedGroup> runs;
    for (const auto& group : diff.groups) runs.push_back(group.runs);
    return runs;
  }

  const Archive& archive_;
  const std::vector<Entries>& groups_;
  const Entries& besides_;
  const OnStep& on_step_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace

Result<std::string> ParseAlign(std::string_view text) {
  if (text == "start") return std::string();
  if (text.starts_with(kPhase)) return std::string(text.substr(kPhase.size()));
  return Status(Code::kInvalid, fmt::format("expected start or phase:NAME, not '{}'", text));
}

Result<Difference> LoadDifference(const Archive& archive, const DiffQuestion& question,
                                  const OnStep& on_step) {
  const bool enough = question.groups.size() >= 2 || !question.command.empty();
  if (!enough || question.groups.size() > kMostGroups) {
    return Status(Code::kInvalid, fmt::format("name 2 to {} runs or groups of them", kMostGroups));
  }
  const auto groups = FindGroups(archive, question);
  if (!groups.ok()) return groups.status();
  size_t runs = 0;
  for (const Entries& group : *groups) runs += group.size();
  if (runs > kMostRuns) {
    return Status(Code::kInvalid,
                  fmt::format("at most {} runs can be compared at once", kMostRuns));
  }
  const auto besides = FindBesides(archive, *groups);
  if (!besides.ok()) return besides.status();
  return Loading(archive, *groups, *besides, on_step).Load(question.phase);
}

}  // namespace sonde
