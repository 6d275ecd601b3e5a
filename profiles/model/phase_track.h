// When one phase was: turns begins and ends, from any task and in any order, into the intervals in
// which at least one task was in the phase.
//
// Begins and ends wait in the order of their times until there are kMaxPending of them; then the
// older half is settled. So nodes may report the same moment some ticks apart. An event that comes
// later still counts, at the time up to which all is settled.
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

// A phase with tasks in it.
struct OpenPhase {
  std::string name;
  Nanos begin = 0;
  uint64_t inside = 0;  // number of tasks, at least one
  Owner by;             // who began first
  bool operator==(const OpenPhase&) const = default;
};

class PhaseTrack {
 public:
  static constexpr size_t kMaxPending = 256;

  // kPhaseBegin or kPhaseEnd. Of several merged begins the first time counts, of merged ends the
  // last: between them at least one task may have been in the phase.
  void Add(const Annotation& a);

  // Call it first: the phase was open when another head stopped counting. The following events
  // continue that interval, which keeps its begin; its count `began` starts at 0.
  void Continue(const OpenPhase& open);

  // In the order of their begins; an interval that has not ended is the last.
  std::vector<Phase> Intervals() const;
  // Without the phase's name.
  std::optional<OpenPhase> Open() const;

  size_t settled() const { return past_.done.size(); }
  // Merges settled neighbours in pairs. False if that makes no fewer intervals.
  bool Halve();

 private:
  struct Event {
    Nanos time;
    uint64_t begun;
    uint64_t ended;
    Owner by;
  };
  // The result of some events.
  struct State {
    std::vector<Phase> done;
    Phase open;           // while `inside` is not 0
    uint64_t inside = 0;  // begins minus ends
    void Take(const Event& event);
  };
  State Now() const;

  State past_;
  Nanos settled_until_ = 0;
  std::vector<Event> pending_;  // by time
};

}  // namespace sonde
