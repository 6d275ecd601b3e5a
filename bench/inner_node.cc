// What an inner node spends on its children in steps of 1,000, 10,000 and 100,000 nodes: CPU time
// of their coming, of a tick, and of their end. It has as many children whatever the step's size,
// but more nodes below these, and its cost must not grow with them.
//
// The inner node is the real one (Relay), a child of the head with 16 children of its own, which
// are made here: each sends frames of all nodes below it. With switches these lie anywhere among
// the step's indexes.
// usage: bench_inner_node [NODES...]
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/growth.h"
#include "core/log.h"
#include "daemon/loop.h"
#include "daemon/tree/children/relay.h"
#include "daemon/tree/uplink.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/queue_link.h"
#include "tests/unit/tree_owners.h"

namespace sonde::tree {
namespace {

constexpr uint32_t kFanout = 16;
constexpr Nanos kPeriod = kSecond;
constexpr int kFirstTicks = 2;
constexpr int kTicks = 50;

class InnerNode {
 public:
  InnerNode(uint32_t nodes, bool switches) : nodes_(nodes) {
    clock_.time = kSecond;
    std::vector<uint32_t> indexes(nodes);
    std::iota(indexes.begin(), indexes.end(), 0u);
    if (switches) std::shuffle(indexes.begin(), indexes.end(), std::mt19937(nodes));
    const size_t below = std::max<size_t>(nodes / kFanout / kFanout, 2);
    for (uint32_t c = 0; c < kFanout; ++c) {
      children_.push_back(std::make_unique<Child>());
      const auto first = indexes.begin() + static_cast<std::ptrdiff_t>(c * below);
      for (auto at = first; at != first + static_cast<std::ptrdiff_t>(below); ++at) {
        children_[c]->below.Add(NodeSet(*at));
      }
      children_[c]->index = *first;
      children_[c]->uplink.Use(&children_[c]->says, false);
    }
    relay_.SetNode(nodes);
    relay_.Use(&up_, false);
  }

  // Unmeasured: the children's own work.
  void SayTicks(int count, Stream stream = Stream::kChildren) {
    for (int t = 0; t < count; ++t) {
      tick_ += kPeriod;
      for (const auto& child : children_) {
        FrameInfo info;
        info.tick = tick_;
        info.stream = stream;
        info.nodes = child->below;
        growth::Fill(values_, tick_ / kPeriod, child->below.first());
        child->uplink.AddFrame(info, schema_, {values_, {}});
        child->uplink.Flush();
        child->uplink.OnAck(child->uplink.last_number(), child->uplink.last_number());
        for (auto& [type, payload] : std::exchange(child->says.queue, {})) {
          said_.push_back({child.get(), type, std::move(payload)});
        }
      }
    }
  }
  void Come() {
    for (const auto& child : children_) relay_.children().Add(child->hears, child->index);
  }
  void Hear() {
    for (const Said& said : std::exchange(said_, {})) {
      const Status status = relay_.children().OnMessage(said.child->hears, said.type, said.payload);
      if (!status.ok()) Die(status);
      relay_.OnChildrenChanged();
      if (said.child == children_.back().get()) SendUp();
    }
  }
  void End() {
    Hear();
    relay_.SendRest();
    SendUp();
    for (const auto& child : children_) relay_.children().Remove(child->hears);
  }
  uint32_t size() const { return nodes_; }
  size_t sent() const { return sent_; }

 private:
  struct Child {
    uint32_t index = 0;
    NodeSet below;  // with itself
    QueueLink says;
    QueueLink hears;
    Uplink uplink;
  };
  struct Said {
    Child* child;
    Type type;
    std::string payload;
  };

  // What the loop does when all that came together is taken; and as the head acknowledges it.
  void SendUp() {
    loop_.Post([this] { loop_.Stop(); });
    loop_.Run();
    relay_.OnAck(relay_.uplink().last_number(), relay_.uplink().last_number());
    sent_ += up_.queue.size();
    up_.queue.clear();
  }
  static void Die(const Status& status) {
    fmt::print(stderr, "bench_inner_node: {}\n", status.message());
    std::exit(1);
  }

  const uint32_t nodes_;
  Nanos tick_ = kSecond;  // the clock stands still, so that no tick is one of the past
  FakeClock clock_;
  Loop loop_;
  QueryFanout queries_{loop_};
  RelayAlone owner_;
  QueueLink up_;
  const Schema::Ptr schema_ = growth::MakeSchema();
  std::vector<Reduced> values_;
  std::vector<std::unique_ptr<Child>> children_;  // outlive the relay, which knows their links
  std::vector<Said> said_;
  size_t sent_ = 0;
  Relay relay_{loop_, queries_, kPeriod, clock_, owner_};
};

void MeasureSteps(const std::vector<uint32_t>& sizes, bool switches) {
  const char* const kind = switches ? "_switches" : "";
  std::vector<std::unique_ptr<InnerNode>> steps;
  for (const uint32_t nodes : sizes) {
    InnerNode& inner = *steps.emplace_back(std::make_unique<InnerNode>(nodes, switches));
    growth::Measure("come", kind, nodes, kFanout, [&] { inner.Come(); });
    inner.SayTicks(kFirstTicks);
    growth::Measure("first_ticks", kind, nodes, kFirstTicks, [&] { inner.Hear(); });
  }
  growth::MeasureInTurn(
      "tick", kind, steps, [](InnerNode& inner) { inner.SayTicks(kTicks); },
      [](InnerNode& inner) {
        inner.Hear();
        return kTicks;
      });
  for (const auto& inner : steps) {
    if (inner->sent() < kTicks) {
      fmt::print(stderr, "bench_inner_node: it sent {} messages in {} ticks\n", inner->sent(),
                 kTicks);
      std::exit(1);
    }
    inner->SayTicks(1, Stream::kEnded);
    growth::Measure("end", kind, inner->size(), kFanout, [&] { inner->End(); });
  }
}

}  // namespace
}  // namespace sonde::tree

int main(int argc, char** argv) {
  const auto sizes = sonde::growth::Sizes(argc, argv, 512, {1000, 10'000, 100'000});
  sonde::log::Discard("bench_inner_node");
  for (const bool switches : {false, true}) sonde::tree::MeasureSteps(sizes, switches);
}
