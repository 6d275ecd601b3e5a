// What happens in a step at a moment rather than over time, as its processes tell it: a remark, the
// begin or end of a phase, a figure of merit.
//
// Ranks often say the same at the same time. Equal texts of several ranks within one tick become
// one Annotation with the first and last time and a count; so its cost does not grow with the step.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>

#include "core/time.h"

namespace sonde {

// Values written to disk and to the wire: never change them.
enum class AnnotationKind : uint8_t {
  kRemark = 0,
  kPhaseBegin = 1,
  kPhaseEnd = 2,
  kFigure = 3,  // of merit: the last value said counts
};

struct Annotation {
  AnnotationKind kind = AnnotationKind::kRemark;
  std::string
      text;  // remark, or name of the phase or figure; plain text of 1 to kMaxTextLength bytes
  std::string unit;  // of a figure
  double value = 0;  // of a figure: said last; finite
  Nanos first = 0;   // wall clock, when it was first said and last
  Nanos last = 0;
  uint64_t count = 1;  // how often it was said
  uint32_t node = 0;   // who said it first, of a figure last: index in the step's list, and rank
  uint32_t task = 0;
  bool operator==(const Annotation&) const = default;

  // Whether both can be merged into one.
  bool SameAs(const Annotation& other) const {
    return kind == other.kind && text == other.text && unit == other.unit;
  }
  // Merges another for which SameAs holds into this one.
  void Merge(const Annotation& other) {
    const bool figure = kind == AnnotationKind::kFigure;
    if (figure ? other.last >= last : other.first < first) {
      node = other.node;
      task = other.task;
      value = other.value;
    }
    if (other.first < first) first = other.first;
    if (other.last > last) last = other.last;
    count += other.count;
  }
};

}  // namespace sonde
