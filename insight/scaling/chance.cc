#include "insight/scaling/chance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "insight/scaling/terms.h"

namespace sonde::insight {
namespace {

// Steeper at first, towards a limit or without one, everywhere alike, and steeper at last. The
// limit is for values that fall, as in strong scaling, and the last one for values that rise: more
// shapes find fewer trends. So do all terms of the normal form in their place, which take ten times
// as long.
struct Shape {
  ScaleTerm term;
  bool both_ways;
};
constexpr std::array<Shape, 4> kShapes = {
    {{{-1, 1, 0}, false}, {{0, 1, 1}, true}, {{1, 1, 0}, true}, {{2, 1, 0}, false}}};

// A value with its weight, as in curve.h: 1 / value^2. Both stay together wherever they are dealt.
struct Weighted {
  double weight = 0;
  double product = 0;  // weight * value
};

// Values that are dealt out to the sizes: to each the same number of them in all orders.
class Deal {
 public:
  Deal(const Runs& runs, bool by_runs) {
    for (const RunsAtPlace& at : runs.places) {
      counts_.push_back(by_runs ? at.runs.size() : 1);
      if (!by_runs) Add(at.mean, runs.floor);
      for (size_t i = 0; by_runs && i < at.runs.size(); ++i) Add(at.runs[i], runs.floor);
    }
    mean_ = products_ / weights_;
    for (const Weighted& one : all) {
      const double off = one.product / one.weight - mean_;
      squares_ += one.weight * off * off;
    }
    for (const auto& [term, both_ways] : kShapes) {
      std::vector<double>& column = columns_.emplace_back();
      const double largest = std::max(term.At(runs.places.front().place.first),
                                      term.At(runs.places.back().place.first));
      for (const RunsAtPlace& at : runs.places) {
        column.push_back(term.At(at.place.first) / largest);
      }
    }
    sums_.resize(counts_.size());
  }

  // In the order in which they are dealt out: the first ones to the first size.
  std::vector<Weighted> all;

  // The largest share of the squares of all values that a line over one of the shapes explains.
  double Look() {
    auto next = all.begin();
    for (size_t i = 0; i < counts_.size(); ++i) {
      sums_[i] = {};
      for (size_t k = 0; k < counts_[i]; ++k, ++next) {
        sums_[i].weight += next->weight;
        sums_[i].product += next->product;
      }
    }
    double best = 0;
    for (size_t i = 0; i < kShapes.size(); ++i) best = std::max(best, Explained(i));
    return squares_ > 0 ? best / squares_ : 0;
  }

 private:
  void Add(double value, double floor) {
    const double scale = std::max(std::abs(value), floor);
    const double weight = scale > 0 ? 1 / (scale * scale) : 1;
    all.push_back({weight, weight * value});
    weights_ += weight;
    products_ += weight * value;
  }
  double Explained(size_t shape) const {
    const std::vector<double>& x = columns_[shape];
    double sum = 0, squares = 0, both = 0;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const double weighted = sums_[i].weight * x[i];
      sum += weighted;
      squares += weighted * x[i];
      both += x[i] * (sums_[i].product - mean_ * sums_[i].weight);
    }
    if (both < 0 && !kShapes[shape].both_ways) return 0;
    const double rest = squares - sum * sum / weights_;
    return rest > 1e-12 * squares ? both * both / rest : 0;
  }

  std::vector<size_t> counts_;  // of values at each size
  double weights_ = 0, products_ = 0, mean_ = 0, squares_ = 0;
  std::vector<std::vector<double>> columns_;
  std::vector<Weighted> sums_;
};

// Counts orders that are as good as the first one.
class Count {
 public:
  // `orders` in all. Rounding makes no difference.
  Count(double first, size_t orders, double enough)
      : bound_(first - 1e-9), orders_(orders), most_(enough * static_cast<double>(orders)) {}
  // Whether to go on.
  bool Add(double other) {
    as_good_ += other >= bound_ ? 1 : 0;
    return static_cast<double>(as_good_) <= most_;
  }
  double Share() const { return static_cast<double>(as_good_) / static_cast<double>(orders_); }

 private:
  const double bound_;
  const size_t orders_;
  const double most_;
  size_t as_good_ = 0;
};

double ChanceInAllOrders(Deal& deal, double enough) {
  const std::vector<Weighted> values = deal.all;
  size_t orders = 1;
  for (size_t i = 2; i <= values.size(); ++i) orders *= i;
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  Count count(deal.Look(), orders, enough);
  do {
    for (size_t i = 0; i < order.size(); ++i) deal.all[i] = values[order[i]];
    if (!count.Add(deal.Look())) break;
  } while (std::next_permutation(order.begin(), order.end()));
  return count.Share();
}

double ChanceInDrawnOrders(Deal& deal, double enough) {
  std::mt19937_64 random(deal.all.size());
  const double first = deal.Look();
  Count count(first, kOrders, enough);
  count.Add(first);
  for (size_t i = 1; i < kOrders; ++i) {
    std::shuffle(deal.all.begin(), deal.all.end(), random);
    if (!count.Add(deal.Look())) break;
  }
  return count.Share();
}

// The shapes over these sizes, each without its mean.
std::vector<std::vector<double>> ShapesOver(std::span<const double> sizes) {
  std::vector<std::vector<double>> shapes;
  for (const auto& [term, both_ways] : kShapes) {
    std::vector<double>& shape = shapes.emplace_back();
    const double largest = std::max(term.At(sizes.front()), term.At(sizes.back()));
    double mean = 0;
    for (const double size : sizes) {
      shape.push_back(term.At(size) / largest);
      mean += shape.back() / static_cast<double>(sizes.size());
    }
    for (double& one : shape) one -= mean;
  }
  return shapes;
}

// The most that one of them explains of the sum of the lines.
double ExplainedOfSum(const std::vector<std::vector<double>>& shapes,
                      const std::vector<std::vector<double>>& lines) {
  std::vector<double> sums(lines.front().size());
  for (const std::vector<double>& line : lines) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += line[i];
  }
  double best = 0;
  for (size_t k = 0; k < shapes.size(); ++k) {
    double both = 0, squares = 0;
    for (size_t i = 0; i < sums.size(); ++i) {
      both += shapes[k][i] * sums[i];
      squares += shapes[k][i] * shapes[k][i];
    }
    if (both < 0 && !kShapes[k].both_ways) continue;
    if (squares > 1e-12) best = std::max(best, both * both / squares);
  }
  return best;
}

}  // namespace

double ChanceOfTrend(const Runs& runs, double enough) {
  Deal sizes(runs, false);
  const double by_sizes = runs.places.size() <= kAllOrders ? ChanceInAllOrders(sizes, enough)
                                                           : ChanceInDrawnOrders(sizes, enough);
  if (by_sizes > enough || runs.count == runs.places.size()) return by_sizes;
  Deal single(runs, true);
  return std::max(by_sizes, ChanceInDrawnOrders(single, enough));
}

double ChanceOfLines(std::span<const double> sizes, std::vector<std::vector<double>> lines,
                     double enough) {
  const auto shapes = ShapesOver(sizes);
  std::mt19937_64 random(sizes.size() * lines.size());
  const double first = ExplainedOfSum(shapes, lines);
  Count count(first, kOrders, enough);
  count.Add(first);
  for (size_t i = 1; i < kOrders; ++i) {
    for (std::vector<double>& line : lines) std::shuffle(line.begin(), line.end(), random);
    if (!count.Add(ExplainedOfSum(shapes, lines))) break;
  }
  return count.Share();
}

}  // namespace sonde::insight
