#include "core/text/site_rules.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>

#include "core/text/ascii.h"

namespace sonde {
namespace {

// In the order of SiteRules::Key.
constexpr std::string_view kSiteKeys[] = {
    "default_level",
    "max_level",
    "min_period",
    "allow_events",
};
// In the order of SiteRules::Of.
constexpr std::string_view kConditions[] = {"user", "group", "account", "partition", "qos"};

constexpr int64_t kUsualPeriod = 1'000'000'000;

// Calls f(part) for the parts of `text` between separators, without blanks around them.
template <typename F>
void ForEachPart(std::string_view text, char separator, F&& f) {
  for (;;) {
    const size_t end = text.find(separator);
    f(Trim(text.substr(0, end)));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::optional<uint32_t> WholeNumber(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool IsEventPattern(std::string_view text) {
  std::string name(text);
  std::replace(name.begin(), name.end(), '*', 'x');
  return ValidEventList(name);
}

// Slurm keeps the names of accounts and QOS in small letters.
Truth IsKnownAs(std::string_view name, std::string_view pattern, bool any_case) {
  if (name.empty()) return Truth::kUnknown;
  const bool same =
      any_case ? MatchesPattern(Lower(pattern), Lower(name)) : MatchesPattern(pattern, name);
  return same ? Truth::kYes : Truth::kNo;
}

// In the largest unit in which it is a whole number.
std::string PeriodText(int64_t nanos) {
  constexpr std::pair<int64_t, const char*> kUnits[] = {
      {3'600'000'000'000, "h"}, {60'000'000'000, "m"}, {1'000'000'000, "s"}, {1'000'000, "ms"}};
  for (const auto& [unit, name] : kUnits) {
    if (nanos % unit == 0) return std::to_string(nanos / unit) + name;
  }
  return std::to_string(nanos / 1000) + "us";
}

// "max_level, /etc/sonde/sonde.conf:12"
std::string Source(std::string_view key, std::string_view file, int line) {
  return std::string(key) + ", " + std::string(file) + ":" + std::to_string(line);
}

std::string Quoted(std::string_view text) { return "'" + std::string(text.substr(0, 128)) + "'"; }

}  // namespace

// Goes back to the last '*' when the rest does not fit: time is at most the product of the lengths.
bool MatchesPattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::optional<SiteRules::Key> SiteRules::FindKey(std::string_view name) {
  const auto at = std::find(std::begin(kSiteKeys), std::end(kSiteKeys), name);
  if (at == std::end(kSiteKeys)) return std::nullopt;
  return static_cast<Key>(at - std::begin(kSiteKeys));
}

bool SiteRules::Takes(const Setting& line) const {
  return line.text.starts_with('[') || sections_.size() > 1 || FindKey(line.name).has_value();
}

std::string SiteRules::Add(const Setting& line) {
  if (line.text.starts_with('[')) {
    Section section{line.line, false, {}};
    std::string wrong = ParseConditions(line.text, section);
    section.wrong = !wrong.empty();
    sections_.push_back(std::move(section));
    return wrong;
  }
  if (!line.value) return "expected key = value";
  const std::optional<Key> key = FindKey(line.name);
  if (!key) {
    return Quoted(line.name) + " stands below the brackets of line " +
           std::to_string(sections_.back().line) +
           ": there only default_level, max_level, min_period and allow_events may stand; put it "
           "above the first brackets";
  }
  Rule rule{*key, sections_.size() - 1, line.line, 0, false, {}};
  std::string wrong = ParseValue(*line.value, rule);
  if (!wrong.empty()) {
    return std::string(line.name) + " = " + std::string(line.value->substr(0, 128)) + ": " + wrong;
  }
  const bool again = std::any_of(rules_.begin(), rules_.end(), [&](const Rule& other) {
    return other.key == rule.key && other.section == rule.section;
  });
  if (again) return std::string(line.name) + " is given twice";
  rules_.push_back(std::move(rule));
  return "";
}

// "[partition = gpu*, bench; user = alice]"
std::string SiteRules::ParseConditions(std::string_view text, Section& section) {
  constexpr std::string_view kExample = "expected conditions such as [partition = gpu*, bench]";
  if (!text.ends_with(']')) return std::string(kExample) + ", with ] at the end";
  std::string wrong;
  ForEachPart(text.substr(1, text.size() - 2), ';', [&](std::string_view part) {
    if (!wrong.empty()) return;
    const size_t eq = part.find('=');
    if (eq == std::string_view::npos) {
      wrong = kExample;
      return;
    }
    const std::string_view name = Trim(part.substr(0, eq));
    const auto at = std::find(std::begin(kConditions), std::end(kConditions), name);
    if (at == std::end(kConditions)) {
      wrong =
          "unknown condition " + Quoted(name) + ", expected user, group, account, partition or qos";
      return;
    }
    Condition condition{static_cast<Of>(at - std::begin(kConditions)), {}};
    ForEachPart(part.substr(eq + 1), ',', [&](std::string_view value) {
      if (value.empty()) wrong = "expected names separated by commas after " + std::string(name);
      condition.patterns.emplace_back(value);
    });
    section.conditions.push_back(std::move(condition));
  });
  return wrong;
}

std::string SiteRules::ParseValue(std::string_view text, Rule& rule) {
  switch (rule.key) {
    case Key::kDefaultLevel:
    case Key::kLevelLimit:
      rule.value = ParseLevel(text);
      return rule.value < 0 ? std::string(kLevelExpected) : "";
    case Key::kPeriodLimit:
      rule.value = ParsePeriod(text);
      return rule.value < 0 ? std::string(kPeriodExpected) : "";
    case Key::kAllowEvents:
      break;
  }
  rule.all = text == "all";
  if (rule.all || text == "none") return "";
  std::string wrong;
  ForEachPart(text, ',', [&](std::string_view event) {
    if (!IsEventPattern(event)) {
      wrong = "expected all, none or names of events such as instructions,cache-*";
    }
    rule.events.push_back(Lower(event));
  });
  return wrong;
}

bool SiteRules::WatchesUnasked() const {
  return std::any_of(rules_.begin(), rules_.end(), [](const Rule& rule) {
    return rule.key == Key::kDefaultLevel && rule.value > 0;
  });
}

bool SiteRules::DependOnAllocation() const {
  return std::any_of(sections_.begin(), sections_.end(), [](const Section& section) {
    return std::any_of(section.conditions.begin(), section.conditions.end(),
                       [](const Condition& c) { return c.of != Of::kUser && c.of != Of::kGroup; });
  });
}

// --- Whether a line is for a step

Truth SiteRules::Holds(const Condition& condition, const Applicant& applicant, Accounts& accounts) {
  const auto one = [&](const std::string& pattern) {
    switch (condition.of) {
      case Of::kUser:
        if (const auto uid = WholeNumber(pattern)) {
          return *uid == applicant.uid ? Truth::kYes : Truth::kNo;
        }
        return accounts.IsUser(applicant.uid, pattern);
      case Of::kGroup:
        if (const auto gid = WholeNumber(pattern)) {
          const auto& gids = applicant.gids;
          return std::find(gids.begin(), gids.end(), *gid) != gids.end() ? Truth::kYes : Truth::kNo;
        }
        return accounts.IsGroup(applicant.gids, pattern);
      case Of::kAccount:
        return IsKnownAs(applicant.account, pattern, true);
      case Of::kPartition:
        return IsKnownAs(applicant.partition, pattern, false);
      case Of::kQos:
        return IsKnownAs(applicant.qos, pattern, true);
    }
    return Truth::kUnknown;
  };
  Truth best = Truth::kNo;
  for (const std::string& pattern : condition.patterns) {
    best = std::max(best, one(pattern));
    if (best == Truth::kYes) break;
  }
  return best;
}

Truth SiteRules::Holds(const Section& section, const Applicant& applicant, Accounts& accounts) {
  Truth worst = section.wrong ? Truth::kUnknown : Truth::kYes;
  for (const Condition& condition : section.conditions) {
    worst = std::min(worst, Holds(condition, applicant, accounts));
    if (worst == Truth::kNo) break;
  }
  return worst;
}

struct SiteRules::Limits {
  int default_level = 0;
  int max_level = kHighestLevel;
  int max_level_line = 0;
  int64_t min_period = kShortestPeriod;
  int min_period_line = 0;
  std::vector<const Rule*> events;  // each of these lines must allow an event
};

SiteRules::Limits SiteRules::LimitsOf(const Applicant& applicant, Accounts& accounts) const {
  Limits limits;
  size_t section = 0;
  Truth holds = Truth::kYes;
  for (const Rule& rule : rules_) {
    if (rule.section != section) {
      section = rule.section;
      holds = Holds(sections_[section], applicant, accounts);
    }
    if (holds == Truth::kNo) continue;
    const bool sure = holds == Truth::kYes;
    switch (rule.key) {
      case Key::kDefaultLevel:
        if (sure || rule.value < limits.default_level) {
          limits.default_level = static_cast<int>(rule.value);
        }
        break;
      case Key::kLevelLimit:
        if (!sure && rule.value >= limits.max_level) break;
        limits.max_level = static_cast<int>(rule.value);
        limits.max_level_line = rule.line;
        break;
      case Key::kPeriodLimit:
        if (!sure && rule.value <= limits.min_period) break;
        limits.min_period = rule.value;
        limits.min_period_line = rule.line;
        break;
      case Key::kAllowEvents:
        if (sure) limits.events.clear();
        limits.events.push_back(&rule);
        break;
    }
  }
  return limits;
}

// --- What a step gets

// A pattern without a colon is for an event with whatever modifiers or masks behind a colon. Two
// colons stand behind the name of a device, which is part of the event's name.
bool SiteRules::Allows(const Rule& rule, std::string_view event) {
  if (rule.all) return true;
  const std::string whole = Lower(event);
  std::string_view name = whole;
  if (name.find("::") == std::string_view::npos) name = name.substr(0, name.find(':'));
  return std::any_of(rule.events.begin(), rule.events.end(), [&](const std::string& pattern) {
    return MatchesPattern(pattern, whole) || MatchesPattern(pattern, name);
  });
}

void SiteRules::LowerEvents(const Asked& asked, const Limits& limits, std::string_view file,
                            Granted& granted) {
  if (asked.events.empty()) return;
  std::string left_out;
  int line = 0;
  const auto append = [](std::string& list, std::string_view event) {
    if (!list.empty()) list += ',';
    list += event;
  };
  ForEachPart(asked.events, ',', [&](std::string_view event) {
    const auto by = std::find_if(limits.events.begin(), limits.events.end(),
                                 [&](const Rule* rule) { return !Allows(*rule, event); });
    if (by == limits.events.end()) return append(granted.events, event);
    append(left_out, event);
    line = (*by)->line;
  });
  // They would not be counted anyway.
  if (left_out.empty() || granted.level < 3) return;
  granted.lowered.push_back("--telemetry-events: " + left_out + ": not allowed here (" +
                            Source("allow_events", file, line) + "); left out");
}

Granted SiteRules::Grant(const Asked& asked, const Applicant& applicant, Accounts& accounts,
                         std::string_view file) const {
  const Limits limits = LimitsOf(applicant, accounts);
  Granted granted;
  granted.level = std::min(asked.level.value_or(limits.default_level), limits.max_level);
  granted.period = std::max(asked.period.value_or(kUsualPeriod), limits.min_period);
  if (asked.level && granted.level < *asked.level) {
    const std::string most = std::to_string(granted.level);
    const std::string source = Source("max_level", file, limits.max_level_line);
    granted.lowered.push_back("--telemetry-level=" + std::to_string(*asked.level) + ": at most " +
                              most + " here (" + source +
                              (granted.level == 0 ? "); not watched" : "); watched at " + most));
  }
  if (asked.period && granted.level > 0 && granted.period > *asked.period) {
    const std::string least = PeriodText(granted.period);
    granted.lowered.push_back(
        "--telemetry-period=" + PeriodText(*asked.period) + ": at least " + least + " here (" +
        Source("min_period", file, limits.min_period_line) + "); sampled every " + least);
  }
  LowerEvents(asked, limits, file, granted);
  return granted;
}

}  // namespace sonde
