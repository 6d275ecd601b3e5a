#include "daemon/head/live_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/hostlist.h"
#include "daemon/head/live_rows.h"

namespace sonde::head {
namespace {

// The filters on the tag `job` are answered here; the nodes and the reduced series do not have it.
Result<bool> TakeJobFilters(QuerySpec& spec, const std::string& job) {
  QuerySpec only = spec;
  // Every series has the tag job: one that no filter names is one too many.
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

uint32_t Present(const JobDescription& job) {
  return static_cast<uint32_t>(std::count_if(job.nodes.begin(), job.nodes.end(),
                                             [](const auto& n) { return n.left == 0 && !n.lost; }));
}

// A question on its way to the nodes, and back, and perhaps once more.
struct Asked {
  LiveSource::AskNodes ask;
  QuerySpec spec;
  QueryGrid grid;
  std::string job;
  uint32_t expected = 0;  // nodes
  int rounds = 0;
  web::DataSource::Callback callback;
};

void AskRound(const std::shared_ptr<Asked>& asked);

// Adds the times at which some nodes have points and others gave no value.
Status AddTimes(const QuerySpec& spec, const std::vector<Nanos>& odd, QueryGrid& grid) {
  const size_t middle = grid.times.size();
  grid.times.insert(grid.times.end(), odd.begin(), odd.end());
  std::inplace_merge(grid.times.begin(), grid.times.begin() + static_cast<ptrdiff_t>(middle),
                     grid.times.end());
  if (grid.times.size() <= kMaxGridTimes) return {};
  return {Code::kLimit, fmt::format("query of '{}': the nodes have points at more than {} times "
                                    "beside the ticks; ask with a downsample",
                                    spec.metric, kMaxGridTimes)};
}

void OnGathered(const std::shared_ptr<Asked>& asked, const tree::Gathered& answer) {
  if (!answer.failure.ok()) return asked->callback(answer.failure);
  std::vector<Nanos> odd;
  if (answer.nodes > 1) odd = OddTimes(asked->spec, answer.part, asked->grid);
  if (!odd.empty()) {
    constexpr int kMaxRounds = 3;  // a node that ends meanwhile has one more
    if (asked->rounds >= kMaxRounds) {
      return asked->callback(Status(Code::kUnavailable,
                                    "the times of the nodes' points changed with each question; "
                                    "ask again, or with a downsample"));
    }
    if (const Status full = AddTimes(asked->spec, odd, asked->grid); !full.ok()) {
      return asked->callback(full);
    }
    return AskRound(asked);
  }
  std::vector<QueryResult> results = FinishPart(asked->spec, answer.part);
  for (QueryResult& result : results) result.tags.Set("job", asked->job);
  asked->callback(web::Answer{std::move(results), answer.nodes, asked->expected});
}

void AskRound(const std::shared_ptr<Asked>& asked) {
  ++asked->rounds;
  asked->ask(asked->spec, asked->grid,
             [asked](const tree::Gathered& answer) { OnGathered(asked, answer); });
}

}  // namespace

Result<std::vector<JobDescription>> LiveSource::Jobs(size_t limit) const {
  std::vector<JobDescription> jobs;
  if (limit > 0) jobs.push_back(record_.Description());
  return jobs;
}

Result<Profile> LiveSource::GetProfile(const JobStep& id) const {
  Profile profile = record_.Snapshot();
  const JobStep& own = profile.job.id;
  if (id.job == own.job && (id.step.empty() || id.step == own.step)) return profile;
  return Status(Code::kNotFound,
                fmt::format("no step {} here, only {}; finished steps are served by "
                            "`sonde serve`",
                            id.ToString(), own.ToString()));
}

Result<std::vector<Series>> LiveSource::ListSeries(std::string_view metric, size_t limit) const {
  const JobDescription job = record_.Description();
  const std::string id = job.id.ToString();
  std::vector<Series> list;
  for (const Series& series : record_.AllSeries()) {
    if (!metric.empty() && series.metric.name != metric) continue;
    for (const NodeInfo& node : job.nodes) {
      if (list.size() >= limit) return list;
      Series with = series;
      with.tags.Set("host", node.host);
      with.tags.Set("job", id);
      list.push_back(std::move(with));
    }
  }
  return list;
}

// Every series is there on every node: no need to list them by node.
Result<web::SeriesNames> LiveSource::Names() const {
  web::SeriesNames names;
  const JobDescription job = record_.Description();
  if (job.nodes.empty()) return names;
  for (const Series& series : record_.AllSeries()) names.Add(series);
  names.keys.insert({"host", "job"});
  names.values.insert(job.id.ToString());
  for (const NodeInfo& node : job.nodes) names.values.insert(node.host);
  return names;
}

void LiveSource::Query(const QuerySpec& spec, Callback callback) const {
  const JobDescription job = record_.Description();
  if (const Status bad = CheckQuery(spec); !bad.ok()) return callback(bad);
  QuerySpec rest = spec;
  const Result<bool> ours = TakeJobFilters(rest, job.id.ToString());
  if (!ours.ok()) return callback(ours.status());
  if (!*ours) return callback(web::Answer{});
  if (AnswersFromReduced(rest)) return callback(FromReduced(rest, job));
  if (SpreadAnswers(rest, job.period)) {
    Result<web::Answer> recorded = FromReduced(rest, job);
    if (recorded.ok() && !recorded->results.empty()) return callback(std::move(recorded));
  }
  FromNodes(std::move(rest), job, std::move(callback));
}

std::vector<web::Note> LiveSource::Notes(Nanos first, Nanos last) const {
  return web::NotesOf(record_.Description(), record_.Moments(), first, last);
}

// Reads no further than the rows it gives, unless there is a gap behind `after`.
Result<web::LiveRows> LiveSource::ReadLive(const JobStep& id,
                                           const std::function<bool(const Metric&)>& wanted,
                                           Nanos after, size_t limit) const {
  if (!IsOurs(id)) return GetProfile(id).status();
  web::LiveRows live;
  live.running = true;
  live.period = period_;
  live.newest = record_.NewestRow();
  const std::vector<Series> all = record_.AllSeries();
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
    bool first = true;  // one column knows
    const auto one = [&](const Series&) { return std::exchange(first, false); };
    const std::vector<SeriesData> data = record_.Read(one, 0, live.newest);
    if (!data.empty() && !data[0].points.empty()) live.oldest = data[0].points.front().time;
    return live;
  }
  if (live.newest <= after) return live;
  const auto span = static_cast<Nanos>(std::min<size_t>(limit, 1 << 20)) * period_;
  for (const Nanos end : {std::min(after + span, live.newest), live.newest}) {
    PutTogether(record_.Read(columns, after + 1, end), limit, live);
    if (!live.rows.empty()) break;
  }
  if (any) return live;
  live.series.clear();
  for (web::LiveRows::Row& row : live.rows) row.values.clear();
  return live;
}

Status LiveSource::PauseCounters(const JobStep& id, bool paused) const {
  constexpr int kCountersLevel = 3;
  const Result<Profile> profile = GetProfile(id);
  if (!profile.ok()) return profile.status();
  if (profile->job.level < kCountersLevel) {
    return {Code::kInvalid,
            fmt::format("step {} counts no events: it runs at level {}, they are counted from "
                        "level {} on",
                        profile->job.id.ToString(), profile->job.level, kCountersLevel)};
  }
  ways_.pause(paused);
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
  const Result<Profile> profile = GetProfile(id);
  return profile.ok() ? Status() : profile.status();
}

Result<std::string> LiveSource::Join(const JobStep& id, const web::ScrapeTarget& target,
                                     const std::string& node) const {
  const Result<Profile> profile = GetProfile(id);
  if (!profile.ok()) return profile.status();
  const std::vector<NodeInfo>& nodes = profile->job.nodes;
  const std::string& wanted = node.empty() ? target.host : node;
  std::vector<uint32_t> chosen;
  std::vector<std::string> hosts;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (node != "*" && nodes[i].host != wanted) continue;
    chosen.push_back(i);
    hosts.push_back(nodes[i].host);
  }
  if (chosen.empty() && node.empty() && !nodes.empty()) {
    chosen = {0};
    hosts = {nodes[0].host};
  }
  if (chosen.empty()) {
    return Status(Code::kNotFound,
                  fmt::format("step {} has no node '{}'", profile->job.id.ToString(), node));
  }
  ways_.join(std::move(chosen), target.Url());
  return CompressHosts(hosts);
}

Status LiveSource::Push(const JobStep& id, const web::PushedValue& value) const {
  const Result<Profile> profile = GetProfile(id);
  return profile.ok() ? pushed_.Push(profile->job, value) : profile.status();
}

void LiveSource::Tree(const JobStep& id, TreeCallback callback) const {
  const Result<Profile> profile = GetProfile(id);
  if (!profile.ok()) return callback(profile.status());
  ways_.tree([callback = std::move(callback)](std::vector<web::TreeEdge> edges) {
    callback(std::move(edges));
  });
}

Result<web::Answer> LiveSource::FromReduced(const QuerySpec& spec,
                                            const JobDescription& job) const {
  const TimeRange range = DataRange(spec);
  const std::vector<SeriesData> reduced = record_.Read(
      [&](const Series& series) { return ReducedNeeds(spec, series); }, range.first, range.last);
  Result<std::vector<QueryResult>> results = EvaluateReduced(spec, reduced);
  if (!results.ok()) return results.status();
  for (QueryResult& result : *results) {
    result.tags.Set("job", job.id.ToString());
    if (job.nodes.size() == 1) {
      result.tags.Set("host", job.nodes.front().host);
    } else {
      result.aggregate_tags.emplace_back("host");
      std::sort(result.aggregate_tags.begin(), result.aggregate_tags.end());
    }
  }
  return web::Answer{*std::move(results), Present(job), Present(job)};
}

void LiveSource::FromNodes(QuerySpec spec, const JobDescription& job, Callback callback) const {
  std::string bytes;
  EncodeQuery(spec, bytes);
  if (bytes.size() > tree::kMaxQueryBytes) {
    return callback(Status(Code::kLimit, fmt::format("query of '{}': its filters have more than {} "
                                                     "bytes",
                                                     spec.metric, tree::kMaxQueryBytes)));
  }
  const auto asked = std::make_shared<Asked>();
  asked->ask = ways_.ask;
  asked->spec = std::move(spec);
  asked->grid.step = job.period;
  asked->job = job.id.ToString();
  asked->expected = Present(job);
  asked->callback = std::move(callback);
  AskRound(asked);
}

}  // namespace sonde::head
