// The messages of the tree, as values and as bytes. Type says what each is for.
//
// Decoders trust nothing: every count and length is checked, names are bounded, and what is left
// over at the end makes a message bad.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "core/job.h"
#include "core/status.h"
#include "core/time.h"

namespace sonde::tree {

// On the wire: never reuse a number.
enum class Type : uint8_t {
  // Proof of the key, on every new connection.
  kHello = 1,    // connecting side -> accepting side: version, public key
  kOffer = 2,    // back: version, who it is, public key, proof
  kEntry = 3,    // connecting side: its registration, sealed as a message of this type
  kWelcome = 4,  // back: the node's index, what the tree looks like
  kSealed = 5,   // both, after kEntry: a message of another type (daemon/link/trust/seal.h)

  // The tree's shape, on the control connection to the head.
  kWantParent =
      10,           // node: ready for a fabric link; payload: the parent that failed it, or nothing
  kListen = 11,     // head -> inner node: listen for children
  kListening = 12,  // and its answer: the address, or why not
  kParent = 13,     // head -> node: connect there; without an address the control connection serves
  kNote = 14,       // node -> head: something a reader of the profile must know
  kBye = 15,        // node -> head: done, and how its tasks ended
  kByeAck = 16,
  kCounters = 17,  // head -> node: one byte, 1: leave the processor's counters to others, 0: count
  kJoin = 18,      // head -> node: scrape this exporter (web/source/scrape_target.h)
  kPush = 19,      // head -> node: a metric's value that came over HTTP, web/source/pushed_value.h

  // Data, on a node's way up: the link to its parent, or the control connection.
  kSchema = 20,    // a stream of frame.h, and the series of its frames that follow, packed
  kFrame = 21,     // frames, each behind its length
  kAck = 22,       // parent: the head has your frames up to this number; about once a second. The
                   // head's own children: and up to which they are safe
  kBlock = 23,     // blocks, each behind its length
  kBlockAck = 24,  // head: they are in the archive, or why not; each behind its length
  kLeave = 25,     // parent -> child: I go, take your control connection
  kMoments = 26,   // annotations and histograms of a tick: moments_message.h
  kMomentsAck = 27,
  kStreamEnd = 28,  // of this stream comes nothing more
  kRefused = 29,  // parent: the last values in your frame of this number overlap with others' that
                  // came before; they have to come each by itself

  kBudget = 32,  // head -> node: what its blocks may take: of the profile, of time

  // For the case that the head dies.
  kOver = 33,        // head -> node: nothing more of it is taken, and nobody is to go on
  kStandby = 34,     // head -> node: listen for the others
  kStandingBy = 35,  // and its answer: the port
  kSuccessors = 36,  // head -> node: who stands by, in the order in which they go on

  // Questions to nodes.
  kQuery = 30,
  kReply = 31,

  // What the step's own processes ask, on the control connection (libclient/ask/layout.h).
  kAsk = 40,     // node -> head
  kAnswer = 41,  // head -> node: the answer, or the values of a subscription

  kDerive =
      42,  // head -> node: series to make for alarms, besides those it has: series/alarm/rule.h

  kAskTime = 43,  // node -> head: what time is it? Varint: the question's number
  kTime = 44,     // head -> node: varint, that number; varint: the step's time, ns

  kAnswered = 45,  // child -> parent, right before a kReply: which nodes answered

  kJoined = 46,  // node -> head: how it is with an exporter that it scrapes
  kUnjoin = 47,  // head -> node: scrape it no more; payload: the target as kJoin named it
  kExits = 48,   // node -> head, before kBye: its tasks that did not end with exit code 0

  kJoinBlocks = 53,    // head -> node, its child -> that one's: blocks of nodes that leave may come
                       // joined
  kJoinedBlocks = 54,  // back: they do; series/block/joined.h

  // Control connections that go through a gateway (daemon/link/via_links.h).
  kGateway = 60,   // head -> node: it may be a gateway to this head
  kViaOpen = 61,   // gateway -> head: a node has proved the key to it: varint channel, registration
  kVia = 62,       // both: varint channel, and a message of it: its type, a byte, and payload
  kViaClose = 63,  // both: varint channel: nothing more comes of it
  kGatewayLeaves = 64,  // gateway -> node: it goes; the node looks for another way
  kGatewayCheck = 65,   // node -> gateway: are you there? And its answer, the same
};

// Releases that follow each other work together: an update reaches the hosts of a step one after
// the other, and daemons stay until their step ends. Therefore a message keeps its fields. What is
// new gets a new type, and a type that is not known here is passed over: its sender has proved the
// key. If that does not do, the version of the protocol goes up by one
// (daemon/link/trust/protocol.h).

// The index of the head; nodes count from 0.
inline constexpr uint32_t kHeadIndex = 0xffffffff;

struct Hello {
  uint32_t version = 0;    // the highest that the connecting side speaks
  std::string public_key;  // daemon/link/trust/key_exchange.h
};

struct Offer {
  uint32_t version = 0;  // that is spoken from now on: the lower one of the two sides' highest
  std::string public_key;
  uint32_t acceptor = 0;  // Channel (daemon/link/trust/link_keys.h), as the accepting side knows it
  uint32_t purpose = 0;
  std::string proof;
};

struct Entry {
  std::string sealed;  // kEntry with the registration, as the first sealed message
};

// What a node says of itself when it registers with the head, or comes back to it; a child that
// connects to its parent gives its index only.
struct Registration {
  std::string job;
  std::string step;
  uint32_t node_id = 0;
  uint32_t nodes = 0;  // in its component of the step
  uint32_t tasks = 0;
  std::string host;
  std::string switches;          // above it, from the top down (placement.h); "": not known
  uint32_t index = 0xffffffff;   // that it has already; none: it comes for the first time
  uint32_t parent = kHeadIndex;  // whom it sends to
};

struct Welcome {
  uint32_t index = 0;
  uint32_t fanout = 16;
  uint64_t now = 0;    // the head's clock, ns
  uint64_t start = 0;  // of the step, by the head's clock: the profile is known by it
  uint64_t head = 0;   // which head this is: another number, another head
};

// Where a node listens that goes on in case the head dies.
struct Place {
  uint32_t index = 0;
  std::string host;  // numeric
  uint16_t port = 0;
};
struct Successors {
  std::vector<Place> places;
};
inline constexpr size_t kMaxSuccessors = 8;
struct StandingBy {
  std::string host;   // numeric: where the node sees itself
  uint16_t port = 0;  // 0: it cannot listen
};

struct Listening {
  std::string address;  // empty: see error
  std::string error;
};

struct ParentAddress {
  uint32_t index = 0;
  std::string address;
};

// How a node's part of the step went.
struct Bye {
  int32_t exit_status = 0;  // the highest wait status
  uint32_t tasks_ended = 0;
  uint32_t tasks_killed = 0;  // of those, by a signal
  uint64_t ticks = 0;         // that fell between its welcome and its end
  uint64_t skipped = 0;       // of those, without a sample: the daemon did not get to run in time
  double cpu_seconds = 0;     // the daemon's own
  double memory_bytes = 0;
  double bytes_sent = 0;
  bool launcher_gone = false;
  uint64_t ended = 0;  // wall clock, ns: when its tasks were done: it takes no samples after that
};

// Of a node; the first ones of them.
struct Exits {
  std::vector<TaskExit> list;
  uint64_t left_out = 0;
};

// A block in the form it has now. It may stand for several that were sealed one after the other,
// and replaces those of them that the archive has.
struct BlockMessage {
  uint32_t node = 0;
  std::string group;
  uint64_t sequence = 0;  // of the last of them
  uint64_t first = 0;     // and of the first
  uint64_t samples = 0;   // that its rows are made of
  uint32_t reasons = 0;   // why these are more than the rows: ThinReason
  uint64_t stored = 0;    // bytes of this node in the archive, once it has this one
  bool hurry = false;     // its node is about to leave: nobody on the way waits for a tick
  std::string schema;     // packed, if the archive has asked for it
  std::string bytes;
};

struct BlockAck {
  static constexpr uint32_t kStored = 0;
  static constexpr uint32_t kUnknownSchema = 1;  // send it again, with its schema
  static constexpr uint32_t kRefused = 2;        // there is no room now
  uint32_t node = 0;
  std::string group;
  uint64_t sequence = 0;
  uint32_t result = kStored;
  bool hurry = false;  // as the block
};

// What a node's blocks may take.
struct BlockBudget {
  uint64_t share = 48u << 20;     // bytes of the profile
  uint64_t rate = 1u << 20;       // bytes a second while the step runs
  uint64_t end_rate = 16u << 20;  // and when it has ended
};

// A question: series/query/part.h says how it is answered.
struct QueryMessage {
  uint64_t id = 0;
  std::string spec;          // encoded QuerySpec
  std::string grid;          // encoded QueryGrid
  uint32_t patience_ms = 0;  // how long its receiver may wait for its own children
};
inline constexpr size_t kMaxQueryBytes = 1u << 20;

struct ReplyMessage {
  uint64_t id = 0;
  uint32_t nodes = 0;  // that answered
  uint32_t code = 0;   // a Code: why there is no answer, or 0
  std::string failure;
  std::string part;  // encoded QueryPart of these nodes
};

// Varint: the question's number; the nodes as a NodeSet (daemon/tree/node_set.h). A parent of an
// earlier release passes it over, and then only their number is known.
struct AnsweredMessage {
  uint64_t id = 0;
  std::string nodes;
};

// A question of a process of the node, by the node's own number; `kind` is a client::AskKind.
//   kList        body: the metric's name, empty for all
//   kQuery, kSubscribe  body: encoded QuerySpec
//   kCancel      nothing
struct AskMessage {
  uint64_t id = 0;
  uint32_t kind = 0;
  std::string body;
};

// As it goes on to the process.
struct AnswerMessage {
  uint64_t id = 0;
  uint32_t kind = 0;
  std::string body;
};

// An exporter that a node scrapes, or could not scrape, because of a kJoin.
struct JoinedMessage {
  static constexpr uint32_t kUp = 1;      // the last scrape succeeded
  static constexpr uint32_t kDown = 2;    // it failed; it is tried again
  static constexpr uint32_t kFailed = 3;  // it is not tried any more
  static constexpr uint32_t kGone = 4;    // as kUnjoin asked
  std::string target;                     // as in the kJoin
  uint32_t state = kUp;
  std::string kind;  // what it is: "Prometheus", "Proxy"; "": not known
  std::string url;   // that is scraped; "": not known
  std::string why;   // of kDown and kFailed
};

std::string Encode(const Hello& m);
std::string Encode(const Offer& m);
std::string Encode(const Entry& m);
std::string Encode(const Registration& m);
std::string Encode(const Welcome& m);
std::string Encode(const Successors& m);
std::string Encode(const StandingBy& m);
std::string Encode(const Listening& m);
std::string Encode(const ParentAddress& m);
std::string Encode(const Bye& m);
std::string Encode(const Exits& m);
std::string Encode(const BlockMessage& m);
std::string Encode(const BlockAck& m);
std::string Encode(const BlockBudget& m);
std::string Encode(const QueryMessage& m);
std::string Encode(const ReplyMessage& m);
std::string Encode(const AnsweredMessage& m);
std::string Encode(const AskMessage& m);
std::string Encode(const AnswerMessage& m);
std::string Encode(const JoinedMessage& m);

Status Decode(std::string_view bytes, Hello& m);
Status Decode(std::string_view bytes, Offer& m);
Status Decode(std::string_view bytes, Entry& m);
Status Decode(std::string_view bytes, Registration& m);
Status Decode(std::string_view bytes, Welcome& m);
Status Decode(std::string_view bytes, Successors& m);
Status Decode(std::string_view bytes, StandingBy& m);
Status Decode(std::string_view bytes, Listening& m);
Status Decode(std::string_view bytes, ParentAddress& m);
Status Decode(std::string_view bytes, Bye& m);
Status Decode(std::string_view bytes, Exits& m);
Status Decode(std::string_view bytes, BlockMessage& m);
Status Decode(std::string_view bytes, BlockAck& m);
Status Decode(std::string_view bytes, BlockBudget& m);
Status Decode(std::string_view bytes, QueryMessage& m);
Status Decode(std::string_view bytes, ReplyMessage& m);
Status Decode(std::string_view bytes, AnsweredMessage& m);
Status Decode(std::string_view bytes, AskMessage& m);
Status Decode(std::string_view bytes, AnswerMessage& m);
Status Decode(std::string_view bytes, JoinedMessage& m);

// Several in one message (blocks and their acknowledgements), each behind its length.
template <typename M>
void AppendTo(std::string& payload, const M& m) {
  ByteWriter(payload).Text(Encode(m));
}
// Calls `f` with each, until one is malformed.
template <typename M, typename F>
Status DecodeEach(std::string_view payload, F f) {
  ByteReader r(payload);
  while (r.left() > 0) {
    const std::string_view bytes = r.Text(payload.size());
    if (!r.ok()) return {Code::kCorrupt, "a list of messages is malformed"};
    M m;
    SONDE_RETURN_IF_ERROR(Decode(bytes, m));
    f(std::move(m));
  }
  return {};
}

}  // namespace sonde::tree
