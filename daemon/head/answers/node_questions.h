// Questions by host: their way to the nodes, once more where times are missing, and what is made of
// the answers.
//
// The loop only sends questions and merges answers. The number of questions under way is bounded,
// so that the loop has no more answers than that to merge between two ticks; further questions wait
// in order. Other threads finish the answers.
//
// Thread safety: Ask from any thread; made and destroyed by one. Callbacks come where answers are
// finished.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "daemon/head/answers/step_nodes.h"
#include "daemon/head/record/worker.h"
#include "daemon/tree/query_fanout.h"
#include "web/source/step_series.h"

namespace sonde::head {

class NodeQuestions : public std::enable_shared_from_this<NodeQuestions> {
 public:
  // Soon runs, on some thread, the function that puts answers together.
  using Executor = std::function<void(std::function<void()>)>;

  struct Question {
    QuerySpec spec;
    QueryGrid grid;         // to begin with
    std::string job;        // the tag of the results
    uint32_t expected = 0;  // nodes
    web::StepSeries::Callback callback;
    // If set, this one gets the nodes' merged answer, which is not finished then.
    web::StepSeries::PartCallback part_callback = nullptr;
  };

  // Without an executor a thread of this object finishes answers, at that much more niceness.
  NodeQuestions(std::shared_ptr<StepNodes> nodes, size_t most, int niceness,
                Executor executor = nullptr)
      : nodes_(std::move(nodes)), most_(most), executor_(std::move(executor)), worker_(niceness) {}

  void Ask(Question question);

 private:
  struct Asked {
    Question question;
    QueryGrid grid;
    int rounds = 0;
  };

  void Round(const std::shared_ptr<Asked>& asked);
  void OnGathered(const std::shared_ptr<Asked>& asked, tree::Gathered& answer);
  // False if the nodes have to be asked once more.
  static Result<bool> IsWhole(Asked& asked, const tree::Gathered& answer);
  void Next();

  const std::shared_ptr<StepNodes> nodes_;
  const size_t most_;
  const Executor executor_;
  std::mutex mutex_;
  size_t travelling_ = 0;
  std::deque<std::shared_ptr<Asked>> waiting_;
  Worker worker_;  // last: it uses the others
};

}  // namespace sonde::head
