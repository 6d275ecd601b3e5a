// What a Head stores for another one that goes on when it dies, and how that begins.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "daemon/head/head.h"
#include "daemon/head/head_state.h"
#include "profiles/archive_dir.h"
#include "profiles/live_steps.h"

namespace sonde::head {

// What the head before has left: its nodes, which are on their way here, and what those had counted
// that have ended.
void Head::Inherit() {
  Result<Heritage> heritage = ReadHeritage(archive_path_, record_.Description());
  if (!heritage.ok()) {
    return AddNote(fmt::format("an acting head knows only the nodes that have come to it: {}",
                               heritage.status().message()));
  }
  HeadState state;
  const Status read = heritage->state.empty() ? Status() : Decode(heritage->state, state);
  if (!read.ok()) {
    AddNote(std::string(read.message()));
    state = {};
  }
  inherited_ = state.row;
  ends_ = state.ends;
  byes_ = state.byes;
  record_.Continue(state.phases);
  inherited_alarms_ = std::move(state.alarms);
  for (const tree::Frame& frame : state.ended) {
    if (!ended_.Has(frame.nodes.first())) {
      ended_.Add(frame, merger_.ColumnsOf(*state.schema), frame.values);
    }
  }
  JobDescription& job = heritage->job;
  job.notes.clear();
  job.figures.clear();
  job.launch_host = HostName();
  job.coverage = {};
  expected_nodes_ = job.expected_nodes;
  parents_.Expect(expected_nodes_);
  for (uint32_t i = 0; i < job.nodes.size(); ++i) {
    const NodeInfo& info = job.nodes[i];
    nodes_.emplace_back();
    parents_.Add("");
    registered_[{info.job, info.node_id}] = i;
    if (info.left == 0) {
      Away(i, "it did not come to the acting head", kTakeoverLimit);
    } else {
      Leaves(i);
      coverage_.OnGoneBefore(i);
    }
  }
  record_.Update([&](JobDescription& j) { j = job; });
}

void Head::ListenToThoseThatComeBack() {
  const auto [low, high] = tree::PortsOf(config_.port_range);
  for (uint32_t port = low; port <= high; ++port) {
    auto listener = tree::Listener::Open(
        loop_, "0.0.0.0", static_cast<uint16_t>(port),
        [this](std::unique_ptr<tree::SocketLink> link) { acceptor_->Take(std::move(link)); });
    if (!listener.ok()) continue;
    own_listener_ = *std::move(listener);
    return;
  }
}

void Head::StoreWithin(Nanos time) {
  const Nanos at = Clock::System().Monotonic() + time;
  if (store_timer_ != 0 && store_at_ <= at) return;
  loop_.Cancel(store_timer_);
  store_at_ = at;
  store_timer_ = loop_.At(at, [this] {
    store_timer_ = 0;
    StoreState();
  });
}

// From then on the nodes need not keep it for another head.
void Head::StoreState() {
  if (state_ != State::kRunning) return;
  if (storing_) return StoreWithin(kSecond);
  if (std::exchange(moments_changed_, false)) {
    archive_->PutMoments(record_.Description(), record_.Moments());
  }
  rows_to_store_ = 0;
  loop_.Cancel(std::exchange(store_timer_, 0));
  children_.BeginSafe();
  if (succession_ == nullptr) return children_.EndSafe();  // nobody goes on
  storing_ = true;
  for (const SealedBlock& rows : record_.OpenRows()) StoreReduced(rows);
  if (std::exchange(nodes_changed_, false)) archive_->PutDescription(record_.Description());
  HeadState state;
  state.row = whole_.tick;
  state.byes = byes_;
  state.ends = ends_;
  state.schema = merger_.schema();
  state.ended = ended_.Save(merger_.series().size());
  state.phases = record_.OpenPhases();
  state.alarms = alarms_->Changes();
  children_.ForEachOwn([&](uint32_t index, Nanos tick, const Schema& own, auto values) {
    // Newer than what is there of the time before it came back.
    std::erase_if(state.ended,
                  [&](const tree::Frame& f) { return f.lost && f.nodes.first() == index; });
    tree::Frame& frame = state.ended.emplace_back();
    frame.number = state.ended.size();
    frame.tick = tick + 1;
    frame.stream = tree::Stream::kEnded;
    frame.lost = true;
    frame.nodes = tree::NodeSet(index);
    frame.values.resize(merger_.series().size());
    const std::vector<uint32_t> columns = merger_.ColumnsOf(own);
    for (size_t i = 0; i < columns.size() && i < values.size(); ++i) {
      if (columns[i] < frame.values.size()) frame.values[columns[i]] = values[i];
    }
  });
  archive_->PutState(Encode(state), [this](const Status& stored) {
    storing_ = false;
    log::Debug("the head's state is stored: {}", stored.ok() ? "ok" : stored.message());
    // Without an archive nobody will go on from it.
    children_.EndSafe();
    if (std::exchange(leave_when_stored_, false)) LeaveToNext();
  });
}

// What is stored is what another head goes on from; the nodes look for it as if this one had died.
void Head::LeaveToNext() {
  if (state_ != State::kRunning) return;
  const bool others = std::any_of(nodes_.begin(), nodes_.end(), [](const NodeState& node) {
    return node.control != nullptr && !node.gone;
  });
  if (!others) {
    // Those that are away have had their time to come.
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].away_until != 0) IsLost(i);
    }
    return Seal();
  }
  // What is being stored is older.
  if (storing_) {
    leave_when_stored_ = true;
    return;
  }
  log::Debug("this node is done: another one acts as head");
  StoreState();
  state_ = State::kLeaving;
  loop_.Cancel(std::exchange(describe_timer_, 0));
  archive_->WhenIdle([this] {
    state_ = State::kDone;
    done_("");
  });
}

}  // namespace sonde::head
