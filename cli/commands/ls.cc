// sonde ls: the newest profiles, or the selected ones, one a line.
#include <limits>

#include "cli/command.h"
#include "cli/selection.h"
#include "cli/step_table.h"
#include "profiles/json/writer.h"
#include "profiles/model/summary.h"
#include "profiles/records/card.h"
#include "profiles/records/keys.h"
#include "profiles/report/report.h"
#include "profiles/select/select.h"

namespace sonde::cli {
namespace {

struct LsOptions {
  SelectionWords filters;
  std::string sort = "start";
  size_t count = 20;
  bool reverse = false;
  bool all = false;
  bool json = false;
};

std::string AsJson(const Archive& archive, const std::vector<ListedProfile>& profiles, Nanos now) {
  std::string out;
  JsonWriter w(out);
  w.BeginArray();
  Card card;
  for (const ListedProfile& one : profiles) {
    if (!DecodeCard(one.card, card).ok()) continue;
    const auto entry = archive.Entry(one.key);
    JobDescription job;
    if (entry.ok()) {
      job = entry->job;
    } else {
      // The profile is still listed, with what its key tells and the reason why there is no more.
      job = keys::DescribeKey(one.key).value_or(JobDescription());
      job.notes.emplace_back(entry.status().message());
    }
    w.BeginObject().Field("key", one.key);
    w.Field("live", one.live).Field("running", one.running).Field("stored_bytes", card.size);
    w.Field("energy_joules", card.Number(CardNumber::kEnergy));
    w.Key("summary").Raw(SummaryToJson(SummaryOfCard(card, one.start, now)));
    w.Key("job").Raw(DescriptionToJson(job)).EndObject();
  }
  w.EndArray();
  return out + "\n";
}

Result<Selection> SelectionOf(const LsOptions& options, Nanos now) {
  Result<Selection> selection = cli::SelectionOf(options.filters, now);
  if (!selection.ok()) return selection;
  const Result<SortBy> sort = ParseSort(options.sort, "--");
  if (!sort.ok()) return sort.status();
  selection->sort = *sort;
  selection->reverse = options.reverse;
  if (!options.all) selection->limit = options.count;
  return selection;
}

// Whether only the newest profiles have to be looked at.
bool IsNewest(Selection s) {
  s.since = 0;
  if (s.until > Clock::System().Now()) s.until = std::numeric_limits<Nanos>::max();
  return s.sort == SortBy::kStart && !s.reverse && !HasFilters(s);
}

int ListProfiles(const LsOptions& options, const Environment& env) {
  const Nanos now = Clock::System().Now();
  const Result<Selection> selection = SelectionOf(options, now);
  if (!selection.ok()) return FailUsage(selection.status());
  const auto archive = OpenIndexed(env, !IsNewest(*selection), ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto profiles = archive->reader->Select(*selection, now);
  if (!profiles.ok()) return Fail(profiles.status());
  const std::string json = options.json ? AsJson(*archive->reader, *profiles, now) : "";
  NoteDamage(*archive->reader);
  if (options.json) return Print(json);
  if (profiles->empty()) {
    const auto any = archive->reader->List(1);
    Note(any.ok() && any->empty() ? "no profiles yet; 'srun --telemetry-level=2 ...' records one"
                                  : "no profile is like that; 'sonde ls --all' lists everything");
    return kDone;
  }
  return Print(StepTable(*profiles, selection->sort, env, now));
}

}  // namespace

void RegisterLs(Arguments app, Run& run) {
  auto options = std::make_shared<LsOptions>();
  Arguments sub = app.Command("ls", "List profiles, the newest first");
  AddSelectionOptions(sub, options->filters);
  sub.Option("--sort", options->sort,
             "By start, time, cpu, use, mem, energy, read, written, received, sent, size, nodes, "
             "tasks or state, the largest first")
      .ShowDefault();
  sub.Flag("--reverse", options->reverse, "The oldest or smallest first");
  sub.Option("-n,--limit", options->count, "How many at most").ShowDefault().Within(1, 1'000'000);
  sub.Flag("--all", options->all, "All of them");
  sub.Flag("--json", options->json, "As JSON");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return ListProfiles(*options, env); };
  });
}

}  // namespace sonde::cli
