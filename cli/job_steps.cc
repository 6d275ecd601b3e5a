#include "cli/job_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "cli/step_table.h"
#include "profiles/archive/listed_cards.h"
#include "profiles/json/writer.h"
#include "profiles/model/summary.h"
#include "profiles/model/text.h"
#include "profiles/report/report.h"
#include "profiles/select/select.h"

namespace sonde::cli {
namespace {

// The totals of all steps.
struct Totals {
  std::map<std::string_view, size_t> states;
  Nanos first = std::numeric_limits<Nanos>::max();
  Nanos last = 0;
  double cpu = std::numeric_limits<double>::quiet_NaN();
  double memory = std::numeric_limits<double>::quiet_NaN();
  double energy = std::numeric_limits<double>::quiet_NaN();
};

Totals TotalsOf(const std::vector<ListedProfile>& steps, Nanos now) {
  Totals totals;
  const auto add = [](double& sum, double value) {
    if (!std::isnan(value)) sum = std::isnan(sum) ? value : sum + value;
  };
  ForEachCard(steps, [&](const ListedProfile& step, const JobStep&, const Card& card) {
    ++totals.states[ToString(card.state)];
    totals.first = std::min(totals.first, step.start);
    totals.last = std::max(totals.last, card.end != 0 ? card.end : now);
    add(totals.cpu, card.Number(CardNumber::kCpu));
    add(totals.energy, card.Number(CardNumber::kEnergy));
    totals.memory = std::fmax(totals.memory, card.Number(CardNumber::kMemoryPeak));
  });
  return totals;
}

}  // namespace

std::string JobText(const std::string& job, const std::vector<ListedProfile>& steps,
                    const Environment& env, Nanos now) {
  const Totals totals = TotalsOf(steps, now);
  std::vector<std::string> states;
  for (const auto& [state, count] : totals.states)
    states.push_back(fmt::format("{} {}", count, state));
  std::string out = fmt::format("Job {}: {} steps ({}), {} from the first to the last",
                                text::Printable(job), steps.size(), fmt::join(states, ", "),
                                FormatDuration(totals.last - totals.first));
  if (!std::isnan(totals.cpu)) out += ", CPU time " + text::Value(totals.cpu, "seconds");
  if (!std::isnan(totals.memory)) out += ", memory up to " + text::Bytes(totals.memory);
  if (!std::isnan(totals.energy)) out += ", " + text::Value(totals.energy, "joules");
  return out + "\n" + StepTable(steps, SortBy::kStart, env, now) + "\n";
}

std::string JobToJson(const std::vector<ListedProfile>& steps, Nanos now) {
  std::string out;
  JsonWriter w(out);
  w.BeginArray();
  ForEachCard(steps, [&](const ListedProfile& step, const JobStep& id, const Card& card) {
    w.BeginObject().Field("key", step.key).Field("job", id.job);
    w.Field("step", id.step).Field("state", ToString(card.state));
    w.Field("start", step.start).Field("end", card.end).Field("nodes", card.nodes);
    w.Key("summary").Raw(SummaryToJson(SummaryOfCard(card, step.start, now))).EndObject();
  });
  w.EndArray();
  return out;
}

}  // namespace sonde::cli
