// The end of a large step: what its nodes still have to store, until the archive has acknowledged
// it.
//
//   bench_backfill NODES SECONDS ARCHIVE apart|joined
//
// NODES senders, as they are in the daemons, with rows that a sampler took on this machine at level
// 2, after a step of SECONDS; the head's intake and archive, as they are, on ARCHIVE, best a tmpfs.
// Time is simulated: a message needs 0.2 ms on its way, the head's network takes 1 Gbit/s, a node
// is ready when it has thinned its blocks (its CPU time, measured), and the head takes one message
// after the other, each in the CPU time it is measured to need, the archive's thread included. All
// nodes end in the same moment.
//
// apart: each node has a connection to the head. joined: the nodes send to 16 below the head, by
// two more on the way, and these join what comes, each in the CPU time that it is measured to need.
// The values of no two of 256 nodes are alike where they move: what is alike is the machine.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <queue>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "daemon/collect/sampler.h"
#include "daemon/head/record/archive_writer.h"
#include "daemon/head/record/block_intake.h"
#include "daemon/loop.h"
#include "daemon/tree/blocks/block_sender.h"
#include "series/block/joined.h"
#include "series/store/store.h"
#include "series/store/task_ranks.h"

namespace sonde {
namespace {

constexpr Nanos kStart = 1'790'000'000 * kSecond;
constexpr Nanos kLatency = 200 * kMicrosecond;
constexpr double kNetwork = 125e6;                // bytes a second
constexpr Nanos kDeadline = 1100 * kMillisecond;  // Node::kBlocksLimit
constexpr size_t kPhases = 256;
constexpr size_t kRelays = 16;          // right below the head
constexpr Nanos kBelow = 2 * kLatency;  // to one of these
constexpr size_t kBatch = 64;           // messages that the head's loop finds ready at once
constexpr uint64_t kProfileLimit = 64u << 20;

Nanos ProcessCpu() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

// What is allocated now; of all threads, for there is one arena.
double HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

// Keeps what is sent until the simulation has brought it to the head.
class QueueLink : public tree::Link {
 public:
  Status Send(uint8_t type, std::string_view payload) override {
    sent.emplace_back(payload);
    joined.push_back(type == static_cast<uint8_t>(tree::Type::kJoinedBlocks));
    return {};
  }
  void CloseWhenSent() override {}
  size_t queued() const override { return 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "head"; }
  std::vector<std::string> sent;
  std::vector<bool> joined;  // of these
};

// A node's groups. The series are those of a sampler on this machine; half of them stay as they
// are, as most devices of most nodes do, the others move at every tick: counters by whole steps,
// gauges by a few percent.
class Recording {
 public:
  Recording(size_t rows, uint32_t node) {
    static collect::Sampler& sampler = Sampled();
    schema_ = sampler.schema(collect::Group::kOs);
    const auto first = sampler.row(collect::Group::kOs);
    std::vector<double> row(first.begin(), first.end());
    std::mt19937 random(node);
    std::uniform_real_distribution<double> share(0, 1);
    for (size_t c = 0; c < row.size(); c += 2) row[c] = std::floor(row[c] * (0.5 + share(random)));
    for (size_t i = 0; i < rows; ++i) {
      for (size_t c = 0; c < row.size(); c += 2) {
        const bool counter = (*schema_)[c].metric.type == MetricType::kCounter;
        const double step = std::floor(share(random) * 1000);
        row[c] =
            counter ? row[c] + step : std::floor(row[c] * (1 + (share(random) - 0.5) / 20)) + step;
      }
      rows_.push_back(row);
    }
  }
  const Schema::Ptr& schema() const { return schema_; }
  // What a store with this phase seals in that many seconds, each with the second it is sealed in.
  std::vector<std::pair<Nanos, SealedBlock>> Blocks(double phase, int seconds,
                                                    const Schema::Ptr& schema) const {
    GroupStore::Options options;
    options.first_rows = 64 + static_cast<size_t>(phase * 64);  // as of 1024 nodes and more
    GroupStore store(options);
    std::vector<std::pair<Nanos, SealedBlock>> blocks;
    Nanos now = kStart;
    store.OnSeal([&](const SealedBlock& block) { blocks.emplace_back(now, block); });
    store.SetSchema(schema);
    for (int i = 1; i <= seconds; ++i) {
      now = kStart + i * kSecond;
      const auto& row = rows_[static_cast<size_t>(i) % rows_.size()];
      store.Append(now, {row.data(), schema->size()});
    }
    store.Seal();
    return blocks;
  }

 private:
  static collect::Sampler& Sampled() {
    static collect::Sampler sampler(collect::Sampler::Options{});
    sampler.Sample(kStart);
    return sampler;
  }
  Schema::Ptr schema_;
  std::vector<std::vector<double>> rows_;
};

// Its tasks' series, told from its first rank.
Schema::Ptr TaskSchema(const Schema& like, uint32_t node) {
  std::vector<Series> series;
  for (uint32_t task = 0; task < 4; ++task) {
    for (size_t i = 0; i < 12 && i < like.size(); ++i) {
      series.push_back(like[i]);
      series.back().tags.Set("task", std::to_string(4 * node + task));
    }
  }
  return RanksFrom(4 * node, Schema::Make(std::move(series)));
}

struct Event {
  Nanos time;
  uint32_t node;
  std::string message;  // at the head; else an acknowledgement, or nothing, at the node
  tree::BlockAck ack;
  enum class Kind : uint8_t { kRun, kMessage, kHead, kAck, kRelay, kToRelay } kind;
  bool joined = false;  // the message
  uint64_t number;
  bool operator>(const Event& o) const {
    return std::tie(time, number) > std::tie(o.time, o.number);
  }
};

struct Node {
  tree::BlockSender sender;
  QueueLink link;
  Nanos done = 0;
};

// A node right below the head.
struct Relay {
  tree::BlockSender sender;
  QueueLink link;
  Nanos free = 0;
  Nanos cpu = 0;
};

class Simulation {
 public:
  Simulation(uint32_t nodes, const std::string& archive, bool joined)
      : joined_(joined),
        writer_(loop_, archive),
        intake_(kProfileLimit, [this](const tree::BlockAck& ack) { acks_.push_back(ack); }),
        budget_(intake_.Budget(nodes)) {
    JobDescription job;
    job.cluster = "bench";
    job.id = {"1", "0"};
    job.start = kStart;
    job.expected_nodes = nodes;
    writer_.Create(job);
    nodes_ = std::vector<Node>(nodes);
    if (!joined) return;
    relays_ = std::vector<Relay>(kRelays);
    for (Relay& relay : relays_) {
      relay.sender.Use(&relay.link);
      relay.sender.SetJoins(tree::BlockSender::Joins::kForHead);
    }
  }

  void Prepare(int seconds);
  void End();
  void Report() const;

 private:
  void Add(Event event) {
    event.number = ++number_;
    events_.push(std::move(event));
  }
  tree::BlockSender Prototype(size_t phase, int seconds, uint32_t node);
  void RunNode(uint32_t node, Nanos now);
  void ToHead(uint32_t node, std::string message, bool joined, Nanos now);
  void RunRelay(uint32_t relay, const std::string* message, Nanos now);
  void TakeAtHead(const std::string& message, bool joined);
  void RunHead(Nanos now);

  const bool joined_;
  std::vector<Relay> relays_;
  Loop loop_;
  head::ArchiveWriter writer_;
  head::BlockIntake intake_;
  const tree::BlockBudget budget_;
  std::vector<tree::BlockAck> acks_;
  std::vector<Node> nodes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::deque<std::pair<std::string, bool>> arrived_;  // and whether it is joined
  size_t refused_ = 0;
  uint64_t number_ = 0;
  Nanos end_ = 0;
  Nanos network_free_ = 0;
  Nanos head_free_ = 0;
  Nanos head_cpu_ = 0;
  Nanos node_cpu_ = 0;
  size_t waiting_ = 0;
  size_t most_waiting_ = 0;
  size_t bytes_ = 0;
  size_t messages_ = 0;
  size_t before_ = 0;  // bytes a node had stored before the end
  double head_heap_ = 0;
  double head_heap_most_ = 0;
  size_t series_ = 0;
};

// A step until its end, of one node: everything it sends is stored at once.
tree::BlockSender Simulation::Prototype(size_t phase, int seconds, uint32_t node) {
  const Recording recording(128, node);
  series_ = recording.schema()->size() + TaskSchema(*recording.schema(), 0)->size();
  tree::BlockSender sender;
  sender.SetBudget(budget_);
  sender.SetMemory(8u << 20);
  sender.SetNode(static_cast<uint32_t>(phase));
  QueueLink link;
  sender.Use(&link);
  const double at = static_cast<double>(phase) / kPhases;
  auto os = recording.Blocks(at, seconds, recording.schema());
  auto task = recording.Blocks(at, seconds, TaskSchema(*recording.schema(), node));
  std::vector<std::tuple<Nanos, std::string, SealedBlock>> all;
  for (auto& [time, block] : os) all.emplace_back(time, "os", block);
  for (auto& [time, block] : task) all.emplace_back(time, GroupFrom(4 * node, "task"), block);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
  Nanos now = kStart;
  const auto run_until = [&](Nanos until) {
    while (true) {
      const Nanos next = sender.Run(now);
      for (const std::string& bytes : std::exchange(link.sent, {})) {
        const Status status = tree::DecodeEach<tree::BlockMessage>(bytes, [&](const auto& block) {
          sender.OnAck({block.node, block.group, block.sequence, 0});
        });
        if (!status.ok()) std::abort();
      }
      if (next > until) break;
      now = std::max(next, now + kMillisecond);
    }
    now = until;
  };
  for (const auto& [time, group, block] : all) {
    if (time - kMillisecond > now) run_until(time - kMillisecond);
    sender.Add(group, block);
  }
  sender.Use(nullptr);
  return sender;
}

void Simulation::Prepare(int seconds) {
  std::vector<tree::BlockSender> prototypes;
  for (uint32_t p = 0; p < kPhases; ++p) prototypes.push_back(Prototype(p, seconds, p));
  end_ = kStart + seconds * kSecond;
  before_ = prototypes[0].shelf().stored_bytes();
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].sender = prototypes[i % kPhases];
    nodes_[i].sender.SetNode(i);
    nodes_[i].sender.Use(&nodes_[i].link);
  }
}

void Simulation::RunNode(uint32_t index, Nanos now) {
  Node& node = nodes_[index];
  const Nanos next = node.sender.Run(now);
  for (std::string& bytes : std::exchange(node.link.sent, {})) {
    if (joined_) {
      Add({.time = now + kBelow,
           .node = static_cast<uint32_t>(index % kRelays),
           .message = std::move(bytes),
           .kind = Event::Kind::kToRelay});
    } else {
      ToHead(index, std::move(bytes), false, now);
    }
  }
  if (node.done == 0 && node.sender.delivered()) node.done = now;
  if (node.done == 0 && next != tree::BlockSender::kNever) {
    Add({.time = next, .node = index, .kind = Event::Kind::kRun});
  }
}

void Simulation::ToHead(uint32_t node, std::string message, bool joined, Nanos now) {
  bytes_ += message.size();
  ++messages_;
  network_free_ = std::max(network_free_, now + kLatency) +
                  static_cast<Nanos>(static_cast<double>(message.size() + 60) / kNetwork * 1e9);
  Add({.time = network_free_,
       .node = node,
       .message = std::move(message),
       .kind = Event::Kind::kMessage,
       .joined = joined});
}

// What has come for it is passed on when it has done what it did before.
void Simulation::RunRelay(uint32_t index, const std::string* message, Nanos now) {
  Relay& relay = relays_[index];
  const Nanos began = ProcessCpu();
  if (message != nullptr) {
    const Status status = tree::DecodeEach<tree::BlockMessage>(
        *message, [&](tree::BlockMessage block) { relay.sender.PassOn(std::move(block)); });
    if (!status.ok()) std::abort();
  }
  now = std::max(now, relay.free);
  const Nanos next = relay.sender.Run(now);
  const Nanos cpu = ProcessCpu() - began;
  relay.cpu += cpu;
  relay.free = now + cpu;
  const std::vector<bool> joined = std::exchange(relay.link.joined, {});
  std::vector<std::string> sent = std::exchange(relay.link.sent, {});
  for (size_t i = 0; i < sent.size(); ++i) {
    ToHead(index, std::move(sent[i]), joined[i], relay.free);
  }
  if (next != tree::BlockSender::kNever) {
    Add({.time = std::max(next, relay.free), .node = index, .kind = Event::Kind::kRelay});
  }
}

void Simulation::TakeAtHead(const std::string& message, bool joined) {
  if (joined) {
    const auto blocks = ReadJoined(message);
    if (!blocks.ok()) std::abort();
    return intake_.TakeJoined(*blocks, message, writer_);
  }
  const Status status = tree::DecodeEach<tree::BlockMessage>(
      message,
      [&](tree::BlockMessage block) { intake_.Take(std::move(block), nodes_.size(), writer_); });
  if (!status.ok()) std::abort();
}

// All that the head does for what lies there, until the acknowledgements are on their way.
void Simulation::RunHead(Nanos now) {
  if (arrived_.empty() || head_free_ > now) return;
  const double heap = HeapBytes();
  const Nanos began = ProcessCpu();
  size_t taken = 0;
  for (; taken < kBatch && !arrived_.empty(); ++taken) {
    waiting_ -= arrived_.front().first.size();
    TakeAtHead(arrived_.front().first, arrived_.front().second);
    arrived_.pop_front();
  }
  // To look at the heap is no work of the head's.
  const Nanos looked = ProcessCpu();
  head_heap_most_ = std::max(head_heap_most_, head_heap_ + HeapBytes() - heap);
  const Nanos looking = ProcessCpu() - looked;
  // The archive's thread posts what it has stored; those that wait for a schema are heard later.
  bool idle = false;
  writer_.WhenIdle([&] { idle = true; });
  while (!idle) {
    loop_.After(100 * kMicrosecond, [this] { loop_.Stop(); });
    loop_.Run();
  }
  const Nanos cpu = ProcessCpu() - began - looking;
  head_heap_ += HeapBytes() - heap;
  head_cpu_ += cpu;
  head_free_ = now + cpu;
  for (const tree::BlockAck& ack : std::exchange(acks_, {})) {
    if (ack.result == tree::BlockAck::kRefused) ++refused_;
    Add({.time = head_free_ + kLatency, .node = ack.node, .ack = ack, .kind = Event::Kind::kAck});
  }
  if (!arrived_.empty()) Add({.time = head_free_, .kind = Event::Kind::kHead});
}

void Simulation::End() {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const Nanos began = ProcessCpu();
    nodes_[i].sender.Finish(end_, end_ + kDeadline);
    const Nanos cpu = ProcessCpu() - began;
    node_cpu_ += cpu;
    Add({.time = end_ + cpu, .node = i, .kind = Event::Kind::kRun});
  }
  while (!events_.empty() && events_.top().time < end_ + 3 * kSecond) {
    const Event event = events_.top();
    events_.pop();
    switch (event.kind) {
      case Event::Kind::kRun:
        RunNode(event.node, event.time);
        break;
      case Event::Kind::kMessage:
        waiting_ += event.message.size();
        most_waiting_ = std::max(most_waiting_, waiting_);
        if (arrived_.empty()) {
          Add({.time = std::max(event.time, head_free_), .kind = Event::Kind::kHead});
        }
        arrived_.emplace_back(event.message, event.joined);
        break;
      case Event::Kind::kToRelay:
        RunRelay(event.node, &event.message, event.time);
        break;
      case Event::Kind::kRelay:
        RunRelay(event.node, nullptr, event.time);
        break;
      case Event::Kind::kHead:
        RunHead(event.time);
        break;
      case Event::Kind::kAck:
        nodes_[event.node].sender.OnAck(event.ack);
        RunNode(event.node, event.time);
        break;
    }
  }
}

void Simulation::Report() const {
  std::vector<double> done;
  size_t late = 0;
  for (const Node& node : nodes_) {
    late += node.done == 0 || node.done > end_ + kDeadline ? 1 : 0;
    if (node.done != 0) done.push_back(static_cast<double>(node.done - end_) / 1e9);
  }
  std::sort(done.begin(), done.end());
  const auto at = [&](double share) {
    return done.empty() ? 0
                        : done[static_cast<size_t>(share * static_cast<double>(done.size() - 1))];
  };
  const auto n = static_cast<double>(nodes_.size());
  std::printf("figure nodes %zu 1\n", nodes_.size());
  std::printf("figure series_of_a_node %zu 1\n", series_);
  std::printf("figure share_per_node %.0f bytes\n", static_cast<double>(budget_.share));
  std::printf("figure stored_before_per_node %zu bytes\n", before_);
  std::printf("figure sent_at_end_per_node %.0f bytes\n", static_cast<double>(bytes_) / n);
  std::printf("figure messages_at_end %zu 1\n", messages_);
  std::printf("figure stored_half %.3f s\n", at(0.5));
  std::printf("figure stored_99_percent %.3f s\n", at(0.99));
  std::printf("figure stored_all %.3f s\n", at(1));
  std::printf("figure not_in_time %zu nodes\n", late);
  std::printf("figure refused %zu 1\n", refused_);
  std::printf("figure node_cpu %.2f ms\n", static_cast<double>(node_cpu_) / n / 1e6);
  std::printf("figure head_cpu %.3f s\n", static_cast<double>(head_cpu_) / 1e9);
  std::printf("figure head_cpu_per_node %.2f us\n", static_cast<double>(head_cpu_) / n / 1e3);
  Nanos relay = 0;
  for (const Relay& one : relays_) relay = std::max(relay, one.cpu);
  if (joined_) std::printf("figure relay_cpu_at_most %.3f s\n", static_cast<double>(relay) / 1e9);
  std::printf("figure head_waiting_at_most %.2f MB\n", static_cast<double>(most_waiting_) / 1e6);
  std::printf("figure head_heap %.1f MB\n", head_heap_most_ / 1e6);
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  mallopt(M_ARENA_MAX, 1);  // as in the daemons
  const std::string_view way = argc == 5 ? argv[4] : "";
  if (way != "apart" && way != "joined") {
    std::fprintf(stderr, "usage: bench_backfill NODES SECONDS ARCHIVE apart|joined\n");
    return 2;
  }
  sonde::Simulation simulation(static_cast<uint32_t>(std::atoi(argv[1])), argv[3], way == "joined");
  simulation.Prepare(std::atoi(argv[2]));
  simulation.End();
  simulation.Report();
  return 0;
}
