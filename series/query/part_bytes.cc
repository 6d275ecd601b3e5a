#include <fmt/core.h>

#include <algorithm>
#include <new>
#include <utility>

#include "core/bytes.h"
#include "core/text/names.h"
#include "series/block/series_bytes.h"
#include "series/query/aggregate.h"
#include "series/query/part.h"
#include "series/query/steps.h"

namespace sonde {
namespace {

// All daemons of a step are of one release; the first byte says so.
constexpr uint8_t kPartVersion = 2;

constexpr size_t kMinKeyBytes = 2;
constexpr size_t kMinGroupBytes = 6;

// --- Times: runs of an equal step ---

void WriteTimes(const std::vector<Nanos>& times, ByteWriter& out) {
  out.Varint(times.size());
  Nanos before = 0;
  for (size_t i = 0; i < times.size();) {
    size_t end = i + 1;
    const Nanos step = end < times.size() ? times[end] - times[i] : 0;
    while (end < times.size() && times[end] - times[end - 1] == step) ++end;
    out.Varint(static_cast<uint64_t>(times[i] - before));
    out.Varint(end - i);
    if (end - i > 1) out.Varint(static_cast<uint64_t>(step));
    before = times[end - 1];
    i = end;
  }
}

// At most `limit` ascending times from 0 on.
std::vector<Nanos> ReadTimes(ByteReader& in, size_t limit) {
  constexpr auto kLast = static_cast<uint64_t>(kMaxQueryTime) * 2;
  std::vector<Nanos> times;
  const uint64_t count = in.Varint();
  if (count > limit) in.Fail();
  if (in.ok()) times.reserve(count);
  uint64_t time = 0;
  while (in.ok() && times.size() < count) {
    const uint64_t gap = in.Varint();
    const uint64_t run = in.Varint();
    const uint64_t step = run > 1 ? in.Varint() : 0;
    const bool ascends = (times.empty() || gap > 0) && (run < 2 || step > 0);
    if (!ascends || run == 0 || run > count - times.size() || gap > kLast - time ||
        step > (kLast - time - gap) / run) {
      in.Fail();
      break;
    }
    time += gap;
    for (uint64_t i = 0; i < run; ++i) {
      times.push_back(static_cast<Nanos>(time + i * step));
    }
    time += (run - 1) * step;
  }
  return times;
}

// --- Which of the times have points: nothing is written if all have ---

void WritePoints(const std::vector<bool>& points, ByteWriter& out) {
  const bool all = std::find(points.begin(), points.end(), false) == points.end();
  out.Fixed<uint8_t>(all ? 1 : 0);
  if (all) return;
  for (size_t i = 0; i < points.size(); i += 8) {
    uint8_t byte = 0;
    for (size_t bit = 0; bit < 8 && i + bit < points.size(); ++bit) {
      if (points[i + bit]) byte |= static_cast<uint8_t>(1u << bit);
    }
    out.Fixed(byte);
  }
}

std::vector<bool> ReadPoints(ByteReader& in, size_t times) {
  std::vector<bool> points(times, true);
  const auto all = in.Fixed<uint8_t>();
  if (all > 1) in.Fail();
  if (all == 1 || !in.ok()) return points;
  const std::string_view map = in.Raw((times + 7) / 8);
  for (size_t i = 0; i < times && in.ok(); ++i) points[i] = ((map[i / 8] >> (i % 8)) & 1) != 0;
  return points;
}

// --- Groups ---

void WriteGroup(const GroupPart& group, ByteWriter& out) {
  out.Varint(group.tags.pairs().size());
  for (const auto& [key, value] : group.tags.pairs()) {
    out.Text(key);
    out.Text(value);
  }
  out.Varint(group.other_keys.size());
  for (const std::string& key : group.other_keys) out.Text(key);
  WriteTimes(group.times, out);
  WritePoints(group.points, out);
  out.Fixed<uint8_t>(group.counts ? 1 : 0);
  group.values.Write(out);
}

bool ReadTags(ByteReader& in, Tags& tags) {
  const size_t count = in.Count(2 * kMinKeyBytes, kMaxSeriesTags);
  std::string_view previous;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key = in.Text(kMaxNameLength);
    const std::string_view value = in.Text(kMaxNameLength);
    if (!in.ok() || key <= previous || !CheckTag(key, value).ok()) return false;
    tags.Set(key, value);
    previous = key;
  }
  return in.ok();
}

bool ReadOtherKeys(ByteReader& in, const Tags& tags, std::vector<std::string>& keys) {
  const size_t count = in.Count(kMinKeyBytes, kMaxGroupKeys);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key = in.Text(kMaxNameLength);
    if (!in.ok() || !CheckTag(key, "value").ok() || tags.Find(key) != nullptr) return false;
    if (!keys.empty() && key <= keys.back()) return false;
    keys.emplace_back(key);
  }
  return in.ok();
}

GroupPart ReadGroup(const QuerySpec& spec, const std::vector<std::string>& keys, size_t max_points,
                    ByteReader& in) {
  GroupPart group;
  bool good = ReadTags(in, group.tags) && ReadOtherKeys(in, group.tags, group.other_keys);
  for (const std::string& key : keys) good = good && group.tags.Find(key) != nullptr;
  if (good) group.times = ReadTimes(in, max_points);
  if (good && in.ok() && !group.times.empty()) {
    const TimeRange range =
        NeedsAllValues(spec.aggregator) ? DataRange(spec) : TimeRange{spec.start, spec.end};
    good = group.times.front() >= range.first && group.times.back() <= range.last;
  }
  if (!good) in.Fail();
  if (!in.ok()) return group;
  group.points = ReadPoints(in, group.times.size());
  const auto counts = in.Fixed<uint8_t>();
  if (counts > 1) in.Fail();
  group.counts = counts == 1;
  if (in.ok()) group.values = GroupValues::Read(ValuesOf(spec), group.times.size(), in);
  return group;
}

Status Corrupt() { return {Code::kCorrupt, "read a part of an answer: the bytes are damaged"}; }

// Whether groups stand in their order, each once unless the query wants every series alone.
bool InOrder(const QuerySpec& spec, const std::vector<std::string>& keys, const Tags& a,
             const Tags& b) {
  if (query_steps::KeepsSeries(spec)) return !(b < a);
  for (const std::string& key : keys) {
    const int order = a.Find(key)->compare(*b.Find(key));
    if (order != 0) return order < 0;
  }
  return false;
}

Result<QueryPart> ReadPart(const QuerySpec& spec, std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Fixed<uint8_t>() != kPartVersion) {
    return Status(Code::kUnsupported, "read a part of an answer: it is of another version");
  }
  QueryPart part = EmptyPart(spec);
  const bool passed_on = !GroupsSpanNodes(spec);
  const size_t groups = in.Count(kMinGroupBytes, kMaxPartGroups);
  part.groups.reserve(groups);
  size_t points = 0;
  for (size_t i = 0; i < groups; ++i) {
    const std::string_view body = in.Text(kMaxPartBytes);
    ByteReader group_in(body);
    GroupPart group = ReadGroup(spec, part.keys, kMaxPartPoints - points, group_in);
    if (!in.ok() || !group_in.done()) return Corrupt();
    if (i != 0 && !InOrder(spec, part.keys, part.groups.back().tags, group.tags)) return Corrupt();
    points += group.times.size();
    if (passed_on) group.encoded = body;
    part.groups.push_back(std::move(group));
  }
  if (!in.done()) return Corrupt();
  return part;
}

}  // namespace

Result<std::string> EncodePart(const QueryPart& part) {
  std::string bytes;
  std::string body;
  ByteWriter out(bytes);
  out.Fixed(kPartVersion);
  out.Varint(part.groups.size());
  for (const GroupPart& group : part.groups) {
    if (!group.encoded.empty()) {
      out.Text(group.encoded);
    } else {
      body.clear();
      ByteWriter group_out(body);
      WriteGroup(group, group_out);
      out.Text(body);
    }
    if (bytes.size() > kMaxPartBytes) {
      return Status(Code::kLimit,
                    fmt::format("the answer of the nodes would have more than {} bytes; ask for a "
                                "shorter range, a downsample, or fewer series",
                                kMaxPartBytes));
    }
  }
  return bytes;
}

Result<QueryPart> DecodePart(const QuerySpec& spec, std::string_view bytes) {
  try {
    return ReadPart(spec, bytes);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit, "read a part of an answer: no memory");
  }
}

void EncodeGrid(const QueryGrid& grid, std::string& out) {
  ByteWriter w(out);
  w.Varint(static_cast<uint64_t>(grid.step));
  WriteTimes(grid.times, w);
}

Result<QueryGrid> DecodeGrid(std::string_view bytes) {
  ByteReader in(bytes);
  QueryGrid grid;
  const uint64_t step = in.Varint();
  grid.times = ReadTimes(in, kMaxGridTimes);
  if (!in.done() || step > static_cast<uint64_t>(kMaxQueryTime)) {
    return Status(Code::kCorrupt, "read the times of a question: the bytes are damaged");
  }
  grid.step = static_cast<Nanos>(step);
  return grid;
}

}  // namespace sonde
