#include "launcher/site/head_slot.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace sonde::launch {
namespace {

// Whether this process has the name now.
bool Take(int fd, std::string_view scope, uint32_t slot) {
  sockaddr_un address{};
  std::string name = "sonde/heads/" + std::to_string(slot);
  const size_t room = sizeof(address.sun_path) - 1 - name.size();
  name += scope.substr(scope.size() - std::min(scope.size(), room));
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0;
}

}  // namespace

Result<UniqueFd> TakeHeadSlot(uint32_t most, std::string_view scope) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return SystemError("socket");
  uint32_t start = 0;
  if (::getrandom(&start, sizeof start, GRND_NONBLOCK) != sizeof start) start = 0;
  for (uint32_t i = 0; i < most; ++i) {
    if (Take(fd.get(), scope, (start % most + i) % most)) return fd;
    if (errno != EADDRINUSE) return SystemError("bind a name for the step's head");
  }
  return Status(Code::kLimit, std::to_string(most) +
                                  " steps are watched from this host already (max_heads in "
                                  "sonde.conf)");
}

}  // namespace sonde::launch
