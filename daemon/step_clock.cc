#include "daemon/step_clock.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/log.h"

namespace sonde {
namespace {

// Two clocks that are read one after the other.
struct TwoClocks {
  Nanos boot;
  Nanos wall_base;
  bool at_once;  // else the process did not run in between
};

TwoClocks Read(const Clock& machine) {
  TwoClocks read = {};
  for (int tries = 8; tries > 0 && !read.at_once; --tries) {
    const Nanos boot = machine.SinceBoot();
    const Nanos wall = machine.Now();
    read = {boot, wall - boot, machine.SinceBoot() - boot < kMillisecond};
  }
  return read;
}

std::string Amount(Nanos time) {
  const double seconds = static_cast<double>(std::abs(time)) / kSecond;
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

// By the minute, so that the notes of many nodes whose clocks were set together are equal.
std::string Minute(Nanos time) { return FormatTime(time).substr(0, 16) + "Z"; }

}  // namespace

StepClock::StepClock(Nanos ahead, const Clock& machine) : machine_(machine) {
  const TwoClocks now = Read(machine);
  wall_base_ = now.wall_base;
  base_ = target_ = now.wall_base + ahead;
  looked_ = now.boot;
}

// Programs say these times: any number may come.
Nanos StepClock::OfWall(Nanos wall) const {
  return static_cast<Nanos>(static_cast<uint64_t>(wall) +
                            static_cast<uint64_t>(base_ - wall_base_));
}

Nanos StepClock::Look() {
  const Nanos boot = machine_.SinceBoot();
  const Nanos change = machine_.Now() - boot - wall_base_;
  if (std::abs(change) < kMillisecond) {
    wall_base_ += change;
    target_ += change;
  } else if (const TwoClocks now = Read(machine_); now.at_once) {
    OnSet(now.wall_base - wall_base_);
  }
  Slew(boot);
  return boot + base_;
}

void StepClock::OnSet(Nanos change) {
  wall_base_ += change;
  const bool follows = std::abs(change) <= kFollowed;
  if (follows) target_ += change;
  if (std::abs(change) < kTold) return;
  Tell(fmt::format("was set {} by {} at {}; the step's times {}", change < 0 ? "back" : "forward",
                   Amount(change), Minute(Now()),
                   follows ? "follow it by 0.5 ms a second" : "go on as if it had not been set"));
}

void StepClock::Slew(Nanos boot) {
  const Nanos most = std::max<Nanos>(boot - looked_, 0) / kMillisecond * (kSlewOfSecond / 1000);
  looked_ = boot;
  base_ += std::clamp(target_ - base_, -most, most);
}

void StepClock::Follow(Nanos ahead) {
  if (ahead <= kCatchUp) {
    target_ = base_ + ahead;
    return;
  }
  if (ahead >= kTold) {
    Tell(
        fmt::format("was {} behind that of the head's host at {}; there are no samples of that "
                    "time",
                    Amount(ahead), Minute(Now() + ahead)));
  }
  base_ += ahead;
  target_ = base_;
}

void StepClock::Tell(std::string what) {
  log::Debug("the clock {}", what);
  if (told_ > kMaxTold) return;
  if (told_++ == kMaxTold) what = "was set more often than that";
  notes_.push_back(std::move(what));
}

std::vector<std::string> StepClock::TakeNotes() { return std::exchange(notes_, {}); }

}  // namespace sonde
