#include "core/bytes.h"

#include <fmt/core.h>

#include <cmath>
#include <new>
#include <utility>

#include "series/query/query.h"

namespace sonde {
namespace {

// Both ends of a link are of one release or the next: the first byte says which.
constexpr uint8_t kQueryVersion = 2;

constexpr size_t kMinFilterBytes = 4;

bool ReadBool(ByteReader& in) {
  const auto byte = in.Fixed<uint8_t>();
  if (byte > 1) in.Fail();
  return byte == 1;
}

// An enumeration's value; bad if it is beyond the last.
template <typename E>
E ReadEnum(ByteReader& in, E last) {
  const auto byte = in.Fixed<uint8_t>();
  if (byte <= static_cast<uint8_t>(last)) return static_cast<E>(byte);
  in.Fail();
  return E{};
}

Status CheckVersion(std::string_view what, ByteReader& in) {
  const auto version = in.Fixed<uint8_t>();
  if (version == kQueryVersion) return {};
  return {Code::kUnsupported, fmt::format("read {} from a peer: its version is {}, ours is {}; run "
                                          "the same Sonde on all nodes",
                                          what, version, kQueryVersion)};
}

Status Corrupt(std::string_view what) {
  return {Code::kCorrupt, fmt::format("read {} from a peer: the bytes are damaged", what)};
}

// How many edges there are, then each less the one before.
void ReadCalendar(ByteReader& in, Downsample& how) {
  const size_t edges = in.Count(1, Calendar::kMaxBuckets + 1);
  if (edges == 0) return;
  auto calendar = std::make_shared<Calendar>();
  uint64_t time = 0;
  for (size_t i = 0; i < edges && in.ok(); ++i) {
    time += in.Varint();
    calendar->edges.push_back(static_cast<Nanos>(time));
  }
  how.calendar = std::move(calendar);
}

void WriteCalendar(const Downsample& how, ByteWriter& out) {
  static const std::vector<Nanos> kNone;
  const std::vector<Nanos>& edges = how.calendar == nullptr ? kNone : how.calendar->edges;
  out.Varint(edges.size());
  Nanos before = 0;
  for (const Nanos edge : edges)
    out.Varint(static_cast<uint64_t>(edge - std::exchange(before, edge)));
}

// 0 is the default, as releases write that know no other 0; a 0 that is asked for has a sign.
double ReadCounterMax(ByteReader& in) {
  const auto read = in.Fixed<double>();
  if (read != 0) return read;
  return std::signbit(read) ? 0 : RateOptions::kCounterEnd;
}

void WriteCounterMax(double most, ByteWriter& out) {
  out.Fixed(most == 0 ? -0.0 : most == RateOptions::kCounterEnd ? 0.0 : most);
}

Result<QuerySpec> ReadQuery(std::string_view bytes) {
  ByteReader in(bytes);
  SONDE_RETURN_IF_ERROR(CheckVersion("a query", in));
  QuerySpec spec;
  spec.metric = in.Text(kMaxNameLength);
  spec.aggregator = ReadEnum(in, kLastAggregator);
  if (ReadBool(in)) {
    Downsample& d = spec.downsample.emplace();
    d.interval = in.Signed();
    d.function = ReadEnum(in, kLastAggregator);
    d.fill = ReadEnum(in, Downsample::Fill::kZero);
    ReadCalendar(in, d);
  }
  spec.rate = ReadBool(in);
  spec.rate_options.counter = ReadBool(in);
  spec.rate_options.counter_max = ReadCounterMax(in);
  spec.rate_options.reset_value = in.Fixed<double>();
  spec.rate_options.drop_resets = ReadBool(in);
  const size_t filters = in.Count(kMinFilterBytes, kMaxFilters);
  for (size_t i = 0; i < filters && in.ok(); ++i) {
    TagFilter& filter = spec.filters.emplace_back();
    filter.type = ReadEnum(in, TagFilter::Type::kNotKey);
    filter.key = in.Text(kMaxNameLength);
    filter.pattern = in.Text(kMaxPatternLength);
    filter.group_by = ReadBool(in);
  }
  spec.explicit_tags = ReadBool(in);
  spec.start = in.Signed();
  spec.end = in.Signed();
  if (!in.done()) return Corrupt("a query");
  SONDE_RETURN_IF_ERROR(CheckQuery(spec));
  return spec;
}

}  // namespace

void EncodeQuery(const QuerySpec& spec, std::string& out) {
  ByteWriter w(out);
  const auto flag = [&](bool b) { w.Fixed(static_cast<uint8_t>(b)); };
  w.Fixed(kQueryVersion);
  w.Text(spec.metric);
  w.Fixed(static_cast<uint8_t>(spec.aggregator));
  flag(spec.downsample.has_value());
  if (spec.downsample) {
    w.Signed(spec.downsample->interval);
    w.Fixed(static_cast<uint8_t>(spec.downsample->function));
    w.Fixed(static_cast<uint8_t>(spec.downsample->fill));
    WriteCalendar(*spec.downsample, w);
  }
  flag(spec.rate);
  flag(spec.rate_options.counter);
  WriteCounterMax(spec.rate_options.counter_max, w);
  w.Fixed(spec.rate_options.reset_value);
  flag(spec.rate_options.drop_resets);
  w.Varint(spec.filters.size());
  for (const TagFilter& filter : spec.filters) {
    w.Fixed(static_cast<uint8_t>(filter.type));
    w.Text(filter.key);
    w.Text(filter.pattern);
    flag(filter.group_by);
  }
  flag(spec.explicit_tags);
  w.Signed(spec.start);
  w.Signed(spec.end);
}

Result<QuerySpec> DecodeQuery(std::string_view bytes) {
  try {
    return ReadQuery(bytes);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit, "read a query from a peer: no memory");
  }
}

}  // namespace sonde
