// The launcher's end of the socketpair that ties a daemon to its launcher; see launcher/launch.h.
//
// Nothing here blocks beyond the time given and nothing raises SIGPIPE: if the daemon is gone, Send
// fails; if the daemon hangs, Send fails with kBusy once the socket's buffer is full.
//
// The daemon is the user's and may send open files along with a packet. They are not received, and
// not dropped here; launcher/user_socket.h says why.
//
// Some releases of Slurm run callbacks in a child that shares our memory and has a copy of our
// descriptors. There close() would not end the connection: Finish() and End() shut it down instead,
// which ends it, whoever else holds a copy.
//
// Thread safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/unique_fd.h"

namespace sonde::launch {

// A point in time that bounds one or several waits.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds wait);
  int LeftMs() const;  // 0 when passed

 private:
  std::chrono::steady_clock::time_point at_;
};

class Lifeline {
 public:
  enum class Event { kPacket, kEnd, kTimeout };

  Lifeline() = default;
  explicit Lifeline(UniqueFd fd) : fd_(std::move(fd)) {}

  // Makes the pair: `daemon_end` is for the child.
  static Result<Lifeline> Create(UniqueFd& daemon_end);

  bool open() const { return static_cast<bool>(fd_); }
  // One packet, with descriptors riding along (they stay the caller's).
  Status Send(std::string_view packet, std::span<const int> fds = {});
  // The next packet into `packet`, or why there is none. kEnd also if it came with descriptors.
  Event Receive(std::string& packet, const Deadline& deadline);
  // Tells the daemon to finish; a second call has no effect.
  void Finish();
  // Whether a packet came with descriptors, and nothing is received any more.
  bool broken() const { return broken_; }
  // For slurmstepd, which is root: ends the connection. The descriptor stays open until the process
  // ends, as something may be unread.
  void End();

 private:
  UniqueFd fd_;
  bool broken_ = false;
};

}  // namespace sonde::launch
