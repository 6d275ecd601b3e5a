// Children whose clocks are wrong, or which lie: what their ticks can keep at whoever merges them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "daemon/loop.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "daemon/tree/uplink.h"
#include "fake_clock.h"
#include "tree_owners.h"

namespace sonde::tree::tree_ahead_test {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr Nanos kPeriod = kSecond / 10;

Schema::Ptr Work() {
  Series series;
  series.metric.name = "work_total";
  return Schema::Make({series});
}

class Ahead : public testing::Test {
 protected:
  // A child; its messages arrive at once.
  class Child final : public Link {
   public:
    Child(Ahead& test, uint32_t index) : test_(test), index_(index) {
      test_.children_.Add(up_, index);
      uplink_.Announce(Stream::kOwn, test_.schema_);
      uplink_.Use(this, false);
    }
    void Sample(Nanos tick) {
      FrameInfo info;
      info.tick = tick;
      info.stream = Stream::kOwn;
      info.nodes = NodeSet(index_);
      Reduced value;
      value.Add(1, {index_, Owner::kNobody});
      uplink_.AddFrame(info, test_.schema_, {{&value, 1}, {}});
      uplink_.Flush();
    }
    Status Send(uint8_t type, std::string_view payload) override {
      EXPECT_TRUE(test_.children_.OnMessage(up_, static_cast<Type>(type), payload).ok());
      return {};
    }
    void CloseWhenSent() override {}
    size_t queued() const override { return 0; }
    void SetMaxMessage(size_t) override {}
    std::string peer() const override { return "child"; }

   private:
    class Nowhere final : public Link {
     public:
      Status Send(uint8_t, std::string_view) override { return {}; }
      void CloseWhenSent() override {}
      size_t queued() const override { return 0; }
      void SetMaxMessage(size_t) override {}
      std::string peer() const override { return "parent"; }
    };
    Ahead& test_;
    const uint32_t index_;
    Nowhere up_;
    Uplink uplink_;
  };
  class Refusals final : public ChildrenAlone {
   public:
    void OnRefused(TickMerger::Fate fate, const Frame&, TickMerger::Source) override {
      fates.push_back(fate);
    }
    std::vector<TickMerger::Fate> fates;
  };

  Ahead() { clock_.time = 1'800'000'000 * kSecond; }

  Loop loop_;
  FakeClock clock_;
  Schema::Ptr schema_ = Work();
  QueryFanout queries_{loop_};
  std::vector<Nanos> rows_;
  TickMerger merger_{1024, [this](const TickMerger::Row& row, bool) { rows_.push_back(row.tick); }};
  Refusals owner_;
  Children children_{merger_, queries_, {kPeriod, 2 * kPeriod}, Keep::kUntilArrived,
                     owner_,  clock_};
};

TEST_F(Ahead, AnHourIsRefusedAndTheOthersTicksGoOn) {
  Child good(*this, 0);
  Child wrong(*this, 1);
  for (int i = 1; i <= 100; ++i) {
    clock_.time += kPeriod;
    good.Sample(clock_.time);
    wrong.Sample(clock_.time + 3600 * kSecond);
  }
  EXPECT_THAT(owner_.fates, Each(TickMerger::Fate::kTooEarly));
  EXPECT_EQ(owner_.fates.size(), 100u);
  merger_.EmitUpTo(clock_.time - kSecond);
  EXPECT_EQ(rows_.size(), 90u);
  EXPECT_EQ(merger_.waiting(), 10u);
}

// Ticks of a node whose clock is some seconds ahead wait; but not more and more of them.
TEST_F(Ahead, ManyTicksOfTheNextMinuteAreRefusedWhileTheOthersStillWait) {
  Child good(*this, 0);
  Child wrong(*this, 1);
  for (int i = 2000; i > 0; --i) wrong.Sample(clock_.time + kSecond + i * kSecond / 50);
  const size_t waiting = merger_.waiting();
  EXPECT_LE(waiting, 512u);
  EXPECT_EQ(owner_.fates.size(), 2000 - waiting);
  for (int i = 1; i <= 5; ++i) good.Sample(clock_.time + i * kPeriod / 10);
  EXPECT_EQ(rows_.size(), 5u);
  EXPECT_EQ(merger_.waiting(), waiting);
}

// A guest that was paused is behind all of its children, until it has heard so from the head.
TEST_F(Ahead, TicksOfSomeSecondsAreMergedWhenAllHaveThem) {
  Child one(*this, 0);
  Child other(*this, 1);
  const Nanos tick = clock_.time + 20 * kSecond;
  one.Sample(tick);
  other.Sample(tick);
  EXPECT_THAT(rows_, ElementsAre(tick));
}

TEST_F(Ahead, NoTickIsTooFarAhead) {
  Child wild(*this, 0);
  for (const Nanos tick : {INT64_MAX, INT64_MAX - kSecond}) wild.Sample(tick);
  EXPECT_THAT(owner_.fates, Each(TickMerger::Fate::kTooEarly));
  EXPECT_EQ(merger_.waiting(), 0u);
}

}  // namespace
}  // namespace sonde::tree::tree_ahead_test
