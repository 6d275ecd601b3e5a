#include "profiles/select/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <tuple>

#include "core/metric.h"
#include "core/text/user_tags.h"

namespace sonde {
namespace {

constexpr std::array<std::pair<std::string_view, SortBy>, 14> kSorts = {{
    {"start", SortBy::kStart},
    {"time", SortBy::kDuration},
    {"cpu", SortBy::kCpu},
    {"use", SortBy::kUse},
    {"mem", SortBy::kMemory},
    {"energy", SortBy::kEnergy},
    {"read", SortBy::kRead},
    {"written", SortBy::kWritten},
    {"received", SortBy::kReceived},
    {"sent", SortBy::kSent},
    {"size", SortBy::kSize},
    {"nodes", SortBy::kNodes},
    {"tasks", SortBy::kTasks},
    {"state", SortBy::kState},
}};

constexpr std::array kStates = {EndState::kRunning,     EndState::kCompleted, EndState::kFailed,
                                EndState::kOutOfMemory, EndState::kCancelled, EndState::kTimeout,
                                EndState::kPreempted,   EndState::kNodeFail,  EndState::kLost,
                                EndState::kUnknown};

Result<EndState> ParseState(std::string_view text, std::string_view prefix) {
  std::vector<std::string_view> names;
  for (const EndState state : kStates) {
    if (text == ToString(state)) return state;
    names.push_back(ToString(state));
  }
  return Status(Code::kInvalid, fmt::format("{}state {}: expected one of {}", prefix, text,
                                            fmt::join(names, ", ")));
}

Result<int> ParseLevel(std::string_view text, std::string_view prefix) {
  int level = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (error == std::errc() && end == text.data() + text.size() && level >= 0 &&
      level <= kMaxLevel) {
    return level;
  }
  return Status(Code::kInvalid,
                fmt::format("{}level {}: expected 0 to {}", prefix, text, kMaxLevel));
}

Status ReadTimes(const SelectionWords& words, Nanos now, const SelectionForm& form,
                 Selection& selection) {
  for (const auto& [given, name, time] : {std::tuple{&words.since, "since", &selection.since},
                                          std::tuple{&words.until, "until", &selection.until}}) {
    if (given->empty()) continue;
    const Result<Nanos> moment = form.time(*given, now);
    if (!moment.ok()) return moment.status().Within(fmt::format("{}{}", form.prefix, name));
    *time = *moment;
  }
  if (selection.since <= selection.until) return {};
  return {Code::kInvalid, fmt::format("{0}since {1} is later than {0}until {2}", form.prefix,
                                      words.since, words.until)};
}

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (text.empty()) return words;
    words.emplace_back(text.substr(0, text.find_first_of(" \t")));
    text.remove_prefix(words.back().size());
  }
}

}  // namespace

Result<std::pair<std::string, std::string>> ParseUserTag(std::string_view text) {
  const size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = text.substr(std::min(equals + 1, text.size()));
  if (!ValidUserTag(name, value)) {
    return Status(Code::kInvalid, fmt::format("tag '{}': {}", text, kUserTagExpected));
  }
  return std::pair(std::string(name), std::string(value));
}

Result<SortBy> ParseSort(std::string_view text, std::string_view prefix) {
  std::vector<std::string_view> names;
  for (const auto& [name, sort] : kSorts) {
    if (name == text) return sort;
    names.push_back(name);
  }
  return Status(Code::kInvalid,
                fmt::format("{}sort {}: expected one of {}", prefix, text, fmt::join(names, ", ")));
}

Result<Selection> SelectionOf(const SelectionWords& words, Nanos now, const SelectionForm& form) {
  Selection selection;
  SONDE_RETURN_IF_ERROR(ReadTimes(words, now, form, selection));
  selection.search = SplitWords(words.search);
  selection.command = words.command;
  selection.name = words.name;
  selection.node = words.node;
  selection.user = words.user;
  selection.account = words.account;
  selection.partition = words.partition;
  if (!words.state.empty()) {
    const Result<EndState> state = ParseState(words.state, form.prefix);
    if (!state.ok()) return state.status();
    selection.state = *state;
  }
  if (!words.level.empty()) {
    const Result<int> level = ParseLevel(words.level, form.prefix);
    if (!level.ok()) return level.status();
    selection.level = *level;
  }
  for (const std::string& text : words.tags) {
    auto tag = ParseUserTag(text);
    if (!tag.ok()) return tag.status().Within(fmt::format("{}tag", form.prefix));
    const bool any = text.find('=') == std::string::npos;
    selection.tags.emplace_back(tag->first, any ? std::nullopt : std::optional(tag->second));
  }
  return selection;
}

}  // namespace sonde
