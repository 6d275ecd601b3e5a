// Models of how metrics grow: how often the term is the right one, and what models of many metrics
// cost.
//
//   bench_models              measures both
//   bench_models --same       the same of fewer cases, those that another program can model:
//   bench_models --data       writes them as JSON lines {"case", "noise", "sizes", "values" (of
//   each
//                             size those of its runs)}
//   bench_models --judge FILE judges the terms that it found: lines "CASE N D L", "CASE 0 1 0" for
//   a
//                             constant
//
// With --runs as the last word each size has 5 runs, and not one.
//
// A case is a term of the 42, on a range of 5 sizes, with normal noise. The constant makes the
// metric grow by 1, 4, 16 or 100 times its value at the smallest size; if the term grows less than
// that by itself, there is no constant. A fifth of the cases does not grow at all: there no term is
// the exact one. What is said of the term that was found:
//
//   exact    the very one
//   right    or one that measurements of 5 runs with this noise could not tell from it: the best
//            test of the two (Neyman, Pearson, 1933), which knows both curves and the noise, would
//            have an error of more than 5 % both ways. That is where the curves, fitted to each
//            other, differ by less than 2 * 1.645 standard deviations of the noise, as the root of
//            the sum of squares over the sizes
//   near     or one whose curve differs by no more than the noise, as the root of the mean square
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "insight/scaling/band.h"
#include "insight/scaling/model.h"

namespace sonde::insight {
namespace {

struct Case {
  ScaleTerm term;
  double noise = 0;
  double grown = 0;
  size_t each = 1;  // runs of a size
  std::vector<double> sizes;
  std::vector<std::vector<double>> values;
  // 10 at the largest size.
  double True(double size) const {
    if (grown == 0) return 10;
    const double least = term.At(sizes.front()), most = term.At(sizes.back());
    const double constant = std::max(0.0, (most - (1 + grown) * least) / grown);
    return 10 * (constant + term.At(size)) / (constant + most);
  }
};

std::vector<Case> MakeCases(int times, size_t each) {
  const std::vector<std::vector<double>> ranges = {
      {4, 8, 16, 32, 64}, {1, 2, 4, 8, 16}, {32, 64, 128, 256, 512}, {8, 16, 24, 32, 40}};
  std::mt19937_64 random(2026);
  std::normal_distribution<double> normal;
  std::vector<Case> cases;
  for (const double noise : {0.0, 0.02, 0.05, 0.1}) {
    for (const double grown : {0, 1, 4, 16, 100}) {
      for (const auto& sizes : ranges) {
        for (const ScaleTerm& term : GrowingTerms()) {
          for (int i = 0; i < times; ++i) {
            Case one{term, noise, grown, each, sizes, {}};
            for (const double size : sizes) {
              std::vector<double>& runs = one.values.emplace_back();
              for (size_t k = 0; k < each; ++k) {
                runs.push_back(std::abs(one.True(size) * (1 + noise * normal(random))));
              }
            }
            cases.push_back(std::move(one));
          }
        }
      }
    }
  }
  return cases;
}

// How much the curve over the found term differs from the true one where both are measured: the
// root of the sum of squares of relative differences.
double Difference(const Case& one, const std::optional<ScaleTerm>& found) {
  std::vector<RunAt> points;
  for (const double size : one.sizes) points.push_back({{size, 1}, one.True(size)});
  const Runs runs = *GatherRuns(points);
  const auto curve =
      found ? Curve::Through(runs, {Product{*found, std::nullopt}}) : Curve::Through(runs, {});
  return curve ? std::sqrt(curve->error()) : INFINITY;
}

struct Rates {
  size_t all = 0, exact = 0, right = 0, near = 0, grows = 0;
  void Judge(const Case& one, const std::optional<ScaleTerm>& found) {
    // Of what does not grow the curve over any term differs by nothing, and is wrong.
    const double difference = one.grown == 0 ? INFINITY : Difference(one, found);
    // Without noise only rounding is no difference.
    const double noise = std::max(one.noise / std::sqrt(static_cast<double>(one.each)), 1e-9);
    const bool same = one.grown == 0 ? !found : found == one.term;
    ++all;
    grows += found ? 1 : 0;
    exact += same ? 1 : 0;
    right += same || difference <= 2 * 1.645 * noise ? 1 : 0;
    near += same || difference <= std::sqrt(5.0) * noise ? 1 : 0;
  }
};

using Verdicts = std::map<std::pair<double, double>, Rates>;  // by noise and growth; -1: all

void Judge(const Case& one, const std::optional<ScaleTerm>& found, Verdicts& verdicts) {
  verdicts[{one.noise, -1}].Judge(one, found);
  verdicts[{one.noise, one.grown}].Judge(one, found);
}

void PrintVerdicts(const std::string& name, const Verdicts& verdicts) {
  for (const auto& [key, rates] : verdicts) {
    const std::string of = key.second < 0 ? "" : fmt::format("_grown_{:g}", key.second);
    for (const auto& [what, count] : {std::pair("right", rates.right),
                                      {"near", rates.near},
                                      {"exact", rates.exact},
                                      {"grows", rates.grows}}) {
      fmt::print("figure {}.{}_noise_{:g}{} {:.1f} %\n", name, what, 100 * key.first, of,
                 100.0 * static_cast<double>(count) / static_cast<double>(rates.all));
    }
  }
}

std::vector<ScalePoint> PointsOf(const Case& one) {
  std::vector<ScalePoint> points;
  for (size_t i = 0; i < one.sizes.size(); ++i) {
    for (const double value : one.values[i]) points.push_back({one.sizes[i], value});
  }
  return points;
}

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

void MeasureCases(const std::string& name, const std::vector<Case>& cases) {
  Verdicts verdicts;
  std::vector<std::optional<ScaleTerm>> found;
  const auto start = std::chrono::steady_clock::now();
  for (const Case& one : cases) {
    const auto model = FitScaling(PointsOf(one));
    found.push_back(model->constant() ? std::nullopt : model->curve.products().front().first);
  }
  const double seconds = Seconds(start);
  for (size_t i = 0; i < cases.size(); ++i) Judge(cases[i], found[i], verdicts);
  PrintVerdicts(name, verdicts);
  fmt::print("figure {}.of_5_sizes {:.1f} us\n", name,
             1e6 * seconds / static_cast<double>(cases.size()));
}

// How often the band of one run holds a later one, of a size that is so many times the largest.
void MeasureBands(const std::vector<Case>& cases, const std::string& name) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const double beyond : {1.0, 4.0, 16.0}) {
    size_t all = 0, within = 0;
    std::vector<double> widths;
    for (const Case& one : cases) {
      if (one.noise != 0.05 || one.grown == 0) continue;
      const auto model = FitScaling(PointsOf(one));
      const double size = beyond * one.sizes.back();
      const auto band = BandAt(*model, {size, 1});
      const double later = one.True(size) * (1 + one.noise * normal(random));
      ++all;
      within += band && band->low <= later && later <= band->high ? 1 : 0;
      widths.push_back(band ? band->high / model->At(size) - 1 : INFINITY);
    }
    std::nth_element(widths.begin(), widths.begin() + all / 2, widths.end());
    fmt::print("figure {}.band_holds_at_{:g} {:.1f} %\n", name, beyond,
               100.0 * static_cast<double>(within) / static_cast<double>(all));
    fmt::print("figure {}.band_above_at_{:g} {:.0f} %\n", name, beyond, 100 * widths[all / 2]);
  }
}

// 200 profiles with 400 metrics each, of 8 sizes: half of them grow.
void MeasureMany() {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<std::vector<ScalePoint>> metrics(400);
  std::vector<std::vector<RunAt>> metrics2(400);
  for (size_t m = 0; m < metrics.size(); ++m) {
    const ScaleTerm& term = GrowingTerms()[m % GrowingTerms().size()];
    for (int i = 0; i < 200; ++i) {
      const double size = 1 << (i % 8), other = 1 << (i / 8 % 5);
      const double grown = m % 2 == 0 ? 1 + term.At(size) : 1;
      const double value = 100 * grown * (1 + 0.05 * normal(random));
      metrics[m].push_back({size, value});
      metrics2[m].push_back({{size, other}, value * (1 + other)});
    }
  }
  auto start = std::chrono::steady_clock::now();
  for (const auto& points : metrics) static_cast<void>(FitScaling(points));
  fmt::print("figure models.profiles_200_metrics_400 {:.3f} s\n", Seconds(start));
  start = std::chrono::steady_clock::now();
  for (const auto& points : metrics2) static_cast<void>(FitModel(points, 2));
  fmt::print("figure models.profiles_200_metrics_400_two_parameters {:.3f} s\n", Seconds(start));
}

void WriteData(const std::vector<Case>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    fmt::print(R"({{"case": {}, "noise": {}, "sizes": {}, "values": {}}})", i, cases[i].noise,
               cases[i].sizes, cases[i].values);
    fmt::print("\n");
  }
}

int JudgeFile(const std::string& name, const std::vector<Case>& cases, const char* path) {
  std::ifstream in(path);
  Verdicts verdicts;
  size_t at = 0;
  for (ScaleTerm term; in >> at >> term.numerator >> term.denominator >> term.logs;) {
    if (at >= cases.size()) return 1;
    const bool constant = term.numerator == 0 && term.logs == 0;
    Judge(cases[at], constant ? std::nullopt : std::optional(term), verdicts);
  }
  PrintVerdicts(name + ".extrap", verdicts);
  return verdicts.empty() ? 1 : 0;
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool runs = argc > 2 && std::string(argv[argc - 1]) == "--runs";
  const std::string name = runs ? "models.runs_5" : "models";
  const std::vector<Case> few = MakeCases(1, runs ? 5 : 1);
  if (what == "--data") {
    WriteData(few);
    return 0;
  }
  if (what == "--judge" && argc > 2) return JudgeFile(name, few, argv[2]);
  MeasureCases(name, what == "--same" ? few : MakeCases(20, 1));
  MeasureBands(few, name);
  if (!runs) MeasureMany();
  return 0;
}

}  // namespace
}  // namespace sonde::insight

int main(int argc, char** argv) { return sonde::insight::Main(argc, argv); }
