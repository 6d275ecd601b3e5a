#include "daemon/tree/blocks/block_sender.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/log.h"
#include "daemon/link/send.h"

namespace sonde::tree {
namespace {

// A node that was silent for long may send that much at once.
constexpr double kBurst = 16384;

// Spreads the nodes evenly over 0 to 1, however many there are.
double PhaseOf(uint32_t index) {
  constexpr double kGolden = 0.6180339887498949;
  const double turns = index * kGolden;
  return turns - std::floor(turns);
}

}  // namespace

void BlockSender::Use(Link* link) {
  if (link == link_) return;
  link_ = link;
  shelf_.Resend();
}

void BlockSender::SetBudget(const BlockBudget& budget) {
  budget_ = budget;
  limits_.share = budget.share;
  shelf_.SetLimits(limits_);
}

void BlockSender::SetMemory(size_t bytes) {
  limits_.memory = bytes;
  shelf_.SetLimits(limits_);
}

void BlockSender::PassOn(BlockMessage block) {
  if (relayed_bytes_ + block.bytes.size() > kMaxRelayed && !relayed_.empty()) return;
  relayed_bytes_ += block.bytes.size();
  relayed_hurry_ = relayed_hurry_ || block.hurry;
  relayed_.push_back(std::move(block));
}

void BlockSender::PassOn(const JoinedBlocks& joined, std::string_view bytes) {
  if (joins_ == Joins::kNo) return PassOnApart(joined);
  if (relayed_bytes_ + bytes.size() > kMaxRelayed && relayed_bytes_ > 0) return;
  relayed_bytes_ += bytes.size();
  relayed_hurry_ = true;
  relayed_joined_.emplace_back(bytes);
}

void BlockSender::OnAck(const BlockAck& ack) {
  BlockShelf::Item* item = shelf_.Sent(ack.group, ack.sequence);
  switch (ack.result) {
    case BlockAck::kStored:
      refused_ = false;
      patience_ = kPatience;
      if (item == nullptr) return;
      taken_ += item->bytes->size();
      item->state = BlockShelf::State::kStored;
      item->archived = 0;
      return;
    case BlockAck::kUnknownSchema:
      if (item == nullptr) return;
      item->schema_wanted = true;
      item->due = 0;
      return;
    default:
      // The archive may have room for a thinner block, or for this one later.
      refused_ = true;
      hold_until_ = refilled_ + patience_;
      patience_ = std::min(patience_ * 2, kMostPatience);
      if (item != nullptr) item->state = BlockShelf::State::kWaiting;
  }
}

void BlockSender::Finish(Nanos now, Nanos deadline) {
  finishing_ = true;
  hold_until_ = 0;
  // Word of blocks on their way would come with a later pulse, for which there is no time.
  shelf_.Resend();
  const double seconds = static_cast<double>(std::max<Nanos>(deadline - now, 0)) / 1e9;
  const double rate = std::max<double>(static_cast<double>(budget_.end_rate), 1);
  // Half the time to begin, each at its own moment, half to arrive.
  const auto in_time = static_cast<size_t>(rate * seconds / 2);
  const size_t stored = shelf_.stored_bytes();
  const size_t left = limits_.share > stored ? limits_.share - stored : 0;
  shelf_.ThinFresh(std::max(left, limits_.share / 8), kThinnedForShare);
  shelf_.ThinFresh(in_time, kThinnedForEnd);
  const double spread = std::min(seconds / 2, static_cast<double>(shelf_.fresh_bytes()) / rate);
  start_at_ = now + static_cast<Nanos>(PhaseOf(node_) * spread * 1e9);
}

bool BlockSender::delivered() const {
  return relayed_.empty() && relayed_joined_.empty() && (refused_ || shelf_.fresh_bytes() == 0);
}

BlockSender::Pressure BlockSender::pressure(Nanos now) const {
  Pressure pressure;
  pressure.link_full = link_full_;
  const Nanos sent = shelf_.oldest_sent();
  if (sent != 0) pressure.unacknowledged = now - sent;
  pressure.waiting = shelf_.fresh_bytes();
  return pressure;
}

void BlockSender::Refill(Nanos now) {
  if (refilled_ != 0 && now > refilled_) {
    const double seconds = static_cast<double>(now - refilled_) / 1e9;
    tokens_ = std::min(tokens_ + seconds * static_cast<double>(budget_.rate), kBurst);
  }
  refilled_ = now;
}

bool BlockSender::LinkIsFull() {
  const size_t turn = turn_bytes_ + out_.size() + joiner_.bytes();
  const size_t most = frames_follow_ ? kBeforeFrames : kLinkWindow;
  link_full_ = yields_ || link_->queued() >= kLinkBusy;
  return link_full_ || turn >= most;
}

Nanos BlockSender::Run(Nanos now, bool frames_follow) {
  Refill(now);
  if (link_ == nullptr) return kNever;
  frames_follow_ = frames_follow;
  const Nanos next = RunAll(now);
  return std::min(next, MindPressure(now));
}

// A slow parent, or archive, gets less detail of the blocks of now; blocks that come when the way
// is free again have all of it.
Nanos BlockSender::MindPressure(Nanos now) {
  if (suspended_ || !pressure(now).slow()) {
    slow_since_ = 0;
    return kNever;
  }
  if (slow_since_ == 0) {
    slow_since_ = now;
    thin_at_ = now + kSlowAfter;
    taken_ = 0;
  }
  if (now < thin_at_) return thin_at_;
  thin_at_ = now + kThinEvery;
  const size_t on_way = shelf_.sent_bytes();
  const size_t fresh = shelf_.fresh_bytes();
  const size_t waiting = fresh - std::min(fresh, on_way);
  const size_t may_wait = std::max(kMayWait, 2 * std::exchange(taken_, 0));
  if (waiting > may_wait) {
    shelf_.ThinFresh(on_way + std::max(may_wait, waiting / 2), kThinnedForSlow);
  }
  return thin_at_;
}

void BlockSender::ChooseWhenToPassOn(Nanos now) {
  if (relayed_.empty() && relayed_joined_.empty()) {
    gather_until_ = 0;
    return;
  }
  if (gather_until_ == 0) gather_until_ = now + kGather;
  const Nanos hurry = joins_ != Joins::kNo ? kGatherToJoin : kGatherInHurry;
  if (relayed_hurry_) gather_until_ = std::min(gather_until_, now + hurry);
  // What is to be joined waits even at the end: alone it would be joined with nothing.
  if (frames_follow_ || (finishing_ && joins_ == Joins::kNo)) gather_until_ = now;
}

Nanos BlockSender::RunAll(Nanos now) {
  ChooseWhenToPassOn(now);
  if (gather_until_ > now) return gather_until_;
  turn_bytes_ = 0;
  link_full_ = false;
  const Nanos again = RunRelayed(now);
  const Nanos next = again != kNever ? again : RunOwn(now);
  SendOut();
  return next;
}

// kNever: all went.
Nanos BlockSender::RunRelayed(Nanos now) {
  while (!relayed_joined_.empty()) {
    if (LinkIsFull()) return now + kTurn;
    const std::string joined = std::move(relayed_joined_.front());
    relayed_joined_.pop_front();
    relayed_bytes_ -= joined.size();
    SendJoined(joined);
  }
  while (!relayed_.empty()) {
    if (LinkIsFull()) {
      PassJoined();
      return now + kTurn;
    }
    BlockMessage block = std::move(relayed_.front());
    relayed_.pop_front();
    relayed_bytes_ -= block.bytes.size();
    if (joins_ == Joins::kNo || !joiner_.Add(block)) Pass(block);
  }
  PassJoined();
  gather_until_ = 0;
  relayed_hurry_ = false;
  return kNever;
}

Nanos BlockSender::RunOwn(Nanos now) {
  if (hold_until_ > now) return hold_until_;
  if (finishing_ && start_at_ > now) return start_at_;
  while (true) {
    const BlockShelf::Next next = shelf_.NextToSend(now, finishing_);
    if (next.item == nullptr) return shelf_.next_due();
    if (next.item->state == BlockShelf::State::kWaiting) {
      const size_t on_way = shelf_.sent_bytes();
      if (on_way > 0 && on_way + next.item->bytes->size() > kWindow) return shelf_.next_due();
    }
    if (!finishing_ && tokens_ < 0) {
      const double rate = std::max<double>(static_cast<double>(budget_.rate), 1);
      return now + static_cast<Nanos>(std::min(-tokens_ / rate, 3600.0) * 1e9) + kMillisecond;
    }
    if (LinkIsFull()) return now + kTurn;
    SendOwn(next, now);
  }
}

void BlockSender::SendOwn(const BlockShelf::Next& next, Nanos now) {
  BlockShelf::Item& item = *next.item;
  BlockMessage block;
  block.node = node_;
  block.group = *next.group;
  block.sequence = item.last;
  block.first = item.first;
  block.samples = item.samples;
  block.reasons = item.reasons;
  block.stored = shelf_.StoredWith(item);
  block.hurry = finishing_;
  if (item.schema_wanted) block.schema = PackSchema(*item.schema());
  block.bytes = *item.bytes;
  Pass(block);
  tokens_ -= static_cast<double>(item.bytes->size());
  const bool again = item.state == BlockShelf::State::kSent;
  if (!again) item.sent_at = now;
  item.patience = again ? std::min(item.patience * 2, kMostPatience) : kPatience;
  item.due = now + item.patience;
  item.state = BlockShelf::State::kSent;
}

void BlockSender::Pass(const BlockMessage& block) {
  AppendTo(out_, block);
  if (out_.size() >= kMessage) SendOut();
}

// Where the way up has changed to one that does not take them, they go one by one.
void BlockSender::SendJoined(const std::string& joined) {
  if (joins_ == Joins::kNo) {
    if (const auto blocks = ReadJoined(joined); blocks.ok()) PassOnApart(*blocks);
    return;
  }
  if (frames_follow_) link_->ExpectMore();
  Send(*link_, Type::kJoinedBlocks, joined);
  turn_bytes_ += joined.size();
}

void BlockSender::PassOnApart(const JoinedBlocks& joined) {
  for (BlockMessage& block : TakeApart(joined)) PassOn(std::move(block));
}

void BlockSender::PassJoined() {
  const bool below = joins_ == Joins::kForParent;
  const BlockJoiner::Ready ready =
      joiner_.Take(below ? BlockJoiner::kLeastBelow : BlockJoiner::kLeastBlocks);
  if (!ready.joined.empty()) {
    log::Debug("blocks of other nodes: {} messages of joined ones go up, {} blocks alone",
               ready.joined.size(), ready.single.size());
  }
  for (const std::string& joined : ready.joined) SendJoined(joined);
  for (const BlockMessage& block : ready.single) Pass(block);
}

// A link that takes nothing is being closed: own blocks go again over the next link, and children
// send theirs again.
void BlockSender::SendOut() {
  if (out_.empty()) return;
  if (frames_follow_) link_->ExpectMore();
  Send(*link_, Type::kBlock, out_);
  turn_bytes_ += out_.size();
  out_.clear();
}

}  // namespace sonde::tree
