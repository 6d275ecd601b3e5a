// sonde grep: finds profiles whose description has a text.
#include <fmt/core.h>
#include <re2/re2.h>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/selection.h"
#include "profiles/json/writer.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

struct GrepOptions {
  std::string pattern;
  SelectionWords filters;
  size_t count = 20;
  bool all = false;
  bool fold = false;
  bool json = false;
};

struct Match {
  std::string field;
  std::string text;
};
struct Found {
  ProfileEntry entry;
  std::vector<Match> matches;
};

// Every text of a description, with its name.
template <typename F>
void ForEachText(const JobDescription& job, const F& f) {
  f("step", job.id.ToString());
  if (!job.array_job.empty()) f("array", job.array_job + "_" + job.array_task);
  f("het_job", job.het_job);
  f("cluster", job.cluster);
  f("name", job.name);
  f("user", job.user);
  f("account", job.account);
  f("partition", job.partition);
  f("command", job.command);
  f("workdir", job.workdir);
  f("launch_host", job.launch_host);
  f("state", std::string(ToString(job.state)));
  for (const NodeInfo& node : job.nodes) {
    f("node", node.host);
    f("note", node.note);
  }
  for (const std::string& note : job.notes) f("note", note);
  for (const Figure& figure : job.figures) f("figure", figure.name);
  for (const auto& [name, value] : job.tags) f("tag", name + "=" + value);
  for (const auto& [name, value] : job.environment) f("environment", name + "=" + value);
  f("version", job.version);
}

std::vector<Match> MatchesOf(const JobDescription& job, const RE2& pattern) {
  std::vector<Match> matches;
  ForEachText(job, [&](const char* field, const std::string& text) {
    if (!text.empty() && RE2::PartialMatch(text, pattern)) matches.push_back({field, text});
  });
  return matches;
}

Result<std::vector<Found>> Search(const Archive& archive, const GrepOptions& options,
                                  const RE2& pattern, Nanos now) {
  const auto selection = SelectionOf(options.filters, now);
  if (!selection.ok()) return selection.status();
  const auto profiles = archive.Select(*selection, now);
  if (!profiles.ok()) return profiles.status();
  Progress progress("searching", "profiles");
  std::vector<Found> found;
  uint64_t done = 0;
  for (const ListedProfile& one : *profiles) {
    progress.Set(done++, profiles->size());
    auto entry = archive.Entry(one.key);
    if (!entry.ok()) continue;  // an unreadable description has no text
    std::vector<Match> matches = MatchesOf(entry->job, pattern);
    if (matches.empty()) continue;
    found.push_back({*std::move(entry), std::move(matches)});
    if (!options.all && found.size() == options.count) break;
  }
  return found;
}

std::string AsText(const std::vector<Found>& found, const Environment& env) {
  std::string out;
  for (const Found& one : found) {
    for (const Match& match : one.matches) {
      const std::string line =
          fmt::format("{}  {}: {}", one.entry.job.id.ToString(), match.field, match.text);
      out += text::Cut(text::Printable(line), env.width) + "\n";
    }
  }
  return out;
}

std::string AsJson(const std::vector<Found>& found) {
  std::string out;
  JsonWriter w(out);
  w.BeginArray();
  for (const Found& one : found) {
    w.BeginObject().Field("key", one.entry.key).Field("job", one.entry.job.id.job);
    w.Field("step", one.entry.job.id.step).Field("start", one.entry.job.start);
    w.Key("matches").BeginArray();
    for (const Match& match : one.matches) {
      w.BeginObject().Field("field", match.field).Field("text", match.text).EndObject();
    }
    w.EndArray().EndObject();
  }
  w.EndArray();
  return out + "\n";
}

int Grep(const GrepOptions& options, const Environment& env) {
  RE2::Options how(RE2::Quiet);
  how.set_case_sensitive(!options.fold);
  const RE2 pattern(options.pattern, how);
  if (!pattern.ok()) {
    return FailUsage(
        {Code::kInvalid,
         fmt::format("'{}' is no regular expression of RE2: {}; \\Q...\\E takes a text "
                     "as it is",
                     options.pattern, pattern.error())});
  }
  const auto archive = OpenIndexed(env, true, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto found = Search(*archive->reader, options, pattern, Clock::System().Now());
  if (!found.ok()) return FailUsage(found.status());
  NoteDamage(*archive->reader);
  if (options.json) return Print(AsJson(*found));
  if (found->empty()) {
    return Fail({Code::kNotFound, fmt::format("no profile has '{}'", options.pattern)});
  }
  return Print(AsText(*found, env));
}

}  // namespace

void RegisterGrep(Arguments app, Run& run) {
  auto options = std::make_shared<GrepOptions>();
  Arguments sub =
      app.Command("grep", "List profiles in whose description a regular expression is found");
  sub.Option("PATTERN", options->pattern, "A regular expression of RE2").Required();
  AddSelectionOptions(sub, options->filters);
  sub.Flag("-i,--ignore-case", options->fold, "Capitals or not");
  sub.Option("-n,--limit", options->count, "How many profiles at most, the newest first")
      .ShowDefault()
      .Within(1, 1'000'000);
  sub.Flag("--all", options->all, "All of them");
  sub.Flag("--json", options->json, "As JSON");
  sub.OnRead(
      [options, &run] { run = [options](const Environment& env) { return Grep(*options, env); }; });
}

}  // namespace sonde::cli
