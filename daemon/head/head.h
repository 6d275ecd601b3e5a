// The head role: one per step, beside srun.
//
// The rendezvous and the root of the tree. Node daemons connect, prove the step key, get an index
// in the order in which they come, and a parent among those that came before; their frames become
// the step's reduced series, their blocks go to the archive. When every node has said goodbye, or
// srun is done and their time is up, the head seals the profile and hands over the closing report.
//
// A node whose connection is lost has a while to come back under its index; a daemon that was
// started anew on a node gets an index of its own. When this head dies, a node that stands by
// starts another (launch.acting): that goes on with a part of its own of the same profile, from
// what this one has stored, and the nodes come back to it.
//
// Thread safety: the loop's thread only; the web server and the archive have threads of their own
// behind LiveSource and ArchiveWriter.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/config.h"
#include "daemon/head/alarms.h"
#include "daemon/head/archive_writer.h"
#include "daemon/head/block_intake.h"
#include "daemon/head/coverage_count.h"
#include "daemon/head/forwarding.h"
#include "daemon/head/live_source.h"
#include "daemon/head/parents.h"
#include "daemon/head/questions.h"
#include "daemon/head/step_record.h"
#include "daemon/head/succession.h"
#include "daemon/launch_message.h"
#include "daemon/loop.h"
#include "daemon/tree/acceptor.h"
#include "daemon/tree/child_links.h"
#include "daemon/tree/children.h"
#include "daemon/tree/ended_nodes.h"
#include "daemon/tree/listener.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "web/server/server.h"

namespace sonde::head {

class Head {
 public:
  // Shorter steps never open a port for HTTP.
  static constexpr Nanos kServeAfter = 200 * kMillisecond;
  // How long after srun's word, or its death, nodes may take to say goodbye: slurmstepd needs about
  // 2.3 s to notice that srun is dead.
  static constexpr Nanos kFinishLimit = kSecond;
  static constexpr Nanos kOrphanLimit = 5 * kSecond;
  // How long a node may stay away before it is lost: while the step runs, at its end, when all have
  // to find an acting head first, and when those that have found it are gone again.
  static constexpr Nanos kAwayLimit = 3 * kSecond;
  static constexpr Nanos kAwayAtEndLimit = 300 * kMillisecond;
  static constexpr Nanos kTakeoverLimit = 15 * kSecond;
  static constexpr Nanos kTakeoverAtEndLimit = 1500 * kMillisecond;
  // After so long, or so many rows, what there is of the step's rows is stored. Nodes keep half of
  // FrameWindow::kMaxFrames of them.
  // Last values of a node that has ended are the one thing that nobody else has: those are soon.
  static constexpr Nanos kStoreAfter = 10 * kSecond;
  static constexpr Nanos kStoreEndedAfter = kSecond;
  static constexpr uint32_t kStoreAfterRows = 96;
  // How often what the application told is stored while it goes on telling.
  static constexpr Nanos kStoreMomentsAfter = 5 * kSecond;
  static constexpr Nanos kStoreAlarmsAfter = kSecond;
  // How long an acting head whose node is done waits for the others, which may be done as well.
  static constexpr Nanos kHandOverAfter = 800 * kMillisecond;
  // How long the report waits for the archive.
  static constexpr Nanos kSealLimit = 700 * kMillisecond;

  // `done` gets the closing report, once, and may destroy the head.
  Head(Loop& loop, const LaunchMessage& launch, const Config& config,
       std::function<void(std::string report)> done);
  ~Head();

  // `listen`: the rendezvous socket, or none if all nodes come by AddNode.
  Status Start(UniqueFd listen);
  // A proven node; gives its index. One that is refused is told so.
  Result<uint32_t> AddNode(const tree::Registration& who, std::unique_ptr<tree::Link> control);
  // What a reader of the profile must know.
  void AddNote(std::string text);
  // srun is done, or dead. Of an acting head: the tasks of its node are done, and it has to leave
  // before the step's control group there is looked at; if other nodes go on, another one acts.
  void Finish(bool launcher_gone);

 private:
  // kLeaving: what another head will go on from is being stored. Nobody is told any more that we
  // have what that will not hold.
  enum class State { kRunning, kWaitingForNodes, kSealing, kLeaving, kDone };

  struct NodeState {
    std::unique_ptr<tree::Link> control;
    bool gone = false;      // said goodbye, or lost
    Nanos away_until = 0;   // monotonic: then it is lost; 0: it is there, or gone
    std::string away_note;  // why
  };

  // Nodes.
  void AddNodeNote(uint32_t index, std::string_view text);
  bool SendTo(uint32_t index, tree::Type type, std::string_view payload);
  void SendToAll(tree::Type type, std::string_view payload);
  void OnControlMessage(uint32_t index, uint8_t type, std::string_view payload);
  void OnControlClosed(uint32_t index, const Status& why);
  Status CheckNode(const tree::Registration& who) const;
  size_t MostNodes() const;
  bool IsUnknown(uint32_t index) const;
  void Learn(const tree::Registration& who);
  uint32_t NewNode(const tree::Registration& who);
  void ComesBack(const tree::Registration& who);
  void Replace(uint32_t index);
  void Away(uint32_t index, std::string why, Nanos limit);
  void HurryAway(Nanos limit);
  void ScheduleAway();
  void IsLost(uint32_t index);
  void Leaves(uint32_t index);
  void OnBye(uint32_t index, std::string_view payload);
  Status OnAsk(uint32_t index, std::string_view payload);
  void CountExpected(const tree::Registration& who);

  // From one head to the next.
  void ListenToThoseThatComeBack();
  void Inherit();
  void StoreWithin(Nanos time);
  void StoreState();
  void LeaveToNext();

  // Ticks and blocks.
  void OnRow(const tree::TickMerger::Row& row, bool late);
  void OnRefused(tree::TickMerger::Fate fate, const tree::Frame& frame,
                 tree::TickMerger::Source source);
  void OnEnded(const tree::FrameInfo& info, const Schema::Ptr& schema,
               std::span<const Reduced> values, tree::TickMerger::Source source);
  void OnMoments(const collect::Moments& moments);
  Nanos MergeWindow() const;
  void ScheduleExpiry();
  void UpdateCoverage();
  void SendBudgets();
  void StoreReduced(const SealedBlock& block);

  // HTTP.
  LiveSource::Ways SourceWays();
  Status ListenForNodes(UniqueFd listen);
  void Serve();
  void AskNodes(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done);
  void PauseCounters(bool paused);
  void StartAlarms();
  std::vector<web::TreeEdge> TreeNow() const;

  // The end.
  void CheckNodesDone();
  void Seal();
  void NoteMissing();
  void Report(const Status& archived);

  Loop& loop_;
  LaunchMessage launch_;
  Config config_;
  std::function<void(std::string)> done_;
  State state_ = State::kRunning;
  std::string archive_path_;

  StepRecord record_;
  uint32_t expected_nodes_;  // as in the record
  CoverageCount coverage_;
  std::unique_ptr<ArchiveWriter> archive_;
  std::vector<NodeState> nodes_;
  // Component and its node; if that came several times, the last.
  std::map<std::pair<std::string, uint32_t>, uint32_t> registered_;
  std::unordered_map<std::string, uint32_t> components_;  // job id -> nodes of that component
  tree::QueryFanout queries_;
  BlockIntake intake_;
  tree::TickMerger merger_;
  tree::EndedNodes ended_;
  tree::TickMerger::Row whole_;  // a row and what has ended
  std::vector<Reduced> late_;    // what comes late to one
  tree::Children children_;
  tree::Bye ends_;  // of all nodes together
  uint32_t byes_ = 0;
  size_t gone_nodes_ = 0;         // these, and the lost
  uint64_t refused_samples_ = 0;  // that came too late, or with others' that were there
  // Nodes answer a number once, and another head of this step may have asked before.
  uint64_t next_query_ = static_cast<uint64_t>(Clock::System().Now());
  bool counters_paused_ = false;
  bool told_descriptors_ = false;

  std::unique_ptr<tree::Acceptor> acceptor_;
  std::unique_ptr<tree::Listener> listener_;
  // Where nodes come back. srun has a process of its own that holds the socket it gave us, so that
  // nothing would refuse them there when this process is dead.
  std::unique_ptr<tree::Listener> own_listener_;
  bool local_host_known_ = false;
  std::unique_ptr<Succession> succession_;  // nullptr: there is no other host to go on
  const uint64_t number_ = static_cast<uint64_t>(Clock::System().Now());  // no other head's
  Nanos inherited_ = 0;           // rows up to it another head has stored
  std::string inherited_alarms_;  // until alarms_ has them
  uint32_t rows_to_store_ = 0;
  bool moments_changed_ = false;  // since they were stored
  bool nodes_changed_ = false;    // since the description was stored
  bool storing_ = false;
  bool leave_when_stored_ = false;
  tree::ChildLinks child_links_;
  Parents parents_;

  std::unique_ptr<Alarms> alarms_;  // outlives those that ask it
  std::shared_ptr<LiveSource> source_;
  std::unique_ptr<web::Server> server_;
  std::unique_ptr<Questions> questions_;
  std::unique_ptr<Forwarding> forwarding_;

  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Loop::TimerId expiry_timer_ = 0;
  Loop::TimerId serve_timer_ = 0;
  Loop::TimerId finish_timer_ = 0;
  Loop::TimerId describe_timer_ = 0;
  Loop::TimerId away_timer_ = 0;
  Loop::TimerId store_timer_ = 0;
  Loop::TimerId hand_over_timer_ = 0;
  Nanos store_at_ = 0;  // monotonic
};

}  // namespace sonde::head
