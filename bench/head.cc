// What a head spends on the nodes of steps of 1,000, 10,000 and 100,000: CPU time per node of
// registering, being told a parent, the first ticks, saying goodbye, closing, and of coming to an
// acting head; and CPU time per tick after the first. A tree that scales costs the same per node
// and tick, whatever their number.
//
// The head is the real one; the nodes are made here, since no machine of a developer has so many:
// they speak over links in memory, come in random order, and only the head's children send frames,
// merged as the tree's shape has them. With switches a rack has 48 nodes.
// usage: bench_head [NODES...]
#include "daemon/head/head.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "daemon/link/send.h"
#include "daemon/loop.h"
#include "daemon/tree/uplink.h"
#include "tests/unit/head_ends.h"
#include "tests/unit/temp_dir.h"

namespace sonde::head {
namespace {

using tree::kHeadIndex;
using tree::Type;

constexpr uint32_t kFanout = 16;
constexpr uint32_t kRack = 48;
constexpr Nanos kPeriod = kSecond;
constexpr int kFirstTicks = 34;  // until a block of rows has been stored, with all of its nodes
constexpr int kTicks = 20;
constexpr size_t kMetrics = 300;

double CpuMicroseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

void Die(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "bench_head: {}\n", status.message());
  std::exit(1);
}

// What the head says to the node goes to `heard`.
class ListeningEnd final : public HeadEnd {
 public:
  using Heard = std::function<void(Type type, std::string_view payload)>;
  explicit ListeningEnd(Heard heard) : heard_(std::move(heard)) {}
  Status Send(uint8_t type, std::string_view payload) override {
    heard_(static_cast<Type>(type), payload);
    return {};
  }

 private:
  const Heard heard_;
};

struct Said {
  HeadEnd* head_end;
  Type type;
  std::string payload;
};

// What the node says waits until the head is to hear it.
class WaitingEnd final : public HeadEnd {
 public:
  WaitingEnd(HeadEnd& head, std::vector<Said>& said) : head_(head), said_(said) {}
  Status Send(uint8_t type, std::string_view payload) override {
    said_.push_back({&head_, static_cast<Type>(type), std::string(payload)});
    return {};
  }

 private:
  HeadEnd& head_;
  std::vector<Said>& said_;
};

struct Node {
  uint32_t id = 0;              // as Slurm numbers it
  HeadEnd* head_end = nullptr;  // the head's
  uint32_t parent = kHeadIndex;
  std::unique_ptr<WaitingEnd> link;
  std::unique_ptr<tree::Uplink> uplink;  // of the head's children
  tree::NodeSet below;                   // with itself
};

Schema::Ptr MakeSchema() {
  std::vector<Series> series(kMetrics);
  for (size_t i = 0; i < kMetrics; ++i) {
    series[i].metric.name = fmt::format("bench_metric_{}_total", i);
    series[i].metric.type = i % 3 == 0 ? MetricType::kGauge : MetricType::kCounter;
  }
  return Schema::Make(std::move(series));
}

class Step {
 public:
  Step(uint32_t nodes, bool switches, bool acting)
      : switches_(switches), acting_(acting), nodes_(nodes) {
    std::vector<uint32_t> ids(nodes);
    std::iota(ids.begin(), ids.end(), 0u);
    std::shuffle(ids.begin(), ids.end(), std::mt19937(nodes));
    for (uint32_t i = 0; i < nodes; ++i) nodes_[i].id = ids[i];
    LaunchMessage launch;
    launch.role = Role::kHead;
    launch.acting = acting;
    launch.archive = directory_.path();
    launch.job.id = {"7", "0"};
    launch.job.start = Clock::System().Now();
    launch.job.expected_nodes = nodes;
    launch.job.period = kPeriod;
    Config config;
    config.fanout = kFanout;
    config.http = "off";
    head_ = std::make_unique<Head>(loop_, clock_, launch, config, [this](std::string) {
      over_ = true;
      loop_.Stop();
    });
    Die(head_->Start({}));
  }

  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  bool over() const { return over_; }

  // All come, in the order of their indexes; to an acting head in that of their numbers.
  void Register() {
    std::vector<uint32_t> order(size());
    std::iota(order.begin(), order.end(), 0u);
    if (acting_) {
      std::sort(order.begin(), order.end(),
                [this](uint32_t a, uint32_t b) { return nodes_[a].id < nodes_[b].id; });
    }
    for (const uint32_t i : order) {
      auto end = std::make_unique<ListeningEnd>(
          [this, i](Type type, std::string_view payload) { OnWord(i, type, payload); });
      nodes_[i].head_end = end.get();
      tree::Registration who;
      who.job = "7";
      who.step = "0";
      who.node_id = nodes_[i].id;
      who.nodes = size();
      who.tasks = 1;
      who.host = fmt::format("n{:06}", nodes_[i].id);
      if (switches_) who.switches = fmt::format("s0.r{}", nodes_[i].id / kRack);
      if (acting_) who.index = i;
      Die(head_->AddNode(who, std::move(end)).status());
    }
    Settle();
  }

  // All but the head's first children ask for a parent and get one.
  void AskParents() {
    for (uint32_t i = kFanout; i < size(); ++i) nodes_[i].head_end->Hear(Type::kWantParent, "");
    Settle();
  }

  // The sets of the head's children, as their parents say: whose samples they send. The ticks are
  // still to come, since nobody waits for parts of earlier ones.
  void Gather() {
    next_tick_ = (clock_.Now() / kPeriod + 1) * kPeriod;
    for (uint32_t i = 0; i < size(); ++i) {
      uint32_t top = i;
      while (nodes_[top].parent != kHeadIndex) top = nodes_[top].parent;
      nodes_[top].below.Add(tree::NodeSet(i));
    }
    for (Node& node : nodes_) {
      if (node.below.empty()) continue;
      senders_.push_back(&node);
      node.link = std::make_unique<WaitingEnd>(*node.head_end, said_);
      node.uplink = std::make_unique<tree::Uplink>();
      node.uplink->Use(node.link.get(), false);
    }
  }

  // Each of the head's children says what its subtree has at so many ticks.
  void SayTicks(int count, tree::Stream stream = tree::Stream::kChildren) {
    for (int t = 0; t < count; ++t, next_tick_ += kPeriod) {
      for (Node* node : senders_) {
        tree::FrameInfo info;
        info.tick = next_tick_;
        info.stream = stream;
        info.nodes = node->below;
        for (Reduced& value : values_) value = Reduced();
        for (size_t i = 0; i < kMetrics; ++i) {
          values_[i].Add(
              static_cast<double>(i * 100) + static_cast<double>(next_tick_ / kPeriod % 1000),
              {node->below.first(), Owner::kNobody});
        }
        node->uplink->AddFrame(info, schema_, {values_, {}});
        node->uplink->Flush();
        node->uplink->OnAck(node->uplink->last_number(), node->uplink->last_number());
      }
    }
  }
  void SayGoodbye() {
    SayTicks(1, tree::Stream::kEnded);
    for (Node* node : senders_) {
      for (const auto stream : {tree::Stream::kChildren, tree::Stream::kEnded}) {
        node->uplink->End(stream);
      }
    }
    tree::Bye bye;
    bye.tasks_ended = 1;
    bye.ticks = kTicks;
    bye.ended = static_cast<uint64_t>(clock_.Now());
    const std::string text = Encode(bye);
    // The last one ends the step: not part of what a node costs.
    for (uint32_t i = 0; i + 1 < size(); ++i) {
      said_.push_back({nodes_[i].head_end, Type::kBye, text});
    }
  }
  // The head makes rows of it.
  void Hear() {
    for (const Said& said : std::exchange(said_, {})) said.head_end->Hear(said.type, said.payload);
    Settle();
  }
  void Close() {
    for (uint32_t i = 0; i + 1 < size(); ++i) nodes_[i].head_end->Break();
    Settle();
  }

 private:
  void OnWord(uint32_t node, Type type, std::string_view payload) {
    if (type == Type::kListen) listen_.push_back(node);
    if (type != Type::kParent) return;
    tree::ParentAddress told;
    if (Decode(payload, told).ok()) nodes_[node].parent = told.index;
  }
  // What the head left for later, and what nodes answer.
  void Settle() {
    do {
      for (const uint32_t node : std::exchange(listen_, {})) {
        nodes_[node].head_end->Hear(Type::kListening,
                                    Encode(tree::Listening{"sockets://192.0.2.1:1", ""}));
      }
      loop_.Post([this] { loop_.Stop(); });
      loop_.Run();
    } while (!listen_.empty());
  }

  const bool switches_;
  const bool acting_;
  TempDir directory_{TempDir::Memory()};
  Loop loop_;
  StepClock clock_;
  const Schema::Ptr schema_ = MakeSchema();
  std::vector<Reduced> values_{kMetrics};
  std::vector<Node> nodes_;
  std::vector<Node*> senders_;  // of frames
  std::vector<Said> said_;
  std::vector<uint32_t> listen_;
  Nanos next_tick_ = 0;
  bool over_ = false;
  std::unique_ptr<Head> head_;
};

void Measure(const char* phase, const char* kind, uint32_t nodes, double divisor, const char* unit,
             const std::function<void()>& work) {
  const double begin = CpuMicroseconds();
  work();
  fmt::print("figure {}{}_{} {:.3f} {}\n", phase, kind, nodes,
             (CpuMicroseconds() - begin) / divisor, unit);
  std::fflush(stdout);
}

void MeasureStep(uint32_t nodes, bool switches) {
  const char* const kind = switches ? "_switches" : "";
  const auto per_node = [&](const char* phase, const std::function<void()>& work) {
    Measure(phase, kind, nodes, nodes, "us", work);
  };
  Step step(nodes, switches, /*acting=*/false);
  per_node("register", [&] { step.Register(); });
  per_node("parent", [&] { step.AskParents(); });
  step.Gather();
  step.SayTicks(kFirstTicks);
  per_node("first_ticks", [&] { step.Hear(); });
  step.SayTicks(kTicks);
  Measure("tick", kind, nodes, kTicks, "us", [&] { step.Hear(); });
  step.SayGoodbye();
  per_node("goodbye", [&] { step.Hear(); });
  per_node("close", [&] { step.Close(); });
  Step taken(nodes, switches, /*acting=*/true);
  per_node("takeover", [&] { taken.Register(); });
}

}  // namespace
}  // namespace sonde::head

int main(int argc, char** argv) {
  std::vector<uint32_t> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    uint32_t nodes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), nodes);
    if (error != std::errc() || end != text.data() + text.size() || nodes <= 16) {
      fmt::print(stderr, "usage: bench_head [NODES...]    more than 16 each\n");
      return 2;
    }
    sizes.push_back(nodes);
  }
  sonde::log::Discard("bench_head");
  if (sizes.empty()) sizes = {1000, 10'000, 100'000};
  for (const bool switches : {false, true}) {
    for (const uint32_t nodes : sizes) sonde::head::MeasureStep(nodes, switches);
  }
}
