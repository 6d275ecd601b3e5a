#include "daemon/head/answers/node_questions.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/log.h"
#include "series/query/aggregate.h"
#include "series/query/steps.h"

namespace sonde::head {
namespace {

// Whether the query's filters accept series of that host, as far as they are about hosts.
class HostFilter {
 public:
  explicit HostFilter(const QuerySpec& spec) {
    spec_.metric = spec.metric;
    for (const TagFilter& filter : spec.filters) {
      if (filter.key == "host") spec_.filters.push_back(filter);
    }
    const Result<SeriesFilter> made = SeriesFilter::Make(spec_);
    if (made.ok()) filter_ = *made;
  }
  bool Accepts(const std::string& host) const {
    return !filter_ || filter_->Matches(spec_.metric, {{"host", host}});
  }

 private:
  QuerySpec spec_;
  std::optional<SeriesFilter> filter_;
};

// The hosts as a filter.
TagFilter Named(TagFilter::Type type, const std::set<std::string>& hosts) {
  TagFilter filter{type, "host", "", false};
  for (const std::string& host : hosts) {
    if (!filter.pattern.empty()) filter.pattern += '|';
    filter.pattern += host;
  }
  return filter;
}

// For the points of every series of these hosts.
QuerySpec PointsOf(const QuerySpec& spec, const std::set<std::string>& hosts) {
  const TimeRange range = DataRange(spec);
  QuerySpec raw;
  raw.metric = spec.metric;
  raw.aggregator = Aggregator::kNone;
  raw.filters = spec.filters;
  raw.filters.push_back(Named(TagFilter::Type::kLiteralOr, hosts));
  raw.explicit_tags = spec.explicit_tags;
  raw.start = range.first;
  raw.end = range.last;
  return raw;
}

// Those whose daemon was started anew and that the question is about.
std::set<std::string> AnewOf(const StepHosts& hosts, const QuerySpec& spec) {
  std::set<std::string> anew;
  if (hosts.anew().empty()) return anew;
  const HostFilter filter(spec);
  for (const auto& [host, daemons] : hosts.anew()) {
    if (filter.Accepts(host)) anew.insert(anew.end(), host);
  }
  return anew;
}

// For everything but the series of these hosts.
QuerySpec AllBut(const QuerySpec& spec, const std::set<std::string>& hosts) {
  QuerySpec all = spec;
  if (!hosts.empty()) all.filters.push_back(Named(TagFilter::Type::kNotLiteralOr, hosts));
  return all;
}

// Whether nodes take questions that name so many hosts. They pass over one that is too long, and
// the question would wait for all of them.
Status CheckNamed(const QuerySpec& spec, const std::set<std::string>& hosts) {
  QuerySpec named = AllBut(spec, hosts);  // as long as any of them, with a downsample
  if (!named.downsample) named.downsample.emplace();
  std::string bytes;
  EncodeQuery(named, bytes);
  if (named.filters.size() <= kMaxFilters && bytes.size() <= tree::kMaxQueryBytes &&
      named.filters.back().pattern.size() <= kMaxPatternLength) {
    return {};
  }
  return {Code::kLimit,
          fmt::format("the daemons of {} hosts were started anew, more than a question to the "
                      "nodes can name beside its other filters: ask for fewer hosts",
                      hosts.size())};
}

// For the first or last point that each series of these hosts has before the range.
QuerySpec PointsBefore(const QuerySpec& points, const StepHosts& hosts,
                       const std::set<std::string>& anew, Aggregator which) {
  QuerySpec before = points;
  before.downsample = Downsample{0, which, Downsample::Fill::kNone};
  before.end = points.start - 1;
  for (const std::string& host : anew) {
    before.start = std::min(before.start, hosts.anew().at(host).first - 1);
  }
  return before;
}

// The points of each group of an answer that keeps every series, behind those that are there, at
// time_of(TAGS, TIME).
template <typename TimeOf>
void AddPoints(const QuerySpec& spec, const QueryPart& part, const TimeOf& time_of,
               std::vector<SeriesData>& series) {
  std::map<Tags, size_t> places;
  for (size_t i = 0; i < series.size(); ++i) places.emplace(series[i].series.tags, i);
  for (const GroupPart& group : part.groups) {
    const auto [at, is_new] = places.try_emplace(group.tags, series.size());
    if (is_new) series.emplace_back();
    SeriesData& one = series[at->second];
    one.series.metric.name = spec.metric;
    one.series.metric.type = group.counts ? MetricType::kCounter : MetricType::kGauge;
    one.series.tags = group.tags;
    for (size_t i = 0; i < group.times.size(); ++i) {
      if (!group.points[i]) continue;
      one.points.push_back({time_of(group.tags, group.times[i]), group.values.Get(i)});
    }
  }
}

// Lets what is stored go on with what the newer daemons have told: of the same times the newer
// daemon's own points are the better ones, for stored ones may be thinned.
void GoOnWith(const std::vector<SeriesData>& told, std::vector<SeriesData>& stored) {
  std::map<Tags, size_t> places;
  for (size_t i = 0; i < stored.size(); ++i) places.emplace(stored[i].series.tags, i);
  for (const SeriesData& one : told) {
    const auto at = places.find(one.series.tags);
    if (at == places.end()) {
      stored.push_back(one);
    } else if (!one.points.empty()) {
      std::vector<Point>& points = stored[at->second].points;
      std::erase_if(points, [&](const Point& p) { return p.time >= one.points.front().time; });
      points.insert(points.end(), one.points.begin(), one.points.end());
    }
  }
}

tree::NodeSet Both(const tree::NodeSet& a, const tree::NodeSet& b) {
  return a.Without(a.Without(b));
}

}  // namespace

// Only who has answered each of the questions about them has told all.
void NodeQuestions::Asked::AnsweredOfAnew(const tree::NodeSet& who) {
  who_anew = who_anew ? Both(*who_anew, who) : who;
}

struct NodeQuestions::Outcome {
  uint32_t answered = 0;
  uint32_t expected = 0;
  std::vector<uint32_t> missing;
  bool any_stored = false;
  std::vector<QueryResult> results;
};

// What the head answers from in the place of nodes that are gone.
struct NodeQuestions::Stored {
  std::set<std::string> hosts;
  std::vector<uint32_t> nodes;  // theirs
  uint32_t ended = 0;           // nodes that said goodbye, of all that are gone
};

void NodeQuestions::Ask(Question question) {
  auto asked = std::make_shared<Asked>();
  asked->question = std::move(question);
  asked->grid = asked->question.grid;
  {
    const std::lock_guard lock(mutex_);
    if (travelling_ >= most_) return waiting_.push_back(std::move(asked));
    ++travelling_;
  }
  Round(asked);
}

void NodeQuestions::Send(const AskedPtr& asked, QuerySpec spec, QueryGrid grid,
                         std::function<void(NodeQuestions&, tree::Gathered&)> then) {
  nodes_->Ask(std::move(spec), std::move(grid),
              [weak = weak_from_this(), asked, then = std::move(then)](tree::Gathered answer) {
                const std::shared_ptr<NodeQuestions> self = weak.lock();
                if (!self) return;
                if (asked->question.at_once && self->IsSmall(answer)) return then(*self, answer);
                const auto gathered = std::make_shared<tree::Gathered>(std::move(answer));
                self->Do([raw = self.get(), then, gathered] { then(*raw, *gathered); });
              });
}

void NodeQuestions::Do(std::function<void()> job) {
  executor_ ? executor_(std::move(job)) : worker_.Do(std::move(job));
}

// Of all nodes: then nothing is read that is stored.
bool NodeQuestions::IsSmall(const tree::Gathered& answer) const {
  constexpr size_t kMostPoints = 16384;
  const size_t nodes = record_.Job()->nodes.size();
  // Of more nodes who finishes it may have to look at each.
  return answer.nodes == nodes && nodes < HostsNow::kMany && answer.part.Points() <= kMostPoints;
}

void NodeQuestions::Round(const AskedPtr& asked) {
  ++asked->rounds;
  const QuerySpec& spec = asked->question.spec;
  asked->hosts = hosts_->Get();
  asked->anew = AnewOf(*asked->hosts, spec);
  asked->of_anew.clear();
  asked->who_anew.reset();
  if (asked->anew.empty()) return SendToAll(asked);
  if (const Status bad = CheckNamed(spec, asked->anew); !bad.ok()) {
    // Later: the next one that waits may fail as well, and begins within this one's end.
    return Do([this, asked, bad] {
      tree::Gathered nothing;
      Outcome outcome;
      Finish(asked, bad, nothing, outcome);
    });
  }
  const bool holds = query_steps::HoldsCounters(spec) && record_.Counts(spec.metric);
  holds ? AskBefore(asked, Aggregator::kFirst) : AskForPoints(asked);
}

void NodeQuestions::AskBefore(const AskedPtr& asked, Aggregator which) {
  const QuerySpec points = PointsOf(asked->question.spec, asked->anew);
  QuerySpec before = PointsBefore(points, *asked->hosts, asked->anew, which);
  const Nanos end = before.end;
  if (before.start >= end) return AskForPoints(asked);
  Send(asked, std::move(before), {},
       [asked, which, end](NodeQuestions& self, tree::Gathered& answer) {
         self.OnBefore(asked, which, end, answer);
       });
}

void NodeQuestions::OnBefore(const AskedPtr& asked, Aggregator which, Nanos end,
                             tree::Gathered& answer) {
  Outcome outcome;
  if (!answer.failure.ok()) return Finish(asked, answer.failure, answer, outcome);
  asked->AnsweredOfAnew(answer.who);
  const bool first = which == Aggregator::kFirst;
  const auto& anew = asked->hosts->anew();
  const auto time_of = [&](const Tags& tags, Nanos) {
    if (!first) return end;
    const std::string* host = tags.Find("host");
    const auto at = host == nullptr ? anew.end() : anew.find(*host);
    return at == anew.end() ? Nanos{0} : at->second.newest;
  };
  AddPoints(asked->question.spec, answer.part, time_of, asked->of_anew);
  first ? AskBefore(asked, Aggregator::kLast) : AskForPoints(asked);
}

void NodeQuestions::AskForPoints(const AskedPtr& asked) {
  Send(asked, PointsOf(asked->question.spec, asked->anew), {},
       [asked](NodeQuestions& self, tree::Gathered& answer) { self.OnPoints(asked, answer); });
}

void NodeQuestions::OnPoints(const AskedPtr& asked, tree::Gathered& answer) {
  Outcome outcome;
  if (!answer.failure.ok()) return Finish(asked, answer.failure, answer, outcome);
  asked->AnsweredOfAnew(answer.who);
  const auto time_of = [](const Tags&, Nanos time) { return time; };
  AddPoints(asked->question.spec, answer.part, time_of, asked->of_anew);
  SendToAll(asked);
}

void NodeQuestions::SendToAll(const AskedPtr& asked) {
  Send(asked, AllBut(asked->question.spec, asked->anew), asked->grid,
       [asked](NodeQuestions& self, tree::Gathered& answer) { self.OnGathered(asked, answer); });
}

void NodeQuestions::OnGathered(const AskedPtr& asked, tree::Gathered& answer) {
  Outcome outcome;
  Result<bool> complete = false;
  try {
    complete = answer.failure.ok() ? Complete(*asked, answer, outcome) : answer.failure;
  } catch (const std::exception& e) {
    log::Error("a question by host: {}", e.what());
    complete =
        Status(Code::kInternal, fmt::format("put the nodes' answers together: {}", e.what()));
  }
  if (complete.ok() && !*complete) return Round(asked);
  Finish(asked, complete.status(), answer, outcome);
}

Result<bool> NodeQuestions::Complete(Asked& asked, tree::Gathered& answer, Outcome& outcome) const {
  constexpr int kMaxRounds = 3;  // a node that ends meanwhile has one more
  const QuerySpec& spec = asked.question.spec;
  const Status again(
      Code::kUnavailable,
      "the times of the nodes' points changed with each question; ask again, or with "
      "a downsample");
  HostsNow::Hosts hosts = hosts_->Get();
  WhoAnswers told = SortOut(asked, *hosts, answer);
  if (HasChanged(*hosts, answer, told)) {
    hosts = hosts_->GetNewest();
    told = SortOut(asked, *hosts, answer);
  }
  if (hosts != asked.hosts && AnewOf(*hosts, spec) != asked.anew) {
    if (asked.rounds >= kMaxRounds) return again;
    return false;
  }
  AddStored(asked, *hosts, std::move(told), answer, outcome);
  if (!answer.failure.ok()) return answer.failure;
  std::vector<Nanos> odd;
  if (answer.nodes > 1 || outcome.any_stored) odd = OddTimes(spec, answer.part, asked.grid);
  if (odd.empty()) {
    if (!asked.question.part_callback) outcome.results = FinishPart(spec, answer.part);
    return true;
  }
  if (asked.rounds >= kMaxRounds) return again;
  if (const Status full = AddTimes(spec, odd, asked.grid); !full.ok()) return full;
  return false;
}

// Whether something that the answer depends on is no longer what the hosts were made of.
bool NodeQuestions::HasChanged(const StepHosts& hosts, const tree::Gathered& answer,
                               const WhoAnswers& told) const {
  if (answer.nodes > answer.who.size()) return true;  // who knows who they are
  if (!answer.who.empty() && answer.who.last() >= hosts.nodes()) return true;
  const auto job = record_.Job();
  const auto other = [&](uint32_t node) { return !hosts.Is(node, job->nodes[node]); };
  return std::ranges::any_of(told.silent, other) || std::ranges::any_of(told.gone, other);
}

// Everybody hears each question. The values of hosts whose daemon was started anew are in the
// answers to the first ones, and those of all others in the last one.
WhoAnswers NodeQuestions::SortOut(const Asked& asked, const StepHosts& hosts,
                                  const tree::Gathered& answer) {
  const auto unknown = answer.nodes - static_cast<uint32_t>(answer.who.size());
  if (asked.anew.empty()) return hosts.SortOut(answer.who, unknown);
  tree::NodeSet anew;
  for (const std::string& host : asked.anew) {
    const auto at = hosts.anew().find(host);
    if (at == hosts.anew().end()) continue;
    for (const uint32_t node : at->second.nodes) anew.Add(tree::NodeSet(node));
  }
  tree::NodeSet who = answer.who.Without(anew);
  if (asked.who_anew) who.Add(Both(*asked.who_anew, anew));
  return hosts.SortOut(who, unknown);
}

// Answers for the hosts whose daemons are gone or were started anew, and counts who answered.
void NodeQuestions::AddStored(const Asked& asked, const StepHosts& hosts, WhoAnswers told,
                              tree::Gathered& answer, Outcome& outcome) const {
  const QuerySpec& spec = asked.question.spec;
  outcome.answered = told.answered;
  outcome.expected = told.expected;
  outcome.missing = std::move(told.silent);

  Stored stored = StoredOf(spec, told.gone, outcome.missing);
  stored.hosts.insert(asked.anew.begin(), asked.anew.end());
  Result<std::vector<SeriesData>> series = std::vector<SeriesData>();
  if (!stored.hosts.empty()) {
    series = stored_ != nullptr
                 ? stored_->Read(spec, stored.hosts)
                 : Status(Code::kNotFound, "nothing is stored of nodes that are gone");
  }
  if (series.ok()) {
    outcome.answered += stored.ended;
  } else {
    log::Debug("nodes that are gone: {}", series.status().message());
    series = std::vector<SeriesData>();
    std::vector<uint32_t>& missing = outcome.missing;
    missing.insert(missing.end(), stored.nodes.begin(), stored.nodes.end());
    for (const std::string& host : asked.anew) {
      const std::vector<uint32_t>& nodes = hosts.anew().at(host).nodes;
      missing.insert(missing.end(), nodes.begin(), nodes.end());
    }
  }
  GoOnWith(asked.of_anew, *series);
  if (series->empty()) return;
  outcome.any_stored = true;
  Result<QueryPart> part = EvaluatePart(spec, *std::move(series), &asked.grid);
  answer.failure =
      part.ok() ? MergePart(spec, asked.grid, *std::move(part), answer.part) : part.status();
}

// `gone`: nodes; those that have come back since were not asked. Nobody holds the description while
// the disk is read.
NodeQuestions::Stored NodeQuestions::StoredOf(const QuerySpec& spec,
                                              const std::vector<uint32_t>& gone,
                                              std::vector<uint32_t>& missing) const {
  Stored stored;
  if (gone.empty()) return stored;
  const HostFilter filter(spec);
  const bool holds = query_steps::HoldsCounters(spec) && record_.Counts(spec.metric);
  const Nanos first = DataRange(spec).first;
  const auto job = record_.Job();
  for (const uint32_t node : gone) {
    const NodeInfo& info = job->nodes[node];
    if (!info.IsGone()) {
      missing.push_back(node);
      continue;
    }
    stored.ended += info.lost ? 0 : 1;
    if ((!holds && info.left < first) || !filter.Accepts(info.host)) continue;
    stored.hosts.insert(info.host);
    stored.nodes.push_back(node);
  }
  return stored;
}

void NodeQuestions::Finish(const AskedPtr& asked, const Status& failure, tree::Gathered& answer,
                           Outcome& outcome) {
  const Question& question = asked->question;
  const std::string job = record_.Job()->id.ToString();
  Next();
  if (question.part_callback) {
    if (!failure.ok()) return question.part_callback(failure);
    web::PartAnswer part{std::move(answer.part), outcome.answered, outcome.expected};
    TagPart(query_steps::kJobTag, job, part.part);
    return question.part_callback(std::move(part));
  }
  if (!failure.ok()) return question.callback(failure);
  Answer results;
  results.answer = {std::move(outcome.results), outcome.answered, outcome.expected};
  results.missing = std::move(outcome.missing);
  for (QueryResult& result : results.answer.results) result.tags.Set(query_steps::kJobTag, job);
  question.callback(std::move(results));
}

void NodeQuestions::Next() {
  AskedPtr next;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      --travelling_;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  Round(next);
}

}  // namespace sonde::head
