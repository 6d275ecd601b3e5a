// Questions by host: their way to the nodes, once more where times are missing, and what is made of
// the answers.
//
// The loop only sends questions and merges answers, and finishes small ones for those who ask so.
// The number of questions under way is bounded, so that the loop has no more answers than that to
// merge between two ticks; further questions wait in order. Other threads finish the answers.
//
// In the place of nodes that are gone the head answers itself, from the series that they have
// stored. A node is answered for if it is gone and has not answered: one that is lost and comes
// back meanwhile counts once. Of a host whose daemon was started anew the series of both daemons
// are one. So the head asks the newer daemon for its points, adds those of the older one, and
// answers for the host; a second question without such hosts goes to all. Of a counter it asks for
// the first and the last point before the range as well: these show where the counter began anew,
// and how far it had come.
//
// Thread safety: Ask from any thread; made and destroyed by one. Callbacks come where answers are
// finished.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/head/answers/hosts_now.h"
#include "daemon/head/answers/step_nodes.h"
#include "daemon/head/answers/stored_series.h"
#include "daemon/head/record/step_record.h"
#include "daemon/head/record/worker.h"
#include "daemon/tree/query_fanout.h"
#include "web/source/step_series.h"

namespace sonde::head {

class NodeQuestions : public std::enable_shared_from_this<NodeQuestions> {
 public:
  // Soon runs, on some thread, the function that puts answers together.
  using Executor = std::function<void(std::function<void()>)>;

  struct Answer {
    web::Answer answer;
    // Nodes, by index, whose series are not in it: they did not answer, or what they have stored
    // cannot be read.
    std::vector<uint32_t> missing;
  };
  using Callback = std::function<void(Result<Answer>)>;
  struct Question {
    QuerySpec spec;
    QueryGrid grid;  // to begin with
    Callback callback;
    // If set, this one gets the nodes' merged answer, which is not finished then.
    web::StepSeries::PartCallback part_callback = nullptr;
    // A small answer of all nodes is finished where it comes, on the loop: for who waits for it and
    // does little with it.
    bool at_once = false;
  };

  // Without an executor a thread of this object finishes answers, at that much more niceness.
  // `hosts`: those of the record. `stored`: nullptr: of nodes that are gone nothing is known.
  NodeQuestions(const StepRecord& record, std::shared_ptr<const HostsNow> hosts,
                std::shared_ptr<StepNodes> nodes, std::shared_ptr<const StoredSeries> stored,
                size_t most, int niceness, Executor executor = nullptr)
      : record_(record),
        hosts_(std::move(hosts)),
        nodes_(std::move(nodes)),
        stored_(std::move(stored)),
        most_(most),
        executor_(std::move(executor)),
        worker_(niceness) {}

  void Ask(Question question);

 private:
  struct Asked {
    Question question;
    QueryGrid grid;
    int rounds = 0;
    HostsNow::Hosts hosts;  // as this round began
    // Those of them whose daemon was started anew, if the question is about them, and what their
    // newer daemons have told in this round.
    std::set<std::string> anew;
    std::vector<SeriesData> of_anew;
    std::optional<tree::NodeSet> who_anew;

    void AnsweredOfAnew(const tree::NodeSet& who);
  };
  using AskedPtr = std::shared_ptr<Asked>;
  // What is known of an answer once everybody was asked.
  struct Outcome;
  struct Stored;

  // Where answers are finished.
  void Do(std::function<void()> job);
  void Round(const AskedPtr& asked);
  // `then` gets the nodes' answer where answers are finished.
  void Send(const AskedPtr& asked, QuerySpec spec, QueryGrid grid,
            std::function<void(NodeQuestions&, tree::Gathered&)> then);
  bool IsSmall(const tree::Gathered& answer) const;
  void AskForPoints(const AskedPtr& asked);
  void AskBefore(const AskedPtr& asked, Aggregator which);
  void OnBefore(const AskedPtr& asked, Aggregator which, Nanos end, tree::Gathered& answer);
  void OnPoints(const AskedPtr& asked, tree::Gathered& answer);
  void SendToAll(const AskedPtr& asked);
  void OnGathered(const AskedPtr& asked, tree::Gathered& answer);
  // False if the nodes have to be asked once more.
  Result<bool> Complete(Asked& asked, tree::Gathered& answer, Outcome& outcome) const;
  static WhoAnswers SortOut(const Asked& asked, const StepHosts& hosts,
                            const tree::Gathered& answer);
  bool HasChanged(const StepHosts& hosts, const tree::Gathered& answer,
                  const WhoAnswers& told) const;
  void AddStored(const Asked& asked, const StepHosts& hosts, WhoAnswers told,
                 tree::Gathered& answer, Outcome& outcome) const;
  Stored StoredOf(const QuerySpec& spec, const std::vector<uint32_t>& gone,
                  std::vector<uint32_t>& missing) const;
  void Finish(const AskedPtr& asked, const Status& failure, tree::Gathered& answer,
              Outcome& outcome);
  void Next();

  const StepRecord& record_;
  const std::shared_ptr<const HostsNow> hosts_;
  const std::shared_ptr<StepNodes> nodes_;
  const std::shared_ptr<const StoredSeries> stored_;
  const size_t most_;
  const Executor executor_;
  std::mutex mutex_;
  size_t travelling_ = 0;
  std::deque<AskedPtr> waiting_;
  Worker worker_;  // last: it uses the others
};

}  // namespace sonde::head
