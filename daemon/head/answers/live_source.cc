#include "daemon/head/answers/live_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "core/text/hostlist.h"
#include "daemon/head/answers/whole_step.h"
#include "daemon/head/record/live_rows.h"
#include "daemon/head/record/presence.h"
#include "series/query/counter_total.h"
#include "series/query/plan.h"
#include "series/query/steps.h"
#include "series/store/task_ranks.h"

namespace sonde::head {
namespace {

// The filters on the tag `job` are answered here; the nodes and the reduced series do not have it.
Result<bool> TakeJobFilters(QuerySpec& spec, const std::string& job) {
  QuerySpec only = spec;
  // Every series has the tag job: without a filter on it, a series has one tag too many.
  const auto of_job = [](const TagFilter& f) { return f.key == "job"; };
  if (spec.explicit_tags && std::none_of(spec.filters.begin(), spec.filters.end(), of_job)) {
    return false;
  }
  std::erase_if(only.filters, [&](const TagFilter& f) { return !of_job(f); });
  if (only.filters.empty()) return true;
  only.explicit_tags = false;
  const Result<SeriesFilter> filter = SeriesFilter::Make(only);
  if (!filter.ok()) return filter.status();
  std::erase_if(spec.filters, of_job);
  return filter->Matches(spec.metric, Tags{{"job", job}});
}

// Whether it fits into what is sent down the tree.
Status CheckLength(const QuerySpec& spec) {
  std::string bytes;
  EncodeQuery(spec, bytes);
  if (bytes.size() <= tree::kMaxQueryBytes) return {};
  return {Code::kLimit, fmt::format("query of '{}': its filters have more than {} bytes",
                                    spec.metric, tree::kMaxQueryBytes)};
}

// The rows' part of an answer. `lacks` becomes whether nodes are missing in some of them.
Result<web::PartAnswer> PartFromReduced(const StepRecord& record, const HostsNow& hosts_now,
                                        const QuerySpec& spec, const QueryGrid& grid, bool& lacks) {
  const TimeRange range = ReducedRange(spec, /*counts=*/true, record.Job()->period);
  StepRecord::PresenceRuns presence;  // of these rows
  const std::vector<SeriesData> reduced =
      record.Read([&](const Series& series) { return ReducedNeeds(spec, series); }, range.first,
                  range.last, &presence);
  // Behind the rows: it knows of all nodes that are in them.
  const HostsNow::Hosts hosts = hosts_now.Get();
  const auto absences = hosts_now.Absences(hosts, presence, /*each_value=*/false);
  lacks = LackNodes(*absences, *presence, spec.start, spec.end);
  Result<QueryPart> part = EvaluateReducedPart(spec, reduced, *presence, grid);
  if (!part.ok()) return part.status();
  TagPart("job", record.Job()->id.ToString(), *part);
  if (hosts->nodes() == 1) {
    TagPart("host", hosts->only(), *part);
  } else {
    AddOtherKey("host", *part);
  }
  return web::PartAnswer{*std::move(part), hosts->in_rows().there, hosts->in_rows().expected};
}

}  // namespace

LiveSource::LiveSource(const StepRecord& record, std::shared_ptr<StepNodes> nodes,
                       std::shared_ptr<const StoredSeries> stored,
                       const NodeQuestions::Executor& finish)
    : record_(record),
      id_(record.Job()->id),
      period_(record.Job()->period),
      nodes_(std::move(nodes)),
      hosts_(std::make_shared<const HostsNow>(record)),
      pushed_(
          [to = nodes_](uint32_t node, std::string bytes) { to->Push(node, std::move(bytes)); }),
      for_clients_(std::make_shared<NodeQuestions>(record, hosts_, nodes_, stored, kOfClients,
                                                   kNicenessOfClients, finish)),
      for_step_(
          std::make_shared<NodeQuestions>(record, hosts_, nodes_, stored, kOfStep, 0, finish)) {}

void LiveSource::Jobs(size_t limit, JobsCallback callback) const {
  std::vector<JobDescription> jobs;
  if (limit > 0) jobs.push_back(record_.Description());
  callback(std::move(jobs));
}

Status LiveSource::IsHere(const JobStep& id) const {
  if (id.job == id_.job && (id.step.empty() || id.step == id_.step)) return {};
  return {Code::kNotFound,
          fmt::format("no step {} here, only {}; finished steps are served by `sonde serve`",
                      id.ToString(), id_.ToString())};
}

void LiveSource::GetProfile(const JobStep& id, ProfileCallback callback) const {
  const Status here = IsHere(id);
  callback(here.ok() ? Result<Profile>(record_.Snapshot()) : here);
}

void LiveSource::ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const {
  const auto all = record_.AllSeries();
  const auto wanted = [&](const Series& series) {
    return metric.empty() || series.metric.name == metric;
  };
  const auto job = record_.Job();
  const auto count = static_cast<size_t>(std::count_if(all->begin(), all->end(), wanted));
  const auto is_known = [](const NodeInfo& node) { return !node.host.empty(); };
  const auto nodes = static_cast<size_t>(std::ranges::count_if(job->nodes, is_known));
  // Before they are made: so many take half a gigabyte.
  if (limit > web::kMaxListed && count * nodes > web::kMaxListed) {
    return callback(
        Status(Code::kLimit,
               fmt::format("{} series of {} nodes are more than the {} that are looked through: "
                           "name a metric, or ask for its values",
                           count, nodes, web::kMaxListed)));
  }
  const std::string id = id_.ToString();
  std::vector<Series> list;
  list.reserve(std::min(limit, count * nodes));
  for (const Series& series : *all) {
    if (!wanted(series)) continue;
    for (const NodeInfo& node : job->nodes) {
      if (!is_known(node)) continue;
      if (list.size() >= limit) return callback(std::move(list));
      Series with = series;
      with.tags.Set("host", node.host);
      with.tags.Set("job", id);
      list.push_back(std::move(with));
    }
  }
  callback(std::move(list));
}

// Every series is there on every node: no need to list them by node. Those of tasks are reduced
// here, and a question by task goes to the nodes; so tasks are named by their number.
void LiveSource::Names(NamesCallback callback) const {
  web::SeriesNames names;
  const auto job = record_.Job();
  if (job->nodes.empty()) return callback(std::move(names));
  for (const Series& series : *record_.AllSeries()) names.Add(series);
  names.keys.insert({"host", "job"});
  names.values.insert(job->id.ToString());
  for (const NodeInfo& node : job->nodes) {
    if (!node.host.empty()) names.values.insert(node.host);  // "": not known yet
  }
  const size_t tasks = std::min<size_t>(job->expected_tasks, web::kMaxListed);
  if (tasks > 0) names.keys.emplace(kTaskTag);
  for (size_t rank = 0; rank < tasks; ++rank) names.values.insert(std::to_string(rank));
  callback(std::move(names));
}

void LiveSource::Query(const QuerySpec& spec, Callback callback) const {
  Query(*for_clients_, spec, std::move(callback));
}

void LiveSource::QueryForStep(const QuerySpec& spec, Callback callback) const {
  Query(*for_step_, spec, std::move(callback));
}

void LiveSource::Query(NodeQuestions& nodes, const QuerySpec& spec, Callback callback) const {
  if (const Status bad = CheckQuery(spec); !bad.ok()) return callback(bad);
  QuerySpec rest = spec;
  const Result<bool> ours = TakeJobFilters(rest, id_.ToString());
  if (!ours.ok()) return callback(ours.status());
  if (!*ours) return callback(web::Answer{});
  QueryScene scene;
  scene.at_head = true;
  scene.period = period_;
  scene.is_count = record_.Counts(rest.metric);
  if (const Status bad = CheckLength(rest); !bad.ok()) return callback(bad);
  for (const AnswerWay way : PlanQuery(rest, scene)) {
    if (way == AnswerWay::kParts) break;
    if (AnswerWholeStep({record_, hosts_, nodes, settled_}, rest, callback)) return;
  }
  QueryGrid ticks;
  ticks.step = period_;
  nodes.Ask({std::move(rest), ticks,
             [callback = std::move(callback)](Result<NodeQuestions::Answer> told) {
               if (!told.ok()) return callback(told.status());
               callback(std::move(told->answer));
             },
             nullptr, &nodes == for_step_.get()});
}

void LiveSource::QueryForPart(const QuerySpec& spec, const QueryGrid& grid,
                              PartCallback callback) const {
  if (const Status bad = CheckQuery(spec); !bad.ok()) return callback(bad);
  QuerySpec rest = spec;
  const Result<bool> ours = TakeJobFilters(rest, id_.ToString());
  if (!ours.ok()) return callback(ours.status());
  if (!*ours) return callback(web::PartAnswer{EmptyPart(rest), 0, 0});
  if (const Status bad = CheckLength(rest); !bad.ok()) return callback(bad);
  if (PlanPart(rest, record_.Counts(rest.metric)) != AnswerWay::kReduced) {
    return for_clients_->Ask({std::move(rest), grid, nullptr, std::move(callback)});
  }
  bool lacks = false;
  Result<web::PartAnswer> of_rows = PartFromReduced(record_, *hosts_, rest, grid, lacks);
  if (!of_rows.ok() || !lacks) return callback(std::move(of_rows));
  auto or_rows = [of_rows = *std::move(of_rows),
                  callback = std::move(callback)](Result<web::PartAnswer> of_nodes) mutable {
    if (of_nodes.ok() && of_nodes->nodes_answered >= of_rows.nodes_answered) {
      return callback(std::move(of_nodes));
    }
    of_rows.rows_only = of_nodes.ok() ? "nodes that are missing in rows have not answered"
                                      : of_nodes.status().message();
    callback(std::move(of_rows));
  };
  for_clients_->Ask({std::move(rest), grid, nullptr, std::move(or_rows)});
}

// Every page that is open asks at every tick: the nodes are not copied for that.
void LiveSource::Notes(Nanos first, Nanos last, NotesCallback callback) const {
  std::vector<web::Note> notes;
  {
    const StepRecord::View now(record_);
    notes = web::NotesOf(now.Job(), now.Notes(), now.Moments(), first, last);
  }
  callback(std::move(notes));
}

void LiveSource::ReadLive(const JobStep& id, const IsWanted& wanted, Nanos after, size_t limit,
                          RowsCallback callback) const {
  const Status here = IsHere(id);
  callback(here.ok() ? Result<web::LiveRows>(RowsAfter(wanted, after, limit)) : here);
}

// Reads no further than the rows it gives, unless there is a gap behind `after`.
web::LiveRows LiveSource::RowsAfter(const IsWanted& wanted, Nanos after, size_t limit) const {
  web::LiveRows live;
  live.running = true;
  live.period = period_;
  live.newest = record_.NewestRow();
  const std::shared_ptr<const std::vector<Series>> series_now = record_.AllSeries();
  const std::vector<Series>& all = *series_now;
  const bool any = std::any_of(all.begin(), all.end(),
                               [&](const Series& series) { return wanted(series.metric); });
  const auto columns = [&](const Series& column) {
    if (any) return wanted(column.metric);
    return !all.empty() && column.metric.name == all[0].metric.name;
  };
  if (limit == 0) {
    for (const Series& series : all) {
      if (wanted(series.metric)) live.series.push_back(series);
    }
    bool first = true;  // one column tells the times
    const auto one = [&](const Series&) { return std::exchange(first, false); };
    const std::vector<SeriesData> data = record_.Read(one, 0, live.newest);
    if (!data.empty() && !data[0].points.empty()) live.oldest = data[0].points.front().time;
    return live;
  }
  if (live.newest <= after) return live;
  const auto span = static_cast<Nanos>(std::min<size_t>(limit, 1 << 20)) * period_;
  for (const Nanos end : {std::min(after + span, live.newest), live.newest}) {
    StepRecord::PresenceRuns presence;  // of these rows
    PutTogether(record_.Read(columns, after + 1, end, &presence), limit, live);
    RowNodes nodes;
    nodes.Changed(*presence, after);
    for (web::LiveRows::Row& row : live.rows) row.others = nodes.Changed(*presence, row.time);
    if (!live.rows.empty()) break;
  }
  if (any) return live;
  live.series.clear();
  for (web::LiveRows::Row& row : live.rows) row.values.clear();
  return live;
}

Status LiveSource::PauseCounters(const JobStep& id, bool paused) const {
  constexpr int kCountersLevel = 3;
  SONDE_RETURN_IF_ERROR(IsHere(id));
  const int level = record_.Job()->level;
  if (level < kCountersLevel) {
    return {Code::kInvalid,
            fmt::format("step {} counts no events: it runs at level {}, they are counted from "
                        "level {} on",
                        id_.ToString(), level, kCountersLevel)};
  }
  nodes_->PauseCounters(paused);
  return {};
}

Result<std::vector<web::AlarmState>> LiveSource::Alarms(const JobStep& id) const {
  SONDE_RETURN_IF_ERROR(CheckOurs(id));
  std::vector<web::AlarmState> all;
  for (alarms::Evaluator::State& state : alarms_->List()) {
    std::string host = record_.Host(state.owner.node);
    all.push_back({std::move(state), std::move(host)});
  }
  return all;
}

Status LiveSource::AddAlarm(const JobStep& id, const alarms::Rule& rule) const {
  SONDE_RETURN_IF_ERROR(CheckOurs(id));
  return alarms_->Add(rule);
}

Status LiveSource::RemoveAlarm(const JobStep& id, const std::string& name) const {
  SONDE_RETURN_IF_ERROR(CheckOurs(id));
  return alarms_->Remove(name);
}

Status LiveSource::CheckOurs(const JobStep& id) const {
  if (alarms_ == nullptr) return {Code::kUnsupported, "there are no alarms here"};
  return IsHere(id);
}

void LiveSource::Join(const JobStep& id, const web::ScrapeTarget& target, const std::string& node,
                      JoinCallback callback) const {
  if (const Status here = IsHere(id); !here.ok()) return callback(here);
  const auto job = record_.Job();
  const std::vector<NodeInfo>& nodes = job->nodes;
  const std::string& wanted = node.empty() ? target.host : node;
  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (node == "*" || nodes[i].host == wanted) chosen.push_back(i);
  }
  if (chosen.empty() && node.empty() && !nodes.empty()) chosen = {0};
  if (chosen.empty()) {
    return callback(
        Status(Code::kNotFound, fmt::format("step {} has no node '{}'", id_.ToString(), node)));
  }
  nodes_->Join(std::move(chosen), target, std::move(callback));
}

void LiveSource::Exporters(const JobStep& id, ExportersCallback callback) const {
  if (const Status here = IsHere(id); !here.ok()) return callback(here);
  nodes_->Exporters(std::move(callback));
}

void LiveSource::Unjoin(const JobStep& id, const std::string& instance,
                        UnjoinCallback callback) const {
  if (const Status here = IsHere(id); !here.ok()) return callback(here);
  nodes_->Unjoin(instance, std::move(callback));
}

Status LiveSource::Push(const JobStep& id, const web::PushedValue& value) const {
  SONDE_RETURN_IF_ERROR(IsHere(id));
  return pushed_.Push(*record_.Job(), value);
}

void LiveSource::Tree(const JobStep& id, TreeCallback callback) const {
  if (const Status here = IsHere(id); !here.ok()) return callback(here);
  nodes_->Tree([callback = std::move(callback)](std::vector<web::TreeEdge> edges) {
    callback(std::move(edges));
  });
}

void LiveSource::Links(const JobStep& id, LinkTreeCallback callback) const {
  if (const Status here = IsHere(id); !here.ok()) return callback(here);
  nodes_->Links(
      [callback = std::move(callback)](web::LinkTree tree) { callback(std::move(tree)); });
}

}  // namespace sonde::head
