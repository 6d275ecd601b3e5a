#include "daemon/link/local_link.h"

#include <fmt/core.h>

#include <deque>

namespace sonde::tree {

// What one end has been sent and has not taken yet. Outlives both ends while a delivery is posted.
struct LocalLink::Inbox {
  std::string name;                  // of the end that reads it
  LocalLink* owner;                  // null once destroyed
  std::deque<std::string> messages;  // type byte and payload
  size_t bytes = 0;
  bool ended = false;   // nothing more will be added
  bool posted = false;  // a delivery is on its way
};

LocalLink::Ends LocalLink::MakePair(Loop& loop, std::string first_name, std::string second_name) {
  auto a = std::make_shared<Inbox>();
  auto b = std::make_shared<Inbox>();
  a->name = std::move(first_name);
  b->name = std::move(second_name);
  return {std::unique_ptr<LocalLink>(new LocalLink(loop, a, b)),
          std::unique_ptr<LocalLink>(new LocalLink(loop, b, a))};
}

LocalLink::LocalLink(Loop& loop, std::shared_ptr<Inbox> in, std::shared_ptr<Inbox> out)
    : loop_(loop), in_(std::move(in)), out_(std::move(out)) {
  in_->owner = this;
}

LocalLink::~LocalLink() {
  in_->owner = nullptr;
  EndOutput();
}

size_t LocalLink::queued() const { return out_->bytes; }

std::string LocalLink::peer() const { return out_->name; }

void LocalLink::EndOutput() {
  out_->ended = true;
  PostDelivery(loop_, out_);
}

Status LocalLink::Send(uint8_t type, std::string_view payload) {
  if (!open_ || closing_ || out_->owner == nullptr) {
    return {Code::kUnavailable, fmt::format("send to {}: the link is closed", out_->name)};
  }
  SONDE_RETURN_IF_ERROR(CheckPayload(payload.size()));
  const size_t size = kFrameHeader + payload.size();
  if (out_->bytes + size > kMaxQueued) {
    return {Code::kLimit, fmt::format("send to {}: {} bytes are waiting", out_->name, out_->bytes)};
  }
  std::string& message = out_->messages.emplace_back();
  message.reserve(1 + payload.size());
  message.push_back(static_cast<char>(type));
  message.append(payload);
  out_->bytes += size;
  bytes_sent_ += size;
  PostDelivery(loop_, out_);
  return {};
}

void LocalLink::CloseWhenSent() {
  if (!open_ || closing_) return;
  closing_ = true;
  EndOutput();
}

void LocalLink::PostDelivery(Loop& loop, const std::shared_ptr<Inbox>& inbox) {
  if (inbox->posted || inbox->owner == nullptr) return;
  inbox->posted = true;
  loop.Post([inbox] { Deliver(inbox); });
}

void LocalLink::Deliver(const std::shared_ptr<Inbox>& inbox) {
  inbox->posted = false;
  // What is sent from within a handler to this same end is delivered in the next round.
  for (size_t n = inbox->messages.size(); n > 0; --n) {
    if (inbox->owner == nullptr || !inbox->owner->open_) return;
    const std::string message = std::move(inbox->messages.front());
    inbox->messages.pop_front();
    inbox->bytes -= message.size() + kFrameHeader - 1;
    inbox->owner->Take(message);
  }
  LocalLink* owner = inbox->owner;
  if (owner == nullptr || !inbox->ended || !inbox->messages.empty()) return;
  if (owner->closing_) return owner->Close({});
  owner->Close({Code::kUnavailable, fmt::format("{}: closed by the peer", owner->peer())});
}

void LocalLink::Take(const std::string& message) {
  bytes_received_ += message.size() + kFrameHeader - 1;
  if (closing_) return;
  if (message.size() > max_message_) {
    return Close({Code::kCorrupt, fmt::format("{}: a message of {} bytes, at most {} are taken",
                                              peer(), message.size(), max_message_)});
  }
  const auto handler = handler_;
  if (handler->message) {
    handler->message(static_cast<uint8_t>(message[0]), std::string_view(message).substr(1));
  }
}

void LocalLink::Close(const Status& why) {
  if (!open_) return;
  open_ = false;
  EndOutput();
  const auto handler = handler_;
  if (handler->closed) handler->closed(why);
}

}  // namespace sonde::tree
