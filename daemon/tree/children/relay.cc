#include "daemon/tree/children/relay.h"

#include <algorithm>
#include <utility>

namespace sonde::tree {
namespace {

// Ticks whose nodes an inner node remembers. What is older it leaves out; so would the head.
constexpr size_t kRemember = 256;
// How often a link that was slow is looked at.
constexpr Nanos kContinue = 50 * kMillisecond;

}  // namespace

Relay::Relay(Loop& loop, QueryFanout& queries, Nanos period, const Clock& clock, Owner& owner)
    : loop_(loop),
      period_(period),
      clock_(clock),
      owner_(owner),
      merger_(kRemember, [this](const TickMerger::Row& row, bool late) { OnRow(row, late); }),
      children_(merger_, queries, {period, 2 * period}, Keep::kUntilArrived, *this, clock) {}

Relay::~Relay() {
  for (const Loop::TimerId timer :
       {expiry_timer_, flush_timer_, soon_timer_, ended_timer_, lost_timer_, continue_timer_}) {
    loop_.Cancel(timer);
  }
}

// A node waits for its children's part of a tick, but not so long that its own part is late too.
Nanos Relay::MergeWindow() const {
  const Nanos batch = period_ < kBatch ? kBatch : 0;
  return std::min(period_ / 2, 250 * kMillisecond) + batch;
}

// A link that takes less than comes is given more as soon as it does, and not at the next tick
// only.
void Relay::Flush() {
  uplink_.Flush();
  ContinueLater();
}

void Relay::ContinueLater() {
  if (!uplink_.holds_back() || continue_timer_ != 0) return;
  continue_timer_ = loop_.After(kContinue, [this] {
    continue_timer_ = 0;
    uplink_.Continue();
    ContinueLater();
  });
}

void Relay::SendOwn(Nanos tick, const Schema::Ptr& schema, const FrameValues& values) {
  own_info_.tick = tick;
  own_info_.stream = Stream::kOwn;
  own_info_.nodes.Set(index_);
  uplink_.AddFrame(own_info_, schema, values);
  const bool batch_is_full = period_ >= kBatch || tick % kBatch == 0;
  if (!batch_is_full) return;
  children_.StandInForSilent(tick - std::max(period_, kBatch));
  if (children_.idle()) return FlushTick();
  // The own frame goes with the children's row of this tick, unless that does not come.
  if (flush_timer_ != 0) return;
  flush_timer_ = loop_.After(MergeWindow(), [this] {
    flush_timer_ = 0;
    FlushTick();
  });
}

// The last values count from the first tick that goes without this node, whatever the time is by
// then: every tick must have either a sample of the node or its last values, and not both.
void Relay::SendOwnEnd(Nanos when, const Schema::Ptr& schema, std::span<const Reduced> values) {
  SendEnded();  // apart from this node's own
  FrameInfo info;
  info.tick = own_info_.tick != 0 ? own_info_.tick + 1 : when;
  info.stream = Stream::kEnded;
  info.nodes = NodeSet(index_);
  uplink_.AddFrame(info, schema, values);
  Flush();
  uplink_.End(Stream::kOwn);
}

void Relay::SendRest() {
  children_.HandOnLost(INT64_MAX);
  merger_.EmitUpTo(INT64_MAX);
  SendEnded();
  Flush();
}

void Relay::OnRow(const TickMerger::Row& row, bool late) {
  children_.HandOnLost(row.tick, row.nodes);
  if (!late) children_.StandInForMissing(row.tick, row.nodes);
  if (ended_.tick() <= row.tick) AddEnded();  // a row that goes without them does not come before
  row_info_.tick = row.tick;
  row_info_.stream = Stream::kChildren;
  row_info_.nodes = row.nodes;
  children_.Forwarded(row.sources,
                      uplink_.AddFrame(row_info_, merger_.schema(), {row.values, row.spreads}));
  FlushSoon();
}

// These nodes came before; word of that part is under way with all that was sent so far.
void Relay::OnRefused(TickMerger::Fate fate, const Frame& /*frame*/, TickMerger::Source source) {
  children_.Forwarded({&source, 1}, uplink_.last_number());
  if (fate == TickMerger::Fate::kTooEarly) owner_.OnAhead();
}

void Relay::OnEnded(const FrameInfo& info, const Schema::Ptr& schema,
                    std::span<const Reduced> values, TickMerger::Source source) {
  if (info.lost) {
    FrameInfo numbered = info;
    children_.Forwarded({&source, 1}, uplink_.AddFrame(numbered, schema, values));
    return FlushSoon();
  }
  // Only last values that count from the same tick on go together.
  const auto first_row = [this](Nanos when) { return (when + period_ - 1) / period_; };
  if (!ended_.empty() && first_row(ended_.tick()) != first_row(info.tick)) SendEnded();
  if (!ended_.Add(info, *schema, values, source)) {
    SendEnded();
    ended_.Add(info, *schema, values, source);
  }
  if (ended_timer_ != 0) return;
  ended_timer_ = loop_.After(kEndedDelay, [this] {
    ended_timer_ = 0;
    SendEndedAfterTicks();
  });
}

// A child that waits for word of last values waits for word of the ticks before them as well.
void Relay::SendEndedAfterTicks() {
  if (children_.idle()) merger_.EmitUpTo(INT64_MAX);  // nobody is left to wait for
  ended_due_ = merger_.oldest() != 0 && merger_.oldest() <= ended_.tick();
  if (!ended_due_) SendEnded();
}

void Relay::AddEnded() {
  ended_due_ = false;
  if (ended_.empty()) return;
  EndedParts::Part part = ended_.Take();
  children_.Forwarded(part.sources, uplink_.AddFrame(part.info, part.schema, part.values));
}

void Relay::SendEnded() {
  if (ended_.empty()) return;
  AddEnded();
  Flush();
}

void Relay::FlushTick() {
  owner_.BeforeFrames();
  Flush();
}

// Flushes once for all that becomes complete by what has just arrived.
void Relay::FlushSoon() {
  if (soon_timer_ != 0) return;
  soon_timer_ = loop_.After(0, [this] {
    soon_timer_ = 0;
    loop_.Cancel(std::exchange(flush_timer_, 0));
    if (ended_due_) SendEndedAfterTicks();
    FlushTick();
  });
}

// The receiver waits for children from the first one on. Frames of short ticks are gathered, so
// none of the children's may have come when this node's own ones go.
void Relay::OnChildrenChanged() {
  if (children_.idle()) {
    if (!ended_.empty()) SendEndedAfterTicks();  // then nobody above waits for rows from here
    uplink_.End(Stream::kChildren);
  } else if (!uplink_.announced(Stream::kChildren)) {
    uplink_.Announce(Stream::kChildren, merger_.schema());
  }
  ScheduleExpiry();
  ScheduleLost();
}

// Lost children are handed on by time where no rows come any more.
void Relay::ScheduleLost() {
  const Nanos next = children_.next_lost();
  if (next == 0 || lost_timer_ != 0) return;
  const Nanos wait = next + 1 - clock_.Now();
  lost_timer_ = loop_.After(std::max<Nanos>(wait, 0), [this] {
    lost_timer_ = 0;
    children_.HandOnLost(clock_.Now());
    ScheduleLost();
  });
}

void Relay::OnAck(uint64_t number, uint64_t safe) {
  uplink_.OnAck(number, safe);
  children_.Acknowledged(number);
}

std::vector<Link*> Relay::OnRefused(uint64_t number) {
  uplink_.OnRefused(number);
  return children_.BroughtIn(number);
}

void Relay::ScheduleExpiry() {
  if (merger_.oldest() == 0 || expiry_timer_ != 0) return;
  const Nanos wait = merger_.oldest() + MergeWindow() - clock_.Now();
  // A tick that lies ahead of the time keeps none from expiring that come before it.
  expiry_timer_ = loop_.After(std::clamp<Nanos>(wait, 0, MergeWindow()), [this] {
    expiry_timer_ = 0;
    merger_.EmitUpTo(clock_.Now() - MergeWindow());
    ScheduleExpiry();
  });
}

}  // namespace sonde::tree
