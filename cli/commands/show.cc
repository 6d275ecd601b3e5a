// sonde show: the report of one step, running or finished.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cli/command.h"
#include "cli/job_steps.h"
#include "cli/step/running_step.h"
#include "cli/step/step_hints.h"
#include "profiles/archive/listed_cards.h"
#include "profiles/archive/node_rows.h"
#include "profiles/compare/binned.h"
#include "profiles/report/report.h"
#include "serve/head_client.h"

namespace sonde::cli {
namespace {

constexpr Nanos kPatience = 3 * kSecond;  // for a head to answer

struct ShowOptions {
  std::string id;
  size_t run = 1;
  bool json = false;
  bool brief = false;
};

// From the head if the step runs; from the archive if it has ended or the head cannot be reached.
Result<Profile> LoadProfile(const Archive& archive, ProfileEntry entry) {
  if (!entry.running) return archive.Load(entry.key);
  const std::string target = "/api/v1/profile?job=" + serve::PercentEncode(entry.job.id.ToString());
  const auto answer = AskRunning(archive, target, kPatience, entry);
  if (!entry.running) return archive.Load(entry.key);
  auto profile = answer.ok() ? ProfileFromJson(*answer) : answer.status();
  if (profile.ok()) return profile;
  Note(fmt::format("{} is running; this is what it has stored so far ({})", entry.job.id.ToString(),
                   profile.status().message()));
  auto stored = archive.Load(entry.key);
  if (stored.ok()) return stored;
  Profile bare;
  bare.job = entry.job;
  return bare;
}

// Of the application's metrics, from the rows stored so far. A report is whole without them.
std::map<std::string, std::vector<double>> SparklinesOf(const Archive& archive,
                                                        const ProfileEntry& entry,
                                                        const Profile& profile) {
  std::map<std::string, std::vector<double>> lines;
  const auto own = ApplicationEntries(profile);
  if (own.empty()) return lines;
  const Nanos zero = profile.job.start;
  WantedMetrics all;
  auto bins = ReadBins(archive, entry, zero, AxisOf({&profile}, {zero}, kSparklinePoints), all);
  if (!bins.ok()) return lines;
  for (const FootprintEntry* one : own) {
    const std::string name = SeriesName(one->series.metric.name, one->series.tags);
    if (const auto at = bins->find(name); at != bins->end()) lines[name] = at->second.bins;
  }
  return lines;
}

// Other runs of the shown step.
void TellOthers(const std::vector<ProfileEntry>& found, const ProfileEntry& shown) {
  const auto runs = std::count_if(found.begin(), found.end(), [&](const ProfileEntry& entry) {
    return entry.key != shown.key && entry.job.id == shown.job.id;
  });
  if (runs > 0) {
    Note(fmt::format("this step ran {} times (requeued); --run 2 shows the one before the newest",
                     runs + 1));
  }
}

Result<std::vector<ProfileEntry>> Newest(const Archive& archive) {
  auto newest = archive.List(1);
  if (newest.ok() && newest->empty()) {
    return Status(Code::kNotFound,
                  "nothing is recorded yet; run something with "
                  "srun --telemetry-level=2 or sonde run");
  }
  return newest;
}

int Show(const ShowOptions& options, const Environment& env) {
  const auto archive = OpenArchive(env, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto found =
      options.id.empty() ? Newest(*archive->reader) : FindSteps(*archive->reader, options.id);
  if (!found.ok()) return Fail(found.status());
  if (options.run > found->size()) {
    return Fail({Code::kNotFound,
                 fmt::format("there are only {} profiles of {}", found->size(), options.id)});
  }
  const ProfileEntry& entry = (*found)[options.run - 1];
  const auto profile = LoadProfile(*archive->reader, entry);
  if (!profile.ok()) return Fail(profile.status());
  ReportOptions report;
  report.width = env.width;
  report.unicode = env.unicode;
  report.colour = env.colour;
  report.now = Clock::System().Now();
  if (options.brief) report.form = ReportOptions::Form::kShort;
  auto rows = ReadNodeRows(*archive->reader, entry.key, profile->job);
  if (rows.ok()) {
    report.nodes = *std::move(rows);
  } else {
    Note(fmt::format("there is no table of nodes: {}", rows.status().message()));
  }
  if (profile->job.state != EndState::kRunning && !options.brief) {
    report.hints = HintsOf(*archive->reader, entry.key, *profile, report.nodes, env);
  }
  // A job is shown with all of its steps.
  std::vector<ListedProfile> steps;
  if (found->size() > 1 && JobStep::Parse(options.id).step.empty()) {
    auto cards = CardsOf(*archive->reader, *found, report.now);
    if (!cards.ok()) return Fail(cards.status());
    steps = *std::move(cards);
  }
  if (!options.json && !options.brief && env.unicode) {
    report.sparklines = SparklinesOf(*archive->reader, entry, *profile);
  }
  NoteDamage(*archive->reader);
  if (options.json) {
    const std::string others = steps.empty() ? "" : JobToJson(steps, report.now);
    return Print(ReportToJson(*profile, report.nodes, report.now, others, report.hints) + "\n");
  }
  if (options.run == 1 && steps.empty()) TellOthers(*found, entry);
  const std::string job =
      steps.empty() || options.brief ? "" : JobText(options.id, steps, env, report.now);
  return Print(job + RenderReport(*profile, report));
}

}  // namespace

void RegisterShow(Arguments app, Run& run) {
  auto options = std::make_shared<ShowOptions>();
  Arguments sub = app.Command("show", "Show the report of a step, or of a job with its steps");
  sub.Option("JOB[.STEP]", options->id,
             "As in 123, 123.0, 123.batch or 123_4.0; the newest step if left out");
  sub.Option("--run", options->run, "Of several that match: 1 is the newest").Within(1, 1'000'000);
  sub.Flag("--json", options->json, "As JSON, with every value exactly");
  sub.Flag("--short", options->brief, "In some six lines, as srun prints it");
  sub.OnRead(
      [options, &run] { run = [options](const Environment& env) { return Show(*options, env); }; });
}

}  // namespace sonde::cli
