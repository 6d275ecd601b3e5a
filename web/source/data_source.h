// Everything that a web server can ask: the running step's head and `sonde serve` each are one, so
// the same code of every page and endpoint works during the run and after it. An endpoint names the
// part that it needs.
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
  // The store for points that are put over HTTP (web/source/point_sink.h); nullptr: takes none.
  virtual PointSink* sink() const { return nullptr; }
};

}  // namespace sonde::web
