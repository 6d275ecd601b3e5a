// What somebody without the key may say to either side of a handshake and to a sealed link, and
// what somebody with the key may seal.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/link/trust/handshake.h"
#include "daemon/link/trust/sealed_link.h"
#include "tests/fuzz/no_link.h"
#include "tests/fuzz/try_decode.h"

namespace {

using namespace sonde;
using namespace sonde::tree;

constexpr SealKey kKey{{1, 2, 3}, {4, 5, 6}};

// A carrier that hands on what it is given.
class Carrier final : public NoLink {
 public:
  void Deliver(uint8_t type, std::string_view payload) {
    const auto handler = handler_;
    handler->message(type, payload);
  }
};

struct Sealing {
  Sealing() {
    auto owned = std::make_unique<Carrier>();
    carrier = owned.get();
    link = std::make_unique<SealedLink>(std::move(owned),
                                        LinkSeals{SealedStream(kKey), SealedStream(kKey)});
    link->SetHandler({[this](uint8_t t, std::string_view p) {
                        type = t;
                        payload = p;
                        ++messages;
                      },
                      [this](const Status& why) {
                        if (why.ok()) __builtin_trap();
                        ++closed;
                      }});
  }
  std::unique_ptr<SealedLink> link;
  Carrier* carrier = nullptr;
  uint8_t type = 0;
  std::string payload;
  int messages = 0;
  int closed = 0;
};

// Nothing that was not sealed comes through, and the link ends at once.
void TryStranger(uint8_t type, std::string_view bytes) {
  Sealing sealing;
  sealing.carrier->Deliver(type, bytes);
  if (sealing.messages != 0 || sealing.closed != 1) __builtin_trap();
  if (sealing.link->Send(1, "x").ok()) __builtin_trap();
}

// Whatever is sealed comes through as it is, once.
void TryPeer(uint8_t type, std::string_view bytes) {
  Sealing sealing;
  SealedStream peer(kKey);
  std::string sealed(bytes.size() + kSealOverhead, '\0');
  peer.Seal(type, bytes, sealed.data());
  sealing.carrier->Deliver(static_cast<uint8_t>(Type::kSealed), sealed);
  if (sealing.messages != 1 || sealing.type != type || sealing.payload != bytes) __builtin_trap();
  sealing.carrier->Deliver(static_cast<uint8_t>(Type::kSealed), sealed);
  if (sealing.messages != 1 || sealing.closed != 1) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const uint8_t type = data[1];
  static const StepKey key{};
  static const Channel channel{Channel::Purpose::kChild, 5, "tcp:127.0.0.1:60000"};
  switch (data[0] % 6) {
    case 0:
      TryDecode<Offer>(bytes);
      break;
    case 1:
      TryDecode<Entry>(bytes);
      break;
    case 2: {
      const ConnectingHandshake handshake(key, channel, {});
      if (handshake.OnMessage(type, bytes).ok()) __builtin_trap();
      break;
    }
    case 3: {
      AcceptingHandshake handshake(key, channel);
      const Hello hello{2 + type % 2u, std::string(32, 'n')};
      if (!handshake.OnMessage(static_cast<uint8_t>(Type::kHello), Encode(hello)).ok()) {
        __builtin_trap();
      }
      if (handshake.OnMessage(static_cast<uint8_t>(Type::kEntry), bytes).ok()) __builtin_trap();
      break;
    }
    case 4:
      TryStranger(type, bytes);
      break;
    default:
      TryPeer(type, bytes);
  }
  return 0;
}
