// Asks filesystems that may not answer how much space they have, from helper threads.
//
// A call to a filesystem whose server is gone returns when the server comes back: never, perhaps.
// So it is made on a thread of its own, which nobody waits for. One helper asks all filesystems,
// one after the other; if it has been stuck for a second while others wait, another helper takes
// over. So there is at most one helper more than there are filesystems that hang.
//
// The owner hands over requests and takes answers under a mutex that it only tries: a helper that
// was stopped inside does not hold it up. Destroying the owner wakes the helpers and leaves them to
// end by themselves; what they use belongs to them too. A process can exit while a helper hangs
// only if the filesystem's wait can be killed: mounted.h says which are asked.
//
// Thread safety: the owner's thread only.
#pragma once

#include <sys/statvfs.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/time.h"
#include "daemon/collect/read/parse.h"

namespace sonde::collect {

// statvfs(3), or a test's. Called from several threads.
using StatvfsCall = std::function<int(const char* path, struct statvfs* result)>;

// Of one filesystem: bytes, inodes, and 1 if it is read-only.
struct Space {
  double size = kMissing;
  double free = kMissing;       // for root
  double available = kMissing;  // for users
  double files = kMissing;      // missing where inodes are made as needed
  double files_free = kMissing;
  double read_only = kMissing;
};
// All missing if the call fails.
Space ReadSpace(const StatvfsCall& call, const std::string& point);

class RemoteSpace {
 public:
  struct Answer {
    Space space;           // the newest
    bool waiting = false;  // it was asked and has not answered
    Nanos asked_at = 0;
  };

  explicit RemoteSpace(StatvfsCall call);
  ~RemoteSpace();
  RemoteSpace(const RemoteSpace&) = delete;
  RemoteSpace& operator=(const RemoteSpace&) = delete;

  // The filesystems asked from now on. Those that were asked before keep what is known of them.
  void Watch(const std::vector<std::string>& points);
  // Asks all that are not waiting. False: not now, try again.
  bool Ask(Nanos now);
  // Takes what has been answered since.
  void Collect(Nanos now);

  // In the order of Watch.
  const std::vector<Answer>& answers() const { return answers_; }
  // Whether there is something to collect, now or later.
  bool waiting() const { return waiting_; }

 private:
  struct Place;
  struct Shared;

  void CollectLocked(Nanos now);
  void StartHelper();
  static void* Help(void* argument);

  std::shared_ptr<Shared> shared_;
  std::vector<Answer> answers_;
  bool waiting_ = false;
  Nanos progress_at_ = 0;
};

}  // namespace sonde::collect
