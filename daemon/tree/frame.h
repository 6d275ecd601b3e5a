// Reduction frames: one tick of a subtree, as it goes up a link.
//
// The schema goes first and again when it changes (message kSchema); a frame carries one value per
// series of the schema last sent. A value equal to the one in the frame before on the same link
// costs a share of a byte, a value of one node 9 bytes, a merged one about 40.
//
// Thread safety: none. Encoder and decoder keep state and buffers; warm, they allocate nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "series/reduced.h"

namespace sonde::tree {

struct Frame {
  Nanos tick = 0;      // a multiple of the period; of a final frame: when its node ended
  uint32_t node = 0;   // who sends it
  uint32_t nodes = 0;  // whose samples of this tick are in it
  bool final = false;  // the last one: the node's values at its end, and those that left before
  std::vector<Reduced> values;
};

class FrameEncoder {
 public:
  // After kSchema was sent: forget what came before.
  void Reset(size_t series);
  // Appends the payload of kFrame.
  void Encode(const Frame& frame, std::string& out);

 private:
  std::vector<Reduced> last_;
};

class FrameDecoder {
 public:
  void Reset(size_t series);
  size_t series() const { return last_.values.size(); }
  // kCorrupt for anything an encoder could not have written; the link is to be closed then, since
  // the state is lost. The frame is valid until the next call.
  Result<const Frame*> Decode(std::string_view payload);

 private:
  Frame last_;
};

}  // namespace sonde::tree
