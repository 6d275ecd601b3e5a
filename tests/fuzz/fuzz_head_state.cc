// The state that a head leaves to another one: whatever the file holds is one, which is then
// written as it was read, or an error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/head/registry/head_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde::head;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  HeadState state;
  if (!Decode(bytes, state).ok()) return 0;
  size_t values = 0;
  ForEachLastValues(state, [&](const sonde::tree::FrameInfo&, auto columns, auto there) {
    if (columns.size() != there.size()) std::abort();
    for (const uint32_t column : columns) values += column < state.schema->size() ? 1 : 0;
    if (columns.size() > state.schema->size()) std::abort();
  });
  if (values > size) std::abort();  // each takes some bytes
  HeadState again;
  if (!Decode(Encode(state), again).ok() || again.ended.size() != state.ended.size()) std::abort();
  return 0;
}
