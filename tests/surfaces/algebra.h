// The query algebra as docs/queries.md tells it, computed as plainly as possible and without any of
// the product's code: for every time every series is searched from its beginning. The campaign
// compares with it whatever the product answers.
//
// A number says how far the product may be from it. That is 0 where the documents say how the
// number is made to the last bit. Else it is what they say of a sketch (1/128 of a value), or a few
// roundings where they do not tell in which order something is calculated.
//
// Thread safety: values, and functions without state.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"

namespace sonde::surfaces {

struct Number {
  double value = 0;
  double error = 0;
  // What it is without that which lies behind the newest row; NaN: nothing, there is no number
  // then.
  std::optional<double> earlier = {};
  // What the rows of the whole step alone give, where these may answer; NaN: nothing.
  std::optional<double> of_rows = {};
  double error_of_rows = 0;
  // The error is as large as any value that there may be, so that a comparison would tell nothing.
  bool too_rough = false;

  bool may_be_absent() const {
    return (earlier && std::isnan(*earlier)) || (of_rows && std::isnan(*of_rows));
  }
};

using LineTags = std::map<std::string, std::string>;

// A series: its points in the order of time.
struct Line {
  LineTags tags;
  bool counts = false;
  std::vector<std::pair<Nanos, double>> points;
};

struct Filter {
  std::string key;
  std::string pattern;  // alternatives a|b|c, or one with a star at its end
  bool groups = false;
};

struct Question {
  std::string metric;
  std::string aggregator;
  bool downsampled = false;
  Nanos interval = 0;  // 0: 0all
  // Buckets of the calendar in UTC, of whole minutes: from the full hour if a whole number of them
  // fits in, else from midnight.
  bool calendar = false;
  std::string function;
  std::string fill;  // "", nan, null, zero
  bool rate = false;
  // Of a rate: a fall is an overflow, and what is above `reset` is none. Empty: "counter",
  // "dropcounter".
  std::string falls;
  double counter_max = 0;  // 0: 2^63 - 1
  double reset = 0;        // 0: nothing is above
  std::vector<Filter> filters;
  Nanos start = 0;
  Nanos end = 0;
  bool sketched = false;  // percentiles may be known by sketches only
};

// As a parameter `m` of /api/query.
std::string TextOf(const Question& question);

struct Result {
  LineTags tags;
  std::set<std::string> other_keys;
  std::map<Nanos, Number> points;
};

// In the order of the groups' values; of `none` in that of the tags. `lines`: all of the metric.
std::vector<Result> Evaluate(const Question& question, const std::vector<Line>& lines);

// --- What other models need of it ---

// A sum that is exact until it is rounded at its end.
double ExactSum(const std::vector<double>& values);
// Between the values at both sides of share * (n + 1). `sketched`: known by a sketch only.
Number PercentileOf(std::vector<double> values, double share, bool sketched);

}  // namespace sonde::surfaces
