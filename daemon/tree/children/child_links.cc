#include "daemon/tree/children/child_links.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "daemon/link/send.h"

namespace sonde::tree {

ChildLinks::ChildLinks(Loop& loop, const StepKey& key, Nanos period, Children& children,
                       std::function<void()> changed)
    : loop_(loop),
      key_(key),
      silence_(std::max(kSilence, 5 * period / 2)),
      children_(children),
      changed_(std::move(changed)) {}

ChildLinks::~ChildLinks() { loop_.Cancel(pulse_timer_); }

void ChildLinks::MakeRoom(size_t children, FabricOptions& options) {
  options.max_pending = MostUnproven(children);
  options.max_links = children + 8 + 2 * MostUnproven(children);
}

Result<std::string> ChildLinks::Listen(Fabric& fabric, uint32_t index, size_t children) {
  if (acceptor_ != nullptr) return address_;
  acceptor_ = std::make_unique<Acceptor>(
      loop_, key_, Channel{Channel::Purpose::kChild, index, ""},
      [this](const Registration& who, std::unique_ptr<Link> link) {
        OnProven(who, std::move(link));
      },
      MostUnproven(children));
  fabric_ = &fabric;
  address_ =
      fabric.Listen([this](std::unique_ptr<Link> link) { acceptor_->Take(std::move(link)); });
  if (address_.ok()) acceptor_->SetAddress(*address_);
  return address_;
}

void ChildLinks::OnProven(const Registration& who, std::unique_ptr<Link> link) {
  Link* raw = link.get();
  raw->SetHandler(
      {.message = [this, raw](uint8_t type,
                              std::string_view payload) { OnMessage(*raw, type, payload); },
       .closed =
           [this, raw](const Status& why) {
             // Somebody on the way, or a defect: a link that is only lost is nothing to tell of.
             if (why.code() == Code::kCorrupt) log::Warning("child {}", why.message());
             Drop(*raw);
           }});
  children_.Add(*raw, who.index);
  links_.emplace(raw, std::move(link));
  if (join_) Send(*raw, Type::kJoinBlocks, "\1");
}

void ChildLinks::LetJoin() {
  if (std::exchange(join_, true)) return;
  for (const auto& [raw, link] : links_) Send(*raw, Type::kJoinBlocks, "\1");
}

void ChildLinks::OnMessage(Link& link, uint8_t type, std::string_view payload) {
  const Status status = children_.OnMessage(link, static_cast<Type>(type), payload);
  if (!status.ok()) {
    log::Warning("child {}: {}", link.peer(), status.message());
    return Drop(link);
  }
  Watch();
  changed_();
}

void ChildLinks::Drop(Link& link) {
  children_.Remove(link);
  auto found = links_.extract(&link);
  if (found.empty()) return;
  DestroyLater(loop_, std::move(found.mapped()));
  changed_();
}

void ChildLinks::Watch() {
  if (pulse_timer_ == 0 && !children_.idle()) PulseAfter(kPulse);
}

void ChildLinks::PulseSoon() {
  if (children_.idle() || Clock::System().Monotonic() - pulsed_ < kPulse / 2) return;
  loop_.Cancel(pulse_timer_);
  PulseAfter(0);
}

void ChildLinks::PulseAfter(Nanos delay) {
  pulse_timer_ = loop_.After(delay, [this] {
    pulse_timer_ = 0;
    pulsed_ = Clock::System().Monotonic();
    children_.Pulse();
    DropSilent(pulsed_ - silence_);
    Watch();
  });
}

void ChildLinks::DropSilent(Nanos since) {
  for (Link* link : children_.SilentSince(since)) {
    if (!links_.contains(link)) continue;  // another's
    log::Info("child {}: nothing was heard of it", link->peer());
    Drop(*link);
  }
}

void ChildLinks::Close() {
  if (fabric_ != nullptr) std::exchange(fabric_, nullptr)->StopListening();
  for (auto& [raw, link] : std::exchange(links_, {})) {
    children_.Remove(*raw);
    DestroyLater(loop_, std::move(link));
  }
}

}  // namespace sonde::tree
