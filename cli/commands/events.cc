// sonde events: the names for --telemetry-events on this machine, and the events counted anyway.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "cli/command.h"
#include "core/text/ascii.h"
#include "daemon/collect/counters/event_plan.h"
#include "daemon/collect/counters/pfm_library.h"
#include "daemon/collect/counters/probe.h"
#include "daemon/collect/counters/vocabulary.h"
#include "profiles/json/writer.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

using collect::EventPlan;
using collect::PfmEvent;
using collect::PlannedEvent;

struct EventsOptions {
  std::string pattern;
  bool json = false;
};

// Matches anywhere, whatever the case; '*' stands for anything.
bool Matches(std::string_view text, std::string_view pattern) {
  const std::string where = Lower(text);
  const std::string wanted = Lower(pattern);
  size_t at = 0;
  for (std::string_view rest = wanted; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('*'));
    at = where.find(part, at);
    if (at == std::string::npos) return false;
    at += part.size();
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  return true;
}

EventPlan Plan(const Environment& env, std::vector<std::string>& notes) {
  collect::EventChoice choice;
  if (const size_t slash = env.config_path.rfind('/'); slash != std::string::npos) {
    choice.site_sets = env.config_path.substr(0, slash) + "/events";
  }
  return PlanEvents(choice, notes);
}

// The events that the machine counts by default, by group; for others the reason why not.
std::string DefaultAsText(const EventPlan& plan, const Environment& env) {
  using enum text::Table::Align;
  text::Table table(
      {{"group", kLeft, true}, {"name", kLeft, true}, {"libpfm4", kLeft, true}, {"here", kLeft}});
  std::map<std::string, std::string> reasons;
  for (const PlannedEvent& event : plan.events) {
    const Status status = collect::TryEvent(event.request);
    if (!status.ok()) reasons[std::string(status.message())] += " " + event.name;
    table.Row({plan.groups[event.group], event.name, event.text, status.ok() ? "yes" : "no"});
  }
  std::string out = fmt::format(
      "Counted from level 3 on, unless --telemetry-events names others (event set: {}):\n\n{}",
      plan.set, table.Render("  ", env.width));
  for (const auto& [reason, events] : reasons) {
    out += fmt::format("\nNot counted here:{}: {}\n", events, reason);
  }
  if (!plan.formulas.empty()) out += "\nDerived from them, for each task:\n\n";
  for (const collect::PlannedFormula& formula : plan.formulas) {
    out += fmt::format("  {} = {}\n", formula.metric.name, formula.formula.text());
  }
  return out;
}

std::string DefaultAsJson(const EventPlan& plan) {
  std::string out;
  JsonWriter w(out);
  w.BeginObject().Field("set", plan.set).Key("events").BeginArray();
  for (const PlannedEvent& event : plan.events) {
    const Status status = collect::TryEvent(event.request);
    w.BeginObject().Field("group", plan.groups[event.group]).Field("name", event.name);
    w.Field("event", event.text).Field("metric", event.metric.name);
    w.Field("available", status.ok()).Field("reason", std::string(status.message())).EndObject();
  }
  w.EndArray().Key("derived").BeginArray();
  for (const collect::PlannedFormula& formula : plan.formulas) {
    w.BeginObject().Field("metric", formula.metric.name);
    w.Field("formula", formula.formula.text()).EndObject();
  }
  w.EndArray().EndObject();
  return out + "\n";
}

int ShowDefault(const EventsOptions& options, const Environment& env) {
  std::vector<std::string> notes;
  const EventPlan plan = Plan(env, notes);
  for (const std::string& note : notes) Note(note);
  if (options.json) return Print(DefaultAsJson(plan));
  std::map<std::string, size_t> listed;
  const Status status =
      collect::PfmLibrary().ForEach([&](const PfmEvent& event) { ++listed[event.pmu]; });
  std::string out = DefaultAsText(plan, env);
  if (status.ok()) {
    out += "\nlibpfm4 knows of this machine:";
    for (const auto& [pmu, count] : listed) out += fmt::format(" {} events of {},", count, pmu);
    out.back() = ';';
    out += "\n'sonde events PATTERN' lists those that match, 'sonde events \"*\"' all.\n";
  }
  return Print(out);
}

int ShowMatching(const EventsOptions& options, const Environment& env) {
  std::string json;
  JsonWriter w(json);
  w.BeginArray();
  std::string out;
  size_t count = 0;
  const auto line = [&](const std::string& name, const std::string& about) {
    ++count;
    w.BeginObject().Field("event", name).Field("about", about).EndObject();
    constexpr size_t kNameWidth = 44;
    const size_t left = std::max<size_t>(env.width, kNameWidth + 20) - kNameWidth - 1;
    out += fmt::format("{:<{}} {}\n", text::Printable(name), kNameWidth,
                       text::Printable(about).substr(0, left));
  };
  const Status status = collect::PfmLibrary().ForEach([&](const PfmEvent& event) {
    const std::string name = event.pmu + "::" + event.name;
    const bool all = Matches(name + " " + event.about, options.pattern);
    if (all) line(name, event.about);
    for (const PfmEvent::Mask& mask : event.masks) {
      const std::string full = name + ":" + mask.name;
      if (all || Matches(full + " " + mask.about, options.pattern)) line(full, mask.about);
    }
  });
  w.EndArray();
  if (!status.ok()) return Fail(status);
  if (options.json) return Print(json + "\n");
  if (count == 0) {
    return Fail({Code::kNotFound, fmt::format("no event matches '{}'; 'sonde events' tells what "
                                              "is counted by default",
                                              options.pattern)});
  }
  return Print(out);
}

}  // namespace

void RegisterEvents(Arguments app, Run& run) {
  auto options = std::make_shared<EventsOptions>();
  Arguments sub = app.Command("events", "List the events this machine can count");
  sub.Option("PATTERN", options->pattern,
             "Those whose name or description has it; '*' stands for anything. Without it: "
             "what is counted by default");
  sub.Flag("--json", options->json, "As JSON");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) {
      return options->pattern.empty() ? ShowDefault(*options, env) : ShowMatching(*options, env);
    };
  });
}

}  // namespace sonde::cli
