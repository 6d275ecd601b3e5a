// Models of two parameters: how far the prediction for a run that is larger lies from the truth.
//
//   bench_models_two              Sonde's figures
//   bench_models_two --data       the cases as JSON lines {"places": [[p, q]...], "values": [...],
//                                 "larger": [p, q]}
//   bench_models_two --judge F    figures of another's predictions: lines "CASE VALUE"
//
// A case is a product or a sum of two of the 42 terms and a constant, so large that the metric
// grows by 4 or 16 times over the grid of 5 x 5 sizes; one run of each with normal noise. Predicted
// is twice the largest size of both.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "insight/scaling/model.h"
#include "insight/scaling/terms.h"

namespace {

using namespace sonde::insight;

constexpr double kSizes[] = {4, 8, 16, 32, 64};
constexpr Place kLarger = {128, 128};

struct Case {
  double noise = 0;
  std::vector<RunAt> runs;
  double truth = 0;
};

std::vector<Case> MakeCases() {
  std::mt19937_64 random(2026);
  std::normal_distribution<double> normal;
  const auto terms = GrowingTerms();
  std::vector<Case> cases;
  for (const double noise : {0.0, 0.02, 0.05, 0.1}) {
    for (int i = 0; i < 250; ++i) {
      const ScaleTerm& a = terms[random() % terms.size()];
      const ScaleTerm& b = terms[random() % terms.size()];
      const bool product = i % 2 == 0;
      const auto raw = [&](double p, double q) {
        const double x = a.At(p) / a.At(64), y = b.At(q) / b.At(64);
        return product ? x * y : (x + y) / 2;
      };
      const double grows = i % 4 < 2 ? 4 : 16;
      const double constant = std::max(0.0, (1 - grows * raw(4, 4)) / (grows - 1));
      const auto value = [&](double p, double q) { return 10 * (constant + raw(p, q)); };
      Case one{noise, {}, value(kLarger.first, kLarger.second)};
      for (const double p : kSizes) {
        for (const double q : kSizes) {
          one.runs.push_back({{p, q}, std::abs(value(p, q) * (1 + noise * normal(random)))});
        }
      }
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

void Judge(const std::vector<Case>& cases, const std::vector<double>& predicted,
           const std::string& who) {
  std::map<double, std::vector<double>> errors;
  for (size_t i = 0; i < cases.size(); ++i) {
    const double error = std::abs(predicted[i] / cases[i].truth - 1);
    errors[cases[i].noise].push_back(std::isfinite(error) ? error : 1e9);
  }
  for (auto& [noise, all] : errors) {
    std::sort(all.begin(), all.end());
    const auto within = std::lower_bound(all.begin(), all.end(), 0.2) - all.begin();
    fmt::print("figure models_two.{}.within_20_percent_at_noise_{:.0f} {:.1f} %\n", who,
               100 * noise, 100.0 * static_cast<double>(within) / static_cast<double>(all.size()));
    fmt::print("figure models_two.{}.median_error_at_noise_{:.0f} {:.2f} %\n", who, 100 * noise,
               100 * all[all.size() / 2]);
  }
}

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void Print(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    std::vector<std::string> places;
    std::vector<double> values;
    for (const RunAt& run : one.runs) {
      places.push_back(fmt::format("[{},{}]", run.place.first, run.place.second));
      values.push_back(run.value);
    }
    fmt::print("{{\"places\":[{}],\"values\":[{:.12g}],\"larger\":[{},{}]}}\n",
               fmt::join(places, ","), fmt::join(values, ","), kLarger.first, kLarger.second);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const std::vector<Case> cases = MakeCases();
  std::vector<double> predicted(cases.size(), std::nan(""));
  if (mode == "--data") {
    Print(cases);
    return 0;
  }
  if (mode == "--judge" && argc > 2) {
    std::ifstream file(argv[2]);
    size_t at = 0;
    double value = 0;
    while (file >> at >> value) {
      if (at < predicted.size()) predicted[at] = value;
    }
    Judge(cases, predicted, "extrap");
    return 0;
  }
  const double begin = CpuSeconds();
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto model = FitModel(cases[i].runs, 2);
    if (model.ok()) predicted[i] = model->At(kLarger);
  }
  const double time = CpuSeconds() - begin;
  Judge(cases, predicted, "sonde");
  fmt::print("figure models_two.sonde.of_25_places {:.1f} us\n",
             1e6 * time / static_cast<double>(cases.size()));
  return 0;
}
