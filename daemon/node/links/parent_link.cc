#include "daemon/node/links/parent_link.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "daemon/link/send.h"
#include "daemon/link/trust/protocol.h"

namespace sonde::node {

using tree::Type;

void ParentLink::Connect(tree::Fabric& fabric, const tree::ParentAddress& parent) {
  asked_ = false;
  LetGo();  // it is told to take another
  if (parent.address.empty()) return;
  Result<std::unique_ptr<tree::Link>> link = fabric.Connect(parent.address);
  if (!link.ok() && link.status().code() == Code::kUnsupported) {
    // The head's host often lacks the nodes' fabric.
    return log::Info("no link to the parent: {}", link.status().message());
  }
  if (!link.ok()) return owner_.Note(std::string(link.status().message()));
  link_ = *std::move(link);
  index_ = parent.index;
  handshake_ = std::make_unique<tree::ConnectingHandshake>(
      key_,
      tree::Channel{.purpose = tree::Channel::Purpose::kChild,
                    .acceptor = parent.index,
                    .address = parent.address},
      owner_.registration());
  Listen();
  Send(*link_, Type::kHello, handshake_->Hello());
}

void ParentLink::Listen() {
  link_->SetHandler({.message = [this](uint8_t type, std::string_view p) { OnMessage(type, p); },
                     .closed =
                         [this](const Status& why) {
                           log::Info("link to the parent lost: {}", why.message());
                           Leave();
                         }});
}

void ParentLink::OnMessage(uint8_t type, std::string_view payload) {
  heard_ = Clock::System().Monotonic();
  if (handshake_ == nullptr) return owner_.OnUplinkMessage(static_cast<Type>(type), payload);
  Result<tree::HandshakeStep> step = handshake_->OnMessage(type, payload);
  if (!step.ok()) {
    owner_.Note(std::string(step.status().message()));
    return Leave();
  }
  Send(*link_, step->answer->type, step->answer->payload);
  handshake_.reset();
  link_ = tree::SealWith(*std::move(step->seals), std::move(link_));
  link_->SetMaxMessage(tree::kMaxMessage);
  Listen();
  log::Info("data goes to {} at {}",
            index_ == tree::kHeadIndex ? "the head" : fmt::format("node {}", index_),
            link_->peer());
  owner_.OnParentProven(*link_);
}

void ParentLink::Ask() {
  if (!asked_) asked_ = owner_.AskForParent(index_);
}

// When data to a peer that is gone vanishes, nobody reports it.
void ParentLink::Check(Nanos late) {
  if (link_ == nullptr || handshake_ != nullptr) return;
  if (Clock::System().Monotonic() - heard_ < kSilence + std::min(late, kSilence)) return;
  log::Info("nothing was heard from the parent for {} s", kSilence / kSecond);
  Leave();
}

void ParentLink::Leave() {
  if (link_ == nullptr) return;
  // After too many parents in a row that cannot be reached, the control connection serves.
  failed_ = LetGo() ? 0 : failed_ + 1;
  if (failed_ <= kMaxFailed) Ask();
}

// Returns whether the link was used.
bool ParentLink::LetGo() {
  if (link_ == nullptr) return false;
  const bool used = owner_.OnParentLost(*link_);
  sent_before_ += link_->bytes_sent();
  handshake_.reset();
  tree::DestroyLater(loop_, std::move(link_));
  return used;
}

}  // namespace sonde::node
