// Turns annotations and histograms, as the nodes send them tick by tick, into the moments that a
// profile keeps.
//
//   phases    of each, the intervals in which at least one task is in it (phase_track.h)
//   remarks   equal ones at most kTogether apart are one.
//   figures   the last one of each name.
//   sketches  the sum of each series.
//
// Everything is bounded, however long the step is: if there are too many intervals, neighbours of
// the phase that has most are merged, so that no time is lost; of other moments for which there is
// no room only the number is kept.
//
// Thread safety: none; StepRecord guards it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/annotation.h"
#include "core/job.h"
#include "profiles/model/moments.h"
#include "profiles/model/phase_track.h"

namespace sonde {

class MomentsBuilder {
 public:
  static constexpr size_t kMaxPhases = 256;
  static constexpr size_t kMaxIntervals = 1024;  // of all phases, not counting the newest of each
  static constexpr size_t kMaxRemarks = 1024;
  static constexpr size_t kMaxFigures = 64;
  static constexpr size_t kMaxDistributions = 512;
  static constexpr size_t kMaxAlarms = 512;
  static constexpr Nanos kTogether = 100 * kMillisecond;

  // Call it first, with the phases that were open when the previous head stored its moments. Phases
  // beyond kMaxPhases are left out.
  void Continue(const std::vector<OpenPhase>& open);
  std::vector<OpenPhase> OpenPhases() const;
  // In any order: each is put at its time.
  void Add(const Annotation& a);
  void Add(const NamedSketch& sketch);
  // An alarm is raised; EndAlarm says that the last alarm of that rule and series is over.
  void AddAlarm(RaisedAlarm alarm);
  void EndAlarm(std::string_view rule, const Tags& tags, Nanos time);
  // Ends all alarms of a rule that no longer exists.
  void EndAlarms(std::string_view rule, Nanos time);
  void AddLost(uint64_t count) { lost_ += count; }

  StepMoments Moments() const;
  const std::vector<RaisedAlarm>& alarms() const { return alarms_; }
  const std::vector<Figure>& figures() const { return figures_; }
  uint64_t lost() const { return lost_; }
  uint64_t left_out() const { return left_out_; }

 private:
  void AddPhase(const Annotation& a);
  void AddRemark(const Annotation& a);
  void AddFigure(const Annotation& a);
  void MakeRoom();

  std::map<std::string, PhaseTrack> phases_;
  size_t intervals_ = 0;  // settled ones, of all phases
  std::vector<Remark> remarks_;
  std::vector<Figure> figures_;
  std::vector<RaisedAlarm> alarms_;
  std::map<std::string, NamedSketch> distributions_;  // by name and tags
  uint64_t lost_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace sonde
