// The frames that a daemon has sent, as long as it does not know that the head has them.
//
// They are kept as bytes, each by itself, and can be read again to be sent over another link.
// Bounded are their number, their bytes, and the bytes of schemas that are kept for them alone, as
// where the series change every tick. Wide frames may take more bytes, up to a hard bound, as long
// as the head may still need them.
//
// Thread safety: none. Warm, it allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/time.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/ring.h"
#include "series/block/schema.h"

namespace sonde::tree {

class FrameWindow {
 public:
  // Two a tick until the acknowledgement has come through a deep tree: with ticks of 10 ms seconds.
  static constexpr size_t kMaxFrames = 1024;
  // So many bytes are kept in any case, and more only of frames that are younger than kNeeded, or
  // among the newest kLeastFrames. The head's own children keep frames until the head has stored
  // their rows: that is every 10 s (HeadStore::kStoreAfter), and frames of the next 10 s come
  // meanwhile.
  static constexpr size_t kBytes = 1u << 20;
  static constexpr Nanos kNeeded = 24 * kSecond;
  static constexpr size_t kLeastFrames = 16;
  static constexpr size_t kMaxBytes = 32u << 20;
  static constexpr size_t kMaxSchemaBytes = 4u << 20;

  // `info.number` is one more than that of the frame before. Without room the oldest frame goes,
  // last values after all others; frames that go and are not above `sent` are under way and cannot
  // be sent again, the others are lost.
  void Add(const FrameInfo& info, const Schema::Ptr& schema, const FrameValues& values,
           uint64_t sent);
  // The head has those up to this number.
  void Drop(uint64_t number);
  // This one alone is not to be sent again.
  void Remove(uint64_t number);
  // Leaves out every second frame after `number`, but no last values.
  void Thin(uint64_t number);
  size_t CountAfter(uint64_t number) const;
  size_t BytesAfter(uint64_t number) const;
  bool empty() const { return frames_.empty(); }
  size_t bytes() const { return bytes_; }
  // Frames from `number` on that had to go while they were under way cannot be sent again: they are
  // lost, too.
  void LoseGone(uint64_t number);
  // Frames that had to go before they were ever sent, or again; and the samples in them.
  uint64_t lost() const { return lost_; }
  uint64_t lost_samples() const { return lost_samples_; }

  // Those from `number` on, in order, until `f` returns false.
  void Replay(uint64_t number,
              const std::function<bool(const Frame& frame, const Schema::Ptr& schema)>& f);

 private:
  struct Kept {
    uint64_t number = 0;
    Nanos tick = 0;
    NodeSet nodes;  // which the bytes leave out: those of all frames share their memory
    Stream stream = Stream::kOwn;
    Schema::Ptr schema;
    size_t schema_bytes = 0;  // if the frame before of this stream had another one
    std::string bytes;
    size_t size = 0;  // of these, and of the nodes if the frame before of this stream had others
  };
  size_t FirstAfter(uint64_t number) const;
  size_t SchemaBytes(Stream stream, const Schema::Ptr& schema);
  size_t NodesBytes(Stream stream, const NodeSet& nodes);
  bool IsTooMuch(const Kept& oldest) const;
  void MakeRoom(uint64_t sent);
  void Lose(size_t samples);
  void Free(Kept& kept);
  void PopFront();

  Ring<Kept> frames_;
  std::vector<std::string> buffers_;  // of frames that are gone; the last serves next, so few grow
  std::array<uint64_t, kStreams> newest_schema_{};  // its id; 0: there was none
  std::array<NodeSet, kStreams> newest_nodes_;
  size_t bytes_ = 0;
  size_t schema_bytes_ = 0;
  Nanos newest_ = 0;  // tick
  // Those that went while they were under way, as long as the head may not have them.
  struct Gone {
    uint64_t number;
    size_t samples;
  };
  Ring<Gone> gone_;
  uint64_t lost_ = 0;
  uint64_t lost_samples_ = 0;
  FrameEncoder encoder_;
};

}  // namespace sonde::tree
