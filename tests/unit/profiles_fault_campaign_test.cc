// One process does with an archive whatever comes, while changes of the disk fail by chance; then
// it ends, is killed, or the power goes. What it was told is done is there, at any time.
// SONDE_FAULT_SEEDS=N: with as many seeds; SONDE_FAULT_FIRST: from this one on. What a seed makes
// again is what the process does. Which changes fail depends on when LevelDB's thread makes its own
// among them, so one seed may have to be run some times.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <random>

#include "core/log.h"
#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "profiles/upkeep/retention.h"
#include "profiles/upkeep/verify.h"
#include "tests/unit/broken_disk.h"
#include "tests/unit/in_child.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_fault_campaign_test {
namespace {

using broken_disk::Fault;

constexpr Nanos kForever = std::numeric_limits<Nanos>::max();
constexpr Nanos kPatience = 60 * kSecond;
constexpr int kSteps = 8;
constexpr int kActs = 24;
constexpr int kRows = 16;
constexpr int kSmall = 3;
constexpr int kLarge = 400;

// What the process was told of each step.
struct Told {
  struct Step {
    std::atomic<int> blocks = 0;     // so many are stored
    std::atomic<int> large = 0;      // how they are made
    std::atomic<bool> made = false;  // there is a live step
    std::atomic<bool> finished = false;
    std::atomic<bool> taken = false;   // it is in db/
    std::atomic<bool> may_go = false;  // a prune has begun that may delete it
    std::atomic<int> tag = 0;          // the last that was set
    std::atomic<int> tried = 0;        // the last that was to be set
  };
  Step steps[kSteps];
  std::atomic<bool> power = false;  // it was cut
};

class Campaign {
 public:
  Campaign(std::string root, uint64_t seed, Told& told)
      : root_(std::move(root)), random_(seed), told_(told) {}

  // In a child, on a disk that breaks.
  void Run() {
    broken_disk::Arm(root_, {.fault = Fault::kOften, .seed = random_()});
    for (int i = 0; i < kActs; ++i) {
      Act();
      if (archive_) Check(*archive_->reader, false);
      if (testing::Test::HasFailure()) return;
    }
    const uint64_t end = Any(3);
    told_.power = end == 0;
    if (end == 0) broken_disk::CutPower();
    if (end == 1) ::kill(::getpid(), SIGKILL);
    archive_.reset();
  }
  // In another one, when it has ended.
  void CheckNext() {
    // Of live steps nothing was synced.
    {
      const auto archive = OpenArchive(root_, kPatience);
      ASSERT_TRUE(archive.ok()) << archive.status().message();
      if (!told_.power) {
        EXPECT_EQ(archive->reader->note(), "");
      }
      Check(*archive->reader, told_.power);
    }
    const auto report = VerifyArchive(root_, nullptr);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_TRUE(report->ok()) << report->problems[0].what;
  }

 private:
  bool HasOwner() const { return archive_ && archive_->owner; }
  uint64_t Any(uint64_t most) { return random_() % most; }
  static JobDescription JobOf(int i) {
    return TestJob(std::to_string(100 + i), kTestStart + i * 1000 * kSecond);
  }
  static std::string KeyOf(int i) { return keys::ProfileKey(JobOf(i)); }
  static double ValueAt(int step, int tick, int series) {
    std::mt19937_64 random(static_cast<uint64_t>((step * 1000 + tick) * 1000 + series));
    return std::ldexp(static_cast<double>(random()), -70);
  }

  void Act() {
    if (!archive_) {
      auto opened = OpenArchive(root_, 0);
      if (opened.ok()) archive_.emplace(*std::move(opened));
    }
    // As a server does.
    if (archive_ && !archive_->owner) {
      auto owner = OwnedArchive::Take(*archive_->reader, 0);
      if (owner.ok()) archive_->owner = *std::move(owner);
    }
    switch (Any(8)) {
      case 0:
      case 1:
      case 2:
        return Write(next_++ % kSteps);
      case 3:
      case 4:
        return Ingest();
      case 5:
        return Tag(static_cast<int>(Any(kSteps)));
      case 6:
        return Any(3) == 0 ? Prune() : Compact();
      default:
        archive_.reset();
    }
  }
  static Status PutBlock(LiveArchive& live, int step, int block, int count) {
    std::vector<Series> series;
    for (int s = 0; s < count; ++s) {
      series.push_back(TestSeries("series_" + std::to_string(s), MetricType::kGauge));
    }
    const auto schema = Schema::Make(series);
    std::vector<Nanos> times;
    std::vector<double> columns;
    const int first = block * kRows;
    for (int i = 1; i <= kRows; ++i) times.push_back(JobOf(step).start + (first + i) * kSecond);
    for (int s = 0; s < count; ++s) {
      for (int i = 1; i <= kRows; ++i) columns.push_back(ValueAt(step, first + i, s));
    }
    return live.PutBlock({0, "os", static_cast<uint64_t>(block + 1)}, *schema,
                         MakeBlock(*schema, times, columns));
  }
  // Each thing a few times.
  static bool Try(const std::function<Status()>& f) {
    constexpr int kTries = 4;
    for (int i = 0; i < kTries; ++i) {
      if (f().ok()) return true;
    }
    return false;
  }
  void Write(int i) {
    Told::Step& step = told_.steps[i];
    if (step.made) return;
    auto live = LiveArchive::Create(root_, JobOf(i));
    if (!live.ok()) return;
    step.made = true;
    step.large = Any(2) == 0 ? 1 : 0;
    const int blocks = 1 + static_cast<int>(Any(step.large != 0 ? 30 : 6));
    for (int block = 0; block < blocks; ++block) {
      const int count = step.large != 0 ? kLarge : kSmall;
      if (!Try([&] { return PutBlock(**live, i, block, count); })) break;
      ++step.blocks;
    }
    Profile profile;
    profile.job = JobOf(i);
    profile.job.state = EndState::kCompleted;
    profile.job.end = profile.job.start + 900 * kSecond;
    step.finished =
        Try([&] { return (*live)->PutProfile(profile); }) && Try([&] { return (*live)->Finish(); });
  }
  void Ingest() {
    if (!HasOwner() || !archive_->owner->IngestWaiting().ok()) return;
    for (int i = 0; i < kSteps; ++i) {
      Told::Step& step = told_.steps[i];
      if (!step.made || step.may_go) continue;
      const auto entry = archive_->reader->Entry(KeyOf(i));
      EXPECT_TRUE(entry.ok()) << entry.status().message();
      if (entry.ok() && !entry->live) step.taken = true;
    }
  }
  void Tag(int i) {
    Told::Step& step = told_.steps[i];
    if (!HasOwner() || !step.taken) return;
    ++step.tried;
    const auto tags = archive_->owner->Tag(KeyOf(i), {{{"n", std::to_string(step.tried)}}, {}});
    if (tags.ok()) step.tag = step.tried.load();
  }
  void Prune() {
    if (!HasOwner()) return;
    Retention limits;
    limits.profiles = 5;
    // Which of them are in db/ is not always known. They are made in the order of their starts.
    uint64_t newer = 0;
    for (int i = kSteps; i-- > 0;) {
      if (newer >= limits.profiles) told_.steps[i].may_go = true;
      if (told_.steps[i].made) ++newer;
    }
    static_cast<void>(archive_->owner->Prune(limits, kTestStart, kPatience));
  }
  void Compact() {
    if (HasOwner()) static_cast<void>(archive_->owner->Compact(nullptr));
  }

  void Check(const Archive& archive, bool power) const {
    for (int i = 0; i < kSteps; ++i) {
      const Told::Step& step = told_.steps[i];
      if (!step.made || step.may_go || (power && !step.taken)) continue;
      const auto entry = archive.Entry(KeyOf(i));
      ASSERT_TRUE(entry.ok()) << "step " << i << ": " << entry.status().message();
      if (step.taken) {
        EXPECT_FALSE(entry->live) << "step " << i;
      }
      if (step.finished) {
        EXPECT_EQ(entry->job.state, EndState::kCompleted) << "step " << i;
      }
      CheckTag(i, entry->job.tags);
      CheckRows(archive, i);
    }
  }
  // The one that was set last, or one that was to be set since.
  void CheckTag(int i, const UserTags& tags) const {
    const auto found = tags.find("n");
    const int tag = found == tags.end() ? 0 : std::atoi(found->second.c_str());
    EXPECT_GE(tag, told_.steps[i].tag) << "step " << i;
    EXPECT_LE(tag, told_.steps[i].tried) << "step " << i;
  }
  void CheckRows(const Archive& archive, int i) const {
    const auto data = archive.Read(
        KeyOf(i), SeriesScope::kNodes, [](const Series& s) { return s.metric.name == "series_1"; },
        0, kForever);
    ASSERT_TRUE(data.ok()) << "step " << i << ": " << data.status().message();
    const size_t rows = data->empty() ? 0 : data->front().points.size();
    EXPECT_GE(rows, static_cast<size_t>(told_.steps[i].blocks * kRows)) << "step " << i;
    for (size_t r = 0; r < rows; ++r) {
      const int tick = static_cast<int>(r + 1);
      const Point wanted{JobOf(i).start + tick * kSecond, ValueAt(i, tick, 1)};
      ASSERT_EQ(data->front().points[r], wanted) << "step " << i << " row " << r;
    }
  }

  const std::string root_;
  std::mt19937_64 random_;
  Told& told_;
  std::optional<OpenedArchive> archive_;
  int next_ = 0;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(FaultCampaignTest, WhateverFailsWhatWasAcknowledgedIsThere) {
  constexpr uint64_t kSeeds = 20;
  const uint64_t first = FromEnvironment("SONDE_FAULT_FIRST", 1);
  const uint64_t seeds = FromEnvironment("SONDE_FAULT_SEEDS", kSeeds);
  const TempDir dir(TempDir::Memory());
  const std::string root = dir.path() + "/archive";
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    std::filesystem::remove_all(root);
    SharedWithChild<Told> told;
    const int status = InChild([&] {
      static_cast<void>(log::Open("test", dir.path() + "/log", log::Level::kInfo));
      Campaign(root, seed, *told).Run();
    });
    ASSERT_TRUE(WasKilled(status) || status == 0) << "seed " << seed << ": " << status;
    ASSERT_EQ(InChild([&] { Campaign(root, seed, *told).CheckNext(); }), 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sonde::profiles_fault_campaign_test
