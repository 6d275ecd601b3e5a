// Finding the step's daemon and handing it this process's memory.
//
// Thread safety: none; the caller holds the library's mutex.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::client {

// Whether Open waits when the daemon's queue is full.
enum class Patience : unsigned char { kNone, kSome };

class Connection {
 public:
  constexpr Connection() = default;

  // Connects to the socket that SONDE_SOCKET names, makes sure that its owner is this user, and
  // sends the hello with `segment_fd`. Returns a code of sonde.h, with errno set if a system call
  // failed. Waits only when the daemon's queue is full, kPatienceMs at most.
  int Open(int segment_fd, Patience patience);

  // The step's level: from the daemon once it has told it, before that SONDE_LEVEL; -1: not known.
  // Never waits.
  int Level();

  // Whether the daemon is still at the other end. Never waits.
  bool Alive() const;

  // Closes the descriptor if it is still ours: applications close descriptors they did not open.
  // Async-signal-safe.
  void Close();

 private:
  static constexpr int kPatienceMs = 100;

  int Connect(const char* name, size_t size, Patience patience);
  int Greet(int segment_fd);

  int fd_ = -1;
  uint64_t inode_ = 0;
  int level_ = -1;
  bool welcome_ = false;
};

// Whether the environment names a daemon at all.
bool DaemonNamed();

// This process's rank in its parallel program, -1 if no launcher has told it.
int Rank();
int LocalRank();

}  // namespace sonde::client
