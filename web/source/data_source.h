// All that a web server is given to ask: the running step's head and `sonde serve` are one each, so
// every page and endpoint works during the run and after it by the same code. An endpoint names
// the part that it needs.
//
// Thread safety: as each part says.
#pragma once

#include "web/source/step_control.h"
#include "web/source/step_history.h"
#include "web/source/step_series.h"

namespace sonde::web {

class PointSink;

class DataSource : public StepHistory, public StepSeries, public StepControl {
 public:
  // Where points that are put over HTTP go (web/source/point_sink.h); nullptr if none are taken.
  virtual PointSink* sink() const { return nullptr; }
};

}  // namespace sonde::web
