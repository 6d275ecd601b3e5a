#include "profiles/model/phase_track.h"

#include <algorithm>
#include <utility>

namespace sonde {
namespace {

// Merges the next interval into `phase`.
void Join(Phase& phase, const Phase& next) {
  phase.pauses += next.pauses + std::max<Nanos>(next.begin - phase.end, 0);
  phase.end = std::max(phase.end, next.end);
  phase.began += next.began;
  phase.ended += next.ended;
}

}  // namespace

void PhaseTrack::State::Take(const Event& event) {
  if (event.begun != 0) {
    if (inside == 0) open = {"", event.time, 0, 0, 0, 0, event.by};
    inside += event.begun;
    open.began += event.begun;
    return;
  }
  if (inside == 0) return;  // its begin was lost
  inside -= std::min(inside, event.ended);
  open.ended += event.ended;
  open.end = event.time;
  if (inside == 0) done.push_back(open);
}

void PhaseTrack::Add(const Annotation& a) {
  const bool begin = a.kind == AnnotationKind::kPhaseBegin;
  const Nanos time = std::max(begin ? a.first : a.last, settled_until_);
  const Event event{time, begin ? a.count : 0, begin ? 0 : a.count, {a.node, a.task}};
  // At equal times begins come first: a phase may take no time at all.
  const auto at =
      std::upper_bound(pending_.begin(), pending_.end(), event, [](const Event& x, const Event& y) {
        return x.time != y.time ? x.time < y.time : x.begun != 0 && y.begun == 0;
      });
  pending_.insert(at, event);
  if (pending_.size() < kMaxPending) return;
  const auto half = pending_.begin() + kMaxPending / 2;
  std::for_each(pending_.begin(), half, [this](const Event& e) { past_.Take(e); });
  settled_until_ = (half - 1)->time;
  pending_.erase(pending_.begin(), half);
}

void PhaseTrack::Continue(const OpenPhase& open) {
  past_.open = {"", open.begin, 0, 0, 0, 0, open.by};
  past_.inside = open.inside;
}

PhaseTrack::State PhaseTrack::Now() const {
  State now = past_;
  for (const Event& event : pending_) now.Take(event);
  return now;
}

std::optional<OpenPhase> PhaseTrack::Open() const {
  const State now = Now();
  if (now.inside == 0) return std::nullopt;
  return OpenPhase{"", now.open.begin, now.inside, now.open.by};
}

std::vector<Phase> PhaseTrack::Intervals() const {
  State now = Now();
  if (now.inside != 0) now.done.push_back(now.open);
  return std::move(now.done);
}

bool PhaseTrack::Halve() {
  std::vector<Phase>& all = past_.done;
  if (all.size() < 2) return false;
  std::vector<Phase> halved;
  halved.reserve(all.size() / 2 + 1);
  for (size_t i = 0; i < all.size(); i += 2) {
    halved.push_back(all[i]);
    if (i + 1 < all.size()) Join(halved.back(), all[i + 1]);
  }
  all = std::move(halved);
  return true;
}

}  // namespace sonde
