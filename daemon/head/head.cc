#include "daemon/head/head.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/head/descriptors.h"
#include "daemon/head/end_state.h"
#include "daemon/own_cost.h"
#include "daemon/tree/auth.h"
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
  job.start = Clock::System().Now();
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
      placement_(config.fanout, expected_nodes_),
      queries_(loop),
      intake_(config.profile_limit,
              [this](const tree::BlockAck& ack) { children_.SendBlockAck(ack); }),
      merger_(kRemember, [this](const tree::TickMerger::Row& row, bool late) { OnRow(row, late); }),
      children_(merger_, queries_, HandOver(launch.job.period),
                {.block =
                     [this](tree::BlockMessage block) {
                       intake_.Take(std::move(block), nodes_.size(), *archive_);
                     },
                 .moments = [this](const collect::Moments& moments) { OnMoments(moments); },
                 .ended = [this](const auto& info, const auto& schema, auto values,
                                 auto source) { OnEnded(info, schema, values, source); },
                 .refused = [this](auto fate, const auto& frame,
                                   auto source) { OnRefused(fate, frame, source); }}),
      fabric_(loop),
      child_links_(loop, launch_.key, children_, [this] {
        SchedulePulse();
        CheckNodesDone();
      }) {
  if (!launch_.has_key) launch_.key = RandomKey();  // no nodes to come: for the HTTP token
}

Head::~Head() {
  for (const Loop::TimerId timer : {expiry_timer_, pulse_timer_, serve_timer_, finish_timer_,
                                    describe_timer_, moments_timer_}) {
    loop_.Cancel(timer);
  }
}

Status Head::Start(UniqueFd listen) {
  archive_ = std::make_unique<ArchiveWriter>(loop_, archive_path_, config_.profile_limit);
  archive_->Create(record_.Description());
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
                                    if (nodes_[node].control != nullptr) {
                                      Send(*nodes_[node].control, Type::kAnswer, Encode(answer));
                                    }
                                  });
  serve_timer_ = loop_.After(kServeAfter, [this] { Serve(); });
  if (launch_.role == Role::kSolo && launch_.job.job_nodes > 1) {
    AddNote(
        fmt::format("only {}, 1 of the job's {} nodes, was watched: that is where the script "
                    "runs; steps of srun are watched on all of theirs",
                    launch_.host, launch_.job.job_nodes));
  }
  if (!listen) return {};
  acceptor_ = std::make_unique<tree::Acceptor>(
      loop_, launch_.key, [this](const tree::Registration& who, std::unique_ptr<tree::Link> link) {
        const Result<uint32_t> index = AddNode(who, std::move(link));
        if (!index.ok()) log::Warning("node {} refused: {}", who.host, index.status().message());
      });
  Result<std::unique_ptr<tree::Listener>> listener = tree::Listener::Adopt(
      loop_, std::move(listen), [this](std::unique_ptr<tree::SocketLink> link) {
        if (local_host_.empty()) local_host_ = tree::HostText(link->local_address());
        acceptor_->Take(std::move(link));
      });
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  return {};
}

// --- Nodes ---

Result<uint32_t> Head::AddNode(const tree::Registration& who, std::unique_ptr<tree::Link> control) {
  if (!registered_.emplace(who.job, who.node_id).second) {
    return Status(Code::kBusy, "it is registered already");
  }
  const auto index = static_cast<uint32_t>(nodes_.size());
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
  control->SetHandler(
      {.message = [this, index](
                      uint8_t type,
                      std::string_view payload) { OnControlMessage(index, type, payload); },
       .closed = [this, index](const Status& why) { OnControlClosed(index, why); }});
  control->SetMaxMessage(tree::kMaxMessage);
  children_.Add(*control, index);
  Send(*control, Type::kWelcome,
       Encode(tree::Welcome{index, config_.fanout, static_cast<uint64_t>(Clock::System().Now())}));
  Send(*control, Type::kBudget, Encode(intake_.Budget(expected_nodes_)));
  if (counters_paused_) Send(*control, Type::kCounters, "\1");
  nodes_.emplace_back().control = std::move(control);
  placement_.Add(who.switches);
  ScheduleExpiry();  // even the first tick does not wait for ever
  return index;
}

// Het components register with their own number of nodes; together they are the step.
void Head::CountExpected(const tree::Registration& who) {
  components_[who.job] = std::max(components_[who.job], who.nodes);
  uint32_t sum = 0;
  for (const auto& [job, nodes] : components_) sum += nodes;
  if (sum > expected_nodes_) {
    expected_nodes_ = sum;
    placement_.Expect(expected_nodes_);
    SendBudgets();
  }
  record_.Update([&](JobDescription& j) { j.expected_nodes = expected_nodes_; });
  std::string too_few = TooFewDescriptors(expected_nodes_, config_.fanout, DescriptorLimit());
  if (!too_few.empty() && !std::exchange(told_descriptors_, true)) AddNote(std::move(too_few));
  if (describe_timer_ != 0 || state_ != State::kRunning) return;
  describe_timer_ = loop_.After(kSecond, [this] {
    describe_timer_ = 0;
    archive_->PutDescription(record_.Description());
  });
}

void Head::OnControlMessage(uint32_t index, uint8_t type, std::string_view payload) {
  switch (static_cast<Type>(type)) {
    case Type::kWantParent:
      return OnWantParent(index, payload);
    case Type::kListening:
      return OnListening(index, payload);
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
  SchedulePulse();
  CheckNodesDone();
}

void Head::OnControlClosed(uint32_t index, const Status& why) {
  NodeState& node = nodes_[index];
  if (node.control == nullptr) return;
  const bool lost = !node.gone;
  if (lost) Leaves(node);
  const bool kept = lost && KeepLastOf(index);
  children_.Remove(*node.control);
  tree::DestroyLater(loop_, std::move(node.control));
  if (lost) {
    std::string host;
    record_.Update([&](JobDescription& j) {
      NodeInfo& info = j.nodes[index];
      info.lost = true;
      info.left = Clock::System().Now();
      info.note = why.message();
      host = info.host;
    });
    std::string alone = fmt::format("node {} was lost: {}; {}", host, why.message(),
                                    kept ? "its values stay as it last sent them"
                                         : "what it counted is missing from the totals");
    log::Warning("{}", alone);
    record_.AddNoteOfNode(index, std::move(alone),
                          fmt::format(" were lost: {}; {}", why.message(),
                                      kept ? "their values stay as they last sent them"
                                           : "what they counted is missing from the totals"));
  }
  CheckNodesDone();
}

// What it last sent of itself is here, or with its parent.
bool Head::KeepLastOf(uint32_t index) {
  if (children_.Lost(index)) return true;
  const uint32_t parent = nodes_[index].parent;
  if (parent == tree::kHeadIndex || nodes_[parent].control == nullptr) return false;
  std::string payload;
  ByteWriter(payload).Varint(index);
  return Send(*nodes_[parent].control, Type::kLost, payload);
}

void Head::Leaves(NodeState& node) {
  node.gone = true;
  ++gone_nodes_;
  const auto index = static_cast<uint32_t>(&node - nodes_.data());
  if (questions_ != nullptr) questions_->OnGone(index);
  // Its children ask by themselves; others that take its place, or theirs, are told.
  for (const uint32_t moved : placement_.Remove(index)) {
    if (nodes_[moved].wants_parent && nodes_[moved].parent != index) OnWantParent(moved, "");
  }
  for (const uint32_t child : std::exchange(node.waiting, {})) OnWantParent(child, "");
}

void Head::OnBye(uint32_t index, std::string_view payload) {
  tree::Bye bye;
  NodeState& node = nodes_[index];
  if (!Decode(payload, bye).ok() || node.gone) return;
  Leaves(node);
  ++byes_;
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

// --- The tree's shape ---

// Whether `node` sends to `other`, or to one that does, as far as they were told.
bool Head::SendsTo(uint32_t node, uint32_t other) const {
  for (size_t steps = 0; node != tree::kHeadIndex && steps < nodes_.size(); ++steps) {
    if (node == other) return true;
    node = nodes_[node].parent;
  }
  return false;
}

void Head::OnWantParent(uint32_t index, std::string_view payload) {
  ByteReader r(payload);
  const uint64_t failed = payload.empty() ? tree::kHeadIndex : r.Varint();
  if (failed > tree::kHeadIndex) return;
  nodes_[index].wants_parent = true;
  uint32_t parent = placement_.Parent(index);
  if (failed != tree::kHeadIndex && parent == failed) {
    const uint32_t avoid[] = {parent};
    parent = placement_.Move(index, avoid);
  }
  // One that comes up from below it may not have left it yet: they would send to each other.
  if (parent != tree::kHeadIndex && SendsTo(parent, index)) parent = tree::kHeadIndex;
  if (parent == tree::kHeadIndex) {
    tree::FabricOptions options;
    options.provider = config_.provider;
    options.interface = config_.interface;
    options.local_address = local_host_;
    options.max_links = tree::ChildLinks::LinksFor(config_.fanout);
    return fabric_.With(options, [this, index, parent](const Result<tree::Fabric*>& fabric) {
      if (fabric_address_.empty()) ListenOnFabric(fabric);
      if (!fabric_address_.empty()) SendParent(index, parent, fabric_address_);
    });
  }
  NodeState& node = nodes_[parent];
  if (!node.address.empty()) return SendParent(index, parent, node.address);
  node.waiting.push_back(index);
  if (!std::exchange(node.listen_asked, true)) Send(*node.control, Type::kListen, "");
}

void Head::OnListening(uint32_t index, std::string_view payload) {
  tree::Listening answer;
  if (!Decode(payload, answer).ok()) return;
  NodeState& node = nodes_[index];
  if (answer.address.empty()) {
    return AddNodeNote(index, fmt::format("cannot listen for children: {}; their connections to "
                                          "the head serve",
                                          answer.error));
  }
  node.address = answer.address;
  for (const uint32_t child : std::exchange(node.waiting, {})) {
    SendParent(child, index, node.address);
  }
}

void Head::SendParent(uint32_t child, uint32_t parent, const std::string& address) {
  if (nodes_[child].control == nullptr) return;
  nodes_[child].parent = parent;
  Send(*nodes_[child].control, Type::kParent, Encode(tree::ParentAddress{parent, address}));
}

void Head::ListenOnFabric(const Result<tree::Fabric*>& fabric) {
  if (std::exchange(fabric_asked_, true)) return;
  const Result<std::string> address = fabric.ok() ? child_links_.Listen(**fabric) : fabric.status();
  if (address.ok()) {
    fabric_address_ = *address;
  } else {
    // Hosts where srun runs often lack the nodes' fabric: the nodes' connections to the head serve.
    log::Info("no links over libfabric to the head: {}", address.status().message());
  }
}

// --- Ticks and blocks ---

// Long enough for a late frame to come through the tree, short enough for a live view.
Nanos Head::MergeWindow() const { return std::max(2 * launch_.job.period, kSecond); }

void Head::OnRow(const tree::TickMerger::Row& row, bool late) {
  children_.Forwarded(row.sources, 0);
  if (late) {
    // Too late: it stays counted as missing.
    if (!record_.Amend(row.tick, {row.values, row.spreads})) return;
  } else {
    whole_.tick = row.tick;
    whole_.nodes = row.nodes;
    whole_.values = row.values;
    ended_.AddTo(whole_, merger_.series(), merger_.Present());
    record_.Append(row.tick, {whole_.values, row.spreads}, merger_.series());
    ScheduleExpiry();
  }
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
}

// Children know by it that the head is there, and what they need to keep no more.
void Head::SchedulePulse() {
  if (pulse_timer_ != 0 || merger_.idle()) return;
  pulse_timer_ = loop_.After(kPulse, [this] {
    pulse_timer_ = 0;
    children_.Pulse();
    const Nanos limit = std::max(kChildSilence, 5 * launch_.job.period / 2);
    child_links_.DropSilent(Clock::System().Monotonic() - limit);
    SchedulePulse();
  });
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
    merger_.EmitUpTo(Clock::System().Now() - MergeWindow());
    ScheduleExpiry();
  });
}

void Head::SendBudgets() {
  const std::string budget = Encode(intake_.Budget(expected_nodes_));
  for (const NodeState& node : nodes_) {
    if (node.control != nullptr) Send(*node.control, Type::kBudget, budget);
  }
}

void Head::StoreReduced(const SealedBlock& block) {
  archive_->PutBlock({kReducedNode, std::string(kReducedGroup), block.sequence}, block.schema,
                     block.bytes, [](const Status&) {});
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
  for (const NodeState& node : nodes_) {
    if (node.control != nullptr) Send(*node.control, Type::kCounters, word);
  }
  AddNote(fmt::format("the processors' counters were {} at {}, as the user asked",
                      paused ? "paused" : "resumed", FormatTime(Clock::System().Now())));
}

void Head::JoinExporter(const std::vector<uint32_t>& nodes, const std::string& url) {
  for (const uint32_t index : nodes) {
    const NodeState& node = nodes_[index];
    if (node.control != nullptr) Send(*node.control, Type::kJoin, url);
  }
}

void Head::AskNodes(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) {
  constexpr Nanos kPatience = 2 * kSecond;
  queries_.Ask({next_query_++, std::move(spec), std::move(grid), kPatience}, children_.Active(), {},
               std::move(done));
}

// --- The end ---

void Head::Finish(bool launcher_gone) {
  if (state_ != State::kRunning) return;
  log::Debug("asked to finish: {} of {} nodes said goodbye", byes_, nodes_.size());
  state_ = State::kWaitingForNodes;
  finish_timer_ = loop_.After(launcher_gone ? kOrphanLimit : kFinishLimit, [this] { Seal(); });
  CheckNodesDone();
}

// Once every node of the step has come and gone there is nothing to wait for: the report is ready
// when srun asks for it.
void Head::CheckNodesDone() {
  const bool ending = state_ == State::kWaitingForNodes ||
                      (state_ == State::kRunning && byes_ != 0 && byes_ >= expected_nodes_);
  if (ending && gone_nodes_ == nodes_.size() && children_.done()) Seal();
}

void Head::Seal() {
  if (state_ != State::kRunning && state_ != State::kWaitingForNodes) return;
  state_ = State::kSealing;
  log::Debug("sealing the profile");
  loop_.Cancel(finish_timer_);
  server_.reset();
  questions_.reset();
  const Nanos now = Clock::System().Now();
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
  if (nodes_.size() < expected_nodes_) {
    AddNote(fmt::format("{} of {} nodes never reported: is Sonde installed there?",
                        expected_nodes_ - nodes_.size(), expected_nodes_));
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
