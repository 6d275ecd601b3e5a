#include "libclient/connect.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <string_view>

#include "core/text/options.h"
#include "core/text/rank.h"
#include "libclient/layout.h"
#include "libclient/sonde.h"

namespace sonde::client {
namespace {

constexpr char kSocketVariable[] = "SONDE_SOCKET";

std::string_view Variable(const char* name) {
  const char* const text = getenv(name);
  return text == nullptr ? std::string_view() : text;
}

int LevelInEnvironment() {
  const char* level = secure_getenv("SONDE_LEVEL");
  return level == nullptr ? -1 : ParseLevel(level);
}

}  // namespace

bool DaemonNamed() {
  const char* name = secure_getenv(kSocketVariable);
  return name != nullptr && *name != '\0';
}

int Rank() { return InnermostRank(kRankVariables, Variable); }
int LocalRank() { return InnermostRank(kLocalRankVariables, Variable); }

int Connection::Open(int segment_fd, Patience patience) {
  const char* name = secure_getenv(kSocketVariable);
  if (name == nullptr || *name == '\0') return SONDE_OFF;
  level_ = LevelInEnvironment();
  welcome_ = false;
  fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  struct stat info;
  if (fd_ < 0) return SONDE_SYSTEM;
  int code = fstat(fd_, &info) == 0 ? SONDE_OK : SONDE_SYSTEM;
  inode_ = info.st_ino;
  if (code == SONDE_OK) code = Connect(name, strlen(name), patience);
  if (code == SONDE_OK) code = Greet(segment_fd);
  if (code != SONDE_OK) {
    const int error = errno;
    Close();
    errno = error;
  }
  return code;
}

int Connection::Connect(const char* name, size_t size, Patience patience) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (size + 1 > sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return SONDE_UNREACHABLE;
  }
  memcpy(address.sun_path + 1, name, size);
  // connect() to a full queue waits as long as a send may. A time of 0 would mean for ever.
  const timeval wait = {0, patience == Patience::kNone ? 1 : kPatienceMs * 1000};
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return SONDE_UNREACHABLE;
  }
  ucred peer;
  socklen_t peer_size = sizeof(peer);
  if (getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0) return SONDE_SYSTEM;
  return peer.uid == geteuid() ? SONDE_OK : SONDE_FOREIGN;
}

int Connection::Greet(int segment_fd) {
  Hello hello = {kMagic, kVersion, getpid(), Rank(), LocalRank(), kSegmentSize};
  iovec data = {&hello, sizeof(hello)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(rights), &segment_fd, sizeof(int));
  const ssize_t sent = sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(sizeof(hello)) ? SONDE_OK : SONDE_UNREACHABLE;
}

int Connection::Level() {
  if (welcome_ || fd_ < 0) return level_;
  // On a descriptor that is no longer ours this would take another owner's data.
  struct stat info;
  if (fstat(fd_, &info) != 0 || info.st_ino != inode_) return level_;
  Welcome welcome;
  const ssize_t got = recv(fd_, &welcome, sizeof(welcome), MSG_DONTWAIT);
  if (got == static_cast<ssize_t>(sizeof(welcome)) && welcome.magic == kMagic &&
      welcome.level >= 0 && welcome.level <= 4) {
    level_ = welcome.level;
    welcome_ = true;
  }
  return level_;
}

bool Connection::Alive() const {
  struct stat info;
  if (fd_ < 0 || fstat(fd_, &info) != 0 || info.st_ino != inode_) return false;
  // The daemon's answer may still lie there unread, so only the end of the connection tells.
  pollfd end = {fd_, 0, 0};
  return poll(&end, 1, 0) == 0;
}

void Connection::Close() {
  struct stat info;
  if (fd_ >= 0 && fstat(fd_, &info) == 0 && S_ISSOCK(info.st_mode) && info.st_ino == inode_) {
    close(fd_);
  }
  fd_ = -1;
}

}  // namespace sonde::client
