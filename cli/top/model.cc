#include "cli/top/model.h"

#include <algorithm>
#include <cmath>

#include "serve/head_client.h"

namespace sonde::cli::top {
namespace {

constexpr Nanos kProfileAtFirst = kSecond;  // as long as there are no values of nodes
constexpr Nanos kLimitsEvery = 300 * kSecond;
constexpr Nanos kScrollEvery = 250 * kMillisecond;  // as long as a key is held
constexpr Nanos kSilentEvery = 10 * kSecond;
constexpr size_t kNodesASecond = 1000;  // of a large step, of which all are asked
constexpr size_t kSpareRows = 4;        // asked for beyond those that are shown
constexpr int64_t kSilentPoints = 720;

constexpr std::string_view kCoreCpu = "node_cpu_core_seconds_total";
constexpr std::string_view kTaskCore = "task_processor";
constexpr std::string_view kSamples = "sonde_samples_total";
constexpr std::string_view kLimits[] = {"cgroup_cpuset_cpus", "cgroup_memory_limit_bytes",
                                        "node_memory_allocated_bytes",
                                        "node_memory_MemTotal_bytes"};

// Large steps are asked less often for everything.
Nanos Stretched(Nanos every, size_t nodes) {
  return every * static_cast<Nanos>(1 + nodes / kNodesASecond);
}

// A name that a filter can have as one of several.
bool CanBeAsked(const std::string& host) {
  return !host.empty() && host.find('|') == std::string::npos;
}

}  // namespace

Nanos Model::interval() const {
  if (wanted_interval_ > 0) return std::max(wanted_interval_, kSecond);
  return std::max(job_.period, kSecond);
}

std::vector<Column> Model::columns() const {
  std::vector<Column> out;
  for (size_t i = 0; i < kColumns; ++i) {
    const auto& metrics = InfoOf(ColumnAt(i)).metrics;
    if (std::any_of(metrics.begin(), metrics.end(),
                    [&](std::string_view metric) { return Has(metric); })) {
      out.push_back(ColumnAt(i));
    }
  }
  return out;
}

std::vector<Column> Model::Shown(const View& view) const {
  std::vector<Column> out = columns();
  if (view.level == Level::kCores) return {Column::kCpu};
  if (view.level == Level::kRanks) {
    std::erase_if(out, [](Column column) { return !InfoOf(column).of_tasks; });
  }
  return out;
}

std::vector<Column> Model::OthersThan(Column sort) const {
  std::vector<Column> out = columns();
  std::erase_if(out, [&](Column column) { return column == sort || !InfoOf(column).ratio; });
  return out;
}

bool Model::KnowsAll(Column column, Nanos now) const {
  if (nodes_.size() <= kAllRows) return true;
  // Each of the others has had its turn by then.
  const auto turns = static_cast<Nanos>(OthersThan(column).size() + 2);
  const Nanos patience = turns * Stretched(interval(), nodes_.size());
  const Nanos at = all_at_[IndexOf(column)];
  return at != 0 && now - at <= patience;
}

const Node* Model::Find(std::string_view host) const {
  const auto at = by_host_.find(std::string(host));
  return at == by_host_.end() ? nullptr : &nodes_[at->second];
}

Node* Model::Known(std::string_view host) {
  const Node* node = Find(host);
  return node == nullptr ? nullptr : &nodes_[static_cast<size_t>(node - nodes_.data())];
}

std::vector<std::string> Model::LostHosts() const {
  std::vector<std::string> hosts;
  for (const Node& node : nodes_) {
    if (node.lost) hosts.push_back(node.host);
  }
  return hosts;
}

size_t Model::NotCome() const {
  return job_.expected_nodes > nodes_.size() ? job_.expected_nodes - nodes_.size() : 0;
}

void Model::Add(Ask ask, std::vector<Ask>& out) {
  const auto kind = static_cast<size_t>(ask.kind);
  if (pending_.test(kind)) return;
  pending_.set(kind);
  out.push_back(std::move(ask));
}

std::vector<Wanted> Model::WantedOf(Column column) const {
  std::vector<Wanted> out;
  const ColumnInfo& info = InfoOf(column);
  for (const std::string_view metric : info.metrics) {
    if (metric.empty() || !Has(metric)) continue;
    const bool loopback = info.without_loopback && metric.starts_with("node_network_");
    out.push_back({std::string(metric), info.mean, info.counter, loopback, {}});
  }
  return out;
}

std::vector<Wanted> Model::WantedOf(bool of_tasks) const {
  std::vector<Wanted> out;
  for (const Column column : columns()) {
    if (of_tasks && !InfoOf(column).of_tasks) continue;
    for (Wanted& one : WantedOf(column)) out.push_back(std::move(one));
  }
  return out;
}

// Two or three samples, so that the newest is among them. Of samples that are closer than a second
// what counts is the mean of a second.
Span Model::TickSpan() const {
  Span span;
  const Nanos period = std::max(job_.period, kMinPeriod);
  if (period < kSecond) {
    span.interval = kSecond;
    span.ago = 3 * kSecond;
  } else {
    span.ago = 2 * period + kSecond;
  }
  return span;
}

bool Model::AllRows(const View& view) const {
  return nodes_.size() <= std::max(kAllRows, view.page);
}

std::vector<std::string> Model::ShownHosts(const View& view) const {
  if (view.level != Level::kNodes) {
    return CanBeAsked(view.host) ? std::vector<std::string>{view.host} : std::vector<std::string>{};
  }
  const std::vector<uint32_t>& order = Order(view);
  std::vector<std::string> hosts;
  const size_t first = view.top - std::min(view.top, kSpareRows);
  const size_t last = std::min(order.size(), view.top + view.page + kSpareRows);
  for (size_t i = first; i < last; ++i) {
    const std::string& host = nodes_[order[i]].host;
    if (CanBeAsked(host)) hosts.push_back(host);
  }
  return hosts;
}

void Model::AddRows(const View& view, std::vector<Ask>& out) {
  Ask rows{Ask::Kind::kRows, std::string(kQueryTarget), "", {}, view.sort};
  if (!AllRows(view)) {
    rows.hosts = ShownHosts(view);
    if (rows.hosts.empty()) return;
  }
  rows.body = QueryBody(WantedOf(false), TickSpan(), rows.hosts, true);
  Add(std::move(rows), out);
}

// Also where rows stand by name: who stands out is said above them all the same.
void Model::AddOrder(const View& view, Nanos now, std::vector<Ask>& out) {
  if (AllRows(view) || view.level != Level::kNodes) return;
  const bool due = now >= order_due_;
  const auto add = [&](Kind kind, Column column) {
    const std::vector<Wanted> wanted = WantedOf(column);
    if (wanted.empty()) return;
    Add({kind, std::string(kQueryTarget), QueryBody(wanted, TickSpan(), {}, true), {}, column},
        out);
  };
  if ((due || ordered_by_ != view.sort) && !Pending(Kind::kOrder)) {
    order_due_ = now + Stretched(interval(), nodes_.size());
    add(Kind::kOrder, view.sort);
  }
  const std::vector<Column> others = OthersThan(view.sort);
  if (!due || others.empty() || Pending(Kind::kOthers)) return;
  add(Kind::kOthers, others[next_other_++ % others.size()]);
}

void Model::AddRanks(const View& view, std::vector<Ask>& out) {
  if (!CanBeAsked(view.host)) return;
  std::vector<Wanted> wanted = WantedOf(true);
  if (Has(kTaskCore)) wanted.push_back({std::string(kTaskCore), true, false, false, {}});
  for (Wanted& one : wanted) one.by = {"task"};
  if (!wanted.empty()) {
    Add({Ask::Kind::kRanks,
         std::string(kQueryTarget),
         QueryBody(wanted, TickSpan(), {view.host}, true),
         {view.host},
         view.sort},
        out);
  }
  if (view.level != Level::kCores || !Has(kCoreCpu)) return;
  const Wanted cores{std::string(kCoreCpu), false, true, false, {"cpu", "mode"}};
  Add({Ask::Kind::kCores,
       std::string(kQueryTarget),
       QueryBody({cores}, TickSpan(), {view.host}, true),
       {view.host},
       view.sort},
      out);
}

void Model::AddSeries(const View& view, size_t width, Nanos now, std::vector<Ask>& out) {
  if (!view.plot || width == 0 || Pending(Kind::kSeries) || Pending(Kind::kLimits)) return;
  const std::string host = PlottedHost(view);
  const std::string rank = PlottedRank(view);
  const std::string about = std::string(InfoOf(view.sort).title) + "\n" + host + "\n" + rank;
  if (about != series_of_) {
    series_of_ = about;
    series_ = {view.sort, host, rank, job_.start, now, {}, false};
    ++version_;
  } else if (now < series_due_) {
    return;
  }
  series_due_ = now + kSecond;
  std::vector<Wanted> wanted = WantedOf(view.sort);
  if (wanted.empty() || (!host.empty() && !CanBeAsked(host))) return;
  // Whole seconds, of which the points of the node's metrics lie on the same times.
  const Nanos period = std::max(interval(), job_.period);
  const Nanos least = std::max<Nanos>(now - job_.start, 0) / static_cast<Nanos>(width);
  Span span;
  span.start = job_.start;
  span.interval = std::max<Nanos>((least + period - 1) / period, 1) * period;
  series_due_ = now + span.interval;
  if (!rank.empty()) {
    for (Wanted& one : wanted) one.by = {"task"};
  }
  std::vector<std::string> hosts;
  if (!host.empty()) hosts.push_back(host);
  Add({Ask::Kind::kSeries, std::string(kQueryTarget), QueryBody(wanted, span, hosts, false), hosts,
       view.sort, rank},
      out);
}

// Asked once for all that fell silent, and now and then again.
void Model::AddSilent(Nanos now, std::vector<Ask>& out) {
  if (!look_for_silent_ || now < silent_due_ || !Has(kSamples)) return;
  look_for_silent_ = false;
  silent_due_ = now + kSilentEvery;
  std::vector<std::string> hosts;
  for (const Node& node : nodes_) {
    if (node.silent && node.newest == 0 && CanBeAsked(node.host) && hosts.size() < kAllRows) {
      hosts.push_back(node.host);
    }
  }
  if (hosts.empty()) return;
  Span span;
  span.start = job_.start;
  span.interval = std::max((now - job_.start) / kSilentPoints / kSecond * kSecond,
                           std::max(job_.period, kSecond));
  span.latest = true;
  const Wanted samples{std::string(kSamples), false, true, false, {}};
  Add({Ask::Kind::kSilent, std::string(kQueryTarget), QueryBody({samples}, span, hosts, true),
       hosts, Column::kCpu},
      out);
}

void Model::AddTick(const View& view, Nanos now, std::vector<Ask>& out) {
  tick_due_ = now + interval();
  last_tick_ = now;
  const std::vector<Wanted> whole = WantedOf(false);
  if (!whole.empty()) {
    if (!AllRows(view)) {
      Add({Ask::Kind::kTotals,
           std::string(kQueryTarget),
           QueryBody(whole, TickSpan(), {}, false),
           {},
           view.sort},
          out);
    }
    AddRows(view, out);
    AddOrder(view, now, out);
    if (view.level != Level::kNodes) AddRanks(view, out);
  }
  Add({Ask::Kind::kAlarms, "/alarms", "", {}, view.sort}, out);
}

std::vector<Ask> Model::Due(const View& view, size_t width, Nanos now) {
  std::vector<Ask> out;
  if (ended()) return out;
  if (now >= profile_due_ && !Pending(Kind::kProfile)) {
    profile_due_ =
        now + Stretched(columns().empty() ? kProfileAtFirst : kProfileEvery, nodes_.size());
    Add({Ask::Kind::kProfile,
         "/api/v1/profile?job=" + serve::PercentEncode(id_),
         "",
         {},
         view.sort},
        out);
  }
  if (!known_) return out;
  std::vector<Wanted> limits;
  for (const std::string_view metric : kLimits) {
    if (Has(metric)) limits.push_back({std::string(metric), false, false, false, {}});
  }
  if (!limits.empty() && !Pending(Kind::kLimits) &&
      (now >= limits_due_ || limits_of_ != nodes_.size())) {
    limits_due_ = now + kLimitsEvery;
    limits_of_ = nodes_.size();
    Span span;
    span.ago = 2 * std::max(job_.period, 5 * kSecond) + kSecond;
    span.all = true;
    Add({Ask::Kind::kLimits,
         std::string(kQueryTarget),
         QueryBody(limits, span, {}, true),
         {},
         view.sort},
        out);
  }
  // What is looked at now is asked for at once; the answer is shown whole.
  const std::string shown = std::to_string(static_cast<int>(view.level)) + view.host;
  const std::string window = std::to_string(view.top) + "\n" + view.filter;
  if (shown != shown_) tick_due_ = 0;
  if (nodes_.size() > kAllRows && view.level == Level::kNodes && window != window_) {
    tick_due_ = std::min(tick_due_, last_tick_ + kScrollEvery);
  }
  if (now >= tick_due_ && !TickPending()) {
    shown_ = shown;
    window_ = window;
    AddTick(view, now, out);
  }
  AddSeries(view, width, now, out);
  AddSilent(now, out);
  return out;
}

Nanos Model::NextDue(const View& view) const {
  if (ended()) return INT64_MAX;
  Nanos next = Pending(Kind::kProfile) ? INT64_MAX : profile_due_;
  if (known_ && !TickPending()) next = std::min(next, tick_due_);
  if (known_ && view.plot && !Pending(Kind::kSeries)) next = std::min(next, series_due_);
  return next;
}

bool Model::TickPending() const {
  return Pending(Kind::kTotals) || Pending(Kind::kRows) || Pending(Kind::kRanks) ||
         Pending(Kind::kCores) || Pending(Kind::kLimits);
}

void Model::End(const JobDescription& job, Nanos now) {
  job_ = job;
  ended_at_ = job.end != 0 ? job.end : now;
  problem_.clear();
  silent_since_ = 0;
  known_ = true;
  ++version_;
}

void Model::Take(const Ask& ask, const Result<std::string>& answer, Nanos now) {
  pending_.reset(static_cast<size_t>(ask.kind));
  if (ended()) return;
  ++version_;
  const Status taken = !answer.ok()                 ? answer.status()
                       : ask.kind == Kind::kProfile ? TakeProfile(*answer, now)
                                                    : TakeLines(ask, *answer, now);
  if (taken.ok()) {
    silent_since_ = 0;
    problem_.clear();
    return;
  }
  if (silent_since_ == 0) silent_since_ = now;
  problem_ = taken.message();
}

Status Model::TakeLines(const Ask& ask, const std::string& answer, Nanos now) {
  if (ask.kind == Kind::kAlarms) {
    Result<std::vector<Alarm>> alarms = ParseAlarms(answer);
    if (!alarms.ok()) return alarms.status();
    alarms_ = *std::move(alarms);
    return {};
  }
  const Result<std::vector<Line>> lines = ParseLines(answer);
  if (!lines.ok()) return lines.status();
  switch (ask.kind) {
    case Kind::kLimits:
      TakeLimits(*lines);
      break;
    case Kind::kTotals:
      TakeTotals(*lines);
      break;
    case Kind::kRows:
      TakeRows(ask, *lines, now);
      break;
    case Kind::kOrder:
    case Kind::kOthers:
      TakeOrder(ask, *lines, now);
      break;
    case Kind::kRanks:
      TakeRanks(ask, *lines);
      break;
    case Kind::kCores:
      TakeCores(*lines);
      break;
    case Kind::kSeries:
      TakeSeries(ask, *lines);
      break;
    case Kind::kSilent:
      TakeSilent(*lines);
      break;
    default:
      break;
  }
  return {};
}

}  // namespace sonde::cli::top
