// The head role: one per step, beside srun.
//
// The rendezvous and the root of the tree. Node daemons connect, prove the step key, get an index
// in the order in which they come, and a parent among those that came before (Nodes); their frames
// become the step's reduced series (RowPath), their blocks go to the archive (BlockIntake). When
// every node has said goodbye, or srun is done and their time is up, the head seals the profile and
// hands over the closing report.
//
// When this head dies, a node that stands by starts another (launch.acting): that goes on with a
// part of its own of the same profile, from what this one has stored (HeadStore), and the nodes
// come back to it. Where this head was only out of reach it finds that out (Rivals) once it is
// back, tells its nodes where to go and leaves its part of the profile to the other one.
//
// Head owns all of these and joins them: each tells it what concerns another one.
//
// Thread safety: the loop's thread only; the web server and the archive have threads of their own
// behind LiveSource and ArchiveWriter.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "daemon/head/alarms/alarms.h"
#include "daemon/head/answers/exporters.h"
#include "daemon/head/answers/live_source.h"
#include "daemon/head/answers/questions.h"
#include "daemon/head/forwarding.h"
#include "daemon/head/record/archive_writer.h"
#include "daemon/head/record/block_intake.h"
#include "daemon/head/record/row_path.h"
#include "daemon/head/record/step_record.h"
#include "daemon/head/registry/head_store.h"
#include "daemon/head/registry/nodes.h"
#include "daemon/head/registry/rivals.h"
#include "daemon/head/rendezvous.h"
#include "daemon/head/slurm/slurm_job.h"
#include "daemon/launch_message.h"
#include "daemon/loop.h"
#include "daemon/step_clock.h"
#include "daemon/tree/children/child_links.h"
#include "daemon/tree/query_fanout.h"
#include "web/server/server.h"

namespace sonde::head {

class Head final : private RowPath::Owner,
                   private Nodes::Owner,
                   private HeadStore::Owner,
                   private Rendezvous::Owner,
                   private Alarms::Owner {
 public:
  // Shorter steps never open a port for HTTP.
  static constexpr Nanos kServeAfter = 200 * kMillisecond;
  // How long after srun's word, or its death, nodes may take to say goodbye: slurmstepd needs about
  // 2.3 s to notice that srun is dead.
  static constexpr Nanos kFinishLimit = kSecond;
  static constexpr Nanos kOrphanLimit = 5 * kSecond;
  // How long an acting head whose node is done waits for the others, which may be done as well.
  static constexpr Nanos kHandOverAfter = 800 * kMillisecond;
  // How long a head that yields to another one lets its nodes hear of that.
  static constexpr Nanos kYieldTime = 300 * kMillisecond;
  // How long the report waits for the archive.
  static constexpr Nanos kSealLimit = 700 * kMillisecond;

  // `done` gets the closing report, once, and may destroy the head.
  Head(Loop& loop, StepClock& clock, const LaunchMessage& launch, const Config& config,
       std::function<void(std::string report)> done);
  ~Head();

  // `listen`: the rendezvous socket, or none if all nodes come by AddNode.
  Status Start(UniqueFd listen);
  // A proven node; gives its index. One that is refused is told so.
  Result<uint32_t> AddNode(const tree::Registration& who, std::unique_ptr<tree::Link> control);
  // What a reader of the profile must know.
  void AddNote(std::string text) { record_.AddNote(std::move(text)); }
  // When it is done: why the profile is not stored; ok if it is, or is still being written.
  const Status& not_stored() const { return not_stored_; }
  // srun is done, or dead. Of an acting head: the tasks of its node are done, and it has to leave
  // before the step's control group there is looked at; if other nodes go on, another one acts.
  void Finish(bool launcher_gone);

 private:
  // kLeaving: the state that another head will go on from is being stored. From now on nobody is
  // told that we have something which that state will not hold.
  enum class State { kRunning, kWaitingForNodes, kSealing, kLeaving, kDone };

  // Nodes.
  void OnProven(const tree::Registration& who, std::unique_ptr<tree::Link> link) override;
  void OnLocalHost(std::string host) override { nodes_.SetLocalHost(std::move(host)); }
  void OnOtherRelease(std::string note) override { AddNote(std::move(note)); }
  void Greet(uint32_t node, tree::Link& control) override;
  void OnRegistered(bool more) override;
  Status OnAsk(uint32_t node, std::string_view payload) override;
  void OnJoined(uint32_t node, std::string_view payload) override {
    exporters_.OnJoined(node, payload);
  }
  void OnGone(uint32_t node) override;
  void OnStanding(const tree::Place& place, bool away) override;
  Status Listen(UniqueFd socket);
  Status CheckNode(const tree::Registration& who) const;
  void NoteDescriptors();
  void SendBudgets();

  // What comes from them.
  void OnBlock(tree::BlockMessage block) override;
  void OnJoinedBlocks(const JoinedBlocks& joined, std::string_view bytes) override;
  void OnMoments(const collect::Moments& moments) override;
  void OnNewRow(const tree::TickMerger::Row& row, const std::vector<Series>& series) override;
  void OnRecorded(Nanos tick, bool late) override;
  void OnLastValues(uint32_t first, bool lost) override;

  // Alarms, and what is stored for another head.
  void Derive(const std::string& needs) override { nodes_.SendToAll(tree::Type::kDerive, needs); }
  void Remark(const collect::Moments& moments) override { OnMoments(moments); }
  void OnAlarmsChanged() override { store_->OnAlarmsChanged(); }
  std::string AlarmChanges() const override { return alarms_->Changes(); }
  void OnStateStored() override;

  // HTTP.
  class NodesFromAnyThread;
  void Serve();
  void AskNodes(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done);
  void PauseCounters(bool paused);

  // The end.
  void CheckNodesDone() override;
  void LeaveToNext();
  void YieldTo(const tree::Place& acting);
  EndState StateOfStep(double out_of_memory_kills, Nanos now) const;
  void AwaitSchemas();
  void Seal();
  void NoteClock();
  void NoteMissing();
  void NoteUncounted();
  void Report(const Status& archived);

  Loop& loop_;
  StepClock& clock_;  // the step's
  LaunchMessage launch_;
  Config config_;
  std::function<void(std::string)> done_;
  State state_ = State::kRunning;
  std::string archive_path_;
  Status not_stored_;

  StepRecord record_;
  std::unique_ptr<ArchiveWriter> archive_;
  tree::QueryFanout queries_;
  BlockIntake intake_;
  RowPath rows_;
  tree::ChildLinks child_links_;
  Nodes nodes_;
  Exporters exporters_;
  std::unique_ptr<HeadStore> store_;
  std::unique_ptr<Rendezvous> rendezvous_;  // nullptr: all nodes come by AddNode

  // Nodes answer a number once, and another head of this step may have asked before.
  uint64_t next_query_ = static_cast<uint64_t>(Clock::System().Now());
  const uint64_t number_ = static_cast<uint64_t>(Clock::System().Now());  // no other head's
  bool counters_paused_ = false;
  bool told_descriptors_ = false;
  bool leave_when_stored_ = false;
  Rivals rivals_;
  std::optional<tree::Place> yield_when_stored_;
  Nanos out_of_reach_ = 0;  // since when a node that stood by is away; the step's time

  SlurmJob slurm_;
  std::optional<EndState> why_killed_;  // when Slurm was asked
  bool asking_why_ = false;

  std::unique_ptr<Alarms> alarms_;  // outlives those that ask it
  std::shared_ptr<LiveSource> source_;
  std::unique_ptr<web::Server> server_;
  std::unique_ptr<Questions> questions_;
  std::unique_ptr<Forwarding> forwarding_;

  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Loop::TimerId serve_timer_ = 0;
  Loop::TimerId finish_timer_ = 0;
  Loop::TimerId hand_over_timer_ = 0;
  Loop::TimerId yield_timer_ = 0;
  Loop::TimerId schema_timer_ = 0;
};

}  // namespace sonde::head
