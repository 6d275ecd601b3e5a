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
  using LinksDone = std::function<void(web::LinkTree)>;

  virtual ~StepNodes() = default;

  // `done` is called on the loop's thread, once, or never if the head ends first.
  virtual void Ask(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) = 0;
  // Has all nodes leave the processors' counters to others, or count again.
  virtual void PauseCounters(bool paused) = 0;
  // Has the nodes of these indexes scrape an exporter; lists such exporters; ends one
  // (exporters.h). They call back as Ask does.
  virtual void Join(std::vector<uint32_t> nodes, web::ScrapeTarget target,
                    web::StepControl::JoinCallback done) = 0;
  virtual void Exporters(web::StepControl::ExportersCallback done) = 0;
  virtual void Unjoin(std::string instance, web::StepControl::UnjoinCallback done) = 0;
  // Gives one of the nodes values of an application.
  virtual void Push(uint32_t node, std::string bytes) = 0;
  // Gives which node sends to which; `done` is called as with Ask.
  virtual void Tree(TreeDone done) = 0;
  // The same with the state of each.
  virtual void Links(LinksDone done) = 0;
};

}  // namespace sonde::head
