// sonde ls: the newest profiles, one a line.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <ctime>

#include "cli/command.h"
#include "profiles/json_writer.h"
#include "profiles/report.h"
#include "profiles/report_moments.h"
#include "profiles/text.h"

namespace sonde::cli {
namespace {

struct Options {
  size_t count = 20;
  bool all = false;
  bool json = false;
};

// What the archive knows of a step beyond its description; a profile that cannot be read leaves
// these cells empty and the line in place.
Summary SummaryOf(const Archive& archive, const ProfileEntry& entry, Nanos now) {
  auto profile = archive.Load(entry.key);
  if (profile.ok()) return Summarize(*profile, {}, now);
  Profile bare;
  bare.job = entry.job;
  return Summarize(bare, {}, now);
}

std::string LocalTime(Nanos time) {
  const auto seconds = static_cast<time_t>(time / kSecond);
  tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M}", local);
}

std::string FirstFigure(const JobDescription& job) {
  if (job.figures.empty()) return "";
  const Figure& figure = job.figures.front();
  return fmt::format("{} {}", text::Printable(figure.name), FigureValue(figure));
}

std::string AsTable(const Archive& archive, const std::vector<ProfileEntry>& entries,
                    const Environment& env, Nanos now) {
  using text::Printable;
  using enum text::Table::Align;
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
                     {"coverage", kRight},
                     {"figure", kLeft, true}});
  for (const ProfileEntry& entry : entries) {
    const JobDescription& job = entry.job;
    const Summary s = SummaryOf(archive, entry, now);
    table.Row({Printable(job.id.ToString()), Printable(job.name), Printable(job.user),
               std::string(ToString(job.state)), std::to_string(job.expected_nodes),
               std::to_string(job.level), LocalTime(job.start), text::Value(s.duration, "seconds"),
               text::Percent(s.cpu_of_tasks), text::Bytes(s.memory_peak.value),
               job.coverage.expected == 0 ? "-" : text::Percent(job.coverage.Ratio()),
               FirstFigure(job)});
  }
  return table.Render("", env.width);
}

std::string AsJson(const Archive& archive, const std::vector<ProfileEntry>& entries, Nanos now) {
  std::string out;
  JsonWriter w(out);
  w.BeginArray();
  for (const ProfileEntry& entry : entries) {
    w.BeginObject().Field("key", entry.key);
    w.Field("live", entry.live).Field("running", entry.running);
    w.Key("summary").Raw(SummaryToJson(SummaryOf(archive, entry, now)));
    w.Key("job").Raw(DescriptionToJson(entry.job)).EndObject();
  }
  w.EndArray();
  return out + "\n";
}

int List(const Options& options, const Environment& env) {
  const auto archive = OpenArchive(env);
  if (!archive.ok()) return Fail(archive.status());
  const auto entries = (*archive)->List(options.all ? SIZE_MAX : options.count);
  if (!entries.ok()) return Fail(entries.status());
  const Nanos now = Clock::System().Now();
  if (options.json) return Print(AsJson(**archive, *entries, now));
  if (entries->empty()) {
    Note("no profiles yet; 'srun --telemetry-level=2 ...' records one");
    return kDone;
  }
  return Print(AsTable(**archive, *entries, env, now));
}

}  // namespace

void RegisterLs(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("ls", "List profiles, the newest first");
  sub->add_option("-n", options->count, "How many at most")
      ->capture_default_str()
      ->check(CLI::Range(size_t{1}, size_t{1'000'000}));
  sub->add_flag("--all", options->all, "All of them");
  sub->add_flag("--json", options->json, "As JSON");
  sub->callback(
      [options, &run] { run = [options](const Environment& env) { return List(*options, env); }; });
}

}  // namespace sonde::cli
