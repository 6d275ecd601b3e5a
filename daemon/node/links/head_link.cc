#include "daemon/node/links/head_link.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/link/send.h"
#include "daemon/link/trust/protocol.h"

namespace sonde::node {

using tree::Type;
using Purpose = tree::Channel::Purpose;

HeadLink::HeadLink(Loop& loop, const StepKey& key, Owner& owner)
    : loop_(loop), key_(key), owner_(owner) {}

HeadLink::~HeadLink() { loop_.Cancel(timer_); }

bool HeadLink::Send(Type type, std::string_view payload) {
  if (link() == nullptr) return false;
  if (through_gateway()) AwaitGateway();
  return tree::Send(*link_, type, payload);
}

void HeadLink::SetSuccessors(std::vector<tree::Place> places, uint32_t own) {
  for (const tree::Place& place : places) stood_by_[place.index] = place;
  while (stood_by_.size() > tree::kMaxSuccessors) stood_by_.erase(std::prev(stood_by_.end()));
  successors_ = std::move(places);
  own_ = own;
  log::Info("{} nodes stand by to be head", successors_.size());
}

std::vector<tree::Place> HeadLink::PlacesBefore() const {
  std::vector<tree::Place> before;
  for (const auto& [index, place] : stood_by_) {
    const bool lost = place.host == head_.host && place.port == head_.port;
    if (index < own_ && !lost) before.push_back(place);
  }
  return before;
}

void HeadLink::Connect(const std::string& host, uint16_t port,
                       std::vector<std::vector<tree::Place>> ways) {
  head_ = {tree::kHeadIndex, host, port};
  ways_ = std::move(ways);
  if (!ways_.empty()) return SeekGateway(Clock::System().Monotonic() + kGatewaySearch);
  ConnectDirectly();
}

void HeadLink::ConnectDirectly() {
  const Status opened = Open(head_, Purpose::kControl);
  if (!opened.ok()) owner_.OnNoHead(opened);
}

void HeadLink::Use(std::unique_ptr<tree::Link> link) {
  link_ = std::move(link);
  link_->SetMaxMessage(tree::kMaxMessage);
  link_->SetHandler(
      {.message = [this](uint8_t type, std::string_view payload) { OnMessage(type, payload); },
       .closed = [this](const Status& why) { OnClosed(why); }});
}

Status HeadLink::Open(const tree::Place& head, Purpose purpose) {
  Result<std::unique_ptr<tree::SocketLink>> link =
      tree::SocketLink::Connect(loop_, head.host, head.port);
  if (!link.ok()) return link.status();
  socket_ = link->get();
  link_ = *std::move(link);
  link_->SetHandler(
      {.message = [this](uint8_t type, std::string_view payload) { OnHandshake(type, payload); },
       .closed = [this](const Status& why) { OnClosed(why); }});
  handshake_ = std::make_unique<tree::ConnectingHandshake>(
      key_, tree::Channel{.purpose = purpose, .acceptor = head.index, .address = ""},
      owner_.registration());
  tree::Send(*link_, Type::kHello, handshake_->Hello());
  return {};
}

void HeadLink::OnHandshake(uint8_t type, std::string_view payload) {
  heard_ = !seeks_gateway();  // a gateway is not the head
  Result<tree::HandshakeStep> step = handshake_->OnMessage(type, payload);
  if (!step.ok()) {
    if (seeks_gateway()) {  // somebody else may have the port
      log::Debug("no gateway: {}", step.status().message());
    } else {
      log::Warning("the head is not trusted: {}", step.status().message());
    }
    return OnClosed(step.status());
  }
  local_host_ = tree::HostText(socket_->local_address());
  tree::Send(*link_, step->answer->type, step->answer->payload);
  proof_sent_ = Clock::System().Monotonic();
  handshake_.reset();
  // The gateway is at work, and the head may have registered this node: it has as long as a head to
  // answer.
  if (seeks_gateway()) {
    loop_.Cancel(timer_);
    timer_ = loop_.After(Answer(), [this] {
      timer_ = 0;
      GoDirectly();
    });
  }
  link_ = tree::SealWith(*std::move(step->seals), std::move(link_));
  link_->SetMaxMessage(tree::kMaxMessage);
  link_->SetHandler({.message = [this](uint8_t t, std::string_view p) { OnMessage(t, p); },
                     .closed = [this](const Status& why) { OnClosed(why); }});
}

void HeadLink::OnMessage(uint8_t type, std::string_view payload) {
  heard_ = true;
  if (through_gateway()) {
    heard_at_ = Clock::System().Monotonic();
    awaits_gateway_ = false;
    loop_.Cancel(std::exchange(timer_, 0));
    if (static_cast<Type>(type) == Type::kGatewayCheck) return;
  }
  if (static_cast<Type>(type) == Type::kOver) {
    welcome_ = false;
    Drop();
    return owner_.OnOver();
  }
  if (static_cast<Type>(type) == Type::kGatewayLeaves) {
    left_by_gateway_ = true;
    return OnClosed({Code::kUnavailable, "the gateway leaves"});
  }
  if (static_cast<Type>(type) != Type::kWelcome) {
    if (welcome_) owner_.OnHeadMessage(static_cast<Type>(type), payload);
    return;
  }
  tree::Welcome welcome;
  if (welcome_ || !Decode(payload, welcome).ok()) return;
  loop_.Cancel(std::exchange(timer_, 0));
  if (std::exchange(seek_until_, 0) != 0) {
    gateway_ = ways_.front().front().host;
    heard_at_ = Clock::System().Monotonic();
    ways_.erase(ways_.begin());
  }
  left_by_gateway_ = false;
  if (known_ && next_ > 0) head_ = successors_[next_ - 1];
  welcome_ = known_ = true;
  const Nanos waited = proof_sent_ == 0 ? 0 : Clock::System().Monotonic() - proof_sent_;
  owner_.OnWelcome(welcome, waited);
}

void HeadLink::Drop() {
  loop_.Cancel(std::exchange(timer_, 0));
  if (link_ != nullptr) sent_before_ += link_->bytes_sent();
  handshake_.reset();
  heard_ = false;
  gateway_.clear();
  awaits_gateway_ = false;
  tree::DestroyLater(loop_, std::move(link_));
}

// --- Looking for it ---

void HeadLink::OnClosed(const Status& why) {
  const bool was_welcome = std::exchange(welcome_, false);
  // The link is destroyed when its users have let go of it.
  if (socket_ == nullptr) {
    Drop();
    return owner_.OnNoHead(why);
  }
  // A name that nobody knows leads to none of its doors.
  if (seeks_gateway()) return why.code() == Code::kNotFound ? GoDirectly() : NextDoor();
  if (!known_ && lost_at_ == 0) lost_at_ = Clock::System().Monotonic();
  if (!was_welcome) return Again(why);
  lost_at_ = Clock::System().Monotonic();
  next_ = silent_ = 0;
  log::Warning("the connection to the head is lost: {}", why.message());
  owner_.OnHeadLost(*link_, why);
  Drop();
  if (std::exchange(left_by_gateway_, false) && !ways_.empty()) return SeekGateway(lost_at_);
  ways_.clear();
  Try();
}

// --- Through a gateway ---

void HeadLink::SeekGateway(Nanos until) {
  seek_until_ = until;
  door_ = 0;
  TryGateway();
}

void HeadLink::TryGateway() {
  timer_ = loop_.After(kGatewayAnswer, [this] {
    timer_ = 0;
    NextDoor();
  });
  const Status opened = Open(ways_.front()[door_], Purpose::kGateway);
  if (!opened.ok()) NextDoor();
}

// The one before did not lead to the head.
void HeadLink::NextDoor() {
  Drop();
  const bool another = ++door_ < ways_.front().size();
  // All doors are tried once, unless that takes too long.
  const Nanos most = seek_until_ + (another ? kGatewayAnswer : 0);
  if (Clock::System().Monotonic() >= most) return GoDirectly();
  if (another) return TryGateway();
  door_ = 0;
  timer_ = loop_.After(kGatewayPause, [this] {
    timer_ = 0;
    TryGateway();
  });
}

void HeadLink::OnTasksEnded() {
  tasks_ended_ = true;
  const bool proven = link_ != nullptr && handshake_ == nullptr;
  if (seeks_gateway() && !proven) return GoDirectly();
  if (!through_gateway()) return;
  loop_.Cancel(std::exchange(timer_, 0));
  awaits_gateway_ = true;
  AskGateway();
}

void HeadLink::GoDirectly() {
  seek_until_ = 0;
  ways_.clear();
  Drop();
  log::Info("no gateway leads to the head: this node connects to it");
  if (known_) return Try();
  ConnectDirectly();
}

// Something is sent: a word is to come, if only the gateway's own.
void HeadLink::AwaitGateway() {
  if (std::exchange(awaits_gateway_, true)) return;
  timer_ = loop_.After(kGatewayWord, [this] { AskGateway(); });
}

void HeadLink::CheckGateway(bool sent) {
  if (!through_gateway() || awaits_gateway_) return;
  if (sent) return AwaitGateway();
  // Of those of one gateway the numbers are an even distance apart, and these times are not.
  const double turns = owner_.registration().node_id * std::numbers::phi;
  const auto more = static_cast<Nanos>((turns - std::floor(turns)) * kGatewayQuietMore);
  if (Clock::System().Monotonic() - heard_at_ < kGatewayQuiet + more) return;
  awaits_gateway_ = true;
  AskGateway();
}

void HeadLink::AskGateway() {
  tree::Send(*link_, Type::kGatewayCheck, "");
  AwaitAnswer();
}

void HeadLink::AwaitAnswer() {
  const Nanos patience = tasks_ended_ ? kGatewayEndPatience : kGatewayPatience;
  const Nanos due = Clock::System().Monotonic() + patience;
  timer_ = loop_.At(due, [this, due] {
    timer_ = 0;
    OnGatewaySilent(due);
  });
}

// This process may not have run, so that the answer is there and was not read.
void HeadLink::OnGatewaySilent(Nanos due) {
  if (Clock::System().Monotonic() - due > kGatewayLate) return AwaitAnswer();
  const std::string gateway = gateway_;
  OnClosed({Code::kTimeout, fmt::format("the gateway {} does not answer", gateway)});
  // It waits for the next connection.
  owner_.Note(fmt::format("its gateway {} did not answer: it went to the head itself", gateway));
}

Nanos HeadLink::EachNode() const {
  const uint32_t nodes = std::max(owner_.registration().nodes, 1u);
  return std::min<Nanos>(kEachNode, kAllNodes / nodes);
}

Nanos HeadLink::Answer() const {
  return std::min(kAnswer + owner_.registration().nodes * kAnswerEach, kPatience);
}

void HeadLink::Try() {
  const tree::Place& place = next_ == 0 ? head_ : successors_[next_ - 1];
  const Nanos turn = next_ == 0 || own_ == tree::kHeadIndex || place.index == own_
                         ? 0
                         : lost_at_ + std::min<Nanos>(own_ * EachNode(), kAllNodes);
  if (turn > Clock::System().Monotonic()) {
    timer_ = loop_.At(turn, [this] {
      timer_ = 0;
      Try();
    });
    return;
  }
  if (next_ > 0 && place.index == own_) {
    log::Warning("this node goes on as acting head");
    if (!owner_.BecomeHead()) return Again({Code::kUnavailable, "cannot be acting head"});
  }
  timer_ = loop_.After(Answer(), [this] {
    timer_ = 0;
    Again({Code::kTimeout, "no answer"});
  });
  if (const Status opened = Open(place, Purpose::kControl); !opened.ok()) Again(opened);
}

bool HeadLink::GivesUp(const Status& why) const {
  const Nanos waited = Clock::System().Monotonic() - lost_at_;
  const bool refused = why.code() == Code::kUnavailable;
  if (known_) return waited > kGiveUp || (refused && successors_.empty());
  // Also of a host that seems to have another key, or says what makes no sense: one bit that was
  // changed on the way looks the same.
  return waited > kGiveUpFirst;
}

// The head, or a successor, could not be reached.
void HeadLink::Again(const Status& why) {
  Drop();
  if (known_ && owner_.IsSuspended()) {
    lost_at_ = Clock::System().Monotonic();
    return AskHeadAgain(kPauseSuspended);
  }
  if (GivesUp(why)) return owner_.OnNoHead(why);
  const bool refused = why.code() == Code::kUnavailable;
  const Nanos waited = Clock::System().Monotonic() - lost_at_;
  const bool end = next_ >= successors_.size();
  if (!end && (refused || waited > kPatience * static_cast<Nanos>(silent_ + 1))) {
    if (!refused) ++silent_;
    ++next_;
    return Try();
  }
  AskHeadAgain(kPause);
}

void HeadLink::AskHeadAgain(Nanos pause) {
  next_ = silent_ = 0;
  timer_ = loop_.After(pause, [this] {
    timer_ = 0;
    Try();
  });
}

}  // namespace sonde::node
