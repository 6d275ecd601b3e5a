#include "insight/scaling/warnings.h"

#include <fmt/core.h>

#include <cmath>

#include "insight/scaling/band.h"
#include "insight/scaling/search.h"

namespace sonde::insight {
namespace {

void WarnOfSizes(const ScalingModel& model, size_t parameter, const std::string& name,
                 std::vector<std::string>& warnings) {
  const size_t sizes = model.line[parameter];
  if (sizes < kEnoughSizes && model.sizes[parameter] >= kEnoughSizes) {
    warnings.push_back(fmt::format(
        "few points: {} takes {} values, but only {} of them while the other parameter stays the "
        "same; a trend needs {}",
        name, model.sizes[parameter], sizes, kEnoughSizes));
  } else if (sizes < kEnoughSizes) {
    warnings.push_back(fmt::format("few points: runs of {} different {}, a trend needs {}", sizes,
                                   name, kEnoughSizes));
  }
  const double least = parameter == 0 ? model.least.first : model.least.second;
  const double most = parameter == 0 ? model.most.first : model.most.second;
  if (sizes >= kEnoughSizes && most < kNarrow * least) {
    warnings.push_back(
        fmt::format("narrow range: {} from {:g} to {:g}; terms are told apart by a range of 1 to "
                    "{:g} or more",
                    name, least, most, kNarrow));
  }
}

}  // namespace

std::vector<std::string> WarningsOf(const ScalingModel& model,
                                    const std::array<std::string, 2>& names) {
  std::vector<std::string> warnings;
  for (size_t i = 0; i < model.parameters; ++i) WarnOfSizes(model, i, names[i], warnings);
  if (model.noise > kNoisy) {
    warnings.push_back(
        fmt::format("noisy: runs of one size differ by {:.0f} %, one standard "
                    "deviation",
                    100 * model.noise));
  }
  if (model.smape > kPoorSmape) {
    warnings.push_back(fmt::format(
        "poor fit: without a size, the model misses it by {:.0f} % in the mean", model.smape));
  }
  if (model.left_out > 0) {
    warnings.push_back(fmt::format("{} {} left out: far from the others of the same size",
                                   model.left_out, model.left_out == 1 ? "run" : "runs"));
  }
  if (!model.constant() && DegreesOf(model.curve, model.runs) < kFewRuns) {
    warnings.push_back(fmt::format(
        "few runs: {} for a model of one term; more of each size narrow its band", model.runs));
  }
  return warnings;
}

std::vector<std::string> WarningsAt(const ScalingModel& model, const Place& place,
                                    const std::array<std::string, 2>& names) {
  std::vector<std::string> warnings = WarningsOf(model, names);
  const double beyond = BeyondMeasured(model, place);
  if (beyond > kFarBeyond) {
    warnings.push_back(fmt::format(
        "far beyond what was measured: {:.3g} times; other causes may matter there", beyond));
  }
  if (model.positive && model.At(place) < 0) {
    warnings.emplace_back("the model falls below zero there, which the metric never did");
  }
  return warnings;
}

}  // namespace sonde::insight
