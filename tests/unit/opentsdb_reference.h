// What OpenTSDB 2.4 answers, computed as plainly as possible and without any of the server's code:
// for every time every series is searched from its beginning. Times are milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace opentsdb_reference {

struct Value {
  bool whole = false;  // an integer of OpenTSDB's, in `integer`; else `real`
  int64_t integer = 0;
  double real = 0;

  double AsReal() const { return whole ? static_cast<double>(integer) : real; }
};

using Line = std::map<int64_t, Value>;

struct Series {
  std::string metric;
  std::map<std::string, std::string> tags;
  Line line;
};

struct Filter {
  std::string type;
  std::string key;
  std::string pattern;
  bool group_by = false;
};

struct Downsample {
  int64_t interval = 0;  // 0: 0all
  std::string unit;  // of a calendar: ms to y, of which `interval` is the number; "": milliseconds
  std::string function;
  std::string fill;  // "", none, nan, null, zero
};

constexpr double kCounterEnd = 9223372036854775807.0;  // the default of counterMax

struct Query {
  int64_t start = 0;
  int64_t end = 0;
  std::string metric;
  std::string aggregator;
  std::optional<Downsample> downsample;
  std::string zone = "UTC";
  bool rate = false;
  bool counter = false;
  bool drop_resets = false;
  double counter_max = kCounterEnd;
  double reset_value = 0;
  std::vector<Filter> filters;
  bool explicit_tags = false;
};

struct Result {
  std::map<std::string, std::string> tags;
  std::set<std::string> aggregate_tags;
  std::map<int64_t, Value> points;  // NaN is missing
};

// What clocks there show, as a date that a request may have.
std::string DateIn(const std::string& zone, int64_t time);
// "" or the message of error 400, for a name that no series has.
std::string UnknownName(const std::vector<Series>& series, const Query& query);
std::vector<Result> Answer(const std::vector<Series>& series, const Query& query);

}  // namespace opentsdb_reference
