// Counters that give what a test says.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace sonde::collect {

// A counter whose every read gives the next of the groups it was told; ioctls on it fail.
class Feed {
 public:
  Feed() {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends_) != 0) std::abort();
  }
  ~Feed() { close(ends_[1]); }
  int descriptor() const { return ends_[0]; }
  // A group's read: time enabled, time running, values.
  void Say(const std::vector<uint64_t>& words) const {
    std::vector<uint64_t> group = {words.size() - 2};
    group.insert(group.end(), words.begin(), words.end());
    SayWords(group);
  }
  // A read as it is.
  void SayWords(const std::vector<uint64_t>& words) const {
    const size_t bytes = words.size() * sizeof(uint64_t);
    if (write(ends_[1], words.data(), bytes) != static_cast<ssize_t>(bytes)) std::abort();
  }

 private:
  int ends_[2];
};

}  // namespace sonde::collect
