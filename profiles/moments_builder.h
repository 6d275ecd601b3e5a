// From annotations and histograms, as they come from the nodes tick by tick, to what a profile
// keeps of them.
//
//   phases    a phase's begins and ends, whoever says them, become intervals in which at least one
//             task is in it. A begin joins the interval that it falls into, or that is still open;
//             else it opens the next one. What comes late finds its interval all the same.
//   remarks   equal ones at most kTogether apart are one.
//   figures   the last one said of each name.
//   sketches  of each series, the sum of what came.
//
// Everything is bounded, however long the step is: when there are too many intervals, neighbours of
// the phase that has most are put together, so no time is lost from sight; of what else finds no
// room the number is kept.
//
// Thread safety: none; StepRecord guards it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/annotation.h"
#include "core/job.h"
#include "profiles/moments.h"

namespace sonde {

class MomentsBuilder {
 public:
  static constexpr size_t kMaxIntervals = 1024;  // of all phases
  static constexpr size_t kMaxRemarks = 1024;
  static constexpr size_t kMaxFigures = 64;
  static constexpr size_t kMaxDistributions = 512;
  static constexpr Nanos kTogether = 100 * kMillisecond;

  // What was told at about one time: each is put where its time belongs.
  void Add(std::vector<Annotation> annotations);
  void Add(const NamedSketch& sketch);
  void AddLost(uint64_t count) { lost_ += count; }

  StepMoments Moments() const;
  const std::vector<Figure>& figures() const { return figures_; }
  uint64_t lost() const { return lost_; }
  uint64_t left_out() const { return left_out_; }

 private:
  using Intervals = std::vector<Phase>;  // of one phase, by begin

  void AddBegin(const Annotation& a);
  void AddEnd(const Annotation& a);
  void AddRemark(const Annotation& a);
  void AddFigure(const Annotation& a);
  void Insert(Phase phase, uint64_t count);
  bool MakeRoom();

  std::map<std::string, Intervals> phases_;
  size_t intervals_ = 0;
  std::vector<Remark> remarks_;
  std::vector<Figure> figures_;
  std::map<std::string, NamedSketch> distributions_;  // by name and tags
  uint64_t lost_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace sonde
