// What one process acknowledges after a write or a sync of it has failed (broken_disk.h): it is
// there at once, in the same process later on, and when the archive is opened next, be that after a
// kill or a power cut. SONDE_FAULT_SEEDS=N runs the campaign of chance with as many seeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <map>
#include <random>

#include "core/log.h"
#include "profiles/archive/ask_keeper.h"
#include "profiles/archive/ingest_one.h"
#include "profiles/archive/keeper.h"
#include "profiles/archive/open_archive.h"
#include "profiles/disk/read_only_db.h"
#include "profiles/live/live_archive.h"
#include "profiles/live/live_steps.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/upkeep/ingest.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/retention.h"
#include "profiles/upkeep/verify.h"
#include "tests/unit/broken_disk.h"
#include "tests/unit/in_child.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_failed_writes_test {
namespace {

using broken_disk::Fault;
using broken_disk::Plan;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr Nanos kForever = std::numeric_limits<Nanos>::max();
constexpr Nanos kPatience = 60 * kSecond;
constexpr int kRows = 16;  // of a block
constexpr int kSmall = 4;
constexpr int kLarge = 400;        // series: their blocks are longer than one of LevelDB's log
constexpr uint64_t kBlocks = 24;   // more than one batch of an ingest
constexpr uint64_t kMost = 4'000;  // changes; a scenario has fewer
constexpr const char* kShown = "series_1";

JobDescription JobOf(int i) {
  return TestJob(std::to_string(100 + i), kTestStart + i * 1000 * kSecond);
}
std::string KeyOf(int i) { return keys::ProfileKey(JobOf(i)); }

double ValueAt(int tick, int series) {
  std::mt19937_64 random(static_cast<uint64_t>(tick * 1000 + series));
  return std::ldexp(static_cast<double>(random()), -70);
}

// The block number `sequence`, from 1, of a step's only node.
Status PutBlock(LiveArchive& live, uint64_t sequence, int series_count, Nanos start) {
  std::vector<Series> series;
  for (int i = 0; i < series_count; ++i) {
    series.push_back(TestSeries("series_" + std::to_string(i), MetricType::kGauge));
  }
  const auto schema = Schema::Make(series);
  const int first = static_cast<int>(sequence - 1) * kRows;
  std::vector<Nanos> times;
  std::vector<double> columns;
  for (int i = 1; i <= kRows; ++i) times.push_back(start + (first + i) * kSecond);
  for (int s = 0; s < series_count; ++s) {
    for (int i = 1; i <= kRows; ++i) columns.push_back(ValueAt(first + i, s));
  }
  return live.PutBlock({0, "os", sequence}, *schema, MakeBlock(*schema, times, columns));
}

Profile ProfileOf(const JobDescription& job) {
  Profile profile;
  profile.job = job;
  profile.job.state = EndState::kCompleted;
  profile.job.end = job.start + 900 * kSecond;
  return profile;
}

Status End(LiveArchive& live, const JobDescription& job) {
  SONDE_RETURN_IF_ERROR(live.PutProfile(ProfileOf(job)));
  return live.Finish();
}

// How many rows there are of a step: the first ones, without a gap, with the right values.
uint64_t RowsOf(const Archive& archive, int step) {
  const auto data = archive.Read(
      KeyOf(step), SeriesScope::kNodes, [](const Series& s) { return s.metric.name == kShown; }, 0,
      kForever);
  EXPECT_TRUE(data.ok()) << data.status().message();
  if (!data.ok() || data->empty()) return 0;
  const auto& points = data->front().points;
  for (size_t i = 0; i < points.size(); ++i) {
    const int tick = static_cast<int>(i + 1);
    EXPECT_EQ(points[i], (Point{JobOf(step).start + tick * kSecond, ValueAt(tick, 1)}));
  }
  return points.size();
}

void ExpectSound(const std::string& root) {
  const auto report = VerifyArchive(root, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->ok()) << report->problems[0].what;
}

struct Told {
  std::atomic<uint64_t> changes = 0;
};

// The first writing fails at one change after the other. Then the same description is written, and
// is there for whoever reads it, in the step's directory and in its database.
TEST(Descriptions, ThatWereNotWrittenAreWrittenWhenTheyComeAgain) {
  SharedWithChild<Told> told;
  for (uint64_t at = 1; told->changes == 0 || at <= told->changes; ++at) {
    ASSERT_LT(at, kMost);
    const TempDir dir;
    const std::string root = dir.path() + "/archive";
    ASSERT_EQ(InChild([&] {
                JobDescription job = JobOf(0);
                const auto live = *LiveArchive::Create(root, job);
                broken_disk::Arm(dir.path(), {.fault = Fault::kOnce, .at = at, .error = EIO});
                job.notes.emplace_back("late");
                static_cast<void>(live->PutDescription(job));
                told->changes = broken_disk::Changes();
                EXPECT_TRUE(live->PutDescription(job).ok());
              }),
              0)
        << "change " << at;
    const auto steps = ScanLive(ArchivePaths(root));
    ASSERT_TRUE(steps.ok());
    ASSERT_EQ(steps->size(), 1u);
    EXPECT_THAT(steps->at(0).job.notes, Contains("late")) << "change " << at;
    const auto read = ReadOnlyDb::Open(steps->at(0).paths.blocks(), steps->at(0).paths.lock());
    ASSERT_TRUE(read.ok());
    const auto stored = ReadDescription(*read->db, KeyOf(0));
    ASSERT_TRUE(stored.ok());
    EXPECT_THAT(stored->notes, Contains("late")) << "change " << at;
  }
}

// An archive with step 0, and step 1 with large blocks, finished and not taken in.
class FailedWritesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(InChild([&] {
                for (const int i : {0, 1}) {
                  const std::string at = i == 0 ? base() : dir_.path() + "/other";
                  auto live = LiveArchive::Create(at, JobOf(i));
                  ASSERT_TRUE(live.ok()) << live.status().message();
                  for (uint64_t s = 1; s <= (i == 0 ? 1 : kBlocks); ++s) {
                    ASSERT_TRUE(PutBlock(**live, s, i == 0 ? kSmall : kLarge, JobOf(i).start).ok());
                  }
                  ASSERT_TRUE(End(**live, JobOf(i)).ok());
                }
                ASSERT_TRUE(OpenArchive(base(), kPatience).ok());
              }),
              0);
  }
  std::string base() const { return dir_.path() + "/base"; }
  std::string root() const { return dir_.path() + "/archive"; }

  // Has it open, and then step 1 comes; `f` is done on the disk that breaks as planned, in a child
  // that ends as it likes.
  int Run(const broken_disk::Plan& plan, const std::function<void(OpenedArchive&)>& f) const {
    fs::remove_all(root());
    fs::remove(dir_.path() + "/log");
    fs::copy(base(), root(), fs::copy_options::recursive);
    return InChild([&] {
      static_cast<void>(log::Open("test", dir_.path() + "/log", log::Level::kInfo));
      auto archive = OpenArchive(root(), kPatience);
      ASSERT_TRUE(archive.ok() && archive->owned());
      fs::copy(dir_.path() + "/other/live", root() + "/live", fs::copy_options::recursive);
      broken_disk::Arm(root(), plan);
      f(*archive);
    });
  }
  // Step 1 is taken in and step 0 tagged, at the second try at the latest.
  static void IngestAndTag(const OpenedArchive& archive) {
    Status ingested;
    for (int tries = 0; tries < 2; ++tries) {
      ingested = archive.owner->IngestWaiting().status();
      EXPECT_EQ(RowsOf(*archive.reader, 0), uint64_t{kRows});
      EXPECT_EQ(RowsOf(*archive.reader, 1), kBlocks * kRows);
      if (ingested.ok()) break;
    }
    EXPECT_TRUE(ingested.ok()) << ingested.message();
    Status tagged;
    for (int tries = 0; tries < 2; ++tries) {
      tagged = archive.owner->Tag(KeyOf(0), {{{"a", "1"}}, {}}).status();
      if (tagged.ok()) break;
    }
    EXPECT_TRUE(tagged.ok()) << tagged.message();
    CheckBoth(*archive.reader);
  }
  static void CheckBoth(const Archive& archive) {
    EXPECT_EQ(RowsOf(archive, 0), uint64_t{kRows});
    EXPECT_EQ(RowsOf(archive, 1), kBlocks * kRows);
    const auto tagged = archive.Entry(KeyOf(0));
    ASSERT_TRUE(tagged.ok()) << tagged.status().message();
    EXPECT_TRUE(tagged->job.tags.contains("a"));
    const auto taken = archive.Entry(KeyOf(1));
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_FALSE(taken->live);
  }
  // Keeps step 1, which began last.
  static void PruneToOne(const OpenedArchive& archive) {
    Retention limits;
    limits.profiles = 1;
    const auto pruned = archive.owner->Prune(limits, JobOf(2).start, kPatience);
    ASSERT_TRUE(pruned.ok()) << pruned.status().message();
    ASSERT_EQ(pruned->profiles, 1u);
  }
  std::map<std::string, uint64_t> Logs() const {
    std::map<std::string, uint64_t> sizes;
    for (const auto& file : fs::directory_iterator(root() + "/db")) {
      if (file.path().extension() == ".log") sizes[file.path()] = file.file_size();
    }
    return sizes;
  }
  // The logs of db/ lose what came since.
  static void CutLogs(const std::map<std::string, uint64_t>& sizes) {
    for (const auto& [path, size] : sizes) fs::resize_file(path, size);
  }
  // What the last child has said.
  std::string Logged() const {
    std::ifstream file(dir_.path() + "/log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  template <typename T>
  static std::string ErrorOf(const Result<T>& result) {
    return std::string(result.status().message());
  }
  // By whoever opens it next, on a disk that works.
  int CheckNext() const {
    return InChild([&] {
      {
        const auto archive = OpenArchive(root(), kPatience);
        ASSERT_TRUE(archive.ok()) << archive.status().message();
        EXPECT_EQ(archive->reader->note(), "");
        CheckBoth(*archive->reader);
      }
      ExpectSound(root());
    });
  }
  // Calls `f` with every few changes that there are where none fails; it gives how many it has
  // made.
  static void AtSomeChanges(const std::function<uint64_t(uint64_t n)>& f, uint64_t stride = 5) {
    uint64_t changes = f(kMost);
    ASSERT_GT(changes, 40u);
    for (uint64_t n = 1; n <= changes; n += stride) {
      // A way around a failure may be longer.
      changes = std::max(changes, f(n));
      ASSERT_LT(changes, kMost);
      ASSERT_FALSE(HasFailure()) << "change " << n;
    }
  }

  TempDir dir_{TempDir::Memory()};
};

TEST_F(FailedWritesTest, OneProcessGoesOnAfterAnyChangeHasFailed) {
  for (const bool partial : {true, false}) {
    AtSomeChanges([&](uint64_t n) {
      SharedWithChild<Told> told;
      const int status = Run({.fault = Fault::kOnce,
                              .at = n,
                              .error = n % 2 == 0 ? ENOSPC : EDQUOT,
                              .partial = partial},
                             [&](OpenedArchive& archive) {
                               IngestAndTag(archive);
                               told->changes = broken_disk::Changes();
                             });
      EXPECT_EQ(status, 0);
      EXPECT_EQ(CheckNext(), 0);
      return told->changes.load();
    });
  }
}

TEST_F(FailedWritesTest, WhatIsAcknowledgedAfterASyncHasFailedSurvivesAPowerCut) {
  AtSomeChanges([&](uint64_t n) {
    SharedWithChild<Told> told;
    const int status =
        Run({.fault = Fault::kOnce, .at = n, .error = EIO}, [&](OpenedArchive& archive) {
          IngestAndTag(archive);
          told->changes = broken_disk::Changes();
          if (!HasFailure()) broken_disk::CutPower();
        });
    EXPECT_TRUE(WasKilled(status)) << status;
    EXPECT_EQ(CheckNext(), 0);
    return told->changes.load();
  });
}

TEST_F(FailedWritesTest, OneProcessGoesOnWhenTheDiskIsNoLongerFull) {
  AtSomeChanges([&](uint64_t n) {
    SharedWithChild<Told> told;
    const int status = Run(
        {.fault = Fault::kFull, .at = n, .error = n % 2 == 0 ? ENOSPC : EDQUOT, .partial = true},
        [&](OpenedArchive& archive) {
          for (int tries = 0; tries < 2; ++tries) {
            static_cast<void>(archive.owner->IngestWaiting());
            static_cast<void>(archive.owner->Tag(KeyOf(0), {{{"a", "0"}}, {}}));
            EXPECT_EQ(RowsOf(*archive.reader, 0), uint64_t{kRows});
            EXPECT_EQ(RowsOf(*archive.reader, 1), kBlocks * kRows);
          }
          told->changes = broken_disk::Changes();
          broken_disk::Repair();
          IngestAndTag(archive);
        });
    EXPECT_EQ(status, 0);
    EXPECT_EQ(CheckNext(), 0);
    return told->changes.load();
  });
}

// What was written can be read, also that of the batch whose sync has failed: nothing is lost.
TEST_F(FailedWritesTest, OneFailedSyncIsNoLossAndTheArchiveStaysOpen) {
  AtSomeChanges(
      [&](uint64_t n) {
        SharedWithChild<Told> told;
        const int status =
            Run({.fault = Fault::kOnce, .at = n, .error = EIO}, [&](OpenedArchive& archive) {
              for (const char* value : {"1", "2", "3"}) {
                static_cast<void>(archive.owner->Tag(KeyOf(0), {{{"a", value}}, {}}));
                EXPECT_TRUE(archive.owned()) << value;
              }
              static_cast<void>(archive.owner->IngestWaiting());
              EXPECT_TRUE(archive.owned());
              told->changes = broken_disk::Changes();
            });
        EXPECT_EQ(status, 0);
        EXPECT_THAT(Logged(), Not(HasSubstr("read back differently")));
        return told->changes.load();
      },
      1);
}

// Deletes of a prune are not synced, and the next sync fails.
TEST_F(FailedWritesTest, WhoChangesTheArchiveIsToldOfALossOnce) {
  const int status = Run({}, [&](OpenedArchive& archive) {
    ASSERT_TRUE(archive.owner->IngestWaiting().ok());
    PruneToOne(archive);
    broken_disk::Arm(root(), {.fault = Fault::kLoses, .error = EIO});
    EXPECT_THAT(ErrorOf(archive.owner->Tag(KeyOf(1), {{{"a", "1"}}, {}})),
                HasSubstr("read back differently"));
    EXPECT_TRUE(archive.owned());
    EXPECT_EQ(ErrorOf(archive.owner->Tag(KeyOf(1), {{{"a", "1"}}, {}})), "");
  });
  EXPECT_EQ(status, 0);
  EXPECT_THAT(Logged(), HasSubstr("read back differently"));
}

// As above, but there is no room for the check until later, or somebody else makes some.
TEST_F(FailedWritesTest, ALossIsToldAlsoIfTheArchiveWasClosedMeanwhile) {
  for (const bool others : {false, true}) {
    const int status = Run({}, [&](OpenedArchive& archive) {
      ASSERT_TRUE(archive.owner->IngestWaiting().ok());
      const auto logs = Logs();
      PruneToOne(archive);
      broken_disk::Arm(root(), {.fault = Fault::kFull, .error = ENOSPC});
      EXPECT_THAT(ErrorOf(archive.owner->Tag(KeyOf(1), {{{"a", "1"}}, {}})),
                  HasSubstr("No space left"));
      ASSERT_FALSE(archive.owned());
      broken_disk::Repair();
      CutLogs(logs);
      if (others) {
        ASSERT_TRUE(OpenArchive(root(), 0)->owned());
      }
      const std::string told = ErrorOf(archive.owner->Tag(KeyOf(1), {{{"a", "1"}}, {}}));
      EXPECT_EQ(told.find("read back differently") == std::string::npos, others) << told;
      EXPECT_TRUE(archive.owned());
      EXPECT_EQ(ErrorOf(archive.owner->Tag(KeyOf(1), {{{"a", "1"}}, {}})), "");
    });
    EXPECT_EQ(status, 0) << others;
  }
}

// A server would keep the lock from the prune that makes room.
TEST_F(FailedWritesTest, WhoCannotOpenTheArchiveAgainGivesItAway) {
  const Plan plan{.fault = Fault::kFull, .at = 4, .error = ENOSPC, .partial = true};
  const int status = Run(plan, [&](OpenedArchive& archive) {
    OwnedArchive& owner = *archive.owner;
    const auto tag = [&] { return owner.Tag(KeyOf(0), {{{"a", "0"}}, {}}); };
    EXPECT_FALSE(owner.IngestWaiting().ok());
    static_cast<void>(tag());
    ASSERT_FALSE(owner.IsOpen());
    EXPECT_TRUE(owner.ClosedByFailure());
    EXPECT_THAT(ErrorOf(tag()), HasSubstr("No space left on device"));
    EXPECT_THAT(ErrorOf(owner.BuildIndexes(kPatience)), HasSubstr("No space left on device"));
    broken_disk::Repair();
    {
      const auto other = OpenArchive(root(), 0);
      ASSERT_TRUE(other.ok());
      EXPECT_TRUE(other->owned()) << other->reader->note();
      // As long as that one has it nobody else changes it, and both read.
      EXPECT_EQ(tag().status().code(), Code::kBusy);
      EXPECT_FALSE(owner.IsOpen());
      EXPECT_FALSE(owner.ClosedByFailure());
      EXPECT_EQ(owner.IngestWaiting().status().code(), Code::kBusy);
      EXPECT_EQ(owner.Compact(nullptr).code(), Code::kBusy);
      EXPECT_TRUE(*owner.BuildIndexes(kPatience)) << "they are that one's to make";
      for (const Archive* one : {archive.reader.get(), other->reader.get()}) {
        EXPECT_EQ(RowsOf(*one, 0), uint64_t{kRows});
        EXPECT_EQ(RowsOf(*one, 1), kBlocks * kRows);
      }
    }
    EXPECT_EQ(ErrorOf(tag()), "");
    EXPECT_TRUE(owner.IsOpen());
    EXPECT_EQ(RowsOf(*archive.reader, 1), kBlocks * kRows);
  });
  EXPECT_EQ(status, 0);
}

// A server's door would be shut for as long as its worker works.
TEST_F(FailedWritesTest, ATagThatFailsDoesNotWaitForLongWork) {
  const int status = Run({}, [&](OpenedArchive& archive) {
    bool tagged = false;
    const Status done = archive.owner->Compact([&](uint64_t, uint64_t) {
      if (tagged) return true;
      tagged = true;
      broken_disk::Arm(root(), {.fault = Fault::kFull, .error = ENOSPC});
      const auto tag = [&] { return ErrorOf(archive.owner->Tag(KeyOf(0), {{{"a", "0"}}, {}})); };
      for (int i = 0; i < 2; ++i) {
        auto told = std::async(std::launch::async, tag);
        if (told.wait_for(std::chrono::seconds(30)) != std::future_status::ready) std::abort();
        EXPECT_THAT(told.get(), HasSubstr("No space left"));
      }
      broken_disk::Repair();
      return true;
    });
    EXPECT_TRUE(tagged);
    EXPECT_FALSE(done.ok());
    EXPECT_EQ(ErrorOf(archive.owner->Tag(KeyOf(0), {{{"a", "0"}}, {}})), "");
  });
  EXPECT_EQ(status, 0);
}

TEST_F(FailedWritesTest, AServerWithLimitsTriesAgainBehindAPrune) {
  for (uint64_t n = 1; n <= 12; ++n) {
    const Plan plan{.fault = Fault::kOnce, .at = n, .error = n % 2 == 0 ? ENOSPC : EDQUOT};
    const int status = Run(plan, [&](OpenedArchive& archive) {
      Retention limits;
      limits.age = kSecond;
      const std::shared_ptr<const Archive> reader = archive.reader;
      const ArchiveKeeper keeper(std::move(archive), limits);
      const auto taken = AskToIngest(root(), kPatience);
      EXPECT_TRUE(taken.ok()) << taken.status().message();
      EXPECT_FALSE(reader->Entry(KeyOf(0)).ok());
      EXPECT_GE(broken_disk::Changes(), n);
    });
    EXPECT_EQ(status, 0) << n;
  }
}

TEST_F(FailedWritesTest, AnIngestWithoutAServerTriesAgainBehindAPrune) {
  // Five changes make the claim and take the lock.
  for (uint64_t n = 6; n <= 16; ++n) {
    const int status = Run({}, [&](OpenedArchive&) {});
    ASSERT_EQ(status, 0);
    EXPECT_EQ(InChild([&] {
                broken_disk::Arm(
                    root(),
                    {.fault = Fault::kOnce, .at = n, .error = n % 2 == 0 ? ENOSPC : EDQUOT});
                Retention limits;
                limits.age = kSecond;
                const std::string live = fs::directory_iterator(root() + "/live")->path();
                const Status taken = IngestLive(root(), live, 0, &limits);
                EXPECT_TRUE(taken.ok()) << taken.message();
                EXPECT_FALSE(fs::exists(live));
                EXPECT_GE(broken_disk::Changes(), n);
              }),
              0)
        << n;
  }
}

// What is there cannot be read back for now, which is no reason to close the archive.
TEST_F(FailedWritesTest, WhatCannotBeReadBackIsTakenInLater) {
  ASSERT_EQ(Run({}, [](OpenedArchive&) {}), 0);
  EXPECT_EQ(InChild([&] {
              const ArchivePaths paths(root());
              const auto db = OpenDb(paths);
              ASSERT_TRUE(db.ok());
              const std::vector<LiveStep> steps = *ScanLive(paths);
              ASSERT_EQ(steps.size(), 1u);
              const std::string aside = dir_.path() + "/aside";
              fs::rename(paths.db(), aside);
              fs::create_symlink(paths.db(), paths.db());
              Intake intake(**db, paths);
              ASSERT_TRUE(intake.Add(steps[0]).ok());
              EXPECT_FALSE(intake.Settle().ok());
              EXPECT_EQ(intake.settled(), 0u);
              EXPECT_TRUE((*db)->failure().ok());
              fs::remove(paths.db());
              fs::rename(aside, paths.db());
              ASSERT_TRUE(intake.Add(steps[0]).ok());
              EXPECT_TRUE(intake.Settle().ok());
              EXPECT_EQ(intake.settled(), 1u);
            }),
            0);
}

// As NFS tells that there is no room on the server.
TEST_F(FailedWritesTest, ALiveStepWhoseLastFileCannotBeClosedIsFinishedAgain) {
  fs::remove_all(root());
  EXPECT_EQ(InChild([&] {
              broken_disk::Arm(root(), {});
              auto live = LiveArchive::Create(root(), JobOf(1));
              ASSERT_TRUE(live.ok()) << live.status().message();
              broken_disk::Arm(root(), {.fault = Fault::kLoses, .error = EDQUOT});
              EXPECT_THAT(std::string(End(**live, JobOf(1)).message()),
                          AllOf(HasSubstr("description.json"), HasSubstr("Disk quota exceeded")));
              ASSERT_TRUE((*live)->PutProfile(ProfileOf(JobOf(1))).ok());
              broken_disk::Arm(root(),
                               {.fault = Fault::kCloses, .error = EDQUOT, .suffix = ".log"});
              EXPECT_THAT(std::string((*live)->Finish().message()),
                          AllOf(HasSubstr("blocks"), HasSubstr("Disk quota exceeded")));
              const Status ended = End(**live, JobOf(1));
              EXPECT_TRUE(ended.ok()) << ended.message();
              const auto archive = OpenArchive(root(), kPatience);
              ASSERT_TRUE(archive.ok());
              const auto entry = archive->reader->Entry(KeyOf(1));
              EXPECT_EQ(entry->job.state, EndState::kCompleted);
              EXPECT_THAT(entry->job.notes, Contains(HasSubstr("read back differently")));
            }),
            0);
}

// The step goes on, and its profile says what is missing.
TEST_F(FailedWritesTest, ALiveStepThatHasLostARecordGoesOn) {
  fs::remove_all(root());
  EXPECT_EQ(InChild([&] {
              broken_disk::Arm(root(), {});
              auto live = LiveArchive::Create(root(), JobOf(1));
              ASSERT_TRUE(live.ok()) << live.status().message();
              ASSERT_TRUE(PutBlock(**live, 1, kSmall, JobOf(1).start).ok());
              broken_disk::Arm(root(), {.fault = Fault::kLoses, .error = EIO});
              EXPECT_FALSE((*live)->Sync().ok());
              EXPECT_THAT(std::string(PutBlock(**live, 2, kSmall, JobOf(1).start).message()),
                          HasSubstr("read back differently"));
              for (uint64_t s = 2; s <= kBlocks; ++s) {
                const Status put = PutBlock(**live, s, kSmall, JobOf(1).start);
                ASSERT_TRUE(put.ok()) << put.message();
              }
              ASSERT_TRUE((*live)->Sync().ok());
              ASSERT_TRUE(End(**live, JobOf(1)).ok());
            }),
            0);
  EXPECT_EQ(InChild([&] {
              const auto archive = OpenArchive(root(), kPatience);
              ASSERT_TRUE(archive.ok());
              const auto entry = archive->reader->Entry(KeyOf(1));
              ASSERT_TRUE(entry.ok()) << entry.status().message();
              EXPECT_EQ(entry->job.state, EndState::kCompleted);
              EXPECT_THAT(entry->job.notes, Contains(HasSubstr("read back differently")));
              const auto data = archive->reader->Read(
                  KeyOf(1), SeriesScope::kNodes,
                  [](const Series& s) { return s.metric.name == kShown; }, 0, kForever);
              ASSERT_TRUE(data.ok() && data->size() == 1);
              EXPECT_EQ(data->front().points.size(), (kBlocks - 1) * kRows);
            }),
            0);
}

TEST_F(FailedWritesTest, ALiveStepThatFindsALossAtItsEndIsFinished) {
  fs::remove_all(root());
  EXPECT_EQ(InChild([&] {
              broken_disk::Arm(root(), {});
              auto live = LiveArchive::Create(root(), JobOf(1));
              ASSERT_TRUE(live.ok()) << live.status().message();
              broken_disk::Arm(root(), {.fault = Fault::kLoses, .error = EIO});
              EXPECT_FALSE((*live)->Sync().ok());
              const Status ended = End(**live, JobOf(1));
              EXPECT_TRUE(ended.ok()) << ended.message();
              const auto archive = OpenArchive(root(), kPatience);
              ASSERT_TRUE(archive.ok());
              EXPECT_THAT(archive->reader->Entry(KeyOf(1))->job.notes,
                          Contains(HasSubstr("read back differently")));
            }),
            0);
}

// Blocks that were synced, and then the power goes.
TEST_F(FailedWritesTest, ALiveStepLosesNothingThatWasSyncedAfterASyncHasFailed) {
  AtSomeChanges(
      [&](uint64_t n) {
        SharedWithChild<Told> told;
        fs::remove_all(root());
        const int status = InChild([&] {
          broken_disk::Arm(root(), {.fault = Fault::kOnce, .at = n, .error = EIO, .partial = true});
          auto live = LiveArchive::Create(root(), JobOf(1));
          if (!live.ok()) live = LiveArchive::Create(root(), JobOf(1));
          ASSERT_TRUE(live.ok()) << live.status().message();
          const auto twice = [](const std::function<Status()>& f) {
            const Status first = f();
            return first.ok() ? first : f();
          };
          for (uint64_t s = 1; s <= kBlocks; ++s) {
            const Status put = twice([&] { return PutBlock(**live, s, kLarge, JobOf(1).start); });
            ASSERT_TRUE(put.ok()) << put.message();
            if (s % 4 != 0) continue;
            const Status synced = twice([&] { return (*live)->Sync(); });
            ASSERT_TRUE(synced.ok()) << synced.message();
          }
          told->changes = broken_disk::Changes();
          if (!HasFailure()) broken_disk::CutPower();
        });
        EXPECT_TRUE(WasKilled(status)) << status;
        EXPECT_EQ(InChild([&] {
                    const auto archive = OpenArchive(root(), kPatience);
                    ASSERT_TRUE(archive.ok());
                    EXPECT_EQ(archive->reader->note(), "");
                    EXPECT_EQ(RowsOf(*archive->reader, 1), kBlocks * kRows);
                  }),
                  0);
        return told->changes.load();
      },
      13);
}

}  // namespace
}  // namespace sonde::profiles_failed_writes_test
