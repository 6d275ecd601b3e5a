// Moments on their way up the tree: merging those of several nodes, and the message that carries
// them. See docs/transport.md.
//
// A part is what one daemon sends at one tick. However many nodes are below it, it holds each
// annotation and each histogram once, and no more than the bounds here; what goes beyond them is
// left out and counted in Moments::lost, which travels with it.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "daemon/collect/app/moments.h"

namespace sonde::tree {

inline constexpr size_t kMaxAnnotations = 256;       // different ones
inline constexpr size_t kMaxSketches = 512;          // different series
inline constexpr size_t kMaxSketchBuckets = 131072;  // of all sketches together

// Moves `from` into `into`, whose annotations and sketches stay sorted. What is not fit to be sent,
// such as a text that is not plain, is left out and counted like what there is no room for.
void Merge(collect::Moments from, collect::Moments& into);

struct MomentsMessage {
  uint64_t sequence = 0;  // of the sender's parts, from 1: a part that comes again is known by it
  collect::Moments moments;  // as Merge makes them
};

// The receiver's word on parts.
struct MomentsAck {
  enum class Fate : uint8_t {
    kTaken,    // merged: the receiver answers for them
    kArrived,  // the head has merged them, which another head would not know
    kSafe,     // and now it would
  };
  Fate fate = Fate::kTaken;
  std::vector<uint64_t> sequences;
};
inline constexpr size_t kMaxAckedMoments = 4096;

// kCorrupt for bytes that Encode cannot have made of what Merge lets through.
std::string Encode(const MomentsMessage& m);
Status Decode(std::string_view bytes, MomentsMessage& m);
std::string Encode(const MomentsAck& m);
Status Decode(std::string_view bytes, MomentsAck& m);

}  // namespace sonde::tree
