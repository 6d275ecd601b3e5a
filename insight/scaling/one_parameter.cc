// Models, those of one parameter, and their text.
#include <fmt/core.h>

#include "insight/scaling/model.h"
#include "insight/scaling/quality.h"
#include "insight/scaling/search.h"
#include "insight/scaling/two_parameters.h"

namespace sonde::insight {
namespace {

ScalingModel ModelOfOne(const Runs& runs) {
  ScalingModel model;
  FoundTerm found = FindTerm(runs, kByChance);
  model.chance = found.chance;
  model.others = std::move(found.others);
  // A constant goes through any runs.
  model.curve = found.curve ? *std::move(found.curve) : *Curve::Through(runs, {});
  SetQuality(runs, model);
  model.line = {runs.places.size(), 0};
  return model;
}

}  // namespace

std::string ScalingModel::Text(std::string_view first, std::string_view second) const {
  std::string text = fmt::format("{:.6g}", curve.constant());
  for (size_t i = 0; i < curve.products().size(); ++i) {
    text += fmt::format(" + {:.6g} * ", curve.coefficient(i));
    text += curve.products()[i].Text(first, second);
  }
  return text;
}

Result<ScalingModel> FitScaling(std::span<const ScalePoint> points) {
  std::vector<RunAt> runs;
  runs.reserve(points.size());
  for (const ScalePoint& point : points) runs.push_back({{point.size, 1}, point.value});
  return FitModel(runs, 1);
}

Result<ScalingModel> FitModel(std::span<const RunAt> points, size_t parameters) {
  const Result<Runs> runs = GatherRuns(points);
  if (!runs.ok()) return runs.status();
  return parameters == 2 ? ModelOfTwo(*runs) : ModelOfOne(*runs);
}

}  // namespace sonde::insight
