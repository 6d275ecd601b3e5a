// Runs of different sizes, and how their numbers grow: `sonde model`, `sonde predict` and
// /api/v1/models.
//
// Thread safety: values and functions without state.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "insight/scaling/band.h"
#include "insight/scaling/model.h"
#include "profiles/archive/archive.h"
#include "profiles/compare/compare.h"
#include "profiles/json/writer.h"

namespace sonde::insight {

// What runs differ in.
struct Parameter {
  enum class Kind : unsigned char { kNodes, kTasks, kThreads, kTag };
  Kind kind = Kind::kNodes;
  std::string tag;  // its key
  // "nodes", "tasks", "threads" or the tag's key.
  std::string Name() const;
  // "nodes 64".
  std::string Text(double size) const;
  bool operator==(const Parameter&) const = default;
};
// "nodes", "tasks", "threads" or "tag:KEY"; one of these, or two between a comma.
Result<std::vector<Parameter>> ParseParameters(std::string_view text);
// The run's; NaN if it has none that is a number of 1 or more.
double SizeOf(const JobDescription& job, const Parameter& parameter);

struct RunsQuestion {
  // Steps and jobs, each of whose newest completed runs counts; or the text of a command or name.
  std::vector<std::string> words;
  size_t last = 200;
  // None: nodes, or tasks if all runs have as many nodes.
  std::vector<Parameter> parameters;
};

struct AskedRuns {
  std::vector<Parameter> parameters;  // one or two
  ComparedGroup runs;
  std::vector<Place> places;       // of the runs, in their order
  std::vector<std::string> notes;  // on runs that do not count, and on those that do
  Place least, most;
  std::array<std::string, 2> Names() const;
  // "nodes 64", "nodes 64, tasks 512".
  std::string Text(const Place& place) const;
};
using OnStep = std::function<void(uint64_t done, uint64_t total)>;
// kNotFound if no run is found, kInvalid if none has the parameters.
Result<AskedRuns> LoadAskedRuns(const Archive& archive, const RunsQuestion& question,
                                const OnStep& on_step);

struct MetricModel {
  CompareSection section = CompareSection::kOther;
  std::string name;
  std::string unit;
  ScalingModel model;
  std::vector<double> values;  // of the runs, in their order; NaN: the run has none
  std::vector<std::string> warnings;
  // The value at 4 times the largest size by that at the largest size; 1 for a constant.
  double growth = 1;
};
inline constexpr double kAhead = 4;
// What is modelled: all if there are no texts; else rows whose names have one of the texts.
using Wanted = std::function<bool(const CompareRow&)>;
// Those that grow most come first.
std::vector<MetricModel> ModelsOf(const AskedRuns& runs, const Wanted& wanted);
// Without `texts` what people look at first, with `all` the rest of the footprint, too; else rows
// whose names have one of the texts.
Wanted WantedBy(std::vector<std::string> texts, bool all);

// As `sonde model --json`; docs/endpoints.md describes it.
std::string ModelsToJson(const AskedRuns& runs, const std::vector<MetricModel>& models);
// Parts of that, for other JSON: members of an object that is open.
void WriteRuns(JsonWriter& json, const AskedRuns& runs);
void WriteModel(JsonWriter& json, const AskedRuns& runs, const MetricModel& one);
void WritePlace(JsonWriter& json, const AskedRuns& runs, const Place& place);
void WriteBand(JsonWriter& json, std::string_view key, const std::optional<Band>& band);

}  // namespace sonde::insight
