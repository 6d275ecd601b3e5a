#include "daemon/node/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/own_cost.h"
#include "daemon/tree/placement.h"

namespace sonde::node {

using tree::Type;

namespace {

constexpr size_t kMaxNotes = 16;  // that wait for the connection

collect::Sampler::Options SamplerOptions(const LaunchMessage& launch) {
  collect::Sampler::Options options;
  options.level = launch.job.level;
  options.events = launch.events;
  // Beside sonde.conf.
  if (const size_t slash = launch.config_path.rfind('/'); slash != std::string::npos) {
    options.event_sets = launch.config_path.substr(0, slash) + "/events";
  }
  options.period = launch.job.period;
  options.gpus = launch.gpus;
  return options;
}

}  // namespace

Node::Node(Loop& loop, const LaunchMessage& launch, const Config& config,
           std::function<void()> done)
    : loop_(loop),
      launch_(launch),
      config_(config),
      done_(std::move(done)),
      recorder_(SamplerOptions(launch), config.node_memory,
                static_cast<double>(launch.node_id) / std::max(launch.job.expected_nodes, 1u)),
      queries_(loop),
      relay_(loop, queries_, launch.job.period,
             [this](tree::BlockMessage block) {
               blocks_.PassOn(std::move(block));
               RunBlocks();
             }),
      children_(relay_.children()),
      uplink_(relay_.uplink()),
      fabric_(loop),
      child_links_(loop, launch_.key, children_, [this] { OnChildrenChanged(); }),
      joiner_(loop, launch_.socket, launch_.job.level,
              [this](std::string note) { Note(std::move(note)); }) {
  blocks_.SetMemory(config.node_memory);
  recorder_.SetOnSeal([this](std::string_view group, const SealedBlock& block) {
    blocks_.Add(std::string(group), block);
    RunBlocks();
  });
}

Node::~Node() {
  for (const Loop::TimerId timer : {tick_timer_, fabric_timer_, finish_timer_, children_timer_,
                                    pulse_timer_, blocks_timer_, blocks_limit_timer_}) {
    loop_.Cancel(timer);
  }
}

tree::Registration Node::registration() const {
  return {.job = launch_.job.id.job,
          .step = launch_.job.id.step,
          .node_id = launch_.node_id,
          .nodes = launch_.job.expected_nodes,
          .tasks = launch_.tasks_here,
          .host = launch_.host,
          .switches = tree::SwitchesOf(launch_.topology, launch_.topology_pattern),
          .index = index_};
}

// --- Time ---

void Node::Start() {
  OpenAppSocket();
  OpenAskDesk();
  const Nanos now = Clock::System().Now();
  next_tick_ = NextTick(now, launch_.job.period);
  Sample(now, Extent::kAll);
  ScheduleTick();
}

void Node::OpenAppSocket() {
  if (launch_.socket.empty()) return;
  collect::AppSource::Options options;
  options.socket = launch_.socket;
  options.listener = app_listener_.Release();
  options.uid = launch_.job.uid;
  options.level = launch_.job.level;
  options.period = launch_.job.period;
  Result<std::unique_ptr<collect::AppSource>> source = collect::AppSource::Open(options);
  if (!source.ok()) return Note(std::string(source.status().message()));
  take_moments_ = [app = source->get()] { return app->TakeMoments(); };
  recorder_.sampler().AddSource(*std::move(source));
}

// Without it the step goes on, and its processes are told that nobody answers.
void Node::OpenAskDesk() {
  if (launch_.socket.empty()) return;
  AskDesk::Options options;
  options.socket = launch_.socket;
  options.uid = launch_.job.uid;
  options.level = launch_.job.level;
  options.period = launch_.job.period;
  Result<std::unique_ptr<AskDesk>> desk =
      AskDesk::Open(loop_, options, [this](const tree::AskMessage& ask) {
        return control_ != nullptr && welcome_ && Send(*control_, Type::kAsk, Encode(ask));
      });
  if (!desk.ok()) return Note(std::string(desk.status().message()));
  desk_ = *std::move(desk);
}

collect::DaemonState Node::DescribeDaemon() const {
  collect::DaemonState state;
  state.sent_bytes = SentBytes();
  state.queued_bytes =
      uplink_.link() == nullptr ? 0 : static_cast<double>(uplink_.link()->queued());
  state.stored_bytes = static_cast<double>(recorder_.sealed_bytes());
  state.unacknowledged_bytes = static_cast<double>(blocks_.kept_bytes());
  state.dropped_rows = static_cast<double>(recorder_.dropped_rows() + blocks_.dropped_samples());
  return state;
}

double Node::SentBytes() const {
  uint64_t sent = sent_before_;
  if (control_ != nullptr) sent += control_->bytes_sent();
  if (parent_ != nullptr) sent += parent_->bytes_sent();
  return static_cast<double>(sent);
}

void Node::Sample(Nanos time, Extent extent) {
  recorder_.sampler().SetDaemon(DescribeDaemon());
  if (recorder_.Sample(time, extent)) schema_changed_ = true;
  for (std::string& note : recorder_.sampler().TakeNotes()) Note(std::move(note));
}

void Node::ScheduleTick() {
  tick_timer_ = loop_.After(std::max<Nanos>(next_tick_ - Clock::System().Now(), 0), [this] {
    TakeDueTick(Clock::System().Now());
    ScheduleTick();
  });
}

// False if no tick is due.
bool Node::TakeDueTick(Nanos now) {
  const Nanos tick = next_tick_;
  if (tick > now) return false;
  next_tick_ = NextTick(now, launch_.job.period);
  // A machine that was suspended or far too busy: the samples in between do not exist.
  for (Nanos skipped = tick + launch_.job.period; skipped < next_tick_;
       skipped += launch_.job.period) {
    recorder_.sampler().CountSkippedTick();
    if (welcome_) ++bye_.ticks, ++bye_.skipped;
  }
  if (now - tick > launch_.job.period / 2) recorder_.sampler().CountLateTick();
  Sample(tick, Extent::kTick);
  CheckParent();
  SendOwn(tick);
  return true;
}

// Nodes whose clocks are set belong to the same ticks as they are. One whose clock is not goes by
// the head's where it meets the others: in the step's rows and what the application tells.
void Node::CompareClocks(Nanos heads) {
  constexpr Nanos kTolerance = 200 * kMillisecond;
  if (heads == 0 || proof_sent_ == 0) return;
  const Nanos waited = Clock::System().Monotonic() - proof_sent_;
  const Nanos ahead = Clock::System().Now() - waited / 2 - heads;
  if (std::abs(ahead) <= kTolerance + waited / 2) return;
  clock_offset_ = -ahead;
  relay_.SetClockOffset(clock_offset_);
  Note(fmt::format(
      "the clock is {:.1f} s {} that of the head's host; series of this node alone are "
      "by its own",
      static_cast<double>(std::abs(ahead)) / kSecond, ahead > 0 ? "ahead of" : "behind"));
}

// A tick of ours as the head counts them.
Nanos Node::HeadTime(Nanos local) const {
  if (clock_offset_ == 0) return local;
  const Nanos period = launch_.job.period;
  return (local + clock_offset_ + period / 2) / period * period;
}

// --- Control connection ---

void Node::ConnectToHead() {
  Start();
  Result<std::unique_ptr<tree::SocketLink>> link =
      tree::SocketLink::Connect(loop_, launch_.head_host, launch_.head_port);
  if (!link.ok()) return OnControlClosed(link.status());
  socket_ = link->get();
  control_ = *std::move(link);
  control_->SetMaxMessage(tree::kMaxMessage);
  control_->SetHandler(
      {.message = [this](uint8_t type, std::string_view payload) { OnHandshake(type, payload); },
       .closed = [this](const Status& why) { OnControlClosed(why); }});
  handshake_ = std::make_unique<tree::ConnectingHandshake>(launch_.key, registration());
  Send(*control_, Type::kHello, handshake_->Hello());
}

void Node::UseControl(std::unique_ptr<tree::Link> control) {
  Start();
  control_ = std::move(control);
  control_->SetMaxMessage(tree::kMaxMessage);
  control_->SetHandler(
      {.message = [this](uint8_t type,
                         std::string_view payload) { OnControlMessage(type, payload); },
       .closed = [this](const Status& why) { OnControlClosed(why); }});
}

void Node::OnHandshake(uint8_t type, std::string_view payload) {
  const Result<std::string> proof = handshake_->OnMessage(type, payload);
  if (!proof.ok()) return OnControlClosed(proof.status());
  local_host_ = tree::HostText(socket_->local_address());
  Send(*control_, Type::kProof, *proof);
  proof_sent_ = Clock::System().Monotonic();
  handshake_.reset();
  control_->SetHandler(
      {.message = [this](uint8_t t, std::string_view p) { OnControlMessage(t, p); },
       .closed = [this](const Status& why) { OnControlClosed(why); }});
}

void Node::OnControlMessage(uint8_t type, std::string_view payload) {
  switch (static_cast<Type>(type)) {
    case Type::kWelcome:
      return OnWelcome(payload);
    case Type::kParent:
      return OnParent(payload);
    case Type::kListen:
      return OnListen();
    case Type::kCounters:
      if (payload.size() == 1) recorder_.sampler().PauseCounters(payload[0] != 0);
      return;
    case Type::kJoin:
      return joiner_.Start(std::string(payload));
    case Type::kLost: {
      ByteReader r(payload);
      const uint64_t child = r.Varint();
      if (r.done() && child < tree::kHeadIndex) children_.Lost(static_cast<uint32_t>(child));
      return;
    }
    case Type::kBudget: {
      tree::BlockBudget budget;
      if (Decode(payload, budget).ok()) blocks_.SetBudget(budget);
      return;
    }
    case Type::kByeAck:
      bye_acked_ = true;
      return CheckDelivered();
    case Type::kAnswer:
      return OnAnswer(payload);
    default:
      return OnUplinkMessage(static_cast<Type>(type), payload);
  }
}

void Node::OnWelcome(std::string_view payload) {
  tree::Welcome welcome;
  const Status status = Decode(payload, welcome);
  if (!status.ok() || welcome_) return;
  welcome_ = true;
  CompareClocks(static_cast<Nanos>(std::min<uint64_t>(welcome.now, INT64_MAX)));
  log::Debug("registered as node {}", welcome.index);
  index_ = welcome.index;
  recorder_.SetNode(index_);
  relay_.SetNode(index_);
  blocks_.SetNode(index_);
  UseLink(control_.get(), false);
  PrepareOwn();
  for (std::string& note : std::exchange(notes_, {})) Note(std::move(note));
  if (desk_ != nullptr) desk_->Connected();
  if (state_ != State::kRunning) return WaitForChildren();
  const bool alone = launch_.job.expected_nodes == 1 && launch_.job.het_job.empty();
  if (alone || launch_.role == Role::kSolo || config_.provider == "none") return;
  fabric_timer_ = loop_.After(config_.fabric_after,
                              [this] { WithFabric([this](tree::Fabric&) { WantParent(); }); });
}

void Node::OnControlClosed(const Status& why) {
  log::Warning("no connection to the head at {}:{}: {}; this node's telemetry ends",
               launch_.head_host, launch_.head_port, why.message());
  if (desk_ != nullptr) {
    desk_->Disconnected(fmt::format("no connection to the head of the step: {}", why.message()));
  }
  UseLink(nullptr, false);
  tree::DestroyLater(loop_, std::move(control_));
  End();
}

void Node::Note(std::string text) {
  log::Warning("{}", text);
  if (control_ != nullptr && welcome_) {
    Send(*control_, Type::kNote, text);
  } else if (notes_.size() < kMaxNotes) {
    notes_.push_back(std::move(text));
  }
}

// --- The way up ---

void Node::UseLink(tree::Link* link, bool tell_former) {
  uplink_.Use(link, tell_former);
  blocks_.Use(link);
  RunBlocks();
}

// Sends what blocks may go now, and comes again when there is more to do.
void Node::RunBlocks() {
  const Nanos next = blocks_.Run(Clock::System().Monotonic());
  loop_.Cancel(std::exchange(blocks_timer_, 0));
  if (next == tree::BlockSender::kNever) return;
  blocks_timer_ = loop_.At(next, [this] {
    blocks_timer_ = 0;
    RunBlocks();
    CheckDelivered();
  });
}

// Whoever is above waits for the ticks of those that have sent a schema, so it goes at once.
void Node::PrepareOwn() {
  if (std::exchange(schema_changed_, false)) relay_.Announce(recorder_.reduced_schema());
}

void Node::SendOwn(Nanos time) {
  if (!welcome_) return;
  ++bye_.ticks;
  AddOwnMoments();
  PrepareOwn();
  relay_.SendOwn(HeadTime(time), recorder_.reduced_schema(), recorder_.reduced_frame());
}

void Node::AddOwnMoments() {
  if (!take_moments_) return;
  collect::Moments moments = take_moments_();
  for (Annotation& annotation : moments.annotations) {
    annotation.node = index_;
    annotation.first += clock_offset_;
    annotation.last += clock_offset_;
  }
  if (!moments.empty()) uplink_.AddMoments(std::move(moments));
}

// Nobody tells of a peer that is there no more when what is sent to it vanishes.
void Node::CheckParent() {
  if (const uint64_t lost = uplink_.lost_frames(); lost != told_lost_frames_) {
    if (told_lost_frames_ == 0) {
      Note("ticks are left out: what is above takes them too slowly, or not at all");
    }
    told_lost_frames_ = lost;
  }
  if (parent_ == nullptr || uplink_.link() != parent_.get()) return;
  if (Clock::System().Monotonic() - heard_ < kSilence) return;
  log::Info("nothing was heard from the parent for {} s", kSilence / kSecond);
  LeaveParent();
}

void Node::OnUplinkMessage(Type type, std::string_view payload) {
  switch (type) {
    case Type::kAck: {
      ByteReader r(payload);
      const uint64_t number = r.Varint();
      if (!r.done()) return;
      relay_.OnAck(number);
      CheckChildrenDone();
      return CheckDelivered();
    }
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
      tree::BlockAck ack;
      if (!Decode(payload, ack).ok()) return;
      if (ack.node == index_) {
        blocks_.OnAck(ack);
      } else {
        children_.SendBlockAck(ack);
      }
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
  queries_.Ask(std::move(question), children_.Active(), std::move(own),
               [this](const tree::Gathered& answer) {
                 if (uplink_.link() == nullptr) return;
                 Send(*uplink_.link(), Type::kReply, Encode(ToReply(answer)));
               });
}

void Node::OnAnswer(std::string_view payload) {
  tree::AnswerMessage answer;
  if (desk_ != nullptr && Decode(payload, answer).ok()) desk_->OnAnswer(answer);
}

// --- Fabric ---

void Node::WithFabric(const std::function<void(tree::Fabric&)>& then) {
  tree::FabricOptions options;
  options.provider = config_.provider;
  options.interface = config_.interface;
  options.local_address = local_host_;
  options.max_links = tree::ChildLinks::LinksFor(config_.fanout);
  fabric_.With(options, [this, then](const Result<tree::Fabric*>& fabric) {
    if (state_ != State::kRunning || control_ == nullptr) return;
    if (fabric.ok()) return then(**fabric);
    Note(std::string(
        fabric.status().Within("libfabric is not used, sockets serve instead").message()));
  });
}

void Node::OnParent(std::string_view payload) {
  tree::ParentAddress parent;
  if (!Decode(payload, parent).ok() || fabric_.get() == nullptr || state_ != State::kRunning)
    return;
  parent_asked_ = false;
  if (parent_ != nullptr) LetGoOfParent();  // it is told to take another
  Result<std::unique_ptr<tree::Link>> link = fabric_.get()->Connect(parent.address);
  if (!link.ok() && link.status().code() == Code::kUnsupported) {
    // The head's host often lacks the nodes' fabric.
    return log::Info("no link to the parent: {}", link.status().message());
  }
  if (!link.ok()) return Note(std::string(link.status().message()));
  parent_ = *std::move(link);
  parent_index_ = parent.index;
  parent_->SetMaxMessage(tree::kMaxMessage);
  parent_proven_ = false;
  parent_handshake_ = std::make_unique<tree::ConnectingHandshake>(launch_.key, registration());
  parent_->SetHandler(
      {.message = [this](uint8_t type, std::string_view p) { OnParentMessage(type, p); },
       .closed =
           [this](const Status& why) {
             log::Info("link to the parent lost: {}", why.message());
             LeaveParent();
           }});
  Send(*parent_, Type::kHello, parent_handshake_->Hello());
}

void Node::OnParentMessage(uint8_t type, std::string_view payload) {
  heard_ = Clock::System().Monotonic();
  if (parent_proven_) return OnUplinkMessage(static_cast<Type>(type), payload);
  const Result<std::string> proof = parent_handshake_->OnMessage(type, payload);
  if (!proof.ok()) {
    Note(std::string(proof.status().message()));
    return LeaveParent();
  }
  Send(*parent_, Type::kProof, *proof);
  parent_proven_ = true;
  if (state_ != State::kRunning) return;
  UseLink(parent_.get(), true);
  log::Info("data goes to {} at {}",
            parent_index_ == tree::kHeadIndex ? "the head" : fmt::format("node {}", parent_index_),
            parent_->peer());
}

// It waits for our word that no more comes, and closes the link. What it was already given for good
// it delivers and acknowledges.
void Node::OnParentLeaves() {
  if (state_ == State::kDelivering || control_ == nullptr) return;
  UseLink(control_.get(), true);
  WantParent();
}

// Back to the control connection.
void Node::LeaveParent() {
  if (parent_ == nullptr) return;
  // One after the other that cannot be reached: the control connection serves.
  failed_parents_ = LetGoOfParent() ? 0 : failed_parents_ + 1;
  if (failed_parents_ <= kMaxFailedParents) WantParent();
}

// Whether it was used.
bool Node::LetGoOfParent() {
  const bool used = uplink_.link() == parent_.get();
  uplink_.Forget(parent_.get());
  sent_before_ += parent_->bytes_sent();
  tree::DestroyLater(loop_, std::move(parent_));
  if (used) UseLink(control_.get(), false);
  return used;
}

// Another one than the last, if there was one.
void Node::WantParent() {
  if (state_ != State::kRunning || control_ == nullptr) return;
  if (std::exchange(parent_asked_, true)) return;
  std::string payload;
  if (parent_index_ != tree::kHeadIndex) ByteWriter(payload).Varint(parent_index_);
  Send(*control_, Type::kWantParent, payload);
}

void Node::OnListen() {
  WithFabric([this](tree::Fabric& fabric) {
    if (child_links_.listening()) return;
    tree::Listening answer;
    const Result<std::string> address = child_links_.Listen(fabric);
    if (address.ok()) {
      answer.address = *address;
    } else {
      answer.error = address.status().message();
    }
    Send(*control_, Type::kListening, Encode(answer));
  });
}

void Node::OnChildrenChanged() {
  relay_.OnChildrenChanged();
  if (pulse_timer_ == 0) SchedulePulse();
  CheckChildrenDone();
}

void Node::SchedulePulse() {
  if (relay_.alone()) return;
  pulse_timer_ = loop_.After(kPulse, [this] {
    pulse_timer_ = 0;
    children_.Pulse();
    const Nanos limit = std::max(kChildSilence, 5 * launch_.job.period / 2);
    child_links_.DropSilent(Clock::System().Monotonic() - limit);
    SchedulePulse();
  });
}

void Node::CheckChildrenDone() {
  if (state_ == State::kWaitingForChildren && relay_.children_done()) Deliver();
}

// --- The end ---

void Node::OnTaskExit(int wait_status) {
  ++bye_.tasks_ended;
  if ((wait_status & 0x7f) != 0) ++bye_.tasks_killed;
  bye_.exit_status = std::max(bye_.exit_status, wait_status);
}

void Node::Finish(bool launcher_gone) {
  if (state_ != State::kRunning) return;
  log::Debug("asked to finish");
  bye_.launcher_gone = launcher_gone && bye_.tasks_ended < launch_.tasks_here;
  loop_.Cancel(tick_timer_);
  loop_.Cancel(fabric_timer_);
  const Nanos now = Clock::System().Now();
  bye_.ended = static_cast<uint64_t>(now + clock_offset_);
  finish_began_ = Clock::System().Monotonic();
  // The last word has everything, but not as a tick of which other nodes have less.
  TakeDueTick(now);
  Sample(now, Extent::kAll);
  finish_timer_ = loop_.After(kFinishLimit, [this] { End(); });
  state_ = State::kWaitingForChildren;
  if (welcome_) WaitForChildren();  // else OnWelcome goes on
}

void Node::WaitForChildren() {
  AddOwnMoments();
  relay_.SendOwnEnd(Clock::System().Now() + clock_offset_, recorder_.reduced_schema(),
                    recorder_.reduced());
  if (relay_.children_done()) return Deliver();
  children_timer_ = loop_.After(kChildrenLimit, [this] {
    children_.SendLeave();
    children_timer_ = loop_.After(kLeaveLimit, [this] { Deliver(); });
  });
}

void Node::Deliver() {
  if (state_ != State::kWaitingForChildren) return;
  state_ = State::kDelivering;
  const Nanos now = Clock::System().Monotonic();
  const Nanos deadline = std::max(finish_began_ + kBlocksLimit, now);
  recorder_.Seal();
  blocks_.Finish(now, deadline);
  blocks_limit_timer_ = loop_.At(deadline, [this] { SendLastWord(); });
  RunBlocks();
  CheckDelivered();
}

// The head seals the profile when all have said it: blocks come first.
void Node::SendLastWord() {
  if (std::exchange(last_word_, true)) return;
  relay_.SendRest();
  SendBye();
  // Whatever a child sends now would be lost here; when its link closes it turns to the head.
  child_links_.Close();
}

void Node::SendBye() {
  bye_.cpu_seconds = OwnCpuSeconds();
  bye_.memory_bytes = OwnPrivateBytes();
  bye_.bytes_sent = SentBytes();
  Send(*control_, Type::kBye, Encode(bye_));
}

void Node::CheckDelivered() {
  if (state_ != State::kDelivering) return;
  if (blocks_.delivered()) SendLastWord();
  if (bye_acked_ && uplink_.frames_delivered() && uplink_.moments_delivered()) End();
}

void Node::End() {
  if (state_ == State::kDone) return;
  log::Debug("done: frames {}, goodbye {}",
             uplink_.frames_delivered() ? "acknowledged" : "not acknowledged",
             bye_acked_ ? "acknowledged" : "not acknowledged");
  state_ = State::kDone;
  loop_.Cancel(tick_timer_);
  loop_.Cancel(finish_timer_);
  // Not from within a link's callback: `done` may destroy this.
  loop_.Post(done_);
}

}  // namespace sonde::node
