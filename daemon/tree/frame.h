// Frames: the values of some nodes at one tick, a part of the step's, as it goes up a link.
//
// A frame is sent as it was made and never changed: whoever merges it makes a new one, of all the
// nodes in it. So of two frames of a tick either none of the nodes is in both, or one has all the
// nodes of the other; and one that comes a second time is known by its nodes.
//
// A daemon sends three streams of frames, each with series of its own: kSchema goes first and again
// when they change. A value that is as it was in the stream's frame before costs a share of a byte,
// one that grew by a whole number 2 to 4, any other one 9 (of one node) or about 40 (merged). A
// general compressor saves a third of that and costs twenty times the CPU: it does not pay.
//
// Behind the values stand the sketches of those series that declare their spread, but in frames of
// last values, where they are empty. The sketch of one or two values of a gauge costs nothing,
// since these values tell it.
//
// Thread safety: none. Encoder and decoder keep state and buffers; warm, they allocate nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "core/status.h"
#include "core/time.h"
#include "daemon/tree/node_set.h"
#include "series/block/schema.h"
#include "series/sketch/quantile_sketch.h"
#include "series/store/reduced.h"

namespace sonde::tree {

enum class Stream : uint8_t {
  kOwn = 0,       // the sender's own sample
  kChildren = 1,  // those of nodes below it, merged
  kEnded = 2,     // last values of nodes that have ended: they stay in the totals
};
inline constexpr size_t kStreams = 3;

struct FrameInfo {
  uint64_t number = 0;  // the sender's, from 1, over all its streams
  Nanos tick = 0;       // a multiple of the period; of kEnded: they count in rows from there on
  Stream stream = Stream::kOwn;
  // Of kEnded: the node is lost or missing, these are its last values that arrived. It may be back.
  bool lost = false;
  NodeSet nodes;
};

struct Frame : FrameInfo {
  std::vector<Reduced> values;
  std::vector<QuantileSketch> spreads;  // of the series that have it, in their order
};

// What a frame is to hold, by a schema. Of the spreads all or none.
struct FrameValues {
  FrameValues(std::span<const Reduced> v) : values(v) {}     // NOLINT(google-explicit-constructor)
  FrameValues(const std::vector<Reduced>& v) : values(v) {}  // NOLINT(google-explicit-constructor)
  FrameValues(std::span<const Reduced> v, std::span<const QuantileSketch> s)
      : values(v), spreads(s) {}

  std::span<const Reduced> values;
  std::span<const QuantileSketch> spreads;
};

// The series of a schema that have their spread; of more than kMax the first.
class SpreadColumns {
 public:
  static constexpr size_t kMax = 256;

  SpreadColumns() = default;
  explicit SpreadColumns(const Schema& schema);

  size_t size() const { return columns_.size(); }
  size_t operator[](size_t i) const { return columns_[i].first; }
  // The sketch of the i-th is told by its value.
  bool IsTold(size_t i, const Reduced& value) const {
    return columns_[i].second && value.count <= 2;
  }

 private:
  std::vector<std::pair<size_t, bool>> columns_;  // column, is a gauge
};

// Of one stream.
class FrameEncoder {
 public:
  // After kSchema was sent: forget what came before. `nodes`: as if a frame of these had been sent.
  void Reset(const Schema& schema, NodeSet nodes = {});
  // Appends the frame. `frame`: as many values as there are series.
  void Encode(const FrameInfo& header, const FrameValues& frame, std::string& out);
  // Since Reset, each value as it last was: what the decoder knows.
  std::vector<Reduced> LastKnown() const;

 private:
  void PutValues(const FrameInfo& header, std::span<const Reduced> values, ByteWriter& w);
  void PutSpreads(const FrameValues& frame, std::string& out);

  std::vector<Reduced> last_;
  std::vector<Reduced> kept_;  // of those that were not there last; empty until one was not
  uint64_t schema_ = 0;        // whose columns_ they are
  SpreadColumns columns_;
  std::vector<QuantileSketch> last_spreads_;
  NodeSet nodes_;
};

// Which stream the bytes that an encoder wrote belong to; kCorrupt if to none.
Result<Stream> StreamOf(std::string_view bytes);
// The tick of a frame, before it is decoded; of malformed bytes any.
Nanos TickOf(std::string_view bytes);

class FrameDecoder {
 public:
  // As the encoder's.
  void Reset(const Schema& schema, NodeSet nodes = {});
  size_t series() const { return frame_.values.size(); }
  // kCorrupt for anything an encoder could not have written; the link is to be closed then, since
  // the state is lost. The frame is valid until the next call.
  Result<const Frame*> Decode(std::string_view bytes);
  // Each value as it last was: some are not sampled at every tick.
  std::vector<Reduced> LastKnown() const;

 private:
  void GetValues(ByteReader& r);
  void GetSpreads(ByteReader& r);
  void Tell(size_t i);

  Frame frame_;
  SpreadColumns columns_;
  std::vector<Reduced> kept_;  // of those that are not there now; empty until one was not
};

}  // namespace sonde::tree
