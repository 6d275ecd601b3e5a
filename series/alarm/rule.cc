#include "series/alarm/rule.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/bytes.h"

namespace sonde::alarms {
namespace {

constexpr std::array<std::string_view, 3> kSeverities = {"info", "warning", "critical"};
constexpr std::array<std::string_view, 9> kTests = {">",  ">=",     "<",    "<=",   "=",
                                                    "!=", "absent", "lags", "leads"};
constexpr std::array<std::string_view, 8> kWho = {"",    "sum",   "avg", "min",
                                                  "max", "count", "any", "all"};

std::string Time(Nanos time) {
  for (const auto& [unit, name] : {std::pair(3600 * kSecond, "h"), std::pair(60 * kSecond, "m"),
                                   std::pair(kSecond, "s"), std::pair(kMillisecond, "ms")}) {
    if (time % unit == 0) return fmt::format("{}{}", time / unit, name);
  }
  return fmt::format("{}.{:09}s", time / kSecond, time % kSecond);
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string Selector(const std::string& metric, const Tags& tags) {
  std::string out = metric;
  for (const auto& [key, value] : tags.pairs()) {
    out += fmt::format("{}{}={}", out.size() == metric.size() ? '{' : ',', key, Quoted(value));
  }
  return tags.empty() ? out : out + '}';
}

bool OfEach(const Condition& c) {
  return c.who == Who::kAny || c.who == Who::kAll || c.who == Who::kMin || c.who == Who::kMax ||
         c.test == Test::kLags || c.test == Test::kLeads;
}

}  // namespace

std::string_view ToString(Severity severity) { return kSeverities[static_cast<size_t>(severity)]; }
std::string_view ToString(Test test) { return kTests[static_cast<size_t>(test)]; }

bool Compares(Test test, double value, double bound) {
  switch (test) {
    case Test::kGreater:
      return value > bound;
    case Test::kGreaterEqual:
      return value >= bound;
    case Test::kLess:
      return value < bound;
    case Test::kLessEqual:
      return value <= bound;
    case Test::kEqual:
      return value == bound;
    case Test::kNotEqual:
      return value != bound;
    default:
      return false;
  }
}

std::string DerivedName(const Derived& derived) {
  std::string name = derived.per_node ? "alarm:node:" : "alarm:";
  if (derived.held != Test::kAbsent) {
    static constexpr std::array<std::string_view, 6> kNames = {"gt", "ge", "lt", "le", "eq", "ne"};
    name += fmt::format("held:{}{:x}:", kNames[static_cast<size_t>(derived.held)],
                        std::bit_cast<uint64_t>(derived.bound));
  }
  if (derived.rate) name += "rate:";
  name += derived.metric;
  if (!derived.over.empty()) name += ":per:" + derived.over;
  return name;
}

bool IsOfOneNode(const Condition& c) { return c.tags.Find(kHostTag) != nullptr; }

std::optional<Derived> NeedOf(const Condition& c) {
  if (!OfEach(c) || (!c.rate && c.over.empty() && !c.per_node)) return std::nullopt;
  return Derived{c.metric, c.tags, c.over, c.per_node, c.rate};
}

std::optional<Derived> HeldOf(const Rule& rule, const Condition& c) {
  if (rule.hold == 0 || c.who != Who::kAny || c.in != 0 || c.test >= Test::kAbsent) {
    return std::nullopt;
  }
  Derived held{c.metric, c.tags, c.over, c.per_node, c.rate, c.test, c.bound};
  if (DerivedName(held).size() > kMaxNameLength) return std::nullopt;
  return held;
}

// The bytes for the nodes: count, then flags (1 rate, 2 per node, 4 held), metric, divisor, tags,
// and with flag 4 the test and the bound.
void EncodeDerived(const std::vector<Derived>& all, std::string& out) {
  ByteWriter w(out);
  w.Varint(all.size());
  for (const Derived& one : all) {
    w.Fixed<uint8_t>(static_cast<uint8_t>((one.rate ? 1 : 0) | (one.per_node ? 2 : 0) |
                                          (one.held != Test::kAbsent ? 4 : 0)));
    w.Text(one.metric);
    w.Text(one.over);
    w.Varint(one.tags.pairs().size());
    for (const auto& [key, value] : one.tags.pairs()) {
      w.Text(key);
      w.Text(value);
    }
    if (one.held == Test::kAbsent) continue;
    w.Fixed(static_cast<uint8_t>(one.held));
    w.Fixed(one.bound);
  }
}

Result<std::vector<Derived>> DecodeDerived(std::string_view bytes) {
  const Status bad(Code::kCorrupt, "series to be derived: not as they are sent");
  ByteReader r(bytes);
  std::vector<Derived> all(r.Count(4, kMaxDerived));
  for (Derived& one : all) {
    const auto flags = r.Fixed<uint8_t>();
    one.rate = (flags & 1) != 0;
    one.per_node = (flags & 2) != 0;
    one.metric = r.Text(kMaxNameLength);
    one.over = r.Text(kMaxNameLength);
    if (!r.ok() || flags > 7 || !names::IsMetricName(one.metric)) return bad;
    if (!one.over.empty() && !names::IsMetricName(one.over)) return bad;
    for (size_t tags = r.Count(2, kMaxTags); tags > 0; --tags) {
      const std::string_view key = r.Text(kMaxNameLength);
      const std::string_view value = r.Text(kMaxNameLength);
      if (!r.ok() || !CheckTag(key, value).ok()) return bad;
      one.tags.Set(key, value);
    }
    if ((flags & 4) != 0) {
      const auto held = r.Fixed<uint8_t>();
      one.bound = r.Fixed<double>();
      if (held >= static_cast<uint8_t>(Test::kAbsent) || !std::isfinite(one.bound)) return bad;
      one.held = static_cast<Test>(held);
    }
    if (DerivedName(one).size() > kMaxNameLength) return bad;
  }
  if (!r.done()) return bad;
  return all;
}

std::string ToText(const Condition& c) {
  std::string text = Selector(c.metric, c.tags);
  if (!c.over.empty()) text += " / " + c.over;
  const bool aggregates = c.who != Who::kStep && !IsOfOneNode(c);
  if (aggregates) text += fmt::format(" {}", kWho[static_cast<size_t>(c.who)]);
  if (aggregates && c.per_node) text += c.who == Who::kAll ? " nodes" : " node";
  if (c.rate) text += " rate";
  text += fmt::format(" {}", ToString(c.test));
  if (c.test != Test::kAbsent) text += fmt::format(" {}", c.bound);
  if ((c.test == Test::kLags || c.test == Test::kLeads) && c.by != kDefaultBy) {
    text += fmt::format(" by {}", c.by);
  }
  if (c.in != 0) text += " in " + Time(c.in);
  return text;
}

std::string ToText(const Rule& rule) {
  std::string text;
  for (const Condition& c : rule.conditions) text += (text.empty() ? "" : " and ") + ToText(c);
  if (rule.hold != 0) text += " for " + Time(rule.hold);
  if (rule.clear) text += fmt::format(" clear {}", *rule.clear);
  if (rule.calm) text += " calm " + Time(*rule.calm);
  if (rule.severity != Severity::kWarning) text += fmt::format(" {}", ToString(rule.severity));
  if (!rule.message.empty()) text += " message " + Quoted(rule.message);
  return text;
}

std::string ToText(const RuleLine& line) {
  return line.name + ": " + (line.rule ? ToText(*line.rule) : "off");
}

void Apply(const std::vector<RuleLine>& lines, std::vector<Rule>& rules) {
  for (const RuleLine& line : lines) {
    const auto at = std::find_if(rules.begin(), rules.end(),
                                 [&](const Rule& rule) { return rule.name == line.name; });
    if (at == rules.end()) {
      if (line.rule) rules.push_back(*line.rule);
    } else if (line.rule) {
      *at = *line.rule;
    } else {
      rules.erase(at);
    }
  }
}

}  // namespace sonde::alarms
