// sonde model: how the metrics of a command's runs grow with their size.
#include <memory>

#include "cli/command.h"
#include "cli/model/text.h"
#include "cli/progress.h"
#include "insight/runs/modelled_runs.h"

namespace sonde::cli {
namespace {

struct ModelOptions {
  insight::RunsQuestion question;
  std::string by;
  uint64_t last = 200;
  std::vector<std::string> metrics;
  bool all = false;
  bool json = false;
};

int Model(const Environment& env, const ModelOptions& options) {
  insight::RunsQuestion question = options.question;
  question.last = options.last;
  if (!options.by.empty()) {
    auto parameters = insight::ParseParameters(options.by);
    if (!parameters.ok()) return FailUsage(parameters.status().Within("--by"));
    question.parameters = *std::move(parameters);
  }
  const auto archive = OpenIndexed(env, false, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  Progress progress("reading runs", "runs");
  const auto runs =
      insight::LoadAskedRuns(*archive->reader, question,
                             [&](uint64_t done, uint64_t total) { progress.Set(done, total); });
  progress.End();
  if (!runs.ok()) {
    return runs.status().code() == Code::kInvalid ? FailUsage(runs.status()) : Fail(runs.status());
  }
  NoteDamage(*archive->reader);
  const auto models = insight::ModelsOf(*runs, insight::WantedBy(options.metrics, options.all));
  return Print(options.json ? insight::ModelsToJson(*runs, models)
                            : ModelsToText(*runs, models, env));
}

}  // namespace

void RegisterModel(Arguments app, Run& run) {
  Arguments sub = app.Command("model", "Say how the metrics of a command grow with its size");
  const auto options = std::make_shared<ModelOptions>();
  sub.Option("CMD|JOB", options->question.words,
             "A text in the command line or name of the runs; or jobs and steps, as in 4711 4712.0")
      .Required();
  sub.Option("--by", options->by,
             "What the runs differ in: nodes, tasks, threads or tag:KEY, or two between a comma; "
             "nodes, or tasks if all have as many nodes")
      .Type("WHAT");
  sub.Option("--metric", options->metrics, "Metrics whose names have one of the texts")
      .Type("TEXT,...")
      .Between(',');
  sub.Flag("--all", options->all, "The whole footprint, too");
  sub.Option("--last", options->last, "How many runs of the command, the newest ones")
      .ShowDefault()
      .Within(1, 1000);
  sub.Flag("--json", options->json, "As JSON, with every number exactly");
  sub.OnRead([&run, options] {
    run = [options](const Environment& env) { return Model(env, *options); };
  });
}

}  // namespace sonde::cli
