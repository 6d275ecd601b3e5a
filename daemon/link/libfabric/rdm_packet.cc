#include "daemon/link/libfabric/rdm_packet.h"

#include <cstring>

namespace sonde::tree {
namespace {

struct Header {
  uint32_t magic;
  uint8_t kind;
  uint8_t zero[3];
  uint64_t to;
  uint64_t from;
  uint32_t sequence;
  uint32_t acknowledged;
};
static_assert(sizeof(Header) == kRdmHeader);

bool MayHavePayload(RdmKind kind) { return kind == RdmKind::kHello || kind == RdmKind::kData; }

}  // namespace

void EncodeHeader(const RdmPacket& packet, char* to) {
  const Header header{kRdmMagic,
                      static_cast<uint8_t>(packet.kind),
                      {},
                      packet.to,
                      packet.from,
                      packet.sequence,
                      packet.acknowledged};
  std::memcpy(to, &header, sizeof header);
}

std::optional<RdmPacket> DecodeRdmPacket(std::string_view bytes) {
  Header header;
  if (bytes.size() < sizeof header || bytes.size() > kRdmPacket) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool known = header.kind >= static_cast<uint8_t>(RdmKind::kHello) &&
                     header.kind <= static_cast<uint8_t>(RdmKind::kGone);
  const bool zero = (header.zero[0] | header.zero[1] | header.zero[2]) == 0;
  if (header.magic != kRdmMagic || !known || !zero) return std::nullopt;
  const auto kind = static_cast<RdmKind>(header.kind);
  const bool has_payload = bytes.size() > sizeof header;
  if (has_payload != MayHavePayload(kind)) return std::nullopt;
  return RdmPacket{kind,
                   header.to,
                   header.from,
                   header.sequence,
                   header.acknowledged,
                   bytes.substr(sizeof header)};
}

}  // namespace sonde::tree
