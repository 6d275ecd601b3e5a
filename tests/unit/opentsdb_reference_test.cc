// Thousands of random requests to /api/put and /api/query, in both of its forms, against the
// reference in opentsdb_reference.h.
#include "tests/unit/opentsdb_reference.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <random>

#include "tests/unit/opentsdb_fixture.h"

namespace sonde::web {
namespace {

namespace json = boost::json;
namespace ref = opentsdb_reference;
using Random = std::mt19937_64;

constexpr int64_t kBegin = 1'700'002'000'000;  // 2 min 40 s before a full hour
constexpr int64_t kSpan = 1'600'000;

const std::vector<std::string> kAggregators = {
    "sum",    "avg",       "min",    "max",    "count",  "none",   "zimsum", "pfsum",  "mimmin",
    "mimmax", "squareSum", "dev",    "median", "mult",   "diff",   "first",  "last",   "p50",
    "p75",    "p90",       "p95",    "p99",    "p999",   "ep50r3", "ep75r3", "ep90r3", "ep95r3",
    "ep99r3", "ep999r3",   "ep50r7", "ep75r7", "ep90r7", "ep95r7", "ep99r7", "ep999r7"};

template <typename T>
const T& Pick(Random& random, const std::vector<T>& from) {
  return from[random() % from.size()];
}

// --- Data ---

enum class Kind { kWhole, kReal, kMixed, kCounter, kLarge };

ref::Value RandomValue(Random& random, Kind kind, int64_t& counter) {
  if (kind == Kind::kCounter) {
    counter = random() % 9 == 0 ? static_cast<int64_t>(random() % 5)
                                : counter + static_cast<int64_t>(random() % 900);
    return {true, counter, 0};
  }
  if (kind == Kind::kLarge) {  // where a double has steps of 2 and more
    constexpr int64_t kBase = (int64_t{1} << 53) - 40;
    const auto digits = static_cast<int64_t>(random() % 500);
    const int64_t size = random() % 3 == 0 ? kBase : kBase * static_cast<int64_t>(random() % 900);
    return {true, (random() % 4 == 0 ? -1 : 1) * (size + digits), 0};
  }
  const bool whole = kind == Kind::kWhole || (kind == Kind::kMixed && random() % 4 != 0);
  if (whole) return {true, static_cast<int64_t>(random() % 300) - 60, 0};
  return {false, 0, (static_cast<double>(random() % 4000) + 1) / 16 - 60};
}

// When points are.
struct Span {
  int64_t begin = kBegin;
  int64_t length = kSpan;
  std::vector<int64_t> steps = {10'000, 60'000, 7'000, 500};
  uint64_t points = 25;
  bool large = false;  // numbers that doubles do not hold, too
};

ref::Series RandomSeries(Random& random, const Span& span) {
  static const std::vector<std::string> kHosts = {"web01", "web02", "db1", "DB2", "lga-x"};
  static const std::vector<std::string> kSites = {"lga", "SJC", "fra|x"};
  ref::Series series;
  series.metric = Pick<std::string>(random, {"cpu", "cpu", "net.in"});
  series.tags["host"] = Pick(random, kHosts);
  if (random() % 3 != 0) series.tags["dc"] = random() % 2 == 0 ? "lga" : "SJC";
  if (random() % 4 == 0) series.tags["rack"] = "r1";
  auto kind = static_cast<Kind>(random() % 4);
  if (span.large) kind = random() % 4 == 0 ? Kind::kCounter : Kind::kLarge;
  int64_t counter = 0;
  const int64_t step = Pick(random, span.steps);
  int64_t time = span.begin + static_cast<int64_t>(random() % 60) * span.steps.front();
  const uint64_t missing = random() % 2 == 0 ? 3 : 20;
  const int64_t end = span.begin + span.length;
  for (uint64_t n = random() % span.points; n > 0 && time < end; --n, time += step) {
    if (random() % missing == 0) continue;
    series.line[time] = RandomValue(random, kind, counter);
  }
  return series;
}

std::vector<ref::Series> RandomData(Random& random, const Span& span = {}) {
  std::map<std::string, ref::Series> data;
  for (uint64_t n = 1 + random() % 7; n > 0; --n) {
    ref::Series series = RandomSeries(random, span);
    std::string name = series.metric;
    for (const auto& tag : series.tags) name += "," + tag.first + "=" + tag.second;
    if (!series.line.empty()) data[name] = series;
  }
  std::vector<ref::Series> list;
  for (auto& entry : data) list.push_back(entry.second);
  return list;
}

std::string PointOf(Random& random, const ref::Series& series, int64_t time, const ref::Value& v) {
  json::object tags;
  for (const auto& tag : series.tags) tags[tag.first] = tag.second;
  std::string value = v.whole ? std::to_string(v.integer) : fmt::format("{:.6f}", v.real);
  if (random() % 5 == 0) value = "\"" + value + "\"";
  const bool seconds = time % 1000 == 0 && random() % 2 == 0;
  std::string at = std::to_string(seconds ? time / 1000 : time);
  if (random() % 7 == 0) at = "\"" + at + "\"";
  return fmt::format(R"({{"metric":"{}","timestamp":{},"value":{},"tags":{}}})", series.metric, at,
                     value, json::serialize(tags));
}

// --- Queries ---

ref::Filter RandomFilter(Random& random) {
  ref::Filter f;
  f.key = Pick<std::string>(random, {"host", "host", "dc", "rack"});
  f.group_by = random() % 2 == 0;
  f.type =
      Pick<std::string>(random, {"literal_or", "iliteral_or", "not_literal_or", "not_iliteral_or",
                                 "wildcard", "iwildcard", "regexp", "not_key"});
  if (f.type == "not_key") return f;
  if (f.type == "wildcard" || f.type == "iwildcard") {
    f.pattern = Pick<std::string>(random, {"*", "web*", "*1", "d*2", "WEB*", "*b*"});
  } else if (f.type == "regexp") {
    f.pattern = Pick<std::string>(random, {"web", "^(web|db)[0-9]+$", "[A-Z]", ".*", "0{1}1"});
  } else {
    // One that is not there is an error wherever it shows: by itself, or where it would group.
    f.pattern =
        Pick<std::string>(random, {"web01", "web01|db1", "DB2|db1", "lga", "lga|SJC", "r1"});
    if (f.type == "literal_or" && !f.group_by) f.pattern = f.pattern.substr(0, f.pattern.find('|'));
  }
  return f;
}

ref::Downsample RandomDownsample(Random& random) {
  ref::Downsample d;
  d.interval = Pick<int64_t>(random, {0, 10'000, 60'000, 45'000, 3'600'000, 700, 420'000});
  do {
    d.function = Pick(random, kAggregators);
  } while (d.function == "none");
  d.fill = Pick<std::string>(random, {"", "", "none", "nan", "null", "zero"});
  return d;
}

ref::Query RandomQuery(Random& random) {
  ref::Query q;
  q.start = kBegin - 60'000 + static_cast<int64_t>(random() % 1'000) * 1'000;
  q.end = q.start + 1 + static_cast<int64_t>(random() % 1'500'000);
  if (random() % 2 == 0) q.end = q.end / 1000 * 1000 + 1000;
  q.metric = random() % 40 == 0 ? "gpu" : random() % 3 == 0 ? "net.in" : "cpu";
  q.aggregator = Pick(random, kAggregators);
  if (random() % 2 == 0) q.downsample = RandomDownsample(random);
  q.rate = random() % 3 == 0;
  q.counter = random() % 2 == 0;
  q.drop_resets = random() % 3 == 0;
  if (random() % 2 == 0) q.counter_max = random() % 3 == 0 ? 0 : 5000;
  if (random() % 2 == 0) q.reset_value = 100;
  for (uint64_t n = random() % 3; n > 0; --n) q.filters.push_back(RandomFilter(random));
  q.explicit_tags = random() % 5 == 0;
  return q;
}

// Of a calendar with something of it: an autumn in which clocks are put back.
constexpr int64_t kAutumn = 1'697'900'000'000;
constexpr int64_t kHour = 3'600'000;
const std::vector<std::string> kZones = {"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata",
                                         "Australia/Lord_Howe"};

ref::Query RandomCalendarQuery(Random& random) {
  ref::Query q = RandomQuery(random);
  q.zone = Pick(random, kZones);
  q.start = kAutumn + static_cast<int64_t>(random() % 40) * kHour * 7;
  if (random() % 2 == 0) q.start += 17'000;
  if (!q.downsample) q.downsample = RandomDownsample(random);
  ref::Downsample& d = *q.downsample;
  d.unit = Pick<std::string>(random, {"ms", "s", "m", "h", "d", "w", "n", "y"});
  d.interval = Pick<int64_t>(random, {1, 1, 2, 3, 5, 7});
  if (d.unit == "ms" || d.unit == "s" || d.unit == "m")
    q.start = kAutumn + static_cast<int64_t>(random() % 2) * kHour;
  int64_t range = 100 * 24 * kHour;
  if (d.unit == "ms") range = 1'000;
  if (d.unit == "s") range = 2 * kHour;
  if (d.unit == "m") range = 30 * kHour;
  q.end = q.start + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(range));
  if (d.unit == "y") q.end += 400 * 24 * kHour;
  if (d.unit != "ms") q.start = q.start / 1000 * 1000;
  return q;
}

std::string Interval(Random& random, int64_t interval) {
  if (interval == 0) return Pick<std::string>(random, {"0all", "1all", "0ALL"});
  if (interval % 3'600'000 == 0) return fmt::format("{}h", interval / 3'600'000);
  if (interval % 60'000 == 0 && random() % 2 == 0) return fmt::format("{}M", interval / 60'000);
  if (interval % 1000 == 0) return fmt::format("{}s", interval / 1000);
  return fmt::format("{}ms", interval);
}

std::string DownsampleText(Random& random, const ref::Downsample& d) {
  std::string text =
      d.unit.empty() ? Interval(random, d.interval) : fmt::format("{}{}c", d.interval, d.unit);
  text += "-" + d.function;
  if (!d.fill.empty()) text += "-" + d.fill;
  if (d.fill.empty() && random() % 6 == 0) text += "-";
  return text;
}

json::object FiltersField(const ref::Query& q) {
  json::array list;
  for (const ref::Filter& f : q.filters) {
    list.push_back(
        {{"type", f.type}, {"tagk", f.key}, {"filter", f.pattern}, {"groupBy", f.group_by}});
  }
  return {{"filters", list}};
}

std::string PostBody(Random& random, const ref::Query& q) {
  json::object sub = {{"metric", q.metric}, {"aggregator", q.aggregator}};
  if (q.downsample) sub["downsample"] = DownsampleText(random, *q.downsample);
  if (q.rate) {
    sub["rate"] = true;
    json::object options = {{"counter", q.counter}, {"dropResets", q.drop_resets}};
    if (q.counter_max < ref::kCounterEnd)
      options["counterMax"] = static_cast<int64_t>(q.counter_max);
    if (q.reset_value > 0) options["resetValue"] = "100";
    sub["rateOptions"] = options;
  }
  sub["explicitTags"] = q.explicit_tags;
  // Of both forms the later one counts.
  if (random() % 4 == 0) sub["tags"] = {{"host", "nobody"}};
  for (auto& field : FiltersField(q)) sub[field.key()] = field.value();
  json::object body = {{"start", q.start}, {"end", std::to_string(q.end)}, {"msResolution", true}};
  if (q.zone != "UTC") body["timezone"] = q.zone;
  if (q.start % 1000 == 0 && random() % 3 == 0) body["start"] = ref::DateIn(q.zone, q.start);
  body["queries"] = json::array{sub};
  return json::serialize(body);
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  return out;
}

// Without what only the other form can say.
std::string GetTarget(Random& random, const ref::Query& q) {
  std::string m = q.aggregator + ":";
  if (q.rate) {
    m += "rate";
    if (q.counter) {
      m += std::string("{") + (q.drop_resets ? "dropcounter" : "counter");
      const bool most = q.counter_max < ref::kCounterEnd;
      m += most || q.reset_value > 0 ? "," : "";
      if (most) m += std::to_string(static_cast<int64_t>(q.counter_max));
      if (q.reset_value > 0) m += ",100";
      m += "}";
    }
    m += ":";
  }
  if (q.downsample) m += DownsampleText(random, *q.downsample) + ":";
  if (q.explicit_tags) m += "explicit_tags:";
  m += q.metric;
  for (const bool group_by : {true, false}) {
    std::string list;
    for (const ref::Filter& f : q.filters) {
      if (f.group_by != group_by) continue;
      list += (list.empty() ? "" : ",") + f.key + "=" + f.type + "(" + f.pattern + ")";
    }
    m += "{" + list + "}";
  }
  std::string zone;
  if (q.zone != "UTC") zone = "&timezone=" + Escaped(q.zone);
  return fmt::format("/api/query?start={}ms&end={}{}&ms&m={}", q.start, q.end, zone, Escaped(m));
}

// --- Comparison ---

using Points = std::map<int64_t, ref::Value>;

ref::Value Number(const json::value& value) {
  const auto real = [](double number) { return ref::Value{false, 0, number}; };
  if (value.is_null()) return real(std::nan(""));
  if (const json::string* text = value.if_string()) {
    if (*text == "NaN") return real(std::nan(""));
    return real(*text == "Infinity" ? HUGE_VAL : -HUGE_VAL);
  }
  if (value.is_int64()) return {true, value.as_int64(), 0};
  return real(value.to_number<double>());
}

Points PointsOf(const json::value& dps) {
  Points points;
  if (const json::object* object = dps.if_object()) {
    for (const auto& point : *object)
      points[std::stoll(std::string(point.key()))] = Number(point.value());
  } else {
    for (const json::value& point : dps.as_array()) {
      points[point.at(0).to_number<int64_t>()] = Number(point.at(1));
    }
  }
  return points;
}

bool Near(double a, double b, double scale) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b))
    return a == b || (std::fabs(a) > 1e308 && std::fabs(b) > 1e308);
  return std::fabs(a - b) <= 1e-9 * (scale + std::fabs(a));
}

bool Same(const ref::Value& got, const ref::Value& expected) {
  if (expected.whole) return got.whole && got.integer == expected.integer;
  return Near(got.AsReal(), expected.AsReal(), 1e3);
}

void ExpectSame(const json::value& got, const std::vector<ref::Result>& expected) {
  ASSERT_EQ(got.as_array().size(), expected.size());
  std::map<std::string, const json::value*> by_tags;
  for (const json::value& result : got.as_array()) {
    std::map<std::string, std::string> tags;
    for (const auto& tag : result.at("tags").as_object()) {
      tags[std::string(tag.key())] = std::string(tag.value().as_string());
    }
    by_tags[testing::PrintToString(tags)] = &result;
  }
  for (const ref::Result& one : expected) {
    const std::string tags = testing::PrintToString(one.tags);
    ASSERT_TRUE(by_tags.count(tags) == 1) << tags;
    std::set<std::string> others;
    for (const json::value& key : by_tags[tags]->at("aggregateTags").as_array()) {
      others.emplace(key.as_string());
    }
    ASSERT_EQ(others, one.aggregate_tags);
    const Points points = PointsOf(by_tags[tags]->at("dps"));
    ASSERT_EQ(points.size(), one.points.size()) << tags;
    for (const auto& point : one.points) {
      ASSERT_EQ(points.count(point.first), 1u) << tags << " at " << point.first;
      const ref::Value& value = points.at(point.first);
      ASSERT_TRUE(Same(value, point.second))
          << fmt::format("{} at {}: {:.17g}, expected {:.17g}", tags, point.first, value.AsReal(),
                         point.second.AsReal());
    }
  }
}

class Reference : public OpenTsdbTest {
 protected:
  void Fill(Random& random, const std::vector<ref::Series>& data) {
    source_ = std::make_shared<PutStore>();
    std::vector<std::string> points;
    for (const ref::Series& series : data) {
      for (const auto& point : series.line) {
        // What is put before is put over.
        if (random() % 10 == 0)
          points.push_back(PointOf(random, series, point.first, {true, 7, 0}));
        points.push_back(PointOf(random, series, point.first, point.second));
      }
    }
    for (size_t at = 0; at < points.size();) {
      std::string body = points[at++];
      for (uint64_t n = random() % 30; n > 0 && at < points.size(); --n) body += "," + points[at++];
      if (body.find("},{") != std::string::npos || random() % 2 == 0) body = "[" + body + "]";
      ASSERT_EQ(Post("/api/put", body).status, 204) << body;
    }
  }

  void ExpectAnswer(const Response& response, const std::string& error,
                    const std::vector<ref::Result>& expected) {
    if (!error.empty()) {
      // Of several unknown names either may be told.
      const std::string message = Message(response);
      ASSERT_EQ(message.substr(0, 18), error.substr(0, 18));
    } else {
      ExpectSame(Json(response), expected);
    }
  }
  enum class Outcome { kAnswered, kNothing, kRefused };
  // In both forms of the request.
  Outcome Compare(Random& random, const std::vector<ref::Series>& data, const ref::Query& query) {
    const std::string error = ref::UnknownName(data, query);
    const std::vector<ref::Result> expected =
        error.empty() ? ref::Answer(data, query) : std::vector<ref::Result>();
    const std::string body = PostBody(random, query);
    const std::string target = GetTarget(random, query);
    const testing::ScopedTrace trace(__FILE__, __LINE__, body + "\n" + target);
    ExpectAnswer(Post(random() % 2 == 0 ? "/api/query" : "/api/query?arrays=true", body), error,
                 expected);
    ExpectAnswer(Get(target), error, expected);
    if (!error.empty()) return Outcome::kRefused;
    return expected.empty() ? Outcome::kNothing : Outcome::kAnswered;
  }
};

TEST_F(Reference, RandomRequestsAgree) {
  Random random(11);
  std::map<std::string, int> answered;
  int refused = 0;
  for (int round = 0; round < 1'500; ++round) {
    const std::vector<ref::Series> data = RandomData(random);
    Fill(random, data);
    for (int i = 0; i < 8; ++i) {
      const ref::Query query = RandomQuery(random);
      switch (Compare(random, data, query)) {
        case Outcome::kRefused:
          ++refused;
          break;
        case Outcome::kAnswered:
          ++answered[query.aggregator];
          break;
        case Outcome::kNothing:
          break;
      }
      ASSERT_FALSE(HasFatalFailure()) << "round " << round;
    }
  }
  EXPECT_EQ(answered.size(), kAggregators.size());
  for (const auto& count : answered) EXPECT_GT(count.second, 50) << count.first;
  EXPECT_GT(refused, 200);
}

// Numbers beyond 2^53, to the last digit where they are whole.
TEST_F(Reference, LargeIntegersAgree) {
  Random random(13);
  std::map<std::string, int> answered;
  Span span;
  span.large = true;
  for (int round = 0; round < 400; ++round) {
    const std::vector<ref::Series> data = RandomData(random, span);
    Fill(random, data);
    for (int i = 0; i < 8; ++i) {
      ref::Query query = RandomQuery(random);
      if (i % 4 != 0) query.downsample.reset();
      const Outcome outcome = Compare(random, data, query);
      ASSERT_FALSE(HasFatalFailure()) << "round " << round;
      if (outcome == Outcome::kAnswered) ++answered[query.aggregator];
    }
  }
  EXPECT_EQ(answered.size(), kAggregators.size());
  for (const auto& count : answered) EXPECT_GT(count.second, 10) << count.first;
}

TEST_F(Reference, RandomRequestsByTheCalendarAgree) {
  Random random(12);
  std::map<std::string, int> answered;
  for (int round = 0; round < 600; ++round) {
    const Span days = {
        kAutumn, 150 * 24 * kHour, {kHour, 5 * kHour, 26 * kHour, 9 * 24 * kHour}, 90};
    const Span minutes = {kAutumn, 90 * kHour, {60'000, 7'000, 61'000, 1'000'000}, 200};
    const std::vector<ref::Series> data = RandomData(random, round % 2 == 0 ? days : minutes);
    Fill(random, data);
    for (int i = 0; i < 8; ++i) {
      const ref::Query query = RandomCalendarQuery(random);
      const Outcome outcome = Compare(random, data, query);
      ASSERT_FALSE(HasFatalFailure()) << "round " << round;
      if (outcome == Outcome::kAnswered) ++answered[query.downsample->unit + " " + query.zone];
    }
  }
  for (const std::string unit : {"s", "m", "h", "d", "w", "n", "y"}) {
    for (const std::string& zone : kZones)
      EXPECT_GT(answered[unit + " " + zone], 5) << unit << zone;
  }
}

}  // namespace
}  // namespace sonde::web
