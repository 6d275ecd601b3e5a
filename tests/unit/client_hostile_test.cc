// Processes that break libsonde's layout, by mistake or on purpose, harm nobody but themselves.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/un.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/client_attacker.h"
#include "tests/unit/client_driver.h"

namespace sonde::collect::client_hostile_test {
namespace {

using client::Header;
using client::Hello;
using client::kSegmentSize;
using client::Record;

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

class AppHostile : public HostileTest {};

TEST_F(AppHostile, AnAttackerThatKeepsTheRulesIsAProcessLikeAnyOther) {
  Start();
  Attacker attacker;
  attacker.Publish("good_total");
  attacker.Connect(options_.socket);
  attacker.SendHello();
  Tick();
  EXPECT_TRUE(Has("good_total"));
  EXPECT_EQ(source_->counts().dropped, 0u);
}

TEST_F(AppHostile, BadHellosAreDropped) {
  Start();
  const std::pair<const char*, std::function<void(Attacker&)>> cases[] = {
      {"magic", [](Attacker& a) { a.hello.magic = 0, a.SendHello(); }},
      {"version", [](Attacker& a) { a.hello.version = client::kVersion + 1, a.SendHello(); }},
      {"size", [](Attacker& a) { a.hello.segment_size = 1, a.SendHello(); }},
      {"rank", [](Attacker& a) { a.hello.rank = -2, a.SendHello(); }},
      {"short", [](Attacker& a) { a.Send("hello", {a.memory()}); }},
      {"long", [](Attacker& a) { a.Send(std::string(10'000, 'x'), {a.memory()}); }},
      {"no memory",
       [](Attacker& a) {
         a.Send({reinterpret_cast<char*>(&a.hello), sizeof(Hello)}, {});
       }},
      {"a pipe",
       [](Attacker& a) {
         a.Send({reinterpret_cast<char*>(&a.hello), sizeof(Hello)}, {STDIN_FILENO});
       }},
      {"twice",
       [](Attacker& a) {
         a.SendHello();
         a.SendHello();
       }},
      {"empty header",
       [](Attacker& a) {
         memset(a.header(), 0, sizeof(Header));
         a.SendHello();
       }},
  };
  uint64_t dropped = 0;
  for (const auto& [what, attack] : cases) {
    Attacker attacker;
    attacker.Publish("bad_total");
    attacker.Connect(options_.socket);
    attack(attacker);
    Tick();
    EXPECT_EQ(source_->counts().dropped, ++dropped) << what;
    EXPECT_EQ(source_->processes(), 0u) << what;
    EXPECT_FALSE(Has("bad_total")) << what;
  }
}

TEST_F(AppHostile, MemoryThatCouldShrinkIsNotMapped) {
  Start();
  const std::pair<size_t, int> cases[] = {
      {kSegmentSize, 0},
      {kSegmentSize, F_SEAL_GROW},
      {kSegmentSize, F_SEAL_SHRINK},
      {kSegmentSize - 4096, F_SEAL_SHRINK | F_SEAL_GROW},
      {4096, F_SEAL_SHRINK | F_SEAL_GROW},
      {2 * kSegmentSize, F_SEAL_SHRINK | F_SEAL_GROW},
  };
  uint64_t dropped = 0;
  for (const auto& [size, seals] : cases) {
    Attacker attacker(size, seals);
    attacker.Connect(options_.socket);
    attacker.SendHello();
    Tick();
    EXPECT_EQ(source_->counts().dropped, ++dropped) << size << " " << seals;
  }
}

TEST_F(AppHostile, MemoryThatWasAcceptedCannotBeTakenAway) {
  Start();
  Attacker attacker;
  attacker.Publish("good_total");
  attacker.Connect(options_.socket);
  attacker.SendHello();
  Tick();
  EXPECT_NE(ftruncate(attacker.memory(), 0), 0);
  EXPECT_EQ(fallocate(attacker.memory(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      static_cast<off_t>(kSegmentSize)),
            0);
  Tick();
  EXPECT_EQ(source_->counts().dropped, 1u) << "its records went backwards";
}

TEST_F(AppHostile, BadRecordsEndTheReadingOfTheirProcessAlone) {
  Start();
  ClientProcess good({{"SONDE_SOCKET", options_.socket}});
  good.Do("counter good_total");
  const std::pair<const char*, std::function<void(Record&)>> cases[] = {
      {"no size", [](Record& r) { r.size = 0; }},
      {"odd size", [](Record& r) { r.size += 1; }},
      {"beyond the end", [](Record& r) { r.size += 8; }},
      {"huge", [](Record& r) { r.size = UINT32_MAX - 7; }},
      {"type", [](Record& r) { r.type = 3; }},
      {"level 0", [](Record& r) { r.level = 0; }},
      {"level 5", [](Record& r) { r.level = 5; }},
      {"reduction", [](Record& r) { r.reduction = 4; }},
      {"slot", [](Record& r) { r.slot = client::kMaxMetrics; }},
      {"slots", [](Record& r) { r.slots = UINT32_MAX; }},
      {"name", [](Record& r) { r.name_size = 0; }},
      {"long name", [](Record& r) { r.name_size = UINT16_MAX; }},
      {"unit", [](Record& r) { r.unit_size = UINT16_MAX; }},
      {"help", [](Record& r) { r.help_size = UINT16_MAX; }},
      {"tags", [](Record& r) { r.tag_count = 8; }},
      {"tags that are not there", [](Record& r) { r.tag_count = 7; }},
  };
  uint64_t dropped = 0;
  for (const auto& [what, spoil] : cases) {
    Attacker attacker;
    attacker.Publish("first_total");
    attacker.Publish("bad_total", spoil);
    attacker.Publish("after_total");
    if (std::string(what) == "beyond the end") attacker.header()->records_end -= 48;
    attacker.Connect(options_.socket);
    attacker.SendHello();
    good.Do("add good_total 1");
    Tick();
    EXPECT_EQ(source_->counts().dropped, ++dropped) << what;
    EXPECT_TRUE(Has("first_total")) << what;
    EXPECT_FALSE(Has("bad_total") || Has("after_total")) << what;
    EXPECT_EQ(source_->values()[0], static_cast<double>(dropped)) << what;
  }
  for (const uint64_t end : {UINT64_MAX, uint64_t{client::kRecordsSize} + 8, uint64_t{4}}) {
    Attacker attacker;
    attacker.header()->records_end = end;
    attacker.Connect(options_.socket);
    attacker.SendHello();
    Tick();
    EXPECT_EQ(source_->counts().dropped, ++dropped) << end;
  }
}

TEST_F(AppHostile, SeriesOfADroppedProcessKeepWhatWasReadLast) {
  Start();
  Attacker attacker;
  attacker.Publish("n_total");
  attacker.header()->shards = UINT32_MAX;
  for (uint32_t& limit : attacker.header()->shard_limit) limit = UINT32_MAX;
  attacker.counts()[0] = {12, 0};
  attacker.Connect(options_.socket);
  attacker.SendHello();
  Tick();
  ASSERT_TRUE(Has("n_total"));
  EXPECT_EQ(source_->values()[0], 12);
  attacker.header()->records_end = 1;
  Tick();
  Tick();
  EXPECT_EQ(source_->processes(), 0u);
  EXPECT_EQ(source_->values()[0], 12);
}

TEST_F(AppHostile, CountersNeverFallAndAreAlwaysNumbers) {
  Start();
  Attacker attacker;
  attacker.Publish("n_total");
  attacker.header()->shards = 1;
  attacker.header()->shard_limit[0] = 1;
  attacker.Connect(options_.socket);
  attacker.SendHello();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const client::Count& count :
       {client::Count{5, 0.5}, {4, 0}, {0, nan}, {0, -1e300}, {0, HUGE_VAL}}) {
    attacker.counts()[0] = count;
    Tick();
    EXPECT_EQ(source_->values()[0], 5.5);
  }
}

TEST_F(AppHostile, TooManyMetricsAreTheEndOfAProcess) {
  options_.max_metrics = 100'000;
  Start();
  Attacker attacker;
  for (size_t i = 0; i <= client::kMaxMetrics; ++i) attacker.Publish("same_total");
  attacker.Connect(options_.socket);
  attacker.SendHello();
  Tick();
  EXPECT_EQ(source_->counts().dropped, 1u);
  EXPECT_EQ(source_->series().size(), 1u);
}

TEST_F(AppHostile, TextHasALimit) {
  options_.max_text = 100;
  Start();
  Attacker attacker;
  for (char c = 'a'; c < 'z'; ++c) attacker.Publish(std::string(20, c));
  attacker.Connect(options_.socket);
  attacker.SendHello();
  Tick();
  EXPECT_EQ(source_->series().size(), 4u);
  EXPECT_EQ(source_->counts().left_out, 21u);
  EXPECT_EQ(source_->TakeNotes().size(), 1u) << "said once";
}

TEST_F(AppHostile, AConflictingTypeIsLeftOutAndTheProcessStays) {
  Start();
  Attacker one, two;
  one.Publish("x");
  two.Publish("x", [](Record& r) { r.type = static_cast<uint8_t>(MetricType::kGauge); });
  two.Publish("y");
  for (Attacker* attacker : {&one, &two}) {
    attacker->Connect(options_.socket);
    attacker->SendHello();
    Tick();
  }
  EXPECT_EQ(source_->series().size(), 2u);
  EXPECT_EQ(source_->counts().left_out, 1u);
  EXPECT_EQ(source_->processes(), 2u);
}

TEST_F(AppHostile, OtherUsersAreRefused) {
  options_.uid = geteuid() + 1;
  Start();
  Attacker attacker;
  attacker.Connect(options_.socket);
  Tick();
  EXPECT_EQ(source_->counts().refused, 1u);
  EXPECT_EQ(source_->processes(), 0u);
}

TEST_F(AppHostile, AnApplicationGivesNothingToAnotherUsersSocket) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  Start();
  ClientProcess other({{"SONDE_SOCKET", options_.socket}}, STDERR_FILENO, 65534);
  const std::string answer = other.Do("init");
  if (answer == "dead") GTEST_SKIP() << "this build's folder is closed to other users";
  EXPECT_EQ(answer, std::to_string(SONDE_FOREIGN));
  EXPECT_EQ(other.Do("gauge g"), std::to_string(SONDE_FOREIGN) + " null");
}

TEST_F(AppHostile, SilentProcessesDoNotHoldTheirPlaces) {
  options_.max_processes = 2;
  Start();
  Attacker silent[3];
  for (Attacker& attacker : silent) attacker.Connect(options_.socket);
  Tick();
  EXPECT_EQ(source_->processes(), 2u);
  EXPECT_EQ(source_->counts().refused, 1u);
  now_ += options_.hello_within;
  Tick();
  EXPECT_EQ(source_->processes(), 0u);
  Attacker late;
  late.Publish("late_total");
  late.Connect(options_.socket);
  late.SendHello();
  Tick();
  EXPECT_TRUE(Has("late_total"));
}

TEST_F(AppHostile, NoDescriptorIsLeftOpen) {
  Start();
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 5; ++i) {
    Attacker attacker;
    attacker.Connect(options_.socket);
    const std::vector<int> many(static_cast<size_t>(i + 1), attacker.memory());
    attacker.Send({reinterpret_cast<char*>(&attacker.hello), sizeof(Hello)}, many);
    Tick();
    attacker.Send("again", many);
    Tick();
  }
  Tick();
  EXPECT_EQ(OpenDescriptors(), before);
}

// The process changes a name while the daemon looks at it: what comes out was checked, always.
TEST_F(AppHostile, TextThatChangesWhileItIsReadIsCheckedAsItIsUsed) {
  Attacker attacker;
  attacker.Publish("abcdefgh");
  std::atomic<bool> stop = false;
  volatile char* name = attacker.records() + sizeof(Record);
  volatile auto* size =
      reinterpret_cast<uint16_t*>(attacker.records() + offsetof(Record, name_size));
  std::thread changer([&] {
    for (unsigned i = 0; !stop; ++i) {
      name[i % 8] = i % 3 == 0 ? '{' : 'a';
      *size = i % 5 == 0 ? UINT16_MAX : 8;
    }
  });
  for (int i = 0; i < 50'000; ++i) {
    AppSegment segment(attacker.records() - client::kRecordsOffset);
    std::vector<AppMetric> found;
    if (!segment.ReadNew(1, found).ok()) continue;
    ASSERT_EQ(found.size(), 1u);
    ASSERT_TRUE(CheckMetricName(found[0].series.metric.name).ok()) << found[0].series.metric.name;
  }
  stop = true;
  changer.join();
}

}  // namespace
}  // namespace sonde::collect::client_hostile_test
