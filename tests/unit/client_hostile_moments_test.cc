// Histograms and moments that were not written by libsonde.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/collect/app/distributions.h"
#include "daemon/collect/app/ring.h"
#include "tests/unit/client_attacker.h"

namespace sonde::collect::client_hostile_moments_test {
namespace {

using client::Distribution;
using client::Moment;
using client::Record;

// Ticks, of a second, after which an entry that was begun and not finished is given up.
constexpr int kPatience = 11;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class AppHostileMoments : public HostileTest {
 protected:
  static void PublishHistogram(Attacker& attacker, const std::string& name, uint32_t number) {
    attacker.Publish(name, [number](Record& record) {
      record.type = static_cast<uint8_t>(MetricType::kHistogram);
      record.slot = number;
    });
  }
  // With one distribution, which has `count` times the value 1.
  static void Observe(Attacker& attacker, uint64_t count) {
    Distribution& distribution = attacker.distribution(0);
    distribution.sum = static_cast<double>(count);
    distribution.min = distribution.max = 1;
    distribution.counts[histogram::BucketOf(1)] = count;
    attacker.header()->distributions = 1;
  }
  static void Tell(Attacker& attacker, uint64_t ticket, const std::string& text) {
    Moment& moment = attacker.moment(ticket % client::kMoments);
    moment = {};
    moment.time = 1;
    moment.kind = client::kMomentRemark;
    moment.text_size = static_cast<uint16_t>(text.size());
    memcpy(moment.text, text.data(), text.size());
    moment.sequence = 2 * ticket + 2;
    attacker.header()->moments = ticket + 1;
    attacker.header()->moments_limit = client::kMoments;
  }
  static void Attach(Attacker& attacker, const std::string& socket) {
    attacker.Connect(socket);
    attacker.SendHello();
  }
  double Value(const std::string& name) const {
    for (size_t i = 0; i < source_->series().size(); ++i) {
      if (source_->series()[i].metric.name == name) return source_->values()[i];
    }
    return -1;
  }
};

TEST_F(AppHostileMoments, OneThatKeepsTheRulesIsRead) {
  Start();
  Attacker attacker;
  PublishHistogram(attacker, "h", 7);
  attacker.owners()[0] = 7;
  Observe(attacker, 5);
  Tell(attacker, 0, "hello");
  Attach(attacker, options_.socket);
  Tick();
  EXPECT_EQ(Value("h_count"), 5);
  const Moments moments = source_->TakeMoments();
  ASSERT_EQ(moments.annotations.size(), 1u);
  EXPECT_EQ(moments.annotations[0].text, "hello");
  EXPECT_EQ(moments.annotations[0].first, now_) << "a time before the step is not believed";
  EXPECT_EQ(moments.lost, 0u);
}

TEST_F(AppHostileMoments, BadNumbersAreTheEndOfAProcess) {
  Start();
  const std::pair<const char*, std::function<void(Attacker&)>> cases[] = {
      {"an owner", [](Attacker& a) { a.owners()[0] = client::kMaxHistograms; }},
      {"their number", [](Attacker& a) { a.header()->distributions = client::kDistributions + 1; }},
      {"a histogram's number",
       [](Attacker& a) { PublishHistogram(a, "far", client::kMaxHistograms); }},
      {"one number twice", [](Attacker& a) { PublishHistogram(a, "again", 7); }},
      {"a long name", [](Attacker& a) { PublishHistogram(a, std::string(123, 'n'), 8); }},
  };
  uint64_t dropped = 0;
  for (const auto& [what, attack] : cases) {
    Attacker attacker;
    PublishHistogram(attacker, "h", 7);
    attacker.owners()[0] = 7;
    Observe(attacker, 1);
    attack(attacker);
    Attach(attacker, options_.socket);
    Tick();
    EXPECT_EQ(source_->counts().dropped, ++dropped) << what;
    EXPECT_EQ(source_->processes(), 1u) << what << ": until the next look";
  }
  Tick();
  EXPECT_EQ(source_->processes(), 0u);
}

TEST_F(AppHostileMoments, CountsNeverFallAndSumsAreAlwaysNumbers) {
  Start();
  Attacker attacker;
  PublishHistogram(attacker, "h", 0);
  Observe(attacker, 5);
  Attach(attacker, options_.socket);
  Tick();
  Distribution& distribution = attacker.distribution(0);
  uint64_t* const count = &distribution.counts[histogram::BucketOf(1)];
  for (const uint64_t fallen : {4u, 0u}) {
    *count = fallen;
    distribution.sum = -1;
    Tick();
    Tick();
    EXPECT_EQ(Value("h_count"), 5);
    EXPECT_EQ(Value("h_sum"), 5);
  }
  *count = UINT64_MAX;
  Tick();
  EXPECT_EQ(Value("h_count"), 5) << "more than can be counted";
  *count = 5;
  for (const double sum : {kNan, kInfinity, -kInfinity}) {
    ++*count;
    distribution.sum = sum;
    Tick();
    EXPECT_EQ(Value("h_count"), static_cast<double>(*count));
    EXPECT_EQ(Value("h_sum"), 5);
  }
  const Moments moments = source_->TakeMoments();
  ASSERT_EQ(moments.sketches.size(), 1u);
  EXPECT_EQ(moments.sketches[0].sketch.count(), 8u);
  EXPECT_EQ(moments.sketches[0].sketch.sum(), 5);
}

TEST_F(AppHostileMoments, ExtremesAreWithinWhatIsFinite) {
  Start();
  Attacker attacker;
  PublishHistogram(attacker, "h", 0);
  Observe(attacker, 1);
  Attach(attacker, options_.socket);
  Distribution& distribution = attacker.distribution(0);
  uint64_t count = 1;
  const std::pair<double, double> extremes[] = {
      {kNan, 1},           {1, kNan},   {2, 1}, {-kInfinity, kInfinity},
      {DBL_MAX, -DBL_MAX}, {-5, 1e300}, {3, 3}};
  for (const auto& [min, max] : extremes) {
    distribution.min = min;
    distribution.max = max;
    distribution.sum += 1;
    for (uint64_t& bucket : distribution.counts) bucket = count;
    ++count;
    Tick();
    for (const NamedSketch& named : source_->TakeMoments().sketches) {
      EXPECT_TRUE(std::isfinite(named.sketch.min()) && std::isfinite(named.sketch.max()));
      EXPECT_LE(named.sketch.min(), named.sketch.max());
    }
  }
  EXPECT_EQ(source_->counts().dropped, 0u);
}

TEST_F(AppHostileMoments, MalformedMomentsAreCountedAsLost) {
  Start();
  Attacker attacker;
  Attach(attacker, options_.socket);
  const std::function<void(Moment&)> cases[] = {
      [](Moment& m) { m.kind = 4; },
      [](Moment& m) { m.text_size = 0; },
      [](Moment& m) { m.text_size = UINT16_MAX; },
      [](Moment& m) { m.text_size = 200; },
      [](Moment& m) { m.unit_size = UINT16_MAX; },
      [](Moment& m) { m.text[0] = '\n'; },
      [](Moment& m) { m.text[0] = '\xff'; },
      [](Moment& m) { m.kind = client::kMomentFigure, m.text[0] = '+'; },
      [](Moment& m) { m.kind = client::kMomentFigure, m.value = kNan; },
      [](Moment& m) { m.kind = client::kMomentFigure, m.unit_size = 200; },
      [](Moment& m) { m.kind = client::kMomentPhaseBegin, m.text_size = 150; },
      [](Moment& m) { m.sequence += 2; },
  };
  uint64_t ticket = 0;
  for (const auto& spoil : cases) {
    Tell(attacker, ticket, std::string(60, 'a'));
    memset(attacker.moment(ticket).text + 60, 'b', 150);
    spoil(attacker.moment(ticket));
    ++ticket;
    Tick();
    const Moments moments = source_->TakeMoments();
    EXPECT_EQ(moments.lost, 1u) << ticket;
    EXPECT_TRUE(moments.annotations.empty()) << ticket;
  }
  EXPECT_EQ(source_->counts().dropped, 0u);
}

TEST_F(AppHostileMoments, TicketsThatJumpDoNotHoldTheDaemon) {
  Start();
  Attacker attacker;
  Attach(attacker, options_.socket);
  Tell(attacker, 0, "first");
  for (const uint64_t tickets : {uint64_t{5000}, uint64_t{1} << 60}) {
    attacker.header()->moments = tickets;
    for (int i = 0; i < kPatience; ++i) Tick();
    EXPECT_GE(source_->TakeMoments().lost, 4000u);
  }
  attacker.header()->moments = 3;
  Tick();
  EXPECT_TRUE(source_->TakeMoments().empty()) << "tickets that go back";
  attacker.header()->moments = UINT64_MAX;
  Tick();
  EXPECT_GE(source_->TakeMoments().lost, 4000u);
}

// On a busy machine a process may wait for a processor for many ticks, in the middle of a moment.
TEST_F(AppHostileMoments, AWriterThatIsHeldUpLosesNothing) {
  Start();
  Attacker attacker;
  Attach(attacker, options_.socket);
  for (const uint64_t ticket : {0, 1, 2})
    Tell(attacker, ticket, "moment " + std::to_string(ticket));
  attacker.moment(1).sequence = 3;
  for (int i = 0; i < 5; ++i) Tick();
  EXPECT_EQ(source_->TakeMoments().annotations.size(), 1u);
  attacker.moment(1).sequence = 4;
  Tick();
  const Moments moments = source_->TakeMoments();
  EXPECT_EQ(moments.lost, 0u);
  ASSERT_EQ(moments.annotations.size(), 2u);
  EXPECT_EQ(moments.annotations[0].text, "moment 1");
  EXPECT_EQ(moments.annotations[1].text, "moment 2");
}

TEST_F(AppHostileMoments, AWriterThatNeverFinishesHoldsNobodyUpForLong) {
  Start();
  Attacker attacker;
  Attach(attacker, options_.socket);
  Tell(attacker, 0, "first");
  Tell(attacker, 1, "second");
  Tell(attacker, 2, "third");
  attacker.moment(1).sequence = 3;
  Tick();
  Moments moments = source_->TakeMoments();
  ASSERT_EQ(moments.annotations.size(), 1u);
  EXPECT_EQ(moments.lost, 0u) << "it may still be at work";
  for (int i = 0; i < kPatience; ++i) Tick();
  moments = source_->TakeMoments();
  ASSERT_EQ(moments.annotations.size(), 1u);
  EXPECT_EQ(moments.annotations[0].text, "third");
  EXPECT_EQ(moments.lost, 1u);
}

// The process rewrites a moment while the daemon looks at it: what comes out was checked, always.
TEST_F(AppHostileMoments, TextThatChangesWhileItIsReadIsCheckedAsItIsUsed) {
  Attacker attacker;
  Tell(attacker, 0, std::string(100, 'a'));
  std::atomic<bool> stop = false;
  std::thread changer([&] {
    auto* words = reinterpret_cast<uint64_t*>(&attacker.moment(0));
    for (uint64_t i = 0; !stop; ++i) {
      const uint64_t word = i % 3 == 0 ? 0x0a0a0a0a0a0a0a0a : 0x6161616161616161;
      __atomic_store_n(words + 4 + i % 12, word, __ATOMIC_RELAXED);
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    AppRing ring;
    ring.Read(attacker.base(), 0, true, [](const Annotation& annotation) {
      ASSERT_TRUE(names::IsPlainText(annotation.text));
    });
  }
  stop = true;
  changer.join();
}

}  // namespace
}  // namespace sonde::collect::client_hostile_moments_test
