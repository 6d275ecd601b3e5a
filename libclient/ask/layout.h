// How a process asks the daemon of its node about the step's data: the packets of the socket for
// questions.
//
// The daemon listens at the abstract name in SONDE_SOCKET with kAskSuffix behind it,
// SOCK_SEQPACKET, apart from the socket for metrics: questions are answered at once, metrics are
// read at ticks. Each side checks that the other runs as the same user.
//
// Every packet starts with a Packet and has at most kMaxPacket bytes. A request is one packet. What
// the daemon sends may take several: all but the last have `more` set, and no packet of another
// message comes between. The process sends kHello first and waits for kWelcome. Then every request
// has an id that the process chooses, unique among its open requests, and gets one kListing,
// kAnswer, kAccepted or kFailed with that id. An accepted subscription then gets any number of
// kPoints, until it is cancelled or ends with kFailed.
//
// Bodies, in the notation of core/bytes.h (varint, text = varint length and bytes, f64):
//
//   kHello      AskHello                            kWelcome   AskWelcome
//   kList       text metric ("": all)
//   kQuery      text metric, text aggregator, text downsample ("": none), u8 flags (kRate...),
//               varint n, n x (text type, text key, text pattern, u8 group_by),
//               signed start, signed end            nanoseconds since 1970 UTC
//   kSubscribe  the same; downsample and times are ignored
//   kCancel     nothing; the id is that of the subscription; no answer
//   kAlarm      text name, text rule                an alarm rule, as docs/alarms.md has them; the
//                                               answer is a kAnswer without a body
//   kListing    u8 kBodyVersion, varint n, n x series as in series/block/series_bytes.h
//   kAnswer,    u8 kBodyVersion, varint nodes that answered, varint nodes that should have, u8
//   kPoints     flags (kLate...), varint n, n x (text metric, varint t, t x (text key, text
//               value), varint a, a x text key of a tag that differs, varint p, p x (signed time
//               minus the one before, f64 value))
//   kAccepted   nothing
//   kFailed     u8 code of sonde_query.h, text why
//
// The words of a question are OpenTSDB's (docs/queries.md). Both sides distrust each other: every
// length and count is checked. Integers are little-endian; any change is a new kAskVersion.
// Compiled into libsonde, hence free of dependencies.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::client {

inline constexpr char kAskSuffix[] = ".ask";
inline constexpr uint64_t kAskMagic = 0x314b5341'45444e53;  // "SNDEASK1"
inline constexpr uint32_t kAskVersion = 1;
inline constexpr uint8_t kBodyVersion = 1;

inline constexpr size_t kMaxPacket = 64u << 10;
inline constexpr size_t kMaxAnswer = 4u << 20;  // of one body
inline constexpr size_t kMaxAskFilters = 64;
inline constexpr size_t kMaxAskText = 48u << 10;  // of one pattern
inline constexpr size_t kMaxWhy = 1024;
inline constexpr size_t kMaxAlarmName = 256;  // a wrong name up to this long is quoted
inline constexpr size_t kMaxAlarmRule = 4096;

// Kinds of messages, of both sides. On the wire: never reuse a number.
enum class AskKind : uint8_t {
  kHello = 1,
  kList = 2,
  kQuery = 3,
  kSubscribe = 4,
  kCancel = 5,
  kAlarm = 6,
  kWelcome = 64,
  kListing = 65,
  kAnswer = 66,
  kAccepted = 67,
  kPoints = 68,
  kFailed = 69,
};

struct Packet {
  uint64_t id;
  uint8_t kind;  // AskKind
  uint8_t more;  // 1: the body goes on in the next packet
  uint16_t reserved;
  uint32_t missed;  // kPoints: pushes left out before this one, as the process did not read
};
static_assert(sizeof(Packet) == 16);
inline constexpr size_t kMaxRequest = kMaxPacket - sizeof(Packet);

struct AskHello {
  uint64_t magic;
  uint32_t version;
  uint32_t reserved;
};
struct AskWelcome {
  uint64_t magic;
  uint32_t version;
  int32_t level;   // the step's
  int64_t period;  // of its ticks, nanoseconds
};
static_assert(sizeof(AskHello) == 16 && sizeof(AskWelcome) == 24);

// Flags of an answer. Earlier releases of the library take any of them for kLate.
inline constexpr uint8_t kLate = 1;      // the same tick again, with a part that came late
inline constexpr uint8_t kRowsOnly = 2;  // rows of the whole step made it alone

// Flags of a question.
inline constexpr uint8_t kRate = 1;          // change per second
inline constexpr uint8_t kRateCounter = 2;   // a fall is an overflow
inline constexpr uint8_t kRateDrop = 4;      // such a fall is left out
inline constexpr uint8_t kExplicitTags = 8;  // series with the filtered tags and no others

}  // namespace sonde::client
