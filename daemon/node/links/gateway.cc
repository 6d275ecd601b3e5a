#include "daemon/node/links/gateway.h"

#include <utility>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/link/send.h"
#include "daemon/link/via_links.h"

namespace sonde::node {

using tree::Type;

Gateway::Gateway(Loop& loop, const StepKey& key, uint32_t node, std::function<void()> left)
    : loop_(loop), key_(key), node_(node), left_(std::move(left)) {}

Gateway::~Gateway() = default;

Status Gateway::Open(tree::Link& head, const std::string& host,
                     const std::vector<uint16_t>& ports) {
  OnHeadLost();
  next_ = 0;
  acceptor_ = std::make_unique<tree::Acceptor>(
      loop_, key_, tree::Channel{tree::Channel::Purpose::kGateway, node_, ""},
      [this](const tree::Registration& who, std::unique_ptr<tree::Link> link) {
        OnProven(who, std::move(link));
      });
  Status opened(Code::kInvalid, "no port to listen on");
  for (const uint16_t port : ports) {
    auto listener = tree::Listener::Open(
        loop_, host, {port, port},
        [this](std::unique_ptr<tree::SocketLink> link) { acceptor_->Take(std::move(link)); });
    opened = listener.status();
    if (!listener.ok()) continue;
    listener_ = *std::move(listener);
    head_ = &head;
    break;
  }
  if (!opened.ok()) acceptor_.reset();
  return opened;
}

void Gateway::OnProven(const tree::Registration& who, std::unique_ptr<tree::Link> link) {
  const uint64_t channel = next_;
  // The node comes again, or by itself, where the head does not take it now.
  if (!TellClosed() || !Tell(Type::kViaOpen, Encode(tree::ViaOpen{channel, who}))) {
    return tree::DestroyLater(loop_, std::move(link));
  }
  ++next_;
  link->SetMaxMessage(tree::kMaxMessage - tree::kViaOverhead - tree::kRoomToSeal);
  link->SetHandler(
      {.message = [this, channel](uint8_t type,
                                  std::string_view payload) { Up(channel, type, payload); },
       .closed = [this, channel](const Status&) { Close(channel, true); }});
  links_.emplace(channel, std::move(link));
}

// What the head cannot take now it would never hear of: the node comes again.
void Gateway::Up(uint64_t channel, uint8_t type, std::string_view payload) {
  if (head_ == nullptr) return;
  if (static_cast<Type>(type) == Type::kGatewayCheck) {
    tree::Send(*links_.at(channel), Type::kGatewayCheck, "");
    return;
  }
  if (!TellClosed() || !Tell(Type::kVia, tree::EncodeVia({channel, type, payload}))) {
    Close(channel, true);
  }
}

bool Gateway::Tell(Type type, std::string_view payload) {
  return head_ != nullptr && tree::Send(*head_, type, payload);
}

bool Gateway::TellClosed() {
  while (!untold_.empty() && Tell(Type::kViaClose, VarintBytes(untold_.back()))) {
    untold_.pop_back();
  }
  return untold_.empty();
}

void Gateway::Close(uint64_t channel, bool tell) {
  const auto at = links_.find(channel);
  if (at == links_.end()) return;
  tree::DestroyLater(loop_, std::move(at->second));
  links_.erase(at);
  if (tell && head_ != nullptr) untold_.push_back(channel);
  TellClosed();
  if (links_.empty()) left_();
}

void Gateway::OnHeadMessage(Type type, std::string_view payload) {
  TellClosed();
  if (type == Type::kViaClose) {
    uint64_t channel = 0;
    // The node is to have what came before that.
    if (!tree::DecodeChannel(payload, channel).ok()) return;
    if (const auto at = links_.find(channel); at != links_.end()) at->second->CloseWhenSent();
    return;
  }
  tree::ViaMessage message;
  if (!tree::DecodeVia(payload, message).ok()) return;
  const auto at = links_.find(message.channel);
  if (at == links_.end()) return;
  if (!at->second->Send(message.type, message.payload).ok()) Close(message.channel, true);
}

void Gateway::OnHeadLost() {
  head_ = nullptr;
  listener_.reset();
  acceptor_.reset();
  for (auto& [channel, link] : links_) tree::DestroyLater(loop_, std::move(link));
  links_.clear();
  untold_.clear();
}

void Gateway::Leave() {
  for (auto& [channel, link] : links_) tree::Send(*link, Type::kGatewayLeaves, "");
  listener_.reset();
  acceptor_.reset();
}

}  // namespace sonde::node
