// sonde alarms: the alarm rules of a running step, the alarms of a finished one, and the check of a
// file of rules.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "cli/command.h"
#include "cli/step/running_step.h"
#include "profiles/archive/listed_cards.h"
#include "profiles/json/parse.h"
#include "profiles/json/writer.h"
#include "profiles/model/summary.h"
#include "profiles/model/text.h"
#include "profiles/report/local_time.h"
#include "series/alarm/defaults.h"
#include "serve/head_client.h"

namespace sonde::cli {
namespace {

constexpr Nanos kTimeout = 5 * kSecond;
using enum text::Table::Align;

struct AlarmsOptions {
  std::string step;
  std::string name;
  std::vector<std::string> words;
  bool json = false;
  bool active = false;
};

std::string StepOf(const AlarmsOptions& options) {
  return options.step.empty() ? OwnStep() : options.step;
}

int NoStep() {
  Note("which step? Outside of a job its name is needed, as in 123 or 123.0");
  return kUsage;
}

std::string TextOf(const boost::json::object& object, std::string_view key) {
  const boost::json::value* value = object.if_contains(key);
  if (value == nullptr) return "";
  if (value->is_string()) return std::string(value->get_string());
  if (value->is_number()) return fmt::format("{}", value->to_number<double>());
  return "";
}

// The rules as the head of a running step reports them.
int PrintLive(const std::string& answer, const AlarmsOptions& options, const Environment& env) {
  if (options.json) return Print(answer + "\n");
  const Result<boost::json::value> value = ParseJson(answer, "the head's answer");
  if (!value.ok()) return Fail(value.status());
  text::Table table({{"alarm", kLeft},
                     {"", kLeft},
                     {"now", kRight},
                     {"on", kLeft},
                     {"rule, or what was raised", kLeft, true}});
  const boost::json::object* all = value->if_object();
  for (const auto& [target, list] : all == nullptr ? boost::json::object() : *all) {
    for (const boost::json::value& one :
         list.is_array() ? list.get_array() : boost::json::array()) {
      const boost::json::object* alarm = one.if_object();
      if (alarm == nullptr) continue;
      const bool active = alarm->contains("active") && alarm->at("active") == true;
      const std::string rank = TextOf(*alarm, "rank");
      std::string on = TextOf(*alarm, "node");
      if (!rank.empty()) on += " task " + rank;
      table.Row({text::Printable(TextOf(*alarm, "name")),
                 active ? TextOf(*alarm, "severity") : std::string(),
                 text::Printable(TextOf(*alarm, "value")), text::Printable(on),
                 text::Printable(TextOf(*alarm, active ? "text" : "rule"))});
    }
  }
  if (table.empty()) return Print(options.active ? "no alarm is raised\n" : "there are no rules\n");
  return Print(table.Render("", env.width));
}

// The alarms that a finished step raised.
int PrintRaised(const Profile& profile, const AlarmsOptions& options, const Environment& env) {
  const std::vector<RaisedAlarm>& alarms = profile.moments.alarms;
  if (options.json) {
    std::string out;
    JsonWriter json(out);
    json.BeginArray();
    for (const RaisedAlarm& alarm : alarms) {
      json.BeginObject().Field("name", alarm.rule).Field("severity", alarm.severity);
      json.Field("text", alarm.text).Field("raised", alarm.raised).Field("over", alarm.over);
      json.Field("value", alarm.value).Field("by", OwnerName(alarm.by, profile.job)).EndObject();
    }
    json.EndArray();
    return Print(out + "\n");
  }
  if (alarms.empty()) return Print("no alarm was raised\n");
  text::Table table({{"alarm", kLeft},
                     {"", kLeft},
                     {"raised", kLeft},
                     {"for", kRight},
                     {"on", kLeft},
                     {"", kLeft, true}});
  for (const RaisedAlarm& alarm : alarms) {
    table.Row({text::Printable(alarm.rule), text::Printable(alarm.severity),
               FormatLocalTime(alarm.raised),
               alarm.over == 0 ? "until the end" : FormatDuration(alarm.over - alarm.raised),
               text::Printable(OwnerName(alarm.by, profile.job)), text::Printable(alarm.text)});
  }
  return Print(table.Render("", env.width));
}

int List(const AlarmsOptions& options, const Environment& env) {
  const std::string id = StepOf(options);
  if (id.empty()) return NoStep();
  const auto archive = OpenArchive(env, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto found = FindSteps(*archive->reader, id);
  if (!found.ok()) return Fail(found.status());
  ProfileEntry entry = found->front();
  if (entry.running && entry.endpoint.port != 0) {
    const char* const target = options.active ? "/alarms" : "/alarms/list";
    const auto answer = AskRunning(*archive->reader, target, kTimeout, entry);
    if (answer.ok()) return PrintLive(*answer, options, env);
    if (entry.running) return Fail(answer.status());
  }
  const auto profile = archive->reader->Load(entry.key);
  return profile.ok() ? PrintRaised(*profile, options, env) : Fail(profile.status());
}

// Posts the request to the head, and prints `done` or the head's answer.
int Tell(const AlarmsOptions& options, const Environment& env, const std::string& path,
         const std::string& body, const std::string& done) {
  const std::string id = StepOf(options);
  if (id.empty()) return NoStep();
  const auto archive = OpenArchive(env, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto running = FindRunning(*archive->reader, id);
  if (!running.ok()) return Fail(running.status());
  const auto answer = serve::TellHead(running->endpoint, path, body, kTimeout);
  if (!answer.ok()) return Fail(answer.status());
  return Print(options.json ? *answer + "\n"
                            : fmt::format("{}: {}\n", running->job.id.ToString(), done));
}

int Add(const AlarmsOptions& options, const Environment& env) {
  const std::string rule = fmt::format("{}", fmt::join(options.words, " "));
  const Result<alarms::Rule> parsed = alarms::ParseRule(options.name, rule);
  if (!parsed.ok()) {
    Note(parsed.status().message());
    return kUsage;
  }
  std::string body;
  JsonWriter(body).BeginObject().Field("name", options.name).Field("rule", rule).EndObject();
  return Tell(options, env, "/alarms/add", body,
              fmt::format("alarm {} is watched: {}", options.name, ToText(*parsed)));
}

int Delete(const AlarmsOptions& options, const Environment& env) {
  std::string body;
  JsonWriter(body).BeginObject().Field("name", options.name).EndObject();
  return Tell(options, env, "/alarms/del", body,
              fmt::format("alarm {} is not watched any more", options.name));
}

int Check(const AlarmsOptions& options) {
  std::ifstream file(options.name);
  if (!file) return Fail(SystemError("open " + options.name));
  std::stringstream text;
  text << file.rdbuf();
  const auto lines = alarms::ParseRules(text.str(), options.name);
  if (!lines.ok()) {
    Note(lines.status().message());
    return kFailed;
  }
  std::string out;
  JsonWriter json(out);
  if (options.json) json.BeginArray();
  for (const alarms::RuleLine& line : *lines) {
    const std::string rule = line.rule ? ToText(*line.rule) : "off";
    if (options.json) {
      json.BeginObject().Field("name", line.name).Field("rule", rule).EndObject();
    } else {
      out += fmt::format("{}: {}\n", text::Printable(line.name), text::Printable(rule));
    }
  }
  if (options.json) json.EndArray();
  return Print(options.json ? out + "\n" : out);
}

template <typename F>
void On(const Arguments& sub, Run& run, F f) {
  sub.OnRead([&run, f] { run = f; });
}

}  // namespace

void RegisterAlarms(Arguments app, Run& run) {
  const auto options = std::make_shared<AlarmsOptions>();
  Arguments alarms = app.Command("alarms", "Rules that raise alarms, and what they raised");
  alarms.RequireCommand();
  alarms.PassOn();  // options may also be given behind the subcommand
  alarms.Flag("--json", options->json, "As JSON");
  alarms.Flag("--active", options->active, "Of a running step only what is raised now");
  alarms.Option("--step", options->step,
                "JOB[.STEP], as in 123 or 123.0; in a job the default is its own step");
  Arguments list = alarms.Command("list", "A running step's rules, or what a finished one raised");
  list.Option("JOB[.STEP]", options->step, "In a job the default is its own step");
  On(list, run, [options](const Environment& env) { return List(*options, env); });
  Arguments add = alarms.Command("add", "Have a running step watch another rule");
  add.Option("NAME", options->name, "What it is called").Required();
  add.Option("RULE", options->words, "As in 'heat_residual max > 10 for 3s'").Required();
  On(add, run, [options](const Environment& env) { return Add(*options, env); });
  Arguments del = alarms.Command("del", "Have a running step forget a rule");
  del.Option("NAME", options->name, "The rule's name").Required();
  On(del, run, [options](const Environment& env) { return Delete(*options, env); });
  Arguments check =
      alarms.Command("check", "Read a file of rules and print them, or its first mistake");
  check.Option("FILE", options->name, "The file").Required();
  On(check, run, [options](const Environment&) { return Check(*options); });
  Arguments defaults = alarms.Command("defaults", "Print the rules that are built in");
  On(defaults, run, [](const Environment&) { return Print(sonde::alarms::DefaultRulesText()); });
  alarms.PassOnFromAll();
}

}  // namespace sonde::cli
