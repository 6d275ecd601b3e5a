// The time of a step, by which it samples, and which its profile has.
//
// It begins as the machine's wall clock and goes on with the machine's steady one, at the same
// rate; so whoever sets the wall clock while the step runs takes no samples from it and adds none.
// The kernel's slewing (NTP) changes the rate of both, and therefore needs no care here. Small
// steps of the wall clock are followed, no faster than the kernel slews, so that long steps stay
// comparable with others; large ones are told and not followed. While the machine is suspended the
// time goes on. It goes back by no more than that slewing.
//
// Thread safety: the methods of Clock from any thread, the others from the loop's.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core/time.h"

namespace sonde {

class StepClock final : public Clock {
 public:
  // Larger steps of the wall clock are not followed.
  static constexpr Nanos kFollowed = 10 * kSecond;
  // A reader of the profile is told of larger ones, so many times.
  static constexpr Nanos kTold = 900 * kMillisecond;
  static constexpr size_t kMaxTold = 4;
  // How fast others are followed: as adjtime(3) does it, 0.5 ms a second.
  static constexpr Nanos kSlewOfSecond = 500 * kMicrosecond;
  // This clock is put forward at once by more than this.
  static constexpr Nanos kCatchUp = 500 * kMillisecond;

  // `ahead`: what the step's time is ahead of the machine's wall clock, as another daemon knows it.
  explicit StepClock(Nanos ahead = 0, const Clock& machine = Clock::System());

  Nanos Now() const override { return machine_.SinceBoot() + base_; }
  Nanos Monotonic() const override { return machine_.Monotonic(); }
  Nanos SinceBoot() const override { return machine_.SinceBoot(); }
  Nanos OfWall(Nanos wall) const override;

  // Looks whether the wall clock was set, and gives the time. At every tick.
  Nanos Look();
  // The clock that is the measure of this one, the head's, is that much ahead. What is missing is
  // added at once, as after a time in which this machine's clocks stood still (a guest that was
  // paused); otherwise this clock comes nearer slowly.
  void Follow(Nanos ahead);
  // What a reader of the profile must know, to follow "the clock ", each once.
  std::vector<std::string> TakeNotes();

 private:
  void OnSet(Nanos change);
  void Slew(Nanos boot);
  void Tell(std::string what);

  const Clock& machine_;
  // Of the wall clock and of this one: what they are ahead of the time since boot.
  std::atomic<Nanos> wall_base_;
  std::atomic<Nanos> base_;
  Nanos target_;  // of base_
  Nanos looked_;  // since boot
  size_t told_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace sonde
