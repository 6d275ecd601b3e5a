#include "profiles/compare/find_runs.h"

#include <algorithm>
#include <utility>

#include "profiles/archive/listed_cards.h"
#include "profiles/archive/node_rows.h"

namespace sonde {
namespace {

constexpr size_t kLooked = 1000;  // profiles of a command that are searched for similar runs

bool IsIn(const std::vector<Entries>& groups, std::string_view key) {
  return std::any_of(groups.begin(), groups.end(), [&](const Entries& group) {
    return std::any_of(group.begin(), group.end(),
                       [&](const ProfileEntry& one) { return one.key == key; });
  });
}

}  // namespace

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

Result<Entries> RunsOf(const Archive& archive, const std::string& text,
                       std::optional<EndState> state, const std::vector<Entries>& groups,
                       size_t most) {
  const auto any = [](const Card&) { return true; };
  Selection by_command;
  by_command.command = text;
  by_command.state = state;
  auto runs = EndedOf(archive, std::move(by_command), groups, most, any);
  if (!runs.ok()) return runs;
  Selection by_name;
  by_name.name = text;
  by_name.state = state;
  auto named = EndedOf(archive, std::move(by_name), groups, most, any);
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

}  // namespace sonde
