// Everything that a web server can ask: the running step's head and `sonde serve` each are one, so
// the same code of every page and endpoint works during the run and after it. An endpoint names the
// part that it needs.
//
// Thread safety: as each part says.
#pragma once

#include "web/source/kept_settings.h"
#include "web/source/step_control.h"
#include "web/source/step_history.h"
#include "web/source/step_series.h"

namespace sonde::web {

class PointSink;

class DataSource : public StepHistory, public StepSeries, public StepControl {
 public:
  // The store for points that are put over HTTP (web/source/point_sink.h); nullptr: takes none.
  virtual PointSink* sink() const { return nullptr; }
  // Of how metric-proxy's clients want periods to be found (web/proxy/traces/ftio_args.h).
  KeptSettings& ftio_args() const { return ftio_args_; }

 private:
  mutable KeptSettings ftio_args_;
};

}  // namespace sonde::web
