#include "profiles/compare/load.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "profiles/archive/listed_cards.h"
#include "profiles/archive/node_rows.h"
#include "profiles/records/card.h"
#include "profiles/records/select.h"

namespace sonde {
namespace {

constexpr size_t kLooked = 1000;  // profiles of a command that are searched for similar runs
constexpr size_t kMostBesides = 20;
constexpr size_t kEnoughDegrees = 3;
constexpr size_t kBins = 240;
constexpr std::string_view kPhase = "phase:";

using Entries = std::vector<ProfileEntry>;

// The newest run of a step that has ended, or the profile with that key.
Result<ProfileEntry> FindRun(const Archive& archive, const std::string& word) {
  const auto found = FindSteps(archive, word);
  if (!found.ok()) {
    auto entry = archive.Entry(word);
    if (entry.ok()) return entry;
    return found.status();
  }
  for (const ProfileEntry& entry : *found) {
    if (!entry.running) return entry;
  }
  return Status(Code::kNotFound, word + " is running: it can be compared when it has ended");
}

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

bool IsIn(const std::vector<Entries>& groups, std::string_view key) {
  return std::any_of(groups.begin(), groups.end(), [&](const Entries& group) {
    return std::any_of(group.begin(), group.end(),
                       [&](const ProfileEntry& one) { return one.key == key; });
  });
}

// The entries of a list that have ended, are not in `groups` and are accepted by `wanted`: the
// first `most`. Reads on until there are that many.
Result<Entries> EndedOf(const Archive& archive, Selection selection,
                        const std::vector<Entries>& groups, size_t most,
                        const std::function<bool(const Card&)>& wanted) {
  constexpr size_t kMore = 64;
  Card card;
  for (selection.limit = most + kMore;; selection.limit *= 4) {
    const auto listed = archive.Select(selection, Clock::System().Now());
    if (!listed.ok()) return listed.status();
    std::vector<std::string_view> keys;
    for (const ListedProfile& one : *listed) {
      const bool known = !one.running && DecodeCard(one.card, card).ok() && wanted(card);
      if (known && !IsIn(groups, one.key) && keys.size() < most) keys.push_back(one.key);
    }
    if (keys.size() < most && listed->size() == selection.limit && selection.limit < kLooked) {
      continue;
    }
    Entries entries;
    for (const std::string_view key : keys) {
      auto entry = archive.Entry(std::string(key));
      if (!entry.ok()) return entry.status();
      entries.push_back(*std::move(entry));
    }
    return entries;
  }
}

// The newest runs whose command line or name has the text. The indexes hold both.
Result<Entries> RunsOf(const Archive& archive, const std::string& text,
                       const std::vector<Entries>& groups, size_t most) {
  const auto any = [](const Card&) { return true; };
  Selection by_command;
  by_command.command = text;
  auto runs = EndedOf(archive, by_command, groups, most, any);
  if (!runs.ok()) return runs;
  Selection by_name;
  by_name.name = text;
  auto named = EndedOf(archive, by_name, groups, most, any);
  if (!named.ok()) return named;
  for (ProfileEntry& entry : *named) {
    if (!IsIn({*runs}, entry.key)) runs->push_back(std::move(entry));
  }
  std::stable_sort(runs->begin(), runs->end(), [](const ProfileEntry& a, const ProfileEntry& b) {
    return a.job.start > b.job.start;
  });
  if (runs->size() > most) runs->resize(most);
  return runs;
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
  auto runs = RunsOf(archive, question.command, groups, question.last + (alone ? 1 : 0));
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

Result<ComparedRun> LoadRun(const Archive& archive, const ProfileEntry& entry) {
  auto profile = archive.Load(entry.key);
  if (!profile.ok()) return profile.status();
  ComparedRun run;
  run.profile = *std::move(profile);
  const auto rows = ReadNodeRows(archive, entry.key, run.profile.job);
  if (!rows.ok()) return rows.status();
  run.summary = Summarize(run.profile, *rows, Clock::System().Now());
  return run;
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
    for (auto& group : diff.groups) {
      for (size_t i = 0; i < group.runs.size(); ++i) {
        auto bins = ReadBins(archive_, group.entries[i], zeros[at++], diff.axis);
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
