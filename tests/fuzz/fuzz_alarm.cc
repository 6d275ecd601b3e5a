// Alarm rules, as people and programs write them, and what goes to the nodes for them: whatever a
// text holds is rules or an error, a rule's own text means the same rule, and it can be evaluated.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "series/alarm/evaluator.h"
#include "series/alarm/rule.h"
#include "series/alarm/text.h"

namespace {

using namespace sonde;

void Try(const alarms::Rule& rule) {
  const auto again = alarms::ParseRule(rule.name, alarms::ToText(rule));
  // Texts grow by quotes and by numbers in full.
  if (!again.ok() && alarms::ToText(rule).size() <= alarms::kMaxRuleText) std::abort();
  if (again.ok() && !(*again == rule)) std::abort();
  alarms::Evaluator evaluator(kSecond);
  if (!evaluator.Add(rule).ok()) std::abort();
  std::vector<Series> series(2);
  series[0].metric.name = rule.conditions[0].metric;
  series[0].tags = rule.conditions[0].tags;
  series[1].metric.name = "alarm:node:rate:x";
  std::vector<alarms::Event> events;
  for (int tick = 1; tick < 5; ++tick) {
    std::vector<Reduced> row(series.size());
    for (Reduced& r : row) r.Add(tick, {0, 0});
    evaluator.Evaluate(series, {tick * kSecond, &row, true}, events);
  }
  for (const alarms::Event& event : events) (void)alarms::Describe(rule, event);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto lines = alarms::ParseRules(text, "rules"); lines.ok()) {
    for (const auto& line : *lines) {
      if (line.rule) Try(*line.rule);
    }
  }
  std::string metric;
  Tags tags;
  (void)alarms::ParseSelector(text, metric, tags);
  if (const auto derived = alarms::DecodeDerived(text); derived.ok()) {
    std::string bytes;
    alarms::EncodeDerived(*derived, bytes);
    if (!alarms::DecodeDerived(bytes).ok()) std::abort();
  }
  return 0;
}
