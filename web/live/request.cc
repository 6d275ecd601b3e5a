// Reads requests to /api/live.
#include "web/opentsdb/request.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "web/live/live.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxPattern = 256;

Status AddPatterns(std::string_view list, LiveRequest& live) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    const std::string_view pattern = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (pattern.empty()) continue;
    if (pattern.size() > kMaxPattern || live.metrics.size() == kMaxLiveMetrics) {
      return {Code::kInvalid,
              fmt::format("metric: expected at most {} patterns of at most {} characters",
                          kMaxLiveMetrics, kMaxPattern)};
    }
    live.metrics.emplace_back(pattern);
  }
  return {};
}

Status AddQuery(std::string_view m, LiveRequest& live) {
  if (live.queries.size() == kMaxLiveQueries) {
    return {Code::kInvalid, fmt::format("more than {} parameters m", kMaxLiveQueries)};
  }
  Result<QuerySpec> spec = ParseQueryExpression(m);
  if (!spec.ok()) return spec.status();
  if (spec->downsample) {
    return {Code::kInvalid, "m: there is an event for each tick, so nothing is downsampled here"};
  }
  live.queries.push_back(*std::move(spec));
  return {};
}

Status ReadSwitch(std::string_view name, std::string_view text, bool& out) {
  if (text != "true" && text != "false" && !text.empty()) {
    return {Code::kInvalid, fmt::format("parameter {}: expected true or false", name)};
  }
  out = text != "false";
  return {};
}

}  // namespace

bool MatchesGlob(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Result<Nanos> ParseEventId(std::string_view text) {
  if (text.empty()) return Nanos{0};
  Nanos tick = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), tick);
  if (error != std::errc() || end != text.data() + text.size() || tick < 0) {
    return Status(Code::kInvalid, "Last-Event-ID: expected the id of an event of this stream");
  }
  return tick;
}

Result<LiveRequest> ParseLiveRequest(const Request& request) {
  LiveRequest live;
  std::string_view last = request.last_event_id;
  for (const auto& [name, value] : request.params) {
    Status read;
    if (name == "job") live.job = value;
    if (name == "metric") read = AddPatterns(value, live);
    if (name == "m") read = AddQuery(value, live);
    if (name == "alarms") read = ReadSwitch(name, value, live.alarms);
    if (name == "notes") read = ReadSwitch(name, value, live.notes);
    if (name == "last_event_id" && last.empty()) last = value;
    if (!read.ok()) return read;
  }
  const Result<Nanos> after = ParseEventId(last);
  if (!after.ok()) return after.status();
  live.after = *after;
  return live;
}

}  // namespace sonde::web
