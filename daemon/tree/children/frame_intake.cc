#include "daemon/tree/children/frame_intake.h"

#include <algorithm>
#include <utility>

#include "core/bytes.h"

namespace sonde::tree {
namespace {

uint64_t KeyOf(uint32_t child, size_t stream) { return uint64_t{child} * kStreams + stream; }

// Last values of a node that is lost, or missing, which count from `tick` on.
FrameInfo LostFrom(uint32_t node, Nanos tick) {
  FrameInfo header;
  header.tick = tick;
  header.stream = Stream::kEnded;
  header.lost = true;
  header.nodes = NodeSet(node);
  return header;
}

}  // namespace

// --- Streams ---

Status FrameIntake::OnSchema(Sender& sender, std::string_view payload) {
  const Result<Stream> stream = StreamOf(payload);
  if (!stream.ok() || static_cast<uint8_t>(payload[0]) >= kStreams) {
    return {Code::kCorrupt, "schema of no stream"};
  }
  const Result<Schema::Ptr> schema = schemas_.Decode(payload.substr(1));
  if (!schema.ok()) return schema.status();
  StreamState& state = sender.streams_[static_cast<size_t>(*stream)];
  if (*stream == Stream::kOwn) KeepBefore(sender);
  state.schema = *schema;
  state.decoder = {};
  if (state.contributor == 0) {
    // A child that comes back over another link is the same contributor: the ticks that waited for
    // it still do. Nobody waits for streams of last values.
    const uint64_t key = KeyOf(sender.index_, static_cast<size_t>(*stream));
    const auto left = leaving_.extract(key);
    const bool back = !left.empty() && merger_.Leave(left.mapped(), 0);
    const Nanos joined = *stream == Stream::kEnded ? INT64_MAX : clock_.Now();
    state.contributor = back ? left.mapped() : merger_.AddContributor(joined);
    newest_[key] = state.contributor;
    UpdateContributing(sender);
  }
  if (*stream != Stream::kEnded) merger_.SetSchema(state.contributor, *schema);
  return {};
}

// Frames by the next schema say nothing of what is not sampled at every tick. The child is back, if
// it was away.
void FrameIntake::KeepBefore(Sender& sender) {
  const auto left = last_own_.extract(sender.index_);
  if (!left.empty()) {
    const LastOwn& last = left.mapped();
    sender.before_.Add(*last.known.schema, last.known.values);
    sender.own_tick_ = std::max(sender.own_tick_, last.tick);
    if (sender.own_first_ == 0) sender.own_first_ = last.tick;
  }
  const StreamState& own = sender.own();
  if (own.decoder.series() > 0) sender.before_.Add(*own.schema, own.decoder.LastKnown());
}

KnownValues FrameIntake::Sender::Known() const {
  const bool has_frames = own().decoder.series() == own().schema->size();
  return before_.With(own().schema,
                      has_frames ? own().decoder.LastKnown() : std::vector<Reduced>());
}

Status FrameIntake::OnStreamEnd(Sender& sender, std::string_view payload) {
  if (payload.size() != 1 || static_cast<uint8_t>(payload[0]) >= kStreams) {
    return {Code::kCorrupt, "end of no stream"};
  }
  EndStream(sender, static_cast<Stream>(payload[0]));
  return {};
}

void FrameIntake::EndStream(Sender& sender, Stream stream) {
  StreamState& state = sender.streams_[static_cast<size_t>(stream)];
  const TickMerger::Id contributor = std::exchange(state.contributor, 0);
  if (contributor == 0) return;
  ForgetNewest(KeyOf(sender.index_, static_cast<size_t>(stream)), contributor);
  merger_.Remove(contributor);
  state.decoder = {};
  UpdateContributing(sender);
}

void FrameIntake::UpdateContributing(Sender& sender) {
  const auto has = [&](Stream s) {
    return sender.streams_[static_cast<size_t>(s)].contributor != 0;
  };
  const bool contributes = has(Stream::kOwn) || has(Stream::kChildren);
  if (contributes == sender.contributes()) return;
  if (contributes) {
    sender.place_ = contributing_.size();
    contributing_.push_back(&sender);
    return;
  }
  Sender*& place = contributing_[sender.place_];
  place = contributing_.back();
  place->place_ = sender.place_;
  contributing_.pop_back();
  sender.place_ = SIZE_MAX;
}

bool FrameIntake::IsNewest(uint64_t key, TickMerger::Id contributor) const {
  const auto newest = newest_.find(key);
  return newest != newest_.end() && newest->second == contributor;
}

// False if a stream goes on as another contributor.
bool FrameIntake::ForgetNewest(uint64_t key, TickMerger::Id contributor) {
  if (!IsNewest(key, contributor)) return false;
  newest_.erase(key);
  return true;
}

// It may be lost before its first word over the next link. Where more move on at once, as at the
// head of a large step, the others go without that.
void FrameIntake::OnHandOver(Sender& sender) {
  if (HasNewestOwn(sender) && last_own_.size() < kMaxLastOwn) KeepLastOwn(sender);
  StopStreams(sender);
}

// The child's first word over the next link may have come before its last over this one.
void FrameIntake::StopStreams(Sender& sender) {
  for (size_t s = 0; s < kStreams; ++s) {
    StreamState& state = sender.streams_[s];
    const TickMerger::Id contributor = std::exchange(state.contributor, 0);
    if (contributor == 0) continue;
    state.decoder = {};  // at the head that is a lot of memory for all that move on
    if (static_cast<Stream>(s) == Stream::kOwn) sender.before_ = {};
    const uint64_t key = KeyOf(sender.index_, s);
    const bool is_newest = ForgetNewest(key, contributor);
    if (static_cast<Stream>(s) == Stream::kEnded || !is_newest) {
      merger_.Remove(contributor);
    } else {
      merger_.Leave(contributor, clock_.Now() + hand_over_);
      leaving_[key] = contributor;
    }
  }
  acknowledgements_.OnHandOver(sender.account_);
  UpdateContributing(sender);
}

void FrameIntake::Remove(Sender& sender) {
  if (HasNewestOwn(sender)) {
    if (last_own_.size() >= kMaxLastOwn) HandOn(last_own_.begin());
    KeepLastOwn(sender);
  }
  StopStreams(sender);
}

// --- Frames ---

// Several frames may come in one message.
Status FrameIntake::OnFrames(Sender& sender, std::string_view payload) {
  ByteReader r(payload);
  while (r.left() > 0) {
    const std::string_view bytes = r.Text(payload.size());
    if (!r.ok()) return {Code::kCorrupt, "message of frames is malformed"};
    SONDE_RETURN_IF_ERROR(OnFrame(sender, bytes));
  }
  acknowledgements_.Settle(sender.account_);
  return {};
}

Status FrameIntake::OnFrame(Sender& sender, std::string_view bytes) {
  const Result<Stream> stream = StreamOf(bytes);
  if (!stream.ok()) return stream.status();
  StreamState& state = sender.streams_[static_cast<size_t>(*stream)];
  if (state.contributor == 0) return {Code::kCorrupt, "frame without a schema"};
  if (state.decoder.series() != state.schema->size()) state.decoder.Reset(*state.schema);
  if (*stream == Stream::kOwn) StandInForGap(sender, TickOf(bytes));
  const Result<const Frame*> decoded = state.decoder.Decode(bytes);
  if (!decoded.ok()) return decoded.status();
  const Frame& frame = **decoded;
  if (*stream == Stream::kOwn && !frame.nodes.Is(sender.index_)) {
    return {Code::kCorrupt, "a node's own frame is of another node"};
  }
  const bool last_values = *stream == Stream::kEnded;
  SONDE_RETURN_IF_ERROR(acknowledgements_.OnFrame(sender.account_, frame.number, last_values));
  const TickMerger::Source source{sender.account_.sender(), frame.number};
  if (!Knows(frame)) {
    OnUnknown(sender, frame, source);
    return {};
  }
  if (last_values) {
    OnLastValues(sender, frame, state.schema, source);
    return {};
  }
  if (IsTooEarly(frame.tick)) {
    owner_.OnRefused(TickMerger::Fate::kTooEarly, frame, source);
    return {};
  }
  if (*stream == Stream::kOwn) {
    sender.own_first_ =
        sender.own_first_ == 0 ? frame.tick : std::min(sender.own_first_, frame.tick);
    sender.own_tick_ = std::max(sender.own_tick_, frame.tick);
  }
  const TickMerger::Fate fate = merger_.Add(state.contributor, frame, source.sender);
  if (fate != TickMerger::Fate::kMerged && fate != TickMerger::Fate::kCovered) {
    owner_.OnRefused(fate, frame, source);
  }
  return {};
}

bool FrameIntake::Knows(const Frame& frame) const {
  if (node_limit_ == NodeSet::kMaxNodes) return true;  // not at the head, which will look
  if (frame.nodes.last() >= node_limit_) return false;
  const auto there = [this](const sonde::Owner& owner) {
    return owner.node < node_limit_ || owner.node == sonde::Owner::kNobody;
  };
  return std::all_of(frame.values.begin(), frame.values.end(), [&](const Reduced& value) {
    return there(value.min_owner) && there(value.max_owner);
  });
}

void FrameIntake::OnUnknown(Sender& sender, const Frame& frame, TickMerger::Source source) {
  const bool mixed = frame.stream == Stream::kEnded && frame.nodes.first() < node_limit_;
  if (mixed && sender.refused_ < kMaxRefused) {
    ++sender.refused_;
    return acknowledgements_.Refuse(source);
  }
  owner_.OnRefused(TickMerger::Fate::kUnknown, frame, source);
}

// Rows wait for the time of their tick: what a node with a wrong clock, or one that lies, can keep
// here is bounded by that.
bool FrameIntake::IsTooEarly(Nanos tick) {
  if (tick <= soon_) return false;  // as all of a tick but the first
  const Nanos now = clock_.Now();
  soon_ = now + hand_over_;
  return tick > now + std::max(kMaxAhead, hand_over_) ||
         (tick > soon_ && merger_.waiting() >= kMaxWaiting);
}

void FrameIntake::OnLastValues(Sender& sender, const Frame& frame, const Schema::Ptr& schema,
                               TickMerger::Source source) {
  if (frame.lost && frame.nodes.Is(sender.index_)) {  // itself: what it had counted before
    sender.before_.Add(*schema, frame.values);
    sender.own_tick_ = std::max(sender.own_tick_, frame.tick - 1);
    return owner_.OnRefused(TickMerger::Fate::kRepeated, frame, source);
  }
  const bool its_own = frame.nodes.Has(sender.index_) && !frame.lost;
  if (its_own) sender.account_.SetEnded();
  owner_.OnEnded(frame, schema, frame.values, source);
  // After that: ticks that waited for the child go on without it, and with what it had counted.
  if (its_own) EndStream(sender, Stream::kOwn);
}

// --- Lost and missing children ---

// Whether the newest that is known of the child came over this link.
bool FrameIntake::HasNewestOwn(const Sender& sender) const {
  const uint64_t key = KeyOf(sender.index_, static_cast<size_t>(Stream::kOwn));
  return sender.has_own() && IsNewest(key, sender.own().contributor);
}

void FrameIntake::KeepLastOwn(const Sender& sender) {
  last_own_[sender.index_] = {sender.Known(), sender.own_tick_, clock_.Now() + hand_over_};
}

void FrameIntake::HandOnLost(Nanos row, const NodeSet& nodes) {
  // A node that is in a later row is back, over whatever link.
  std::erase_if(last_own_, [&](const auto& entry) {
    return entry.second.tick < row && nodes.Has(entry.first);
  });
  HandOnLostIf([&](const LastOwn& last) { return last.tick < row; });
}

void FrameIntake::HandOnLost(Nanos now) {
  HandOnLostIf([&](const LastOwn& last) { return last.until < now; });
}

void FrameIntake::HandOnLostIf(const std::function<bool(const LastOwn& last)>& is) {
  for (auto at = last_own_.begin(); at != last_own_.end();) {
    if (!is(at->second)) {
      ++at;
      continue;
    }
    at = HandOn(at);
  }
}

FrameIntake::LastOwns::iterator FrameIntake::HandOn(LastOwns::iterator at) {
  const FrameInfo header = LostFrom(at->first, at->second.tick + 1);
  const LastOwn last = std::move(at->second);
  const auto next = last_own_.erase(at);
  owner_.OnEnded(header, last.known.schema, last.known.values, {0, 0});
  return next;
}

void FrameIntake::StandInForMissing(Nanos row, const NodeSet& nodes) {
  for (Sender* sender : contributing_) {
    if (!sender->has_own()) continue;
    // A child that moves here is a little late, and was counted where it was before.
    if (sender->own_first_ == 0 || row < sender->own_first_) continue;
    // It is in the row, which ends what stood in for it (EndedNodes::AddTo).
    if (nodes.Has(sender->index_)) {
      sender->stood_in_ = 0;
      continue;
    }
    if (sender->own_tick_ > row) continue;  // it left the row's tick out, see StandInForGap
    StandInFor(*sender);
  }
}

void FrameIntake::StandInForSilent(Nanos tick) {
  for (Sender* sender : contributing_) {
    if (sender->has_own() && sender->own_first_ != 0 && sender->own_tick_ < tick) {
      StandInFor(*sender);
    }
  }
}

void FrameIntake::StandInForEach(const NodeSet& nodes) {
  for (Sender* sender : contributing_) {
    if (sender->has_own() && nodes.Has(sender->index_)) StandInFor(*sender);
  }
}

// From its newest tick on: of those after it that no child here has taken there may be rows above.
void FrameIntake::StandInFor(Sender& sender) {
  if (std::exchange(sender.stood_in_, sender.own_tick_) == sender.own_tick_) return;
  const KnownValues last = sender.Known();
  const FrameInfo header = LostFrom(sender.index_, sender.own_tick_ + 1);
  owner_.OnEnded(header, last.schema, last.values, {0, 0});
}

// The child has left ticks out. Their rows have what it had counted before, not what it counted
// since, and there may be none here that could tell of it.
void FrameIntake::StandInForGap(Sender& sender, Nanos tick) {
  if (sender.has_own() && tick > sender.own_tick_ + period_) StandInFor(sender);
}

Nanos FrameIntake::next_lost() const {
  Nanos next = 0;
  for (const auto& [index, last] : last_own_)
    next = next == 0 ? last.until : std::min(next, last.until);
  return next;
}

void FrameIntake::ForEachOwn(
    const std::function<void(uint32_t, Nanos, const Schema&, std::span<const Reduced>)>& f) const {
  for (const Sender* sender : contributing_) {
    if (!sender->has_own()) continue;
    const KnownValues last = sender->Known();
    f(sender->index_, sender->own_tick_, *last.schema, last.values);
  }
}

}  // namespace sonde::tree
