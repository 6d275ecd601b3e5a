#include "daemon/head/registry/nodes.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/link/send.h"

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

void Describe(const tree::Registration& who, Nanos now, NodeInfo& info) {
  info.host = who.host;
  info.job = who.job;
  info.node_id = who.node_id;
  info.tasks = who.tasks;
  info.joined = now;
}

}  // namespace

Nodes::Nodes(Loop& loop, const Clock& clock, const Config& config, uint32_t expected, bool acting,
             StepRecord& record, RowPath& rows, tree::ChildLinks& links, Owner& owner)
    : loop_(loop),
      clock_(clock),
      config_(config),
      acting_(acting),
      record_(record),
      rows_(rows),
      links_(links),
      owner_(owner),
      registrations_(expected),
      absences_(loop, clock, *this),
      parents_(loop, config, expected, links, *this) {}

void Nodes::Inherit(const JobDescription& job, const HeadState& state) {
  ends_ = state.ends;
  byes_ = state.byes;
  registrations_.Inherit(job);
  parents_.Expect(expected());
  for (uint32_t i = 0; i < job.nodes.size(); ++i) {
    nodes_.emplace_back();
    parents_.Add("");
    if (job.nodes[i].left == 0) {
      absences_.Add(i, "it did not come to the acting head", kTakeoverLimit);
    } else {
      Leaves(i);
      rows_.coverage().OnGoneBefore(i);
    }
  }
}

void Nodes::ChooseSuccessors() {
  succession_ = std::make_unique<Succession>(
      loop_, config_.fabric_after,
      [this](uint32_t node, Type type, std::string_view payload) {
        return SendTo(node, type, payload);
      },
      [this](const tree::Place& place, bool away) { owner_.OnStanding(place, away); });
}

// --- They come ---

Status Nodes::Check(const tree::Registration& who) const {
  if (who.index != tree::kHeadIndex) {
    const auto known = registrations_.IndexOf(who);
    if (known == who.index) return {};
    // The head before did not tell of this node, or only of the daemon that it replaced.
    const bool newest = !known || *known < who.index;
    if (acting_ && newest && IsUnknown(who.index)) return {};
    return {Code::kInvalid, fmt::format("it is not node {} of this head", who.index)};
  }
  if (nodes_.size() > registrations_.most()) {
    return {Code::kLimit, "daemons were started anew too often"};
  }
  return {};
}

bool Nodes::IsUnknown(uint32_t index) const {
  return index < nodes_.size() ? record_.Host(index).empty() : index < Most();
}

size_t Nodes::Most() const {
  const bool takes_over = Clock::System().Monotonic() - began_ < kTakeoverLimit;
  return takes_over ? std::max(registrations_.most(), kNodesAtTakeover) : registrations_.most();
}

// Values of a node may come to an acting head over others before the node itself comes.
void Nodes::LimitNumbers() {
  const size_t most = acting_ ? std::max(nodes_.size(), Most()) : nodes_.size();
  rows_.children().LimitNodes(
      static_cast<uint32_t>(std::min(most, static_cast<size_t>(tree::NodeSet::kMaxNodes))));
}

bool Nodes::HasCome(const tree::Registration& who, const tree::Link& control) const {
  if (who.index != tree::kHeadIndex || control.direct()) return false;
  const auto known = registrations_.IndexOf(who);
  return known && connected(*known);
}

// A node that came through a gateway and goes past it before word of its index has come back has
// it all the same.
std::optional<uint32_t> Nodes::UntoldIndex(const tree::Registration& who) const {
  const auto known = registrations_.IndexOf(who);
  if (!known || !connected(*known) || nodes_[*known].knows) return std::nullopt;
  return nodes_[*known].control->direct() ? std::nullopt : known;
}

uint32_t Nodes::Add(const tree::Registration& proven, std::unique_ptr<tree::Link> control) {
  tree::Registration who = proven;
  const bool knows = who.index != tree::kHeadIndex;
  if (!knows) who.index = UntoldIndex(who).value_or(tree::kHeadIndex);
  const bool back = who.index != tree::kHeadIndex;
  const uint32_t index = back ? who.index : NewNode(who);
  if (back) ComesBack(who);
  nodes_[index].knows |= knows;
  LimitNumbers();
  rows_.coverage().OnRegistered(index, clock_.Now());
  control->SetHandler(
      {.message = [this, index](uint8_t type,
                                std::string_view payload) { OnMessage(index, type, payload); },
       .closed = [this, index](const Status& why) { OnClosed(index, why); }});
  control->SetMaxMessage(tree::kMaxMessage);
  rows_.children().Add(*control, index);
  direct_ += control->direct();
  owner_.Greet(index, *control);
  nodes_[index].control = std::move(control);
  stay_ += nodes_[index].Stays();
  if (back) parents_.OnBack(index, who.switches, who.parent);
  if (succession_ != nullptr) succession_->Add(index);
  return index;
}

uint32_t Nodes::NewNode(const tree::Registration& who) {
  const auto index = static_cast<uint32_t>(nodes_.size());
  Enter(who, index);
  const Nanos now = clock_.Now();
  record_.Update([&](JobDescription& j) { Describe(who, now, j.nodes.emplace_back()); });
  nodes_.emplace_back();
  parents_.Add(who.switches);
  return index;
}

// Nodes with lower indexes are not known either, until they come.
void Nodes::Learn(const tree::Registration& who) {
  while (nodes_.size() <= who.index) {
    const auto index = static_cast<uint32_t>(nodes_.size());
    record_.Update([](JobDescription& j) { j.nodes.emplace_back(); });
    nodes_.emplace_back();
    parents_.Add("");
    absences_.Add(index, "it did not come to the acting head", kTakeoverLimit);
  }
  Enter(who, who.index);
  const Nanos now = clock_.Now();
  record_.Update([&](JobDescription& j) { Describe(who, now, j.nodes[who.index]); });
}

void Nodes::Enter(const tree::Registration& who, uint32_t index) {
  if (const auto replaced = registrations_.Enter(who, index)) Replace(*replaced);
  const bool more = registrations_.Expect(who);
  if (more) parents_.Expect(expected());
  record_.Update([&](JobDescription& j) { j.expected_nodes = expected(); });
  owner_.OnRegistered(more);
}

// The daemon of this node was started anew and is another node from now on.
void Nodes::Replace(uint32_t index) {
  Node& node = nodes_[index];
  if (node.control != nullptr) {
    Send(*node.control, Type::kOver, "");
    CloseControl(node);
  }
  const Nanos now = clock_.Now();
  if (!node.gone) Leaves(index);
  rows_.coverage().OnReplaced(index, now);
  record_.Update([&](JobDescription& j) {
    NodeInfo& info = j.nodes[index];
    info.left = now;
    info.lost = false;
    info.note = "its daemon was started anew";
  });
  AddNodeNote(index, "its daemon was started anew; between the two nothing was measured");
}

// The node comes back under the index that it has.
void Nodes::ComesBack(const tree::Registration& who) {
  if (registrations_.IndexOf(who) != who.index) Learn(who);
  Node& node = nodes_[who.index];
  if (node.control != nullptr) CloseControl(node);  // which we have not noticed to be broken
  absences_.Remove(who.index);
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
  --gone_;
  AddNodeNote(who.index, "is back");
}

// --- What they say ---

bool Nodes::SendTo(uint32_t node, Type type, std::string_view payload) {
  tree::Link* control = nodes_[node].control.get();
  return control != nullptr && Send(*control, type, payload);
}

void Nodes::SendToAll(Type type, std::string_view payload) {
  for (uint32_t i = 0; i < nodes_.size(); ++i) SendTo(i, type, payload);
}

void Nodes::OnMessage(uint32_t index, uint8_t type, std::string_view payload) {
  nodes_[index].knows = true;
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
    case Type::kExits:
      return OnExits(index, payload);
    case Type::kBye:
      return OnBye(index, payload);
    case Type::kAskTime:
      return OnAskTime(index, payload);
    case Type::kJoined:
      return owner_.OnJoined(index, payload);
    case Type::kViaOpen:
    case Type::kVia:
    case Type::kViaClose:
      return OnVia(index, static_cast<Type>(type), payload);
    case Type::kAsk: {
      const Status status = owner_.OnAsk(index, payload);
      if (!status.ok()) OnClosed(index, status);
      return;
    }
    default:
      break;
  }
  const Status status =
      rows_.children().OnMessage(*nodes_[index].control, static_cast<Type>(type), payload);
  if (!status.ok()) return OnClosed(index, status);
  links_.Watch();
  owner_.CheckNodesDone();
}

bool Nodes::MayBeGateway(const tree::Link& control) const { return !acting_ && control.direct(); }

// Who has not been told that it may be a gateway is none.
void Nodes::OnVia(uint32_t index, Type type, std::string_view payload) {
  if (!MayBeGateway(*nodes_[index].control)) return;
  auto via = nodes_[index].via;
  if (via == nullptr) {
    via = std::make_shared<tree::ViaLinks>(
        loop_, *nodes_[index].control,
        [this](const tree::Registration& who, std::unique_ptr<tree::Link> link) {
          owner_.OnProven(who, std::move(link));
        });
    nodes_[index].via = via;
  }
  const Status status = via->OnMessage(type, payload);
  if (!status.ok()) OnClosed(index, status);
}

void Nodes::OnAskTime(uint32_t index, std::string_view payload) {
  ByteReader r(payload);
  const uint64_t number = r.Varint();
  if (!r.done()) return;
  std::string answer;
  ByteWriter w(answer);
  w.Varint(number);
  w.Varint(static_cast<uint64_t>(clock_.Now()));
  SendTo(index, Type::kTime, answer);
}

// A note that a node tells of itself.
void Nodes::AddNodeNote(uint32_t node, std::string_view text) {
  record_.AddNoteOfNode(node, fmt::format("{}: {}", record_.Host(node), text),
                        fmt::format(": {}", text));
}

void Nodes::OnExits(uint32_t index, std::string_view payload) {
  tree::Exits exits;
  // As with the goodbye behind it.
  if (!Decode(payload, exits).ok() || leaving_ || nodes_[index].gone) return;
  record_.Update([&](JobDescription& j) {
    AddExits(exits.list, j);
    j.exits_left_out += exits.left_out;
  });
}

void Nodes::OnBye(uint32_t index, std::string_view payload) {
  tree::Bye bye;
  Node& node = nodes_[index];
  // The node says it again, to the next head.
  if (!Decode(payload, bye).ok() || leaving_) return;
  if (node.gone) {  // the answer was lost
    Send(*node.control, Type::kByeAck, "");
    return;
  }
  Leaves(index);
  ++byes_;
  if (acting_ && !some_stay()) absences_.Hurry(kTakeoverAtEndLimit);
  Merge(ends_, bye);
  rows_.coverage().OnBye(index, clock_.Now(), bye.ticks, bye.skipped);
  record_.Update([&](JobDescription& j) {
    NodeInfo& info = j.nodes[index];
    const Nanos now = std::max(info.joined, clock_.Now());
    info.left =
        std::clamp(static_cast<Nanos>(std::min<uint64_t>(bye.ended, INT64_MAX)), info.joined, now);
  });
  rows_.UpdateCoverage();
  Send(*node.control, Type::kByeAck, "");
  owner_.CheckNodesDone();
}

// --- They go ---

void Nodes::CloseControl(Node& node) {
  stay_ -= node.Stays();
  if (const auto via = std::exchange(node.via, nullptr)) via->Lose();
  rows_.children().Remove(*node.control);
  direct_ -= node.control->direct();
  tree::DestroyLater(loop_, std::move(node.control));
}

void Nodes::OnClosed(uint32_t index, const Status& why) {
  Node& node = nodes_[index];
  if (node.control == nullptr) return;
  CloseControl(node);
  if (succession_ != nullptr) succession_->Remove(index, node.gone);
  if (!node.gone) {
    log::Info("the connection of node {} is lost: {}", index, why.message());
    std::string reason(why.message());
    if (why.code() == Code::kCorrupt) {
      // The same each time: the notes are few, and the log has the rest.
      reason = "what it said was changed on its way, or was wrong; its connection was closed";
      AddNodeNote(index, reason);
    }
    absences_.Add(index, std::move(reason), ending_ ? kAwayAtEndLimit : kAwayLimit);
  }
  owner_.CheckNodesDone();
}

void Nodes::OnOverdue(const std::vector<Absences::Overdue>& nodes) {
  for (const Absences::Overdue& lost : nodes) Lose(lost);
  LimitNumbers();  // an acting head has had its time for those it did not know
  owner_.CheckNodesDone();
}

void Nodes::LoseAway() {
  for (const Absences::Overdue& lost : absences_.TakeAll()) Lose(lost);
}

void Nodes::Lose(const Absences::Overdue& lost) {
  Leaves(lost.node);
  std::string host;
  record_.Update([&](JobDescription& j) {
    NodeInfo& info = j.nodes[lost.node];
    info.lost = true;
    info.left = std::max(info.joined, lost.since);
    info.note = lost.why;
    host = info.host;
  });
  if (host.empty()) return;  // nobody knows that there was one
  log::Warning("node {} was lost: {}", host, lost.why);
  rows_.OnLost(lost.node, lost.why);
}

void Nodes::Leaves(uint32_t index) {
  stay_ -= nodes_[index].Stays();
  nodes_[index].gone = true;
  absences_.Remove(index);
  ++gone_;
  owner_.OnGone(index);
  parents_.Remove(index);
}

}  // namespace sonde::head
