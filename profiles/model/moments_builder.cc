#include "profiles/model/moments_builder.h"

#include <algorithm>
#include <utility>

namespace sonde {
namespace {

Owner By(const Annotation& a) { return {a.node, a.task}; }

}  // namespace

void MomentsBuilder::Add(const Annotation& a) {
  switch (a.kind) {
    case AnnotationKind::kPhaseBegin:
    case AnnotationKind::kPhaseEnd:
      return AddPhase(a);
    case AnnotationKind::kRemark:
      return AddRemark(a);
    case AnnotationKind::kFigure:
      return AddFigure(a);
  }
}

void MomentsBuilder::Continue(const std::vector<OpenPhase>& open) {
  for (const OpenPhase& phase : open) {
    if (phases_.size() < kMaxPhases) phases_[phase.name].Continue(phase);
  }
}

std::vector<OpenPhase> MomentsBuilder::OpenPhases() const {
  std::vector<OpenPhase> all;
  for (const auto& [name, track] : phases_) {
    std::optional<OpenPhase> open = track.Open();
    if (!open) continue;
    open->name = name;
    all.push_back(*std::move(open));
  }
  return all;
}

void MomentsBuilder::AddPhase(const Annotation& a) {
  auto at = phases_.find(a.text);
  if (at == phases_.end()) {
    if (phases_.size() == kMaxPhases) {
      left_out_ += a.count;
      return;
    }
    at = phases_.emplace(a.text, PhaseTrack()).first;
  }
  const size_t before = at->second.settled();
  at->second.Add(a);
  intervals_ += at->second.settled() - before;
  if (intervals_ > kMaxIntervals) MakeRoom();
}

// Merges intervals of the phase that has most.
void MomentsBuilder::MakeRoom() {
  PhaseTrack& most =
      std::max_element(phases_.begin(), phases_.end(), [](const auto& a, const auto& b) {
        return a.second.settled() < b.second.settled();
      })->second;
  intervals_ -= most.settled();
  most.Halve();
  intervals_ += most.settled();
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

void MomentsBuilder::AddAlarm(RaisedAlarm alarm) {
  if (alarms_.size() == kMaxAlarms) {
    ++left_out_;
    return;
  }
  alarms_.push_back(std::move(alarm));
}

void MomentsBuilder::EndAlarm(std::string_view rule, const Tags& tags, Nanos time) {
  const auto at = std::find_if(alarms_.rbegin(), alarms_.rend(), [&](const auto& alarm) {
    return alarm.rule == rule && alarm.tags == tags;
  });
  if (at != alarms_.rend() && at->over == 0) at->over = std::max(time, at->raised);
}

void MomentsBuilder::EndAlarms(std::string_view rule, Nanos time) {
  for (RaisedAlarm& alarm : alarms_) {
    if (alarm.rule == rule && alarm.over == 0) alarm.over = std::max(time, alarm.raised);
  }
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
  for (const auto& [name, track] : phases_) {
    for (Phase& phase : track.Intervals()) {
      phase.name = name;
      moments.phases.push_back(std::move(phase));
    }
  }
  std::stable_sort(moments.phases.begin(), moments.phases.end(),
                   [](const Phase& a, const Phase& b) { return a.begin < b.begin; });
  moments.remarks = remarks_;
  std::stable_sort(moments.remarks.begin(), moments.remarks.end(),
                   [](const Remark& a, const Remark& b) { return a.first < b.first; });
  moments.distributions.reserve(distributions_.size());
  for (const auto& [name, sketch] : distributions_) moments.distributions.push_back(sketch);
  moments.alarms = alarms_;
  moments.lost = lost_;
  moments.left_out = left_out_;
  return moments;
}

}  // namespace sonde
