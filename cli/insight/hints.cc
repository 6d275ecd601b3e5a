// sonde hints: what to change in a step, with the figures from which that is concluded.
#include "profiles/report/hints.h"

#include <fmt/core.h>

#include <memory>

#include "cli/command.h"
#include "cli/step/step_hints.h"
#include "cli/step/step_of.h"
#include "insight/hints/message.h"
#include "insight/hints/step_hints.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

using insight::Facts;
using text::Printable;

struct HintsOptions {
  std::string id;
  bool json = false;
  bool facts = false;
};

std::string FactText(const insight::FactInfo& fact, const Facts* facts) {
  if (facts == nullptr) return "";
  if (fact.unit == "text") return Printable(facts->Text(fact.name));
  return insight::InForm(facts->Number(fact.name), fact.unit, "");
}

// `facts`: nullptr: of no step.
std::string FactTable(const Facts* facts, const Environment& env) {
  using enum text::Table::Align;
  text::Table table({{"fact", kLeft}, {"value", kRight}, {"unit", kLeft}, {"of", kLeft}});
  for (const insight::FactInfo& fact : insight::FactList()) {
    const std::string value = FactText(fact, facts);
    if (facts != nullptr && value.empty()) continue;
    table.Row({std::string(fact.name), value, std::string(fact.unit), std::string(fact.meaning)});
  }
  return table.Render("", env.width);
}

int Hints(const HintsOptions& options, const Environment& env) {
  if (options.id.empty()) {
    if (options.facts) return Print(FactTable(nullptr, env));
    Note("which step? As in 123, 123.0 or 123_4.0");
    return kUsage;
  }
  return ShowFinished(
      options.id, env,
      [&](const Archive& archive, const FinishedStep& step) -> Result<std::string> {
        const auto all = insight::HintsOfStep(archive, step.key, step.profile, SiteHintRules(env),
                                              Clock::System().Now());
        if (!all.ok()) return all.status();
        if (options.json) return insight::HintsToJson(*all, step.profile);
        std::string out = TitleOf(step.profile) + "\n";
        out += all->hints.empty() ? "Nothing that was measured asks for a change.\n"
                                  : HintsText(insight::ForReport(all->hints), env.width);
        if (options.facts) out += "\n" + FactTable(&all->facts, env);
        return out;
      });
}

}  // namespace

void RegisterHints(Arguments app, Run& run) {
  const auto options = std::make_shared<HintsOptions>();
  Arguments sub = app.Command("hints", "Say what to change in a step, and why");
  sub.Option("JOB[.STEP]", options->id, "As in 123, 123.0 or 123_4.0; it must have ended");
  sub.Flag("--json", options->json, "As JSON, with all facts exactly");
  sub.Flag("--facts", options->facts, "Also what the rules can ask for; without a step the list");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Hints(*options, env); };
  });
}

}  // namespace sonde::cli
