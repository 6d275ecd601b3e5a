// Bytes over a Unix socket, and descriptors with them.
//
// The other end may send more than was agreed: descriptors that were not expected are closed, and
// the bytes that came with them are refused. Programs that are started inherit no descriptor.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/unique_fd.h"

namespace sonde {

// The most descriptors sent or received at once; the kernel has the same limit.
inline constexpr size_t kMostDescriptors = 253;

enum class Patience { kNone, kAsTheSocket };

// Gives how many bytes were taken. A stream may take a part only; the descriptors went with that
// part. kBusy: the other end takes nothing now. Descriptors need at least one byte to go with.
Result<size_t> SendWithDescriptors(int to, std::string_view bytes, std::span<const int> fds,
                                   Patience patience);

struct DescriptorMessage {
  size_t size = 0;  // in the buffer
  std::vector<UniqueFd> fds;
};
// Receives one message of a packet socket, or a part of a stream. kBusy: there is nothing now;
// kNotFound: the other end is closed; kCorrupt: a packet that is longer than the buffer, or more
// than `most` descriptors.
Result<DescriptorMessage> ReceiveWithDescriptors(int from, std::span<char> buffer, size_t most,
                                                 Patience patience);

}  // namespace sonde
