// What the application's processes told since the last tick beside values: annotations and
// observations of histograms.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <vector>

#include "core/annotation.h"
#include "series/sketch/sketch.h"

namespace sonde::collect {

struct Moments {
  std::vector<Annotation> annotations;  // merged; the node is not filled in
  std::vector<NamedSketch> sketches;    // of all processes of this node together
  uint64_t lost = 0;                    // annotations that came faster than they were taken

  bool empty() const { return annotations.empty() && sketches.empty() && lost == 0; }
};

}  // namespace sonde::collect
