// What `sonde model` and `sonde predict` print.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "insight/runs/modelled_runs.h"
#include "insight/scaling/band.h"

namespace sonde::cli {

std::string ModelsToText(const insight::AskedRuns& runs,
                         const std::vector<insight::MetricModel>& models, const Environment& env);

// What is predicted of one run.
struct Prediction {
  insight::Place place;
  std::string of;                            // the command, or the job and its command
  double time_limit = 0;                     // seconds; 0: none is known
  std::vector<insight::MetricModel> models;  // with the warnings at this place
};
std::string PredictionToText(const insight::AskedRuns& runs, const Prediction& prediction,
                             const Environment& env);
std::string PredictionToJson(const insight::AskedRuns& runs, const Prediction& prediction);

// Of the wall time and the time limit: "enough", "perhaps not enough", "not enough"; "" without a
// limit.
std::string_view LimitVerdict(double time, const std::optional<insight::Band>& band, double limit);

}  // namespace sonde::cli
