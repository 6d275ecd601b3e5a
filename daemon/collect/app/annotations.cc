#include "daemon/collect/app/annotations.h"

#include <algorithm>
#include <utility>

namespace sonde::collect {

void AppAnnotations::Add(Annotation annotation) {
  key_.assign(1, static_cast<char>(annotation.kind));
  key_ += annotation.text;
  key_ += '\n';  // in no text
  key_ += annotation.unit;
  if (const auto found = places_.find(key_); found != places_.end()) {
    return annotations_[found->second].Merge(annotation);
  }
  const bool remark = annotation.kind == AnnotationKind::kRemark;
  if (annotations_.size() == kMax || (remark && remarks_ == kMaxRemarks)) return Lose(1);
  places_.emplace(key_, annotations_.size());
  annotations_.push_back(std::move(annotation));
  if (remark) ++remarks_;
}

void AppAnnotations::Take(Moments& out) {
  out.lost = std::exchange(lost_, 0);
  if (annotations_.empty()) return;
  out.annotations = std::exchange(annotations_, {});
  std::stable_sort(out.annotations.begin(), out.annotations.end(),
                   [](const Annotation& a, const Annotation& b) { return a.first < b.first; });
  places_.clear();
  remarks_ = 0;
}

}  // namespace sonde::collect
