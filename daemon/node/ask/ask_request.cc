#include "daemon/node/ask/ask_request.h"

#include <fmt/core.h>

#include <cstring>
#include <new>

#include "core/bytes.h"
#include "core/metric.h"

namespace sonde::node {
namespace {

constexpr size_t kMinFilterBytes = 4;
constexpr size_t kMaxWord = 256;  // a wrong aggregator is to be quoted

Status Damaged(std::string_view what) {
  return {Code::kCorrupt, fmt::format("{} of a process is damaged", what)};
}

Status ReadFilters(ByteReader& in, QuerySpec& spec) {
  const size_t count = in.Count(kMinFilterBytes, client::kMaxAskFilters);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    TagFilter& filter = spec.filters.emplace_back();
    const std::string_view type = in.Text(kMaxWord);
    filter.key = in.Text(kMaxWord);
    filter.pattern = in.Text(client::kMaxAskText);
    filter.group_by = in.Fixed<uint8_t>() != 0;
    if (!in.ok()) break;
    const Result<TagFilter::Type> parsed = ParseFilterType(type);
    if (!parsed.ok()) return parsed.status();
    filter.type = *parsed;
    if (!names::IsTagKey(filter.key)) {
      return {Code::kInvalid,
              fmt::format("'{}' is no tag: expected letters, digits and _, 1 to {} bytes",
                          filter.key.substr(0, 64), kMaxNameLength)};
    }
  }
  return {};
}

// But for CheckQuery.
Result<QuerySpec> ReadQuestion(std::string_view body) {
  ByteReader in(body);
  QuerySpec spec;
  spec.metric = in.Text(kMaxWord);
  const std::string_view aggregator = in.Text(kMaxWord);
  const std::string_view downsample = in.Text(kMaxWord);
  const auto flags = in.Fixed<uint8_t>();
  if (!in.ok()) return Damaged("a question");
  SONDE_RETURN_IF_ERROR(ReadFilters(in, spec));
  spec.start = in.Signed();
  spec.end = in.Signed();
  if (!in.done()) return Damaged("a question");
  SONDE_RETURN_IF_ERROR(CheckMetricName(spec.metric));
  const Result<Aggregator> how = ParseAggregator(aggregator);
  if (!how.ok()) return how.status();
  spec.aggregator = *how;
  if (!downsample.empty()) {
    const Result<Downsample> parsed = ParseDownsample(downsample);
    if (!parsed.ok()) return parsed.status();
    spec.downsample = *parsed;
  }
  spec.rate = (flags & (client::kRate | client::kRateCounter | client::kRateDrop)) != 0;
  spec.rate_options.counter = (flags & (client::kRateCounter | client::kRateDrop)) != 0;
  spec.rate_options.drop_resets = (flags & client::kRateDrop) != 0;
  spec.explicit_tags = (flags & client::kExplicitTags) != 0;
  return spec;
}

Result<QuerySpec> Checked(Result<QuerySpec> spec) {
  if (!spec.ok()) return spec;
  SONDE_RETURN_IF_ERROR(CheckQuery(*spec));
  return spec;
}

}  // namespace

Status CheckAskHello(std::string_view body) {
  client::AskHello hello{};
  if (body.size() != sizeof hello) return Damaged("the first packet");
  std::memcpy(&hello, body.data(), sizeof hello);
  if (hello.magic != client::kAskMagic) return Damaged("the first packet");
  if (hello.version != client::kAskVersion) {
    return {
        Code::kUnsupported,
        fmt::format("the process asks in version {}, this daemon answers in version {}: use the "
                    "libsonde of this Sonde",
                    hello.version, client::kAskVersion)};
  }
  return {};
}

Result<QuerySpec> DecodeAskQuery(std::string_view body) {
  try {
    return Checked(ReadQuestion(body));
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit, "read a question: no memory");
  }
}

Result<QuerySpec> DecodeAskSubscription(std::string_view body) {
  try {
    Result<QuerySpec> spec = ReadQuestion(body);
    if (!spec.ok()) return spec;
    spec->downsample.reset();
    spec->start = 0;
    spec->end = 1;
    return Checked(std::move(spec));
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimit, "read a subscription: no memory");
  }
}

Status CheckAskAlarm(std::string_view body) {
  ByteReader in(body);
  in.Text(client::kMaxAlarmName);
  in.Text(client::kMaxAlarmRule);
  if (in.done()) return {};
  return {Code::kInvalid,
          fmt::format("expected an alarm's name of at most {} bytes and a rule of at "
                      "most {}",
                      client::kMaxAlarmName, client::kMaxAlarmRule)};
}

Result<std::string> DecodeAskList(std::string_view body) {
  ByteReader in(body);
  const std::string_view metric = in.Text(kMaxNameLength);
  if (!in.done()) return Damaged("a question for metrics");
  if (!metric.empty()) SONDE_RETURN_IF_ERROR(CheckMetricName(metric));
  return std::string(metric);
}

}  // namespace sonde::node
