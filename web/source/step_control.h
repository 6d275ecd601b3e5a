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
#include "web/source/link_tree.h"
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

// An exporter that a node of a running step scrapes, or could not scrape.
struct Exporter {
  enum class State : uint8_t {
    kStarting,  // not known yet
    kUp,        // the last scrape succeeded
    kDown,      // it failed; it is tried again
    kFailed,    // it is not tried any more
  };
  std::string host;  // the node's
  ScrapeTarget target;
  State state = State::kStarting;
  std::string kind;       // "Prometheus" or "Proxy"; "": not known
  std::string url;        // that is scraped
  std::string why;        // of kDown and kFailed
  Nanos last_scrape = 0;  // that succeeded; 0: none did
};
std::string_view ToString(Exporter::State state);

// What became of a Join.
struct JoinedNodes {
  std::string scraping;  // the nodes that do, as a host list; never empty
  std::string failed;    // "n2: connection refused", ...; "": no node
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

  // The same with what is known of each link and node. kNotFound as above.
  using LinkTreeCallback = std::function<void(Result<LinkTree>)>;
  virtual void Links(const JobStep& id, LinkTreeCallback callback) const;

  // What the record of a running step here may take, in bytes; 0: not known.
  virtual uint64_t ProfileLimit() const { return 0; }

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
  // for "" the node that the target's host names, else the first. Calls back when each has tried
  // it once, after kJoinPatience at the latest. kNotFound as above, or for a node that the step
  // does not have; kUnavailable if no node could scrape it, and then none goes on. A node may not
  // have been told at once, and its first try takes up to half of that time.
  static constexpr Nanos kJoinPatience = 8 * kSecond;
  using JoinCallback = std::function<void(Result<JoinedNodes>)>;
  virtual void Join(const JobStep& id, const ScrapeTarget& target, const std::string& node,
                    JoinCallback callback) const;
  // The exporters that were joined so. Those that a program of the step joined by itself
  // (`sonde join`) are not among them.
  using ExportersCallback = std::function<void(Result<std::vector<Exporter>>)>;
  virtual void Exporters(const JobStep& id, ExportersCallback callback) const;
  // No node scrapes the exporter HOST:PORT any more, whatever its path. kNotFound if none did.
  using UnjoinCallback = std::function<void(Status)>;
  virtual void Unjoin(const JobStep& id, const std::string& instance,
                      UnjoinCallback callback) const;
};

}  // namespace sonde::web
