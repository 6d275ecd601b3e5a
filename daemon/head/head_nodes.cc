// The nodes of a Head: how they come, go, stay away and come back.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "daemon/head/descriptors.h"
#include "daemon/head/head.h"

namespace sonde::head {

using tree::Type;

namespace {

void Merge(tree::Bye& all, const tree::Bye& one) {
  all.exit_status = std::max(all.exit_status, one.exit_status);
  all.tasks_ended += one.tasks_ended;
  all.tasks_killed += one.tasks_killed;
  all.cpu_seconds += one.cpu_seconds;
  all.memory_bytes = std::max(all.memory_bytes, one.memory_bytes);
  all.bytes_sent += one.bytes_sent;
  all.launcher_gone = all.launcher_gone || one.launcher_gone;
}

void Describe(const tree::Registration& who, NodeInfo& info) {
  info.host = who.host;
  info.job = who.job;
  info.node_id = who.node_id;
  info.tasks = who.tasks;
  info.joined = Clock::System().Now();
}

}  // namespace

Result<uint32_t> Head::AddNode(const tree::Registration& who, std::unique_ptr<tree::Link> control) {
  // It comes again, to the next head.
  if (state_ == State::kLeaving)
    return Status(Code::kUnavailable, "another node acts as head soon");
  if (const Status bad = CheckNode(who); !bad.ok()) {
    Send(*control, Type::kOver, "");
    return bad;
  }
  const bool back = who.index != tree::kHeadIndex;
  const uint32_t index = back ? who.index : NewNode(who);
  if (back) ComesBack(who);
  coverage_.OnRegistered(index, Clock::System().Now());
  control->SetHandler(
      {.message = [this, index](
                      uint8_t type,
                      std::string_view payload) { OnControlMessage(index, type, payload); },
       .closed = [this, index](const Status& why) { OnControlClosed(index, why); }});
  control->SetMaxMessage(tree::kMaxMessage);
  children_.Add(*control, index);
  Send(*control, Type::kWelcome,
       Encode(tree::Welcome{index, config_.fanout, static_cast<uint64_t>(Clock::System().Now()),
                            static_cast<uint64_t>(record_.Description().start), number_,
                            own_listener_ == nullptr ? uint16_t{0} : own_listener_->port()}));
  Send(*control, Type::kBudget, Encode(intake_.Budget(expected_nodes_)));
  if (counters_paused_) Send(*control, Type::kCounters, "\1");
  if (const std::string needs = alarms_->OnNode(index); !needs.empty()) {
    Send(*control, Type::kDerive, needs);
  }
  nodes_[index].control = std::move(control);
  if (back) parents_.OnBack(index, who.switches, who.parent);
  if (succession_ != nullptr) succession_->Add(index);
  ScheduleExpiry();  // even the first tick does not wait for ever
  return index;
}

// Daemons that were started anew take new indices.
size_t Head::MostNodes() const { return size_t{4} * expected_nodes_ + 64; }

Status Head::CheckNode(const tree::Registration& who) const {
  if (state_ != State::kRunning && state_ != State::kWaitingForNodes) {
    return {Code::kUnavailable, "the step is over"};
  }
  if (who.index != tree::kHeadIndex) {
    const auto known = registered_.find({who.job, who.node_id});
    if (known != registered_.end() && known->second == who.index) return {};
    // The head before did not tell of it, or only of the daemon that it took the place of.
    const bool newest = known == registered_.end() || known->second < who.index;
    if (launch_.acting && newest && IsUnknown(who.index)) return {};
    return {Code::kInvalid, fmt::format("it is not node {} of this head", who.index)};
  }
  if (nodes_.size() > MostNodes()) {
    return {Code::kLimit, "daemons were started anew too often"};
  }
  return {};
}

uint32_t Head::NewNode(const tree::Registration& who) {
  const auto index = static_cast<uint32_t>(nodes_.size());
  const auto [known, added] = registered_.try_emplace({who.job, who.node_id}, index);
  if (!added) Replace(std::exchange(known->second, index));
  CountExpected(who);
  record_.Update([&](JobDescription& j) { Describe(who, j.nodes.emplace_back()); });
  nodes_.emplace_back();
  parents_.Add(who.switches);
  return index;
}

// The daemon of this node was started anew and is another node from now on.
void Head::Replace(uint32_t index) {
  NodeState& node = nodes_[index];
  if (node.control != nullptr) {
    Send(*node.control, Type::kOver, "");
    children_.Remove(*node.control);
    tree::DestroyLater(loop_, std::move(node.control));
  }
  const Nanos now = Clock::System().Now();
  if (!node.gone) Leaves(index);
  coverage_.OnReplaced(index, now);
  record_.Update([&](JobDescription& j) {
    NodeInfo& info = j.nodes[index];
    info.left = now;
    info.lost = false;
    info.note = "its daemon was started anew";
  });
  AddNodeNote(index, "its daemon was started anew; between the two nothing was measured");
}

bool Head::IsUnknown(uint32_t index) const {
  return index < nodes_.size() ? record_.Host(index).empty() : index < MostNodes();
}

// Of the nodes before it nothing is known either, until they come.
void Head::Learn(const tree::Registration& who) {
  while (nodes_.size() <= who.index) {
    const auto index = static_cast<uint32_t>(nodes_.size());
    record_.Update([](JobDescription& j) { j.nodes.emplace_back(); });
    nodes_.emplace_back();
    parents_.Add("");
    Away(index, "it did not come to the acting head", kTakeoverLimit);
  }
  const auto [known, added] = registered_.try_emplace({who.job, who.node_id}, who.index);
  if (!added) Replace(std::exchange(known->second, who.index));
  CountExpected(who);
  record_.Update([&](JobDescription& j) { Describe(who, j.nodes[who.index]); });
}

// Under the index that it has.
void Head::ComesBack(const tree::Registration& who) {
  const auto known = registered_.find({who.job, who.node_id});
  if (known == registered_.end() || known->second != who.index) Learn(who);
  NodeState& node = nodes_[who.index];
  if (node.control != nullptr) {  // which we have not noticed to be broken
    children_.Remove(*node.control);
    tree::DestroyLater(loop_, std::move(node.control));
  }
  node.away_until = 0;
  bool was_lost = false;
  record_.Update([&](JobDescription& j) {
    NodeInfo& info = j.nodes[who.index];
    was_lost = std::exchange(info.lost, false);
    if (!was_lost) return;
    info.left = 0;
    info.note.clear();
  });
  if (!was_lost) return;
  node.gone = false;
  --gone_nodes_;
  AddNodeNote(who.index, "is back");
}

// Het components register with their own number of nodes; together they are the step.
void Head::CountExpected(const tree::Registration& who) {
  components_[who.job] = std::max(components_[who.job], who.nodes);
  uint32_t sum = 0;
  for (const auto& [job, nodes] : components_) sum += nodes;
  if (sum > expected_nodes_) {
    expected_nodes_ = sum;
    parents_.Expect(expected_nodes_);
    SendBudgets();
  }
  record_.Update([&](JobDescription& j) { j.expected_nodes = expected_nodes_; });
  std::string too_few = TooFewDescriptors(expected_nodes_, config_.fanout, DescriptorLimit());
  if (!too_few.empty() && !std::exchange(told_descriptors_, true)) AddNote(std::move(too_few));
  if (describe_timer_ != 0 || state_ != State::kRunning) return;
  describe_timer_ = loop_.After(kSecond, [this] {
    describe_timer_ = 0;
    nodes_changed_ = false;
    archive_->PutDescription(record_.Description());
  });
}

// False if it has no connection.
bool Head::SendTo(uint32_t index, Type type, std::string_view payload) {
  tree::Link* control = nodes_[index].control.get();
  return control != nullptr && Send(*control, type, payload);
}

void Head::SendToAll(Type type, std::string_view payload) {
  for (uint32_t i = 0; i < nodes_.size(); ++i) SendTo(i, type, payload);
}

void Head::OnControlMessage(uint32_t index, uint8_t type, std::string_view payload) {
  switch (static_cast<Type>(type)) {
    case Type::kWantParent:
      return parents_.OnWantParent(index, payload);
    case Type::kListening:
      return parents_.OnListening(index, payload);
    case Type::kStandingBy:
      if (succession_ != nullptr) succession_->OnStandingBy(index, payload);
      return;
    case Type::kNote:
      return AddNodeNote(index, payload.substr(0, kMaxTextLength));
    case Type::kBye:
      return OnBye(index, payload);
    case Type::kAsk: {
      const Status status = OnAsk(index, payload);
      if (!status.ok()) OnControlClosed(index, status);
      return;
    }
    default:
      break;
  }
  const Status status =
      children_.OnMessage(*nodes_[index].control, static_cast<Type>(type), payload);
  if (!status.ok()) return OnControlClosed(index, status);
  child_links_.Watch();
  CheckNodesDone();
}

void Head::OnControlClosed(uint32_t index, const Status& why) {
  NodeState& node = nodes_[index];
  if (node.control == nullptr) return;
  children_.Remove(*node.control);
  tree::DestroyLater(loop_, std::move(node.control));
  if (succession_ != nullptr) succession_->Remove(index);
  if (!node.gone) {
    log::Info("the connection of node {} is lost: {}", index, why.message());
    Away(index, std::string(why.message()),
         state_ == State::kRunning ? kAwayLimit : kAwayAtEndLimit);
  }
  CheckNodesDone();
}

void Head::Away(uint32_t index, std::string why, Nanos limit) {
  nodes_[index].away_until = Clock::System().Monotonic() + limit;
  nodes_[index].away_note = std::move(why);
  ScheduleAway();
}

void Head::HurryAway(Nanos limit) {
  const Nanos until = Clock::System().Monotonic() + limit;
  for (NodeState& node : nodes_) {
    if (node.away_until != 0) node.away_until = std::min(node.away_until, until);
  }
  ScheduleAway();
}

void Head::ScheduleAway() {
  loop_.Cancel(std::exchange(away_timer_, 0));
  Nanos next = INT64_MAX;
  for (const NodeState& node : nodes_) {
    if (node.away_until != 0) next = std::min(next, node.away_until);
  }
  if (next == INT64_MAX) return;
  away_timer_ = loop_.At(next, [this] {
    away_timer_ = 0;
    const Nanos now = Clock::System().Monotonic();
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].away_until != 0 && nodes_[i].away_until <= now) IsLost(i);
    }
    ScheduleAway();
    CheckNodesDone();
  });
}

void Head::IsLost(uint32_t index) {
  NodeState& node = nodes_[index];
  node.away_until = 0;
  Leaves(index);
  const std::string why = std::exchange(node.away_note, "");
  std::string host;
  record_.Update([&](JobDescription& j) {
    NodeInfo& info = j.nodes[index];
    info.lost = true;
    info.left = Clock::System().Now();
    info.note = why;
    host = info.host;
  });
  if (host.empty()) return;  // nobody knows that there was one
  const bool kept = ended_.Has(index);
  std::string alone = fmt::format(
      "node {} was lost: {}; {}", host, why,
      kept ? "its values stay as it last sent them" : "what it counted is missing from the totals");
  log::Warning("{}", alone);
  record_.AddNoteOfNode(index, std::move(alone),
                        fmt::format(" were lost: {}; {}", why,
                                    kept ? "their values stay as they last sent them"
                                         : "what they counted is missing from the totals"));
}

void Head::Leaves(uint32_t index) {
  nodes_[index].gone = true;
  nodes_[index].away_until = 0;
  nodes_changed_ = true;
  ++gone_nodes_;
  if (questions_ != nullptr) questions_->OnGone(index);
  if (alarms_ != nullptr) alarms_->OnGone(index);
  parents_.Remove(index);
}

void Head::OnBye(uint32_t index, std::string_view payload) {
  tree::Bye bye;
  NodeState& node = nodes_[index];
  // It is said again, to the next head.
  if (!Decode(payload, bye).ok() || state_ == State::kLeaving) return;
  if (node.gone) {  // the answer was lost
    Send(*node.control, Type::kByeAck, "");
    return;
  }
  Leaves(index);
  ++byes_;
  const auto stays = [](const NodeState& n) { return n.control != nullptr && !n.gone; };
  if (launch_.acting && std::none_of(nodes_.begin(), nodes_.end(), stays)) {
    HurryAway(kTakeoverAtEndLimit);
  }
  Merge(ends_, bye);
  coverage_.OnBye(index, Clock::System().Now(), bye.ticks, bye.skipped);
  record_.Update([&](JobDescription& j) {
    NodeInfo& info = j.nodes[index];
    const Nanos now = std::max(info.joined, Clock::System().Now());
    info.left =
        std::clamp(static_cast<Nanos>(std::min<uint64_t>(bye.ended, INT64_MAX)), info.joined, now);
  });
  UpdateCoverage();
  Send(*node.control, Type::kByeAck, "");
  CheckNodesDone();
}

Status Head::OnAsk(uint32_t index, std::string_view payload) {
  tree::AskMessage ask;
  SONDE_RETURN_IF_ERROR(Decode(payload, ask));
  if (questions_ == nullptr) return {};  // the step is over
  return questions_->OnAsk(index, ask);
}

void Head::AddNote(std::string text) {
  log::Warning("{}", text);
  record_.AddNote(std::move(text));
}

// What a node tells of itself.
void Head::AddNodeNote(uint32_t index, std::string_view text) {
  std::string alone = fmt::format("{}: {}", record_.Host(index), text);
  log::Warning("{}", alone);
  record_.AddNoteOfNode(index, std::move(alone), fmt::format(": {}", text));
}

}  // namespace sonde::head
