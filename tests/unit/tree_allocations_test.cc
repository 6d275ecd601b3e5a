// Ticks on their way through a tree allocate nothing once every buffer has its size.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "daemon/loop.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/children/relay.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/ring.h"
#include "daemon/tree/tick_merger.h"
#include "fake_clock.h"
#include "tree_owners.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::tree::tree_allocations_test {
namespace {

constexpr uint32_t kLeaves = 4;  // indices 1 and on; 0 is their parent
constexpr size_t kSeries = 60;
constexpr Nanos kFirst = 1'000'000'000 * kSecond;

// Keeps what was sent until it is taken, in buffers that it uses again.
class QueueLink : public Link {
 public:
  struct Message {
    Type type = Type::kFrame;
    std::string payload;
  };
  Status Send(uint8_t type, std::string_view payload) override {
    Message& message = queue_.Push();
    message.type = static_cast<Type>(type);
    message.payload.assign(payload);
    return {};
  }
  void CloseWhenSent() override {}
  size_t queued() const override { return 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "peer"; }

  template <typename F>
  void Take(F f) {
    for (; !queue_.empty(); queue_.PopFront()) f(queue_.front().type, queue_.front().payload);
  }

 private:
  Ring<Message> queue_;
};

struct Daemon {
  Daemon(Loop& loop, const Clock& clock, uint32_t index, Nanos period)
      : queries(loop), relay(loop, queries, period, clock, owner) {
    relay.SetNode(index);
  }
  void Hear(Type type, std::string_view payload) {
    ASSERT_EQ(type, Type::kAck);
    const uint64_t number = ByteReader(payload).Varint();
    relay.OnAck(number, number);
  }

  QueryFanout queries;
  RelayAlone owner;
  Relay relay;
  QueueLink up;
  QueueLink down;
};

// A head, one child of it, and leaves below that.
class Tree {
 public:
  explicit Tree(Nanos period) : period_(period) {
    clock_.time = kFirst;  // when all join
    for (uint32_t i = 0; i <= kLeaves; ++i) {
      daemons_.push_back(std::make_unique<Daemon>(loop_, clock_, i, period));
      (i == 0 ? head_children_ : daemons_[0]->relay.children()).Add(daemons_[i]->down, i);
      daemons_[i]->relay.uplink().Use(&daemons_[i]->up, false);
      daemons_[i]->relay.Announce(schema_);
    }
    Deliver();
  }

  // Gives how many allocations there were in the second half of as many ticks.
  size_t Run(int ticks) {
    left_ = ticks;
    half_ = ticks / 2;
    Step();
    loop_.Run();
    return allocated_;
  }
  uint64_t rows() const { return rows_; }
  uint64_t lost() const { return daemons_[1]->relay.uplink().lost_frames(); }

 private:
  // Timers run between two of these.
  void Step() {
    Tick();
    Deliver();
    if (--left_ == half_) before_ = allocations;
    if (left_ == 0) {
      allocated_ = allocations - before_;
      return loop_.Stop();
    }
    loop_.After(0, [this] { Step(); });
  }
  void Tick() {
    clock_.time = tick_;
    tick_ += period_;
    for (auto& daemon : daemons_) {
      const auto index = static_cast<uint32_t>(&daemon - daemons_.data());
      for (size_t i = 0; i < kSeries; ++i) {
        values_[i] = Reduced();
        values_[i].Add(static_cast<double>(tick_ / period_ * (i + 1)) + 0.5 * index,
                       {index, Owner::kNobody});
      }
      daemon->relay.SendOwn(tick_, schema_, values_);
    }
    if (tick_ % kSecond != 0) return;
    head_children_.Pulse();
    daemons_[0]->relay.children().Pulse();
  }
  void Deliver() {
    for (uint32_t i = kLeaves; i <= kLeaves; --i) {
      Children& above = i == 0 ? head_children_ : daemons_[0]->relay.children();
      daemons_[i]->up.Take([&](Type type, std::string_view payload) {
        EXPECT_TRUE(above.OnMessage(daemons_[i]->down, type, payload).ok());
        if (i != 0) daemons_[0]->relay.OnChildrenChanged();
      });
      daemons_[i]->down.Take(
          [&](Type type, std::string_view payload) { daemons_[i]->Hear(type, payload); });
    }
  }
  void OnRow(const TickMerger::Row& row) {
    if (row.nodes.size() == kLeaves + 1) ++rows_;
    head_children_.Forwarded(row.sources, 0);
  }

  const Nanos period_;
  Loop loop_;
  Schema::Ptr schema_ = MakeSchema();
  std::vector<Reduced> values_ = std::vector<Reduced>(kSeries);
  Nanos tick_ = kFirst;
  FakeClock clock_;
  int left_ = 0;
  int half_ = 0;
  size_t before_ = 0;
  size_t allocated_ = 0;
  uint64_t rows_ = 0;
  QueryFanout queries_{loop_};
  TickMerger head_{64, [this](const TickMerger::Row& row, bool) { OnRow(row); }};
  ChildrenAlone alone_;
  Children head_children_{head_, queries_, {period_, kSecond}, Keep::kUntilArrived, alone_, clock_};
  std::vector<std::unique_ptr<Daemon>> daemons_;

  static Schema::Ptr MakeSchema() {
    std::vector<Series> series(kSeries);
    for (size_t i = 0; i < kSeries; ++i) series[i].metric.name = "m" + std::to_string(i);
    return Schema::Make(std::move(series));
  }
};

// What the last two runs allocate. On a busy machine a timer may come later than all before it, and
// a buffer grow once more: then others follow.
size_t AllocatedAtLast(Tree& tree, int ticks) {
  size_t before = tree.Run(ticks), last = tree.Run(ticks);
  for (int more = 0; more < 4 && before + last > 0; ++more) {
    before = std::exchange(last, tree.Run(ticks));
  }
  return before + last;
}

TEST(TreeAllocations, TicksOfASecondAllocateNothing) {
  Tree tree(kSecond);
  EXPECT_EQ(AllocatedAtLast(tree, 1000), 0u);
  EXPECT_GE(tree.rows(), 1998u);
}

// Some hundred frames are under way until the word comes that they have arrived.
TEST(TreeAllocations, TicksOfTenMillisecondsAllocateNothing) {
  Tree tree(10 * kMillisecond);
  EXPECT_EQ(AllocatedAtLast(tree, 4000), 0u);
  EXPECT_GE(tree.rows(), 7900u);
  EXPECT_EQ(tree.lost(), 0u);
}

}  // namespace
}  // namespace sonde::tree::tree_allocations_test
