// The node role: one per node of the step.
//
// It samples at every tick, keeps the detail, sends one reduced frame up, forwards what its
// children send, answers questions, and when its tasks are done delivers what it holds and leaves
// within kFinishLimit. Its life:
//
//   Connect   to the head; the key is proved, the node gets its index
//   ticks     over the control connection at first; once the step is older than fabric_after, over
//             a link to its parent in the tree. Over sockets that is at once in a step of more
//             nodes than the head has places
//   Finish    last sample; children that are not done send their data to the head; blocks and final
//             frame go up; goodbye to the head; `done` is called
//
// When the connection to the head is lost, the node goes on sampling and looks for it, or for the
// acting one that goes on in its place (HeadLink); some nodes stand by to become that (Standby).
// Without any there is nobody to tell: the node leaves as soon as it knows that. Nothing that goes
// wrong here reaches the job.
//
// Thread safety: the loop's thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/config.h"
#include "core/socket_file.h"
#include "daemon/launch_message.h"
#include "daemon/link/libfabric/lazy_fabric.h"
#include "daemon/link/link.h"
#include "daemon/loop.h"
#include "daemon/node/application.h"
#include "daemon/node/launcher/suspension.h"
#include "daemon/node/launcher/task_watch.h"
#include "daemon/node/links/gateway.h"
#include "daemon/node/links/gateway_plan.h"
#include "daemon/node/links/head_link.h"
#include "daemon/node/links/parent_link.h"
#include "daemon/node/links/standby.h"
#include "daemon/node/record/head_clock.h"
#include "daemon/node/record/recorder.h"
#include "daemon/step_clock.h"
#include "daemon/tree/blocks/block_sender.h"
#include "daemon/tree/children/child_links.h"
#include "daemon/tree/children/relay.h"
#include "daemon/tree/query_fanout.h"

namespace sonde::node {

class Node final : private HeadLink::Owner,
                   private ParentLink::Owner,
                   private Application::Owner,
                   private tree::Relay::Owner {
 public:
  // slurmstepd waits 1.8 s at most. This is reached only where something is broken, and told then.
  static constexpr Nanos kFinishLimit = 1500 * kMillisecond;
  // So long since its start, with an addition for each node of the step, the node tries to reach
  // the head. After that it does not hold up its tasks' end if the head has said nothing at all.
  static constexpr Nanos kReachLimit = 300 * kMillisecond;
  static constexpr Nanos kReachLimitEach = kMillisecond / 10;
  // By then an acting head that this node has started is gone as well.
  static constexpr Nanos kActingLimit = 1700 * kMillisecond;
  // By then the node's blocks are in the archive, or thinned so that they are, or given up.
  static constexpr Nanos kBlocksLimit = 1100 * kMillisecond;
  // How long a node that is done waits for the children that are done as well.
  static constexpr Nanos kChildrenLimit = 300 * kMillisecond;
  // And then how long it waits for its other children to send their data elsewhere.
  static constexpr Nanos kLeaveLimit = 300 * kMillisecond;
  // So long after its tasks' end a gateway is there for nodes whose tasks go on, and then it waits
  // so long for them to find another way.
  static constexpr Nanos kGatewayLimit = 300 * kMillisecond;
  static constexpr Nanos kGatewayLeaveLimit = 200 * kMillisecond;
  // Word of a frame may take so long to come; with long periods, two and a half periods.
  static constexpr Nanos kWordOfHead = 3 * kSecond;

  // How often the head is asked for the time, and how often at most if something says that this
  // node's clock is wrong.
  static constexpr Nanos kAskTimeEvery = 300 * kSecond;
  static constexpr Nanos kAskTimeAgain = 5 * kSecond;

  Node(Loop& loop, StepClock& time, const LaunchMessage& launch, const Config& config,
       std::function<void()> done);
  ~Node();

  // The sockets for the application, as far as the launcher has made them. First.
  void TakeSockets(UniqueFd application, SocketFile proxy) {
    application_.TakeSockets(std::move(application), std::move(proxy));
  }
  // Takes the first sample and starts ticking; registers with the head over the network, or over a
  // control link that needs no proof (head and node in one process).
  void ConnectToHead();
  void UseControl(std::unique_ptr<tree::Link> control);

  collect::Sampler& sampler() { return recorder_.sampler(); }
  void OnTask(uint32_t rank, pid_t pid);
  void OnTaskExit(uint32_t rank, int wait_status);
  // The environment has what the fabric's libraries read there.
  void OnFabricVariables() { fabric_.Release(); }
  // The tasks are done, or their launcher is gone.
  void Finish(bool launcher_gone);

  tree::Registration registration() const override;
  // When it is done: what kept this node's telemetry from reaching the head; ok if nothing did.
  const Status& failure() const { return failure_; }

 private:
  enum class State { kRunning, kWaitingForChildren, kDelivering, kDone };

  // Time.
  void Start();
  using Extent = collect::Sampler::Extent;
  void Sample(Nanos time, Extent extent);
  collect::DaemonState DescribeDaemon() const;
  void NoteLeftOut();
  double SentBytes() const;
  void ScheduleTick();
  bool TakeDueTick(Nanos now);
  void LookNowAndThen();
  void LookForSuspension();
  void LookAtClock();
  void AskTime(Nanos pause);
  void OnTime(std::string_view payload);
  void OnAhead() override { AskTime(kAskTimeAgain); }

  // The head.
  bool registered() const { return index_ != tree::kHeadIndex; }
  void OnHeadMessage(tree::Type type, std::string_view payload) override;
  void OnWelcome(const tree::Welcome& welcome, Nanos waited) override;
  void OnRegistered(const tree::Welcome& welcome, Nanos waited);
  void OnHeadLost(tree::Link& link, const Status& why) override;
  void OnNoHead(const Status& why) override;
  void OnOver() override;
  void EndWithoutHead(const Status& why);
  void OnStandby();
  bool HeadIsThere() const;
  bool IsSuspended() const override { return suspension_.Holds(); }
  bool BecomeHead() override;
  void OpenGateway();
  void Note(std::string text) override;
  bool Ask(const tree::AskMessage& ask) override;
  void OnJoined(const tree::JoinedMessage& exporter) override;

  // The way up.
  void UseLink(tree::Link* link, bool tell_former);
  void OnBlock(tree::BlockMessage block) override;
  void OnJoinedBlocks(const JoinedBlocks& joined, std::string_view bytes) override;
  void BeforeFrames() override { RunBlocks(true); }
  void RunBlocks(bool frames_follow = false);
  void OnUplinkMessage(tree::Type type, std::string_view payload) override;
  void PrepareOwn();
  void SendOwn(Nanos time);
  void AddOwnMoments();
  void CheckWayUp(Nanos late);
  void CheckGateway();
  void TellLeftOut(std::string_view end);
  void OnQuery(std::string_view payload);

  // Fabric.
  void WithFabric(const std::function<void(tree::Fabric&)>& then);
  bool AskForParent(uint32_t failed) override;
  void OnParentProven(tree::Link& link) override;
  bool OnParentLost(tree::Link& link) override;
  void OnParent(std::string_view payload);
  void OnListen();
  void OnChildrenChanged();
  void CheckChildrenDone();

  // The end.
  void WaitForHead();
  void WaitForChildren();
  void Deliver();
  void SendLastWord();
  void OnParentLeaves();
  void SendBye();
  void CheckDelivered();
  bool AllAcknowledged() const;
  bool AwaitsBlocks() const;
  bool SendsToHead() const;
  void ChooseJoins();
  void GiveUp();
  // Once nobody needs this node as a gateway.
  void EndWhenFree();
  void End();

  Loop& loop_;
  StepClock& time_;  // of this node's ticks
  HeadClock clock_;  // the same by the head's clock
  LaunchMessage launch_;
  Config config_;
  std::function<void()> done_;
  State state_ = State::kRunning;
  uint32_t index_ = tree::kHeadIndex;  // until it is registered
  bool schema_changed_ = true;

  Recorder recorder_;
  Application application_;
  tree::QueryFanout queries_;
  tree::Relay relay_;
  tree::Children& children_;
  tree::Uplink& uplink_;
  tree::BlockSender blocks_;
  bool head_joins_ = false;    // it takes joined blocks
  bool parent_joins_ = false;  // the same of the parent that is no head
  bool new_block_ = false;     // of ticks whose frames may be gathered
  uint64_t told_lost_frames_ = 0;
  uint64_t told_lost_samples_ = 0;
  bool leaves_out_ = false;

  GatewayPlan gateways_;
  Gateway gateway_;
  HeadLink head_;
  uint64_t head_number_ = 0;
  Nanos step_start_ = 0;       // by the head's clock
  uint64_t acked_number_ = 0;  // the head has our frames up to this one
  // A frame of which no word has come; when it went up (monotonic); when the last one went up of
  // which word came: that may come late, from a parent that has lost the head since.
  uint64_t awaited_number_ = 0;
  Nanos awaited_since_ = 0;
  Nanos reached_head_ = 0;
  Standby standby_;
  TaskWatch tasks_;
  Suspension suspension_{{}};
  bool suspended_ = false;           // when it was last looked for
  Nanos looked_ = 0;                 // monotonic
  std::vector<Annotation> remarks_;  // of this daemon, until the next tick
  bool started_fabric_ = false;      // a parent was asked for
  uint32_t fanout_ = 16;             // the most children that the head gives a node
  Nanos asked_time_ = 0;             // monotonic, when the head was asked last
  bool said_left_out_ = false;
  std::vector<std::string> notes_;  // until there is somebody to tell

  tree::LazyFabric fabric_;
  ParentLink parent_;
  tree::ChildLinks child_links_;

  Nanos next_tick_ = INT64_MAX;
  Loop::TimerId tick_timer_ = 0;
  Loop::TimerId fabric_timer_ = 0;
  Loop::TimerId finish_timer_ = 0;
  Loop::TimerId reach_timer_ = 0;
  Loop::TimerId children_timer_ = 0;
  Loop::TimerId gateway_timer_ = 0;
  Loop::TimerId blocks_timer_ = 0;
  Loop::TimerId blocks_limit_timer_ = 0;

  tree::Bye bye_;
  tree::Exits exits_;
  Nanos started_ = 0;       // monotonic
  Nanos finish_began_ = 0;  // monotonic
  bool last_word_ = false;  // the rest of the frames and the goodbye are sent
  bool bye_acked_ = false;
  Status failure_;
};

}  // namespace sonde::node
