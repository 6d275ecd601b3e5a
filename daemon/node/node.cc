#include "daemon/node/node.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/link/send.h"
#include "daemon/own_cost.h"
#include "daemon/tree/placement.h"

namespace sonde::node {

using tree::Type;

namespace {

collect::Sampler::Options SamplerOptions(const LaunchMessage& launch, const Config& config) {
  collect::Sampler::Options options;
  options.level = launch.job.level;
  options.events = launch.events;
  // Beside sonde.conf.
  if (const size_t slash = launch.config_path.rfind('/'); slash != std::string::npos) {
    options.event_sets = launch.config_path.substr(0, slash) + "/events";
  }
  options.period = launch.job.period;
  options.gpus = launch.gpus;
  options.memory = launch.memory;
  options.ask_filesystems = config.ask_filesystems;
  return options;
}

}  // namespace

Node::Node(Loop& loop, StepClock& time, const LaunchMessage& launch, const Config& config,
           std::function<void()> done)
    : loop_(loop),
      time_(time),
      clock_(time),
      launch_(launch),
      config_(config),
      done_(std::move(done)),
      recorder_(SamplerOptions(launch, config), config.node_memory, launch.node_id,
                launch.job.expected_nodes),
      application_(loop, time, clock_, launch_, recorder_.sampler(), *this),
      queries_(loop),
      relay_(loop, queries_, launch.job.period, clock_, *this),
      children_(relay_.children()),
      uplink_(relay_.uplink()),
      gateways_(PlanGateways(launch_, config.direct_nodes)),
      gateway_(loop, launch_.key, launch_.node_id, [this] { CheckDelivered(); }),
      head_(loop, launch_.key, *this),
      standby_(loop, launch_, config.port_range),
      tasks_(loop, {}, [this] { Finish(true); }),
      fabric_(loop),
      parent_(loop, launch_.key, *this),
      child_links_(loop, launch_.key, launch_.job.period, children_,
                   [this] { OnChildrenChanged(); }) {
  // In the role solo the head tells them.
  if (launch.role == Role::kNode) notes_ = launch.notes;
  if (launch.variables_come) fabric_.Hold();
  blocks_.SetMemory(config.node_memory);
  recorder_.SetOnSeal([this](const std::string& group, const SealedBlock& block) {
    blocks_.Add(group, block);  // to go with the tick's frames
    new_block_ = true;
  });
}

Node::~Node() {
  for (const Loop::TimerId timer :
       {tick_timer_, fabric_timer_, finish_timer_, reach_timer_, children_timer_, gateway_timer_,
        blocks_timer_, blocks_limit_timer_}) {
    loop_.Cancel(timer);
  }
}

bool Node::Ask(const tree::AskMessage& ask) { return head_.Send(Type::kAsk, Encode(ask)); }

// Without a connection to the head it is told when there is one: Application::OnConnected.
void Node::OnJoined(const tree::JoinedMessage& exporter) {
  head_.Send(Type::kJoined, Encode(exporter));
}

void Node::OnBlock(tree::BlockMessage block) {
  blocks_.PassOn(std::move(block));
  RunBlocks();
}

tree::Registration Node::registration() const {
  return {.job = launch_.job.id.job,
          .step = launch_.job.id.step,
          .node_id = launch_.node_id,
          .nodes = launch_.job.expected_nodes,
          .tasks = launch_.tasks_here,
          .host = launch_.host,
          .switches = tree::SwitchesOf(launch_.topology, launch_.topology_pattern),
          .index = index_,
          .parent = parent_.index()};
}

// --- Time ---

void Node::Start() {
  started_ = Clock::System().Monotonic();
  application_.Open();
  const Nanos now = time_.Look();
  next_tick_ = NextTick(now, launch_.job.period);
  Sample(now, Extent::kAll);
  ScheduleTick();
}

collect::DaemonState Node::DescribeDaemon() const {
  collect::DaemonState state;
  state.sent_bytes = SentBytes();
  state.queued_bytes =
      uplink_.link() == nullptr ? 0 : static_cast<double>(uplink_.link()->queued());
  state.stored_bytes = static_cast<double>(recorder_.sealed_bytes());
  state.unacknowledged_bytes = static_cast<double>(blocks_.kept_bytes());
  state.left_out_series =
      static_cast<double>(recorder_.reduced_series().left_out() + relay_.series().left_out());
  state.dropped_rows = static_cast<double>(recorder_.dropped_rows() + blocks_.dropped_samples());
  return state;
}

double Node::SentBytes() const {
  return static_cast<double>(head_.bytes_sent() + parent_.bytes_sent());
}

void Node::Sample(Nanos time, Extent extent) {
  recorder_.sampler().SetDaemon(DescribeDaemon());
  if (recorder_.Sample(time, extent)) schema_changed_ = true;
  application_.RecordPast(recorder_);
  for (std::string& note : recorder_.sampler().TakeNotes()) Note(std::move(note));
  NoteLeftOut();
}

void Node::NoteLeftOut() {
  if (said_left_out_) return;
  if (recorder_.reduced_series().left_out() + relay_.series().left_out() == 0) return;
  said_left_out_ = true;
  // The same of all nodes, so that it is one note; the head names one that is missing.
  Note("series are missing in the totals over all nodes: this node has more than it can send");
}

void Node::ScheduleTick() {
  tick_timer_ = loop_.After(std::max<Nanos>(next_tick_ - time_.Now(), 0), [this] {
    TakeDueTick(time_.Look());
    ScheduleTick();
  });
}

// False if no tick is due.
bool Node::TakeDueTick(Nanos now) {
  const Nanos tick = next_tick_;
  if (tick > now) return false;
  next_tick_ = NextTick(now, launch_.job.period);
  // A machine that was suspended or far too busy: the samples in between do not exist.
  const auto skipped = static_cast<uint64_t>((next_tick_ - tick) / launch_.job.period - 1);
  recorder_.sampler().CountSkippedTicks(skipped);
  if (registered()) bye_.ticks += skipped, bye_.skipped += skipped;
  if (now - tick > launch_.job.period / 2) recorder_.sampler().CountLateTick();
  LookNowAndThen();
  Sample(tick, Extent::kTick);
  CheckWayUp(now - tick);
  SendOwn(tick);
  return true;
}

void Node::LookNowAndThen() {
  const Nanos now = time_.Monotonic();
  if (now - looked_ < Suspension::kInterval) return;
  looked_ = now;
  LookForSuspension();
  LookAtClock();
}

// A suspended head takes nothing for as long as it lasts, which may be hours.
void Node::LookForSuspension() {
  const bool holds = suspension_.Holds();
  if (std::exchange(suspended_, holds) == holds) return;
  const Nanos time = time_.Now();
  remarks_.push_back({.text = holds ? "the tasks are suspended" : "the tasks go on",
                      .first = time,
                      .last = time,
                      .task = suspension_.first_rank()});
  blocks_.SetSuspended(holds);
  if (recorder_.sampler().machine() != nullptr) recorder_.sampler().machine()->SetPaused(holds);
  log::Info("{}", remarks_.back().text);
}

// In the role solo head and node have one clock, and the head tells of it.
void Node::LookAtClock() {
  if (launch_.role == Role::kSolo) return;
  for (const std::string& note : time_.TakeNotes()) {
    Note("the clock " + note);
    AskTime(kAskTimeAgain);
  }
  AskTime(kAskTimeEvery);
}

void Node::AskTime(Nanos pause) {
  const Nanos now = time_.Monotonic();
  if (!registered() || launch_.role == Role::kSolo || now - asked_time_ < pause) return;
  std::string payload;
  ByteWriter(payload).Varint(static_cast<uint64_t>(now));
  if (head_.Send(Type::kAskTime, payload)) asked_time_ = now;
}

void Node::OnTime(std::string_view payload) {
  ByteReader r(payload);
  const uint64_t asked = r.Varint();
  const auto heads = static_cast<Nanos>(std::min<uint64_t>(r.Varint(), INT64_MAX));
  if (!r.done() || asked != static_cast<uint64_t>(asked_time_)) return;
  time_.Follow(clock_.Behind(heads, time_.Monotonic() - asked_time_));
  if (state_ != State::kRunning) return;
  loop_.Cancel(tick_timer_);  // the next tick may be due
  ScheduleTick();
}

// --- The way up ---

void Node::UseLink(tree::Link* link, bool tell_former) {
  if (link != uplink_.link()) parent_joins_ = false;
  relay_.Use(link, tell_former);
  blocks_.Use(link);
  ChooseJoins();
  RunBlocks();
}

// Over the control connection, or over a link of their own, as the head's children have it.
bool Node::SendsToHead() const {
  const tree::Link* link = uplink_.link();
  if (link == nullptr) return false;
  return link == head_.link() || (link == parent_.link() && parent_.index() == tree::kHeadIndex);
}

// Children of the head join blocks, and so do theirs: the head's first child may have a third of
// all nodes below it, more than one can join. Further down too few blocks meet.
void Node::ChooseJoins() {
  using Joins = tree::BlockSender::Joins;
  const bool below_head = head_joins_ && SendsToHead();
  blocks_.SetJoins(below_head ? Joins::kForHead : parent_joins_ ? Joins::kForParent : Joins::kNo);
  if (below_head) child_links_.LetJoin();
}

void Node::OnJoinedBlocks(const JoinedBlocks& joined, std::string_view bytes) {
  blocks_.PassOn(joined, bytes);
  RunBlocks();
}

// Sends what blocks may go now, and comes again when there is more to do. A block does not go
// before the frames of its ticks: if this node is lost then, its series go on for longer than the
// step's totals know of it.
void Node::RunBlocks(bool frames_follow) {
  const bool frames_first = std::exchange(new_block_, false) && state_ == State::kRunning;
  if (frames_first && !frames_follow) return relay_.FlushTick();
  blocks_.YieldToFrames(uplink_.slow());
  const Nanos now = Clock::System().Monotonic();
  const Nanos next = frames_follow ? blocks_.RunBeforeFrames(now) : blocks_.Run(now);
  loop_.Cancel(std::exchange(blocks_timer_, 0));
  if (next == tree::BlockSender::kNever) return;
  blocks_timer_ = loop_.At(next, [this] {
    blocks_timer_ = 0;
    RunBlocks();
    CheckDelivered();
  });
}

// The receiver waits for the ticks of nodes that have sent a schema, so it goes at once.
void Node::PrepareOwn() {
  if (std::exchange(schema_changed_, false)) relay_.Announce(recorder_.reduced_schema());
}

void Node::SendOwn(Nanos time) {
  if (!registered()) return;
  ++bye_.ticks;
  AddOwnMoments();
  PrepareOwn();
  relay_.SendOwn(clock_.TickOf(time, launch_.job.period), recorder_.reduced_schema(),
                 recorder_.reduced_frame());
  if (awaited_number_ > acked_number_) return;
  awaited_number_ = uplink_.last_number();
  awaited_since_ = Clock::System().Monotonic();
}

void Node::AddOwnMoments() {
  collect::Moments moments = application_.TakeMoments();
  std::move(remarks_.begin(), remarks_.end(), std::back_inserter(moments.annotations));
  remarks_.clear();
  for (Annotation& annotation : moments.annotations) {
    annotation.node = index_;
    annotation.first = clock_.Of(annotation.first);
    annotation.last = clock_.Of(annotation.last);
  }
  if (!moments.empty()) uplink_.AddMoments(std::move(moments));
}

void Node::TellLeftOut(std::string_view end) {
  leaves_out_ = false;
  const uint64_t samples =
      uplink_.lost_samples() - std::exchange(told_lost_samples_, uplink_.lost_samples());
  Note(fmt::format("{}: {} samples of this node and of those below it are missing", end, samples));
}

void Node::CheckWayUp(Nanos late) {
  if (const uint64_t lost = uplink_.lost_frames(); lost != told_lost_frames_) {
    if (!std::exchange(leaves_out_, true)) {
      Note("ticks are left out: what is above takes them too slowly, or not at all");
    }
    told_lost_frames_ = lost;
  } else if (leaves_out_ && !uplink_.slow()) {
    TellLeftOut("no ticks are left out any more");
  }
  if (uplink_.link() != nullptr && uplink_.link() == parent_.link()) parent_.Check(late);
  CheckGateway();
}

void Node::CheckGateway() {
  head_.CheckGateway(head_.link() != nullptr && uplink_.link() == head_.link());
}

void Node::OnUplinkMessage(Type type, std::string_view payload) {
  switch (type) {
    case Type::kAck: {
      ByteReader r(payload);
      const uint64_t number = r.Varint();
      const uint64_t safe = r.left() > 0 ? r.Varint() : number;
      if (!r.done()) return;
      acked_number_ = std::max(acked_number_, number);
      if (acked_number_ >= awaited_number_) reached_head_ = awaited_since_;
      relay_.OnAck(number, safe);
      child_links_.PulseSoon();  // the children should hear of it, too
      CheckChildrenDone();
      return CheckDelivered();
    }
    case Type::kJoinBlocks:
      parent_joins_ = payload == std::string_view("\1", 1);
      return ChooseJoins();
    case Type::kRefused: {
      ByteReader r(payload);
      const uint64_t number = r.Varint();
      if (!r.done()) return;
      for (tree::Link* link : relay_.OnRefused(number)) child_links_.Drop(*link);
      return;
    }
    case Type::kMomentsAck:
      uplink_.OnMomentsAck(payload);
      return CheckDelivered();
    case Type::kBlockAck: {
      const Status status =
          tree::DecodeEach<tree::BlockAck>(payload, [this](const tree::BlockAck& ack) {
            ack.node == index_ ? blocks_.OnAck(ack) : children_.SendBlockAck(ack);
          });
      children_.FlushBlockAcks();
      if (!status.ok()) return;
      RunBlocks();
      return CheckDelivered();
    }
    case Type::kQuery:
      return OnQuery(payload);
    case Type::kLeave:
      return OnParentLeaves();
    default:
      log::Debug("message of type {} ignored", static_cast<int>(type));
  }
}

void Node::OnQuery(std::string_view payload) {
  tree::Question question;
  if (const Status bad = Decode(payload, question); !bad.ok()) {
    return log::Warning("question of the parent: {}", bad.message());
  }
  Result<QueryPart> own = recorder_.Answer(question.spec, question.grid, launch_.host);
  queries_.Ask(std::move(question), children_.Active(),
               tree::QueryFanout::Own{index_, std::move(own)},
               [this](const tree::Gathered& answer) {
                 if (uplink_.link() != nullptr) SendReply(*uplink_.link(), answer);
               });
}

// --- Fabric ---

void Node::WithFabric(const std::function<void(tree::Fabric&)>& then) {
  tree::FabricOptions options;
  options.provider = config_.provider;
  options.interface = config_.interface;
  options.local_address = head_.local_host();
  options.ports = tree::PortsOf(config_.port_range);
  tree::ChildLinks::MakeRoom(fanout_, options);
  fabric_.With(options, [this, then](const Result<tree::Fabric*>& fabric) {
    if (state_ != State::kRunning || head_.link() == nullptr) return;
    if (fabric.ok()) return then(**fabric);
    Note(std::string(
        fabric.status().Within("libfabric is not used, sockets serve instead").message()));
  });
}

bool Node::AskForParent(uint32_t failed) {
  if (state_ != State::kRunning) return false;
  std::string payload;
  if (failed != tree::kHeadIndex) ByteWriter(payload).Varint(failed);
  return head_.Send(Type::kWantParent, payload);
}

void Node::OnParentProven(tree::Link& link) {
  if (state_ == State::kRunning) UseLink(&link, true);
}

bool Node::OnParentLost(tree::Link& link) {
  const bool used = uplink_.link() == &link;
  uplink_.Forget(&link);
  if (used) UseLink(head_.link(), false);
  return used;
}

void Node::OnParent(std::string_view payload) {
  tree::ParentAddress parent;
  if (!Decode(payload, parent).ok() || fabric_.get() == nullptr || state_ != State::kRunning)
    return;
  parent_.Connect(*fabric_.get(), parent);
}

// The parent waits for our word that no more comes, and closes the link. Data that it was already
// given for good it delivers and acknowledges.
void Node::OnParentLeaves() {
  if (state_ == State::kDelivering || head_.link() == nullptr) return;
  UseLink(head_.link(), true);
  parent_.Ask();
}

void Node::OnListen() {
  WithFabric([this](tree::Fabric& fabric) {
    tree::Listening answer;
    const Result<std::string> address = child_links_.Listen(fabric, index_, fanout_);
    if (address.ok()) {
      answer.address = *address;
    } else {
      answer.error = address.status().message();
    }
    head_.Send(Type::kListening, Encode(answer));
  });
}

void Node::OnChildrenChanged() {
  relay_.OnChildrenChanged();
  CheckChildrenDone();
  CheckDelivered();
}

void Node::CheckChildrenDone() {
  if (state_ == State::kWaitingForChildren && relay_.children_done()) Deliver();
}

}  // namespace sonde::node
