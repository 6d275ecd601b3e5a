#include "insight/regression.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "insight/robust.h"
#include "insight/student.h"

namespace sonde::insight {
namespace {

// How often one of so many undisturbed runs is taken for a disturbed one.
constexpr double kByChance = 0.001;

std::vector<double> Undisturbed(std::span<const double> before, size_t& left_out) {
  std::vector<double> all, kept;
  std::copy_if(before.begin(), before.end(), std::back_inserter(all),
               [](double x) { return !std::isnan(x); });
  const Centre centre = CentreOf(all);
  const double limit = OutlierLimit(centre.count, kByChance) * centre.deviation;
  std::copy_if(all.begin(), all.end(), std::back_inserter(kept),
               [&](double x) { return !(std::abs(x - centre.median) > limit); });
  // Of runs that are all the same but a few nothing is known of the noise.
  if (!(centre.deviation > 0) || kept.size() < Judgement::kEnough) return all;
  left_out = all.size() - kept.size();
  return kept;
}

}  // namespace

Judgement JudgeRun(std::span<const double> before, double value, Better better, double chance,
                   double least) {
  Judgement out;
  out.value = value;
  const std::vector<double> runs = Undisturbed(before, out.left_out);
  out.runs = runs.size();
  const auto n = static_cast<double>(runs.size());
  double sum = 0, squares = 0;
  for (const double x : runs) sum += x;
  out.usual = sum / n;  // NaN of none
  for (const double x : runs) squares += (x - out.usual) * (x - out.usual);
  if (runs.size() < Judgement::kEnough || std::isnan(value)) {
    out.limit = std::nan("");
    return out;
  }
  const double deviation = std::sqrt(squares / (n - 1));
  out.limit = std::max(least * std::abs(out.usual),
                       StudentBeyond(chance, runs.size() - 1) * deviation * std::sqrt(1 + 1 / n));
  const double difference = value - out.usual;
  out.differs = std::abs(difference) > out.limit;
  out.worse = out.differs && better != Better::kUnknown &&
              (better == Better::kLess ? difference > 0 : difference < 0);
  return out;
}

}  // namespace sonde::insight
