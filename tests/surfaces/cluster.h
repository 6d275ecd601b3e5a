// A step of the campaign as the product runs it, in one process and on one thread: nodes with the
// product's recorders, relays and answers, the head's rows, record and data source, the live
// archive, and what the archive makes of it. Made for the campaign are the wires between daemons,
// which are queues, and the clock, which goes on when the campaign says so.
//
// Thread safety: none.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "profiles/archive/archive.h"
#include "tests/surfaces/plan.h"
#include "web/source/data_source.h"

namespace sonde::surfaces {

// Hears what happens at the head, in the order in which it does.
class Witness {
 public:
  virtual ~Witness() = default;
  // The daemon has come; its place among the nodes is its index in the plan.
  virtual void OnJoined(uint32_t daemon) = 0;
  // A sample was sent, and has come to whoever the daemon sends to. The last one of all is what the
  // daemon had at its end.
  virtual void OnArrived(uint32_t daemon, const Sample& sample) = 0;
  // Its link is gone.
  virtual void OnLost(uint32_t daemon) = 0;
  // A row of the step is in the record for the first time.
  virtual void OnRow(Nanos tick) = 0;
};

// A daemon, as the head can know it.
enum class NodeState {
  kToCome,
  kHere,
  kSilent,  // it does not answer: its link is stuck, or gone and the head still waits for it
  kEnded,
  kLost,
};

class Cluster {
 public:
  // `archive`: a directory.
  Cluster(const StepPlan& plan, std::string archive, Witness& witness);
  ~Cluster();

  // Runs the step to its end; `ask` is called when it is to be asked.
  void Run(const std::function<void()>& ask);
  // Seals the profile and has the archive take it in.
  void Finish();

  // The head's, while the step runs, and its time.
  const web::DataSource& source() const;
  const Clock& clock() const;
  // By the plan's daemons.
  std::vector<NodeState> states() const;
  // Lets everything that is under way arrive, such as what nodes answer.
  void Settle();
  // And has the head wait no longer for answers that do not come.
  void LosePatience();

  // Once it is finished.
  Profile profile() const;

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace sonde::surfaces
