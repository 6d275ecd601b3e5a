#include "daemon/head/alarms/alarms.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "core/log.h"
#include "core/text/remark.h"
#include "profiles/json/writer.h"
#include "profiles/model/summary.h"
#include "series/alarm/defaults.h"

namespace sonde::head {
namespace {

// After how long without a row there is something to say, and how often we look for that.
Nanos RowPatience(Nanos period) { return std::max(3 * period, 3 * kSecond); }
Nanos WatchEvery(Nanos period) { return std::max(period, 2 * kSecond); }

Series MissingSeries() {
  Series series;
  series.metric.name = alarms::kNodeMissing;
  series.metric.unit = "1";
  series.metric.reduction = Reduction::kSum;
  series.metric.help = "1 for each node whose sample is missing.";
  return series;
}

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return SystemError("open " + path);
  std::string text(alarms::kMaxFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > alarms::kMaxFile) {
    return Status(Code::kLimit,
                  fmt::format("{}: rules have at most {} bytes", path, alarms::kMaxFile));
  }
  return text;
}

}  // namespace

Alarms::Alarms(Loop& loop, const Clock& clock, StepRecord& record, const LaunchMessage& launch,
               const Config& config, std::string_view changes, Owner& owner)
    : loop_(loop),
      clock_(clock),
      record_(record),
      owner_(owner),
      id_(launch.job.id),
      period_(launch.job.period),
      enabled_(config.alarms),
      actions_(loop, config.alarm_command, config.alarm_webhook,
               [&record](std::string note) { record.AddNote(std::move(note)); }),
      nodes_(launch.job.period),
      series_{MissingSeries()},
      evaluator_(launch.job.period) {
  if (enabled_) Load(launch, config, changes);
  alarms::EncodeDerived(evaluator_.Needs(), needs_);
}

Alarms::~Alarms() { loop_.Cancel(watch_timer_); }

// --- Rules ---

void Alarms::Load(const LaunchMessage& launch, const Config& config, std::string_view changes) {
  std::vector<alarms::Rule> rules = alarms::DefaultRules();
  if (!config.alarm_rules.empty()) TakeFile(config.alarm_rules, rules);
  for (const auto& [name, text] : config.alarm_lines) {
    const Result<alarms::RuleLine> line = alarms::ParseRuleLine(name, text);
    if (line.ok()) {
      alarms::Apply({*line}, rules);
    } else {
      record_.AddNote(
          fmt::format("sonde.conf: {}; this alarm is left out", line.status().message()));
    }
  }
  if (!launch.alarms.empty()) {
    const bool absolute = launch.alarms.front() == '/';
    TakeFile(absolute ? launch.alarms : launch.job.workdir + "/" + launch.alarms, rules);
  }
  for (const alarms::Rule& rule : rules) names_.insert(rule.name);
  auto changed = alarms::ParseRules(changes, "the head before");
  if (changed.ok()) {
    alarms::Apply(*changed, rules);
    changes_ = *std::move(changed);
  } else {
    record_.AddNote(std::string(changed.status().message()));
  }
  for (alarms::Rule& rule : rules) {
    if (const Status status = evaluator_.Add(std::move(rule)); !status.ok()) {
      record_.AddNote(std::string(status.message()));
    }
  }
}

void Alarms::TakeFile(const std::string& path, std::vector<alarms::Rule>& rules) {
  const Result<std::string> text = ReadFile(path);
  const Result<std::vector<alarms::RuleLine>> lines =
      text.ok() ? alarms::ParseRules(*text, path) : text.status();
  if (lines.ok()) return alarms::Apply(*lines, rules);
  record_.AddNote(fmt::format("{}; no alarm of this file is watched", lines.status().message()));
}

std::vector<alarms::Evaluator::State> Alarms::List() const {
  // A few at a time: the next row waits for no more.
  constexpr size_t kAtOnce = 16;
  std::vector<alarms::Evaluator::State> states;
  std::vector<alarms::Evaluator::State> few;
  alarms::Evaluator::Place place;
  for (bool more = true; more;) {
    few.reserve(kAtOnce);
    {
      const std::lock_guard lock(mutex_);
      more = evaluator_.NextStates(place, kAtOnce, few);
    }
    std::move(few.begin(), few.end(), std::back_inserter(states));
    few.clear();
  }
  return states;
}

Status Alarms::Add(alarms::Rule rule) {
  if (!enabled_) {
    return {Code::kUnsupported, "alarms are switched off here (alarms = no in sonde.conf)"};
  }
  {
    const std::lock_guard lock(mutex_);
    if (const alarms::Rule* known = evaluator_.Find(rule.name);
        known != nullptr && *known == rule) {
      return {};  // as when every task of a step adds it
    }
    SONDE_RETURN_IF_ERROR(evaluator_.Add(rule));
    const std::string name = rule.name;
    Note({name, std::move(rule)});
  }
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) OnChange();
  });
  return {};
}

Status Alarms::Remove(std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    if (!evaluator_.Remove(name)) {
      return {Code::kNotFound, fmt::format("there is no alarm '{}'", name)};
    }
    Note({std::string(name), {}});
  }
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_), rule = std::string(name)] {
    if (alive.expired()) return;
    record_.EndAlarms(rule, clock_.Now());
    OnChange();
  });
  return {};
}

std::string Alarms::Changes() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const alarms::RuleLine& line : changes_) text += ToText(line) + "\n";
  return text;
}

// Of several changes of a rule the last one counts; one that came and went was never there.
void Alarms::Note(alarms::RuleLine change) {
  std::erase_if(changes_, [&](const alarms::RuleLine& line) { return line.name == change.name; });
  if (change.rule || names_.contains(change.name)) changes_.push_back(std::move(change));
}

void Alarms::OnChange() {
  TellNeeds();
  owner_.OnAlarmsChanged();
}

void Alarms::TellNeeds() {
  std::string needs;
  {
    const std::lock_guard lock(mutex_);
    alarms::EncodeDerived(evaluator_.Needs(), needs);
  }
  if (needs == needs_) return;
  needs_ = std::move(needs);
  owner_.Derive(needs_);
}

// --- Nodes and rows ---

std::string Alarms::OnNode(uint32_t index) {
  nodes_.OnNode(index, clock_.Now());
  last_row_ = Clock::System().Monotonic();
  if (enabled_ && watch_timer_ == 0 && !finished_) ScheduleWatch();
  return enabled_ ? needs_ : std::string();
}

// Rows may stop altogether: then no row would say that nodes are missing.
void Alarms::ScheduleWatch() {
  watch_timer_ = loop_.After(WatchEvery(period_), [this] {
    watch_timer_ = 0;
    if (finished_) return;
    if (nodes_.present() == 0) return;  // until another node comes
    const Nanos now = Clock::System().Monotonic();
    if (now - last_row_ > RowPatience(period_)) {
      values_.assign(series_.size(), Reduced());
      const Nanos tick = clock_.Now();
      values_.front() = nodes_.OfNoRow(tick);
      Evaluate(tick, false);
    }
    ScheduleWatch();
  });
}

void Alarms::OnRow(const tree::TickMerger::Row& row, const std::vector<Series>& series) {
  if (!enabled_ || finished_) return;
  last_row_ = Clock::System().Monotonic();
  for (size_t i = series_.size() - 1; i < series.size(); ++i) series_.push_back(series[i]);
  values_.assign(1, nodes_.OfRow(row.tick, row.nodes));
  values_.insert(values_.end(), row.values.begin(), row.values.end());
  const bool complete = !(values_.front().max > 0);
  Evaluate(row.tick, complete);
}

void Alarms::Evaluate(Nanos tick, bool complete) {
  std::vector<alarms::Event> events;
  {
    const std::lock_guard lock(mutex_);
    evaluator_.Evaluate(series_, {tick, &values_, complete}, events);
  }
  for (const alarms::Event& event : events) OnEvent(event);
}

void Alarms::Finish() {
  finished_ = true;
  loop_.Cancel(std::exchange(watch_timer_, 0));
}

// --- Whom to tell ---

void Alarms::OnEvent(const alarms::Event& event) {
  if (event.raised) {
    record_.AddAlarm({event.rule, std::string(ToString(event.severity)), event.text, event.tags,
                      event.time, 0, event.value, event.owner});
  } else {
    record_.EndAlarm(event.rule, event.tags, event.time);
  }
  log::Warning("alarm {} {}: {}", event.rule, event.raised ? "raised" : "over", event.text);
  Remark(event);
  Act(event);
}

// On every plot, at its time, between what the application remarked.
void Alarms::Remark(const alarms::Event& event) {
  std::string said = fmt::format("alarm {}", event.rule);
  if (event.owner.node != sonde::Owner::kNobody) {
    said += ", " + OwnerName(event.owner, *record_.Job());
  }
  said += event.raised ? ": " + event.text : std::string(" is over");
  char plain[kMaxRemarkLength + 1];
  collect::Moments moments;
  Annotation& annotation = moments.annotations.emplace_back();
  annotation.text.assign(plain, MakeRemark(said, plain));
  annotation.first = annotation.last = event.time;
  annotation.node = event.owner.node == sonde::Owner::kNobody ? 0 : event.owner.node;
  annotation.task = event.owner.rank == sonde::Owner::kNobody ? 0 : event.owner.rank;
  owner_.Remark(moments);
}

void Alarms::Act(const alarms::Event& event) {
  const std::string host = record_.Host(event.owner.node);
  const std::string rank =
      event.owner.rank == sonde::Owner::kNobody ? "" : std::to_string(event.owner.rank);
  const std::string_view state = event.raised ? "raised" : "over";
  AlarmActions::Message message;
  JsonWriter json(message.json);
  json.BeginObject().Field("alarm", event.rule).Field("state", state);
  json.Field("severity", ToString(event.severity)).Field("job", id_.ToString());
  json.Field("text", event.text).Field("value", event.value).Field("unit", event.unit);
  json.Field("time", FormatTime(event.time)).Key("tags").BeginObject();
  for (const auto& [key, value] : event.tags.pairs()) json.Field(key, value);
  json.EndObject();
  if (!host.empty()) json.Field("node", host);
  if (!rank.empty()) json.Field("rank", event.owner.rank);
  json.EndObject();
  message.variables = {{"SONDE_ALARM", event.rule},
                       {"SONDE_ALARM_STATE", std::string(state)},
                       {"SONDE_ALARM_SEVERITY", std::string(ToString(event.severity))},
                       {"SONDE_ALARM_TEXT", event.text},
                       {"SONDE_ALARM_VALUE", fmt::format("{}", event.value)},
                       {"SONDE_ALARM_NODE", host},
                       {"SONDE_ALARM_RANK", rank},
                       {"SONDE_ALARM_TIME", FormatTime(event.time)},
                       {"SONDE_ALARM_JOB", id_.ToString()}};
  actions_.Tell(message);
}

}  // namespace sonde::head
