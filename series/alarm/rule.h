// Alarm rules: when is something in a step worth telling somebody, in words and as a value.
//
//   RULE       CONDITION [and CONDITION]... [for TIME] [clear NUMBER] [calm TIME] [SEVERITY]
//              [message "TEXT"]
//   CONDITION  METRIC[{tag=value,...}] [/ METRIC] [WHO] [rate] TEST
//   WHO        sum avg min max count any all, any node, all nodes; without one the step's number
//   TEST       > >= < <= = != NUMBER [in TIME], absent, lags NUMBER [by NUMBER], leads NUMBER [by
//              NUMBER]
//   NUMBER     with K, M, G or T (powers of 1024) or % behind it
//   SEVERITY   info, warning or critical
//
// docs/alarms.md says what they mean. A rule over single nodes, tasks or devices needs a number of
// each of them; a rate, a ratio or a node's sum is made where it is measured (Derived) and reduced
// like any other series.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/metric.h"
#include "core/status.h"
#include "core/time.h"

namespace sonde::alarms {

inline constexpr size_t kMaxRules = 2048;               // of a step
inline constexpr size_t kMaxConditions = 4;             // of a rule
inline constexpr size_t kMaxRuleText = 2048;            // bytes
inline constexpr size_t kMaxRuleName = 64;              // bytes
inline constexpr size_t kMaxMessage = 160;              // bytes
inline constexpr size_t kMaxFile = 1u << 20;            // bytes of a file of rules
inline constexpr double kDefaultBy = 0.1;               // of `lags` and `leads`
inline constexpr Nanos kMaxTime = 7 * 86400 * kSecond;  // of any time in a rule

enum class Severity : uint8_t { kInfo, kWarning, kCritical };
std::string_view ToString(Severity severity);

// Whose number is looked at.
enum class Who : uint8_t { kStep, kSum, kAvg, kMin, kMax, kCount, kAny, kAll };

enum class Test : uint8_t {
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kAbsent,
  kLags,   // the least is more than `bound` deviations of the others below their mean
  kLeads,  // the most is as far above it
};
// ">", "absent" and so on.
std::string_view ToString(Test test);
// Whether `value` compares so with `bound`; of kGreater to kNotEqual.
bool Compares(Test test, double value, double bound);

struct Condition {
  std::string metric;
  Tags tags;
  std::string over;  // the metric it is divided by; "": none
  Who who = Who::kStep;
  bool per_node = false;  // what the tasks of a node measure is put together before
  bool rate = false;
  Test test = Test::kGreater;
  double bound = 0;
  double by = kDefaultBy;  // of kLags and kLeads: and by at least this share of the mean
  Nanos in = 0;            // not now, but so much later if it goes on like this
  bool operator==(const Condition&) const = default;
};

struct Rule {
  std::string name;
  std::vector<Condition> conditions;  // at least one, all of which have to hold
  Nanos hold = 0;                     // for so long, before it is raised
  std::optional<double>
      clear;                  // over when the first condition does not hold with this bound either
  std::optional<Nanos> calm;  // and for so long; `hold` unless given
  Severity severity = Severity::kWarning;
  std::string message;  // what to tell; {value} is the first condition's. "": the rule itself
  bool operator==(const Rule&) const = default;

  Nanos Calm() const { return calm.value_or(hold); }
};

// A series that nodes make of their own for rules.
struct Derived {
  std::string metric;
  Tags tags;
  std::string over;
  bool per_node = false;
  bool rate = false;
  // Not that itself, but for how many seconds it has compared so, 0 if it does not; kAbsent:
  // itself.
  Test held = Test::kAbsent;
  double bound = 0;
  bool operator==(const Derived&) const = default;
};
// "alarm:rate:task_cpu_seconds_total", "alarm:node:rate:X", "alarm:X:per:Y",
// "alarm:held:gt3fe0000000000000:X".
std::string DerivedName(const Derived& derived);
// Such series are for rules alone: no record has them.
inline bool IsDerivedName(std::string_view metric) { return metric.starts_with("alarm:"); }
// What a condition needs of the nodes; nothing if the reduced series have it.
std::optional<Derived> NeedOf(const Condition& condition);
// Of `any` with `for`, by which one and the same is meant, who has been beyond the bound how long;
// nothing of others.
std::optional<Derived> HeldOf(const Rule& rule, const Condition& condition);

// As they go to the nodes. Decoding trusts nothing.
inline constexpr size_t kMaxDerived = 1024;
void EncodeDerived(const std::vector<Derived>& all, std::string& out);
Result<std::vector<Derived>> DecodeDerived(std::string_view bytes);

// Plain text of 1 to kMaxRuleName bytes without ':', '=', '"' and blanks at its ends.
Status CheckRuleName(std::string_view name);
// A rule's text. kInvalid says at which character what was expected.
Result<Rule> ParseRule(std::string_view name, std::string_view text);
// The text of a rule, which parses to the same.
std::string ToText(const Rule& rule);
std::string ToText(const Condition& condition);
// METRIC[{tag=value,...}], also as Prometheus writes it, {tag="value"}.
Status ParseSelector(std::string_view text, std::string& metric, Tags& tags);

// A file of rules: a line for each, "NAME: RULE"; "NAME: off" takes a rule away that was there
// before. Lines that are blank or begin with '#' are passed over. A mistake is kInvalid and names
// the file and the line.
struct RuleLine {
  std::string name;
  std::optional<Rule> rule;  // none: off
};
Result<std::vector<RuleLine>> ParseRules(std::string_view text, std::string_view file);
std::string ToText(const RuleLine& line);
// One of them: the rule or "off".
Result<RuleLine> ParseRuleLine(std::string_view name, std::string_view text);
// The later ones take the place of those with the same name.
void Apply(const std::vector<RuleLine>& lines, std::vector<Rule>& rules);

}  // namespace sonde::alarms
