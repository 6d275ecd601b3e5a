// sonde predict: how long a run will take, and how much memory it will need.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/model/queued_job.h"
#include "cli/model/text.h"
#include "cli/progress.h"
#include "insight/runs/modelled_runs.h"
#include "insight/scaling/warnings.h"

namespace sonde::cli {
namespace {

using insight::AskedRuns;
using insight::LoadAskedRuns;
using insight::MetricModel;
using insight::ModelsOf;
using insight::Parameter;
using insight::RunsQuestion;

struct PredictOptions {
  std::string word;
  uint64_t nodes = 0;  // 0: not given
  uint64_t tasks = 0;
  uint64_t threads = 0;
  std::vector<std::string> tags;
  std::string time;
  uint64_t last = 200;
  bool json = false;
};

// What is asked for: sizes by parameter, in the order of the options.
using Sizes = std::vector<std::pair<Parameter, double>>;

Result<std::pair<Parameter, double>> ParseTagSize(const std::string& text) {
  const size_t equals = text.rfind('=');
  double size = 0;
  if (equals != std::string::npos && equals > 0) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, size);
    if (error == std::errc() && stop == end && size >= 1 && std::isfinite(size)) {
      return std::pair(Parameter{Parameter::Kind::kTag, text.substr(0, equals)}, size);
    }
  }
  return Status(Code::kInvalid, fmt::format("--tag {}: expected KEY=NUMBER, of 1 or more", text));
}

Result<Sizes> AskedSizes(const PredictOptions& options) {
  Sizes sizes;
  using enum Parameter::Kind;
  for (const auto& [kind, size] :
       {std::pair(kNodes, options.nodes), {kTasks, options.tasks}, {kThreads, options.threads}}) {
    if (size > 0) sizes.emplace_back(Parameter{kind, ""}, static_cast<double>(size));
  }
  for (const std::string& text : options.tags) {
    auto tag = ParseTagSize(text);
    if (!tag.ok()) return tag.status();
    sizes.push_back(*std::move(tag));
  }
  if (sizes.size() > 2) {
    return Status(Code::kInvalid, "expected one or two of --nodes, --tasks, --threads and --tag");
  }
  return sizes;
}

struct Question {
  RunsQuestion runs;
  Sizes sizes;
  QueuedJob job;  // without an id if none is asked for
  std::string of;
  double time_limit = 0;
};

double SizeOfQueued(const QueuedJob& job, const Parameter& parameter) {
  switch (parameter.kind) {
    case Parameter::Kind::kNodes:
      return job.nodes;
    case Parameter::Kind::kTasks:
      return job.tasks;
    case Parameter::Kind::kThreads:
      return job.cpus_per_task;
    case Parameter::Kind::kTag:
      break;
  }
  return 0;
}

void SetJob(QueuedJob job, Question& question) {
  question.time_limit = job.time_limit;
  // Earlier jobs' steps have the job's name. Their commands are programs, and not the job's script.
  question.runs.words = {job.name};
  question.of = fmt::format("job {} ({})", job.id, job.name);
  question.job = std::move(job);
}

Result<Question> QuestionOf(const PredictOptions& options) {
  Question question;
  question.runs.last = options.last;
  question.runs.words = {options.word};
  question.of = options.word;
  Result<Sizes> sizes = AskedSizes(options);
  if (!sizes.ok()) return sizes.status();
  question.sizes = *std::move(sizes);
  for (const auto& [parameter, size] : question.sizes) {
    question.runs.parameters.push_back(parameter);
  }
  const bool sized = !question.sizes.empty();
  if (IsJobId(options.word)) {
    Result<QueuedJob> job = QueuedJobOf(options.word);
    // With a size an archived job does as well: the steps of that job.
    if (!job.ok() && !sized) return job.status();
    if (job.ok()) SetJob(*std::move(job), question);
  } else if (!sized) {
    return Status(Code::kInvalid,
                  "say for which size: --nodes N, --tasks N, --threads N or --tag KEY=N");
  }
  if (!options.time.empty()) {
    question.time_limit = ParseTimeLimit(options.time);
    if (question.time_limit < 0) {
      return Status(Code::kInvalid, fmt::format("--time {}: expected a time limit as sbatch takes "
                                                "it, such as 30, 1:30:00 or 2-12:00:00",
                                                options.time));
    }
  }
  return question;
}

Result<insight::Place> PlaceOf(const Question& question, const AskedRuns& runs) {
  insight::Place place;
  for (size_t i = 0; i < runs.parameters.size(); ++i) {
    const double size = i < question.sizes.size() ? question.sizes[i].second
                                                  : SizeOfQueued(question.job, runs.parameters[i]);
    if (!(size >= 1)) {
      return Status(Code::kInvalid,
                    fmt::format("job {} says nothing of its {}: give it as --{} N", question.job.id,
                                runs.parameters[i].Name(), runs.parameters[i].Name()));
    }
    (i == 0 ? place.first : place.second) = size;
  }
  return place;
}

// The wall time, then the memory of a node.
bool IsPredicted(const CompareRow& row) {
  return row.section == CompareSection::kTime ||
         (row.section == CompareSection::kMemory && row.name == "peak of a node");
}

Result<Prediction> PredictionOf(const Question& question, const AskedRuns& runs) {
  const Result<insight::Place> place = PlaceOf(question, runs);
  if (!place.ok()) return place.status();
  Prediction prediction{*place, question.of, question.time_limit, ModelsOf(runs, IsPredicted)};
  std::stable_sort(
      prediction.models.begin(), prediction.models.end(),
      [](const MetricModel& a, const MetricModel& b) { return a.section < b.section; });
  if (prediction.models.empty()) return Status(Code::kNotFound, "no run has a duration");
  for (MetricModel& one : prediction.models) {
    one.name = one.section == CompareSection::kTime ? "wall time" : "memory of a node";
    one.warnings = insight::WarningsAt(one.model, *place, runs.Names());
  }
  return prediction;
}

int Failure(const Status& status) {
  return status.code() == Code::kInvalid ? FailUsage(status) : Fail(status);
}

int Predict(const Environment& env, const PredictOptions& options) {
  const Result<Question> question = QuestionOf(options);
  if (!question.ok()) return Failure(question.status());
  const auto archive = OpenIndexed(env, false, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  Progress progress("reading runs", "runs");
  const auto runs =
      LoadAskedRuns(*archive->reader, question->runs,
                    [&](uint64_t done, uint64_t total) { progress.Set(done, total); });
  progress.End();
  if (!runs.ok()) return Failure(runs.status());
  NoteDamage(*archive->reader);
  const Result<Prediction> prediction = PredictionOf(*question, *runs);
  if (!prediction.ok()) return Failure(prediction.status());
  return Print(options.json ? PredictionToJson(*runs, *prediction)
                            : PredictionToText(*runs, *prediction, env));
}

}  // namespace

void RegisterPredict(Arguments app, Run& run) {
  constexpr uint64_t kMost = 100'000'000;
  Arguments sub = app.Command("predict", "Predict wall time and memory of a run that is larger");
  const auto options = std::make_shared<PredictOptions>();
  sub.Option("CMD|JOB", options->word,
             "A text in the command line or name of earlier runs; or a job in Slurm's queue, whose "
             "name they have")
      .Required();
  sub.Option("--nodes", options->nodes, "On so many nodes").Type("N").Within(1, kMost);
  sub.Option("--tasks", options->tasks, "With so many tasks").Type("N").Within(1, kMost);
  sub.Option("--threads", options->threads, "With so many threads of each task")
      .Type("N")
      .Within(1, kMost);
  sub.Option("--tag", options->tags, "With this tag; runs differ in its number")
      .Type("KEY=N")
      .Repeated();
  sub.Option("--time", options->time, "The time limit to judge, as sbatch takes it").Type("LIMIT");
  sub.Option("--last", options->last, "How many runs of the command, the newest ones")
      .ShowDefault()
      .Within(1, 1000);
  sub.Flag("--json", options->json, "As JSON, with every number exactly");
  sub.OnRead([&run, options] {
    run = [options](const Environment& env) { return Predict(env, *options); };
  });
}

}  // namespace sonde::cli
