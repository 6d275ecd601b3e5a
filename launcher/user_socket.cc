#include "launcher/user_socket.h"

#include <sys/socket.h>

#include <cerrno>

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

NextPacket PeekPacket(int socket) {
  for (;;) {
    char byte;
    iovec part{&byte, sizeof(byte)};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) >= 0) {
      // There is no room for control messages, and of these the kernel only has descriptors.
      return (message.msg_flags & MSG_CTRUNC) != 0 ? NextPacket::kWithDescriptors
                                                   : NextPacket::kPlain;
    }
    // The second comes once, before packets still to be read: the other end was closed with packets
    // of ours unread.
    if (errno != EINTR && errno != ECONNRESET) return NextPacket::kNone;
  }
}

void EndAndLeaveOpen(UniqueFd& socket) {
  if (!socket) return;
  ::shutdown(socket.get(), SHUT_RDWR);
  socket.Release();
}

}  // namespace sonde::launch
