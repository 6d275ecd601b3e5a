#include "series/query/part.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "series/query/aggregate.h"
#include "series/query/steps.h"

namespace sonde {

using namespace query_steps;

namespace {

// A series that takes part, after downsampling and rate.
struct Member {
  Tags tags;
  bool counts = false;
  std::vector<Point> points;
  std::optional<double> held = {};  // after its last point, of a counter
};

Status TooManyPoints(const QuerySpec& spec) { return TooLarge(spec, "points", kMaxPartPoints); }

// Where the group stands among the others.
std::vector<std::string> Place(const QuerySpec& spec, const QueryPart& part, const Tags& tags) {
  if (!KeepsSeries(spec)) return GroupOf(tags, part.keys);
  std::vector<std::string> place;
  for (const auto& [key, value] : tags.pairs()) {
    place.push_back(key);
    place.push_back(value);
  }
  return place;
}

// --- The times of a group ---

using Times = std::vector<Nanos>;

// Sorts what follows the first `middle` times in among them; each time stays once.
void MergeTimes(Times& times, size_t middle) {
  if (middle != 0 && middle != times.size() && times[middle - 1] >= times[middle]) {
    std::inplace_merge(times.begin(), times.begin() + static_cast<ptrdiff_t>(middle), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
  }
}

// The points' times within the range.
Times TimesOfPoints(const std::vector<Member>& members, const QuerySpec& spec) {
  Times times;
  for (const Member& m : members) {
    const size_t middle = times.size();
    for (const Point& p : m.points) {
      if (p.time >= spec.start && p.time <= spec.end) times.push_back(p.time);
    }
    // Series of one node mostly have the same times.
    const size_t added = times.size() - middle;
    if (added == middle && std::equal(times.begin(), times.begin() + static_cast<ptrdiff_t>(middle),
                                      times.begin() + static_cast<ptrdiff_t>(middle))) {
      times.resize(middle);
    } else {
      MergeTimes(times, middle);
    }
  }
  return times;
}

// For a series that is kept by itself also the points next to the range, to which its values lead.
Times TimesAround(const std::vector<Point>& points, const QuerySpec& spec) {
  Times times;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool leads = i + 1 < points.size() && points[i + 1].time < spec.start;
    const bool follows = i > 0 && points[i - 1].time > spec.end;
    if (!leads && !follows) times.push_back(points[i].time);
  }
  return times;
}

// Whether a counter keeps another value after its last bucket than that bucket has.
bool HoldsAnother(const std::vector<Member>& members) {
  return std::any_of(members.begin(), members.end(),
                     [](const Member& m) { return m.held && *m.held != m.points.back().value; });
}

// The times of the grid at which the group may have a value. `beyond`: and the next one, which has
// what counters keep after their last buckets (MergePart).
Status AddGrid(const std::vector<Member>& members, const QuerySpec& spec, const QueryGrid& grid,
               bool beyond, Times& times) {
  Nanos first = spec.end;
  Nanos last = spec.start;
  for (const Member& m : members) {
    first = std::min(first, m.points.front().time);
    last = std::max(last, m.points.back().time);
  }
  first = std::max(first, spec.start);
  last = std::min(last, spec.end);
  if (first > last) return {};
  if (beyond) last = std::min(grid.After(last), spec.end);
  const size_t middle = times.size();
  if (!grid.AddTo(first, last, times)) return TooManyPoints(spec);
  MergeTimes(times, middle);
  return {};
}

// A series that ended before the range has no time in it, but the start, which has its total.
void AddStart(const std::vector<Member>& members, const QuerySpec& spec, Times& times) {
  const bool ended = std::any_of(members.begin(), members.end(), [&](const Member& m) {
    return m.points.back().time < spec.start;
  });
  if (!ended || (!times.empty() && times.front() == spec.start)) return;
  times.insert(times.begin(), spec.start);
}

// --- One group ---

void AddMember(const Member& member, const QuerySpec& spec, GroupPart& group) {
  const bool holds = member.counts && HoldsCounters(spec);
  Cursor cursor(member.points, holds ? BetweenCounts(spec) : BetweenPoints(spec), holds,
                member.held);
  for (size_t i = 0; i < group.times.size(); ++i) {
    if (!cursor.MoveTo(group.times[i])) continue;
    if (cursor.at_point()) group.points[i] = true;
    group.values.Add(i, cursor.value());
  }
}

// Times of the grid at which nobody took part say nothing.
void DropEmpty(const QuerySpec& spec, GroupPart& group) {
  Times times;
  std::vector<bool> points;
  std::vector<size_t> kept;
  for (size_t i = 0; i < group.times.size(); ++i) {
    if (!group.points[i] && !group.values.Any(i)) continue;
    times.push_back(group.times[i]);
    points.push_back(group.points[i]);
    kept.push_back(i);
  }
  if (kept.size() == group.times.size()) return;
  GroupValues values(ValuesOf(spec), kept.size());
  for (size_t i = 0; i < kept.size(); ++i) values.Merge(i, group.values, kept[i]);
  group.times = std::move(times);
  group.points = std::move(points);
  group.values = std::move(values);
}

Result<GroupPart> Combine(const QuerySpec& spec, std::vector<Member> members,
                          const QueryGrid* grid) {
  GroupPart group;
  group.tags = std::move(members.front().tags);
  for (size_t i = 1; i < members.size(); ++i) MergeTags(members[i].tags, {}, group);
  group.times = NeedsAllValues(spec.aggregator) ? TimesAround(members.front().points, spec)
                                                : TimesOfPoints(members, spec);
  group.counts =
      std::all_of(members.begin(), members.end(), [](const Member& m) { return m.counts; });
  const bool holds = group.counts && HoldsCounters(spec);
  if (holds) AddStart(members, spec, group.times);
  if (grid != nullptr) {
    const bool beyond = holds && HoldsAnother(members);
    SONDE_RETURN_IF_ERROR(AddGrid(members, spec, *grid, beyond, group.times));
  }
  group.points.resize(group.times.size());
  group.values = GroupValues(ValuesOf(spec), group.times.size());
  for (const Member& m : members) AddMember(m, spec, group);
  if (grid != nullptr) DropEmpty(spec, group);
  return group;
}

std::vector<Point> PointsOf(const GroupPart& group) {
  std::vector<Point> points;
  points.reserve(group.times.size());
  for (size_t i = 0; i < group.times.size(); ++i) {
    if (group.points[i]) points.push_back({group.times[i], group.values.Get(i)});
  }
  return points;
}

// The groups of a part that kept every series by itself.
std::vector<QueryResult> FinishWhole(const QuerySpec& spec, const QueryPart& part) {
  std::vector<QueryResult> series;
  for (const GroupPart& group : part.groups) {
    series.push_back({spec.metric, group.tags, {}, PointsOf(group)});
  }
  const bool counts = std::all_of(part.groups.begin(), part.groups.end(),
                                  [](const GroupPart& group) { return group.counts; });
  std::sort(series.begin(), series.end(), Before);
  std::map<std::vector<std::string>, WholeGroup> groups;
  for (QueryResult& one : series) {
    WholeGroup& group = groups[GroupOf(one.tags, part.keys)];
    group.tags.push_back(&one.tags);
    group.points.push_back(std::move(one.points));
  }
  std::vector<QueryResult> results;
  for (const auto& [place, group] : groups) {
    QueryResult result = AggregateWhole(spec, group);
    if (result.points.empty()) continue;
    if (counts) FillBuckets(spec, result.points);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

bool QueryGrid::Has(Nanos time) const {
  return (step > 0 && time % step == 0) || std::binary_search(times.begin(), times.end(), time);
}

bool QueryGrid::AddTo(Nanos first, Nanos last, std::vector<Nanos>& all) const {
  if (first > last) return true;
  const size_t middle = all.size();
  if (step > 0) {
    if (static_cast<size_t>((last - first) / step) >= kMaxPartPoints) return false;
    for (Nanos t = first + (step - first % step) % step; t <= last; t += step) all.push_back(t);
  }
  const auto from = std::lower_bound(times.begin(), times.end(), first);
  const auto to = std::upper_bound(from, times.end(), last);
  const auto on_step = all.begin() + static_cast<ptrdiff_t>(middle);
  Times both;
  std::set_union(on_step, all.end(), from, to, std::back_inserter(both));
  all.resize(middle);
  all.insert(all.end(), both.begin(), both.end());
  return true;
}

QueryGrid GridOf(const QuerySpec& spec, const QueryGrid& ticks) {
  if (!spec.downsample) return ticks;
  if (spec.downsample->calendar != nullptr) return {0, spec.downsample->calendar->edges};
  return {spec.downsample->interval, {}};
}

Nanos QueryGrid::After(Nanos time) const {
  const Nanos next = step > 0 ? time - time % step + step : INT64_MAX;
  const auto beside = std::upper_bound(times.begin(), times.end(), time);
  return beside == times.end() ? next : std::min(next, *beside);
}

size_t QueryPart::Points() const {
  size_t points = 0;
  for (const GroupPart& group : groups) points += group.times.size();
  return points;
}

Aggregator ValuesOf(const QuerySpec& spec) {
  return KeepsSeries(spec) ? Aggregator::kNone : spec.aggregator;
}

bool GroupsSpanNodes(const QuerySpec& spec) {
  return !KeepsSeries(spec) &&
         std::none_of(spec.filters.begin(), spec.filters.end(),
                      [](const TagFilter& f) { return f.group_by && f.key == "host"; });
}

QueryPart EmptyPart(const QuerySpec& spec) {
  QueryPart part;
  part.keys = GroupKeys(spec);
  return part;
}

Result<QueryPart> EvaluatePart(const QuerySpec& spec, std::vector<SeriesData> series,
                               const QueryGrid* grid) {
  SONDE_RETURN_IF_ERROR(CheckFilled(spec, series.size()));
  QueryPart part = EmptyPart(spec);
  std::map<std::vector<std::string>, std::vector<Member>> groups;
  for (SeriesData& s : series) {
    const bool counts = Counts(s.series.metric);
    Member m{std::move(s.series.tags), counts, {}};
    m.points = counts ? PrepareCounter(std::move(s.points), spec, &m.held)
                      : Prepare(std::move(s.points), spec, s.large);
    if (m.points.empty()) continue;
    std::vector<std::string> place = Place(spec, part, m.tags);
    groups[std::move(place)].push_back(std::move(m));
  }
  const QueryGrid buckets = GridOf(spec, {});
  if (grid != nullptr && spec.downsample) grid = &buckets;
  const QueryGrid* times = GroupsSpanNodes(spec) ? grid : nullptr;
  size_t points = 0;
  const auto add = [&](std::vector<Member> members) -> Status {
    Result<GroupPart> group = Combine(spec, std::move(members), times);
    if (!group.ok()) return group.status();
    points += group->times.size();
    part.groups.push_back(*std::move(group));
    return grid == nullptr ? Status() : CheckBounds(spec, part.groups, points);
  };
  for (auto& [place, members] : groups) {
    if (!KeepsSeries(spec)) {
      SONDE_RETURN_IF_ERROR(add(std::move(members)));
      continue;
    }
    for (Member& m : members) {
      std::vector<Member> alone;
      alone.push_back(std::move(m));
      SONDE_RETURN_IF_ERROR(add(std::move(alone)));
    }
  }
  return part;
}

std::vector<QueryResult> FinishPart(const QuerySpec& spec, const QueryPart& part) {
  if (NeedsAllValues(spec.aggregator)) return FinishWhole(spec, part);
  std::vector<QueryResult> results;
  results.reserve(part.groups.size());
  for (const GroupPart& group : part.groups) {
    std::vector<Point> points = PointsOf(group);
    if (points.empty()) continue;
    if (group.counts) FillBuckets(spec, points);
    results.push_back({spec.metric, group.tags, group.other_keys, std::move(points)});
  }
  if (KeepsSeries(spec)) std::sort(results.begin(), results.end(), Before);
  return results;
}

}  // namespace sonde
