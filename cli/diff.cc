// sonde diff: runs beside each other, and what differs beyond noise.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/diff_text.h"
#include "cli/progress.h"

namespace sonde::cli {
namespace {

constexpr size_t kMostGroups = 8;
constexpr size_t kLooked = 1000;  // of the newest profiles, for runs of a command
constexpr size_t kMostBesides = 20;
constexpr size_t kEnoughDegrees = 3;
constexpr size_t kBins = 240;
constexpr std::string_view kPhase = "phase:";

struct Options {
  std::vector<std::string> words;  // A, or A,B,C
  std::string command;
  size_t last = 10;
  std::string align = "start";
  std::vector<std::string> plots = {"task_cpu_seconds_total", "task_resident_memory_bytes"};
  bool no_plots = false;
  bool all = false;
  bool json = false;
};

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

bool IsIn(const std::vector<Entries>& groups, const ProfileEntry& entry) {
  return std::any_of(groups.begin(), groups.end(), [&](const Entries& group) {
    return std::any_of(group.begin(), group.end(),
                       [&](const ProfileEntry& one) { return one.key == entry.key; });
  });
}

// What a word of --cmd means: it is in the command or in the job's name.
bool IsOfCommand(const ProfileEntry& entry, const std::string& command) {
  return entry.job.command.find(command) != std::string::npos ||
         entry.job.name.find(command) != std::string::npos;
}

// The groups that are compared. With --cmd the first one is of that command's last runs.
Result<std::vector<Entries>> FindGroups(const Archive& archive, const Options& options) {
  std::vector<Entries> groups;
  for (const std::string& word : options.words) {
    auto group = FindGroup(archive, word);
    if (!group.ok()) return group.status();
    groups.push_back(*std::move(group));
  }
  if (options.command.empty()) return groups;
  auto newest = archive.List(kLooked);
  if (!newest.ok()) return newest.status();
  Entries runs;
  for (ProfileEntry& entry : *newest) {
    if (entry.running || !IsOfCommand(entry, options.command) || IsIn(groups, entry)) continue;
    if (groups.empty()) {
      groups.push_back({std::move(entry)});
    } else if (runs.size() < options.last) {
      runs.push_back(std::move(entry));
    }
  }
  if (runs.empty()) {
    return Status(Code::kNotFound,
                  fmt::format("there are no runs of '{}' to compare with", options.command));
  }
  groups.insert(groups.begin(), std::move(runs));
  return groups;
}

// Other runs of the same command with as many nodes and tasks, which tell what noise is.
Result<Entries> FindBesides(const Archive& archive, const std::vector<Entries>& groups) {
  size_t degrees = 0;
  for (const Entries& group : groups) degrees += group.size() - 1;
  if (degrees >= kEnoughDegrees) return Entries();
  auto newest = archive.List(kLooked);
  if (!newest.ok()) return newest.status();
  const JobDescription& job = groups.front().front().job;
  Entries besides;
  for (ProfileEntry& entry : *newest) {
    const JobDescription& other = entry.job;
    const bool same = other.command == job.command && other.expected_nodes == job.expected_nodes &&
                      other.expected_tasks == job.expected_tasks && other.level == job.level &&
                      other.state == EndState::kCompleted;
    if (same && !IsIn(groups, entry)) besides.push_back(std::move(entry));
    if (besides.size() == kMostBesides) break;
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

// Loads everything; the profiles first, for the axis is theirs.
class Loading {
 public:
  Loading(const Archive& archive, const std::vector<Entries>& groups, const Entries& besides)
      : archive_(archive), groups_(groups), besides_(besides), progress_("comparing", "steps") {
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
      progress_.Set(++done_, total_);
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
        progress_.Set(++done_, total_);
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
  Progress progress_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

int Usage(std::string_view text) {
  Note(text);
  return kUsage;
}

int Diff(const Environment& env, const Options& options) {
  const bool by_phase = options.align.starts_with(kPhase);
  if (!by_phase && options.align != "start") {
    return Usage("--align: expected start or phase:NAME, not '" + options.align + "'");
  }
  const bool enough = options.words.size() >= 2 || !options.command.empty();
  if (!enough || options.words.size() > kMostGroups) {
    return Usage(
        fmt::format("name 2 to {} runs or groups of them, as in 'sonde diff 1.0 2.0' or "
                    "'sonde diff 1.0,2.0,3.0 4.0', or --cmd COMMAND",
                    kMostGroups));
  }
  const auto archive = OpenArchive(env);
  if (!archive.ok()) return Fail(archive.status());
  const auto groups = FindGroups(**archive, options);
  if (!groups.ok()) return Fail(groups.status());
  const auto besides = FindBesides(**archive, *groups);
  if (!besides.ok()) return Fail(besides.status());
  const auto diff = Loading(**archive, *groups, *besides)
                        .Load(by_phase ? options.align.substr(kPhase.size()) : "");
  if (!diff.ok()) return Fail(diff.status());
  if (options.json) return Print(DiffToJson(*diff));
  DiffTextOptions how;
  how.all = options.all;
  if (!options.no_plots) how.plots = options.plots;
  return Print(DiffToText(*diff, how, env));
}

}  // namespace

void RegisterDiff(CLI::App& app, Run& run) {
  CLI::App* sub = app.add_subcommand("diff", "Compare runs, and say what differs beyond noise");
  const auto options = std::make_shared<Options>();
  sub->add_option("RUN", options->words,
                  "As in 4711.0, or a group of runs between commas: 4711.0,4712.0; the others are "
                  "compared with the first");
  sub->add_option("--cmd", options->command,
                  "Compare with the last runs whose command or name has this text; without RUN "
                  "the newest of them");
  sub->add_option("--last", options->last, "How many runs of --cmd")
      ->capture_default_str()
      ->check(CLI::Range(size_t{1}, size_t{100}));
  sub->add_option("--align", options->align, "start, or phase:NAME: where the first NAME began")
      ->capture_default_str();
  sub->add_option("--plot", options->plots, "Metrics to draw over time, between commas")
      ->delimiter(',');
  sub->add_flag("--no-plot", options->no_plots, "Draw nothing");
  sub->add_flag("--all", options->all, "Every series, also those that do not differ");
  sub->add_flag("--json", options->json, "As JSON, with every value exactly and all series");
  sub->callback(
      [&run, options] { run = [options](const Environment& env) { return Diff(env, *options); }; });
}

}  // namespace sonde::cli
