// What a head spends on the nodes of steps of 1,000, 10,000 and 100,000: CPU time per node of
// registering with a schema, being told a parent and leaving for it, the first ticks, a block,
// saying goodbye, closing, and of coming to an acting head; and CPU time per tick after the first.
// A tree that scales costs the same per node and tick, whatever their number.
//
// The head is the real one; the nodes are made here, since no machine of a developer has so many:
// they speak over links in memory, come in random order, and only the head's children send frames,
// merged as the tree's shape has them. With switches a rack has 48 nodes.
// usage: bench_head [NODES...]
#include "daemon/head/head.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/growth.h"
#include "core/log.h"
#include "daemon/link/send.h"
#include "daemon/loop.h"
#include "daemon/tree/uplink.h"
#include "tests/unit/head_ends.h"
#include "tests/unit/queue_link.h"
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

struct Node {
  uint32_t id = 0;              // as Slurm numbers it
  HeadEnd* head_end = nullptr;  // the head's
  uint32_t parent = kHeadIndex;
  std::unique_ptr<tree::QueueLink> link;
  std::unique_ptr<tree::Uplink> uplink;  // of the head's children
  tree::NodeSet below;                   // with itself
  uint32_t top = 0;                      // of the head's children the one that it is below
};

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
    head_ = std::make_unique<Head>(loop_, clock_, launch, config,
                                   [this](const std::string& /*report*/) { loop_.Stop(); });
    Die(head_->Start({}));
  }

  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }

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
      // Until it has a parent it would send its data here.
      nodes_[i].head_end->Hear(Type::kSchema, own_schema_);
    }
    Settle();
  }

  // All but the head's first children ask for a parent, get one and go there.
  void AskParents() {
    for (uint32_t i = kFanout; i < size(); ++i) nodes_[i].head_end->Hear(Type::kWantParent, "");
    Settle();
    for (uint32_t i = kFanout; i < size(); ++i) nodes_[i].head_end->Hear(Type::kLeave, "");
  }

  // The sets of the head's children, as their parents say: whose samples they send. The ticks are
  // still to come, since nobody waits for parts of earlier ones, and so far off that they do not
  // wait for nodes that have left for their parents.
  void Gather() {
    next_tick_ = (clock_.Now() / kPeriod + 4) * kPeriod;
    for (uint32_t i = 0; i < size(); ++i) {
      uint32_t top = i;
      while (nodes_[top].parent != kHeadIndex) top = nodes_[top].parent;
      nodes_[top].below.Add(tree::NodeSet(i));
      nodes_[i].top = top;
    }
    for (Node& node : nodes_) {
      if (node.below.empty()) continue;
      senders_.push_back(&node);
      // Its own samples are among those here.
      const char own = static_cast<char>(tree::Stream::kOwn);
      node.head_end->Hear(Type::kStreamEnd, {&own, 1});
      node.link = std::make_unique<tree::QueueLink>();
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
        growth::Fill(values_, next_tick_ / kPeriod, node->below.first());
        node->uplink->AddFrame(info, schema_, {values_, {}});
        node->uplink->Flush();
        Take(*node);
        node->uplink->OnAck(node->uplink->last_number(), node->uplink->last_number());
      }
    }
  }
  // A block of each node comes by the head's children.
  void SayBlocks() {
    const Schema::Ptr schema = Schema::Make({(*schema_)[0]});
    tree::BlockMessage block;
    block.group = "os";
    block.sequence = block.first = block.samples = 1;
    block.schema = PackSchema(*schema);
    const Nanos time = next_tick_;
    const double value = 1;
    Die(BlockEncoder().Encode(schema->id(), {&time, 1}, &value, 1, 1, block.bytes));
    for (block.node = 0; block.node < size(); ++block.node) {
      std::string text;
      AppendTo(text, block);
      said_.push_back({nodes_[nodes_[block.node].top].head_end, Type::kBlock, std::move(text)});
    }
  }
  void SayGoodbye() {
    SayTicks(1, tree::Stream::kEnded);
    for (Node* node : senders_) {
      for (const auto stream : {tree::Stream::kChildren, tree::Stream::kEnded}) {
        node->uplink->End(stream);
      }
      Take(*node);
    }
    tree::Bye bye;
    bye.tasks_ended = 1;
    bye.ticks = kTicks;
    bye.ended = static_cast<uint64_t>(clock_.Now());
    const std::string text = Encode(bye);
    // Those below go first. The last one ends the step: not part of what a node costs.
    for (uint32_t i = size() - 1; i > 0; --i) {
      said_.push_back({nodes_[i].head_end, Type::kBye, text});
    }
  }
  // The head makes rows of it.
  void Hear() {
    for (const Said& said : std::exchange(said_, {})) said.head_end->Hear(said.type, said.payload);
    Settle();
  }
  void Close() {
    for (uint32_t i = size() - 1; i > 0; --i) nodes_[i].head_end->Break();
    Settle();
  }

 private:
  static std::string OwnSchema(const Schema::Ptr& schema) {
    tree::QueueLink link;
    tree::Uplink uplink;
    uplink.Use(&link, false);
    uplink.Announce(tree::Stream::kOwn, schema);
    return link.queue.at(0).second;
  }
  // What the node says waits until the head is to hear it.
  void Take(Node& node) {
    for (auto& [type, payload] : std::exchange(node.link->queue, {})) {
      said_.push_back({node.head_end, type, std::move(payload)});
    }
  }
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
  const Schema::Ptr schema_ = growth::MakeSchema();
  const std::string own_schema_ = OwnSchema(schema_);
  std::vector<Reduced> values_;
  std::vector<Node> nodes_;
  std::vector<Node*> senders_;  // of frames
  std::vector<Said> said_;
  std::vector<uint32_t> listen_;
  Nanos next_tick_ = 0;
  std::unique_ptr<Head> head_;
};

void MeasurePerNode(const char* phase, bool switches, Step& step,
                    const std::function<void()>& work) {
  growth::Measure(phase, switches ? "_switches" : "", step.size(), step.size(), work);
}

// Until it has made rows of the first ticks.
std::unique_ptr<Step> MeasureBeginning(uint32_t nodes, bool switches) {
  auto step = std::make_unique<Step>(nodes, switches, /*acting=*/false);
  MeasurePerNode("register", switches, *step, [&] { step->Register(); });
  MeasurePerNode("parent", switches, *step, [&] { step->AskParents(); });
  step->Gather();
  step->SayTicks(kFirstTicks);
  MeasurePerNode("first_ticks", switches, *step, [&] { step->Hear(); });
  return step;
}

void MeasureEnd(Step& step, bool switches) {
  step.SayBlocks();
  MeasurePerNode("block", switches, step, [&] { step.Hear(); });
  step.SayGoodbye();
  MeasurePerNode("goodbye", switches, step, [&] { step.Hear(); });
  MeasurePerNode("close", switches, step, [&] { step.Close(); });
}

void MeasureSteps(const std::vector<uint32_t>& sizes, bool switches) {
  std::vector<std::unique_ptr<Step>> steps;
  for (const uint32_t nodes : sizes) steps.push_back(MeasureBeginning(nodes, switches));
  growth::MeasureInTurn(
      "tick", switches ? "_switches" : "", steps, [](Step& s) { s.SayTicks(kTicks); },
      [](Step& s) {
        s.Hear();
        return kTicks;
      });
  for (auto& step : steps) MeasureEnd(*std::exchange(step, nullptr), switches);
  for (const uint32_t nodes : sizes) {
    Step taken(nodes, switches, /*acting=*/true);
    MeasurePerNode("takeover", switches, taken, [&] { taken.Register(); });
  }
}

}  // namespace
}  // namespace sonde::head

int main(int argc, char** argv) {
  const auto sizes = sonde::growth::Sizes(argc, argv, 17, {1000, 10'000, 100'000});
  sonde::log::Discard("bench_head");
  for (const bool switches : {false, true}) sonde::head::MeasureSteps(sizes, switches);
}
