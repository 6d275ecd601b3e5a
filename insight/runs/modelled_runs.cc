#include "insight/runs/modelled_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "core/text/split.h"
#include "insight/scaling/warnings.h"
#include "profiles/archive/listed_cards.h"
#include "profiles/compare/find_runs.h"
#include "profiles/model/text.h"

namespace sonde::insight {
namespace {

constexpr std::string_view kTag = "tag:";
constexpr std::string_view kBatch = "batch";

double NumberIn(const std::map<std::string, std::string>& texts, const std::string& key) {
  const auto at = texts.find(key);
  if (at == texts.end()) return kMissing;
  const char* const end = at->second.data() + at->second.size();
  double value = 0;
  const auto [stop, error] = std::from_chars(at->second.data(), end, value);
  return error == std::errc() && stop == end ? value : kMissing;
}

Result<Parameter> ParseParameter(std::string_view text) {
  if (text == "nodes") return Parameter{Parameter::Kind::kNodes, ""};
  if (text == "tasks") return Parameter{Parameter::Kind::kTasks, ""};
  if (text == "threads") return Parameter{Parameter::Kind::kThreads, ""};
  if (text.starts_with(kTag) && text.size() > kTag.size()) {
    return Parameter{Parameter::Kind::kTag, std::string(text.substr(kTag.size()))};
  }
  return Status(Code::kInvalid,
                fmt::format("'{}': expected nodes, tasks, threads or tag:KEY, or two of these "
                            "between a comma",
                            text));
}

// The newest completed run of each step that is named, or of each step of a job that is named.
Result<Entries> NamedRuns(const Archive& archive, const std::vector<std::string>& words) {
  Entries runs;
  for (const std::string& word : words) {
    const auto found = FindSteps(archive, word);
    if (!found.ok()) return found.status();
    std::set<JobStep> seen;
    for (const ProfileEntry& entry : *found) {
      if (entry.job.state != EndState::kCompleted || !seen.insert(entry.job.id).second) continue;
      runs.push_back(entry);
    }
  }
  if (runs.empty()) return Status(Code::kNotFound, "none of these has completed yet");
  return runs;
}

// A job's script is a step, too, with the job's name. Where its steps are found, it is not a run.
void LeaveOutScripts(Entries& runs) {
  const auto is_script = [](const ProfileEntry& entry) { return entry.job.id.step == kBatch; };
  if (!std::all_of(runs.begin(), runs.end(), is_script)) std::erase_if(runs, is_script);
}

Result<Entries> FindAsked(const Archive& archive, const RunsQuestion& question) {
  if (question.words.size() > 1 || FindSteps(archive, question.words.front()).ok()) {
    auto named = NamedRuns(archive, question.words);
    if (named.ok()) LeaveOutScripts(*named);
    return named;
  }
  const std::string& command = question.words.front();
  auto runs = RunsOf(archive, command, EndState::kCompleted, {}, question.last);
  if (!runs.ok()) return runs;
  LeaveOutScripts(*runs);
  if (runs->empty()) {
    return Status(Code::kNotFound,
                  fmt::format("no completed run of '{}'; 'sonde ls --all' lists everything",
                              text::Printable(command)));
  }
  return runs;
}

std::vector<Parameter> DefaultParameters(const Entries& runs) {
  const uint32_t nodes = runs.front().job.expected_nodes;
  const bool same = std::all_of(runs.begin(), runs.end(), [&](const ProfileEntry& entry) {
    return entry.job.expected_nodes == nodes;
  });
  return {{same ? Parameter::Kind::kTasks : Parameter::Kind::kNodes, ""}};
}

// Runs without the parameters are left out.
Status LeaveOutWithout(Entries& runs, AskedRuns& asked) {
  for (const Parameter& parameter : asked.parameters) {
    const size_t without = std::erase_if(
        runs, [&](const ProfileEntry& entry) { return std::isnan(SizeOf(entry.job, parameter)); });
    if (without == 0) continue;
    asked.notes.push_back(fmt::format("{} {} left out: no {} that is a number of 1 or more",
                                      without, without == 1 ? "run" : "runs",
                                      text::Printable(parameter.Name())));
    if (runs.empty()) return {Code::kInvalid, asked.notes.back()};
  }
  return {};
}

void NoteDifferentCommands(const Entries& runs, AskedRuns& asked) {
  std::set<std::string> commands;
  for (const ProfileEntry& entry : runs) commands.insert(entry.job.command);
  if (commands.size() < 2) return;
  asked.notes.push_back(
      fmt::format("these are runs of {} command lines: what differs besides the parameter counts "
                  "as noise; more of the command line names fewer",
                  commands.size()));
}

double Ratio(double above, double below) { return below != 0 ? std::max(above / below, 0.0) : 1; }

}  // namespace

std::string Parameter::Name() const {
  switch (kind) {
    case Kind::kNodes:
      return "nodes";
    case Kind::kTasks:
      return "tasks";
    case Kind::kThreads:
      return "threads";
    case Kind::kTag:
      break;
  }
  return tag;
}

std::string Parameter::Text(double size) const {
  return fmt::format("{} {:g}", text::Printable(Name()), size);
}

Result<std::vector<Parameter>> ParseParameters(std::string_view text) {
  std::vector<Parameter> parameters;
  for (const std::string_view word : Split(text, ',')) {
    const Result<Parameter> parameter = ParseParameter(word);
    if (!parameter.ok()) return parameter.status();
    parameters.push_back(*parameter);
  }
  const bool twice = parameters.size() == 2 && parameters[0] == parameters[1];
  if (parameters.size() > 2 || twice) {
    return Status(Code::kInvalid, fmt::format("'{}': expected one or two parameters", text));
  }
  return parameters;
}

double SizeOf(const JobDescription& job, const Parameter& parameter) {
  double size = kMissing;
  switch (parameter.kind) {
    case Parameter::Kind::kNodes:
      size = job.expected_nodes;
      break;
    case Parameter::Kind::kTasks:
      size = job.expected_tasks;
      break;
    case Parameter::Kind::kThreads:
      // What OpenMP was told, or the CPUs that Slurm gave each task.
      size = NumberIn(job.environment, "OMP_NUM_THREADS");
      if (std::isnan(size)) size = NumberIn(job.environment, "SLURM_CPUS_PER_TASK");
      break;
    case Parameter::Kind::kTag:
      size = NumberIn(job.tags, parameter.tag);
      break;
  }
  return size >= 1 && std::isfinite(size) ? size : kMissing;
}

std::array<std::string, 2> AskedRuns::Names() const {
  return {parameters.front().Name(), parameters.size() > 1 ? parameters[1].Name() : ""};
}

std::string AskedRuns::Text(const Place& place) const {
  std::string text = parameters.front().Text(place.first);
  if (parameters.size() > 1) text += ", " + parameters[1].Text(place.second);
  return text;
}

Result<AskedRuns> LoadAskedRuns(const Archive& archive, const RunsQuestion& question,
                                const OnStep& on_step) {
  Result<Entries> found = FindAsked(archive, question);
  if (!found.ok()) return found.status();
  AskedRuns asked;
  asked.parameters = question.parameters.empty() ? DefaultParameters(*found) : question.parameters;
  SONDE_RETURN_IF_ERROR(LeaveOutWithout(*found, asked));
  NoteDifferentCommands(*found, asked);
  asked.least = {HUGE_VAL, HUGE_VAL};
  for (const ProfileEntry& entry : *found) {
    auto run = LoadRun(archive, entry);
    if (!run.ok()) return run.status().Within(entry.job.id.ToString());
    asked.runs.push_back(*std::move(run));
    const Place place = {SizeOf(entry.job, asked.parameters.front()),
                         asked.parameters.size() > 1 ? SizeOf(entry.job, asked.parameters[1]) : 1};
    asked.places.push_back(place);
    asked.least = {std::min(asked.least.first, place.first),
                   std::min(asked.least.second, place.second)};
    asked.most = {std::max(asked.most.first, place.first),
                  std::max(asked.most.second, place.second)};
    if (on_step) on_step(asked.runs.size(), found->size());
  }
  return asked;
}

Wanted WantedBy(std::vector<std::string> texts, bool all) {
  return [texts = std::move(texts), all](const CompareRow& row) {
    if (texts.empty()) return all || row.section != CompareSection::kOther;
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return row.name.find(text) != std::string::npos;
    });
  };
}

std::vector<MetricModel> ModelsOf(const AskedRuns& runs, const Wanted& wanted) {
  const bool two = runs.parameters.size() > 1;
  std::vector<MetricModel> models;
  for (CompareRow& row : Compare({runs.runs}, {}).rows) {
    if (!wanted(row)) continue;
    std::vector<RunAt> points;
    const std::vector<double>& values = row.groups.front().runs;
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) points.push_back({runs.places[i], values[i]});
    }
    Result<ScalingModel> model = FitModel(points, two ? 2 : 1);
    if (!model.ok()) continue;
    MetricModel one{
        row.section, std::move(row.name), std::move(row.unit), *std::move(model), values, {}, 1};
    one.warnings = WarningsOf(one.model, runs.Names());
    const Place ahead = {kAhead * one.model.most.first, two ? kAhead * one.model.most.second : 1};
    if (!one.model.constant()) {
      one.growth = Ratio(one.model.At(ahead), one.model.At(one.model.most));
    }
    models.push_back(std::move(one));
  }
  std::stable_sort(models.begin(), models.end(),
                   [](const MetricModel& a, const MetricModel& b) { return a.growth > b.growth; });
  return models;
}

}  // namespace sonde::insight
