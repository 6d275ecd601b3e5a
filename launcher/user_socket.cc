#include "launcher/user_socket.h"

#include <sys/socket.h>

namespace sonde::launch {
namespace {

#ifdef SO_PASSRIGHTS
constexpr int kPassRights = SO_PASSRIGHTS;
#else
constexpr int kPassRights = 83;  // Linux 6.16
#endif

}  // namespace

void RefuseDescriptors(int socket) {
  constexpr int kNone = 0;
  ::setsockopt(socket, SOL_SOCKET, kPassRights, &kNone, sizeof(kNone));
}

bool HasDescriptors(int socket) {
  char byte;
  iovec part{&byte, sizeof(byte)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  // There is no room for control messages, and of these the kernel only has descriptors.
  return ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) >= 0 &&
         (message.msg_flags & MSG_CTRUNC) != 0;
}

void EndAndLeaveOpen(UniqueFd& socket) {
  if (!socket) return;
  ::shutdown(socket.get(), SHUT_RDWR);
  socket.Release();
}

}  // namespace sonde::launch
