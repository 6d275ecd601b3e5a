// Messages with descriptors between the processes of a site's server, over SOCK_SEQPACKET pairs:
// each message arrives whole or not at all.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "core/unique_fd.h"

namespace sonde::site {

inline constexpr size_t kMaxMessage = 64u << 10;

struct Message {
  std::string text;
  UniqueFd fd;  // perhaps none
};

// Two connected ends; started programs do not inherit them.
Result<std::pair<UniqueFd, UniqueFd>> MakePair();
// Does not wait: kBusy if the other end cannot take it now.
Status SendMessage(int to, std::string_view text, int fd = -1);
// Waits for a message if `wait`, else kBusy if there is none. kNotFound: the other end is closed.
Result<Message> ReceiveMessage(int from, bool wait);

}  // namespace sonde::site
