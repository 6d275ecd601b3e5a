// A Unix socket that listens at a name in the file system. The file goes with its owner: programs
// that look for it then know at once that nobody listens.
//
// Thread safety: a value; one thread at a time.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "core/unique_fd.h"

namespace sonde {

class SocketFile {
 public:
  SocketFile() = default;
  // A socket that has no name in the file system is closed, and this is empty then.
  explicit SocketFile(UniqueFd listener) : path_(PathOf(listener.get())) {
    if (!path_.empty()) listener_ = std::move(listener);
  }
  SocketFile(SocketFile&& other) noexcept
      : listener_(std::move(other.listener_)), path_(std::exchange(other.path_, {})) {}
  SocketFile& operator=(SocketFile&& other) noexcept {
    if (this == &other) return *this;
    Remove();
    listener_ = std::move(other.listener_);
    path_ = std::exchange(other.path_, {});
    return *this;
  }
  ~SocketFile() { Remove(); }

  int fd() const { return listener_.get(); }
  const std::string& path() const { return path_; }
  explicit operator bool() const { return static_cast<bool>(listener_); }

  void Remove() {
    if (!listener_) return;
    ::unlink(path_.c_str());
    listener_.Reset();
    path_.clear();
  }

 private:
  // "" if it has none. Of an abstract name the first byte is zero.
  static std::string PathOf(int socket) {
    sockaddr_un address{};
    socklen_t size = sizeof(address) - 1;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
    return address.sun_family == AF_UNIX ? address.sun_path : "";
  }

  UniqueFd listener_;
  std::string path_;
};

}  // namespace sonde
