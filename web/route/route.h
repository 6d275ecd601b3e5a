// An endpoint: a path, the function that answers it, and the sources of the answer.
//
// Each family of endpoints is a folder; its routes.h gives them to the router (web/router.h).
//
// Thread safety: values. Handlers are called from any thread.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "core/task.h"
#include "core/time.h"
#include "web/http/http.h"
#include "web/route/route_doc.h"
#include "web/source/data_source.h"

namespace sonde::web {

// The sources of an endpoint, and the executor on which it goes on when an answer has come. All of
// it is alive whenever the executor (the server's threads) runs something. An empty executor calls
// at once: for tests, which keep the source alive.
struct Context {
  explicit Context(const DataSource& source, const Clock* its_clock = &Clock::System(),
                   Executor threads = nullptr, bool null_for_nan = false)
      : history(&source),
        series(&source),
        control(&source),
        sink(source.sink()),
        ftio_args(&source.ftio_args()),
        clock(its_clock),
        executor(std::move(threads)),
        nan_null(null_for_nan) {}

  const StepHistory* history;
  const StepSeries* series;
  const StepControl* control;
  PointSink* sink;  // nullptr: the server takes no points
  KeptSettings* ftio_args;
  const Clock* clock;
  Executor executor;
  bool nan_null;  // OpenTSDB's answers have null for NaN and infinity, if the request says nothing
};

using Handler = void (*)(const Context& context, const Request& request, Reply reply);

struct Route {
  std::string_view path;
  Handler get = nullptr;   // also answers HEAD
  Handler post = nullptr;  // its body is JSON
  RouteDoc doc = {};
  RouteDoc post_doc = {};    // where POST differs from what doc says; else empty
  Handler put = nullptr;     // its body is JSON, as that of POST
  Handler remove = nullptr;  // DELETE
  RouteDoc remove_doc = {};
};

}  // namespace sonde::web
