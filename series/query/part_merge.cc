#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "series/query/part.h"
#include "series/query/steps.h"

namespace sonde {

using namespace query_steps;

namespace {

using Times = std::vector<Nanos>;

int Compare(const QuerySpec& spec, const QueryPart& part, const Tags& a, const Tags& b) {
  if (KeepsSeries(spec)) return a < b ? -1 : b < a ? 1 : 0;
  for (const std::string& key : part.keys) {
    const std::string* x = a.Find(key);
    const std::string* y = b.Find(key);
    const int order = (x == nullptr ? "" : *x).compare(y == nullptr ? "" : *y);
    if (order != 0) return order;
  }
  return 0;
}

// A part's values at each of the times: if it holds, its last value counts after its own last time.
void MergeValues(const Times& times, const GroupPart& from, bool holds, std::vector<bool>& points,
                 GroupValues& values) {
  size_t at = 0;
  for (size_t i = 0; i < from.times.size(); ++i, ++at) {
    while (times[at] != from.times[i]) ++at;
    if (from.points[i]) points[at] = true;
    values.Merge(at, from.values, i);
  }
  if (!holds || from.times.empty()) return;
  for (; at < times.size(); ++at) values.Merge(at, from.values, from.times.size() - 1);
}

// A part that ends before another one begins holds its last value in between, too, where a third
// may have points.
Status AddGap(const QuerySpec& spec, const QueryGrid& grid, const GroupPart& a, const GroupPart& b,
              Times& times) {
  if (a.times.empty() || b.times.empty()) return {};
  const Nanos last = std::min(a.times.back(), b.times.back());
  const Nanos first = std::max(a.times.front(), b.times.front());
  Times gap;
  if (!grid.AddTo(last + 1, first - 1, gap)) {
    return query_steps::TooLarge(spec, "points", kMaxPartPoints);
  }
  times.insert(std::upper_bound(times.begin(), times.end(), last), gap.begin(), gap.end());
  return {};
}

Status MergeGroup(const QuerySpec& spec, const QueryGrid& grid, const GroupPart& others,
                  GroupPart& group) {
  MergeTags(others.tags, others.other_keys, group);
  group.encoded.clear();
  const bool counts = group.counts && others.counts;
  if (group.times == others.times) {
    for (size_t i = 0; i < group.times.size(); ++i) {
      group.points[i] = group.points[i] || others.points[i];
      group.values.Merge(i, others.values, i);
    }
    group.counts = counts;
    return {};
  }
  Times times;
  std::set_union(group.times.begin(), group.times.end(), others.times.begin(), others.times.end(),
                 std::back_inserter(times));
  const bool holds = HoldsCounters(spec);
  if (holds && counts) SONDE_RETURN_IF_ERROR(AddGap(spec, grid, group, others, times));
  std::vector<bool> points(times.size());
  GroupValues values(ValuesOf(spec), times.size());
  MergeValues(times, group, holds && group.counts, points, values);
  MergeValues(times, others, holds && others.counts, points, values);
  group.times = std::move(times);
  group.points = std::move(points);
  group.values = std::move(values);
  group.counts = counts;
  return {};
}

}  // namespace

Status query_steps::TooLarge(const QuerySpec& spec, std::string_view what, size_t limit) {
  return {
      Code::kLimit,
      fmt::format("query of '{}': the answer of the nodes would have more than {} {}; ask for a "
                  "shorter range, a downsample, or fewer series",
                  spec.metric.substr(0, 64), limit, what)};
}

Status query_steps::CheckBounds(const QuerySpec& spec, const std::vector<GroupPart>& groups,
                                size_t points) {
  if (points > kMaxPartPoints) return TooLarge(spec, "points", kMaxPartPoints);
  if (groups.size() > kMaxPartGroups) return TooLarge(spec, "groups", kMaxPartGroups);
  if (!groups.empty() && groups.back().other_keys.size() > kMaxGroupKeys) {
    return TooLarge(spec, "keys of tags in a group", kMaxGroupKeys);
  }
  return {};
}

void query_steps::MergeTags(const Tags& tags, const std::vector<std::string>& other_keys,
                            GroupPart& group) {
  if (group.tags == tags && group.other_keys == other_keys) return;
  std::vector<std::string> keys;
  std::set_union(group.other_keys.begin(), group.other_keys.end(), other_keys.begin(),
                 other_keys.end(), std::back_inserter(keys));
  const auto sorted = static_cast<ptrdiff_t>(keys.size());
  const auto differs = [&](const std::string& key) {
    return std::binary_search(keys.begin(), keys.begin() + sorted, key);
  };
  Tags merged;
  std::vector<std::string> more;
  for (const auto& [key, value] : group.tags.pairs()) {
    if (differs(key)) continue;
    const std::string* other = tags.Find(key);
    if (other != nullptr && *other != value) {
      more.push_back(key);
    } else {
      merged.Set(key, value);
    }
  }
  for (const auto& [key, value] : tags.pairs()) {
    if (!differs(key) && group.tags.Find(key) == nullptr) merged.Set(key, value);
  }
  std::sort(more.begin(), more.end());
  keys.insert(keys.end(), more.begin(), more.end());
  std::inplace_merge(keys.begin(), keys.begin() + sorted, keys.end());
  group.tags = std::move(merged);
  group.other_keys = std::move(keys);
}

Status MergePart(const QuerySpec& spec, const QueryGrid& grid, QueryPart others, QueryPart& part) {
  const QueryGrid times = GroupsSpanNodes(spec) ? GridOf(spec, grid) : QueryGrid();
  std::vector<GroupPart> merged;
  merged.reserve(part.groups.size() + others.groups.size());
  auto mine = part.groups.begin();
  for (GroupPart& group : others.groups) {
    int order = -1;
    while (mine != part.groups.end() && (order = Compare(spec, part, mine->tags, group.tags)) < 0) {
      merged.push_back(std::move(*mine++));
    }
    if (mine != part.groups.end() && order == 0 && !KeepsSeries(spec)) {
      SONDE_RETURN_IF_ERROR(MergeGroup(spec, times, group, *mine));
      if (mine->other_keys.size() > kMaxGroupKeys) {
        return TooLarge(spec, "keys of tags in a group", kMaxGroupKeys);
      }
    } else {
      merged.push_back(std::move(group));
    }
  }
  std::move(mine, part.groups.end(), std::back_inserter(merged));
  part.groups = std::move(merged);
  return CheckBounds(spec, part.groups, part.Points());
}

std::vector<Nanos> OddTimes(const QuerySpec& spec, const QueryPart& part, const QueryGrid& grid) {
  Times odd;
  if (spec.downsample || !GroupsSpanNodes(spec)) return odd;
  for (const GroupPart& group : part.groups) {
    for (size_t i = 0; i < group.times.size(); ++i) {
      if (group.points[i] && !grid.Has(group.times[i])) odd.push_back(group.times[i]);
    }
  }
  std::sort(odd.begin(), odd.end());
  odd.erase(std::unique(odd.begin(), odd.end()), odd.end());
  return odd;
}

Status AddTimes(const QuerySpec& spec, const std::vector<Nanos>& odd, QueryGrid& grid) {
  const size_t middle = grid.times.size();
  grid.times.insert(grid.times.end(), odd.begin(), odd.end());
  std::inplace_merge(grid.times.begin(), grid.times.begin() + static_cast<ptrdiff_t>(middle),
                     grid.times.end());
  if (grid.times.size() <= kMaxGridTimes) return {};
  return {Code::kLimit, fmt::format("query of '{}': the nodes have points at more than {} times "
                                    "beside the ticks; ask with a downsample",
                                    spec.metric, kMaxGridTimes)};
}

bool query_steps::HasParts(const QuerySpec& spec) {
  return GroupsSpanNodes(spec) && !IsSeparateBy(spec, "job");
}

void AddOtherKey(const std::string& key, QueryPart& part) {
  for (GroupPart& group : part.groups) {
    const auto at = std::lower_bound(group.other_keys.begin(), group.other_keys.end(), key);
    if (at != group.other_keys.end() && *at == key) continue;
    group.other_keys.insert(at, key);
    group.encoded.clear();
  }
}

void TagPart(std::string_view key, std::string_view value, QueryPart& part) {
  for (GroupPart& group : part.groups) {
    group.tags.Set(key, value);
    group.encoded.clear();
  }
}

}  // namespace sonde
