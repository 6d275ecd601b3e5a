// Nodes of a step that answer as a test says, and do nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/head/answers/step_nodes.h"

namespace sonde::head {

class AnsweringNodes final : public StepNodes {
 public:
  using Answer = std::function<void(QuerySpec, QueryGrid, tree::QueryFanout::Done)>;
  explicit AnsweringNodes(Answer answer) : answer_(std::move(answer)) {}

  void Ask(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) override {
    answer_(std::move(spec), std::move(grid), std::move(done));
  }
  void PauseCounters(bool) override {}
  void Join(std::vector<uint32_t>, web::ScrapeTarget, web::StepControl::JoinCallback) override {}
  void Exporters(web::StepControl::ExportersCallback) override {}
  void Unjoin(std::string, web::StepControl::UnjoinCallback) override {}
  void Push(uint32_t, std::string) override {}
  void Tree(TreeDone) override {}
  void Links(LinksDone) override {}

 private:
  const Answer answer_;
};

}  // namespace sonde::head
