#include "daemon/head/head.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/head/descriptors.h"
#include "daemon/head/end_state.h"
#include "daemon/head/head_state.h"
#include "daemon/own_cost.h"
#include "daemon/tree/auth.h"
#include "profiles/live_steps.h"
#include "profiles/report.h"
#include "profiles/summary.h"

namespace sonde::head {

using tree::Type;

namespace {

// Of so many ticks the head knows which nodes are in them.
constexpr size_t kRemember = 1024;

constexpr std::string_view kReducedGroup = "reduced";

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

JobDescription Describe(const LaunchMessage& launch) {
  JobDescription job = launch.job;
  job.launch_host = launch.role == Role::kHead ? HostName() : launch.host;
  if (!launch.acting) job.start = Clock::System().Now();
  job.version = SONDE_VERSION;
  return job;
}

// SONDE_ARCHIVE of the user is a pattern as well.
std::string PathOf(const LaunchMessage& launch, Config config) {
  if (!launch.archive.empty()) config.archive = launch.archive;
  return ArchivePath(config, launch.job.user, launch.job.uid, launch.home);
}

StepKey RandomKey() {
  StepKey key;
  const std::string bytes = tree::MakeNonce();
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

// Ticks wait that long for a node that changes its link.
Nanos HandOver(Nanos period) { return std::max(2 * period, 200 * kMillisecond); }

void Merge(tree::Bye& all, const tree::Bye& one) {
  all.exit_status = std::max(all.exit_status, one.exit_status);
  all.tasks_ended += one.tasks_ended;
  all.tasks_killed += one.tasks_killed;
  all.cpu_seconds += one.cpu_seconds;
  all.memory_bytes = std::max(all.memory_bytes, one.memory_bytes);
  all.bytes_sent += one.bytes_sent;
  all.launcher_gone = all.launcher_gone || one.launcher_gone;
}

}  // namespace

Head::Head(Loop& loop, const LaunchMessage& launch, const Config& config,
           std::function<void(std::string)> done)
    : loop_(loop),
      launch_(launch),
      config_(config),
      done_(std::move(done)),
      archive_path_(PathOf(launch, config)),
      record_(Describe(launch)),
      expected_nodes_(launch.job.expected_nodes),
      coverage_(record_.Description().start, launch.job.period),
      queries_(loop),
      intake_(config.profile_limit,
              [this](const tree::BlockAck& ack) { children_.SendBlockAck(ack); }),
      merger_(kRemember, [this](const tree::TickMerger::Row& row, bool late) { OnRow(row, late); }),
      children_(merger_, queries_, HandOver(launch.job.period), tree::Children::Keep::kUntilSafe,
                {.block =
                     [this](tree::BlockMessage block) {
                       intake_.Take(std::move(block), nodes_.size(), *archive_);
                     },
                 .moments = [this](const collect::Moments& moments) { OnMoments(moments); },
                 .ended = [this](const auto& info, const auto& schema, auto values,
                                 auto source) { OnEnded(info, schema, values, source); },
                 .refused = [this](auto fate, const auto& frame,
                                   auto source) { OnRefused(fate, frame, source); }}),
      child_links_(loop, launch_.key, launch.job.period, children_, [this] { CheckNodesDone(); }),
      parents_(
          loop, config, expected_nodes_, child_links_,
          {.send = [this](uint32_t node, Type type,
                          std::string_view payload) { return SendTo(node, type, payload); },
           .note = [this](uint32_t node, std::string_view text) { AddNodeNote(node, text); }}) {
  if (!launch_.has_key) launch_.key = RandomKey();  // no nodes to come: for the HTTP token
}

Head::~Head() {
  for (const Loop::TimerId timer : {expiry_timer_, serve_timer_, finish_timer_, describe_timer_,
                                    moments_timer_, away_timer_, store_timer_}) {
    loop_.Cancel(timer);
  }
}

Status Head::Start(UniqueFd listen) {
  archive_ = std::make_unique<ArchiveWriter>(loop_, archive_path_);
  archive_->OnStored([this] { children_.FlushBlockAcks(); });
  if (launch_.acting) Inherit();
  if (launch_.acting) {
    archive_->Continue(record_.Description());
  } else {
    archive_->Create(record_.Description());
  }
  record_.OnSeal([this](const SealedBlock& block) { StoreReduced(block); });
  source_ = std::make_shared<LiveSource>(
      record_,
      [this](QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) {
        loop_.Post([this, spec = std::move(spec), grid = std::move(grid), done = std::move(done)] {
          AskNodes(spec, grid, done);
        });
      },
      [this](bool paused) { loop_.Post([this, paused] { PauseCounters(paused); }); },
      [this](std::vector<uint32_t> nodes, std::string url) {
        loop_.Post(
            [this, nodes = std::move(nodes), url = std::move(url)] { JoinExporter(nodes, url); });
      });
  questions_ =
      std::make_unique<Questions>(loop_, source_, record_, launch_.job.period,
                                  [this](uint32_t node, const tree::AnswerMessage& answer) {
                                    SendTo(node, Type::kAnswer, Encode(answer));
                                  });
  StartAlarms();
  serve_timer_ = loop_.After(kServeAfter, [this] { Serve(); });
  if (launch_.role == Role::kSolo && launch_.job.job_nodes > 1) {
    AddNote(
        fmt::format("only {}, 1 of the job's {} nodes, was watched: that is where the script "
                    "runs; steps of srun are watched on all of theirs",
                    launch_.host, launch_.job.job_nodes));
  }
  if (!listen) return {};
  succession_ = std::make_unique<Succession>(
      loop_, config_.fabric_after, [this](uint32_t node, Type type, std::string_view payload) {
        return SendTo(node, type, payload);
      });
  acceptor_ = std::make_unique<tree::Acceptor>(
      loop_, launch_.key, [this](const tree::Registration& who, std::unique_ptr<tree::Link> link) {
        const Result<uint32_t> index = AddNode(who, std::move(link));
        if (!index.ok()) log::Warning("node {} refused: {}", who.host, index.status().message());
      });
  Result<std::unique_ptr<tree::Listener>> listener = tree::Listener::Adopt(
      loop_, std::move(listen), [this](std::unique_ptr<tree::SocketLink> link) {
        if (!std::exchange(local_host_known_, true)) {
          parents_.SetLocalHost(tree::HostText(link->local_address()));
        }
        acceptor_->Take(std::move(link));
      });
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  if (launch_.acting) {
    finish_timer_ = loop_.After(kTakeoverLimit, [this] {
      finish_timer_ = 0;
      CheckNodesDone();
    });
  }
  return {};
}

// --- Nodes ---

Result<uint32_t> Head::AddNode(const tree::Registration& who, std::unique_ptr<tree::Link> control) {
  if (const Status bad = CheckNode(who); !bad.ok()) {
    Send(*control, Type::kOver, "");
    return bad;
  }
  const bool back = who.index != tree::kHeadIndex;
  const uint32_t index = back ? who.index : NewNode(who);
  if (back) ComesBack(who);
  control->SetHandler(
      {.message = [this, index](
                      uint8_t type,
                      std::string_view payload) { OnControlMessage(index, type, payload); },
       .closed = [this, index](const Status& why) { OnControlClosed(index, why); }});
  control->SetMaxMessage(tree::kMaxMessage);
  children_.Add(*control, index);
  Send(*control, Type::kWelcome,
       Encode(tree::Welcome{index, config_.fanout, static_cast<uint64_t>(Clock::System().Now()),
                            static_cast<uint64_t>(record_.Description().start), number_}));
  Send(*control, Type::kBudget, Encode(intake_.Budget(expected_nodes_)));
  if (counters_paused_) Send(*control, Type::kCounters, "\1");
  if (const std::string needs = alarms_->OnNode(index); !needs.empty()) {
    Send(*control, Type::kDerive, needs);
  }
  nodes_[index].control = std::move(control);
  if (succession_ != nullptr) succession_->Add(index);
  ScheduleExpiry();  // even the first tick does not wait for ever
  return index;
}

Status Head::CheckNode(const tree::Registration& who) const {
  if (state_ != State::kRunning && state_ != State::kWaitingForNodes) {
    return {Code::kUnavailable, "the step is over"};
  }
  if (who.index != tree::kHeadIndex) {
    const auto known = registered_.find({who.job, who.node_id});
    if (known != registered_.end() && known->second == who.index) return {};
    return {Code::kInvalid, fmt::format("it is not node {} of this head", who.index)};
  }
  if (nodes_.size() > size_t{4} * expected_nodes_ + 64) {
    return {Code::kLimit, "daemons were started anew too often"};
  }
  return {};
}

uint32_t Head::NewNode(const tree::Registration& who) {
  const auto index = static_cast<uint32_t>(nodes_.size());
  const auto [known, added] = registered_.try_emplace({who.job, who.node_id}, index);
  if (!added) Replace(std::exchange(known->second, index));
  CountExpected(who);
  record_.Update([&](JobDescription& j) {
    NodeInfo info;
    info.host = who.host;
    info.job = who.job;
    info.node_id = who.node_id;
    info.tasks = who.tasks;
    info.joined = Clock::System().Now();
    j.nodes.push_back(std::move(info));
  });
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

// Under the index that it has.
void Head::ComesBack(const tree::Registration& who) {
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
  parents_.OnBack(who.index, who.switches, who.parent);
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
    case Type::kSchema:
      coverage_.OnSchema(index, Clock::System().Now());
      break;
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
  if (!Decode(payload, bye).ok()) return;
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

// --- Ticks and blocks ---

// Long enough for a late frame to come through the tree, short enough for a live view.
Nanos Head::MergeWindow() const { return std::max(2 * launch_.job.period, kSecond); }

void Head::OnRow(const tree::TickMerger::Row& row, bool late) {
  children_.HandOnLost(row.tick, row.nodes);
  children_.Forwarded(row.sources, 0);
  if (row.tick <= inherited_) return;  // the head before had it
  ++rows_to_store_;
  if (late) {
    late_ = row.values;
    if (ended_.StoodIn(row.tick, row.nodes)) {
      for (size_t i = 0; i < late_.size(); ++i) {
        if (merger_.series()[i].metric.type == MetricType::kCounter) late_[i] = Reduced();
      }
    }
    // Too late: it stays counted as missing.
    if (!record_.Amend(row.tick, {late_, row.spreads})) return;
  } else {
    whole_.tick = row.tick;
    whole_.nodes = row.nodes;
    whole_.values = row.values;
    ended_.AddTo(whole_, merger_.series(), merger_.Present());
    record_.Append(row.tick, {whole_.values, row.spreads}, merger_.series());
    alarms_->OnRow(whole_, merger_.series());
    ScheduleExpiry();
  }
  StoreWithin(rows_to_store_ >= kStoreAfterRows ? 0 : kStoreAfter);
  coverage_.OnRow(row.tick, static_cast<uint32_t>(row.nodes.size()));
  UpdateCoverage();
  if (questions_ != nullptr) questions_->OnRow(row.tick, late);
}

void Head::OnRefused(tree::TickMerger::Fate fate, const tree::Frame& frame,
                     tree::TickMerger::Source source) {
  children_.Forwarded({&source, 1}, 0);
  if (fate != tree::TickMerger::Fate::kRepeated) refused_samples_ += frame.nodes.size();
}

void Head::OnEnded(const tree::FrameInfo& info, const Schema::Ptr& schema,
                   std::span<const Reduced> values, tree::TickMerger::Source source) {
  const auto fate = ended_.Add(info, merger_.ColumnsOf(*schema), values);
  if (fate == tree::EndedNodes::Fate::kOverlaps) return children_.Refuse(source);
  children_.Forwarded({&source, 1}, 0);
  StoreWithin(kStoreEndedAfter);
}

// Phases and remarks are no blocks that could be stored by and by; a head that is killed leaves
// what was known some seconds before.
void Head::OnMoments(const collect::Moments& moments) {
  record_.AddMoments(moments);
  if (moments_timer_ != 0 || state_ != State::kRunning) return;
  moments_timer_ = loop_.After(kStoreMomentsAfter, [this] {
    moments_timer_ = 0;
    if (state_ == State::kRunning) {
      archive_->PutMoments(record_.Description(), record_.Moments());
    }
  });
}

void Head::UpdateCoverage() {
  record_.Update([this](JobDescription& j) { j.coverage = coverage_.Now(j.expected_nodes); });
}

void Head::ScheduleExpiry() {
  if (expiry_timer_ != 0 || state_ == State::kDone) return;
  expiry_timer_ = loop_.After(MergeWindow() / 2, [this] {
    expiry_timer_ = 0;
    children_.HandOnLost(Clock::System().Now());
    merger_.EmitUpTo(Clock::System().Now() - MergeWindow());
    ScheduleExpiry();
  });
}

void Head::SendBudgets() { SendToAll(Type::kBudget, Encode(intake_.Budget(expected_nodes_))); }

void Head::StoreReduced(const SealedBlock& block) {
  const Status refused =
      archive_->PutBlock({.key = {kReducedNode, std::string(kReducedGroup), block.sequence},
                          .first = block.sequence,
                          .schema_id = block.schema->id(),
                          .schema = block.schema,
                          .bytes = block.bytes,
                          .limit = config_.profile_limit},
                         [](const Status&) {});
  if (!refused.ok()) log::Warning("rows are not stored: {}", refused.message());
}

// --- From one head to the next ---

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
      coverage_.OnReplaced(i, inherited_);  // what it owed the head before has counted
    }
  }
  record_.Update([&](JobDescription& j) { j = job; });
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
  if (state_ != State::kRunning || succession_ == nullptr) return;
  if (storing_) return StoreWithin(kSecond);
  storing_ = true;
  rows_to_store_ = 0;
  loop_.Cancel(std::exchange(store_timer_, 0));
  children_.BeginSafe();
  for (const SealedBlock& rows : record_.OpenRows()) StoreReduced(rows);
  if (std::exchange(nodes_changed_, false)) archive_->PutDescription(record_.Description());
  HeadState state;
  state.row = whole_.tick;
  state.byes = byes_;
  state.ends = ends_;
  state.schema = merger_.schema();
  state.ended = ended_.Save(merger_.series().size());
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
  });
}

// --- HTTP ---

void Head::Serve() {
  if (config_.http == "off" || state_ != State::kRunning) return;
  web::Server::Options options;
  if (config_.http != "loopback") options.address = config_.http;
  options.port = config_.http_port;
  options.token = tree::HttpToken(launch_.key);
  Result<std::unique_ptr<web::Server>> server = web::Server::Start(options, source_);
  if (!server.ok()) {
    return AddNote(fmt::format("no web server: {}", server.status().message()));
  }
  server_ = *std::move(server);
  archive_->PutEndpoint(record_.Description().launch_host, server_->port(), options.token);
}

void Head::PauseCounters(bool paused) {
  if (std::exchange(counters_paused_, paused) == paused) return;
  const std::string_view word(paused ? "\1" : "\0", 1);
  SendToAll(Type::kCounters, word);
  AddNote(fmt::format("the processors' counters were {} at {}, as the user asked",
                      paused ? "paused" : "resumed", FormatTime(Clock::System().Now())));
}

void Head::StartAlarms() {
  alarms_ = std::make_unique<Alarms>(
      loop_, record_, launch_, config_,
      Alarms::Callbacks{[this](const std::string& needs) { SendToAll(Type::kDerive, needs); },
                        [this](const collect::Moments& moments) { OnMoments(moments); },
                        [this](std::string note) { AddNote(std::move(note)); }});
  source_->UseAlarms(alarms_.get());
}

void Head::JoinExporter(const std::vector<uint32_t>& nodes, const std::string& url) {
  for (const uint32_t index : nodes) SendTo(index, Type::kJoin, url);
}

void Head::AskNodes(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) {
  constexpr Nanos kPatience = 2 * kSecond;
  queries_.Ask({next_query_++, std::move(spec), std::move(grid), kPatience}, children_.Active(), {},
               std::move(done));
}

// --- The end ---

void Head::Finish(bool launcher_gone) {
  // Whoever started an acting head goes before the other nodes; that stays until they are gone.
  if (state_ != State::kRunning || launch_.acting) return;
  log::Debug("asked to finish: {} of {} nodes said goodbye", byes_, nodes_.size());
  state_ = State::kWaitingForNodes;
  HurryAway(kAwayAtEndLimit);
  finish_timer_ = loop_.After(launcher_gone ? kOrphanLimit : kFinishLimit, [this] { Seal(); });
  CheckNodesDone();
}

// Once every node of the step has come and gone there is nothing to wait for: the report is ready
// when srun asks for it.
void Head::CheckNodesDone() {
  const bool ending = state_ == State::kWaitingForNodes ||
                      (state_ == State::kRunning && byes_ != 0 && byes_ >= expected_nodes_) ||
                      (launch_.acting && (byes_ != 0 || finish_timer_ == 0));
  if (ending && gone_nodes_ == nodes_.size() && children_.done()) Seal();
}

void Head::Seal() {
  if (state_ != State::kRunning && state_ != State::kWaitingForNodes) return;
  state_ = State::kSealing;
  log::Debug("sealing the profile");
  loop_.Cancel(finish_timer_);
  server_.reset();
  questions_.reset();
  alarms_->Finish();
  // Those that have not said goodbye need not look for another head.
  SendToAll(Type::kOver, "");
  const Nanos now = Clock::System().Now();
  children_.HandOnLost(INT64_MAX);
  // Also ticks of nodes whose clocks are ahead of ours: the last row comes after them all.
  merger_.EmitUpTo(INT64_MAX);
  record_.Append(std::max(now, whole_.tick + 1), ended_.Final(merger_.series().size()),
                 merger_.series());
  record_.Seal();
  const double kills = OutOfMemoryKills(record_.Snapshot());
  record_.Update([&](JobDescription& j) {
    j.end = now;
    j.coverage = coverage_.AtEnd(j.expected_nodes);
    j.exit_status = ends_.exit_status;
    j.state = byes_ == 0 ? EndState::kLost : StateOf(ends_, kills);
  });
  NoteMissing();
  for (std::string& note : intake_.Notes(record_.Description().nodes)) AddNote(std::move(note));
  if (registered_.size() < expected_nodes_) {
    AddNote(fmt::format("{} of {} nodes never reported: is Sonde installed there?",
                        expected_nodes_ - registered_.size(), expected_nodes_));
  }
  record_.UpdateCost([&](OwnCost& cost) {
    cost.cpu_seconds = ends_.cpu_seconds;
    if (launch_.role == Role::kHead) cost.cpu_seconds += OwnCpuSeconds();
    cost.peak_node_memory = ends_.memory_bytes;
    cost.bytes_sent = ends_.bytes_sent;
    cost.stored_bytes = static_cast<double>(archive_->stored_bytes());
  });
  archive_->Finish(record_.Snapshot(), [this](const Status& status) { Report(status); });
  finish_timer_ = loop_.After(kSealLimit, [this] {
    Report({Code::kTimeout, "the profile is still being written"});
  });
}

void Head::NoteMissing() {
  if (refused_samples_ > 0) {
    AddNote(fmt::format("{} samples came too late to be merged", refused_samples_));
  }
  size_t unknown = 0;
  for (uint32_t i = 0; i < nodes_.size(); ++i) unknown += ended_.Has(i) ? 0 : 1;
  if (unknown > 0) {
    AddNote(fmt::format("what {} of {} nodes counted is missing from the totals", unknown,
                        nodes_.size()));
  }
}

void Head::Report(const Status& archived) {
  if (std::exchange(state_, State::kDone) == State::kDone) return;
  log::Debug("profile sealed: {}", archived.ok() ? "ok" : archived.message());
  loop_.Cancel(finish_timer_);
  std::string text;
  if (config_.report != "off") {
    ReportOptions options;
    if (config_.report == "short") options.form = ReportOptions::Form::kShort;
    text = RenderReport(record_.Snapshot(), options);
    text += archived.ok()
                ? fmt::format("sonde: profile in {}; see it again with: sonde show {}\n",
                              archive_path_, launch_.job.id.ToString())
                : fmt::format("sonde: the profile is not stored: {}\n", archived.message());
  }
  archive_->Ingest();
  done_(std::move(text));
}

}  // namespace sonde::head
