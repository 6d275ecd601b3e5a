#include "daemon/head/live_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/hostlist.h"

namespace sonde::head {
namespace {

// The filters on the tag `job` are answered here; the nodes and the reduced series do not have it.
Result<bool> TakeJobFilters(QuerySpec& spec, const std::string& job) {
  QuerySpec only = spec;
  std::erase_if(only.filters, [](const TagFilter& f) { return f.key != "job"; });
  if (only.filters.empty()) return true;
  only.explicit_tags = false;
  const Result<SeriesFilter> filter = SeriesFilter::Make(only);
  if (!filter.ok()) return filter.status();
  std::erase_if(spec.filters, [](const TagFilter& f) { return f.key == "job"; });
  return filter->Matches(spec.metric, Tags{{"job", job}});
}

uint32_t Present(const JobDescription& job) {
  return static_cast<uint32_t>(std::count_if(job.nodes.begin(), job.nodes.end(),
                                             [](const auto& n) { return n.left == 0 && !n.lost; }));
}

Result<std::vector<SeriesData>> DecodeParts(const tree::ReplyMessage& reply,
                                            const std::string& job) {
  std::vector<SeriesData> all;
  for (const std::string& part : reply.parts) {
    Result<std::vector<SeriesData>> series = DecodeSeriesData(part);
    if (!series.ok()) return series.status();
    for (SeriesData& data : *series) {
      data.series.tags.Set("job", job);
      all.push_back(std::move(data));
    }
  }
  return all;
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

void LiveSource::Query(const QuerySpec& spec, Callback callback) const {
  const JobDescription job = record_.Description();
  if (const Status bad = CheckQuery(spec); !bad.ok()) return callback(bad);
  QuerySpec rest = spec;
  const Result<bool> ours = TakeJobFilters(rest, job.id.ToString());
  if (!ours.ok()) return callback(ours.status());
  if (!*ours) return callback(web::Answer{});
  if (AnswersFromReduced(rest)) return callback(FromReduced(rest, job));
  FromNodes(std::move(rest), job, std::move(callback));
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
  pause_(paused);
  return {};
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
  join_(std::move(chosen), target.Url());
  return CompressHosts(hosts);
}

Result<web::Answer> LiveSource::FromReduced(const QuerySpec& spec,
                                            const JobDescription& job) const {
  const TimeRange range = DataRange(spec);
  const std::vector<SeriesData> reduced =
      record_.Read([&](const Series& series) { return series.metric.name == spec.metric; },
                   range.first, range.last);
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
  const std::string id = job.id.ToString();
  ask_(std::move(bytes), [spec = std::move(spec), id, expected = Present(job),
                          callback = std::move(callback)](const tree::ReplyMessage& reply) {
    const Result<std::vector<SeriesData>> series = DecodeParts(reply, id);
    if (!series.ok()) return callback(series.status());
    // The nodes have done these two steps.
    QuerySpec rest = spec;
    rest.downsample.reset();
    rest.rate = false;
    Result<std::vector<QueryResult>> results = Evaluate(rest, *series);
    if (!results.ok()) return callback(results.status());
    callback(web::Answer{*std::move(results), reply.nodes, expected});
  });
}

}  // namespace sonde::head
