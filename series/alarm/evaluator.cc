#include "series/alarm/evaluator.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "series/alarm/text.h"

namespace sonde::alarms {
namespace {

bool HasTags(const Tags& tags, const Tags& wanted) {
  return std::all_of(wanted.pairs().begin(), wanted.pairs().end(), [&](const Tags::Pair& want) {
    const std::string* have = tags.Find(want.first);
    return have != nullptr && *have == want.second;
  });
}

// True if keys that both have carry equal values; keys that were asked for do not count.
bool Agree(const Tags& a, const Tags& b, const Tags& asked) {
  return std::all_of(a.pairs().begin(), a.pairs().end(), [&](const Tags::Pair& one) {
    const std::string* other = b.Find(one.first);
    return other == nullptr || *other == one.second || asked.Find(one.first) != nullptr;
  });
}

bool Rises(Test test) { return test == Test::kGreater || test == Test::kGreaterEqual; }

// The statistic of a reduced value that the test is about, and its owner.
Who Statistic(const Condition& c, const Reduced& r) {
  const bool any = c.who == Who::kAny;
  if (!any && c.who != Who::kAll) return c.who;
  switch (c.test) {
    case Test::kGreater:
    case Test::kGreaterEqual:
      return any ? Who::kMax : Who::kMin;
    case Test::kLess:
    case Test::kLessEqual:
      return any ? Who::kMin : Who::kMax;
    default:  // any != and all =: the one that differs, if one does
      return r.max != c.bound ? Who::kMax : Who::kMin;
  }
}

Owner OwnerOf(Who who, const Reduced& r) {
  if (who == Who::kMin) return r.min_owner;
  if (who == Who::kMax) return r.max_owner;
  return r.count == 1 ? r.min_owner : Owner();
}

}  // namespace

Evaluator::Evaluator(Nanos period) : forget_(std::max(kForget, 5 * period)) {}

Status Evaluator::Add(Rule rule) {
  if (rules_.size() == kMaxRules) {
    return {Code::kLimit,
            fmt::format("alarm {}: the step has {} rules already", rule.name, kMaxRules)};
  }
  for (const auto& state : rules_) {
    if (state->rule.name == rule.name) {
      return {Code::kBusy, fmt::format("there is an alarm '{}' already", rule.name)};
    }
  }
  auto state = std::make_unique<RuleState>();
  state->number = next_number_++;
  state->rule = std::move(rule);
  for (const Condition& c : state->rule.conditions) {
    const std::optional<Derived> need = NeedOf(c);
    state->sources.push_back(need ? DerivedName(*need) : c.metric);
  }
  Resolve(*state);
  rules_.push_back(std::move(state));
  return {};
}

bool Evaluator::Remove(std::string_view name) {
  return std::erase_if(rules_, [&](const auto& state) { return state->rule.name == name; }) > 0;
}

const Rule* Evaluator::Find(std::string_view name) const {
  for (const auto& state : rules_) {
    if (state->rule.name == name) return &state->rule;
  }
  return nullptr;
}

std::vector<Derived> Evaluator::Needs() const {
  std::vector<Derived> all;
  const auto add = [&](std::optional<Derived> need) {
    if (need && all.size() < kMaxDerived && std::find(all.begin(), all.end(), *need) == all.end())
      all.push_back(*std::move(need));
  };
  for (const auto& state : rules_) {
    for (const Condition& c : state->rule.conditions) add(NeedOf(c));
  }
  // Last: a rule can do without these.
  for (const auto& state : rules_) {
    for (const Condition& c : state->rule.conditions) add(HeldOf(state->rule, c));
  }
  return all;
}

// --- Series ---

void Evaluator::Learn(const std::vector<Series>& series) {
  if (series.size() == series_.size()) return;
  const auto by_tags = [this](uint32_t column, const Tags& tags) {
    return series_[column].tags < tags;
  };
  for (size_t i = series_.size(); i < series.size(); ++i) {
    series_.push_back(series[i]);
    Columns& columns = columns_[series[i].metric.name];
    columns.all.push_back(static_cast<uint32_t>(i));
    std::vector<uint32_t>& sorted = columns.by_tags;
    sorted.insert(std::lower_bound(sorted.begin(), sorted.end(), series[i].tags, by_tags),
                  static_cast<uint32_t>(i));
  }
  for (const auto& state : rules_) Resolve(*state);
}

void Evaluator::Resolve(RuleState& state) {
  const Condition& first = state.rule.conditions.front();
  if (first.test == Test::kAbsent) {
    if (state.instances.empty()) state.instances.emplace_back();
  } else if (const auto at = columns_.find(state.sources.front()); at != columns_.end()) {
    const std::vector<uint32_t>& columns = at->second.all;
    for (; state.looked_at < columns.size(); ++state.looked_at) {
      const Series& series = series_[columns[state.looked_at]];
      if (!HasTags(series.tags, first.tags) || state.instances.size() == kMaxInstances) continue;
      state.instances.emplace_back().tags = series.tags;
    }
  }
  for (Instance& instance : state.instances) ResolveInstance(state, instance);
}

void Evaluator::ResolveInstance(const RuleState& state, Instance& instance) {
  instance.terms.resize(state.rule.conditions.size());
  for (size_t i = 0; i < instance.terms.size(); ++i) {
    const Condition& c = state.rule.conditions[i];
    Term& term = instance.terms[i];
    if (c.test == Test::kAbsent) {
      Watch(c, term);
      continue;
    }
    const bool derived = NeedOf(c).has_value();
    ResolveOperand(term.of, state.sources[i], c.tags, instance.tags);
    term.of.rate = c.rate && !derived && (term.of.counter || c.over.empty());
    if (!c.over.empty() && !derived) {
      ResolveOperand(term.over, c.over, {}, instance.tags);
      term.over.rate = c.rate && term.over.counter;
    }
    if (const std::optional<Derived> need = HeldOf(state.rule, c)) {
      Operand held;
      held.column = term.held;
      ResolveOperand(held, DerivedName(*need), c.tags, instance.tags);
      term.held = held.column;
    }
    if (c.in != 0 && term.trend == nullptr) term.trend = std::make_unique<Trend>();
    if (i != 0 || term.of.column == kNoColumn) continue;
    instance.unit = series_[term.of.column].metric.unit;
    if (derived) continue;
    if (!c.over.empty()) instance.unit = "ratio";
    if (c.rate && c.over.empty()) instance.unit += "/s";
    if (c.who == Who::kCount) instance.unit = "1";
  }
}

void Evaluator::Watch(const Condition& condition, Term& term) const {
  term.watched.clear();
  const auto at = columns_.find(condition.metric);
  if (at == columns_.end()) return;
  for (const uint32_t column : at->second.all) {
    if (HasTags(series_[column].tags, condition.tags)) term.watched.push_back(column);
  }
}

// The one with these tags, as most rules mean, or the first that agrees with them.
std::optional<uint32_t> Evaluator::ColumnFor(const Columns& columns, const Tags& tags,
                                             const Tags& alike) const {
  const auto at = std::lower_bound(
      columns.by_tags.begin(), columns.by_tags.end(), alike,
      [this](uint32_t column, const Tags& wanted) { return series_[column].tags < wanted; });
  if (at != columns.by_tags.end() && series_[*at].tags == alike && HasTags(alike, tags)) return *at;
  const auto agrees = [&](uint32_t column) {
    return HasTags(series_[column].tags, tags) && Agree(series_[column].tags, alike, tags);
  };
  const auto first = std::find_if(columns.all.begin(), columns.all.end(), agrees);
  return first == columns.all.end() ? std::nullopt : std::optional(*first);
}

void Evaluator::ResolveOperand(Operand& operand, const std::string& metric, const Tags& tags,
                               const Tags& alike) const {
  if (operand.column != kNoColumn) return;
  const auto at = columns_.find(metric);
  if (at == columns_.end()) return;
  const std::optional<uint32_t> column = ColumnFor(at->second, tags, alike);
  if (!column) return;
  operand.column = *column;
  operand.counter = series_[*column].metric.type != MetricType::kGauge;
  operand.reduction = series_[*column].metric.reduction;
}

// --- Values ---

// NaN if there is none at this tick, or no two that can be compared.
double Evaluator::Take(Operand& operand, Who who, const Row& row) {
  if (operand.column >= row.values->size()) return std::nan("");
  const Reduced& r = (*row.values)[operand.column];
  if (!(r.count > 0)) return std::nan("");
  double value = r.Value(operand.reduction);
  if (who == Who::kSum) value = r.sum;
  if (who == Who::kAvg) value = r.Mean();
  if (who == Who::kMin) value = r.min;
  if (who == Who::kMax) value = r.max;
  if (who == Who::kCount) value = r.count;
  if (!operand.rate) {
    // An amount with a missing part tells nothing.
    const bool amount = who == Who::kSum || who == Who::kCount ||
                        (who == Who::kStep && operand.reduction == Reduction::kSum);
    return amount && !row.complete ? std::nan("") : value;
  }
  const double change = value - std::exchange(operand.before, value);
  const double count = std::exchange(operand.before_count, r.count);
  const Nanos time = row.time - std::exchange(operand.before_time, row.time);
  // Other nodes, or a counter that began anew: the next rate begins at this value.
  if (count != r.count || (operand.counter && change < 0)) return std::nan("");
  return change / (static_cast<double>(time) * 1e-9);
}

// Deviations of the others: its own would hide it, in a step of few tasks always.
Evaluator::Holds Evaluator::Deviates(const Condition& c, Term& term, const Reduced& r) {
  if (!(r.count >= 3)) return Holds::kUnknown;
  const bool lags = c.test == Test::kLags;
  const double it = lags ? r.min : r.max;
  const double others = r.count - 1;
  const double mean = (r.sum - it) / others;
  const double variance = (r.sum_sq - it * it) / others - mean * mean;
  const double distance = lags ? mean - it : it - mean;
  term.value = it;
  term.owner = lags ? r.min_owner : r.max_owner;
  const bool far =
      distance > c.bound * std::sqrt(std::max(0.0, variance)) && distance > c.by * std::abs(mean);
  return far ? Holds::kYes : Holds::kNo;
}

Evaluator::Holds Evaluator::Look(const Condition& c, Term& term, const Row& row) const {
  const std::vector<Reduced>& values = *row.values;
  if (c.test == Test::kAbsent) {
    const bool there = std::any_of(term.watched.begin(), term.watched.end(), [&](uint32_t column) {
      return column < values.size() && values[column].count > 0;
    });
    return there ? Holds::kNo : Holds::kYes;
  }
  term.value = std::nan("");
  if (term.of.column >= values.size() || !(values[term.of.column].count > 0))
    return Holds::kUnknown;
  const Reduced& r = values[term.of.column];
  if (c.test == Test::kLags || c.test == Test::kLeads) return Deviates(c, term, r);
  const Who who = Statistic(c, r);
  double value = Take(term.of, who, row);
  if (term.over.column != kNoColumn) value /= Take(term.over, who, row);
  if (!std::isfinite(value)) return Holds::kUnknown;
  term.value = value;
  term.owner = OwnerOf(who, r);
  if (term.trend != nullptr) {
    term.trend->Add(row.time, value, term.owner);
    const std::optional<double> slope = term.trend->Slope();
    if (!slope) return Holds::kUnknown;
    value += *slope * static_cast<double>(c.in) * 1e-9;
  }
  return Compares(c.test, value, c.bound) ? Holds::kYes : Holds::kNo;
}

// --- Raising and ending ---

// Whether `any` has been one and the same owner all the time, as nodes tell; the alarm is then
// about that owner. Nodes tell nothing for rules beyond a limit: these do without.
bool Evaluator::HasHeld(const RuleState& state, Instance& instance, const Row& row) {
  constexpr double kRounding = 1e-6;
  const double wanted = static_cast<double>(state.rule.hold) / kSecond - kRounding;
  for (Term& term : instance.terms) {
    if (term.held == kNoColumn) continue;
    if (term.held >= row.values->size()) return false;
    const Reduced& held = (*row.values)[term.held];
    if (!(held.count > 0 && held.max >= wanted)) return false;
    term.owner = held.max_owner;
  }
  return true;
}

// With hysteresis a rule that is raised is over when its first condition does not hold with the
// other bound.
bool Evaluator::IsCalm(const RuleState& state, const Instance& instance, bool holds) {
  if (holds) return false;
  if (!state.rule.clear) return true;
  const Condition& first = state.rule.conditions.front();
  return !Compares(first.test, instance.terms.front().value, *state.rule.clear);
}

void Evaluator::Turn(const RuleState& state, Instance& instance, bool raised, Nanos time,
                     std::vector<Event>& events) {
  instance.raised = raised;
  instance.since = 0;
  Event& event = events.emplace_back();
  event.raised = raised;
  event.rule = state.rule.name;
  event.severity = state.rule.severity;
  event.tags = instance.tags;
  event.owner = instance.terms.front().owner;
  event.time = time;
  event.value = instance.terms.front().value;
  event.unit = instance.unit;
  for (size_t i = 0; i < instance.terms.size() && !event.left; ++i) {
    const Condition& c = state.rule.conditions[i];
    const Term& term = instance.terms[i];
    const std::optional<double> slope = term.trend ? term.trend->Slope() : std::nullopt;
    if (!slope || *slope == 0 || Rises(c.test) != (*slope > 0)) continue;
    const double seconds = std::max(0.0, (c.bound - term.value) / *slope);
    if (seconds < 1e6) event.left = static_cast<Nanos>(seconds * 1e9);
  }
  if (raised) {
    instance.raised_at = time;
    instance.text = Describe(state.rule, event);
  }
  event.text = instance.text;
}

void Evaluator::Step(const RuleState& state, Instance& instance, const Row& row,
                     std::vector<Event>& events) const {
  bool no = false, unknown = false;
  for (size_t i = 0; i < instance.terms.size(); ++i) {  // all terms: rates and trends go on
    const Holds holds = Look(state.rule.conditions[i], instance.terms[i], row);
    no = no || holds == Holds::kNo;
    unknown = unknown || holds == Holds::kUnknown;
  }
  if (unknown && !no) {
    if (instance.seen == 0 || row.time - instance.seen <= forget_) return;
    instance.since = 0;
    if (instance.raised) Turn(state, instance, false, row.time, events);
    return;
  }
  if (instance.seen != 0 && row.time - instance.seen > forget_) instance.since = 0;
  instance.seen = row.time;
  const Condition& first = state.rule.conditions.front();
  const bool same_one = first.test == Test::kLags || first.test == Test::kLeads;
  const bool holds = !no;
  const bool other = same_one && holds && instance.terms.front().owner != instance.held_by;
  if (other) instance.held_by = instance.terms.front().owner;
  const bool towards = instance.raised ? IsCalm(state, instance, holds) : holds;
  if (!towards) {
    instance.since = 0;
    return;
  }
  if (instance.since == 0 || (other && !instance.raised)) instance.since = row.time;
  const Nanos wanted = instance.raised ? state.rule.Calm() : state.rule.hold;
  if (row.time - instance.since < wanted) return;
  if (instance.raised || HasHeld(state, instance, row)) {
    Turn(state, instance, !instance.raised, row.time, events);
  }
}

void Evaluator::Evaluate(const std::vector<Series>& series, const Row& row,
                         std::vector<Event>& events) {
  if (row.time <= last_) return;
  last_ = row.time;
  Learn(series);
  for (const auto& state : rules_) {
    for (Instance& instance : state->instances) Step(*state, instance, row, events);
  }
}

Evaluator::State Evaluator::StateOf(const RuleState& state, const Instance& instance) const {
  State one;
  one.rule = state.rule;
  one.tags = instance.tags;
  one.raised = instance.raised;
  if (instance.raised) {
    one.since = instance.raised_at;
    one.text = instance.text;
  }
  one.value = instance.terms.front().value;
  one.owner = instance.terms.front().owner;
  one.unit = instance.unit;
  const uint32_t column = instance.terms.front().of.column;
  if (column == kNoColumn) return one;
  one.help = series_[column].metric.help;
  one.counter = series_[column].metric.type != MetricType::kGauge;
  return one;
}

bool Evaluator::NextStates(Place& place, size_t most, std::vector<State>& states) const {
  auto at = std::lower_bound(rules_.begin(), rules_.end(), place.rule,
                             [](const auto& state, uint64_t n) { return state->number < n; });
  for (; at != rules_.end(); ++at) {
    const RuleState& state = **at;
    if (state.number != place.rule) place = {state.number, 0};
    const size_t count = std::max<size_t>(state.instances.size(), 1);
    for (; place.instance < count; ++place.instance) {
      if (most-- == 0) return true;
      if (state.instances.empty()) {
        states.emplace_back().rule = state.rule;
      } else {
        states.push_back(StateOf(state, state.instances[place.instance]));
      }
    }
    place = {state.number + 1, 0};
  }
  return false;
}

std::vector<Evaluator::State> Evaluator::States() const {
  std::vector<State> all;
  Place place;
  NextStates(place, SIZE_MAX, all);
  return all;
}

}  // namespace sonde::alarms
