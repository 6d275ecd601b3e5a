#include "profiles/moments_builder.h"

#include <algorithm>
#include <utility>

namespace sonde {
namespace {

Owner By(const Annotation& a) { return {a.node, a.task}; }

bool IsOpen(const Phase& phase) { return phase.began > phase.ended; }

bool Covers(const Phase& phase, Nanos time) { return IsOpen(phase) || time <= phase.end; }

// The last interval that begins at or before `time`; end() if there is none.
std::vector<Phase>::iterator LastBegun(std::vector<Phase>& intervals, Nanos time) {
  const auto after = std::upper_bound(intervals.begin(), intervals.end(), time,
                                      [](Nanos t, const Phase& p) { return t < p.begin; });
  return after == intervals.begin() ? intervals.end() : after - 1;
}

// Takes in the interval that follows; both have ended.
void Join(Phase& phase, const Phase& next) {
  phase.pauses += next.pauses + std::max<Nanos>(next.begin - phase.end, 0);
  phase.end = std::max(phase.end, next.end);
  phase.began += next.began;
  phase.ended += next.ended;
}

}  // namespace

void MomentsBuilder::Add(std::vector<Annotation> annotations) {
  // An end before the begin that follows it, as they happened.
  std::stable_sort(annotations.begin(), annotations.end(),
                   [](const Annotation& a, const Annotation& b) { return a.first < b.first; });
  for (const Annotation& a : annotations) {
    switch (a.kind) {
      case AnnotationKind::kPhaseBegin:
        AddBegin(a);
        break;
      case AnnotationKind::kPhaseEnd:
        AddEnd(a);
        break;
      case AnnotationKind::kRemark:
        AddRemark(a);
        break;
      case AnnotationKind::kFigure:
        AddFigure(a);
        break;
    }
  }
}

void MomentsBuilder::AddBegin(const Annotation& a) {
  Intervals& intervals = phases_[a.text];
  const auto at = LastBegun(intervals, a.first);
  if (at != intervals.end() && Covers(*at, a.first)) {
    at->began += a.count;
    return;
  }
  // One whose begin is known by other tasks, or by none, and that this one was in before.
  const auto next = at == intervals.end() ? intervals.begin() : at + 1;
  if (next != intervals.end() && (next->ended > next->began || next->begin <= a.last)) {
    next->begin = a.first;
    next->by = By(a);
    next->began += a.count;
    return;
  }
  Insert({a.text, a.first, 0, 0, a.count, 0, By(a)}, a.count);
}

void MomentsBuilder::AddEnd(const Annotation& a) {
  Intervals& intervals = phases_[a.text];
  const auto at = LastBegun(intervals, a.last);
  if (at != intervals.end() && Covers(*at, a.first)) {
    at->end = std::max(at->end, a.last);
    at->ended += a.count;
    return;
  }
  // Its begin may still come; until then it is no interval to show.
  Insert({a.text, a.first, a.last, 0, 0, a.count, By(a)}, a.count);
}

void MomentsBuilder::Insert(Phase phase, uint64_t count) {
  if (intervals_ == kMaxIntervals && !MakeRoom()) {
    left_out_ += count;
    if (phases_[phase.name].empty()) phases_.erase(phase.name);
    return;
  }
  Intervals& intervals = phases_[phase.name];
  const auto at = std::upper_bound(intervals.begin(), intervals.end(), phase.begin,
                                   [](Nanos t, const Phase& p) { return t < p.begin; });
  intervals.insert(at, std::move(phase));
  ++intervals_;
}

// Halves the number of intervals of the phase that has most.
bool MomentsBuilder::MakeRoom() {
  const auto most = std::max_element(
      phases_.begin(), phases_.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  Intervals& intervals = most->second;
  if (intervals.size() < 2) return false;
  Intervals halved;
  halved.reserve(intervals.size() / 2 + 1);
  for (size_t i = 0; i < intervals.size(); ++i) {
    halved.push_back(std::move(intervals[i]));
    // One that nobody has ended stays apart: how long it is is not known yet.
    const bool ended = halved.back().end != 0;
    if (ended && i + 1 < intervals.size() && intervals[i + 1].end != 0) {
      Join(halved.back(), intervals[++i]);
    }
  }
  const size_t made = intervals.size() - halved.size();
  intervals_ -= made;
  intervals = std::move(halved);
  return made != 0;
}

void MomentsBuilder::AddRemark(const Annotation& a) {
  for (Remark& remark : remarks_) {
    if (a.first > remark.last + kTogether || remark.first > a.last + kTogether) continue;
    if (remark.text != a.text) continue;
    if (a.first < remark.first) {
      remark.first = a.first;
      remark.by = By(a);
    }
    remark.last = std::max(remark.last, a.last);
    remark.count += a.count;
    return;
  }
  if (remarks_.size() == kMaxRemarks) {
    left_out_ += a.count;
    return;
  }
  remarks_.push_back({a.text, a.first, a.last, a.count, By(a)});
}

void MomentsBuilder::AddFigure(const Annotation& a) {
  const auto at = std::find_if(figures_.begin(), figures_.end(),
                               [&](const Figure& f) { return f.name == a.text; });
  if (at == figures_.end()) {
    if (figures_.size() == kMaxFigures) {
      left_out_ += a.count;
      return;
    }
    figures_.push_back({a.text, a.unit, a.value, a.count, a.last, a.node, a.task});
    return;
  }
  at->count += a.count;
  if (a.last < at->time) return;
  at->unit = a.unit;
  at->value = a.value;
  at->time = a.last;
  at->node = a.node;
  at->task = a.task;
}

void MomentsBuilder::Add(const NamedSketch& sketch) {
  std::string name = SeriesName(sketch.series.metric.name, sketch.series.tags);
  const auto at = distributions_.find(name);
  if (at != distributions_.end()) {
    at->second.sketch.Merge(sketch.sketch);
  } else if (distributions_.size() < kMaxDistributions) {
    distributions_.emplace(std::move(name), sketch);
  } else {
    ++left_out_;
  }
}

StepMoments MomentsBuilder::Moments() const {
  StepMoments moments;
  moments.phases.reserve(intervals_);
  for (const auto& [name, intervals] : phases_) {
    for (const Phase& phase : intervals) {
      if (phase.began != 0) moments.phases.push_back(phase);
    }
  }
  std::stable_sort(moments.phases.begin(), moments.phases.end(),
                   [](const Phase& a, const Phase& b) { return a.begin < b.begin; });
  moments.remarks = remarks_;
  std::stable_sort(moments.remarks.begin(), moments.remarks.end(),
                   [](const Remark& a, const Remark& b) { return a.first < b.first; });
  moments.distributions.reserve(distributions_.size());
  for (const auto& [name, sketch] : distributions_) moments.distributions.push_back(sketch);
  moments.lost = lost_;
  moments.left_out = left_out_;
  return moments;
}

}  // namespace sonde
