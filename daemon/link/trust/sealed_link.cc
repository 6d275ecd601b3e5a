#include "daemon/link/trust/sealed_link.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/message/message.h"

namespace sonde::tree {
namespace {

static_assert(kSealOverhead <= kRoomToSeal);

constexpr auto kSealedType = static_cast<uint8_t>(Type::kSealed);

// Room for the bytes of one message while it is worked on.
class Room {
 public:
  explicit Room(size_t size)
      : large_(size > sizeof small_ ? std::make_unique_for_overwrite<char[]>(size) : nullptr) {}
  char* data() { return large_ != nullptr ? large_.get() : small_; }

 private:
  char small_[32u << 10];
  std::unique_ptr<char[]> large_;
};

}  // namespace

SealedLink::SealedLink(std::unique_ptr<Link> carrier, LinkSeals seals)
    : carrier_(std::move(carrier)), seals_(std::move(seals)) {
  carrier_->SetHandler(
      {.message = [this](uint8_t type, std::string_view payload) { OnMessage(type, payload); },
       .closed = [this](const Status& why) { OnClosed(why); }});
}

Status SealedLink::Send(uint8_t type, std::string_view payload) {
  if (carrier_ == nullptr || seals_.send.used_up()) {
    return {Code::kUnavailable, fmt::format("send to {}: the link is closed", peer())};
  }
  const size_t size = payload.size() + kSealOverhead;
  // Before the work is done for nothing.
  SONDE_RETURN_IF_ERROR(CheckPayload(size));
  Room room(size);
  seals_.send.Seal(type, payload, room.data());
  // A carrier that refuses a message drops it as a whole.
  SONDE_RETURN_IF_ERROR(carrier_->Send(kSealedType, {room.data(), size}));
  seals_.send.Next();
  if (seals_.send.used_up()) carrier_->CloseWhenSent();
  return {};
}

void SealedLink::OnMessage(uint8_t type, std::string_view payload) {
  if (type != kSealedType) return Refuse("a message that is not sealed");
  Room room(payload.size());
  const std::optional<SealedStream::Message> message = seals_.receive.Open(payload, room.data());
  if (!message) return Refuse("a message that is not the peer's next one, or was changed");
  const auto handler = handler_;
  if (handler->message) handler->message(message->type, message->payload);
}

void SealedLink::OnClosed(const Status& why) {
  const auto handler = handler_;
  if (!handler->closed) return;
  if (!seals_.send.used_up() || !why.ok()) return handler->closed(why);
  handler->closed(
      {Code::kUnavailable, fmt::format("{}: as much as one key may seal was sent", peer())});
}

void SealedLink::Refuse(std::string_view why) {
  peer_ = carrier_->peer();
  bytes_sent_ = carrier_->bytes_sent();
  bytes_received_ = carrier_->bytes_received();
  carrier_.reset();
  const auto handler = handler_;
  if (handler->closed) handler->closed({Code::kCorrupt, fmt::format("{}: {}", peer_, why)});
}

void SealedLink::ExpectMore() {
  if (carrier_ != nullptr) carrier_->ExpectMore();
}

void SealedLink::CloseWhenSent() {
  if (carrier_ != nullptr) carrier_->CloseWhenSent();
}

size_t SealedLink::queued() const { return carrier_ == nullptr ? 0 : carrier_->queued(); }

void SealedLink::SetMaxMessage(size_t bytes) {
  if (carrier_ != nullptr) carrier_->SetMaxMessage(bytes + kSealOverhead);
}

std::string SealedLink::peer() const { return carrier_ == nullptr ? peer_ : carrier_->peer(); }

uint64_t SealedLink::bytes_sent() const {
  return carrier_ == nullptr ? bytes_sent_ : carrier_->bytes_sent();
}

uint64_t SealedLink::bytes_received() const {
  return carrier_ == nullptr ? bytes_received_ : carrier_->bytes_received();
}

}  // namespace sonde::tree
