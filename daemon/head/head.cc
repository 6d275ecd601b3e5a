#include "daemon/head/head.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/log.h"
#include "daemon/head/end_state.h"
#include "daemon/own_cost.h"
#include "daemon/tree/auth.h"
#include "profiles/archive_dir.h"
#include "profiles/report.h"
#include "profiles/summary.h"

namespace sonde::head {

using tree::Type;

namespace {

// Of so many ticks the head knows which nodes are in them.
constexpr size_t kRemember = 1024;

constexpr std::string_view kReducedGroup = "reduced";

// A head that srun has started begins a little later than the step.
Nanos StartOf(const LaunchMessage& launch) {
  constexpr Nanos kMost = 10 * kSecond;  // else somebody's clock was set meanwhile
  const Nanos now = Clock::System().Now();
  return launch.begun <= now && launch.begun > now - kMost ? launch.begun : now;
}

JobDescription Describe(const LaunchMessage& launch, const Config& config) {
  JobDescription job = launch.job;
  if (!config.keep_environment) job.environment.clear();
  job.launch_host = launch.role == Role::kHead ? HostName() : launch.host;
  if (!launch.acting) job.start = StartOf(launch);
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

}  // namespace

Head::Head(Loop& loop, const LaunchMessage& launch, const Config& config,
           std::function<void(std::string)> done)
    : loop_(loop),
      launch_(launch),
      config_(config),
      done_(std::move(done)),
      archive_path_(PathOf(launch, config)),
      record_(Describe(launch, config)),
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
                                    away_timer_, store_timer_, hand_over_timer_}) {
    loop_.Cancel(timer);
  }
}

Status Head::Start(UniqueFd listen) {
  archive_ = std::make_unique<ArchiveWriter>(loop_, archive_path_, RetentionOf(config_));
  archive_->OnStored([this] { children_.FlushBlockAcks(); });
  if (launch_.acting) Inherit();
  if (launch_.acting) {
    archive_->Continue(record_.Description());
  } else {
    archive_->Create(record_.Description());
  }
  record_.OnSeal([this](const SealedBlock& block) { StoreReduced(block); });
  source_ = std::make_shared<LiveSource>(record_, SourceWays());
  questions_ =
      std::make_unique<Questions>(loop_, source_, record_, launch_.job.period,
                                  [this](uint32_t node, const tree::AnswerMessage& answer) {
                                    SendTo(node, Type::kAnswer, Encode(answer));
                                  });
  StartAlarms();
  forwarding_ = std::make_unique<Forwarding>(
      loop_, launch_.config_path, config_, archive_path_, record_.Description(), !launch_.InStep(),
      [this](std::string note) { AddNote(std::move(note)); });
  serve_timer_ = loop_.After(kServeAfter, [this] { Serve(); });
  if (launch_.role == Role::kSolo && launch_.job.job_nodes > 1) {
    AddNote(
        fmt::format("only {}, 1 of the job's {} nodes, was watched: that is where the script "
                    "runs; steps of srun are watched on all of theirs",
                    launch_.host, launch_.job.job_nodes));
  }
  return listen ? ListenForNodes(std::move(listen)) : Status();
}

// What other threads ask for is done on the loop's, unless this is gone by then.
LiveSource::Ways Head::SourceWays() {
  const auto post = [this, alive = std::weak_ptr<bool>(alive_)](Loop::Task task) {
    loop_.Post([alive, task = std::move(task)] {
      if (!alive.expired()) task();
    });
  };
  return {.ask =
              [this, post](QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) {
                post([this, spec = std::move(spec), grid = std::move(grid),
                      done = std::move(done)] { AskNodes(spec, grid, done); });
              },
          .pause = [this, post](bool paused) { post([this, paused] { PauseCounters(paused); }); },
          .join =
              [this, post](std::vector<uint32_t> nodes, std::string target) {
                post([this, nodes = std::move(nodes), target = std::move(target)] {
                  for (const uint32_t index : nodes) SendTo(index, Type::kJoin, target);
                });
              },
          .push =
              [this, post](uint32_t node, std::string bytes) {
                post([this, node, bytes = std::move(bytes)] { SendTo(node, Type::kPush, bytes); });
              },
          .tree = [this, post](auto done) { post([this, done] { done(TreeNow()); }); }};
}

Status Head::ListenForNodes(UniqueFd listen) {
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
  ListenToThoseThatComeBack();
  if (launch_.acting) {
    finish_timer_ = loop_.After(kTakeoverLimit, [this] {
      finish_timer_ = 0;
      CheckNodesDone();
    });
  }
  return {};
}

// --- Ticks and blocks ---

// Long enough for a late frame to come through the tree, short enough for a live view.
Nanos Head::MergeWindow() const { return std::max(2 * launch_.job.period, kSecond); }

void Head::OnRow(const tree::TickMerger::Row& row, bool late) {
  children_.HandOnLost(row.tick, row.nodes);
  if (!late) children_.StandInForMissing(row.tick, row.nodes);
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
    source_->ticks()->Tell();
    ScheduleExpiry();
  }
  StoreWithin(rows_to_store_ >= kStoreAfterRows ? 0 : kStoreAfter);
  coverage_.OnRow(row.tick, row.nodes);
  UpdateCoverage();
  if (questions_ != nullptr) questions_->OnRow(row.tick, late);
  child_links_.PulseSoon();
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
  // One that is only missing from a row is back in the next, mostly.
  const uint32_t first = info.nodes.first();
  const bool there = first < nodes_.size() && nodes_[first].control != nullptr;
  if (!info.lost || !there) StoreWithin(kStoreEndedAfter);
}

// Phases and remarks are no blocks that could be stored by and by: all that is known is stored
// again after some seconds, and the nodes keep what they told until then.
void Head::OnMoments(const collect::Moments& moments) {
  record_.AddMoments(moments);
  moments_changed_ = true;
  StoreWithin(kStoreMomentsAfter);
}

void Head::UpdateCoverage() { record_.SetCoverage(coverage_.Now(expected_nodes_)); }

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
                          .limit = config_.profile_limit,
                          .keep = true},
                         [](const Status&) {});
  if (!refused.ok()) log::Warning("rows are not stored: {}", refused.message());
}

// --- HTTP ---

// The report does not wait longer for those who are being answered when the step ends.
constexpr Nanos kServeAtEnd = 200 * kMillisecond;

void Head::Serve() {
  if (config_.http == "off" || state_ != State::kRunning) return;
  web::Server::Options options;
  if (config_.http != "loopback") options.address = config_.http;
  options.port = config_.http_port;
  options.token = tree::HttpToken(launch_.key);
  options.nan_null = config_.opentsdb_nan_null;
  options.cors = config_.http_cors;
  options.niceness = kNicenessOfClients;
  options.limits.stop_timeout = kServeAtEnd;
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
      loop_, record_, launch_, config_, std::exchange(inherited_alarms_, {}),
      Alarms::Callbacks{[this](const std::string& needs) { SendToAll(Type::kDerive, needs); },
                        [this](const collect::Moments& moments) { OnMoments(moments); },
                        [this](std::string note) { AddNote(std::move(note)); },
                        [this] { StoreWithin(kStoreAlarmsAfter); }});
  source_->UseAlarms(alarms_.get());
}

std::vector<web::TreeEdge> Head::TreeNow() const {
  const auto record = record_.Job();
  const JobDescription& job = *record;
  std::vector<web::TreeEdge> edges;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].gone) continue;
    const uint32_t parent = parents_.Of(i);
    edges.push_back({parent < job.nodes.size() ? job.nodes[parent].host : job.launch_host + ":head",
                     job.nodes[i].host});
  }
  return edges;
}

void Head::AskNodes(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) {
  constexpr Nanos kPatience = 2 * kSecond;
  queries_.Ask({next_query_++, std::move(spec), std::move(grid), kPatience}, children_.Active(), {},
               std::move(done));
}

// --- The end ---

void Head::Finish(bool launcher_gone) {
  if (state_ != State::kRunning) return;
  if (launch_.acting) {
    CheckNodesDone();
    hand_over_timer_ = loop_.After(kHandOverAfter, [this] { LeaveToNext(); });
    return;
  }
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
  // Also ticks of nodes whose clocks are ahead of ours: the last row comes after them all, no
  // sooner than what it has more than the one before was counted.
  merger_.EmitUpTo(INT64_MAX);
  record_.Append(now > whole_.tick ? now : whole_.tick + launch_.job.period,
                 ended_.Final(merger_.series().size()), merger_.series());
  record_.Seal();
  record_.SetCoverage(coverage_.AtEnd(expected_nodes_));
  const double kills = OutOfMemoryKills(record_.Snapshot());
  record_.Update([&](JobDescription& j) {
    j.end = now;
    j.exit_status = ends_.exit_status;
    j.state = byes_ == 0 ? EndState::kLost : StateOf(ends_, kills);
  });
  NoteMissing();
  for (std::string& note : intake_.Notes(record_.Job()->nodes)) AddNote(std::move(note));
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
  forwarding_->End();
  done_(text);
}

}  // namespace sonde::head
