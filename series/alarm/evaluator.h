// Looks at a step's reduced series, tick by tick, for what its alarm rules describe.
//
// A rule is evaluated separately for every series of its first condition's metric that has the
// condition's tags, such as each filesystem. The other conditions then mean the series with the
// same tags, as far as they ask for no others. A missing value changes nothing, but after kForget
// without a value all that was seen of the series is forgotten. docs/alarms.md has the semantics in
// full.
//
// Takes less than a microsecond for a rule. Allocates nothing per tick while series stay and
// no alarm is raised.
//
// Thread safety: none; daemon/head/alarms/alarms.h guards it.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "series/alarm/rule.h"
#include "series/alarm/trend.h"
#include "series/block/schema.h"
#include "series/store/reduced.h"

namespace sonde::alarms {

// A change of a rule's state for one series.
struct Event {
  bool raised = true;  // false: the alarm is over
  std::string rule;
  Severity severity = Severity::kWarning;
  Tags tags;         // of the series
  std::string text;  // the message, or the rule
  Owner owner;       // who measured the value, if one node or task did
  Nanos time = 0;
  double value = 0;           // of the first condition; NaN if nothing is there
  std::optional<Nanos> left;  // until the first condition with 'in' comes true, by its trend
  std::string unit;           // of the value
};

class Evaluator {
 public:
  static constexpr size_t kMaxInstances = 256;  // series of a rule
  static constexpr Nanos kForget = 30 * kSecond;

  // A row of the step's reduced series.
  struct Row {
    Nanos time = 0;
    const std::vector<Reduced>* values = nullptr;  // by series; there may be fewer
    bool complete = true;                          // every node is in it
  };

  // The present state of a rule for one series.
  struct State {
    Rule rule;
    Tags tags;
    bool raised = false;
    Nanos since = 0;  // while raised: since when, and the message then
    std::string text;
    double value = std::nan("");
    Owner owner;
    std::string unit;
    std::string help;  // of the metric
    bool counter = false;
  };

  explicit Evaluator(Nanos period);

  // kBusy if there is a rule of that name, kLimit if there are too many rules.
  Status Add(Rule rule);
  // False if there is no such rule. Its alarms are over, without an event.
  bool Remove(std::string_view name);

  // nullptr if there is no such rule; valid until the next Add or Remove.
  const Rule* Find(std::string_view name) const;

  // Evaluates the next row. `series` are those of its values, and only grow at the end. A row that
  // is not newer than the last one changes nothing.
  void Evaluate(const std::vector<Series>& series, const Row& row, std::vector<Event>& events);

  // A state for each rule and series, in the order in which rules were added; a rule without a
  // series has one state without tags.
  std::vector<State> States() const;
  // The same in portions: gives the next `most` states at a time, until it returns false. Rules and
  // series may come and go in between; each one that stays is given once.
  struct Place {
    uint64_t rule = 0;
    size_t instance = 0;
  };
  bool NextStates(Place& place, size_t most, std::vector<State>& states) const;
  // The series that nodes have to derive for the present rules, each once.
  std::vector<Derived> Needs() const;

 private:
  static constexpr uint32_t kNoColumn = 0xffffffff;

  // The rate of a column, or its value if it has none.
  struct Operand {
    uint32_t column = kNoColumn;
    bool counter = false;
    bool rate = false;
    Reduction reduction = Reduction::kSum;
    double before = std::nan("");
    double before_count = 0;
    Nanos before_time = 0;
  };
  // A condition, of one series.
  struct Term {
    Operand of;
    Operand over;
    std::vector<uint32_t> watched;  // of `absent`: every series that would count
    std::unique_ptr<Trend> trend;   // of `in`
    uint32_t held = kNoColumn;      // of `any` with `for`: how long each has been beyond the bound
    double value = std::nan("");
    Owner owner;
  };
  struct Instance {
    Tags tags;
    std::string unit;
    std::vector<Term> terms;  // by condition
    bool raised = false;
    Nanos since = 0;  // when it began to hold or, if raised, not to; 0: neither
    Nanos seen = 0;   // when it last had values
    Nanos raised_at = 0;
    std::string text;  // as it was raised
    Owner held_by;     // of lags and leads: the same all the time
  };
  struct RuleState {
    uint64_t number = 0;  // in the order in which they were added
    Rule rule;
    std::vector<std::string> sources;  // by condition: the series that is looked at
    std::vector<Instance> instances;
    size_t looked_at = 0;  // columns of the first source
  };
  // Of one metric.
  struct Columns {
    std::vector<uint32_t> all;
    std::vector<uint32_t> by_tags;  // the same, in the order of their tags
  };
  enum class Holds : uint8_t { kNo, kYes, kUnknown };

  void Learn(const std::vector<Series>& series);
  void Resolve(RuleState& state);
  void ResolveInstance(const RuleState& state, Instance& instance);
  void Watch(const Condition& condition, Term& term) const;
  std::optional<uint32_t> ColumnFor(const Columns& columns, const Tags& tags,
                                    const Tags& alike) const;
  void ResolveOperand(Operand& operand, const std::string& metric, const Tags& tags,
                      const Tags& alike) const;
  static double Take(Operand& operand, Who who, const Row& row);
  Holds Look(const Condition& c, Term& term, const Row& row) const;
  static Holds Deviates(const Condition& c, Term& term, const Reduced& r);
  static bool HasHeld(const RuleState& state, Instance& instance, const Row& row);
  static bool IsCalm(const RuleState& state, const Instance& instance, bool holds);
  void Step(const RuleState& state, Instance& instance, const Row& row,
            std::vector<Event>& events) const;
  static void Turn(const RuleState& state, Instance& instance, bool raised, Nanos time,
                   std::vector<Event>& events);
  State StateOf(const RuleState& state, const Instance& instance) const;

  Nanos forget_;
  std::vector<std::unique_ptr<RuleState>> rules_;  // by number
  uint64_t next_number_ = 0;
  std::unordered_map<std::string, Columns> columns_;  // by metric
  std::vector<Series> series_;                        // learnt so far
  Nanos last_ = 0;
};

}  // namespace sonde::alarms
