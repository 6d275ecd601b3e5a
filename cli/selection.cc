#include "cli/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <tuple>
#include <utility>

#include "core/text/user_tags.h"
#include "web/opentsdb/request.h"

namespace sonde::cli {
namespace {

constexpr std::array<std::pair<std::string_view, SortBy>, 12> kSorts = {{
    {"start", SortBy::kStart},
    {"time", SortBy::kDuration},
    {"cpu", SortBy::kCpu},
    {"mem", SortBy::kMemory},
    {"energy", SortBy::kEnergy},
    {"read", SortBy::kRead},
    {"written", SortBy::kWritten},
    {"received", SortBy::kReceived},
    {"sent", SortBy::kSent},
    {"size", SortBy::kSize},
    {"nodes", SortBy::kNodes},
    {"tasks", SortBy::kTasks},
}};

constexpr std::array kStates = {EndState::kRunning,     EndState::kCompleted, EndState::kFailed,
                                EndState::kOutOfMemory, EndState::kCancelled, EndState::kLost,
                                EndState::kUnknown};

Result<EndState> ParseState(std::string_view text) {
  std::vector<std::string_view> names;
  for (const EndState state : kStates) {
    if (text == ToString(state)) return state;
    names.push_back(ToString(state));
  }
  return Status(Code::kInvalid,
                fmt::format("--state {}: expected one of {}", text, fmt::join(names, ", ")));
}

Nanos FromLocal(std::tm parts) {
  parts.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&parts);
  return seconds < 0 ? -1 : Nanos{seconds} * kSecond;
}

// The beginning of the local day so many days ago.
Nanos DayBefore(Nanos now, int days) {
  const auto seconds = static_cast<std::time_t>(now / kSecond);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  parts.tm_mday -= days;
  return FromLocal(parts);
}

// "2026-11-20 14:00"; -1 for another form.
Nanos ParseLocal(const std::string& text) {
  for (const char* format :
       {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"}) {
    std::tm parts{};
    const char* end = ::strptime(text.c_str(), format, &parts);
    if (end != nullptr && *end == '\0') return FromLocal(parts);
  }
  return -1;
}

bool IsSpan(std::string_view text) {
  const size_t digits = text.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && digits + 1 == text.size() &&
         std::string_view("smhdwy").find(text[digits]) != std::string_view::npos;
}

}  // namespace

Result<Nanos> ParseMoment(std::string_view text, Nanos now) {
  if (text == "today") return DayBefore(now, 0);
  if (text == "yesterday") return DayBefore(now, 1);
  if (const Nanos local = ParseLocal(std::string(text)); local >= 0) return local;
  const Result<Nanos> time =
      web::ParseOpenTsdbTime(IsSpan(text) ? std::string(text) + "-ago" : std::string(text), now);
  if (time.ok()) return time;
  return Status(Code::kInvalid,
                fmt::format("'{}' is no time; expected so long ago (90m, 36h, 2d, 1w), today, "
                            "yesterday, 2026-01-31 or '2026-01-31 10:00'",
                            text));
}

Result<std::pair<std::string, std::string>> ParseUserTag(std::string_view text) {
  const size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = text.substr(std::min(equals + 1, text.size()));
  if (!ValidUserTag(name, value)) {
    return Status(Code::kInvalid, fmt::format("tag '{}': {}", text, kUserTagExpected));
  }
  return std::pair(std::string(name), std::string(value));
}

Result<SortBy> ParseSort(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [name, sort] : kSorts) {
    if (name == text) return sort;
    names.push_back(name);
  }
  return Status(Code::kInvalid,
                fmt::format("--sort {}: expected one of {}", text, fmt::join(names, ", ")));
}

void AddSelectionOptions(Arguments sub, SelectionOptions& options) {
  sub.Option("--since", options.since,
             "That began since then: 90m, 36h, 2d, today, 2026-01-31, '2026-01-31 10:00'");
  sub.Option("--until", options.until, "That began by then");
  sub.Option("--cmd", options.command, "With this text in the command line");
  sub.Option("--name", options.name, "With this text in the job's name");
  sub.Option("--node", options.node, "That ran on this node");
  sub.Option("--state", options.state,
             "running, completed, failed, out_of_memory, cancelled, lost or unknown");
  sub.Option("--tag", options.tags, "With this tag, NAME or NAME=VALUE; may be repeated")
      .Repeated();
  sub.Option("--user", options.user, "Of this user");
  sub.Option("--account", options.account, "Of this account");
  sub.Option("--partition", options.partition, "In this partition");
}

Result<Selection> SelectionOf(const SelectionOptions& options, Nanos now) {
  Selection selection;
  for (const auto& [given, option, time] :
       {std::tuple{&options.since, "--since", &selection.since},
        std::tuple{&options.until, "--until", &selection.until}}) {
    if (given->empty()) continue;
    const Result<Nanos> moment = ParseMoment(*given, now);
    if (!moment.ok()) return moment.status().Within(option);
    *time = *moment;
  }
  if (selection.since > selection.until) {
    return Status(Code::kInvalid,
                  fmt::format("--since {} is later than --until {}", options.since, options.until));
  }
  selection.command = options.command;
  selection.name = options.name;
  selection.node = options.node;
  selection.user = options.user;
  selection.account = options.account;
  selection.partition = options.partition;
  if (!options.state.empty()) {
    const Result<EndState> state = ParseState(options.state);
    if (!state.ok()) return state.status();
    selection.state = *state;
  }
  for (const std::string& text : options.tags) {
    auto tag = ParseUserTag(text);
    if (!tag.ok()) return tag.status().Within("--tag");
    const bool any = text.find('=') == std::string::npos;
    selection.tags.emplace_back(tag->first, any ? std::nullopt : std::optional(tag->second));
  }
  return selection;
}

}  // namespace sonde::cli
