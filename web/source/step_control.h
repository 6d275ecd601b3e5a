// Changes a running step, and asks what only its head knows. Where steps of other servers are
// shown, a request about such a step is passed on to its server; else it is answered here.
//
// Thread safety: methods from any thread, several at a time. A callback is called once, from any
// thread, perhaps before the method returns. Methods that return their result do not wait.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "series/alarm/evaluator.h"
#include "web/http/http.h"
#include "web/source/pushed_value.h"
#include "web/source/scrape_target.h"

namespace sonde::web {

// A running step's rule for one of its series.
struct AlarmState {
  alarms::Evaluator::State state;
  std::string host;  // the host of the value; "": none
};

// The sender and the receiver of a link towards the head: host names, the head's with ":head".
struct TreeEdge {
  std::string parent;
  std::string child;
};

class StepControl {
 public:
  virtual ~StepControl() = default;

  // Passes a request about a running step on to the server that knows more of it, such as the
  // step's head, and gives its answer. Nothing if there is no such server: answer it here.
  using ForwardCallback = std::function<void(std::optional<Response>)>;
  virtual void Forward(const JobStep& id, const Request& request, ForwardCallback callback) const;

  // The tree of a running step, each node once. kNotFound for a step that does not run.
  using TreeCallback = std::function<void(Result<std::vector<TreeEdge>>)>;
  virtual void Tree(const JobStep& id, TreeCallback callback) const;

  // Registers, sets or adds to a metric of the application in a running step, as the application
  // would. kInvalid for a metric that was not registered, kLimit if there are too many.
  virtual Status Push(const JobStep& id, const PushedValue& value) const;

  // The nodes of a running step leave the processors' counters to other programs, or count again.
  // kInvalid for a step that counts nothing, kNotFound for a step that does not run.
  virtual Status PauseCounters(const JobStep& id, bool paused) const;

  // Lists, adds and removes alarm rules of a running step. kNotFound for a step that does not run,
  // and for an unknown rule; kBusy for a name that is taken.
  virtual Result<std::vector<AlarmState>> Alarms(const JobStep& id) const;
  virtual Status AddAlarm(const JobStep& id, const alarms::Rule& rule) const;
  virtual Status RemoveAlarm(const JobStep& id, const std::string& name) const;

  // Nodes of a running step scrape an exporter until the step ends: the named node, all ("*"), or
  // for "" the node that the target's host names, else the first. Gives their names; the metric
  // join_up shows whether they could reach it. kNotFound as above, or for a node that the step does
  // not have.
  virtual Result<std::string> Join(const JobStep& id, const ScrapeTarget& target,
                                   const std::string& node) const;
};

}  // namespace sonde::web
