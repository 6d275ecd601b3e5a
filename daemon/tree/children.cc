#include "daemon/tree/children.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/bytes.h"
#include "core/time.h"
#include "series/schema.h"

namespace sonde::tree {
namespace {

uint64_t KeyOf(uint32_t child, size_t stream) { return uint64_t{child} * kStreams + stream; }

}  // namespace

void Children::Add(Link& link, uint32_t index) {
  Child& child = children_[&link];
  child.link = &link;
  child.index = index;
  child.heard = Clock::System().Monotonic();
  child.sender_id = next_sender_++;
  by_sender_[child.sender_id] = &link;
}

void Children::Remove(Link& link) {
  const auto at = children_.find(&link);
  if (at == children_.end()) return;
  KeepLastOwn(at->second);
  StartHandOver(at->second);
  std::erase(with_block_acks_, &at->second);
  std::erase(senders_, &at->second);
  by_sender_.erase(at->second.sender_id);
  children_.erase(at);
  std::erase_if(routes_, [&](const auto& route) { return route.second == &link; });
  queries_.OnGone(link);
}

// To ticks; last values may come for those that do not any more.
bool Children::Contributes(const Child& child) {
  const auto has = [&](Stream s) { return child.streams[static_cast<size_t>(s)].contributor != 0; };
  return has(Stream::kOwn) || has(Stream::kChildren);
}

void Children::UpdateActive(Child& child) {
  const bool active = Contributes(child);
  if (std::exchange(child.active, active) == active) return;
  if (active) {
    active_.push_back(&child);
  } else {
    std::erase(active_, &child);
  }
}

void Children::KeepLastOwn(const Child& child) {
  const StreamState& own = child.streams[static_cast<size_t>(Stream::kOwn)];
  if (own.contributor == 0 || child.own_tick == 0 || child.ended) return;
  if (own.decoder.series() != own.schema->size()) return;  // new series, and no values yet
  if (last_own_.size() >= kMaxLastOwn) last_own_.erase(last_own_.begin());
  last_own_[child.index] = {own.schema, child.own_tick,
                            Clock::System().Now() + clock_offset_ + hand_over_,
                            own.decoder.LastKnown()};
}

void Children::HandOnLost(Nanos row, const NodeSet& nodes) {
  HandOnLostIf(
      [&](uint32_t index, const LastOwn& last) { return last.tick < row && !nodes.Has(index); });
}

void Children::HandOnLost(Nanos now) {
  HandOnLostIf([&](uint32_t, const LastOwn& last) { return last.until < now; });
}

void Children::HandOnLostIf(const std::function<bool(uint32_t index, const LastOwn& last)>& is) {
  for (auto at = last_own_.begin(); at != last_own_.end();) {
    if (!is(at->first, at->second)) {
      ++at;
      continue;
    }
    FrameInfo header;
    header.tick = at->second.tick + 1;
    header.stream = Stream::kEnded;
    header.lost = true;
    header.nodes = NodeSet(at->first);
    const LastOwn last = std::move(at->second);
    at = last_own_.erase(at);
    handlers_.ended(header, last.schema, last.values, {0, 0});
  }
}

void Children::StandInForMissing(Nanos row, const NodeSet& nodes) {
  for (Child* child : active_) {
    const StreamState& own = child->streams[static_cast<size_t>(Stream::kOwn)];
    const bool known = own.contributor != 0 && child->own_tick != 0 && !child->ended &&
                       own.decoder.series() == own.schema->size();
    if (!known || row < child->own_first || nodes.Has(child->index)) continue;
    if (std::exchange(child->stood_in, child->own_tick) == child->own_tick) continue;
    FrameInfo header;
    header.tick = row;
    header.stream = Stream::kEnded;
    header.lost = true;
    header.nodes = NodeSet(child->index);
    handlers_.ended(header, own.schema, own.decoder.LastKnown(), {0, 0});
  }
}

Nanos Children::next_lost() const {
  Nanos next = 0;
  for (const auto& [index, last] : last_own_)
    next = next == 0 ? last.until : std::min(next, last.until);
  return next;
}

void Children::EndStream(Child& child, Stream stream) {
  StreamState& state = child.streams[static_cast<size_t>(stream)];
  const TickMerger::Id contributor = std::exchange(state.contributor, 0);
  if (contributor == 0) return;
  ForgetNewest(KeyOf(child.index, static_cast<size_t>(stream)), contributor);
  merger_.Remove(contributor);
  state.decoder = {};
  UpdateActive(child);
}

// False if a stream goes on as another contributor.
bool Children::ForgetNewest(uint64_t key, TickMerger::Id contributor) {
  const auto newest = newest_.find(key);
  if (newest == newest_.end() || newest->second != contributor) return false;
  newest_.erase(newest);
  return true;
}

// Its first word over the next link may have come before its last over this one.
void Children::StartHandOver(Child& child) {
  for (size_t s = 0; s < kStreams; ++s) {
    const TickMerger::Id contributor = std::exchange(child.streams[s].contributor, 0);
    if (contributor == 0) continue;
    child.streams[s].decoder = {};  // at the head that is a lot of memory for all that move on
    const bool is_newest = ForgetNewest(KeyOf(child.index, s), contributor);
    if (static_cast<Stream>(s) == Stream::kEnded || !is_newest) {
      merger_.Remove(contributor);
    } else {
      merger_.Leave(contributor, Clock::System().Now() + clock_offset_ + hand_over_);
      leaving_[KeyOf(child.index, s)] = contributor;
    }
  }
  child.pending.Clear();  // they come again over the next link
  UpdateActive(child);
}

Status Children::OnMessage(Link& link, Type type, std::string_view payload) {
  const auto at = children_.find(&link);
  if (at == children_.end()) return {Code::kInternal, "message of an unknown child"};
  Child& child = at->second;
  child.heard = Clock::System().Monotonic();
  switch (type) {
    case Type::kSchema:
      return OnSchema(child, payload);
    case Type::kFrame:
      return OnFrames(link, child, payload);
    case Type::kStreamEnd:
      if (payload.size() != 1 || static_cast<uint8_t>(payload[0]) >= kStreams) {
        return {Code::kCorrupt, "end of no stream"};
      }
      EndStream(child, static_cast<Stream>(payload[0]));
      return {};
    case Type::kBlock:
      return OnBlockMessage(link, payload);
    case Type::kMoments:
      return OnMomentsMessage(link, child.index, payload);
    case Type::kLeave:
      StartHandOver(child);
      return {};
    case Type::kReply: {
      ReplyMessage reply;
      SONDE_RETURN_IF_ERROR(Decode(payload, reply));
      queries_.OnReply(link, reply);
      return {};
    }
    default:
      return {Code::kCorrupt, fmt::format("unexpected message of type {}", static_cast<int>(type))};
  }
}

Status Children::OnSchema(Child& child, std::string_view payload) {
  const Result<Stream> stream = StreamOf(payload);
  if (!stream.ok() || static_cast<uint8_t>(payload[0]) >= kStreams) {
    return {Code::kCorrupt, "schema of no stream"};
  }
  const Result<Schema::Ptr> schema = schemas_.Decode(payload.substr(1));
  if (!schema.ok()) return schema.status();
  StreamState& state = child.streams[static_cast<size_t>(*stream)];
  state.schema = *schema;
  state.decoder = {};
  if (state.contributor == 0) {
    // One that comes back over another link is the same contributor: the ticks that waited for it
    // still do. Nobody waits for those that end.
    const auto left = leaving_.extract(KeyOf(child.index, static_cast<size_t>(*stream)));
    const bool back = !left.empty() && merger_.Leave(left.mapped(), 0);
    const Nanos joined =
        *stream == Stream::kEnded ? INT64_MAX : Clock::System().Now() + clock_offset_;
    state.contributor = back ? left.mapped() : merger_.AddContributor(joined);
    newest_[KeyOf(child.index, static_cast<size_t>(*stream))] = state.contributor;
    UpdateActive(child);
  }
  if (*stream != Stream::kEnded) merger_.SetSchema(state.contributor, *schema);
  if (*stream == Stream::kOwn) last_own_.erase(child.index);
  return {};
}

// Several frames may come in one message.
Status Children::OnFrames(Link& link, Child& child, std::string_view payload) {
  ByteReader r(payload);
  while (r.left() > 0) {
    const std::string_view bytes = r.Text(payload.size());
    if (!r.ok()) return {Code::kCorrupt, "message of frames is malformed"};
    SONDE_RETURN_IF_ERROR(OnFrame(child, bytes));
  }
  Settle(link, child, false);
  return {};
}

Status Children::OnFrame(Child& child, std::string_view bytes) {
  const Result<Stream> stream = StreamOf(bytes);
  if (!stream.ok()) return stream.status();
  StreamState& state = child.streams[static_cast<size_t>(*stream)];
  if (state.contributor == 0) return {Code::kCorrupt, "frame without a schema"};
  if (state.decoder.series() != state.schema->size()) state.decoder.Reset(*state.schema);
  const Result<const Frame*> decoded = state.decoder.Decode(bytes);
  if (!decoded.ok()) return decoded.status();
  const Frame& frame = **decoded;
  if (*stream == Stream::kOwn && !frame.nodes.Is(child.index)) {
    return {Code::kCorrupt, "a node's own frame is of another node"};
  }
  // Those that were under way over the former link come again over this one.
  if (!child.pending.empty() && frame.number <= child.pending.back().number) {
    child.pending.Clear();
  }
  if (child.pending.size() >= kMaxPending) return {Code::kLimit, "too many frames under way"};
  if (!std::exchange(child.sender, true)) senders_.push_back(&child);
  const bool last_values = *stream == Stream::kEnded;
  child.pending.Push() = {.number = frame.number, .last_values = last_values};
  if (at_head()) Arrived(child, frame.number, last_values);
  const TickMerger::Source source{child.sender_id, frame.number};
  if (last_values) {
    const bool its_own = frame.nodes.Has(child.index) && !frame.lost;
    if (its_own) child.ended = true;
    handlers_.ended(frame, state.schema, frame.values, source);
    // Then: ticks that waited for it go on without it, and with what it had counted.
    if (its_own) EndStream(child, Stream::kOwn);
    return {};
  }
  if (*stream == Stream::kOwn) {
    child.own_first = child.own_first == 0 ? frame.tick : std::min(child.own_first, frame.tick);
    child.own_tick = std::max(child.own_tick, frame.tick);
  }
  const TickMerger::Fate fate = merger_.Add(state.contributor, frame, child.sender_id);
  if (fate != TickMerger::Fate::kMerged && fate != TickMerger::Fate::kCovered) {
    handlers_.refused(fate, frame, source);
  }
  return {};
}

Status Children::OnBlockMessage(Link& link, std::string_view payload) {
  const Status status = DecodeEach<BlockMessage>(payload, [&](BlockMessage block) {
    routes_[block.node] = &link;
    handlers_.block(std::move(block));
  });
  FlushBlockAcks();  // what was answered at once
  return status;
}

Status Children::OnMomentsMessage(Link& link, uint32_t index, std::string_view payload) {
  MomentsMessage message;
  SONDE_RETURN_IF_ERROR(Decode(payload, message));
  if (seen_[index].Add(message.sequence)) handlers_.moments(std::move(message.moments));
  const bool keep = at_head();
  Send(link, Type::kMomentsAck,
       Encode(MomentsAck{keep ? MomentsAck::Fate::kArrived : MomentsAck::Fate::kTaken,
                         {message.sequence}}));
  if (keep) unsafe_moments_[index].push_back(message.sequence);
  return {};
}

void Children::MarkMoments() {
  for (auto& [index, sequences] : unsafe_moments_) {
    std::vector<uint64_t>& marked = marked_moments_[index];
    marked.insert(marked.end(), sequences.begin(), sequences.end());
    // Nobody keeps so many.
    if (marked.size() > kMaxAckedMoments)
      marked.erase(marked.begin(), marked.end() - kMaxAckedMoments);
  }
  unsafe_moments_.clear();
}

// Over any link of theirs. Those that have none now hear it next time.
void Children::TellSafeMoments() {
  if (marked_moments_.empty()) return;
  for (const auto& [link, child] : children_) {
    const auto marked = marked_moments_.find(child.index);
    if (marked == marked_moments_.end()) continue;
    const MomentsAck ack{MomentsAck::Fate::kSafe, marked->second};
    if (Send(*link, Type::kMomentsAck, Encode(ack))) marked_moments_.erase(marked);
  }
}

void Children::ForEachOwn(
    const std::function<void(uint32_t, Nanos, const Schema&, std::span<const Reduced>)>& f) const {
  for (const Child* child : senders_) {
    const StreamState& own = child->streams[static_cast<size_t>(Stream::kOwn)];
    if (own.contributor == 0 || child->own_tick == 0 || child->ended) continue;
    f(child->index, child->own_tick, *own.schema, own.decoder.LastKnown());
  }
}

std::vector<Link*> Children::Active() const {
  std::vector<Link*> active;
  active.reserve(active_.size());
  for (const Child* child : active_) active.push_back(child->link);
  return active;
}

bool Children::done() const {
  return std::none_of(children_.begin(), children_.end(), [this](const auto& entry) {
    return Contributes(entry.second) || (!at_head() && !entry.second.pending.empty());
  });
}

void Children::SendLeave() {
  for (const auto& [link, child] : children_) Send(*link, Type::kLeave, "");
}

void Children::SendBlockAck(const BlockAck& ack) {
  const auto route = routes_.find(ack.node);
  if (route == routes_.end()) return;
  const auto at = children_.find(route->second);
  if (at == children_.end()) return;
  if (at->second.block_acks.empty()) with_block_acks_.push_back(&at->second);
  AppendTo(at->second.block_acks, ack);
  // Those that contribute nothing have no pulse.
  const bool hurry = ack.hurry || ack.result != BlockAck::kStored || !at->second.active;
  at->second.block_acks_hurry = at->second.block_acks_hurry || hurry;
}

void Children::SendBlockAcks(Child& child) {
  Send(*child.link, Type::kBlockAck, child.block_acks);
  child.block_acks.clear();
  child.block_acks_hurry = false;
}

void Children::FlushBlockAcks() {
  std::erase_if(with_block_acks_, [](Child* child) {
    if (child->active && !child->block_acks_hurry) return false;
    SendBlockAcks(*child);
    return true;
  });
}

// --- Acknowledgement ---

void Children::Forwarded(std::span<const TickMerger::Source> sources, uint64_t number) {
  for (const TickMerger::Source& source : sources) {
    const auto at = by_sender_.find(source.sender);
    if (at == by_sender_.end()) continue;
    Ring<Pending>& pending = children_.at(at->second).pending;
    const size_t before =
        pending.CountWhile([&](const Pending& p) { return p.number < source.number; });
    if (before == pending.size() || pending[before].number != source.number) continue;
    pending[before].sent_as = number;
    pending[before].sent = true;
  }
}

void Children::Refuse(TickMerger::Source source) {
  const auto at = by_sender_.find(source.sender);
  if (at == by_sender_.end()) return;
  std::string payload;
  ByteWriter(payload).Varint(source.number);
  Send(*at->second, Type::kRefused, payload);
  Forwarded({&source, 1}, 0);
}

std::vector<Link*> Children::BroughtIn(uint64_t number) const {
  std::vector<Link*> links;
  for (const auto& [link, child] : children_) {
    bool has = false;
    for (size_t i = 0; i < child.pending.size(); ++i) {
      const Pending& one = child.pending[i];
      has = has || (one.sent && one.sent_as == number);
    }
    if (has) links.push_back(link);
  }
  return links;
}

// A child waits for word of last values, and of whatever it sends once it has ended.
void Children::Arrived(Child& child, uint64_t number, bool last_values) {
  child.acked = std::max(child.acked, number);
  if (last_values || child.ended) child.awaited = child.acked;
}

void Children::TakeOffArrived(Child& child) const {
  while (!child.pending.empty()) {
    const Pending& first = child.pending.front();
    if (!first.sent || first.sent_as > acknowledged_) break;
    if (at_head()) {
      child.in_rows = first.number;
    } else {
      Arrived(child, first.number, first.last_values);
    }
    child.pending.PopFront();
  }
}

// Nobody who waits for word waits for the pulse.
void Children::Settle(Link& link, Child& child, bool tell) {
  TakeOffArrived(child);
  tell = tell || child.awaited > child.told;
  if (tell || child.acked >= child.told + kMaxUntold) Tell(link, child);
}

void Children::Tell(Link& link, Child& child) const {
  child.told = child.acked;
  std::string payload;
  ByteWriter w(payload);
  w.Varint(child.acked);
  if (at_head()) w.Varint(child.safe);
  Send(link, Type::kAck, payload);
}

void Children::BeginSafe() {
  for (Child* child : senders_) {
    TakeOffArrived(*child);
    child->marked = child->in_rows;
  }
  MarkMoments();
}

void Children::EndSafe() {
  for (Child* child : senders_) child->safe = child->marked;
  TellSafeMoments();
}

void Children::Acknowledged(uint64_t number) {
  acknowledged_ = std::max(acknowledged_, number);
  for (auto& [link, child] : children_) Settle(*link, child, false);
}

void Children::Pulse() {
  for (Child* child : with_block_acks_) {
    if (child->active) child->link->ExpectMore();
    SendBlockAcks(*child);
  }
  with_block_acks_.clear();
  for (Child* child : active_) Settle(*child->link, *child, true);
}

std::vector<Link*> Children::SilentSince(Nanos since) const {
  std::vector<Link*> silent;
  for (const Child* child : active_) {
    if (child->heard < since) silent.push_back(child->link);
  }
  return silent;
}

}  // namespace sonde::tree
