#include "daemon/collect/filesystems/remote_space.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "core/log.h"
#include "core/signals_blocked.h"

namespace sonde::collect {
namespace {

// With more filesystems than this that hang, nobody asks the others any more.
constexpr size_t kMostHelpers = 32;
constexpr Nanos kTakeOver = kSecond;
constexpr size_t kStackSize = 256u << 10;

}  // namespace

struct RemoteSpace::Place {
  enum class State : unsigned char { kIdle, kQueued, kBeingAsked };
  std::string point;
  State state = State::kIdle;
  Nanos asked_at = 0;
  bool answered = false;  // since it was last collected
  Space space;
};

struct RemoteSpace::Shared {
  std::mutex mutex;
  std::condition_variable wanted;
  StatvfsCall call;  // never changed
  std::vector<std::shared_ptr<Place>> places;
  size_t helpers = 0;
  size_t idle_helpers = 0;
  bool stopped = false;

  std::shared_ptr<Place> Next() const {
    const auto next = std::find_if(places.begin(), places.end(), [](const auto& place) {
      return place->state == Place::State::kQueued;
    });
    return next == places.end() ? nullptr : *next;
  }
};

Space ReadSpace(const StatvfsCall& call, const std::string& point) {
  struct statvfs read {};
  Space space;
  if (call(point.c_str(), &read) != 0) return space;
  const auto unit = static_cast<double>(read.f_frsize != 0 ? read.f_frsize : read.f_bsize);
  space.read_only = (read.f_flag & ST_RDONLY) != 0 ? 1 : 0;
  if (read.f_blocks != 0) {
    space.size = static_cast<double>(read.f_blocks) * unit;
    space.free = static_cast<double>(read.f_bfree) * unit;
    space.available = static_cast<double>(read.f_bavail) * unit;
  }
  if (read.f_files != 0 && read.f_files != UINT64_MAX) {
    space.files = static_cast<double>(read.f_files);
    space.files_free = static_cast<double>(read.f_ffree);
  }
  return space;
}

RemoteSpace::RemoteSpace(StatvfsCall call) : shared_(std::make_shared<Shared>()) {
  shared_->call = std::move(call);
}

RemoteSpace::~RemoteSpace() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stopped = true;
  shared_->wanted.notify_all();
}

void RemoteSpace::Watch(const std::vector<std::string>& points) {
  const std::lock_guard lock(shared_->mutex);
  std::vector<std::shared_ptr<Place>> places;
  std::vector<Answer> answers(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const auto known = std::find_if(shared_->places.begin(), shared_->places.end(),
                                    [&](const auto& place) { return place->point == points[i]; });
    if (known == shared_->places.end()) {
      places.push_back(std::make_shared<Place>());
      places.back()->point = points[i];
    } else {
      answers[i] = answers_[static_cast<size_t>(known - shared_->places.begin())];
      places.push_back(*known);
    }
  }
  shared_->places = std::move(places);
  answers_ = std::move(answers);
}

bool RemoteSpace::Ask(Nanos now) {
  const std::unique_lock lock(shared_->mutex, std::try_to_lock);
  if (!lock) return false;
  CollectLocked(now);
  bool queued = false;
  for (const auto& place : shared_->places) {
    if (place->state != Place::State::kIdle) continue;
    place->state = Place::State::kQueued;
    place->asked_at = now;
    queued = true;
  }
  if (!queued) return true;
  progress_at_ = now;
  if (shared_->helpers == 0) StartHelper();
  shared_->wanted.notify_one();
  CollectLocked(now);
  return true;
}

void RemoteSpace::Collect(Nanos now) {
  const std::unique_lock lock(shared_->mutex, std::try_to_lock);
  if (lock) CollectLocked(now);
}

void RemoteSpace::CollectLocked(Nanos now) {
  bool queued = false;
  waiting_ = false;
  for (size_t i = 0; i < answers_.size(); ++i) {
    Place& place = *shared_->places[i];
    if (std::exchange(place.answered, false)) {
      answers_[i].space = place.space;
      progress_at_ = now;
    }
    answers_[i].waiting = place.state != Place::State::kIdle;
    answers_[i].asked_at = place.asked_at;
    waiting_ = waiting_ || answers_[i].waiting;
    queued = queued || place.state == Place::State::kQueued;
  }
  if (!queued || now - progress_at_ < kTakeOver || shared_->helpers >= kMostHelpers) return;
  progress_at_ = now;
  StartHelper();
  // Filesystems that wait for the helper had no chance to answer so far.
  for (size_t i = 0; i < answers_.size(); ++i) {
    Place& place = *shared_->places[i];
    if (place.state != Place::State::kQueued) continue;
    place.asked_at = answers_[i].asked_at = now;
  }
}

// The mutex is held.
void RemoteSpace::StartHelper() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackSize);
  // The daemon's signals are for its own thread.
  const SignalsBlocked blocked;
  auto argument = std::make_unique<std::shared_ptr<Shared>>(shared_);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, Help, argument.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    log::Debug("filesystems: no thread to ask remote ones: error {}", error);
    return;
  }
  static_cast<void>(argument.release());  // the thread's own
  ++shared_->helpers;
}

void* RemoteSpace::Help(void* argument) {
  const std::unique_ptr<std::shared_ptr<Shared>> owned(
      static_cast<std::shared_ptr<Shared>*>(argument));
  const std::shared_ptr<Shared>& shared = *owned;
  std::unique_lock lock(shared->mutex);
  while (!shared->stopped) {
    const std::shared_ptr<Place> place = shared->Next();
    if (place == nullptr) {
      if (shared->idle_helpers > 0) break;  // one is enough
      ++shared->idle_helpers;
      shared->wanted.wait(lock);
      --shared->idle_helpers;
      continue;
    }
    place->state = Place::State::kBeingAsked;
    lock.unlock();
    const Space space = ReadSpace(shared->call, place->point);
    lock.lock();
    place->space = space;
    place->answered = true;
    place->state = Place::State::kIdle;
  }
  --shared->helpers;
  return nullptr;
}

}  // namespace sonde::collect
