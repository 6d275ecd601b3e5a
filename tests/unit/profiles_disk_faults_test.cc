// The archive on a disk that breaks at every change in turn (broken_disk.h). Whatever is done to an
// archive is done in children: a process that has used LevelDB must not fork and go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <functional>
#include <limits>
#include <random>

#include "profiles/archive/open_archive.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/live/live_archive.h"
#include "profiles/upkeep/repair.h"
#include "tests/unit/broken_disk.h"
#include "tests/unit/in_child.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_disk_faults_test {
namespace {

using broken_disk::Fault;
using testing::AnyOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr Nanos kForever = std::numeric_limits<Nanos>::max();
constexpr Nanos kPatience = 60 * kSecond;
constexpr int kRows = 4;         // of a block
constexpr uint64_t kBlocks = 6;  // of each node
constexpr int kLargeRows = 128;
constexpr int kLargeBlocks = 16;
constexpr uint64_t kMost = 2'000;  // changes; a scenario has fewer

// What a child was told before it was killed.
struct Ledger {
  std::atomic<bool> created = false;
  std::atomic<uint64_t> blocks[2] = {};  // of each node
  std::atomic<bool> profile = false;
  std::atomic<bool> finished = false;
  std::atomic<uint64_t> synced = 0;   // blocks of node 0
  std::atomic<uint64_t> changes = 0;  // of one that was not killed
  std::atomic<bool> refused = false;  // something was answered with an error
};

using SharedLedger = SharedWithChild<Ledger>;

// The step of these tests, told as far as it came. It goes on after an error.
void WriteStep(const std::string& root, Ledger& ledger) {
  JobDescription job = TestJob();
  auto live = LiveArchive::Create(root, job);
  if (!live.ok()) {
    ledger.refused = true;
    return;
  }
  ledger.created = true;
  const auto heard = [&](const Status& status) {
    if (!status.ok()) ledger.refused = true;
    return status.ok();
  };
  heard((*live)->PutEndpoint({"login1", "127.0.0.1", 4242, "a secret of a step"}));
  for (uint64_t s = 1; s <= kBlocks; ++s) {
    for (uint32_t node = 0; node < 2; ++node) {
      // Without holes, which would have to be told from losses.
      if (ledger.blocks[node] + 1 != s) continue;
      const auto put = [&] {
        return heard(PutNodeBlock(**live, node, s, static_cast<int>(s - 1) * kRows, kRows));
      };
      if (put() || put()) ledger.blocks[node] = s;
    }
    heard(PutReducedBlock(**live, s, static_cast<int>(s - 1) * kRows, kRows));
    if (s == kBlocks / 2) {
      heard((*live)->PutMoments(job, StepMoments()));
      if (heard((*live)->Sync())) ledger.synced = ledger.blocks[0].load();
    }
  }
  // The first two of node 0 become one with the same rows.
  if (ledger.blocks[0] >= 2) {
    const auto schema = Schema::Make(TaskSeries());
    std::vector<double> columns;
    for (int i = 1; i <= 2 * kRows; ++i) columns.push_back(TestCpu(i, 0));
    for (int i = 1; i <= 2 * kRows; ++i) columns.push_back(TestMemory(0));
    const std::string both = MakeBlock(*schema, TestTimes(0, 2 * kRows), columns);
    LiveArchive::BlockWrite write{{0, "task", 2}, 1, schema->id(), schema.get(), both, 0, {}};
    (*live)->ReplaceBlocks({&write, 1});
    heard(write.status);
  }
  heard((*live)->PutState("for an acting head"));
  Profile profile;
  profile.job = job;
  profile.job.state = EndState::kCompleted;
  profile.job.end = job.start + kBlocks * kRows * kSecond;
  profile.job.coverage = {48, 48};
  if (heard((*live)->PutProfile(profile))) ledger.profile = true;
  if (heard((*live)->Finish())) ledger.finished = true;
}

// The rows of a node, which must be the first of them without a gap.
size_t RowsOf(const Archive& archive, const std::string& key, uint32_t node) {
  const std::string host = node == 0 ? "n1" : "n2";
  const auto data = archive.Read(
      key, SeriesScope::kNodes,
      [&](const Series& s) {
        return s.metric.name == "task_cpu_seconds_total" && *s.tags.Find("host") == host;
      },
      0, kForever);
  EXPECT_TRUE(data.ok()) << data.status().message();
  if (!data.ok() || data->empty()) return 0;
  const auto& points = data->front().points;
  for (size_t i = 0; i < points.size(); ++i) {
    const int tick = static_cast<int>(i + 1);
    EXPECT_EQ(points[i], (Point{kTestStart + tick * kSecond, TestCpu(tick, node)}));
  }
  return points.size();
}

std::vector<std::string> NamesBelow(const std::string& path) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& e : fs::directory_iterator(path, none)) names.push_back(e.path().filename());
  return names;
}

// The archive has all of the step that `ledger` tells, each row once, and knows how it ended.
void CheckStep(const std::string& root, const Ledger& ledger) {
  const auto archive = OpenArchive(root, kPatience);
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  if (ledger.created) {
    EXPECT_EQ(archive->reader->note(), "");
  }
  auto list = archive->reader->List();
  ASSERT_TRUE(list.ok()) << list.status().message();
  std::erase_if(*list, [](const ProfileEntry& e) { return e.job.id != TestJob().id; });
  ASSERT_LE(list->size(), 1u);
  if (list->empty()) {
    EXPECT_FALSE(ledger.created);
    return;
  }
  const ProfileEntry& entry = list->front();
  EXPECT_FALSE(entry.live);
  const auto profile = archive->reader->Load(entry.key);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  for (uint32_t node = 0; node < 2; ++node) {
    EXPECT_GE(RowsOf(*archive->reader, entry.key, node), ledger.blocks[node] * kRows)
        << "node " << node;
  }
  if (ledger.profile) {
    EXPECT_EQ(profile->job.state, EndState::kCompleted);
  } else if (profile->job.state != EndState::kCompleted) {
    EXPECT_EQ(profile->job.state, EndState::kLost);
    ASSERT_FALSE(profile->job.notes.empty());
    EXPECT_THAT(profile->job.notes[0],
                AnyOf(HasSubstr("The head was killed"), HasSubstr("The record could not be written "
                                                                  "(")));
    // All but what stands beside LevelDB goes through it.
    if (ledger.refused) {
      EXPECT_THAT(profile->job.notes[0],
                  AnyOf(HasSubstr("No space left on device"), HasSubstr("Disk quota exceeded")));
    }
  }
  // What was left half made is there at most until it is swept away.
  for (const std::string& name : NamesBelow(root + "/live")) EXPECT_EQ(name[0], '.') << name;
}

class DiskFaultsTest : public testing::Test {
 protected:
  std::string root() const { return dir_.path() + "/archive"; }
  std::string prepared() const { return dir_.path() + "/prepared"; }

  // Calls `f` with the number of every change there is in what it does; it says whether it came as
  // far as that change.
  static void AtEveryChange(uint64_t least, const std::function<bool(uint64_t n)>& f) {
    uint64_t n = 1;
    while (n < kMost && f(n)) {
      ASSERT_FALSE(HasFailure()) << "change " << n;
      ++n;
    }
    EXPECT_GT(n, least);
    EXPECT_LT(n, kMost);
  }
  // The writer with a fault; whether it came to it.
  bool WriterBreaks(const broken_disk::Plan& plan, Ledger& ledger) const {
    fs::remove_all(root());
    const int status = InChild([&] {
      broken_disk::Arm(root(), plan);
      WriteStep(root(), ledger);
      ledger.changes = broken_disk::Changes();
    });
    EXPECT_TRUE(WasKilled(status) || status == 0) << status;
    return WasKilled(status) || ledger.changes >= plan.at;
  }
  // An archive with a step in db/, and one in live/ that has ended and one that was abandoned.
  void Prepare() {
    const int status = InChild([&] {
      SharedLedger first;
      WriteStep(root(), *first);
      EXPECT_TRUE(OpenArchive(root(), kPatience).ok());
      auto abandoned = LiveArchive::Create(root(), TestJob("124", kTestStart + kSecond));
      ASSERT_TRUE(abandoned.ok());
      ASSERT_TRUE(PutNodeBlock(**abandoned, 1, 1, 0, kRows).ok());
      ASSERT_TRUE(PutReducedBlock(**abandoned, 1, 0, kRows).ok());
      JobDescription job = TestJob("125", kTestStart + 2 * kSecond);
      auto ended = LiveArchive::Create(root(), job);
      ASSERT_TRUE(ended.ok());
      ASSERT_TRUE(PutNodeBlock(**ended, 0, 1, 0, kRows).ok());
      Profile profile;
      profile.job = job;
      profile.job.state = EndState::kFailed;
      profile.job.end = job.start + kRows * kSecond;
      ASSERT_TRUE((*ended)->PutProfile(profile).ok());
      ASSERT_TRUE((*ended)->Finish().ok());
    });
    ASSERT_EQ(status, 0);
    fs::rename(root(), prepared());
  }
  // In live/: a step whose blocks are more than LevelDB keeps in one log.
  void PrepareLarge() {
    const int status = InChild([&] {
      std::vector<Series> series;
      for (int i = 0; i < 400; ++i) {
        series.push_back(TestSeries("large_" + std::to_string(i), MetricType::kGauge));
      }
      const auto schema = Schema::Make(series);
      std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same every time
      auto live = LiveArchive::Create(root(), TestJob());
      ASSERT_TRUE(live.ok());
      for (int s = 0; s < kLargeBlocks; ++s) {
        std::vector<double> columns(series.size() * kLargeRows);
        for (double& value : columns) value = std::ldexp(static_cast<double>(random()), -70);
        ASSERT_TRUE(
            (*live)
                ->PutBlock({0, "os", static_cast<uint64_t>(s + 1)}, *schema,
                           MakeBlock(*schema, TestTimes(s * kLargeRows, kLargeRows), columns))
                .ok());
      }
      ASSERT_TRUE((*live)->Finish().ok());
    });
    ASSERT_EQ(status, 0);
    fs::rename(root(), prepared());
  }
  // The ingest of what Prepare made, with a fault; whether it came to it.
  bool IngestBreaks(const broken_disk::Plan& plan, Ledger& ledger, bool check = true) const {
    fs::remove_all(root());
    fs::copy(prepared(), root(), fs::copy_options::recursive);
    const int status = InChild([&] {
      broken_disk::Arm(root(), plan);
      const auto archive = OpenArchive(root(), kPatience);
      ledger.changes = broken_disk::Changes();
      if (!archive.ok() || !archive->reader->note().empty()) ledger.refused = true;
      // Nothing is hidden meanwhile.
      ASSERT_TRUE(archive.ok()) << archive.status().message();
      if (check) CheckPrepared(*archive->reader);
    });
    EXPECT_TRUE(WasKilled(status) || status == 0) << status;
    return WasKilled(status) || ledger.changes >= plan.at;
  }
  static void CheckPrepared(const Archive& archive) {
    const auto list = archive.List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    ASSERT_EQ(list->size(), 3u);
    EXPECT_EQ((*list)[0].job.id.job, "125");
    EXPECT_EQ(RowsOf(archive, (*list)[0].key, 0), size_t{kRows});
    EXPECT_EQ((*list)[1].job.id.job, "124");
    EXPECT_EQ(RowsOf(archive, (*list)[1].key, 1), size_t{kRows});
    EXPECT_EQ((*list)[2].job.id.job, "123");
    for (const uint32_t node : {0u, 1u}) {
      EXPECT_EQ(RowsOf(archive, (*list)[2].key, node), kBlocks * kRows);
    }
  }
  // Later, on a disk that works.
  int IngestLargeAgain() const {
    return InChild([&] {
      const auto archive = OpenArchive(root(), kPatience);
      ASSERT_TRUE(archive.ok()) << archive.status().message();
      EXPECT_EQ(archive->reader->note(), "");
      const auto list = archive->reader->List();
      ASSERT_EQ(list->size(), 1u);
      const auto wanted = [](const Series& s) { return s.metric.name == "large_7"; };
      const auto data =
          archive->reader->Read(list->front().key, SeriesScope::kNodes, wanted, 0, kForever);
      ASSERT_TRUE(data.ok()) << data.status().message();
      ASSERT_EQ(data->size(), 1u);
      EXPECT_EQ(data->front().points.size(), size_t{kLargeBlocks * kLargeRows});
      EXPECT_THAT(NamesBelow(root() + "/live"), testing::IsEmpty());
    });
  }
  int IngestAgain() const {
    return InChild([&] {
      const auto archive = OpenArchive(root(), kPatience);
      ASSERT_TRUE(archive.ok()) << archive.status().message();
      EXPECT_EQ(archive->reader->note(), "");
      CheckPrepared(*archive->reader);
      const auto list = archive->reader->List();
      for (const ProfileEntry& entry : *list) EXPECT_FALSE(entry.live) << entry.key;
      EXPECT_EQ(archive->reader->Load((*list)[0].key)->job.state, EndState::kFailed);
      EXPECT_EQ(archive->reader->Load((*list)[1].key)->job.state, EndState::kLost);
      EXPECT_THAT(NamesBelow(root() + "/live"), testing::IsEmpty());
    });
  }

  // Whatever was repaired is in its place or put aside, and nothing half made is left.
  void ExpectFirstKept() const {
    bool found = false;
    for (const std::string& name : NamesBelow(root())) {
      found |= name.starts_with("db") && fs::exists(root() + "/" + name + "/FIRST");
      EXPECT_NE(name, "db.repair");
    }
    EXPECT_TRUE(found);
  }

  TempDir dir_{TempDir::Memory()};
};

TEST_F(DiskFaultsTest, AWriterKilledAtAnyChangeLosesNothingItAcknowledged) {
  for (const Fault fault : {Fault::kKill, Fault::kTear}) {
    AtEveryChange(40, [&](uint64_t n) {
      SharedLedger ledger;
      const bool reached = WriterBreaks({fault, n, 0}, *ledger);
      EXPECT_FALSE(ledger->refused);
      EXPECT_EQ(InChild([&] { CheckStep(root(), *ledger); }), 0) << static_cast<int>(fault);
      return reached;
    });
  }
}

TEST_F(DiskFaultsTest, AFileThatIsReplacedIsTheOldOrTheNewOneWhateverHappens) {
  const std::string path = root() + "/file";
  for (const Fault fault : {Fault::kKill, Fault::kTear, Fault::kPower}) {
    for (const bool keeps_names : {false, true}) {
      AtEveryChange(3, [&](uint64_t n) {
        fs::remove_all(root());
        fs::create_directories(root());
        EXPECT_TRUE(WriteFileAtomically(path, "the old text").ok());
        const int status = InChild([&] {
          broken_disk::Arm(root(), {.fault = fault, .at = n, .keeps_names = keeps_names});
          EXPECT_TRUE(WriteFileAtomically(path, "the new text").ok());
          EXPECT_TRUE(WriteFileAtomically(root() + "/after", "").ok());
        });
        EXPECT_THAT(*ReadSmallFile(path, 100), AnyOf("the old text", "the new text"));
        return WasKilled(status);
      });
    }
  }
}

// Of a writer that syncs; the machine's end takes what was written since.
TEST_F(DiskFaultsTest, APowerCutAtAnyChangeLosesNothingThatWasSynced) {
  const auto lose = [&](uint64_t n, bool keeps_names) {
    SharedLedger ledger;
    const bool reached =
        WriterBreaks({.fault = Fault::kPower, .at = n, .keeps_names = keeps_names}, *ledger);
    EXPECT_EQ(InChild([&] {
                const auto archive = OpenArchive(root(), kPatience);
                ASSERT_TRUE(archive.ok()) << archive.status().message();
                const auto list = archive->reader->List();
                ASSERT_TRUE(list.ok()) << list.status().message();
                if (ledger->synced == 0) return;
                ASSERT_EQ(list->size(), 1u);
                EXPECT_GE(RowsOf(*archive->reader, list->front().key, 0), ledger->synced * kRows);
                // This is in the description alone.
                EXPECT_EQ(list->front().job.name, TestJob().name);
              }),
              0)
        << n;
    return reached;
  };
  AtEveryChange(40, [&](uint64_t n) { return lose(n, false); });
  AtEveryChange(40, [&](uint64_t n) { return lose(n, true); });
}

TEST_F(DiskFaultsTest, AWriterOnAFullDiskIsToldAndLosesNothingItAcknowledged) {
  for (const int error : {ENOSPC, EDQUOT}) {
    for (const Fault fault : {Fault::kFull, Fault::kOnce}) {
      AtEveryChange(40, [&](uint64_t n) {
        SharedLedger ledger;
        const bool reached = WriterBreaks({fault, n, error}, *ledger);
        if (ledger->created && fault == Fault::kOnce) {
          EXPECT_EQ(ledger->blocks[0], kBlocks);
          EXPECT_EQ(ledger->blocks[1], kBlocks);
        }
        EXPECT_EQ(InChild([&] { CheckStep(root(), *ledger); }), 0);
        return reached;
      });
    }
  }
}

TEST_F(DiskFaultsTest, AnIngestKilledAtAnyChangeLosesNothingAndCountsNothingTwice) {
  Prepare();
  for (const Fault fault : {Fault::kKill, Fault::kTear, Fault::kPower}) {
    AtEveryChange(30, [&](uint64_t n) {
      SharedLedger ledger;
      const bool reached = IngestBreaks({fault, n, 0}, *ledger);
      EXPECT_FALSE(ledger->refused);
      EXPECT_EQ(IngestAgain(), 0) << static_cast<int>(fault);
      return reached;
    });
  }
}

// LevelDB begins another log and a table meanwhile: a sync of the new log is none of the old one.
TEST_F(DiskFaultsTest, APowerCutWhileALargeStepIsIngestedLosesNothing) {
  PrepareLarge();
  SharedLedger whole;
  ASSERT_TRUE(IngestBreaks({Fault::kNone, 0, 0}, *whole, false));
  // What is deleted comes last: each change of these, and a few of the others.
  constexpr uint64_t kStride = 31;
  constexpr uint64_t kLast = 24;
  const uint64_t changes = whole->changes;
  ASSERT_GT(changes, 100u);
  for (uint64_t n = kStride; n <= changes; n += n + kLast < changes ? kStride : 1) {
    SharedLedger ledger;
    IngestBreaks({Fault::kPower, n, 0}, *ledger, false);
    ASSERT_EQ(IngestLargeAgain(), 0) << "change " << n << " of " << changes;
  }
}

TEST_F(DiskFaultsTest, AnIngestOnAFullDiskKeepsTheStepsInLive) {
  Prepare();
  for (const Fault fault : {Fault::kFull, Fault::kOnce}) {
    AtEveryChange(20, [&](uint64_t n) {
      SharedLedger ledger;
      const bool reached = IngestBreaks({fault, n, n % 2 == 0 ? ENOSPC : EDQUOT}, *ledger);
      EXPECT_EQ(IngestAgain(), 0) << static_cast<int>(fault);
      return reached;
    });
  }
}

TEST_F(DiskFaultsTest, ARepairKilledOrShortOfSpaceAtAnyChangeLosesNothing) {
  Prepare();
  // LevelDB passes over it: where it is, there is the database that was repaired.
  std::ofstream(prepared() + "/db/FIRST") << "\n";
  // It works on a copy, so there is always one of the two.
  for (const auto& kind : {std::pair{Fault::kKill, true}, std::pair{Fault::kTear, true},
                           std::pair{Fault::kPower, true}, std::pair{Fault::kFull, true},
                           std::pair{Fault::kKill, false}}) {
    AtEveryChange(20, [&](uint64_t n) {
      fs::remove_all(root());
      fs::copy(prepared(), root(), fs::copy_options::recursive);
      SharedLedger ledger;
      const int status = InChild([&] {
        broken_disk::Arm(root(), {kind.first, n, ENOSPC, kind.second});
        const auto repaired = RepairArchive(root(), kPatience, nullptr);
        ledger->changes = broken_disk::Changes();
        EXPECT_TRUE(repaired.ok() || kind.first == Fault::kFull) << repaired.status().message();
      });
      EXPECT_TRUE(WasKilled(status) || status == 0) << status;
      EXPECT_EQ(IngestAgain(), 0) << static_cast<int>(kind.first);
      ExpectFirstKept();
      // It can be repaired again, and then the first one is still kept.
      EXPECT_EQ(InChild([&] { EXPECT_TRUE(RepairArchive(root(), kPatience, nullptr).ok()); }), 0);
      EXPECT_EQ(IngestAgain(), 0) << static_cast<int>(kind.first);
      ExpectFirstKept();
      EXPECT_FALSE(fs::exists(root() + "/db/FIRST"));
      return WasKilled(status) || ledger->changes >= n;
    });
  }
}

// By Ctrl-C at a server, or its end: wherever it is asked whether to go on.
TEST_F(DiskFaultsTest, ARepairStoppedAnywhereLeavesTheArchiveAsItWas) {
  PrepareLarge();
  fs::rename(prepared(), root());
  ASSERT_EQ(IngestLargeAgain(), 0);
  std::ofstream(root() + "/db/FIRST") << "\n";
  AtEveryChange(5, [&](uint64_t n) {
    SharedLedger ledger;
    EXPECT_EQ(InChild([&] {
                uint64_t asked = 0;
                const auto stop = [&](uint64_t, uint64_t) { return ++asked < n; };
                const auto repaired = RepairArchive(root(), kPatience, stop);
                EXPECT_TRUE(repaired.ok() || repaired.status().code() == Code::kUnavailable);
                ledger->refused = !repaired.ok();
              }),
              0);
    EXPECT_EQ(fs::exists(root() + "/db/FIRST"), ledger->refused);
    EXPECT_FALSE(fs::exists(root() + "/db.repair"));
    EXPECT_EQ(fs::exists(root() + "/db.damaged-1"), !ledger->refused);
    EXPECT_EQ(IngestLargeAgain(), 0);
    return ledger->refused.load();
  });
}

}  // namespace
}  // namespace sonde::profiles_disk_faults_test
