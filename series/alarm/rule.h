// Alarm rules: they say when a user should be told of something in a step; as text and as a value.
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
// docs/alarms.md says what they mean. A rule over single nodes, tasks or devices needs a number for
// each of them; each node makes rates, ratios and its own sums where they are measured (Derived),
// and these are reduced like any other series.
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
  kLags,   // the smallest is more than `bound` deviations of the others below their mean
  kLeads,  // the largest is as far above it
};
// ">", "absent" and so on.
std::string_view ToString(Test test);
// Whether `value` compares with `bound` as `test`, one of kGreater to kNotEqual, says.
bool Compares(Test test, double value, double bound);

struct Condition {
  std::string metric;
  Tags tags;
  std::string over;  // the metric it is divided by; "": none
  Who who = Who::kStep;
  bool per_node = false;  // the values of a node's tasks are put together first
  bool rate = false;
  Test test = Test::kGreater;
  double bound = 0;
  double by = kDefaultBy;  // of kLags and kLeads: also by at least this share of the mean
  Nanos in = 0;            // not now, but after this time if the trend goes on
  bool operator==(const Condition&) const = default;
};
// Whether its tags name a node, by kHostTag: then it is about that node's number alone.
inline constexpr std::string_view kHostTag = "host";
bool IsOfOneNode(const Condition& condition);

struct Rule {
  std::string name;
  std::vector<Condition> conditions;  // at least one; all have to hold
  Nanos hold = 0;                     // they hold this long before it is raised
  std::optional<double>
      clear;                  // over when the first condition does not hold with this bound either
  std::optional<Nanos> calm;  // and for so long; `hold` unless given
  Severity severity = Severity::kWarning;
  std::string message;  // what to tell; {value} is the first condition's. "": the rule itself
  bool operator==(const Rule&) const = default;

  Nanos Calm() const { return calm.value_or(hold); }
};

// A series that nodes compute from their own for rules; with the tag kHostTag, the node of that
// name alone.
struct Derived {
  std::string metric;
  Tags tags;
  std::string over;
  bool per_node = false;
  bool rate = false;
  // Not the value itself, but for how many seconds it has compared so, 0 if it does not. kAbsent:
  // the value itself.
  Test held = Test::kAbsent;
  double bound = 0;
  bool operator==(const Derived&) const = default;
};
// "alarm:rate:task_cpu_seconds_total", "alarm:node:rate:X", "alarm:X:per:Y",
// "alarm:held:gt3fe0000000000000:X".
std::string DerivedName(const Derived& derived);
// Derived series are for rules alone: no record has them.
inline bool IsDerivedName(std::string_view metric) { return metric.starts_with("alarm:"); }
// The series that nodes derive for a condition; nullopt if the reduced series have it already.
std::optional<Derived> NeedOf(const Condition& condition);
// For `any` with `for`, which means one and the same node or task for all that time: the series of
// how long each has been beyond the bound. nullopt for other conditions.
std::optional<Derived> HeldOf(const Rule& rule, const Condition& condition);

// The bytes that go to the nodes. Decoding trusts nothing.
inline constexpr size_t kMaxDerived = 1024;
void EncodeDerived(const std::vector<Derived>& all, std::string& out);
Result<std::vector<Derived>> DecodeDerived(std::string_view bytes);

// Plain text of 1 to kMaxRuleName bytes without ':', '=', '"' and blanks at its ends.
Status CheckRuleName(std::string_view name);
// Parses a rule's text. kInvalid says at which character what was expected.
Result<Rule> ParseRule(std::string_view name, std::string_view text);
// The text of a rule, which parses to the same.
std::string ToText(const Rule& rule);
std::string ToText(const Condition& condition);
// METRIC[{tag=value,...}], also as Prometheus writes it, {tag="value"}.
Status ParseSelector(std::string_view text, std::string& metric, Tags& tags);

// A file of rules has a line for each, "NAME: RULE"; "NAME: off" takes away a rule that was there
// before. Lines that are blank or begin with '#' are passed over. A mistake is kInvalid and names
// the file and the line.
struct RuleLine {
  std::string name;
  std::optional<Rule> rule;  // none: off
};
Result<std::vector<RuleLine>> ParseRules(std::string_view text, std::string_view file);
std::string ToText(const RuleLine& line);
// Parses one: the rule or "off".
Result<RuleLine> ParseRuleLine(std::string_view name, std::string_view text);
// Adds the lines to `rules`: later ones replace those with the same name.
void Apply(const std::vector<RuleLine>& lines, std::vector<Rule>& rules);

}  // namespace sonde::alarms
