#include "web/opentsdb/put_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "web/source/point_sink.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxTags = 8;  // OpenTSDB's default

// The characters that OpenTSDB accepts in names: ASCII letters and digits, -_./ and other letters.
Status CheckName(std::string_view what, std::string_view name) {
  if (name.empty()) return {Code::kInvalid, fmt::format("Invalid {}: empty string", what)};
  if (name.size() > kMaxNameLength) {
    return {Code::kInvalid, fmt::format("Invalid {}: longer than {} bytes", what, kMaxNameLength)};
  }
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
    if (letter || (c >= '0' && c <= '9') || std::string_view("-_./").find(c) != std::string::npos) {
      continue;
    }
    return {Code::kInvalid,
            fmt::format("Invalid {} (\"{}\"): illegal character: {}", what, name, c)};
  }
  return {};
}

Status CheckNames(const PutPoint& point) {
  SONDE_RETURN_IF_ERROR(CheckName("metric name", point.metric));
  if (point.tags.pairs().size() > kMaxTags) {
    return {Code::kInvalid, fmt::format("Too many tags: {} maximum allowed: {}",
                                        point.tags.pairs().size(), kMaxTags)};
  }
  for (const auto& [key, value] : point.tags.pairs()) {
    SONDE_RETURN_IF_ERROR(CheckName("tag name", key));
    SONDE_RETURN_IF_ERROR(CheckName("tag value", value));
  }
  return {};
}

Status Full(std::string_view what, size_t limit) {
  return {Code::kLimit, fmt::format("the store is full: it has {} {}", limit, what)};
}

Status NoStep(const JobStep& id) {
  return {Code::kNotFound,
          "no step " + id.ToString() + " here: this store has what is put into it"};
}

// One series, in time order.
struct Line {
  std::vector<Point> points;
  std::vector<bool> integers;
  LargeIntegers large;

  // Whether the point is a new one.
  bool Put(const PutPoint& point);
};

bool Line::Put(const PutPoint& point) {
  const Point put = {point.time, point.value};
  large.erase(put.time);
  if (point.integer && IsLarge(point.whole)) large.emplace(put.time, point.whole);
  if (points.empty() || put.time > points.back().time) {
    points.push_back(put);
    integers.push_back(point.integer);
    return true;
  }
  const auto at = std::lower_bound(points.begin(), points.end(), put.time,
                                   [](const Point& p, Nanos t) { return p.time < t; });
  const ptrdiff_t i = at - points.begin();
  const bool added = at->time != put.time;
  if (added) {
    points.insert(at, put);
    integers.insert(integers.begin() + i, point.integer);
  } else {
    *at = put;
    integers[static_cast<size_t>(i)] = point.integer;
  }
  return added;
}

}  // namespace

class PutStore::Held final : public PointSink {
 public:
  Status Put(PutPoint point) override;
  Status PutNote(Note note) override;
  Result<Note> FindNote(const std::string& tsuid, Nanos start) const override;
  size_t RemoveNotes(const std::set<std::string>& tsuids, Nanos first, Nanos last) override;
  Status Push(const PushedValue& value);

  std::vector<Series> List(std::string_view metric, size_t limit) const;
  std::vector<SeriesData> Read(const QuerySpec& spec, const SeriesFilter& filter) const;
  std::vector<Note> Notes(Nanos first, Nanos last) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::map<Tags, Line>, std::less<>> metrics_;
  size_t series_ = 0;
  size_t points_ = 0;
  std::vector<Note> notes_;               // by start
  std::map<std::string, double> pushed_;  // the last values, by SeriesName
};

Status PutStore::Held::Put(PutPoint point) {
  SONDE_RETURN_IF_ERROR(CheckNames(point));
  const std::lock_guard lock(mutex_);
  if (points_ >= kMaxPoints) return Full("points", kMaxPoints);
  std::map<Tags, Line>& metric = metrics_[std::move(point.metric)];
  auto line = metric.find(point.tags);
  if (line == metric.end()) {
    if (series_ >= kMaxSeries) return Full("series", kMaxSeries);
    ++series_;
    line = metric.emplace(std::move(point.tags), Line()).first;
  }
  if (line->second.Put(point)) ++points_;
  return {};
}

Status PutStore::Held::PutNote(Note note) {
  const std::lock_guard lock(mutex_);
  const auto same = std::find_if(notes_.begin(), notes_.end(), [&](const Note& n) {
    return n.start == note.start && n.tsuid == note.tsuid;
  });
  if (same != notes_.end()) {
    *same = std::move(note);
    return {};
  }
  if (notes_.size() >= kMaxNotes) return Full("annotations", kMaxNotes);
  const auto after =
      std::upper_bound(notes_.begin(), notes_.end(), note,
                       [](const Note& a, const Note& b) { return a.start < b.start; });
  notes_.insert(after, std::move(note));
  return {};
}

Result<Note> PutStore::Held::FindNote(const std::string& tsuid, Nanos start) const {
  const std::lock_guard lock(mutex_);
  for (const Note& note : notes_) {
    if (note.tsuid == tsuid && note.start / kSecond == start / kSecond) return note;
  }
  return Status(Code::kNotFound, "Unable to locate annotation in storage");
}

size_t PutStore::Held::RemoveNotes(const std::set<std::string>& tsuids, Nanos first, Nanos last) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(notes_, [&](const Note& note) {
    return note.start >= first && note.start <= last && tsuids.contains(note.tsuid);
  });
}

std::vector<Note> PutStore::Held::Notes(Nanos first, Nanos last) const {
  const std::lock_guard lock(mutex_);
  std::vector<Note> notes;
  std::copy_if(notes_.begin(), notes_.end(), std::back_inserter(notes),
               [&](const Note& n) { return n.start <= last && std::max(n.start, n.end) >= first; });
  return notes;
}

std::vector<Series> PutStore::Held::List(std::string_view metric, size_t limit) const {
  const std::lock_guard lock(mutex_);
  std::vector<Series> list;
  const auto add = [&](const std::string& name, const std::map<Tags, Line>& lines) {
    for (const auto& [tags, line] : lines) {
      if (list.size() >= limit) return;
      Series& series = list.emplace_back();
      series.metric.name = name;
      series.tags = tags;
    }
  };
  if (metric.empty()) {
    for (const auto& [name, lines] : metrics_) add(name, lines);
  } else if (const auto at = metrics_.find(metric); at != metrics_.end()) {
    add(at->first, at->second);
  }
  return list;
}

std::vector<SeriesData> PutStore::Held::Read(const QuerySpec& spec,
                                             const SeriesFilter& filter) const {
  const TimeRange range = DataRange(spec);
  std::vector<SeriesData> out;
  const std::lock_guard lock(mutex_);
  const auto metric = metrics_.find(spec.metric);
  if (metric == metrics_.end()) return out;
  for (const auto& [tags, line] : metric->second) {
    if (!filter.Matches(spec.metric, tags)) continue;
    const auto earlier = [](const Point& p, Nanos t) { return p.time < t; };
    const auto from =
        std::lower_bound(line.points.begin(), line.points.end(), range.first, earlier);
    const auto to = std::lower_bound(from, line.points.end(), range.last + 1, earlier);
    if (from == to) continue;
    SeriesData& data = out.emplace_back();
    data.series.metric.name = spec.metric;
    data.series.tags = tags;
    data.points.assign(from, to);
    if (spec.downsample) continue;
    data.large.insert(line.large.lower_bound(range.first), line.large.upper_bound(range.last));
    if (spec.rate) continue;
    const auto flags = line.integers.begin();
    data.integers.assign(flags + (from - line.points.begin()), flags + (to - line.points.begin()));
    if (std::none_of(data.integers.begin(), data.integers.end(), [](bool i) { return i; })) {
      data.integers.clear();
    }
  }
  return out;
}

Status PutStore::Held::Push(const PushedValue& value) {
  const std::string name = SeriesName(value.series.metric.name, value.series.tags);
  PutPoint point{value.series.metric.name, value.series.tags, Clock::System().Now()};
  {
    const std::lock_guard lock(mutex_);
    auto known = pushed_.find(name);
    const bool is_new = known == pushed_.end();
    if (is_new && value.kind != PushedValue::Kind::kRegister) {
      return {Code::kInvalid, fmt::format("No such key {} cannot set it: /push it first", name)};
    }
    if (is_new && pushed_.size() >= kMaxPushedMetrics) {
      return Full("pushed metrics", kMaxPushedMetrics);
    }
    if (!is_new && value.kind == PushedValue::Kind::kRegister) return {};
    if (is_new) known = pushed_.emplace(name, 0).first;
    double& last = known->second;
    last = value.kind == PushedValue::Kind::kAdd ? last + value.value : value.value;
    point.value = last;
  }
  return Put(std::move(point));
}

PutStore::PutStore() : held_(std::make_unique<Held>()) {}
PutStore::~PutStore() = default;

Status PutStore::Push(const JobStep& /*id*/, const PushedValue& value) const {
  return held_->Push(value);
}

PointSink* PutStore::sink() const { return held_.get(); }

void PutStore::Notes(Nanos first, Nanos last, NotesCallback callback) const {
  callback(held_->Notes(first, last));
}

void PutStore::Jobs(size_t /*limit*/, JobsCallback callback) const {
  callback(std::vector<JobDescription>());
}

void PutStore::GetProfile(const JobStep& id, ProfileCallback callback) const {
  callback(NoStep(id));
}

void PutStore::ReadLive(const JobStep& id, const IsWanted& /*wanted*/, Nanos /*after*/,
                        size_t /*limit*/, RowsCallback callback) const {
  callback(NoStep(id));
}

void PutStore::ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const {
  callback(held_->List(metric, limit));
}

void PutStore::Query(const QuerySpec& spec, Callback callback) const {
  if (const Status bad = CheckQuery(spec); !bad.ok()) return callback(bad);
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  if (!filter.ok()) return callback(filter.status());
  Result<std::vector<QueryResult>> results = Evaluate(spec, held_->Read(spec, *filter));
  if (!results.ok()) return callback(results.status());
  callback(Answer{*std::move(results), 0, 0});
}

}  // namespace sonde::web
