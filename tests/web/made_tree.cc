#include "tests/web/made_tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace sonde::web {
namespace {

constexpr Nanos kAge = 600 * kSecond;  // of the step

Metric SentBytes() {
  Metric metric;
  metric.name = "sonde_sent_bytes_total";
  metric.unit = "bytes";
  metric.type = MetricType::kCounter;
  metric.reduction = Reduction::kSum;
  return metric;
}

}  // namespace

MadeTree::MadeTree(uint32_t nodes, Nanos now) {
  JobDescription& job = profile_.job;
  job.id = {"4714", "0"};
  job.name = "tree";
  job.command = "./cavity";
  job.user = "ada";
  job.launch_host = "login1";
  job.level = 2;
  job.period = kSecond;
  job.start = now - kAge;
  job.expected_nodes = nodes;
  job.expected_tasks = nodes;
  FootprintEntry& sent = profile_.footprint.emplace_back();
  sent.series.metric = SentBytes();
  sent.ticks = 600;
  for (uint32_t i = 0; i < nodes; ++i) {
    NodeInfo& node = job.nodes.emplace_back();
    node.host = fmt::format("node{:05}", i + 1);
    node.tasks = 1;
    node.joined = job.start;
  }
}

Profile MadeTree::ProfileNow() const {
  Profile profile = profile_;
  if (!ended_) return profile;
  profile.job.state = EndState::kCompleted;
  profile.job.end = profile.job.start + kAge;
  return profile;
}

void MadeTree::Jobs(size_t limit, JobsCallback callback) const {
  std::vector<JobDescription> jobs;
  if (limit != 0) jobs.push_back(ProfileNow().job);
  callback(std::move(jobs));
}

void MadeTree::GetProfile(const JobStep& id, ProfileCallback callback) const {
  if (id != profile_.job.id) {
    return callback(Status(Code::kNotFound, "there is no step " + id.ToString()));
  }
  callback(ProfileNow());
}

void MadeTree::ListSeries(std::string_view /*metric*/, size_t /*limit*/,
                          SeriesCallback callback) const {
  callback(std::vector<Series>());
}

uint32_t MadeTree::ChildrenOf(uint32_t node) const {
  const auto nodes = static_cast<uint32_t>(profile_.job.nodes.size());
  const uint64_t first = uint64_t{node} * kFanout + kFanout;
  return first >= nodes ? 0 : std::min(kFanout, nodes - static_cast<uint32_t>(first));
}

void MadeTree::Query(const QuerySpec& spec, Callback callback) const {
  std::vector<SeriesData> all;
  const TimeRange range = DataRange(spec);
  const auto nodes = static_cast<uint32_t>(profile_.job.nodes.size());
  for (uint32_t i = 0; spec.metric == "sonde_sent_bytes_total" && i < nodes; ++i) {
    SeriesData data;
    data.series.metric = SentBytes();
    data.series.tags = {{"host", profile_.job.nodes[i].host}, {"job", profile_.job.id.ToString()}};
    const Nanos first = std::max(profile_.job.start, range.first / kSecond * kSecond);
    const Nanos last = std::min(range.last, Clock::System().Now());
    for (Nanos t = first; t <= last; t += kSecond) {
      const auto seconds = static_cast<double>((t - profile_.job.start) / kSecond);
      data.points.push_back({t, seconds * 1000 * (1 + ChildrenOf(i))});
    }
    all.push_back(std::move(data));
  }
  Result<std::vector<QueryResult>> results = sonde::Evaluate(spec, all);
  if (!results.ok()) return callback(results.status());
  callback(Answer{*std::move(results), nodes, nodes});
}

void MadeTree::Links(const JobStep& id, LinkTreeCallback callback) const {
  if (id != profile_.job.id || ended_) return DataSource::Links(id, std::move(callback));
  using State = LinkTree::State;
  const JobDescription& job = profile_.job;
  const auto nodes = static_cast<uint32_t>(job.nodes.size());
  LinkTree tree;
  tree.head = job.launch_host;
  tree.expected = tree.registered = nodes;
  tree.now = Clock::System().Now();
  tree.period = job.period;
  tree.newest_tick = tree.now / kSecond * kSecond;
  for (uint32_t i = 0; i < nodes; ++i) {
    LinkTree::Node& node = tree.nodes.emplace_back();
    node.host = job.nodes[i].host;
    node.parent = i < kFanout ? LinkTree::kHead : i / kFanout - 1;
    node.carrier = i < kFanout ? "sockets" : "tcp";
    node.since = job.start;
    node.last_tick = tree.newest_tick;
  }
  if (nodes < 4) return callback(std::move(tree));
  // Leaves, so that nobody below moves.
  const Nanos ago = tree.newest_tick - 60 * kSecond;
  for (uint32_t i = 0; i < std::min(lost_.load(), nodes - 3); ++i) {
    LinkTree::Node& node = tree.nodes[nodes - 1 - i];
    node.state = State::kLost;
    node.since = node.last_tick = ago;
    node.note = "connection reset by peer";
  }
  tree.nodes[0].last_tick -= 2 * kSecond;
  tree.nodes[nodes / 3].last_tick = ago;
  LinkTree::Node& away = tree.nodes[nodes / 2];
  away.state = State::kAway;
  away.since = away.last_tick = tree.newest_tick - kSecond;
  away.note = "connection timed out";
  callback(std::move(tree));
}

}  // namespace sonde::web
