#include "web/opentsdb/answer.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "web/opentsdb/handlers.h"

namespace sonde::web {
namespace {

// The key of a point in the answer.
int64_t TimeKey(Nanos time, bool milliseconds) {
  return milliseconds ? time / kMillisecond : time / kSecond;
}

// Room for a time, a number and the characters around them.
constexpr size_t kPointBytes = 80;
constexpr size_t kBatchBytes = 4096;

constexpr uint32_t kMillion = 1'000'000;

constexpr auto kPairs = [] {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

// Writes six digits of a number below a million.
char* WriteSix(uint32_t number, char* at) {
  std::memcpy(at, &kPairs[size_t{2} * (number / 10'000)], 2);
  std::memcpy(at + 2, &kPairs[size_t{2} * (number / 100 % 100)], 2);
  std::memcpy(at + 4, &kPairs[size_t{2} * (number % 100)], 2);
  return at + 6;
}

// Writes times in order: except for the last six digits they are mostly equal.
class TimeWriter {
 public:
  char* Write(int64_t time, char* at) {
    if (time < kMillion) return std::to_chars(at, at + 24, time).ptr;
    const int64_t front = time / kMillion;
    if (front != front_) {
      front_ = front;
      size_ = static_cast<size_t>(std::to_chars(text_, text_ + sizeof text_, front).ptr - text_);
    }
    std::memcpy(at, text_, sizeof text_);
    return WriteSix(static_cast<uint32_t>(time % kMillion), at + size_);
  }

 private:
  int64_t front_ = -1;
  size_t size_ = 0;
  char text_[16] = {};  // a time in ns has 19 digits, here they are seconds or milliseconds
};

// A number of up to six decimals and fifteen digits that has no shorter form; nullptr for other
// numbers.
char* WriteDecimal(double value, char* at) {
  constexpr double kScale = 1e6;
  constexpr double kExact = 1e15;
  const double scaled = std::nearbyint(std::fabs(value) * kScale);
  if (!(scaled < kExact) || scaled / kScale != std::fabs(value)) return nullptr;
  const auto digits = static_cast<uint64_t>(scaled);
  if (std::signbit(value)) *at++ = '-';
  at = std::to_chars(at, at + 24, digits / kMillion).ptr;
  const auto rest = static_cast<uint32_t>(digits % kMillion);
  if (rest == 0) return at;
  *at++ = '.';
  at = WriteSix(rest, at);
  while (at[-1] == '0') --at;
  return at;
}

// Most numbers are whole or have few decimals; the general way takes long for these.
// `null`: what is not finite is null and no text.
char* WriteNumber(double value, bool null, char* at) {
  constexpr double kExact = 1e15;
  if (std::fabs(value) < kExact) {
    const auto whole = static_cast<int64_t>(value);
    if (static_cast<double>(whole) == value && !(whole == 0 && std::signbit(value))) {
      return std::to_chars(at, at + 24, whole).ptr;
    }
  }
  if (char* end = WriteDecimal(value, at); end != nullptr) return end;
  if (std::isfinite(value)) return std::to_chars(at, at + 32, value).ptr;
  const std::string_view text = null                ? "null"
                                : std::isnan(value) ? "\"NaN\""
                                : value > 0         ? "\"Infinity\""
                                                    : "\"-Infinity\"";
  return std::copy(text.begin(), text.end(), at);
}

void WriteQuery(const QuerySpec& spec, size_t index, JsonWriter& json) {
  json.Key("query").BeginObject();
  json.Field("aggregator", ToString(spec.aggregator)).Field("metric", spec.metric);
  json.Key("tsuids").Null().Key("downsample");
  spec.downsample ? json.Value(DownsampleText(*spec.downsample)) : json.Null();
  json.Field("rate", spec.rate).Field("index", index);
  json.Key("filters").BeginArray();
  for (const TagFilter& filter : spec.filters) {
    json.BeginObject().Field("tagk", filter.key).Field("filter", filter.pattern);
    json.Field("group_by", filter.group_by).Field("type", FilterTypeName(filter.type)).EndObject();
  }
  json.EndArray().Key("rateOptions");
  if (spec.rate) {
    const RateOptions& how = spec.rate_options;
    json.BeginObject().Field("counter", how.counter).Field("counterMax", how.counter_max);
    json.Field("resetValue", how.reset_value).Field("dropResets", how.drop_resets).EndObject();
  } else {
    json.Null();
  }
  json.Field("explicitTags", spec.explicit_tags).EndObject();
}

void WriteTags(const QueryResult& result, JsonWriter& json) {
  json.Field("metric", result.metric);
  json.Key("tags").BeginObject();
  for (const auto& [key, value] : result.tags.pairs()) json.Field(key, value);
  json.EndObject();
  json.Key("aggregateTags").BeginArray();
  for (const std::string& key : result.aggregate_tags) json.Value(key);
  json.EndArray();
}

}  // namespace

size_t AnswerWriter::Points() const {
  size_t points = 0;
  for (const Answer& answer : answers_) {
    for (const QueryResult& one : answer.results) points += one.points.size();
  }
  return points;
}

// Goes on to a result with points. False if there is none any more.
bool AnswerWriter::Skip() {
  for (; answer_ < answers_.size(); ++answer_, result_ = 0) {
    for (; result_ < answers_[answer_].results.size(); ++result_) {
      if (!result().points.empty()) return true;
    }
  }
  return false;
}

// The notes of the result's step, or of all if the result covers several; global ones are all.
void AnswerWriter::AppendNotes(std::string& out) const {
  if (query_->no_annotations || notes_.empty()) return;
  const std::string* job = result().tags.Find("job");
  const auto list = [&](const char* name, const auto& wanted) {
    std::string text;
    for (const Note& note : notes_) {
      if (!wanted(note)) continue;
      text += text.empty() ? "" : ",";
      JsonWriter json(text);
      WriteNote(note, json);
    }
    if (!text.empty()) out += fmt::format(",\"{}\":[{}]", name, text);
  };
  list("annotations", [&](const Note& note) {
    return IsAboutNotes(note) || (!note.job.empty() && (job == nullptr || *job == note.job));
  });
  if (query_->global_annotations) list("globalAnnotations", [](const Note&) { return true; });
}

void AnswerWriter::Begin(std::string& out) {
  out += any_ ? "," : "[";
  any_ = open_ = true;
  point_ = 0;
  JsonWriter json(out);
  json.BeginObject();
  WriteTags(result(), json);
  if (query_->show_query) WriteQuery(query_->queries[answer_], answer_, json);
  AppendNotes(out);
  out += form_.arrays ? ",\"dps\":[" : ",\"dps\":{";
}

// Writes to the end of the result, or until `out` has more than `limit` bytes.
void AnswerWriter::AppendPoints(std::string& out, size_t limit) {
  const std::vector<Point>& points = result().points;
  const LargeIntegers& all_large = result().large;
  const QuerySpec& spec = query_->queries[answer_];
  // Filling with null is about what is missing: infinity is a text then too, as in OpenTSDB.
  const bool fill_null = spec.downsample && spec.downsample->fill == Downsample::Fill::kNull;
  const char open = form_.arrays ? '[' : '"';
  bool first = point_ == 0;
  TimeWriter time;
  char text[kBatchBytes];
  char* at = text;
  const auto flush = [&] {
    out.append(text, static_cast<size_t>(at - text));
    at = text;
  };
  int64_t next = point_ < points.size() ? TimeKey(points[point_].time, query_->milliseconds) : 0;
  while (point_ < points.size() && out.size() < limit) {
    const Point& p = points[point_++];
    const int64_t key = next;
    if (point_ < points.size()) {
      next = TimeKey(points[point_].time, query_->milliseconds);
      // Of several points within one second the last counts: a key must not stand twice.
      if (next == key) continue;
    }
    if (at > text + sizeof text - kPointBytes) flush();
    if (!first) *at++ = ',';
    first = false;
    *at++ = open;
    at = time.Write(key, at);
    if (!form_.arrays) {
      *at++ = '"';
      *at++ = ':';
    } else {
      *at++ = ',';
    }
    const auto large = all_large.find(p.time);
    if (large == all_large.end()) {
      const bool null = form_.nan_null || (fill_null && std::isnan(p.value));
      at = WriteNumber(p.value, null, at);
    } else {
      at = std::to_chars(at, at + 24, large->second).ptr;
    }
    if (form_.arrays) *at++ = ']';
  }
  flush();
}

bool AnswerWriter::Next(std::string& out) {
  const size_t limit = out.size() + kPiece;
  while (out.size() < limit) {
    if (!open_) {
      if (!Skip()) {
        out += any_ ? "]" : "[]";
        return false;
      }
      Begin(out);
    }
    AppendPoints(out, limit);
    if (point_ < result().points.size()) break;
    out += form_.arrays ? "]}" : "}}";
    open_ = false;
    std::vector<Point>().swap(answers_[answer_].results[result_].points);
    ++result_;
  }
  return true;
}

}  // namespace sonde::web
