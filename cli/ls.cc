// sonde ls: the newest profiles, or those that are asked for, one a line.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "cli/command.h"
#include "cli/selection.h"
#include "profiles/card.h"
#include "profiles/json_writer.h"
#include "profiles/keys.h"
#include "profiles/report.h"
#include "profiles/report_moments.h"
#include "profiles/select.h"
#include "profiles/summary.h"
#include "profiles/text.h"

namespace sonde::cli {
namespace {

struct Options {
  SelectionOptions filters;
  std::string sort = "start";
  size_t count = 20;
  bool reverse = false;
  bool all = false;
  bool json = false;
};

std::string LocalTime(Nanos time) {
  const auto seconds = static_cast<time_t>(time / kSecond);
  tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M}", local);
}

std::string FirstFigure(const Card& card) {
  if (card.figure.empty()) return "";
  Figure figure;
  figure.name = card.figure;
  figure.unit = card.figure_unit;
  figure.value = card.figure_value;
  return fmt::format("{} {}", text::Printable(figure.name), FigureValue(figure));
}

std::string TagsText(const Card& card) {
  std::string out;
  for (const auto& [name, value] : card.tags) {
    if (!out.empty()) out += ' ';
    out += value.empty() ? std::string(name) : fmt::format("{}={}", name, value);
  }
  return out;
}

// The column of what the list is sorted by, where no other shows it.
struct SortColumn {
  std::string_view title;
  std::string_view unit;
};
SortColumn ColumnOf(SortBy sort) {
  switch (sort) {
    case SortBy::kEnergy:
      return {"energy", "joules"};
    case SortBy::kRead:
      return {"read", "bytes"};
    case SortBy::kWritten:
      return {"written", "bytes"};
    case SortBy::kReceived:
      return {"received", "bytes"};
    case SortBy::kSent:
      return {"sent", "bytes"};
    case SortBy::kSize:
      return {"size", "bytes"};
    case SortBy::kCpu:
      return {"CPU time", "seconds"};
    case SortBy::kTasks:
      return {"tasks", "1"};
    default:
      return {};
  }
}

std::string AsTable(const std::vector<ListedProfile>& profiles, SortBy sort, const Environment& env,
                    Nanos now) {
  using text::Printable;
  using enum text::Table::Align;
  const SortColumn sorted = ColumnOf(sort);
  text::Table table({{"step", kLeft, true},
                     {"name", kLeft, true},
                     {"user", kLeft, true},
                     {"state", kLeft},
                     {"nodes", kRight},
                     {"level", kRight},
                     {"start", kLeft},
                     {"duration", kRight},
                     {"CPU", kRight},
                     {"memory", kRight},
                     {std::string(sorted.title), kRight},
                     {"coverage", kRight},
                     {"figure", kLeft, true},
                     {"tags", kLeft, true}});
  Card card;
  for (const ListedProfile& one : profiles) {
    const auto known = keys::DescribeKey(one.key);
    if (!known || !DecodeCard(one.card, card).ok()) continue;
    const Summary s = SummaryOfCard(card, one.start, now);
    table.Row({Printable(known->id.ToString()), Printable(card.name), Printable(card.user),
               std::string(ToString(card.state)), std::to_string(card.nodes),
               std::to_string(card.level), LocalTime(one.start), text::Value(s.duration, "seconds"),
               text::Percent(s.cpu_of_tasks), text::Bytes(s.memory_peak.value),
               sorted.title.empty()
                   ? ""
                   : text::Value(SortValue(card, one.start, sort, now), sorted.unit),
               card.coverage.expected == 0 ? "-" : text::Percent(card.coverage.Ratio()),
               FirstFigure(card), Printable(TagsText(card))});
  }
  return table.Render("", env.width);
}

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
      // It is listed all the same: what the key tells, and why there is no more.
      job = keys::DescribeKey(one.key).value_or(JobDescription());
      job.notes.emplace_back(entry.status().message());
    }
    w.BeginObject().Field("key", one.key);
    w.Field("live", one.live).Field("running", one.running).Field("bytes", card.size);
    w.Field("energy_joules", card.Number(CardNumber::kEnergy));
    w.Key("summary").Raw(SummaryToJson(SummaryOfCard(card, one.start, now)));
    w.Key("job").Raw(DescriptionToJson(job)).EndObject();
  }
  w.EndArray();
  return out + "\n";
}

Result<Selection> SelectionOf(const Options& options, Nanos now) {
  Result<Selection> selection = cli::SelectionOf(options.filters, now);
  if (!selection.ok()) return selection;
  const Result<SortBy> sort = ParseSort(options.sort);
  if (!sort.ok()) return sort.status();
  selection->sort = *sort;
  selection->reverse = options.reverse;
  if (!options.all) selection->limit = options.count;
  return selection;
}

int List(const Options& options, const Environment& env) {
  const Nanos now = Clock::System().Now();
  const Result<Selection> selection = SelectionOf(options, now);
  if (!selection.ok()) return FailUsage(selection.status());
  const auto archive = OpenIndexed(env);
  if (!archive.ok()) return Fail(archive.status());
  const auto profiles = (*archive)->Select(*selection, now);
  if (!profiles.ok()) return Fail(profiles.status());
  if (options.json) return Print(AsJson(**archive, *profiles, now));
  if (profiles->empty()) {
    const auto any = (*archive)->List(1);
    Note(any.ok() && any->empty() ? "no profiles yet; 'srun --telemetry-level=2 ...' records one"
                                  : "no profile is like that; 'sonde ls --all' lists everything");
    return kDone;
  }
  return Print(AsTable(*profiles, selection->sort, env, now));
}

}  // namespace

void RegisterLs(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("ls", "List profiles, the newest first");
  AddSelectionOptions(*sub, options->filters);
  sub->add_option("--sort", options->sort,
                  "By start, time, cpu, mem, energy, read, written, received, sent, size, nodes or "
                  "tasks, the largest first")
      ->capture_default_str();
  sub->add_flag("--reverse", options->reverse, "The oldest or smallest first");
  sub->add_option("-n,--limit", options->count, "How many at most")
      ->capture_default_str()
      ->check(CLI::Range(size_t{1}, size_t{1'000'000}));
  sub->add_flag("--all", options->all, "All of them");
  sub->add_flag("--json", options->json, "As JSON");
  sub->callback(
      [options, &run] { run = [options](const Environment& env) { return List(*options, env); }; });
}

}  // namespace sonde::cli
