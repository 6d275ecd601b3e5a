#include "insight/hints/hints.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace sonde::insight {
namespace {

// A rule over the facts of one step.
class Judged {
 public:
  Judged(const HintRule& rule, const Facts& facts) : rule_(rule), facts_(facts) {
    for (const auto& [name, formula] : rule.lets) lets_[name] = Value(formula);
  }

  std::optional<Hint> Find() const {
    if (Value(rule_.when) != 1) return std::nullopt;
    const double worth = Value(rule_.worth);
    Hint hint{rule_.name,       rule_.kind,      std::clamp(worth, 0.0, 1.0),
              Fill(rule_.says), Fill(rule_.why), Fill(rule_.change)};
    if (!(worth > 0) || hint.says.empty() || hint.why.empty() || hint.change.empty()) {
      return std::nullopt;
    }
    return hint;
  }

 private:
  double Number(std::string_view name) const {
    const auto let = lets_.find(name);
    return let != lets_.end() ? let->second : facts_.Number(name);
  }
  double Value(const Formula& formula) const {
    std::vector<double> values;
    for (const std::string& name : formula.names()) values.push_back(Number(name));
    return formula.Evaluate(values);
  }
  std::string UnitOf(const std::string& name) const {
    if (const FactInfo* fact = FindFact(name)) return std::string(fact->unit);
    const auto unit = rule_.units.find(name);
    return unit == rule_.units.end() ? "1" : unit->second;
  }
  std::string Fill(const Message& message) const {
    return message.Fill([this](const Message::Part& part) {
      const std::string unit = UnitOf(part.text);
      if (unit == "text") return std::string(facts_.Text(part.text));
      return InForm(Number(part.text), unit, part.form);
    });
  }

  const HintRule& rule_;
  const Facts& facts_;
  std::map<std::string, double, std::less<>> lets_;
};

}  // namespace

std::vector<Hint> FindHints(std::span<const HintRule> rules, const Facts& facts, size_t most) {
  std::vector<Hint> hints;
  for (const HintRule& rule : rules) {
    if (auto hint = Judged(rule, facts).Find()) hints.push_back(*std::move(hint));
  }
  std::stable_sort(hints.begin(), hints.end(), [](const Hint& a, const Hint& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.worth > b.worth;
  });
  const auto limits = std::count_if(hints.begin(), hints.end(),
                                    [](const Hint& one) { return one.kind == HintKind::kLimit; });
  if (limits > 1) hints.resize(hints.size() - static_cast<size_t>(limits) + 1);
  if (hints.size() > most) hints.resize(most);
  return hints;
}

std::vector<ReportHint> ForReport(const std::vector<Hint>& hints) {
  std::vector<ReportHint> out;
  out.reserve(hints.size());
  for (const Hint& hint : hints) {
    out.push_back(
        {hint.name, hint.kind == HintKind::kLimit, hint.worth, hint.says, hint.why, hint.change});
  }
  return out;
}

}  // namespace sonde::insight
