// What a parent knows of a child that it loses: also the counters that the child does not sample at
// every tick, and though the child has come from elsewhere or has other series by now.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/loop.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/uplink.h"
#include "fake_clock.h"
#include "tree_owners.h"

namespace sonde::tree::tree_last_known_test {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

class SilentLink : public Link {
 public:
  Status Send(uint8_t /*type*/, std::string_view /*payload*/) override { return {}; }
  void CloseWhenSent() override {}
  size_t queued() const override { return 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "peer"; }
};

// Has one child, and is told at once what that sends.
class Parent final : private ChildrenAlone {
 public:
  explicit Parent(Uplink& child) : child_(child) {}

  // Over a new link.
  void Join(bool tell_former = false) {
    auto up = std::make_unique<UpLink>(*this);
    link_ = up.get();
    links_.push_back(std::move(up));
    children_.Add(link_->parent_end, 0);
    child_.Use(link_, tell_former);
  }
  void Break() {
    children_.Remove(link_->parent_end);
    child_.Forget(link_);
  }
  void BreakFirst() { children_.Remove(links_.front()->parent_end); }
  void Leave() {
    EXPECT_TRUE(children_.OnMessage(link_->parent_end, Type::kLeave, "").ok());
    child_.Forget(link_);
  }
  // What it hands on of the child, by the names of the counters.
  std::map<std::string, double> HandedOn() {
    children_.HandOnLost(INT64_MAX);
    return handed_on_;
  }
  std::map<std::string, double> Lose() {
    Break();
    return HandedOn();
  }
  // Of another child's.
  void GoOnWith(Nanos row) { children_.HandOnLost(row, NodeSet(0)); }
  std::map<std::string, double> GoOnWithout(Nanos row) {
    children_.StandInForMissing(row, NodeSet(7));
    return handed_on_;
  }

 private:
  struct UpLink final : SilentLink {
    explicit UpLink(Parent& p) : parent(p) {}
    Status Send(uint8_t type, std::string_view payload) override {
      EXPECT_TRUE(parent.children_.OnMessage(parent_end, static_cast<Type>(type), payload).ok());
      return {};
    }
    Parent& parent;
    SilentLink parent_end;
  };

  void OnEnded(const FrameInfo& header, const Schema::Ptr& schema, std::span<const Reduced> values,
               TickMerger::Source /*source*/) override {
    EXPECT_TRUE(header.lost);
    for (size_t i = 0; i < schema->size(); ++i) {
      if (values[i].count > 0) handed_on_[(*schema)[i].metric.name] = values[i].sum;
    }
  }

  Uplink& child_;
  FakeClock clock_;
  Loop loop_;
  QueryFanout queries_{loop_};
  TickMerger merger_{16, [](const TickMerger::Row& /*row*/, bool /*late*/) {}};
  Children children_{merger_, queries_, {kSecond, kSecond}, Keep::kUntilArrived, *this, clock_};
  std::vector<std::unique_ptr<UpLink>> links_;
  UpLink* link_ = nullptr;
  std::map<std::string, double> handed_on_;
};

class LastKnownTest : public testing::Test {
 protected:
  // At the next tick; the head has it.
  void Sample(const std::vector<std::pair<std::string, double>>& counters) {
    std::vector<Series> series;
    std::vector<Reduced> values;
    for (const auto& [name, value] : counters) {
      series.emplace_back().metric.name = name;
      series.back().metric.type = MetricType::kCounter;
      values.emplace_back();
      if (!std::isnan(value)) values.back().Add(value, {0, sonde::Owner::kNobody});
    }
    if (schema_ == nullptr || schema_->size() != series.size()) schema_ = Schema::Make(series);
    FrameInfo info;
    info.tick = ++tick_ * kSecond;
    info.nodes = NodeSet(0);
    child_.OnAck(child_.AddFrame(info, schema_, values), child_.last_number());
    child_.Flush();
  }

  Nanos tick_ = 0;
  Schema::Ptr schema_;
  Uplink child_;
  Parent parent_{child_};
  const std::map<std::string, double> whole_ = {{"fast_total", 7}, {"slow_total", 100}};
};

TEST_F(LastKnownTest, WhatIsNotSampledAtEveryTickIsKept) {
  parent_.Join();
  Sample({{"fast_total", 5}, {"slow_total", 100}});
  Sample({{"fast_total", 7}, {"slow_total", kNone}});
  EXPECT_EQ(parent_.Lose(), whole_);
}

TEST_F(LastKnownTest, OverAnotherLinkToTheSameParent) {
  parent_.Join();
  Sample({{"fast_total", 5}, {"slow_total", 100}});
  Sample({{"fast_total", 6}, {"slow_total", kNone}});
  parent_.Break();
  parent_.Join();
  Sample({{"fast_total", 7}, {"slow_total", kNone}});
  EXPECT_EQ(parent_.Lose(), whole_);
}

TEST_F(LastKnownTest, LostAgainBeforeItSentAnything) {
  parent_.Join();
  Sample({{"fast_total", 5}, {"slow_total", 100}});
  Sample({{"fast_total", 7}, {"slow_total", kNone}});
  parent_.Break();
  parent_.Join();
  EXPECT_EQ(parent_.GoOnWithout(9 * kSecond), whole_);
  EXPECT_EQ(parent_.Lose(), whole_);
}

TEST_F(LastKnownTest, AfterItHasLeftForAnotherLink) {
  parent_.Join();
  Sample({{"fast_total", 7}, {"slow_total", 100}});
  parent_.Leave();
  EXPECT_EQ(parent_.HandedOn(), whole_);
}

TEST_F(LastKnownTest, UntilARowHasItFromElsewhere) {
  parent_.Join();
  Sample({{"fast_total", 7}, {"slow_total", 100}});
  parent_.Leave();
  parent_.GoOnWith((tick_ + 1) * kSecond);
  EXPECT_TRUE(parent_.HandedOn().empty());
}

// The end of the link before comes last, and tells nothing new.
TEST_F(LastKnownTest, OverTheNewestLink) {
  parent_.Join();
  Sample({{"fast_total", 5}, {"slow_total", 100}});
  parent_.Join();
  Sample({{"fast_total", 7}, {"slow_total", 100}});
  parent_.Break();
  parent_.BreakFirst();
  EXPECT_EQ(parent_.HandedOn(), whole_);
}

TEST_F(LastKnownTest, UnderAnotherParent) {
  Parent former(child_);
  former.Join();
  Sample({{"fast_total", 5}, {"slow_total", 100}});
  Sample({{"fast_total", 6}, {"slow_total", kNone}});
  parent_.Join(/*tell_former=*/true);
  Sample({{"fast_total", 7}, {"slow_total", kNone}});
  EXPECT_EQ(parent_.Lose(), whole_);
}

TEST_F(LastKnownTest, UnderAThirdParentWithWhatTheFirstKnew) {
  Parent first(child_);
  Parent second(child_);
  first.Join();
  Sample({{"fast_total", 5}, {"slow_total", 100}});
  second.Join(true);
  Sample({{"fast_total", 6}, {"slow_total", kNone}});
  parent_.Join(true);
  Sample({{"fast_total", 7}, {"slow_total", kNone}});
  EXPECT_EQ(parent_.Lose(), whole_);
}

TEST_F(LastKnownTest, ThoughItsSeriesHaveChanged) {
  parent_.Join();
  Sample({{"fast_total", 5}, {"slow_total", 100}});
  Sample({{"fast_total", 7}, {"slow_total", kNone}, {"new_total", 1}});
  std::map<std::string, double> with_new = whole_;
  with_new["new_total"] = 1;
  EXPECT_EQ(parent_.Lose(), with_new);
}

}  // namespace
}  // namespace sonde::tree::tree_last_known_test
