#include "daemon/head/registry/head_state.h"

#include <algorithm>

#include "core/annotation.h"
#include "core/bytes.h"
#include "core/text/names.h"

namespace sonde::head {
namespace {

// One for each node that was lost, at most; and of all of them together, values.
constexpr uint64_t kMaxEnded = 1u << 17;
constexpr uint64_t kMaxValues = 1u << 26;
constexpr size_t kMaxBytes = size_t{64} << 20;

Status Corrupt() { return {Code::kCorrupt, "read a head's state: it is malformed"}; }

OpenPhase ReadPhase(ByteReader& r) {
  OpenPhase phase;
  phase.name = r.Text(kMaxTextLength);
  phase.begin = static_cast<Nanos>(std::min<uint64_t>(r.Varint(), INT64_MAX));
  phase.inside = r.Varint();
  phase.by.node = static_cast<uint32_t>(std::min<uint64_t>(r.Varint(), UINT32_MAX));
  phase.by.rank = static_cast<uint32_t>(std::min<uint64_t>(r.Varint(), UINT32_MAX));
  if (phase.inside == 0 || !names::IsPlainText(phase.name)) r.Fail();
  return phase;
}

}  // namespace

std::string Encode(const HeadState& state) {
  std::string bytes;
  ByteWriter w(bytes);
  w.Fixed(HeadState::kVersion);
  w.Varint(static_cast<uint64_t>(state.row));
  w.Varint(state.byes);
  w.Text(Encode(state.ends));
  w.Text(state.schema == nullptr ? "" : PackSchema(*state.schema));
  w.Varint(state.ended.size());
  std::string one;
  for (const tree::Frame& frame : state.ended) {
    tree::FrameEncoder encoder;
    encoder.Reset(*state.schema);
    one.clear();
    encoder.Encode(frame, frame.values, one);
    w.Text(one);
  }
  w.Varint(state.phases.size());
  for (const OpenPhase& phase : state.phases) {
    w.Text(phase.name);
    w.Varint(static_cast<uint64_t>(phase.begin));
    w.Varint(phase.inside);
    w.Varint(phase.by.node);
    w.Varint(phase.by.rank);
  }
  w.Text(state.alarms);
  return bytes;
}

Status Decode(std::string_view bytes, HeadState& state) {
  ByteReader r(bytes);
  const auto version = r.Fixed<uint8_t>();
  if (r.ok() && version != HeadState::kVersion) {
    return {Code::kUnsupported, "read a head's state: another release wrote it"};
  }
  state.row = static_cast<Nanos>(std::min<uint64_t>(r.Varint(), INT64_MAX));
  state.byes = static_cast<uint32_t>(std::min<uint64_t>(r.Varint(), UINT32_MAX));
  if (!r.ok() || !Decode(r.Text(kMaxBytes), state.ends).ok()) return Corrupt();
  const std::string_view packed = r.Text(kMaxBytes);
  const uint64_t frames = r.Varint();
  if (!r.ok() || frames > kMaxEnded || (packed.empty() && frames > 0)) return Corrupt();
  if (!packed.empty()) {
    Result<Schema::Ptr> schema = SchemaCache().Decode(packed);
    if (!schema.ok()) return schema.status();
    state.schema = *std::move(schema);
  }
  if (frames > 0 && frames * state.schema->size() > kMaxValues) return Corrupt();
  for (uint64_t i = 0; i < frames; ++i) {
    tree::FrameDecoder decoder;
    decoder.Reset(*state.schema);
    const Result<const tree::Frame*> frame = decoder.Decode(r.Text(kMaxBytes));
    if (!r.ok() || !frame.ok() || (*frame)->stream != tree::Stream::kEnded) return Corrupt();
    state.ended.push_back(**frame);
  }
  state.phases.resize(r.Count(5, MomentsBuilder::kMaxPhases));
  for (OpenPhase& phase : state.phases) phase = ReadPhase(r);
  state.alarms = r.Text(kMaxBytes);
  return r.done() ? Status() : Corrupt();
}

}  // namespace sonde::head
