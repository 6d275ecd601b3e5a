// Files of hints: the first byte tells whether the rest is a file, a formula or a text with names.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "insight/hints/hints.h"
#include "insight/hints/message.h"
#include "insight/hints/rules.h"

namespace {

using namespace sonde;
using namespace sonde::insight;

void ReadRules(std::string_view text) {
  const auto rules = ParseHintRules(text, "file");
  if (!rules.ok()) {
    if (rules.status().message().empty()) std::abort();
    return;
  }
  Facts facts;
  for (const FactInfo& fact : FactList()) {
    fact.unit == "text" ? facts.SetText(fact.name, "n1") : facts.Set(fact.name, 0.5);
  }
  for (const Hint& hint : FindHints(*rules, facts)) {
    if (!(hint.worth > 0 && hint.worth <= 1) || hint.says.empty()) std::abort();
  }
}

void ReadFormula(std::string_view text) {
  const auto formula = Formula::Parse(text, Formula::Kind::kCondition);
  if (!formula.ok()) return;
  const std::vector<double> values(formula->names().size(), 2);
  if (std::isinf(formula->Evaluate(values))) std::abort();
}

void ReadMessage(std::string_view text) {
  const auto message = Message::Parse(text);
  if (message.ok()) message->Fill([](const Message::Part& part) { return part.text; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'f') {
    ReadFormula(text);
  } else if (data[0] == 'm') {
    ReadMessage(text);
  } else {
    ReadRules(text);
  }
  return 0;
}
