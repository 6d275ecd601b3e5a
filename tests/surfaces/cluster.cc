#include "tests/surfaces/cluster.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "daemon/collect/read/source.h"
#include "daemon/head/answers/live_source.h"
#include "daemon/head/record/row_path.h"
#include "daemon/head/record/step_record.h"
#include "daemon/link/send.h"
#include "daemon/node/record/recorder.h"
#include "daemon/tree/children/relay.h"
#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "tests/unit/queue_link.h"

namespace sonde::surfaces {
namespace {

using tree::Type;

constexpr Nanos kAway = 3 * kSecond;  // how long the head waits for a node (Nodes)
// For an answer it waits hardly at all: the step would go on meanwhile, and other than planned.
constexpr Nanos kPatience = kMicrosecond;

void Check(const Status& status, const char* what) {
  if (!status.ok()) throw std::runtime_error(fmt::format("{}: {}", what, status.message()));
}

// The machine's clocks: one that goes on steadily, and one that somebody sets.
class MachineClock final : public Clock {
 public:
  Nanos Now() const override { return steady + set_by; }
  Nanos Monotonic() const override { return steady; }
  Nanos SinceBoot() const override { return steady; }
  Nanos steady = kSecond;
  Nanos set_by = 0;
};

// What the plan says of one group of a daemon's series.
class PlannedSource final : public collect::Source {
 public:
  PlannedSource(const StepPlan& plan, const Daemon& daemon, bool of_tasks)
      : of_tasks_(of_tasks), sample_(&daemon.samples.front()) {
    for (size_t c = 0; c < daemon.columns.size(); ++c) {
      const Column& column = daemon.columns[c];
      if ((column.task != kNobody) != of_tasks) continue;
      columns_.push_back(c);
      series_.push_back(plan.series[column.series].series);
      if (of_tasks) series_.back().tags.Set("task", std::to_string(column.task));
    }
    values_.resize(columns_.size());
    generation_ = 1;
  }
  std::string_view name() const override { return "planned"; }
  collect::Group group() const override {
    return of_tasks_ ? collect::Group::kTask : collect::Group::kOs;
  }
  bool counts_from_boot() const override { return false; }
  void Take(const surfaces::Sample& sample) { sample_ = &sample; }
  void Sample(Nanos /*now*/) override {
    for (size_t i = 0; i < columns_.size(); ++i) values_[i] = sample_->values[columns_[i]];
  }

 private:
  const bool of_tasks_;
  std::vector<size_t> columns_;
  const surfaces::Sample* sample_;
};

// Between a daemon and whoever it sends to.
struct Wire {
  tree::QueueLink from_child;         // the child's end: what it sends
  tree::QueueLink from_parent;        // and the parent's
  std::deque<const Sample*> samples;  // those that are on their way, each in a message of its own
  bool stuck = false;
};

class Node final : private tree::Relay::Owner {
 public:
  Node(const StepPlan& plan, uint32_t index, Loop& loop, const Clock& clock)
      : daemon_(plan.daemons[index]),
        index_(index),
        recorder_(Options(plan), 8u << 20, index, static_cast<uint32_t>(plan.daemons.size())),
        queries_(loop),
        relay_(loop, queries_, plan.period, clock, *this) {
    for (const bool of_tasks : {false, true}) {
      auto source = std::make_unique<PlannedSource>(plan, daemon_, of_tasks);
      sources_.push_back(source.get());
      recorder_.sampler().AddSource(std::move(source));
    }
  }

  node::Recorder& recorder() { return recorder_; }
  tree::Relay& relay() { return relay_; }
  Wire& wire() { return *wire_; }
  bool has_wire() const { return wire_ != nullptr; }
  bool here() const { return joined_ && !gone_; }
  bool ended() const { return gone_ && !daemon_.lost; }

  void Join(Wire* wire) {
    wire_ = wire;
    joined_ = true;
    Take(daemon_.samples.front(), collect::Sampler::Extent::kAll);
    relay_.SetNode(index_);
    recorder_.SetNode(index_);
    relay_.Use(&wire->from_child, false);
    relay_.Announce(recorder_.reduced_schema());
    next_ = 1;
  }

  // The sample that is due, if it takes one.
  void TakeDue(Nanos now) {
    if (!here() || next_ == daemon_.samples.size()) return;
    const Sample& sample = daemon_.samples[next_];
    if (!sample.tick || sample.time > now) return;
    ++next_;
    Take(sample, collect::Sampler::Extent::kTick);
    wire_->samples.push_back(&sample);
    relay_.SendOwn(sample.time, recorder_.reduced_schema(), recorder_.reduced_frame());
  }
  bool IsDueToEnd(Nanos now) const {
    return here() && !daemon_.lost && next_ + 1 == daemon_.samples.size() && daemon_.last() <= now;
  }
  bool IsDueToBeLost() const { return here() && daemon_.lost && next_ == daemon_.samples.size(); }
  void End() {
    gone_ = true;
    const Sample& last = daemon_.samples.back();
    Take(last, collect::Sampler::Extent::kAll);
    wire_->samples.push_back(&last);
    relay_.SendOwnEnd(last.time, recorder_.reduced_schema(), recorder_.reduced());
    recorder_.Seal();
  }
  // The blocks take another way, and have arrived; frames of their ticks do not come later.
  void SealLast() {
    relay_.FlushTick();
    recorder_.Seal();
  }
  void BeLost() {
    gone_ = true;
    relay_.Use(nullptr, false);
    wire_ = nullptr;
  }
  void HandOnTheRest() { relay_.SendRest(); }

  void OnMessageFromAbove(Type type, std::string_view payload) {
    ByteReader r(payload);
    switch (type) {
      case Type::kAck: {
        const uint64_t number = r.Varint();
        return relay_.OnAck(number, r.left() > 0 ? r.Varint() : number);
      }
      case Type::kQuery:
        return OnQuestion(payload);
      case Type::kRefused:
        throw std::runtime_error("last values were refused where no node changes its parent");
      default:
        return;
    }
  }

 private:
  static collect::Sampler::Options Options(const StepPlan& plan) {
    collect::Sampler::Options options;
    options.level = 1;
    options.roots = {"/nowhere", "/nowhere"};
    options.period = plan.period;
    return options;
  }

  void Take(const Sample& sample, collect::Sampler::Extent extent) {
    for (PlannedSource* source : sources_) source->Take(sample);
    recorder_.Sample(sample.time, extent);
  }

  void OnQuestion(std::string_view payload) {
    tree::Question question;
    Check(Decode(payload, question), "a question");
    if (!here()) return;
    Result<QueryPart> own = recorder_.Answer(question.spec, question.grid, daemon_.host);
    queries_.Ask(std::move(question), relay_.children().Active(),
                 tree::QueryFanout::Own{index_, std::move(own)},
                 [this](const tree::Gathered& answer) {
                   if (wire_ != nullptr) SendReply(wire_->from_child, answer);
                 });
  }

  void OnBlock(tree::BlockMessage) override {}
  void BeforeFrames() override {}
  void OnAhead() override {}

  const Daemon& daemon_;
  const uint32_t index_;
  node::Recorder recorder_;
  std::vector<PlannedSource*> sources_;
  tree::QueryFanout queries_;
  tree::Relay relay_;
  Wire* wire_ = nullptr;
  bool joined_ = false;
  bool gone_ = false;
  size_t next_ = 0;
};

JobDescription Describe(const StepPlan& plan) {
  JobDescription job;
  job.cluster = "frost";
  job.id = {std::to_string(1000 + plan.seed % 1000), "0"};
  job.name = "campaign";
  job.user = "ada";
  job.level = 2;
  job.period = plan.period;
  job.start = plan.start;
  job.expected_nodes = static_cast<uint32_t>(plan.hosts.size());
  for (const Daemon& daemon : plan.daemons) {
    if (daemon.replaces == SIZE_MAX) job.expected_tasks += daemon.tasks;
  }
  return job;
}

}  // namespace

class Cluster::Rep final : private head::RowPath::Owner {
 public:
  Rep(const StepPlan& plan, std::string archive, Witness& witness)
      : plan_(plan),
        archive_(std::move(archive)),
        witness_(witness),
        clock_(plan.start - machine_.steady, machine_),
        loop_(machine_),
        record_(Describe(plan)),
        queries_(loop_),
        rows_(loop_, clock_, record_, queries_, *this) {
    auto live = LiveArchive::Create(archive_, record_.Description());
    Check(live.status(), "make a live archive");
    live_ = *std::move(live);
    record_.OnSeal([this](const SealedBlock& block) {
      StoreDescription();
      Store({kReducedNode, "reduced", block.sequence}, block);
    });
    source_ = std::make_unique<head::LiveSource>(
        record_, std::make_shared<AskedNodes>(*this),
        std::make_shared<head::ArchivedSeries>(archive_, keys::ProfileKey(*record_.Job())),
        [](const std::function<void()>& finish) { finish(); });
    for (uint32_t i = 0; i < plan.daemons.size(); ++i) {
      nodes_.push_back(std::make_unique<Node>(plan, i, loop_, clock_));
      wires_.push_back(std::make_unique<Wire>());
      nodes_.back()->recorder().SetOnSeal(
          [this, i](const std::string& group, const SealedBlock& block) {
            Store({i, group, block.sequence}, block);
          });
    }
  }

  const web::DataSource& source() const { return *source_; }
  const Clock& clock() const { return clock_; }
  Profile profile() const { return record_.Snapshot(); }
  std::vector<NodeState> states() const {
    std::vector<NodeState> states;
    for (uint32_t i = 0; i < nodes_.size(); ++i) states.push_back(StateOf(i));
    return states;
  }

  void Run(const std::function<void()>& ask) {
    for (size_t i = 0; i < plan_.ticks.size(); ++i) {
      const Nanos tick = plan_.ticks[i];
      BetweenTicks(tick - 1);
      if (i == plan_.clock_at) machine_.set_by += plan_.clock_by;
      SetStuck(i);
      AdvanceTo(tick + kMillisecond);
      for (const uint32_t node : InAnyOrder()) {
        nodes_[node]->TakeDue(clock_.Now());
        Settle();
      }
      LoseNodes();
      Pulse();
      AdvanceTo(tick + plan_.period * 2 / 5);
      if (std::count(plan_.asked_after.begin(), plan_.asked_after.end(), i) > 0) ask();
    }
    // What is stuck comes at last, and those end that have not yet.
    for (const auto& wire : wires_) wire->stuck = false;
    BetweenTicks(plan_.ticks.back() + plan_.period);
    AdvanceTo(clock_.Now() + 10 * kSecond);
    DeclareLost();
  }

  void Finish() {
    rows_.Finish(clock_.Look());
    record_.Update([&](JobDescription& job) {
      job.end = clock_.Now();
      job.state = EndState::kCompleted;
    });
    Check(live_->PutProfile(record_.Snapshot()), "store the profile");
    Check(live_->Finish(), "seal the profile");
    live_.reset();
    Check(OpenArchive(archive_).status(), "take the profile in");
  }

  void LosePatience() {
    machine_.steady += kPatience;
    Settle();
  }

  // Messages arrive in the order of the daemons, until there are none, and what is due is done.
  void Settle() {
    for (bool any = true; any;) {
      RunDue();
      any = false;
      for (uint32_t i = 0; i < nodes_.size(); ++i) {
        if (Deliver(i)) any = true;
      }
    }
  }

 private:
  class AskedNodes final : public head::StepNodes {
   public:
    explicit AskedNodes(Rep& rep) : rep_(rep) {}
    void Ask(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) override {
      rep_.queries_.Ask({++rep_.questions_, std::move(spec), std::move(grid), kPatience},
                        rep_.rows_.children().Active(), {}, std::move(done));
    }
    void PauseCounters(bool) override {}
    void Join(std::vector<uint32_t>, web::ScrapeTarget, web::StepControl::JoinCallback) override {}
    void Exporters(web::StepControl::ExportersCallback) override {}
    void Unjoin(std::string, web::StepControl::UnjoinCallback) override {}
    void Push(uint32_t, std::string) override {}
    void Tree(TreeDone done) override { done({}); }
    void Links(LinksDone done) override { done({}); }

   private:
    Rep& rep_;
  };

  void OnBlock(tree::BlockMessage) override {}
  void OnJoinedBlocks(const JoinedBlocks&, std::string_view) override {}
  void OnMoments(const collect::Moments&) override {}
  void OnNewRow(const tree::TickMerger::Row& row, const std::vector<Series>&) override {
    witness_.OnRow(row.tick);
  }
  void OnRecorded(Nanos, bool) override {}
  void OnLastValues(uint32_t, bool) override {}

  void StoreDescription() {
    Check(live_->PutDescription(record_.Description()), "describe the step");
  }
  void Store(const BlockKey& key, const SealedBlock& block) {
    Check(live_->PutBlock(key, *block.schema, *block.bytes), "store a block");
  }

  std::vector<uint32_t> InAnyOrder() {
    std::vector<uint32_t> order(nodes_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[chance_.Below(i)]);
    return order;
  }

  // The step's time goes on, and what falls due meanwhile is done.
  void AdvanceTo(Nanos time) {
    while (clock_.Now() < time) {
      // No timer of the product is late by more than it is on a busy machine.
      machine_.steady += std::min(time - clock_.Now(), kMostAtOnce);
      Settle();
    }
  }

  void RunDue() {
    loop_.Post([this] { loop_.Stop(); });
    loop_.Run();
  }

  // Those join and end whose time it is, up to that time and in its order.
  void BetweenTicks(Nanos until) {
    std::multimap<Nanos, uint32_t> due;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const Daemon& daemon = plan_.daemons[i];
      if (!joined(i)) due.emplace(daemon.joined(), i);
      if (nodes_[i]->here() && !daemon.lost) due.emplace(daemon.last(), i);
    }
    for (const auto& [time, node] : due) {
      if (time > until) break;
      AdvanceTo(time);
      if (!joined(node)) {
        Join(node);
      } else if (nodes_[node]->IsDueToEnd(clock_.Now())) {
        End(node);
      }
      Settle();
    }
    AdvanceTo(until);
  }

  bool joined(uint32_t node) const { return node < joined_; }

  NodeState StateOf(uint32_t node) const {
    if (!joined(node)) return NodeState::kToCome;
    if (nodes_[node]->here()) return wires_[node]->stuck ? NodeState::kSilent : NodeState::kHere;
    if (nodes_[node]->ended()) return NodeState::kEnded;
    return away_.contains(node) ? NodeState::kSilent : NodeState::kLost;
  }

  void Join(uint32_t node) {
    ++joined_;
    const Daemon& daemon = plan_.daemons[node];
    if (daemon.replaces != SIZE_MAX) Replace(static_cast<uint32_t>(daemon.replaces));
    record_.Update([&](JobDescription& job) {
      NodeInfo& info = job.nodes.emplace_back();
      info.host = daemon.host;
      info.job = job.id.job;
      info.tasks = daemon.tasks;
      info.joined = clock_.Now();
    });
    rows_.coverage().OnRegistered(node, clock_.Now());
    StoreDescription();
    witness_.OnJoined(node);
    Wire& wire = *wires_[node];
    if (daemon.parent == kNobody) {
      rows_.children().Add(wire.from_parent, node);
    } else {
      nodes_[daemon.parent]->relay().children().Add(wire.from_parent, node);
    }
    nodes_[node]->Join(&wire);
    rows_.Begin();
  }

  // Of those that were lost before. As Nodes::Replace does it.
  void Replace(uint32_t node) {
    DeclareLost();
    rows_.coverage().OnReplaced(node, clock_.Now());
    record_.Update([&](JobDescription& job) {
      job.nodes[node].left = clock_.Now();
      job.nodes[node].lost = false;
    });
  }

  void End(uint32_t node) {
    nodes_[node]->End();
    Settle();
    nodes_[node]->HandOnTheRest();
    rows_.coverage().OnBye(node, clock_.Now(), plan_.daemons[node].samples.size() - 2, 0);
    record_.Update([&](JobDescription& job) { job.nodes[node].left = plan_.daemons[node].last(); });
    rows_.UpdateCoverage();
  }

  void LoseNodes() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!joined(i) || !nodes_[i]->IsDueToBeLost()) continue;
      nodes_[i]->SealLast();
      Settle();
      rows_.children().Remove(wires_[i]->from_parent);
      nodes_[i]->BeLost();
      witness_.OnLost(i);
      away_[i] = clock_.Now();
    }
    DeclareLost();
  }

  void DeclareLost() {
    for (auto at = away_.begin(); at != away_.end();) {
      const auto [node, since] = *at;
      if (clock_.Now() < since + kAway) {
        ++at;
        continue;
      }
      record_.Update([&, i = node, when = since](JobDescription& job) {
        job.nodes[i].lost = true;
        job.nodes[i].left = when;
        job.nodes[i].note = "link";
      });
      rows_.OnLost(node, "link");
      at = away_.erase(at);
    }
  }

  void SetStuck(size_t tick) {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const Daemon& daemon = plan_.daemons[i];
      wires_[i]->stuck = daemon.stuck_for > 0 && tick >= daemon.stuck_from &&
                         tick < daemon.stuck_from + daemon.stuck_for;
    }
  }

  void Pulse() {
    rows_.BeginSafe();
    rows_.EndSafe();
    rows_.children().Pulse();
    for (const auto& node : nodes_) {
      if (node->here()) node->relay().children().Pulse();
    }
  }

  // All that is on a daemon's wire. False if there is nothing.
  bool Deliver(uint32_t node) {
    Wire& wire = *wires_[node];
    if (wire.stuck) return false;
    const bool any = !wire.from_child.queue.empty() || !wire.from_parent.queue.empty();
    while (!wire.from_child.queue.empty()) {
      const auto [type, payload] = std::move(wire.from_child.queue.front());
      wire.from_child.queue.pop_front();
      if (type == Type::kFrame) TellArrived(node, wire);
      Arrive(node, type, payload);
    }
    while (!wire.from_parent.queue.empty()) {
      const auto [type, payload] = std::move(wire.from_parent.queue.front());
      wire.from_parent.queue.pop_front();
      nodes_[node]->OnMessageFromAbove(type, payload);
    }
    return any;
  }

  // A message has one sample; at a short period, and of those that hand on what others send, as
  // many as there are, which all come in time.
  void TellArrived(uint32_t node, Wire& wire) {
    const bool hands_on = plan_.tree && plan_.daemons[node].parent == kNobody;
    const bool one = plan_.period >= tree::Relay::kBatch && !hands_on;
    for (size_t n = one ? 1 : wire.samples.size(); n > 0 && !wire.samples.empty(); --n) {
      witness_.OnArrived(node, *wire.samples.front());
      wire.samples.pop_front();
    }
  }

  void Arrive(uint32_t node, Type type, const std::string& payload) {
    const uint32_t parent = plan_.daemons[node].parent;
    tree::Link& link = wires_[node]->from_parent;
    if (parent == kNobody) {
      Check(rows_.children().OnMessage(link, type, payload), "a message at the head");
      return;
    }
    tree::Relay& relay = nodes_[parent]->relay();
    Check(relay.children().OnMessage(link, type, payload), "a message at a parent");
    relay.OnChildrenChanged();
  }

  static constexpr Nanos kMostAtOnce = 200 * kMillisecond;

  const StepPlan& plan_;
  const std::string archive_;
  Witness& witness_;
  Chance chance_{plan_.seed ^ 0x5eed};
  MachineClock machine_;
  StepClock clock_;
  Loop loop_;
  head::StepRecord record_;
  tree::QueryFanout queries_;
  head::RowPath rows_;
  std::unique_ptr<LiveArchive> live_;
  std::unique_ptr<head::LiveSource> source_;
  std::vector<std::unique_ptr<Wire>> wires_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<uint32_t, Nanos> away_;  // nodes whose links are gone, since when
  uint32_t joined_ = 0;
  uint64_t questions_ = 0;
};

Cluster::Cluster(const StepPlan& plan, std::string archive, Witness& witness)
    : rep_(std::make_unique<Rep>(plan, std::move(archive), witness)) {}
Cluster::~Cluster() = default;

void Cluster::Run(const std::function<void()>& ask) { rep_->Run(ask); }
void Cluster::Finish() { rep_->Finish(); }
const web::DataSource& Cluster::source() const { return rep_->source(); }
std::vector<NodeState> Cluster::states() const { return rep_->states(); }
const Clock& Cluster::clock() const { return rep_->clock(); }
void Cluster::Settle() { rep_->Settle(); }
void Cluster::LosePatience() { rep_->LosePatience(); }
Profile Cluster::profile() const { return rep_->profile(); }

}  // namespace sonde::surfaces
