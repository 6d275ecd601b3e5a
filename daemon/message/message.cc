#include "daemon/message/message.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/metric.h"

namespace sonde::tree {
namespace {

constexpr size_t kMaxAddress = 256;
constexpr size_t kMaxBytes = 8u << 20;
constexpr size_t kMaxFailure = 1024;
constexpr size_t kMaxTarget = 4096;

// Each message is described once, by a Fields function that a Put or a Get walks over, so that
// what is written and what is read cannot drift apart.
struct Put {
  ByteWriter w;
  void Number(const uint16_t& v) { w.Varint(v); }
  void Number(const uint32_t& v) { w.Varint(v); }
  void Number(const uint64_t& v) { w.Varint(v); }
  void Number(const int32_t& v) { w.Signed(v); }
  void Number(const double& v) { w.Fixed(v); }
  void Number(const bool& v) { w.Fixed<uint8_t>(v ? 1 : 0); }
  void Text(const std::string& v, size_t) { w.Text(v); }
  template <typename M>
  void List(const std::vector<M>& v, size_t) {
    w.Varint(v.size());
    for (const M& m : v) Fields(*this, m, &m);
  }
};

struct Get {
  ByteReader r;
  void Number(uint16_t& v) {
    const uint64_t n = r.Varint();
    if (n > UINT16_MAX) r.Fail();
    v = static_cast<uint16_t>(n);
  }
  void Number(uint32_t& v) {
    const uint64_t n = r.Varint();
    if (n > UINT32_MAX) r.Fail();
    v = static_cast<uint32_t>(n);
  }
  void Number(uint64_t& v) { v = r.Varint(); }
  void Number(int32_t& v) {
    const int64_t n = r.Signed();
    if (n > INT32_MAX || n < INT32_MIN) r.Fail();
    v = static_cast<int32_t>(n);
  }
  void Number(double& v) { v = r.Fixed<double>(); }
  void Number(bool& v) { v = r.Fixed<uint8_t>() != 0; }
  void Text(std::string& v, size_t limit) { v = r.Text(limit); }
  template <typename M>
  void List(std::vector<M>& v, size_t limit) {
    const uint64_t n = r.Varint();
    if (n > limit) return r.Fail();
    v.resize(n);
    for (M& m : v) Fields(*this, m, &m);
  }
};

void Fields(auto& io, auto& m, const Hello*) {
  io.Number(m.version);
  io.Text(m.public_key, 64);
}
void Fields(auto& io, auto& m, const Offer*) {
  io.Number(m.version);
  io.Text(m.public_key, 64);
  io.Number(m.acceptor);
  io.Number(m.purpose);
  io.Text(m.proof, 64);
}
void Fields(auto& io, auto& m, const Entry*) { io.Text(m.sealed, 2048); }
void Fields(auto& io, auto& m, const Registration*) {
  io.Text(m.job, 64);
  io.Text(m.step, 64);
  io.Number(m.node_id);
  io.Number(m.nodes);
  io.Number(m.tasks);
  io.Text(m.host, 256);
  io.Text(m.switches, 256);
  io.Number(m.index);
  io.Number(m.parent);
}
void Fields(auto& io, auto& m, const Welcome*) {
  io.Number(m.index);
  io.Number(m.fanout);
  io.Number(m.now);
  io.Number(m.start);
  io.Number(m.head);
}
void Fields(auto& io, auto& m, const Place*) {
  io.Number(m.index);
  io.Text(m.host, 64);
  io.Number(m.port);
}
void Fields(auto& io, auto& m, const Successors*) { io.List(m.places, kMaxSuccessors); }
void Fields(auto& io, auto& m, const StandingBy*) {
  io.Text(m.host, 64);
  io.Number(m.port);
}
void Fields(auto& io, auto& m, const Listening*) {
  io.Text(m.address, kMaxAddress);
  io.Text(m.error, 1024);
}
void Fields(auto& io, auto& m, const ParentAddress*) {
  io.Number(m.index);
  io.Text(m.address, kMaxAddress);
}
void Fields(auto& io, auto& m, const Bye*) {
  io.Number(m.exit_status);
  io.Number(m.tasks_ended);
  io.Number(m.tasks_killed);
  io.Number(m.ticks);
  io.Number(m.skipped);
  io.Number(m.cpu_seconds);
  io.Number(m.memory_bytes);
  io.Number(m.bytes_sent);
  io.Number(m.launcher_gone);
  io.Number(m.ended);
}
void Fields(auto& io, auto& m, const TaskExit*) {
  io.Number(m.rank);
  io.Number(m.status);
}
void Fields(auto& io, auto& m, const Exits*) {
  io.List(m.list, kMaxTaskExits);
  io.Number(m.left_out);
}
void Fields(auto& io, auto& m, const BlockMessage*) {
  io.Number(m.node);
  io.Text(m.group, 32);
  io.Number(m.sequence);
  io.Number(m.first);
  io.Number(m.samples);
  io.Number(m.reasons);
  io.Number(m.stored);
  io.Number(m.hurry);
  io.Text(m.schema, kMaxBytes);
  io.Text(m.bytes, kMaxBytes);
}
void Fields(auto& io, auto& m, const BlockBudget*) {
  io.Number(m.share);
  io.Number(m.rate);
  io.Number(m.end_rate);
}
void Fields(auto& io, auto& m, const BlockAck*) {
  io.Number(m.node);
  io.Text(m.group, 32);
  io.Number(m.sequence);
  io.Number(m.result);
  io.Number(m.hurry);
}
void Fields(auto& io, auto& m, const QueryMessage*) {
  io.Number(m.id);
  io.Text(m.spec, kMaxQueryBytes);
  io.Text(m.grid, kMaxQueryBytes);
  io.Number(m.patience_ms);
}
void Fields(auto& io, auto& m, const ReplyMessage*) {
  io.Number(m.id);
  io.Number(m.nodes);
  io.Number(m.code);
  io.Text(m.failure, kMaxFailure);
  io.Text(m.part, kMaxBytes);
}

void Fields(auto& io, auto& m, const AnsweredMessage*) {
  io.Number(m.id);
  io.Text(m.nodes, kMaxBytes);
}

void Fields(auto& io, auto& m, const AskMessage*) {
  io.Number(m.id);
  io.Number(m.kind);
  io.Text(m.body, 65536);
}
void Fields(auto& io, auto& m, const AnswerMessage*) {
  io.Number(m.id);
  io.Number(m.kind);
  io.Text(m.body, kMaxBytes);
}
void Fields(auto& io, auto& m, const JoinedMessage*) {
  io.Text(m.target, kMaxTarget);
  io.Number(m.state);
  io.Text(m.kind, kMaxAddress);
  io.Text(m.url, kMaxTarget);
  io.Text(m.why, kMaxFailure);
}

template <typename M>
std::string EncodeAny(const M& m) {
  std::string bytes;
  Put put{ByteWriter(bytes)};
  Fields(put, m, static_cast<const M*>(nullptr));
  return bytes;
}

template <typename M>
Status DecodeAny(std::string_view bytes, std::string_view name, M& m) {
  Get get{ByteReader(bytes)};
  Fields(get, m, static_cast<const M*>(nullptr));
  if (get.r.done()) return {};
  return {Code::kCorrupt, std::string(name) + " message is malformed"};
}

}  // namespace

std::string Encode(const Hello& m) { return EncodeAny(m); }
std::string Encode(const Offer& m) { return EncodeAny(m); }
std::string Encode(const Entry& m) { return EncodeAny(m); }
std::string Encode(const Registration& m) { return EncodeAny(m); }
std::string Encode(const Welcome& m) { return EncodeAny(m); }
std::string Encode(const Listening& m) { return EncodeAny(m); }
std::string Encode(const Successors& m) { return EncodeAny(m); }
std::string Encode(const StandingBy& m) { return EncodeAny(m); }
std::string Encode(const ParentAddress& m) { return EncodeAny(m); }
std::string Encode(const Bye& m) { return EncodeAny(m); }
std::string Encode(const Exits& m) { return EncodeAny(m); }
std::string Encode(const BlockMessage& m) { return EncodeAny(m); }
std::string Encode(const BlockAck& m) { return EncodeAny(m); }
std::string Encode(const BlockBudget& m) { return EncodeAny(m); }
std::string Encode(const QueryMessage& m) { return EncodeAny(m); }
std::string Encode(const ReplyMessage& m) { return EncodeAny(m); }
std::string Encode(const AnsweredMessage& m) { return EncodeAny(m); }
std::string Encode(const AskMessage& m) { return EncodeAny(m); }
std::string Encode(const AnswerMessage& m) { return EncodeAny(m); }
std::string Encode(const JoinedMessage& m) { return EncodeAny(m); }

Status Decode(std::string_view b, Hello& m) { return DecodeAny(b, "hello", m); }
Status Decode(std::string_view b, Offer& m) { return DecodeAny(b, "offer", m); }
Status Decode(std::string_view b, Entry& m) { return DecodeAny(b, "entry", m); }
Status Decode(std::string_view b, Registration& m) { return DecodeAny(b, "registration", m); }
Status Decode(std::string_view b, Welcome& m) { return DecodeAny(b, "welcome", m); }
Status Decode(std::string_view b, Listening& m) { return DecodeAny(b, "listening", m); }
Status Decode(std::string_view b, Successors& m) { return DecodeAny(b, "successors", m); }
Status Decode(std::string_view b, StandingBy& m) { return DecodeAny(b, "stand-by", m); }
Status Decode(std::string_view b, ParentAddress& m) { return DecodeAny(b, "parent", m); }
Status Decode(std::string_view b, Bye& m) { return DecodeAny(b, "bye", m); }
Status Decode(std::string_view b, Exits& m) { return DecodeAny(b, "exits", m); }
Status Decode(std::string_view b, BlockMessage& m) { return DecodeAny(b, "block", m); }
Status Decode(std::string_view b, BlockAck& m) { return DecodeAny(b, "block acknowledgement", m); }
Status Decode(std::string_view b, BlockBudget& m) { return DecodeAny(b, "block budget", m); }
Status Decode(std::string_view b, QueryMessage& m) { return DecodeAny(b, "query", m); }
Status Decode(std::string_view b, ReplyMessage& m) { return DecodeAny(b, "reply", m); }
Status Decode(std::string_view b, AnsweredMessage& m) { return DecodeAny(b, "answered", m); }
Status Decode(std::string_view b, AskMessage& m) { return DecodeAny(b, "question", m); }
Status Decode(std::string_view b, AnswerMessage& m) { return DecodeAny(b, "answer", m); }
Status Decode(std::string_view b, JoinedMessage& m) { return DecodeAny(b, "exporter", m); }

}  // namespace sonde::tree
