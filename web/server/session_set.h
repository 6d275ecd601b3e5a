// The connections of a server, and who goes when there are too many.
//
// Room for a new one is made, in this order, by the oldest that has not shown the token; by the one
// that has been idle longest, which every client opens again when it has something to ask. Those
// that are being answered stay.
//
// Thread safety: from any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/time.h"

namespace sonde::web {

class Session;

class SessionSet {
 public:
  explicit SessionSet(size_t most) : most_(most) {}

  // Has one go if there are too many; false if none can.
  bool MakeRoom();
  // Its number; 0 if the server stops.
  uint64_t Add(const std::shared_ptr<Session>& session);
  void Remove(uint64_t id);
  size_t size() const;
  void ForEach(const std::function<void(Session&)>& f) const;

  // From now on nothing is added.
  void Stop();
  // Whether all have gone within `limit`.
  bool WaitUntilEmpty(Nanos limit) const;

 private:
  // With the mutex held. What it looks at is held until the caller lets go of it.
  std::shared_ptr<Session> Victim(std::vector<std::shared_ptr<Session>>& held) const;

  const size_t most_;
  mutable std::mutex mutex_;
  mutable std::condition_variable gone_;
  bool stopping_ = false;
  uint64_t next_id_ = 1;
  size_t open_ = 0;                                      // also those that were told to go
  std::map<uint64_t, std::weak_ptr<Session>> sessions_;  // by age
};

}  // namespace sonde::web
