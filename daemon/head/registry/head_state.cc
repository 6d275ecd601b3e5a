#include "daemon/head/registry/head_state.h"

#include <algorithm>
#include <utility>

#include "core/annotation.h"
#include "core/bytes.h"
#include "core/text/names.h"

namespace sonde::head {
namespace {

// One for each node, at most: as many as a description may have. Values that are not there take no
// memory, but reading passes over them: so many of all frames together.
constexpr uint64_t kMaxEnded = 1u << 20;
constexpr uint64_t kMaxValues = 1u << 30;
constexpr size_t kMaxBytes = HeadState::kMaxBytes;
// A length in front of a text.
constexpr size_t kMaxVarint = 10;

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

// What stands behind the last values.
std::string EncodeRest(const HeadState& state) {
  std::string bytes;
  ByteWriter w(bytes);
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

// How many of these, from the first on, there is room for beside so many bytes.
size_t CountFitting(const std::vector<std::string>& texts, size_t others) {
  size_t bytes = others;
  const auto end = std::find_if(texts.begin(), texts.end(), [&](const std::string& text) {
    bytes += kMaxVarint + text.size();
    return bytes > kMaxBytes;
  });
  return static_cast<size_t>(end - texts.begin());
}

}  // namespace

std::string EncodeLastValues(const tree::Frame& frame, const Schema& schema, bool gauges) {
  std::string bytes;
  tree::FrameEncoder encoder;
  encoder.Reset(schema);
  if (gauges) {
    encoder.Encode(frame, frame.values, bytes);
    return bytes;
  }
  std::vector<Reduced> counted = frame.values;
  for (size_t i = 0; i < counted.size(); ++i) {
    if (!IsCounting(schema[i].metric.type)) counted[i] = Reduced();
  }
  encoder.Encode(frame, counted, bytes);
  return bytes;
}

void ForEachLastValues(const HeadState& state,
                       const std::function<void(const tree::FrameInfo&, std::span<const uint32_t>,
                                                std::span<const Reduced>)>& f) {
  tree::FrameDecoder decoder;
  std::vector<uint32_t> columns;
  std::vector<Reduced> values;
  for (const std::string& bytes : state.ended) {
    decoder.Reset(*state.schema);
    const Result<const tree::Frame*> frame = decoder.Decode(bytes);
    if (!frame.ok()) continue;  // as no state has one that was decoded
    columns.clear();
    values.clear();
    for (uint32_t i = 0; i < (*frame)->values.size(); ++i) {
      if ((*frame)->values[i].count == 0) continue;
      columns.push_back(i);
      values.push_back((*frame)->values[i]);
    }
    f(**frame, columns, values);
  }
}

std::string Encode(const HeadState& state, size_t* left_out) {
  std::string bytes;
  ByteWriter w(bytes);
  w.Fixed(HeadState::kVersion);
  w.Varint(static_cast<uint64_t>(state.row));
  w.Varint(state.byes);
  w.Text(Encode(state.ends));
  w.Text(state.schema == nullptr ? "" : PackSchema(*state.schema));
  const std::string rest = EncodeRest(state);
  const size_t fitting = CountFitting(state.ended, bytes.size() + kMaxVarint + rest.size());
  if (left_out != nullptr) *left_out = state.ended.size() - fitting;
  w.Varint(fitting);
  for (size_t i = 0; i < fitting; ++i) w.Text(state.ended[i]);
  w.Raw(rest);
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
  tree::FrameDecoder decoder;
  for (uint64_t i = 0; i < frames; ++i) {
    const std::string_view one = r.Text(kMaxBytes);
    decoder.Reset(*state.schema);
    const Result<const tree::Frame*> frame = decoder.Decode(one);
    if (!r.ok() || !frame.ok() || (*frame)->stream != tree::Stream::kEnded) return Corrupt();
    state.ended.emplace_back(one);
  }
  state.phases.resize(r.Count(5, MomentsBuilder::kMaxPhases));
  for (OpenPhase& phase : state.phases) phase = ReadPhase(r);
  state.alarms = r.Text(kMaxBytes);
  return r.done() ? Status() : Corrupt();
}

}  // namespace sonde::head
