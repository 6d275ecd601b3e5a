#include "insight/scaling/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "insight/scaling/chance.h"
#include "insight/scaling/model.h"
#include "insight/scaling/quality.h"
#include "insight/student.h"

namespace sonde::insight {
namespace {

// Whether values rise with the first parameter, by the slope over the logarithm of the size.
bool Rises(const Runs& runs) {
  double w = 0, x = 0, y = 0, xy = 0;
  for (const RunsAtPlace& at : runs.places) {
    const double scale = std::max(std::abs(at.mean), runs.floor);
    const auto n = static_cast<double>(at.runs.size());
    const double weight = scale > 0 ? n / (scale * scale) : n;
    const double log = std::log2(at.place.first);
    w += weight;
    x += weight * log;
    y += weight * at.mean;
    xy += weight * log * at.mean;
  }
  return xy - x * y / w >= 0;
}

}  // namespace

FoundTerm FindTerm(const Runs& runs, double by_chance) {
  FoundTerm found;
  if (runs.places.size() < kEnoughSizes || !Curve::Through(runs, {})) return found;
  const double chance = ChanceOfTrend(runs, by_chance);
  if (chance <= by_chance) found = FindTermOfTrend(runs);
  found.chance = chance;
  return found;
}

FoundTerm FindTermOfTrend(const Runs& runs) {
  FoundTerm found;
  const std::optional<Curve> constant = Curve::Through(runs, {});
  if (!constant) return found;
  std::vector<Curve> curves;
  std::optional<size_t> best;
  for (const ScaleTerm& term : Rises(runs) ? GrowingTerms() : FallingTerms()) {
    std::optional<Curve> curve = Curve::Through(runs, {Product{term, std::nullopt}});
    if (!curve) continue;
    if (!best || curve->error() < curves[*best].error()) best = curves.size();
    curves.push_back(*std::move(curve));
  }
  if (!best || !(CrossValidation(curves[*best], runs) < CrossValidation(*constant, runs))) {
    return found;
  }
  const Curve& chosen = curves[*best];
  const double bound = AboutAsGood(chosen.error(), DegreesOf(chosen, runs.count));
  for (size_t i = 0; i < curves.size(); ++i) {
    if (i != *best && curves[i].error() <= bound) found.others.push_back(std::move(curves[i]));
  }
  found.curve = std::move(curves[*best]);
  return found;
}

double AboutAsGood(double best, size_t degrees) {
  if (degrees == 0) return std::numeric_limits<double>::infinity();
  const double t = StudentT(degrees);
  return best * (1 + t * t / static_cast<double>(degrees));
}

size_t DegreesOf(const Curve& curve, size_t runs) {
  bool first = false, second = false;
  for (const Product& product : curve.products()) {
    first = first || product.first;
    second = second || product.second;
  }
  const size_t taken = curve.size() + (first ? 1 : 0) + (second ? 1 : 0);
  return runs > taken ? runs - taken : 0;
}

}  // namespace sonde::insight
