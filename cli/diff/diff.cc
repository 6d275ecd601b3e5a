// sonde diff: compares runs, and shows which differences are beyond noise.
#include <fmt/core.h>

#include <memory>

#include "cli/command.h"
#include "cli/diff/text.h"
#include "cli/progress.h"
#include "profiles/compare/load.h"

namespace sonde::cli {
namespace {

struct Options {
  DiffQuestion question;
  std::string align = "start";
  std::vector<std::string> plots = {"task_cpu_seconds_total", "task_resident_memory_bytes"};
  bool no_plots = false;
  bool all = false;
  bool json = false;
};

int Diff(const Environment& env, const Options& options) {
  DiffQuestion question = options.question;
  auto phase = ParseAlign(options.align);
  if (!phase.ok()) return FailUsage(phase.status().Within("--align"));
  question.phase = *std::move(phase);
  // Without a second run there must be a command; its runs are checked later.
  if (question.groups.size() < 2 && question.command.empty()) {
    return FailUsage(
        fmt::format("name 2 to {} runs or groups of them, as in 'sonde diff 1.0 2.0' "
                    "or 'sonde diff 1.0,2.0,3.0 4.0', or --cmd COMMAND",
                    kMostGroups));
  }
  const auto archive = OpenIndexed(env, false, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  Progress progress("comparing", "steps");
  const auto diff = LoadDifference(*archive->reader, question, [&](uint64_t done, uint64_t total) {
    progress.Set(done, total);
  });
  progress.End();
  if (!diff.ok()) {
    return diff.status().code() == Code::kInvalid ? FailUsage(diff.status()) : Fail(diff.status());
  }
  NoteDamage(*archive->reader);
  if (options.json) return Print(DiffToJson(*diff));
  DiffTextOptions how;
  how.all = options.all;
  if (!options.no_plots) how.plots = options.plots;
  return Print(DiffToText(*diff, how, env));
}

}  // namespace

void RegisterDiff(Arguments app, Run& run) {
  Arguments sub = app.Command("diff", "Compare runs, and say what differs beyond noise");
  const auto options = std::make_shared<Options>();
  sub.Option("RUN", options->question.groups,
             "As in 4711.0, or a group of runs between commas: 4711.0,4712.0; the others are "
             "compared with the first");
  sub.Option("--cmd", options->question.command,
             "Compare with the last runs whose command or name has this text; without RUN "
             "the newest of them");
  sub.Option("--last", options->question.last, "How many runs of --cmd")
      .ShowDefault()
      .Within(1, 100);
  sub.Option("--align", options->align, "start, or phase:NAME: where the first NAME began")
      .ShowDefault();
  sub.Option("--plot", options->plots, "Metrics to draw over time, between commas").Between(',');
  sub.Flag("--no-plot", options->no_plots, "Draw nothing");
  sub.Flag("--all", options->all, "Every series, also those that do not differ");
  sub.Flag("--json", options->json, "As JSON, with every value exactly and all series");
  sub.OnRead(
      [&run, options] { run = [options](const Environment& env) { return Diff(env, *options); }; });
}

}  // namespace sonde::cli
