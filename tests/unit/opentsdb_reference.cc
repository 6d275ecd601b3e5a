#include "tests/unit/opentsdb_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <regex>
#include <sstream>

namespace opentsdb_reference {
namespace {

constexpr int64_t kHour = 3600 * 1000;

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, '|');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

bool OneOf(const std::string& value, const std::string& pattern) {
  for (const std::string& part : Split(pattern)) {
    if (part == value) return true;
  }
  return false;
}

// Every way to let the first star end.
bool Glob(const std::string& pattern, const std::string& text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*') {
    return !text.empty() && text[0] == pattern[0] && Glob(pattern.substr(1), text.substr(1));
  }
  for (size_t i = 0; i <= text.size(); ++i) {
    if (Glob(pattern.substr(1), text.substr(i))) return true;
  }
  return false;
}

bool Matches(const Filter& f, const std::string& value) {
  if (f.type == "literal_or") return OneOf(value, f.pattern);
  if (f.type == "not_literal_or") return !OneOf(value, f.pattern);
  if (f.type == "iliteral_or") return OneOf(Lower(value), Lower(f.pattern));
  if (f.type == "not_iliteral_or") return !OneOf(Lower(value), Lower(f.pattern));
  if (f.type == "wildcard") return Glob(f.pattern, value);
  if (f.type == "iwildcard") return Glob(Lower(f.pattern), Lower(value));
  return std::regex_search(value, std::regex(f.pattern));
}

bool Selected(const Series& series, const Query& query) {
  if (series.metric != query.metric) return false;
  std::set<std::string> keys;
  for (const Filter& f : query.filters) {
    const auto tag = series.tags.find(f.key);
    if (f.type == "not_key") {
      if (tag != series.tags.end()) return false;
      continue;
    }
    keys.insert(f.key);
    if (tag == series.tags.end() || !Matches(f, tag->second)) return false;
  }
  if (!query.explicit_tags) return true;
  for (const auto& tag : series.tags) {
    if (keys.count(tag.first) == 0) return false;
  }
  return true;
}

// --- Aggregators ---

double PercentileOf(std::vector<double> values, double percent, const std::string& how) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double p = percent / 100;
  double place = percent * (n + 1) / 100;
  if (how == "r3") place = p <= 0.5 / n ? 0 : std::nearbyint(n * p);
  if (how == "r7") place = 1 + (n - 1) * p;
  if (place < 1) return values.front();
  if (place >= n) return values.back();
  const double floor = std::floor(place);
  const double low = values[static_cast<size_t>(floor) - 1];
  const double high = values[static_cast<size_t>(floor)];
  return low + (place - floor) * (high - low);
}

bool IsPercentile(const std::string& name) {
  return (name[0] == 'p' && name != "pfsum") || name.substr(0, 2) == "ep";
}

double Percentile(const std::string& name, const std::vector<double>& values, bool whole) {
  const bool estimated = name[0] == 'e';
  const std::string number = name.substr(estimated ? 2 : 1, name.find('r') - (estimated ? 2 : 1));
  const double percent = number == "999" ? 99.9 : std::stod(number);
  return PercentileOf(values, percent, estimated && whole ? name.substr(name.find('r')) : "");
}

// Without NaN.
double FoldReal(const std::string& name, std::vector<double> values, bool whole) {
  std::vector<double> kept;
  for (const double v : values) {
    if (!std::isnan(v)) kept.push_back(v);
  }
  if (name == "count") return static_cast<double>(kept.size());
  if (kept.empty()) return std::nan("");
  const double first = kept.front();
  const double last = kept.back();
  if (IsPercentile(name)) return Percentile(name, kept, whole);
  if (name == "first") return first;
  if (name == "last") return last;
  if (name == "diff") return last - first;
  if (name == "min" || name == "mimmin") return *std::min_element(kept.begin(), kept.end());
  if (name == "max" || name == "mimmax") return *std::max_element(kept.begin(), kept.end());
  if (name == "median") {
    std::sort(kept.begin(), kept.end());
    return kept[kept.size() / 2];
  }
  if (name == "mult") {
    double product = 1;
    for (const double v : kept) product *= v;
    return product;
  }
  if (name == "squareSum") {
    double sum = 0;
    for (const double v : kept) sum += v * v;
    return sum;
  }
  if (name == "dev") {
    double mean = kept[0];
    double squares = 0;
    for (size_t i = 1; i < kept.size(); ++i) {
      const double before = mean;
      mean = before + (kept[i] - before) / static_cast<double>(i + 1);
      squares += (kept[i] - before) * (kept[i] - mean);
    }
    return std::sqrt(squares / static_cast<double>(kept.size()));
  }
  double sum = 0;
  for (const double v : kept) sum += v;
  return name == "avg" ? sum / static_cast<double>(kept.size()) : sum;
}

__extension__ typedef __int128 Wide;  // NOLINT(modernize-use-using): no extension there

Value Real(double value) { return {false, 0, value}; }

// One that 64 bits do not hold is a fraction, other than there.
Value WholeOrReal(Wide value) {
  if (value > INT64_MAX || value < INT64_MIN) return Real(static_cast<double>(value));
  return {true, static_cast<int64_t>(value), 0};
}

Value FoldWhole(const std::string& name, const std::vector<int64_t>& values) {
  if (name == "mult") {
    uint64_t product = 1;
    for (const int64_t v : values) product *= static_cast<uint64_t>(v);
    return {true, static_cast<int64_t>(product), 0};
  }
  const bool sums = name == "sum" || name == "zimsum" || name == "pfsum";
  if (sums || name == "avg") {
    Wide sum = 0;
    for (const int64_t v : values) sum += v;
    return WholeOrReal(sums ? sum : sum / static_cast<Wide>(values.size()));
  }
  std::vector<int64_t> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  if (name == "min" || name == "mimmin") return WholeOrReal(sorted.front());
  if (name == "max" || name == "mimmax") return WholeOrReal(sorted.back());
  if (name == "median") return WholeOrReal(sorted[sorted.size() / 2]);
  if (name == "first") return WholeOrReal(values.front());
  if (name == "last") return WholeOrReal(values.back());
  if (name == "diff") return WholeOrReal(static_cast<Wide>(values.back()) - values.front());
  const std::vector<double> real(values.begin(), values.end());
  return Real(std::trunc(FoldReal(name, real, true)));
}

// --- Calendars ---

// The C library's clocks, for as long as this is there.
class Clocks {
 public:
  explicit Clocks(const std::string& zone) {
    setenv("TZ", zone.c_str(), 1);
    tzset();
  }
  ~Clocks() {
    unsetenv("TZ");
    tzset();
  }
  Clocks(const Clocks&) = delete;
  Clocks& operator=(const Clocks&) = delete;

  static std::tm Show(int64_t time) {
    const time_t seconds = time / 1000;
    std::tm parts{};
    localtime_r(&seconds, &parts);
    return parts;
  }
  static int64_t At(std::tm parts) {
    parts.tm_isdst = -1;
    return static_cast<int64_t>(mktime(&parts)) * 1000;
  }
};

// So many units later: days and more by the date, less by time.
int64_t Later(int64_t time, const std::string& unit, int64_t count) {
  if (unit == "ms") return time + count;
  if (unit == "s") return time + count * 1000;
  if (unit == "m") return time + count * 60'000;
  if (unit == "h") return time + count * kHour;
  std::tm parts = Clocks::Show(time);
  const int n = static_cast<int>(count);
  if (unit == "d") parts.tm_mday += n;
  if (unit == "w") parts.tm_mday += 7 * n;
  if (unit == "n") parts.tm_mon += n;
  if (unit == "y") parts.tm_year += n;
  return Clocks::At(parts);
}

// The start of the bucket that holds `time`: from something round before it, step by step.
int64_t RoundBefore(int64_t time, const std::string& unit, int64_t count) {
  std::tm parts = Clocks::Show(time);
  const bool small = unit == "ms" || unit == "s" || unit == "m" || unit == "h";
  // 0: the second is left as it is, 1: the minute, and so on to 5: the year.
  int level = 0;
  if (unit == "ms") level = 1000 % count == 0 ? 0 : 1;
  if (unit == "s") level = 60 % count == 0 ? 1 : 2;
  if (unit == "m") level = 60 % count == 0 ? 2 : 3;
  if (unit == "h") level = 24 % count == 0 ? 3 : 4;
  if (unit == "d") level = count == 1 ? 4 : 5;
  if (unit == "w") level = 3;
  if (unit == "n" || unit == "y") level = 5;
  if (level >= 1) parts.tm_sec = 0;
  if (level >= 2) parts.tm_min = 0;
  if (level >= 3) parts.tm_hour = 0;
  if (level >= 4) parts.tm_mday = 1;
  if (level >= 5) parts.tm_mon = 0;
  if (unit == "w") parts.tm_mday -= parts.tm_wday;
  int64_t at = Clocks::At(parts);
  if (small && level == 0) at = time / 1000 * 1000;
  if (unit == "w") return at;
  while (Later(at, unit, count) <= time) at = Later(at, unit, count);
  return at;
}

// Where buckets begin that hold the range.
std::vector<int64_t> Edges(const Query& query) {
  const Clocks clocks(query.zone);
  const Downsample& how = *query.downsample;
  std::vector<int64_t> edges = {RoundBefore(query.start, how.unit, how.interval)};
  while (edges.back() <= query.end) edges.push_back(Later(edges.back(), how.unit, how.interval));
  return edges;
}

// --- Series ---

int64_t FloorTo(int64_t time, int64_t interval) { return time - time % interval; }

// Rows of an hour, of which the range touches the first and the last.
void ReadRange(const Query& query, int64_t& first, int64_t& last) {
  first = FloorTo(query.start, kHour);
  last = FloorTo(query.end, kHour) + kHour - 1;
  if (!query.downsample) return;
  const int64_t interval = query.downsample->interval;
  if (interval == 0) {
    first = query.start;
    last = query.end - 1;
    return;
  }
  if (!query.downsample->unit.empty()) {
    const std::vector<int64_t> edges = Edges(query);
    first = edges.front();
    last = edges.back() - 1;
    return;
  }
  first = FloorTo(FloorTo(query.start, interval), kHour);
  last = FloorTo(query.end, interval) + interval;
  if (last % kHour != 0) last = FloorTo(last, kHour) + kHour;
  --last;
}

Line Cut(const Line& line, int64_t first, int64_t last) {
  Line out;
  for (const auto& point : line) {
    if (point.first >= first && point.first <= last) out.insert(point);
  }
  return out;
}

Line Downsampled(const Line& line, const Query& query, int64_t first, int64_t last) {
  const Downsample& how = *query.downsample;
  Line out;
  if (line.empty()) return out;
  if (how.interval == 0) {
    std::vector<double> values;
    for (const auto& point : line) values.push_back(point.second.AsReal());
    out[query.start] = Real(FoldReal(how.function, values, false));
    return out;
  }
  const bool fills = how.fill == "nan" || how.fill == "null" || how.fill == "zero";
  std::vector<int64_t> edges;
  if (!how.unit.empty()) {
    edges = Edges(query);
  } else {
    int64_t bucket = FloorTo(first, how.interval);
    if (bucket < first) bucket += how.interval;
    for (; bucket <= last; bucket += how.interval) edges.push_back(bucket);
    edges.push_back(bucket);
  }
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    const int64_t bucket = edges[i];
    std::vector<double> values;
    for (auto at = line.lower_bound(bucket); at != line.end(); ++at) {
      if (at->first >= edges[i + 1]) break;
      values.push_back(at->second.AsReal());
    }
    if (!values.empty()) {
      out[bucket] = Real(FoldReal(how.function, values, false));
    } else if (fills) {
      out[bucket] = Real(how.fill == "zero" ? 0 : std::nan(""));
    }
  }
  return out;
}

Line Rates(const Line& line, const Query& query) {
  Line out;
  const double top = query.counter_max;
  for (auto now = line.begin(); now != line.end(); ++now) {
    if (now == line.begin()) continue;
    const auto before = std::prev(now);
    const double a = before->second.AsReal();
    const double b = now->second.AsReal();
    const double seconds = static_cast<double>(now->first - before->first) / 1000;
    const bool whole = before->second.whole && now->second.whole;
    const Wide rise = static_cast<Wide>(now->second.integer) - before->second.integer;
    if (!query.counter || !(whole ? rise < 0 : b < a)) {
      out[now->first] = Real((whole ? static_cast<double>(rise) : b - a) / seconds);
      continue;
    }
    if (query.drop_resets) continue;
    const double rate = (top - a + b) / seconds;
    out[now->first] = Real(query.reset_value > 0 && rate > query.reset_value ? 0 : rate);
  }
  return out;
}

// --- Groups ---

// What a series counts for between a and b.
Value Between(const Query& query, int64_t time, int64_t ta, const Value& a, int64_t tb,
              const Value& b, bool whole) {
  const std::string& name = query.aggregator;
  if (query.rate || name == "pfsum") return a;
  if (name == "count" || name == "zimsum" || name == "squareSum" || name == "first" ||
      name == "last") {
    return {whole, 0, 0};
  }
  if (name == "mimmin") return {whole, INT64_MAX, std::numeric_limits<double>::max()};
  if (name == "mimmax") return {whole, INT64_MIN, -std::numeric_limits<double>::max()};
  if (whole) {
    const Wide rise = static_cast<Wide>(b.integer) - a.integer;
    return {true, static_cast<int64_t>(a.integer + (time - ta) * rise / (tb - ta)), 0};
  }
  return Real(a.AsReal() + static_cast<double>(time - ta) * (b.AsReal() - a.AsReal()) /
                               static_cast<double>(tb - ta));
}

// Whether nothing that could be used at that time is a fraction.
bool AllWhole(const std::vector<Line>& lines, int64_t time) {
  for (const Line& line : lines) {
    if (line.empty() || time > line.rbegin()->first) continue;
    const auto next = line.upper_bound(time);
    if (next != line.end() && !next->second.whole) return false;
    if (next != line.begin() && !std::prev(next)->second.whole) return false;
  }
  return true;
}

Value At(const std::vector<Line>& lines, const Query& query, int64_t time) {
  const bool whole = AllWhole(lines, time);
  std::vector<Value> values;
  for (const Line& line : lines) {
    if (line.empty() || time < line.begin()->first || time > line.rbegin()->first) continue;
    const auto after = line.lower_bound(time);
    if (after->first == time) {
      values.push_back(after->second);
      continue;
    }
    const auto before = std::prev(after);
    values.push_back(
        Between(query, time, before->first, before->second, after->first, after->second, whole));
  }
  if (query.aggregator == "none") return values.at(0);
  std::vector<int64_t> integers;
  std::vector<double> reals;
  for (const Value& v : values) {
    integers.push_back(v.integer);
    reals.push_back(v.AsReal());
  }
  if (!whole) return Real(FoldReal(query.aggregator, reals, false));
  return FoldWhole(query.aggregator, integers);
}

Result Describe(const std::vector<const Series*>& group) {
  Result result;
  std::set<std::string> keys;
  for (const Series* series : group) {
    for (const auto& tag : series->tags) keys.insert(tag.first);
  }
  for (const std::string& key : keys) {
    std::set<std::string> values;
    for (const Series* series : group) {
      const auto tag = series->tags.find(key);
      if (tag != series->tags.end()) values.insert(tag->second);
    }
    if (values.size() == 1) {
      result.tags[key] = *values.begin();
    } else {
      result.aggregate_tags.insert(key);
    }
  }
  return result;
}

}  // namespace

std::string DateIn(const std::string& zone, int64_t time) {
  const Clocks clocks(zone);
  const std::tm parts = Clocks::Show(time);
  char text[32];
  strftime(text, sizeof text, "%Y/%m/%d-%H:%M:%S", &parts);
  return text;
}

std::string UnknownName(const std::vector<Series>& series, const Query& query) {
  bool metric = false;
  std::set<std::string> keys;
  std::set<std::string> values;
  for (const Series& s : series) {
    metric = metric || s.metric == query.metric;
    for (const auto& tag : s.tags) {
      keys.insert(tag.first);
      values.insert(tag.second);
    }
  }
  if (!metric) return "No such name for 'metrics': '" + query.metric + "'";
  for (const Filter& f : query.filters) {
    if (keys.count(f.key) == 0) return "No such name for 'tagk': '" + f.key + "'";
    if (f.type != "literal_or") continue;
    for (const std::string& value : Split(f.pattern)) {
      if (values.count(value) == 0) return "No such name for 'tagv': '" + value + "'";
    }
  }
  return "";
}

std::vector<Result> Answer(const std::vector<Series>& series, const Query& query) {
  int64_t first = 0;
  int64_t last = 0;
  ReadRange(query, first, last);
  std::vector<const Series*> selected;
  for (const Series& s : series) {
    if (Selected(s, query) && !Cut(s.line, first, last).empty()) selected.push_back(&s);
  }
  std::sort(selected.begin(), selected.end(),
            [](const Series* a, const Series* b) { return a->tags < b->tags; });
  std::map<std::vector<std::string>, std::vector<const Series*>> groups;
  for (size_t i = 0; i < selected.size(); ++i) {
    std::vector<std::string> group;
    std::set<std::string> keys;
    for (const Filter& f : query.filters) {
      if (f.group_by && f.type != "not_key") keys.insert(f.key);
    }
    for (const std::string& key : keys) group.push_back(selected[i]->tags.at(key));
    if (query.aggregator == "none") group = {std::to_string(i)};
    groups[group].push_back(selected[i]);
  }
  std::vector<Result> results;
  for (const auto& group : groups) {
    std::vector<Line> lines;
    std::vector<const Series*> members;
    std::set<int64_t> times;
    for (const Series* s : group.second) {
      Line line = Cut(s->line, first, last);
      if (query.downsample) line = Downsampled(line, query, first, last);
      if (query.rate) line = Rates(line, query);
      if (line.empty()) continue;
      members.push_back(s);
      for (const auto& point : line) {
        if (point.first >= query.start && point.first <= query.end) times.insert(point.first);
      }
      lines.push_back(line);
    }
    Result result = Describe(members);
    for (const int64_t time : times) result.points[time] = At(lines, query, time);
    if (!result.points.empty()) results.push_back(result);
  }
  return results;
}

}  // namespace opentsdb_reference
