// The head role: one per step, beside srun.
//
// The rendezvous and the root of the tree. Node daemons connect, prove the step key, get an index
// in the order in which they come, and a parent among those that came before; their frames become
// the step's reduced series, their blocks go to the archive. When every node has said goodbye, or
// srun is done and their time is up, the head seals the profile and hands over the closing report.
//
// Thread safety: the loop's thread only; the web server and the archive have threads of their own
// behind LiveSource and ArchiveWriter.
#pragma once

#include <functional>
#include <memory>
#include <set>
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
#include "daemon/head/live_source.h"
#include "daemon/head/questions.h"
#include "daemon/head/step_record.h"
#include "daemon/launch_message.h"
#include "daemon/loop.h"
#include "daemon/tree/acceptor.h"
#include "daemon/tree/child_links.h"
#include "daemon/tree/children.h"
#include "daemon/tree/ended_nodes.h"
#include "daemon/tree/lazy_fabric.h"
#include "daemon/tree/listener.h"
#include "daemon/tree/placement.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "web/server.h"

namespace sonde::head {

class Head {
 public:
  // Shorter steps never open a port for HTTP.
  static constexpr Nanos kServeAfter = 200 * kMillisecond;
  // How long after srun's word, or its death, nodes may take to say goodbye: slurmstepd needs about
  // 2.3 s to notice that srun is dead.
  static constexpr Nanos kFinishLimit = kSecond;
  static constexpr Nanos kOrphanLimit = 5 * kSecond;
  // As a node's.
  static constexpr Nanos kPulse = kSecond;
  static constexpr Nanos kChildSilence = 3 * kSecond;
  // How often what the application told is stored while it goes on telling.
  static constexpr Nanos kStoreMomentsAfter = 5 * kSecond;
  // How long the report waits for the archive.
  static constexpr Nanos kSealLimit = 700 * kMillisecond;

  // `done` gets the closing report, once, and may destroy the head.
  Head(Loop& loop, const LaunchMessage& launch, const Config& config,
       std::function<void(std::string report)> done);
  ~Head();

  // `listen`: the rendezvous socket, or none if all nodes come by AddNode.
  Status Start(UniqueFd listen);
  // A proven node; gives its index. kBusy if that node is there already.
  Result<uint32_t> AddNode(const tree::Registration& who, std::unique_ptr<tree::Link> control);
  // What a reader of the profile must know.
  void AddNote(std::string text);
  // srun is done, or dead.
  void Finish(bool launcher_gone);

 private:
  enum class State { kRunning, kWaitingForNodes, kSealing, kDone };

  struct NodeState {
    std::unique_ptr<tree::Link> control;
    bool gone = false;  // said goodbye, or lost
    bool listen_asked = false;
    bool wants_parent = false;           // has asked for one
    uint32_t parent = tree::kHeadIndex;  // it was told last
    std::string address;                 // where its children connect
    std::vector<uint32_t> waiting;       // children that wait for the address
  };

  // Nodes.
  void AddNodeNote(uint32_t index, std::string_view text);
  void OnControlMessage(uint32_t index, uint8_t type, std::string_view payload);
  void OnControlClosed(uint32_t index, const Status& why);
  bool KeepLastOf(uint32_t index);
  void Leaves(NodeState& node);
  void OnBye(uint32_t index, std::string_view payload);
  Status OnAsk(uint32_t index, std::string_view payload);
  void CountExpected(const tree::Registration& who);

  // The tree's shape.
  bool SendsTo(uint32_t node, uint32_t other) const;
  void OnWantParent(uint32_t index, std::string_view payload);
  void OnListening(uint32_t index, std::string_view payload);
  void SendParent(uint32_t child, uint32_t parent, const std::string& address);
  void ListenOnFabric(const Result<tree::Fabric*>& fabric);

  // Ticks and blocks.
  void OnRow(const tree::TickMerger::Row& row, bool late);
  void OnRefused(tree::TickMerger::Fate fate, const tree::Frame& frame,
                 tree::TickMerger::Source source);
  void OnEnded(const tree::FrameInfo& info, const Schema::Ptr& schema,
               std::span<const Reduced> values, tree::TickMerger::Source source);
  void SchedulePulse();
  void OnMoments(const collect::Moments& moments);
  Nanos MergeWindow() const;
  void ScheduleExpiry();
  void UpdateCoverage();
  void SendBudgets();
  void StoreReduced(const SealedBlock& block);

  // HTTP.
  void Serve();
  void AskNodes(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done);
  void PauseCounters(bool paused);
  void StartAlarms();
  void JoinExporter(const std::vector<uint32_t>& nodes, const std::string& url);

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
  tree::Placement placement_;                              // of the same nodes
  std::set<std::pair<std::string, uint32_t>> registered_;  // component and its node
  std::unordered_map<std::string, uint32_t> components_;   // job id -> nodes of that component
  tree::QueryFanout queries_;
  BlockIntake intake_;
  tree::TickMerger merger_;
  tree::EndedNodes ended_;
  tree::TickMerger::Row whole_;  // a row and what has ended
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
  tree::LazyFabric fabric_;
  bool fabric_asked_ = false;   // to listen; what became of it is told once
  std::string fabric_address_;  // empty: none
  std::string local_host_;
  tree::ChildLinks child_links_;

  std::unique_ptr<Alarms> alarms_;  // outlives those that ask it
  std::shared_ptr<LiveSource> source_;
  std::unique_ptr<web::Server> server_;
  std::unique_ptr<Questions> questions_;

  Loop::TimerId expiry_timer_ = 0;
  Loop::TimerId pulse_timer_ = 0;
  Loop::TimerId serve_timer_ = 0;
  Loop::TimerId finish_timer_ = 0;
  Loop::TimerId describe_timer_ = 0;
  Loop::TimerId moments_timer_ = 0;
};

}  // namespace sonde::head
