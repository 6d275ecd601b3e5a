#include "profiles/archive/turns.h"

namespace sonde {

ArchiveTurns::Turn ArchiveTurns::Begin(bool alone) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !long_; });
  long_ = true;
  changed_.wait(lock, [&] { return !busy_ && waiting_ == 0; });
  busy_ = true;
  alone_ = alone;
  return {this, false};
}

std::optional<ArchiveTurns::Turn> ArchiveTurns::LongIfFree() {
  std::unique_lock lock(mutex_);
  if (long_) return std::nullopt;
  long_ = true;
  changed_.wait(lock, [&] { return !busy_ && waiting_ == 0; });
  busy_ = true;
  return Turn(this, false);
}

Result<ArchiveTurns::Turn> ArchiveTurns::Short() {
  std::unique_lock lock(mutex_);
  if (alone_) {
    return Status(Code::kBusy, "the archive is being repaired; try again when that is done");
  }
  ++waiting_;
  changed_.wait(lock, [&] { return !busy_; });
  --waiting_;
  busy_ = true;
  return Turn(this, true);
}

bool ArchiveTurns::IsWanted() {
  const std::lock_guard lock(mutex_);
  return waiting_ > 0 && !rests_;
}

void ArchiveTurns::Pause() {
  std::unique_lock lock(mutex_);
  if (waiting_ == 0 || rests_) return;
  busy_ = false;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !busy_ && waiting_ == 0; });
  busy_ = true;
}

void ArchiveTurns::Yield() {
  const std::lock_guard lock(mutex_);
  rests_ = true;
  busy_ = false;
  changed_.notify_all();
}

void ArchiveTurns::Resume() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_ && waiting_ == 0; });
  rests_ = false;
  busy_ = true;
}

void ArchiveTurns::End(bool is_short) {
  const std::lock_guard lock(mutex_);
  busy_ = false;
  if (!is_short) long_ = alone_ = false;
  changed_.notify_all();
}

}  // namespace sonde
