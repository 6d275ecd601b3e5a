// A Node and its head: how it registers, comes back, stands by, and does what the head says.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "daemon/node/node.h"

namespace sonde::node {

using tree::Type;

namespace {

constexpr size_t kMaxNotes = 16;  // that wait for the connection

}  // namespace

void Node::ConnectToHead() {
  Start();
  std::vector<std::vector<tree::Place>> ways;
  for (const GatewayPlan::Way& way : gateways_.ways) {
    ways.push_back(DoorsOf(way, launch_.key, tree::PortsOf(config_.port_range)));
  }
  head_.Connect(launch_.head_host, launch_.head_port, std::move(ways));
}

void Node::UseControl(std::unique_ptr<tree::Link> control) {
  Start();
  head_.Use(std::move(control));
}

void Node::OnHeadMessage(Type type, std::string_view payload) {
  switch (type) {
    case Type::kParent:
      return OnParent(payload);
    case Type::kListen:
      return OnListen();
    case Type::kStandby:
      return OnStandby();
    case Type::kSuccessors: {
      tree::Successors list;
      if (Decode(payload, list).ok()) head_.SetSuccessors(std::move(list.places), index_);
      return;
    }
    case Type::kGateway:
      return OpenGateway();
    case Type::kVia:
    case Type::kViaClose:
      return gateway_.OnHeadMessage(type, payload);
    case Type::kCounters:
      if (payload.size() == 1) recorder_.sampler().PauseCounters(payload[0] != 0);
      return;
    case Type::kDerive:
      if (auto wanted = alarms::DecodeDerived(payload); wanted.ok()) {
        std::erase_if(*wanted, [this](const alarms::Derived& one) {
          const std::string* host = one.tags.Find(alarms::kHostTag);
          return host != nullptr && *host != launch_.host;
        });
        recorder_.Derive(*std::move(wanted));
      }
      return;
    case Type::kJoin:
      return application_.Join(payload);
    case Type::kUnjoin:
      return application_.Unjoin(payload);
    case Type::kPush:
      return application_.TakePushed(payload);
    case Type::kBudget: {
      tree::BlockBudget budget;
      if (Decode(payload, budget).ok()) blocks_.SetBudget(budget);
      return;
    }
    case Type::kJoinBlocks:
      head_joins_ = payload == std::string_view("\1", 1);
      return ChooseJoins();
    case Type::kByeAck:
      bye_acked_ = true;
      return CheckDelivered();
    case Type::kAnswer:
      return application_.OnAnswer(payload);
    case Type::kTime:
      return OnTime(payload);
    default:
      return OnUplinkMessage(type, payload);
  }
}

void Node::OnWelcome(const tree::Welcome& welcome, Nanos waited) {
  const bool known = registered();
  const bool another = known && welcome.head != head_number_;
  if (another) {
    head_joins_ = false;  // until it says so
    ChooseJoins();
  }
  head_number_ = welcome.head;
  step_start_ = static_cast<Nanos>(std::min<uint64_t>(welcome.start, INT64_MAX));
  application_.OnConnected();
  if (!known) return OnRegistered(welcome, waited);
  log::Info("back at {}", another ? "another head" : "the head");
  if (another) {
    uplink_.OnNewHead();
    blocks_.NewArchive();
  }
  AskTime(0);  // this machine may have stood still, and the other head's clock differ
  for (std::string& note : std::exchange(notes_, {})) Note(std::move(note));
  if (uplink_.link() == nullptr) UseLink(head_.link(), false);
  parent_.Forget();
  if (parent_.link() == nullptr && started_fabric_) parent_.Ask();
  if (last_word_) SendBye();
  CheckDelivered();
}

void Node::OnRegistered(const tree::Welcome& welcome, Nanos waited) {
  const auto heads = static_cast<Nanos>(std::min<uint64_t>(welcome.now, INT64_MAX));
  if (std::optional<std::string> differ = clock_.Compare(heads, waited)) {
    Note(*std::move(differ));
  }
  log::Debug("registered as node {}", welcome.index);
  index_ = welcome.index;
  fanout_ = std::clamp(welcome.fanout, 2u, Config::kMaxFanout);  // by the head's sonde.conf
  // Not all nodes at once.
  asked_time_ = time_.Monotonic() - index_ % (kAskTimeEvery / kSecond) * kSecond;
  recorder_.SetNode(index_);
  relay_.SetNode(index_);
  blocks_.SetNode(index_);
  UseLink(head_.link(), false);
  PrepareOwn();
  for (std::string& note : std::exchange(notes_, {})) Note(std::move(note));
  if (state_ != State::kRunning) return WaitForChildren();
  const bool alone = launch_.job.expected_nodes == 1 && launch_.job.het_job.empty();
  if (alone || launch_.role == Role::kSolo || config_.provider == "none") return;
  // Sockets cost nothing to open, and the head has to take the ticks of all nodes until then. To
  // load libfabric, and take its endpoints, costs more than a short step of many nodes should pay.
  const bool at_once = launch_.job.expected_nodes > welcome.fanout &&
                       tree::Fabric::Preference(config_.provider).front() == "sockets";
  fabric_timer_ = loop_.After(at_once ? 0 : config_.fabric_after, [this] {
    WithFabric([this](tree::Fabric&) {
      started_fabric_ = true;
      parent_.Ask();
    });
  });
}

// Data that goes over a parent's link still goes there.
void Node::OnHeadLost(tree::Link& link, const Status& why) {
  application_.OnDisconnected(why);
  gateway_.OnHeadLost();
  uplink_.Forget(&link);
  if (uplink_.link() == &link) UseLink(nullptr, false);
}

void Node::OnNoHead(const Status& why) {
  failure_ = Status(why.code(), fmt::format("no connection to the head at {}:{}: {}",
                                            launch_.head_host, launch_.head_port, why.message()));
  log::Warning("{}; this node's telemetry ends", failure_.message());
  EndWithoutHead(why);
}

// To a node that the head has had, that is no failure: the head waits for nobody any more, and
// knows what is missing.
void Node::OnOver() {
  const Status over(Code::kUnavailable, "the step is over");
  if (!registered()) return OnNoHead(over);
  log::Info("{}, says the head", over.message());
  EndWithoutHead(over);
}

void Node::EndWithoutHead(const Status& why) {
  application_.OnDisconnected(why);
  gateway_.OnHeadLost();
  UseLink(nullptr, false);
  End();
}

// Also when its own tasks are done: others may only now come.
void Node::OpenGateway() {
  if (!gateways_.is_gateway || head_.link() == nullptr) return;
  const Status opened =
      gateway_.Open(*head_.link(), head_.local_host(),
                    GatewayPorts(launch_.key, launch_.node_id, tree::PortsOf(config_.port_range)));
  if (opened.ok()) {
    log::Info("this node is a gateway for others, at port {}", gateway_.port());
  } else {  // they come to the head by themselves
    log::Warning("no gateway for other nodes: {}", opened.message());
  }
}

void Node::OnStandby() {
  const Result<uint16_t> port = standby_.Listen(head_.local_host());
  if (!port.ok()) {
    Note(fmt::format("cannot go on as head if that dies: {}", port.status().message()));
  }
  head_.Send(Type::kStandingBy,
             Encode(tree::StandingBy{head_.local_host(), port.ok() ? *port : uint16_t{0}}));
}

// The link up takes our data, and the data reaches the head: a parent that has lost the head as
// well goes on taking data.
bool Node::HeadIsThere() const {
  const Nanos patience = std::max(kWordOfHead, 5 * launch_.job.period / 2);
  return uplink_.link() != nullptr && Clock::System().Monotonic() - reached_head_ < patience;
}

bool Node::BecomeHead() {
  if (HeadIsThere() || state_ == State::kDone) return false;
  const Status started =
      standby_.Act(step_start_, clock_.Now() - Clock::System().Now(), index_, head_.PlacesBefore());
  if (!started.ok()) log::Warning("cannot be acting head: {}", started.message());
  return started.ok();
}

void Node::Note(std::string text) {
  log::Warning("{}", text);
  if (!head_.Send(Type::kNote, text) && notes_.size() < kMaxNotes) {
    notes_.push_back(std::move(text));
  }
}

}  // namespace sonde::node
