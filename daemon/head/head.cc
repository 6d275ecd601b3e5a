#include "daemon/head/head.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "daemon/head/descriptors.h"
#include "daemon/head/step_tree.h"
#include "daemon/link/address.h"
#include "daemon/link/send.h"
#include "daemon/link/trust/auth.h"
#include "daemon/tree/blocks/block_joiner.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/records/keys.h"

namespace sonde::head {

using tree::Type;

namespace {

// A head that srun has started begins a little later than the step.
Nanos StartOf(const LaunchMessage& launch, Nanos now) {
  constexpr Nanos kMost = 10 * kSecond;  // else somebody's clock was set meanwhile
  return launch.begun <= now && launch.begun > now - kMost ? launch.begun : now;
}

JobDescription Describe(const LaunchMessage& launch, const Config& config, Nanos now) {
  JobDescription job = launch.job;
  if (!config.keep_environment) job.environment.clear();
  job.launch_host = launch.role == Role::kHead ? HostName() : launch.host;
  if (!launch.acting) job.start = StartOf(launch, now);
  job.version = SONDE_VERSION;
  return job;
}

// SONDE_ARCHIVE of the user is a pattern as well.
std::string PathOf(const LaunchMessage& launch, Config config) {
  if (!launch.archive.empty()) config.archive = launch.archive;
  return ArchivePath(config, launch.job.user, launch.job.uid, launch.home);
}

}  // namespace

Head::Head(Loop& loop, StepClock& clock, const LaunchMessage& launch, const Config& config,
           std::function<void(std::string)> done)
    : loop_(loop),
      clock_(clock),
      launch_(launch),
      config_(config),
      done_(std::move(done)),
      archive_path_(PathOf(launch, config)),
      record_(Describe(launch, config, clock.Now()),
              launch.role == Role::kHead ? StepRecord::Rows::kCome : StepRecord::Rows::kComeAgain),
      queries_(loop),
      intake_(config.profile_limit,
              [this](const tree::BlockAck& ack) { rows_.children().SendBlockAck(ack); }),
      rows_(loop, clock, record_, queries_, *this),
      child_links_(loop, launch_.key, launch.job.period, rows_.children(),
                   [this] { CheckNodesDone(); }),
      nodes_(loop, clock, config, launch.job.expected_nodes, launch.acting, record_, rows_,
             child_links_, *this),
      exporters_(
          loop, clock,
          [this](uint32_t node, Type type, std::string_view payload) {
            return nodes_.SendTo(node, type, payload);
          },
          [this](uint32_t node) { return record_.Host(node); }),
      rivals_(loop, launch_.key, [this](const tree::Place& place) { YieldTo(place); }),
      slurm_(loop, launch_, config_, record_) {
  if (!launch_.has_key) launch_.key = tree::Random();  // no nodes to come: for the HTTP token
}

Head::~Head() {
  for (const Loop::TimerId timer :
       {serve_timer_, finish_timer_, hand_over_timer_, yield_timer_, schema_timer_}) {
    loop_.Cancel(timer);
  }
}

// What other threads ask for is done on the loop's, unless the head is gone by then.
class Head::NodesFromAnyThread final : public StepNodes {
 public:
  explicit NodesFromAnyThread(Head& head) : head_(head), loop_(head.loop_), alive_(head.alive_) {}

  void Ask(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) override {
    Post([&head = head_, spec = std::move(spec), grid = std::move(grid), done = std::move(done)] {
      head.AskNodes(spec, grid, done);
    });
  }
  void PauseCounters(bool paused) override {
    Post([&head = head_, paused] { head.PauseCounters(paused); });
  }
  void Join(std::vector<uint32_t> nodes, web::ScrapeTarget target,
            web::StepControl::JoinCallback done) override {
    Post([&head = head_, nodes = std::move(nodes), target = std::move(target),
          done = std::move(done)] { head.exporters_.Join(nodes, target, done); });
  }
  void Exporters(web::StepControl::ExportersCallback done) override {
    Post([&head = head_, done = std::move(done)] { done(head.exporters_.List()); });
  }
  void Unjoin(std::string instance, web::StepControl::UnjoinCallback done) override {
    Post([&head = head_, instance = std::move(instance), done = std::move(done)] {
      done(head.exporters_.Unjoin(instance));
    });
  }
  void Push(uint32_t node, std::string bytes) override {
    Post([&head = head_, node, bytes = std::move(bytes)] {
      head.nodes_.SendTo(node, Type::kPush, bytes);
    });
  }
  void Tree(TreeDone done) override {
    Post([&head = head_, done = std::move(done)] {
      done(EdgesOf(*head.record_.Job(), head.nodes_));
    });
  }
  void Links(LinksDone done) override {
    Post([&head = head_, done = std::move(done)] {
      done(LinksOf(*head.record_.Job(), head.nodes_, head.rows_, head.clock_.Now()));
    });
  }

 private:
  void Post(Loop::Task task) {
    loop_.Post([alive = alive_, task = std::move(task)] {
      if (!alive.expired()) task();
    });
  }

  Head& head_;
  Loop& loop_;
  const std::weak_ptr<bool> alive_;
};

Status Head::Start(UniqueFd listen) {
  archive_ = std::make_unique<ArchiveWriter>(loop_, archive_path_, RetentionOf(config_));
  archive_->OnStored([this] { rows_.children().FlushBlockAcks(); });
  store_ = std::make_unique<HeadStore>(loop_, *archive_, config_.profile_limit, record_, rows_,
                                       nodes_, static_cast<HeadStore::Owner&>(*this));
  std::string alarms;  // as another head had changed them
  if (launch_.acting) {
    rows_.SetNotAlone();
    rows_.Gather();
    alarms = store_->Inherit(archive_path_);
    archive_->Continue(record_.Description(), launch_.host);
  } else {
    archive_->Create(record_.Description());
  }
  record_.OnSeal([this](const SealedBlock& block) { store_->StoreRows(block); });
  source_ = std::make_shared<LiveSource>(
      record_, std::make_shared<NodesFromAnyThread>(*this),
      std::make_shared<ArchivedSeries>(archive_path_, keys::ProfileKey(*record_.Job())));
  questions_ =
      std::make_unique<Questions>(loop_, source_, record_, launch_.job.period,
                                  [this](uint32_t node, const tree::AnswerMessage& answer) {
                                    nodes_.SendTo(node, Type::kAnswer, Encode(answer));
                                  });
  alarms_ = std::make_unique<Alarms>(loop_, clock_, record_, launch_, config_, alarms,
                                     static_cast<Alarms::Owner&>(*this));
  source_->UseAlarms(alarms_.get());
  source_->SetProfileLimit(config_.profile_limit);
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
  return listen ? Listen(std::move(listen)) : Status();
}

// --- Nodes ---

Status Head::Listen(UniqueFd socket) {
  nodes_.ChooseSuccessors();
  rendezvous_ = std::make_unique<Rendezvous>(
      loop_, launch_.key, launch_.place, static_cast<Rendezvous::Owner&>(*this), nodes_.expected());
  SONDE_RETURN_IF_ERROR(rendezvous_->Listen(std::move(socket)));
  if (launch_.acting) {
    rivals_.WatchAll(launch_.before);
    finish_timer_ = loop_.After(Nodes::kTakeoverLimit, [this] {
      finish_timer_ = 0;
      CheckNodesDone();
    });
  }
  return {};
}

void Head::OnProven(const tree::Registration& who, std::unique_ptr<tree::Link> link) {
  const Result<uint32_t> index = AddNode(who, std::move(link));
  if (!index.ok()) log::Warning("node {} refused: {}", who.host, index.status().message());
}

Result<uint32_t> Head::AddNode(const tree::Registration& who, std::unique_ptr<tree::Link> control) {
  // The node comes again, to the next head.
  if (state_ == State::kLeaving)
    return Status(Code::kUnavailable, "another node acts as head soon");
  if (nodes_.HasCome(who, *control)) {
    return Status(Code::kUnavailable, "it is connected; its gateway was slow");
  }
  if (const Status bad = CheckNode(who); !bad.ok()) {
    Send(*control, Type::kOver, "");
    return bad;
  }
  const uint32_t index = nodes_.Add(who, std::move(control));
  rows_.Begin();
  return index;
}

Status Head::CheckNode(const tree::Registration& who) const {
  if (state_ != State::kRunning && state_ != State::kWaitingForNodes) {
    return {Code::kUnavailable, "the step is over"};
  }
  return nodes_.Check(who);
}

void Head::Greet(uint32_t node, tree::Link& control) {
  NoteDescriptors();
  Send(control, Type::kWelcome,
       Encode(tree::Welcome{node, config_.fanout, static_cast<uint64_t>(clock_.Now()),
                            static_cast<uint64_t>(record_.Job()->start), number_}));
  Send(control, Type::kBudget, Encode(intake_.Budget(nodes_.expected())));
  if (nodes_.MayBeGateway(control)) Send(control, Type::kGateway, "");
  if (intake_.Joins(nodes_.expected())) Send(control, Type::kJoinBlocks, "\1");
  if (counters_paused_) Send(control, Type::kCounters, "\1");
  if (const std::string needs = alarms_->OnNode(node); !needs.empty()) {
    Send(control, Type::kDerive, needs);
  }
}

void Head::OnRegistered(bool more) {
  if (more) SendBudgets();
  store_->OnNode();
}

// More nodes than gateways leave over come by themselves: the gateways' ports may be taken, or
// their names lead nowhere. Then all may come.
void Head::NoteDescriptors() {
  if (told_descriptors_) return;
  const uint64_t nodes = nodes_.expected();
  const bool gateways = !launch_.acting && launch_.job.het_job.empty() &&
                        nodes_.direct() <= ConnectionsFor(nodes, config_.direct_nodes);
  std::string too_few =
      TooFewDescriptors(launch_.acting ? "the acting head's host" : "the host of srun", nodes,
                        gateways ? config_.direct_nodes : nodes, config_.fanout, DescriptorLimit());
  told_descriptors_ = !too_few.empty();
  if (told_descriptors_) AddNote(std::move(too_few));
}

void Head::SendBudgets() {
  nodes_.SendToAll(Type::kBudget, Encode(intake_.Budget(nodes_.expected())));
  if (intake_.Joins(nodes_.expected())) nodes_.SendToAll(Type::kJoinBlocks, "\1");
}

Status Head::OnAsk(uint32_t node, std::string_view payload) {
  tree::AskMessage ask;
  SONDE_RETURN_IF_ERROR(Decode(payload, ask));
  if (questions_ == nullptr) return {};  // the step is over
  return questions_->OnAsk(node, ask);
}

void Head::OnGone(uint32_t node) {
  store_->OnNodeGone();
  exporters_.OnGone(node);
  if (questions_ != nullptr) questions_->OnGone(node);
  if (alarms_ != nullptr) alarms_->OnGone(node);
}

void Head::OnStanding(const tree::Place& place, bool away) {
  if (!away) {
    rivals_.Forget(place.index);
    if (rivals_.empty() && !yield_when_stored_) out_of_reach_ = 0;
    return;
  }
  if (out_of_reach_ == 0) out_of_reach_ = clock_.Now();
  rows_.SetNotAlone();
  rivals_.Watch(place);
}

// --- What comes from them ---

void Head::OnBlock(tree::BlockMessage block) {
  intake_.Take(std::move(block), nodes_.size(), *archive_);
  AwaitSchemas();
}

// In a smaller step nobody was asked to join: all releases read all that is stored of it.
void Head::OnJoinedBlocks(const JoinedBlocks& joined, std::string_view bytes) {
  if (intake_.Joins(nodes_.expected())) {
    intake_.TakeJoined(joined, bytes, *archive_);
    return AwaitSchemas();
  }
  for (tree::BlockMessage& block : tree::TakeApart(joined)) OnBlock(std::move(block));
}

void Head::AwaitSchemas() {
  if (schema_timer_ != 0) return;
  const Nanos due = intake_.AskAgain();
  if (due == BlockIntake::kNever) return;
  schema_timer_ = loop_.At(due, [this] {
    schema_timer_ = 0;
    AwaitSchemas();
  });
}

void Head::OnMoments(const collect::Moments& moments) {
  record_.AddMoments(moments);
  store_->OnMoments();
}

void Head::OnNewRow(const tree::TickMerger::Row& row, const std::vector<Series>& series) {
  alarms_->OnRow(row, series);
  source_->ticks()->Tell();
}

void Head::OnRecorded(Nanos tick, bool late) {
  NoteClock();
  store_->OnRow();
  if (questions_ != nullptr) questions_->OnRow(tick, late);
  child_links_.PulseSoon();
}

void Head::OnLastValues(uint32_t first, bool lost) {
  // A node that is only missing from a row is mostly back in the next.
  if (!lost || !nodes_.connected(first)) store_->OnLastValues();
}

void Head::OnStateStored() {
  if (const auto acting = std::exchange(yield_when_stored_, {})) return YieldTo(*acting);
  if (std::exchange(leave_when_stored_, false)) LeaveToNext();
}

// --- HTTP ---

// The report does not wait longer for those who are being answered when the step ends.
constexpr Nanos kServeAtEnd = 200 * kMillisecond;

void Head::Serve() {
  if (config_.http == "off" || state_ != State::kRunning) return;
  web::Server::Options options;
  if (config_.http != "loopback") {
    options.address = config_.http;
    options.other_ports = tree::PortsOf(config_.port_range);
  }
  options.port = config_.http_port;
  options.token = tree::HttpToken(launch_.key);
  options.nan_null = config_.opentsdb_nan_null;
  options.cors = config_.http_cors;
  options.niceness = kNicenessOfClients;
  options.clock = &clock_;
  options.limits.stop_timeout = kServeAtEnd;
  Result<std::unique_ptr<web::Server>> server = web::Server::Start(options, source_);
  if (!server.ok()) {
    return AddNote(fmt::format("no web server: {}", server.status().message()));
  }
  server_ = *std::move(server);
  archive_->PutEndpoint({record_.Description().launch_host, options.address, server_->port(),
                         options.token, ::getpid()});
}

void Head::PauseCounters(bool paused) {
  if (std::exchange(counters_paused_, paused) == paused) return;
  const std::string_view word(paused ? "\1" : "\0", 1);
  nodes_.SendToAll(Type::kCounters, word);
  AddNote(fmt::format("the processors' counters were {} at {}, as the user asked",
                      paused ? "paused" : "resumed", FormatTime(clock_.Now())));
}

void Head::AskNodes(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) {
  constexpr Nanos kPatience = 2 * kSecond;
  queries_.Ask({next_query_++, std::move(spec), std::move(grid), kPatience},
               rows_.children().Active(), {}, std::move(done));
}

}  // namespace sonde::head
