#include "insight/scaling/two_parameters.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "insight/scaling/chance.h"
#include "insight/scaling/quality.h"
#include "insight/scaling/search.h"

namespace sonde::insight {
namespace {

using Line = std::map<double, double>;  // the mean by the size

// The lines along a parameter, those with the most sizes, all with the same ones.
std::vector<Line> LongestLines(const Runs& runs, double Place::*along, double Place::*other) {
  std::map<double, Line> lines;
  for (const RunsAtPlace& at : runs.places) lines[at.place.*other][at.place.*along] = at.mean;
  std::map<std::vector<double>, std::vector<Line>> by_sizes;
  for (const auto& [at, line] : lines) {
    std::vector<double> sizes;
    for (const auto& [size, mean] : line) sizes.push_back(size);
    by_sizes[sizes].push_back(line);
  }
  const auto longest =
      std::max_element(by_sizes.begin(), by_sizes.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first.size(), a.second.size()) <
               std::pair(b.first.size(), b.second.size());
      });
  return longest->second;
}

double Scale(const Line& line) {
  double sum = 0;
  for (const auto& [size, mean] : line) sum += std::abs(mean) / static_cast<double>(line.size());
  return sum > 0 ? sum : 1;
}

// One line of these, along the first parameter.
Runs MeanOf(const std::vector<Line>& lines) {
  std::map<double, double> sums;
  for (const Line& line : lines) {
    const double scale = Scale(line) * static_cast<double>(lines.size());
    for (const auto& [size, mean] : line) sums[size] += mean / scale;
  }
  std::vector<RunAt> points;
  points.reserve(sums.size());
  for (const auto& [size, sum] : sums) points.push_back({{size, 1}, sum});
  // Sizes and values were checked when the runs were gathered.
  return *GatherRuns(points);
}

// One line of a sort has as few orders as there are of its sizes; of several each has its own.
FoundTerm FindAlong(const std::vector<Line>& lines, double by_chance) {
  const Runs mean = MeanOf(lines);
  if (lines.size() < 2 || mean.places.size() < kEnoughSizes) return FindTerm(mean, by_chance);
  std::vector<double> sizes;
  for (const auto& [size, value] : lines.front()) sizes.push_back(size);
  std::vector<std::vector<double>> values;
  for (const Line& line : lines) {
    std::vector<double>& of_line = values.emplace_back();
    const double scale = Scale(line);
    for (const auto& [size, value] : line) of_line.push_back(value / scale);
  }
  FoundTerm found;
  const double chance = ChanceOfLines(sizes, std::move(values), by_chance);
  if (chance <= by_chance) found = FindTermOfTrend(mean);
  found.chance = chance;
  return found;
}

struct FoundTerms {
  std::optional<ScaleTerm> best;
  std::vector<ScaleTerm> others;
  double chance = 1;
  size_t sizes = 0;
};
FoundTerms TermsAlong(const Runs& runs, double Place::*along, double Place::*other) {
  const std::vector<Line> lines = LongestLines(runs, along, other);
  // Two tests are made: each may be wrong in half of the cases.
  FoundTerm found = FindAlong(lines, kByChance / 2);
  FoundTerms terms;
  terms.chance = found.chance;
  terms.sizes = lines.front().size();
  if (!found.curve) return terms;
  terms.best = found.curve->products().front().first;
  for (const Curve& curve : found.others) terms.others.push_back(*curve.products().front().first);
  return terms;
}

// The four ways to put two terms together.
constexpr size_t kWays = 4;
std::vector<Product> Together(size_t way, const ScaleTerm& a, const ScaleTerm& b) {
  const Product both{a, b}, first{a, std::nullopt}, second{std::nullopt, b};
  switch (way) {
    case 0:
      return {both};
    case 1:
      return {first, second};
    case 2:
      return {both, first};
    default:
      return {both, second};
  }
}

// A product that is less of every run's value is none, as in Extra-P.
constexpr double kLeastShare = 0.0005;

class Search {
 public:
  Search(const Runs& runs, const FoundTerms& first, const FoundTerms& second)
      : runs_(runs), first_(first), second_(second) {}

  // The best curve; a constant if nothing else goes through the runs.
  Curve Best() {
    Curve best = *Curve::Through(runs_, {});
    if (first_.best && second_.best) {
      for (size_t way = 0; way < kWays; ++way) {
        if (Better(Together(way, *first_.best, *second_.best), best)) way_ = way;
      }
      // All runs tell the terms better than the mean of lines does: first of one parameter, then of
      // the other one beside it.
      ScaleTerm first = *first_.best;
      for (const auto& a : WithBest(first_)) {
        if (Better(Together(way_, *a, *second_.best), best)) first = *a;
      }
      for (const auto& b : WithBest(second_)) Better(Together(way_, first, *b), best);
    } else if (first_.best || second_.best) {
      Better({Product{first_.best, second_.best}}, best);
    }
    return best;
  }
  // Curves with other terms, put together in the same way, which are about as good.
  std::vector<Curve> Others(const Curve& best) const {
    std::vector<Curve> others;
    if (best.products().empty()) return others;
    const double bound = AboutAsGood(best.error(), DegreesOf(best, runs_.count));
    for (const auto& a : WithBest(first_)) {
      for (const auto& b : WithBest(second_)) {
        auto curve = Curve::Through(
            runs_, a && b ? Together(way_, *a, *b) : std::vector<Product>{Product{a, b}});
        if (!curve || curve->products() == best.products() || curve->error() > bound) continue;
        others.push_back(*std::move(curve));
      }
    }
    return others;
  }

 private:
  bool Better(std::vector<Product> products, Curve& best) const {
    auto curve = Curve::Through(runs_, std::move(products));
    if (!curve || !(CrossValidation(*curve, runs_) < CrossValidation(best, runs_))) return false;
    for (size_t i = 0; i < curve->products().size(); ++i) {
      if (Share(*curve, i) < kLeastShare) return false;
    }
    best = *std::move(curve);
    return true;
  }
  // The largest share of a run's value that is the product's.
  double Share(const Curve& curve, size_t product) const {
    double most = 0;
    for (const RunsAtPlace& at : runs_.places) {
      const double part = curve.coefficient(product) * curve.products()[product].At(at.place);
      if (at.mean != 0) most = std::max(most, std::abs(part / at.mean));
    }
    return most;
  }
  static std::vector<std::optional<ScaleTerm>> WithBest(const FoundTerms& terms) {
    std::vector<std::optional<ScaleTerm>> all = {terms.best};
    all.insert(all.end(), terms.others.begin(), terms.others.end());
    return all;
  }

  const Runs& runs_;
  const FoundTerms& first_;
  const FoundTerms& second_;
  size_t way_ = 0;
};

}  // namespace

ScalingModel ModelOfTwo(const Runs& runs) {
  const FoundTerms first = TermsAlong(runs, &Place::first, &Place::second);
  const FoundTerms second = TermsAlong(runs, &Place::second, &Place::first);
  Search search(runs, first, second);
  ScalingModel model;
  model.parameters = 2;
  model.curve = search.Best();
  model.others = search.Others(model.curve);
  model.chance = std::min(1.0, 2 * std::min(first.chance, second.chance));
  SetQuality(runs, model);
  model.line = {first.sizes, second.sizes};
  return model;
}

}  // namespace sonde::insight
