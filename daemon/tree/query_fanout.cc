#include "daemon/tree/query_fanout.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "daemon/link/send.h"

namespace sonde::tree {
namespace {

constexpr size_t kRecent = 256;
constexpr uint32_t kMinPatienceMs = 1;
constexpr uint32_t kMaxPatienceMs = 60'000;

// A child's answer has to be here, merged from its own children's, before its parent's time is up.
Nanos PatienceOfChildren(Nanos own) { return own - own / 4; }

// As a reply of a peer says it.
Status FailureOf(const ReplyMessage& reply) {
  const bool known = reply.code <= static_cast<uint32_t>(Code::kInternal);
  return {known ? static_cast<Code>(reply.code) : Code::kInternal, reply.failure};
}

}  // namespace

std::string Encode(const Question& question) {
  QueryMessage message;
  message.id = question.id;
  EncodeQuery(question.spec, message.spec);
  EncodeGrid(question.grid, message.grid);
  message.patience_ms = static_cast<uint32_t>(question.patience / kMillisecond);
  return Encode(message);
}

Status Decode(std::string_view bytes, Question& question) {
  QueryMessage message;
  SONDE_RETURN_IF_ERROR(Decode(bytes, message));
  question.id = message.id;
  Result<QuerySpec> spec = DecodeQuery(message.spec);
  if (!spec.ok()) return spec.status();
  question.spec = *std::move(spec);
  Result<QueryGrid> grid = DecodeGrid(message.grid);
  if (!grid.ok()) return grid.status();
  question.grid = *std::move(grid);
  question.patience =
      std::clamp(message.patience_ms, kMinPatienceMs, kMaxPatienceMs) * kMillisecond;
  return {};
}

ReplyMessage ToReply(const Gathered& gathered) {
  ReplyMessage reply;
  reply.id = gathered.id;
  reply.nodes = gathered.nodes;
  Status failure = gathered.failure;
  if (failure.ok()) {
    Result<std::string> bytes = EncodePart(gathered.part);
    if (bytes.ok()) {
      reply.part = *std::move(bytes);
    } else {
      failure = bytes.status();
    }
  }
  reply.code = static_cast<uint32_t>(failure.code());
  reply.failure = failure.message().substr(0, 512);
  return reply;
}

void SendReply(Link& parent, const Gathered& gathered) {
  AnsweredMessage answered;
  answered.id = gathered.id;
  ByteWriter w(answered.nodes);
  gathered.who.Encode(w);
  Send(parent, Type::kAnswered, Encode(answered));
  Send(parent, Type::kReply, Encode(ToReply(gathered)));
}

QueryFanout::~QueryFanout() {
  for (const auto& [id, open] : open_) loop_.Cancel(open.timer);
}

bool QueryFanout::Remember(uint64_t id) {
  if (std::find(recent_.begin(), recent_.end(), id) != recent_.end()) return false;
  recent_.push_back(id);
  if (recent_.size() > kRecent) recent_.pop_front();
  return true;
}

void QueryFanout::Ask(Question question, const std::vector<Link*>& children, std::optional<Own> own,
                      Done done) {
  if (!Remember(question.id)) return done({question.id, 0, {}, {}, EmptyPart(question.spec)});
  if (open_.size() >= kMaxOpen) {
    const Status full(Code::kLimit, fmt::format("{} questions to the nodes are open; ask again "
                                                "when they are answered",
                                                kMaxOpen));
    return done({question.id, 0, {}, full, EmptyPart(question.spec)});
  }
  Open& open = open_[question.id];
  open.answer.id = question.id;
  open.answer.part = EmptyPart(question.spec);
  open.spec = question.spec;
  open.grid = question.grid;
  open.done = std::move(done);
  if (own && own->part.ok()) {
    Merge(open, 1, NodeSet(own->node), *std::move(own->part));
  } else if (own) {
    open.answer.failure = own->part.status();
  }
  const Nanos patience = question.patience;
  question.patience = PatienceOfChildren(patience);
  const std::string bytes = Encode(question);
  for (Link* child : children) {
    if (!open.answer.failure.ok()) break;
    if (Send(*child, Type::kQuery, bytes)) open.waiting.push_back(child);
  }
  if (open.waiting.empty()) return Finish(question.id);
  open.timer = loop_.After(patience, [this, id = question.id] { Finish(id); });
}

Status QueryFanout::OnMessage(const Link& from, Type type, std::string_view payload) {
  if (type == Type::kAnswered) {
    AnsweredMessage answered;
    SONDE_RETURN_IF_ERROR(Decode(payload, answered));
    OnAnswered(from, answered);
    return {};
  }
  ReplyMessage reply;
  SONDE_RETURN_IF_ERROR(Decode(payload, reply));
  OnReply(from, reply);
  return {};
}

// Who is in the answer that comes next.
void QueryFanout::OnAnswered(const Link& from, const AnsweredMessage& answered) {
  const auto at = open_.find(answered.id);
  if (at == open_.end()) return;
  const std::vector<const Link*>& waiting = at->second.waiting;
  if (std::find(waiting.begin(), waiting.end(), &from) == waiting.end()) return;
  NodeSet who;
  ByteReader r(answered.nodes);
  who.Decode(r);
  if (r.ok() && r.left() == 0) at->second.said[&from] = std::move(who);
}

void QueryFanout::OnReply(const Link& from, const ReplyMessage& reply) {
  const auto at = open_.find(reply.id);
  if (at == open_.end() || std::erase(at->second.waiting, &from) == 0) return;
  Open& open = at->second;
  NodeSet who = std::move(open.said[&from]);
  if (who.size() != reply.nodes) who.Clear();
  if (reply.code != 0) {
    open.answer.failure = FailureOf(reply);
  } else if (who.Intersects(open.answer.who)) {
    log::Debug("answer of {}: some of its nodes have answered already", from.peer());
  } else if (Result<QueryPart> part = DecodePart(open.spec, reply.part); part.ok()) {
    Merge(open, reply.nodes, who, *std::move(part));
  } else if (!std::exchange(warned_, true)) {
    log::Warning("answer of {}: {}; it is left out, and further ones are not logged", from.peer(),
                 part.status().message());
  }
  if (open.waiting.empty() || !open.answer.failure.ok()) Finish(reply.id);
}

void QueryFanout::Merge(Open& open, uint32_t nodes, const NodeSet& who, QueryPart part) {
  Gathered& answer = open.answer;
  answer.who.Add(who);
  answer.failure = MergePart(open.spec, open.grid, std::move(part), answer.part);
  if (__builtin_add_overflow(answer.nodes, nodes, &answer.nodes)) answer.nodes = UINT32_MAX;
  held_points_ -= open.points;
  open.points = answer.part.Points();
  held_points_ += open.points;
  if (answer.failure.ok() && held_points_ > kMaxHeldPoints) {
    answer.failure = {Code::kLimit,
                      fmt::format("the questions asked at present have answers of more than {} "
                                  "points; ask again, or for less",
                                  kMaxHeldPoints)};
  }
}

void QueryFanout::OnGone(const Link& child) {
  std::vector<uint64_t> complete;
  for (auto& [id, open] : open_) {
    if (std::erase(open.waiting, &child) != 0 && open.waiting.empty()) complete.push_back(id);
  }
  for (const uint64_t id : complete) Finish(id);
}

void QueryFanout::Finish(uint64_t id) {
  const auto at = open_.find(id);
  if (at == open_.end()) return;
  Open open = std::move(at->second);
  open_.erase(at);
  held_points_ -= open.points;
  loop_.Cancel(open.timer);
  if (!open.answer.failure.ok()) open.answer.part = EmptyPart(open.spec);
  open.done(std::move(open.answer));
}

}  // namespace sonde::tree
