#include "insight/hints/step_hints.h"

#include <cmath>
#include <utility>

#include "insight/hints/rules.h"
#include "insight/hints/step_facts.h"
#include "profiles/archive/node_rows.h"
#include "profiles/json/writer.h"
#include "profiles/report/hints.h"

namespace sonde::insight {

Result<StepHints> HintsOfStep(const Archive& archive, const std::string& key,
                              const Profile& profile, const std::vector<NodeRow>& nodes,
                              const std::string& site_rules, Nanos now) {
  std::vector<std::string> directories;
  if (!site_rules.empty()) directories.push_back(site_rules);
  const auto rules = LoadHintRules(directories);
  if (!rules.ok()) return rules.status();
  auto facts = FactsOfStep(archive, key, profile, nodes, now);
  if (!facts.ok()) return facts.status();
  StepHints all{*std::move(facts), {}};
  all.hints = FindHints(*rules, all.facts);
  return all;
}

Result<StepHints> HintsOfStep(const Archive& archive, const std::string& key,
                              const Profile& profile, const std::string& site_rules, Nanos now) {
  const auto nodes = ReadNodeRows(archive, key, profile.job);
  if (!nodes.ok()) return nodes.status();
  return HintsOfStep(archive, key, profile, *nodes, site_rules, now);
}

std::string HintsToJson(const StepHints& all, const Profile& profile) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("step", profile.job.id.ToString()).Key("hints");
  WriteHints(json, ForReport(all.hints));
  json.Key("facts").BeginObject();
  for (const FactInfo& fact : FactList()) {
    if (fact.unit == "text") {
      if (!all.facts.Text(fact.name).empty()) json.Field(fact.name, all.facts.Text(fact.name));
    } else if (!std::isnan(all.facts.Number(fact.name))) {
      json.Field(fact.name, all.facts.Number(fact.name));
    }
  }
  json.EndObject().EndObject();
  return out + "\n";
}

}  // namespace sonde::insight
