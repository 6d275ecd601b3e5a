// When one phase was: from begins and ends, whoever says them and in whatever order they arrive, to
// the intervals in which at least one task was in it.
//
// Begins and ends wait in the order of their times until there are kMaxPending of them; then the
// older half is settled. So nodes may tell the same moment some ticks apart. What comes later still
// counts from the time up to which all is settled.
//
// Thread safety: none. Bounded memory, but for the settled intervals, which Halve() thins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/annotation.h"
#include "profiles/model/moments.h"

namespace sonde {

// A phase that tasks are in.
struct OpenPhase {
  std::string name;
  Nanos begin = 0;
  uint64_t inside = 0;  // so many, at least one
  Owner by;             // who began first
  bool operator==(const OpenPhase&) const = default;
};

class PhaseTrack {
 public:
  static constexpr size_t kMaxPending = 256;

  // kPhaseBegin or kPhaseEnd. Of several merged begins the first counts, of ends the last: between
  // them at least one task may have been in the phase.
  void Add(const Annotation& a);

  // Before anything else: it was open when somebody else stopped counting. What follows is a part
  // of that interval, with its begin and without those who began.
  void Continue(const OpenPhase& open);

  // By begin; that which has not ended is the last.
  std::vector<Phase> Intervals() const;
  // Without its name.
  std::optional<OpenPhase> Open() const;

  size_t settled() const { return past_.done.size(); }
  // Puts settled neighbours together, two and two. False if that makes no fewer.
  bool Halve();

 private:
  struct Event {
    Nanos time;
    uint64_t begun;
    uint64_t ended;
    Owner by;
  };
  // What some events have come to.
  struct State {
    std::vector<Phase> done;
    Phase open;           // while `inside` is not 0
    uint64_t inside = 0;  // begun more than ended
    void Take(const Event& event);
  };
  State Now() const;

  State past_;
  Nanos settled_until_ = 0;
  std::vector<Event> pending_;  // by time
};

}  // namespace sonde
