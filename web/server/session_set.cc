#include "web/server/session_set.h"

#include <chrono>

#include "web/server/session.h"

namespace sonde::web {

std::shared_ptr<Session> SessionSet::Victim(std::vector<std::shared_ptr<Session>>& held) const {
  std::shared_ptr<Session> idle;
  for (const auto& [id, weak] : sessions_) {
    const std::shared_ptr<Session> one = held.emplace_back(weak.lock());
    if (!one) continue;
    if (!one->authenticated()) return one;
    if (one->idle() && (!idle || one->idle_since() < idle->idle_since())) idle = one;
  }
  return idle;
}

bool SessionSet::MakeRoom() {
  std::vector<std::shared_ptr<Session>> held;  // drop the last reference without the lock
  const std::lock_guard lock(mutex_);
  if (sessions_.size() < most_) return true;
  const std::shared_ptr<Session> victim = Victim(held);
  if (!victim) return false;
  victim->Close();
  sessions_.erase(victim->id());
  return true;
}

uint64_t SessionSet::Add(const std::shared_ptr<Session>& session) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return 0;
  ++open_;
  sessions_.emplace(next_id_, session);
  return next_id_++;
}

void SessionSet::Remove(uint64_t id) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(id);
  if (--open_ == 0) gone_.notify_all();
}

size_t SessionSet::size() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

void SessionSet::ForEach(const std::function<void(Session&)>& f) const {
  std::vector<std::shared_ptr<Session>> open;
  {
    const std::lock_guard lock(mutex_);
    open.reserve(sessions_.size());
    for (const auto& [id, weak] : sessions_) open.push_back(weak.lock());
  }
  for (const auto& session : open) {
    if (session) f(*session);
  }
}

void SessionSet::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
}

bool SessionSet::WaitUntilEmpty(Nanos limit) const {
  std::unique_lock lock(mutex_);
  return gone_.wait_for(lock, std::chrono::nanoseconds(limit), [this] { return open_ == 0; });
}

}  // namespace sonde::web
