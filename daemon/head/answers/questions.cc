#include "daemon/head/answers/questions.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "core/bytes.h"
#include "core/clocks.h"
#include "core/log.h"
#include "daemon/head/answers/answer_bytes.h"
#include "daemon/head/answers/step_question.h"
#include "libclient/ask/layout.h"
#include "series/alarm/rule.h"
#include "series/alias/aliases.h"

namespace sonde::head {

using client::AskKind;

namespace {

void DropBefore(web::Answer& answer, Nanos start) {
  for (QueryResult& result : answer.results) {
    std::erase_if(result.points, [&](const Point& p) { return p.time < start; });
  }
  std::erase_if(answer.results, [](const QueryResult& r) { return r.points.empty(); });
}

}  // namespace

Questions::Questions(Loop& loop, std::shared_ptr<const LiveSource> source, const StepRecord& record,
                     Nanos period, Send send)
    : loop_(loop),
      source_(std::move(source)),
      record_(record),
      period_(period),
      send_(std::move(send)) {}

Questions::~Questions() = default;

void Questions::Answer(uint32_t node, uint64_t id, AskKind kind, std::string body) {
  if (body.size() > client::kMaxAnswer) {
    kind = AskKind::kFailed;
    body = EncodeFailure(
        {Code::kLimit, fmt::format("the answer has {} bytes, more than {}; ask for a shorter "
                                   "range, fewer series or a downsample",
                                   body.size(), client::kMaxAnswer)});
  }
  send_(node, {id, static_cast<uint32_t>(kind), std::move(body)});
}

void Questions::Fail(uint32_t node, uint64_t id, const Status& why) {
  Answer(node, id, AskKind::kFailed, EncodeFailure(why));
}

// --- Questions ---

Status Questions::OnAsk(uint32_t node, const tree::AskMessage& ask) {
  const auto kind = static_cast<AskKind>(ask.kind);
  if (kind == AskKind::kCancel) {
    OnCancel({node, ask.id});
    return {};
  }
  if (kind == AskKind::kList) {
    if (waiting_ >= kMaxWaiting) {
      Fail(node, ask.id, {Code::kLimit, "too many questions wait for an answer"});
      return {};
    }
    OnList(node, ask.id, ask.body);
    return {};
  }
  if (kind == AskKind::kAlarm) {
    OnAlarm(node, ask.id, ask.body);
    return {};
  }
  if (kind != AskKind::kQuery && kind != AskKind::kSubscribe) {
    return {Code::kCorrupt, fmt::format("a question of kind {}", ask.kind)};
  }
  Result<QuerySpec> spec = DecodeQuery(ask.body);
  if (!spec.ok()) return spec.status();
  if (kind == AskKind::kQuery) {
    OnQuery(node, ask.id, *spec);
  } else {
    OnSubscribe(node, ask, *std::move(spec));
  }
  return {};
}

std::function<void(std::function<void()>)> Questions::Poster() {
  return [weak = std::weak_ptr(alive_), &loop = loop_](std::function<void()> task) {
    loop.Post([weak, task = std::move(task)] {
      if (!weak.expired()) task();
    });
  };
}

void Questions::Query(Where where, const QuerySpec& spec, Make make,
                      std::function<void(const Body&)> done) {
  ++waiting_;
  auto ask = [this, spec, make = std::move(make), done = std::move(done), source = source_,
              &record = record_, period = period_, post = Poster(),
              loop = std::this_thread::get_id(), weak = std::weak_ptr(alive_)] {
    AskStep(source, record, period, spec,
            [this, make, done, post, loop, weak](Result<web::Answer> answer) {
              auto finish = [this, done, body = make(std::move(answer))] {
                --waiting_;
                done(body);
              };
              // This runs on the worker or on the loop: only the loop knows whether `this` still
              // exists, and whether it is asking this very moment.
              const bool within = std::this_thread::get_id() == loop && !weak.expired() && asking_;
              within ? finish() : post(std::move(finish));
            });
  };
  if (where == Where::kWorker) return worker_.Do(std::move(ask));
  const Nanos begin = Clock::System().Monotonic();
  asking_ = true;
  ask();
  asking_ = false;
  share_.Take(begin, Clock::System().Monotonic());
}

void Questions::OnQuery(uint32_t node, uint64_t id, const QuerySpec& spec) {
  if (waiting_ >= kMaxWaiting) {
    return Fail(node, id, {Code::kLimit, "too many questions wait for an answer"});
  }
  auto make = [start = spec.start, metric = spec.metric,
               &record = record_](Result<web::Answer> answer) -> Body {
    if (!answer.ok()) return {AskKind::kFailed, EncodeFailure(answer.status())};
    DropBefore(*answer, start);
    if (!answer->results.empty() || HasMetric(record, metric)) {
      return {AskKind::kAnswer, EncodeAnswer(*answer, false)};
    }
    return {AskKind::kFailed,
            EncodeFailure(
                {Code::kNotFound, fmt::format("the step has no metric '{}' so far", metric)})};
  };
  const bool at_once =
      share_.IsLeft(Clock::System().Monotonic()) && TakesLittleTime(record_, period_, spec);
  Query(at_once ? Where::kLoop : Where::kWorker, spec, std::move(make),
        [this, node, id](const Body& body) { Answer(node, id, body.kind, body.bytes); });
}

void Questions::OnList(uint32_t node, uint64_t id, const std::string& metric) {
  worker_.Do([this, node, id, metric, &record = record_, post = Poster()] {
    std::vector<Series> series = *record.AllSeries();
    std::vector<Series> aliases = AliasSeries(series);
    series.insert(series.end(), std::make_move_iterator(aliases.begin()),
                  std::make_move_iterator(aliases.end()));
    if (!metric.empty()) {
      std::erase_if(series, [&](const Series& s) { return s.metric.name != metric; });
    }
    post([this, node, id, body = EncodeListing(series)] {
      Answer(node, id, AskKind::kListing, body);
    });
  });
}

void Questions::OnAlarm(uint32_t node, uint64_t id, std::string_view body) {
  ByteReader in(body);
  const std::string_view name = in.Text(client::kMaxAlarmName);
  const std::string_view text = in.Text(client::kMaxAlarmRule);
  const Result<alarms::Rule> rule =
      in.done() ? alarms::ParseRule(name, text) : Status(Code::kCorrupt, "an alarm is damaged");
  const Status status = rule.ok() ? source_->AddAlarm(record_.Job()->id, *rule) : rule.status();
  // Not kBusy: waiting would not help.
  if (status.code() == Code::kBusy) {
    return Fail(node, id, {Code::kInvalid, std::string(status.message())});
  }
  if (!status.ok()) return Fail(node, id, status);
  Answer(node, id, AskKind::kAnswer, "");
}

// --- Subscriptions ---

void Questions::OnSubscribe(uint32_t node, const tree::AskMessage& ask, QuerySpec spec) {
  const Subscriber who{node, ask.id};
  const bool known = subscriptions_.contains(ask.body);
  if (subscribers_.contains(who) || subscribers_.size() >= kMaxSubscribers ||
      (!known && subscriptions_.size() >= kMaxSubscriptions)) {
    return Fail(
        node, ask.id,
        {Code::kLimit, fmt::format("the step has {} subscriptions already", subscribers_.size())});
  }
  Subscription& subscription = subscriptions_[ask.body];
  if (!known) {
    subscription.spec = std::move(spec);
    subscription.serial = next_serial_++;
  }
  subscription.subscribers.insert(who);
  subscribers_[who] = ask.body;
  Answer(node, ask.id, AskKind::kAccepted, "");
}

void Questions::OnCancel(const Subscriber& who) {
  const auto at = subscribers_.find(who);
  if (at == subscribers_.end()) return;
  const auto subscription = subscriptions_.find(at->second);
  subscription->second.subscribers.erase(who);
  if (subscription->second.subscribers.empty()) subscriptions_.erase(subscription);
  subscribers_.erase(at);
}

void Questions::OnGone(uint32_t node) {
  for (auto at = subscribers_.lower_bound({node, 0}); at != subscribers_.end();) {
    if (at->first.first != node) return;
    const Subscriber who = (at++)->first;
    OnCancel(who);
  }
}

void Questions::OnRow(Nanos tick, bool late) {
  if (tick % period_ != 0) return;  // what nodes had when they ended
  for (auto& [key, subscription] : subscriptions_) {
    subscription.pending.emplace_back(tick, late);
    if (subscription.pending.size() > kMaxPending) subscription.pending.pop_front();
    if (!subscription.asked) AskNext(key, subscription);
  }
}

void Questions::AskNext(const std::string& key, Subscription& subscription) {
  if (subscription.pending.empty()) return;
  const auto [tick, late] = subscription.pending.front();
  subscription.pending.pop_front();
  subscription.asked = true;
  QuerySpec spec = subscription.spec;
  spec.start = tick;
  spec.end = tick + period_ - 1;  // the bucket of this tick alone
  auto make = [tick = tick, late = late](Result<web::Answer> answer) -> Body {
    if (!answer.ok()) {
      log::Debug("subscription: {}", answer.status().message());
      return {};
    }
    DropBefore(*answer, tick);
    if (answer->results.empty()) return {};
    return {AskKind::kPoints, EncodeAnswer(*answer, late)};
  };
  // All subscriptions are asked at the same tick.
  Query(
      Where::kWorker, spec, std::move(make),
      [this, key, serial = subscription.serial](const Body& body) { OnValues(key, serial, body); });
}

void Questions::OnValues(const std::string& key, uint64_t serial, const Body& body) {
  const auto at = subscriptions_.find(key);
  if (at == subscriptions_.end() || at->second.serial != serial) return;  // cancelled meanwhile
  Subscription& subscription = at->second;
  subscription.asked = false;
  if (body.bytes.size() <= client::kMaxAnswer && !body.bytes.empty()) {
    for (const auto& [node, id] : subscription.subscribers) {
      Answer(node, id, body.kind, body.bytes);
    }
  }
  AskNext(key, subscription);
}

}  // namespace sonde::head
