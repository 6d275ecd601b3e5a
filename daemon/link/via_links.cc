#include "daemon/link/via_links.h"

#include <fmt/core.h>

#include <utility>

#include "core/bytes.h"
#include "daemon/link/send.h"

namespace sonde::tree {

namespace {

Status BadVia(std::string_view what) {
  return {Code::kCorrupt, fmt::format("{} through a gateway: it cannot be read", what)};
}

}  // namespace

// --- What gateway and head say to each other ---

std::string EncodeVia(const ViaMessage& message) {
  std::string bytes;
  bytes.reserve(message.payload.size() + kViaOverhead);
  ByteWriter w(bytes);
  w.Varint(message.channel);
  bytes += static_cast<char>(message.type);
  bytes += message.payload;
  return bytes;
}

Status DecodeVia(std::string_view bytes, ViaMessage& message) {
  ByteReader r(bytes);
  message.channel = r.Varint();
  message.type = r.Fixed<uint8_t>();
  if (!r.ok()) return BadVia("a message");
  message.payload = bytes.substr(bytes.size() - r.left());
  return {};
}

std::string Encode(const ViaOpen& open) { return EncodeVia({open.channel, 0, Encode(open.who)}); }

Status Decode(std::string_view bytes, ViaOpen& open) {
  ViaMessage message;
  SONDE_RETURN_IF_ERROR(DecodeVia(bytes, message));
  open.channel = message.channel;
  return Decode(message.payload, open.who);
}

Status DecodeChannel(std::string_view bytes, uint64_t& channel) {
  ByteReader r(bytes);
  channel = r.Varint();
  return r.done() ? Status() : BadVia("the end of a connection");
}

// --- The links ---

class ViaLinks::Channel final : public Link {
 public:
  Channel(Loop& loop, std::shared_ptr<State> state, uint64_t number, std::string host)
      : loop_(loop),
        state_(std::move(state)),
        number_(number),
        gateway_(state_->gateway->peer()),
        host_(std::move(host)) {
    state_->channels.emplace(number_, this);
  }
  ~Channel() override {
    if (open_) Leave(true);
  }

  Status Send(uint8_t type, std::string_view payload) override {
    if (!open_) return {Code::kUnavailable, fmt::format("send to {}: the link is closed", peer())};
    SONDE_RETURN_IF_ERROR(CheckPayload(payload.size() + kViaOverhead + kRoomToSeal));
    state_->TellClosed();
    const Status sent = state_->gateway->Send(static_cast<uint8_t>(Type::kVia),
                                              EncodeVia({number_, type, payload}));
    if (!sent.ok()) {
      End(sent, true);
    } else {
      bytes_sent_ += payload.size() + kFrameHeader;
    }
    return sent;
  }
  void ExpectMore() override {
    if (open_) state_->gateway->ExpectMore();
  }
  void CloseWhenSent() override { End({}, true); }
  size_t queued() const override { return open_ ? state_->gateway->queued() : 0; }
  void SetMaxMessage(size_t bytes) override { max_message_ = bytes; }
  std::string peer() const override { return fmt::format("{} through {}", host_, gateway_); }

  bool direct() const override { return false; }

  void Take(uint8_t type, std::string_view payload) {
    if (payload.size() + 1 > max_message_) {
      return End({Code::kCorrupt, fmt::format("{}: a message of {} bytes, {} are taken", peer(),
                                              payload.size() + 1, max_message_)},
                 true);
    }
    bytes_received_ += payload.size() + kFrameHeader;
    const auto handler = handler_;
    if (handler->message) handler->message(type, payload);
  }
  // The owner hears of it from the loop, not from within a call of its own.
  void End(const Status& why, bool tell) {
    if (!open_) return;
    Leave(tell);
    loop_.Post([alive = std::weak_ptr(alive_), this, why] {
      if (alive.expired()) return;
      const auto handler = handler_;
      if (handler->closed) handler->closed(why);
    });
  }

 private:
  void Leave(bool tell) {
    open_ = false;
    state_->channels.erase(number_);
    if (!tell || state_->gateway == nullptr) return;
    state_->untold.push_back(number_);
    state_->TellClosed();
  }

  Loop& loop_;
  const std::shared_ptr<State> state_;
  const uint64_t number_;
  const std::string gateway_;
  const std::string host_;
  size_t max_message_ = kMaxMessage;
  bool open_ = true;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

void ViaLinks::State::TellClosed() {
  while (gateway != nullptr && !untold.empty() &&
         tree::Send(*gateway, Type::kViaClose, VarintBytes(untold.back()))) {
    untold.pop_back();
  }
}

ViaLinks::ViaLinks(Loop& loop, Link& gateway, Opened opened)
    : loop_(loop), opened_(std::move(opened)), state_(std::make_shared<State>()) {
  state_->gateway = &gateway;
}

ViaLinks::~ViaLinks() { Lose(); }

void ViaLinks::Lose() {
  if (state_->gateway == nullptr) return;
  const std::string gateway = state_->gateway->peer();
  state_->gateway = nullptr;
  while (!state_->channels.empty()) {
    state_->channels.begin()->second->End(
        {Code::kUnavailable, fmt::format("the gateway {} is lost", gateway)}, false);
  }
}

Status ViaLinks::OnMessage(Type type, std::string_view payload) {
  if (state_->gateway == nullptr) return {};
  state_->TellClosed();
  switch (type) {
    case Type::kViaOpen:
      return OnOpen(payload);
    case Type::kVia:
      return OnVia(payload);
    case Type::kViaClose:
      return OnClose(payload);
    default:
      return BadVia("something");
  }
}

Status ViaLinks::OnOpen(std::string_view payload) {
  ViaOpen open;
  SONDE_RETURN_IF_ERROR(Decode(payload, open));
  if (open.channel != next_) return BadVia("a connection");
  ++next_;
  opened_(open.who, std::make_unique<Channel>(loop_, state_, open.channel, open.who.host));
  return {};
}

Status ViaLinks::OnVia(std::string_view payload) {
  ViaMessage message;
  SONDE_RETURN_IF_ERROR(DecodeVia(payload, message));
  if (message.channel >= next_) return BadVia("a message");
  const auto at = state_->channels.find(message.channel);
  if (at != state_->channels.end()) at->second->Take(message.type, message.payload);
  return {};
}

Status ViaLinks::OnClose(std::string_view payload) {
  uint64_t channel = 0;
  SONDE_RETURN_IF_ERROR(DecodeChannel(payload, channel));
  if (channel >= next_) return BadVia("the end of a connection");
  const auto at = state_->channels.find(channel);
  if (at != state_->channels.end()) {
    Channel& link = *at->second;
    link.End({Code::kUnavailable, fmt::format("{}: closed by the peer", link.peer())}, false);
  }
  return {};
}

}  // namespace sonde::tree
