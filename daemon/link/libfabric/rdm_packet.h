// The messages of links over FI_EP_RDM endpoints, which know neither connections nor who sent
// something.
//
// Each end of a link has a random number (64 bits), and packets to it bear that number: a packet
// for an end that is gone, or for its predecessor, finds nobody.
//
//   hello    connecting -> listening: `to` is the number in the listener's address, the payload is
//            where to answer
//   welcome  back: the link stands
//   data     a piece of the byte stream
//   bye      the end of the stream; nothing follows
//   ack      nothing but the numbers that every packet has
//   probe    the same, and wants an ack
//   gone     the link is closed, or was never made; comes after all data before `sequence`
//
// On the wire: never to change without changing kRdmMagic. Little-endian:
//   u32 kRdmMagic | u8 kind | 3 bytes 0 | u64 to | u64 from | u32 sequence | u32 acknowledged |
//   payload
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sonde::tree {

inline constexpr uint32_t kRdmMagic = 0x31445253;  // "SRD1"
inline constexpr size_t kRdmHeader = 32;
// A packet, its header included; providers send such a size in one piece.
inline constexpr size_t kRdmPacket = 16u << 10;

enum class RdmKind : uint8_t {
  kHello = 1,
  kWelcome = 2,
  kData = 3,
  kBye = 4,
  kAck = 5,
  kProbe = 6,
  kGone = 7,
};

struct RdmPacket {
  RdmKind kind = RdmKind::kAck;
  uint64_t to = 0;    // the receiver's number
  uint64_t from = 0;  // the sender's
  // Of data and bye: counted from 0. Of the others: that of the next data.
  uint32_t sequence = 0;
  // All before it have arrived.
  uint32_t acknowledged = 0;
  // hello: u32 format of the address, and the address. data: 1 byte or more.
  std::string_view payload;
};

// Writes the header, kRdmHeader bytes; the payload is the caller's to write behind it.
void EncodeHeader(const RdmPacket& packet, char* to);
// Nothing if it is no such packet. The payload lies in `bytes`.
std::optional<RdmPacket> DecodeRdmPacket(std::string_view bytes);

}  // namespace sonde::tree
