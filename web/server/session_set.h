// The connections of a server; decides which one is closed when there are too many.
//
// To make room for a new connection it closes the oldest one that has not shown the token; if there
// is none, the one that has been idle longest, since a client can open it again. Connections with
// an answer under way stay.
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

  // Closes a connection if there are too many; false if none can be closed.
  bool MakeRoom();
  // Its number; 0 if the server stops.
  uint64_t Add(const std::shared_ptr<Session>& session);
  void Remove(uint64_t id);
  size_t size() const;
  void ForEach(const std::function<void(Session&)>& f) const;

  // Adds nothing from now on.
  void Stop();
  // Whether all have ended within `limit`.
  bool WaitUntilEmpty(Nanos limit) const;

 private:
  // Call with the mutex held. `held` keeps the sessions that it looks at until the caller drops it.
  std::shared_ptr<Session> Victim(std::vector<std::shared_ptr<Session>>& held) const;

  const size_t most_;
  mutable std::mutex mutex_;
  mutable std::condition_variable gone_;
  bool stopping_ = false;
  uint64_t next_id_ = 1;
  size_t open_ = 0;                                      // also those that were told to close
  std::map<uint64_t, std::weak_ptr<Session>> sessions_;  // by age
};

}  // namespace sonde::web
