// The step's nodes, as those who answer questions reach them: what they are told and asked goes
// down the tree.
//
// Thread safety: from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "daemon/tree/query_fanout.h"
#include "web/source/step_control.h"

namespace sonde::head {

class StepNodes {
 public:
  using TreeDone = std::function<void(std::vector<web::TreeEdge>)>;

  virtual ~StepNodes() = default;

  // `done` is called on the loop's thread, once, or never if the head ends first.
  virtual void Ask(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) = 0;
  // Has all nodes leave the processors' counters to others, or count again.
  virtual void PauseCounters(bool paused) = 0;
  // Has the nodes of these indexes scrape an exporter.
  virtual void Join(std::vector<uint32_t> nodes, std::string target) = 0;
  // Gives one of the nodes values of an application.
  virtual void Push(uint32_t node, std::string bytes) = 0;
  // Gives which node sends to which; `done` is called as with Ask.
  virtual void Tree(TreeDone done) = 0;
};

}  // namespace sonde::head
