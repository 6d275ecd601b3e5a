// `sonde serve` on a file system that is full: it goes on showing what there is, the commands that
// make room are not kept out, and it takes in what waits when there is room, all without a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "profiles/archive/ask_keeper.h"
#include "profiles/archive/ingest_one.h"
#include "profiles/archive/keeper.h"
#include "profiles/archive/open_archive.h"
#include "profiles/archive/stats.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/read_only_db.h"
#include "profiles/disk/room.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "profiles/upkeep/retention.h"
#include "profiles/upkeep/verify.h"
#include "tests/unit/cli_served.h"
#include "tests/unit/paths.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::cli::cli_full_disk_test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int kSteps = 6;  // that are in db/ at first
constexpr int kSeries = 400;
constexpr int kRows = 16;
constexpr uint64_t kBlocks = 8;          // 50 KB each
constexpr uint64_t kManyBlocks = 110;    // more than LevelDB has in one log
constexpr uintmax_t kLittle = 5u << 20;  // for a log of these, not for the table made of it
constexpr int kMostTags = 1000;
constexpr uintmax_t kRoom = 16u << 20;  // that somebody makes

JobDescription JobOf(int i) {
  return TestJob(std::to_string(100 + i), kTestStart + i * 1000 * kSecond);
}

void FinishStep(const std::string& root, int i, uint64_t blocks = kBlocks) {
  std::vector<Series> series;
  for (int s = 0; s < kSeries; ++s) {
    series.push_back(TestSeries("series_" + std::to_string(s), MetricType::kGauge));
  }
  const auto schema = Schema::Make(series);
  std::mt19937_64 random(static_cast<uint64_t>(i));
  auto live = LiveArchive::Create(root, JobOf(i));
  ASSERT_TRUE(live.ok()) << live.status().message();
  for (uint64_t b = 0; b < blocks; ++b) {
    std::vector<Nanos> times;
    for (int r = 0; r < kRows; ++r) {
      times.push_back(JobOf(i).start + (static_cast<int>(b) * kRows + r) * kSecond);
    }
    std::vector<double> columns(size_t{kSeries} * kRows);
    for (double& value : columns) value = std::ldexp(static_cast<double>(random()), -70);
    const Status put =
        (*live)->PutBlock({0, "os", b + 1}, *schema, MakeBlock(*schema, times, columns));
    ASSERT_TRUE(put.ok()) << put.message();
  }
  Profile profile;
  profile.job = JobOf(i);
  profile.job.state = EndState::kCompleted;
  profile.job.end = profile.job.start + 900 * kSecond;
  ASSERT_TRUE((*live)->PutProfile(profile).ok());
  ASSERT_TRUE((*live)->Finish().ok());
}

struct Ended {
  int code = -1;
  std::string text;  // of both outputs
};

class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(root());
    if (::mount("tmpfs", root().c_str(), "tmpfs", 0, "size=48m,mode=0700") != 0) {
      GTEST_SKIP() << "needs the right to mount";
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) {
      EXPECT_EQ(::umount2(root().c_str(), MNT_DETACH), 0);
    }
  }
  std::string root() const { return dir_.path() + "/archive"; }
  std::string ballast() const { return root() + "/ballast"; }

  // To the last byte.
  void Fill() const {
    std::FILE* file = std::fopen(ballast().c_str(), "ae");
    ASSERT_NE(file, nullptr);
    std::setbuf(file, nullptr);
    const std::string chunk(4096, 'x');
    while (std::fwrite(chunk.data(), 1, chunk.size(), file) == chunk.size()) {
    }
    std::fclose(file);
    struct statvfs info {};
    ASSERT_EQ(::statvfs(root().c_str(), &info), 0);
    ASSERT_EQ(info.f_bavail, 0u);
  }
  void MakeRoom(uintmax_t bytes) const {
    fs::resize_file(ballast(), fs::file_size(ballast()) - bytes);
  }
  Ended Run(const std::string& arguments) const {
    const std::string command =
        std::string(kSondeCommand) + " --archive " + root() + " " + arguments + " 2>&1";
    Ended ended;
    std::FILE* pipe = ::popen(command.c_str(), "re");
    char buffer[4096];
    for (size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
      ended.text.append(buffer, n);
    }
    ended.code = WEXITSTATUS(::pclose(pipe));
    return ended;
  }
  // Which the server answers once it has the archive open (again).
  Status WaitForIngest() const {
    constexpr int kTries = 600;
    Status status;
    for (int i = 0; i < kTries; ++i) {
      status = AskToIngest(root(), 60 * kSecond).status();
      if (status.ok()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return status;
  }

  TempDir dir_;
  bool mounted_ = false;
};

TEST_F(FullDiskTest, TheServerNeitherSticksNorKeepsOutWhatMakesRoom) {
  for (int i = 0; i < kSteps; ++i) FinishStep(root(), i);
  Served served(root(), {"--port", "0"});
  ASSERT_THAT(served.ReadUntil("Ctrl-C"), HasSubstr("Open http"));
  ASSERT_TRUE(AskToIngest(root(), 60 * kSecond).ok());
  ASSERT_THAT(Run("ls --json").text, HasSubstr("\"105\""));

  FinishStep(root(), kSteps, kManyBlocks);
  Fill();
  MakeRoom(kLittle);
  const Status refused = AskToIngest(root(), 60 * kSecond).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("No space left on device"));
  EXPECT_THAT(Run("ls --json").text, HasSubstr("\"106\"")) << "it is read where it waits";
  // Until the disk takes no more of it.
  Fill();
  int tagged = 0;
  Ended ended{0, ""};
  while (ended.code == 0 && tagged < kMostTags) {
    ended = Run("tag 100.0 n=" + std::to_string(tagged + 1));
    if (ended.code == 0) ++tagged;
  }
  EXPECT_LT(tagged, kMostTags);
  EXPECT_THAT(ended.text, HasSubstr("No space left on device"));
  EXPECT_THAT(Run("ls --json").text, HasSubstr("\"100\""));

  // Somebody makes a little room, and the archive's own command the rest.
  MakeRoom(kRoom);
  ended = Run("archive prune --profiles 3");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("deleted"));
  ended = Run("archive compact");
  EXPECT_EQ(ended.code, 0) << ended.text;
  const Status taken = WaitForIngest();
  EXPECT_TRUE(taken.ok()) << taken.message();
  EXPECT_THAT(Run("archive stats --json").text, HasSubstr("\"waiting\":0"));
  EXPECT_EQ(Run("tag 106.0 late").code, 0);
  EXPECT_EQ(served.Stop(), 0);

  const auto archive = OpenArchive(root(), 60 * kSecond);
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  EXPECT_EQ(archive->reader->note(), "");
  const auto last = archive->reader->Entry(keys::ProfileKey(JobOf(kSteps)));
  ASSERT_TRUE(last.ok()) << last.status().message();
  EXPECT_FALSE(last->live);
  EXPECT_TRUE(last->job.tags.contains("late"));
  const auto report = VerifyArchive(root(), nullptr);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok()) << report->problems[0].what;
}

// The limits are what makes room, and nobody else. As many steps are in db/ as the limits let, as
// behind every ingest; then the disk is full, and one more waits.
class FullDiskOfLimitsTest : public FullDiskTest {
 protected:
  static constexpr int kKept = 3;
  static constexpr int kTaken = 6;  // of which the first are deleted by now

  void SetUp() override {
    FullDiskTest::SetUp();
    limits_.profiles = kKept;
  }
  // Everything in `mebibytes`.
  void Fit(int mebibytes) const {
    const std::string options = "size=" + std::to_string(mebibytes) + "m,mode=0700";
    ASSERT_EQ(::mount("tmpfs", root().c_str(), "tmpfs", MS_REMOUNT, options.c_str()), 0);
  }
  Status TakeIn(int i) const {
    return IngestLive(root(), root() + "/live/" + keys::ProfileKey(JobOf(i)), 60 * kSecond,
                      &limits_);
  }
  void TakeInTheFirst() const {
    for (int i = 0; i < kTaken; ++i) {
      FinishStep(root(), i, kManyBlocks);
      const Status taken = TakeIn(i);
      ASSERT_TRUE(taken.ok()) << taken.message();
    }
  }
  void FinishTheLast(uintmax_t room, uint64_t blocks = kManyBlocks) const {
    FinishStep(root(), kTaken, blocks);
    Fill();
    if (room > 0) MakeRoom(room);
  }
  void ExpectTheNewest(int last = kTaken) const {
    const auto archive = OpenArchive(root(), 60 * kSecond);
    ASSERT_TRUE(archive.ok());
    EXPECT_EQ(archive->reader->note(), "");
    for (int i = 0; i <= last; ++i) {
      const auto entry = archive->reader->Entry(keys::ProfileKey(JobOf(i)));
      ASSERT_EQ(entry.ok(), i > last - static_cast<int>(limits_.profiles)) << i;
      if (entry.ok()) {
        EXPECT_FALSE(entry->live) << i;
      }
    }
    const auto report = VerifyArchive(root(), nullptr);
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->ok()) << report->problems[0].what;
  }
  Retention limits_;
};

// What is deleted does not stay on the disk until nothing can be compacted any more.
TEST_F(FullDiskOfLimitsTest, WhatIsDeletedGivesItsRoomBackWhileThereIsRoom) {
  constexpr int kMany = 16;
  constexpr uint64_t kStep = 5u << 20;
  // What the limits let stay, what is deleted until LevelDB is asked, and its logs.
  constexpr uint64_t kMost = kKept * kStep + (8u << 20) + 2 * kStep;
  Fit(256);
  for (int i = 0; i < kMany; ++i) {
    FinishStep(root(), i, kManyBlocks);
    const Status taken = TakeIn(i);
    ASSERT_TRUE(taken.ok()) << taken.message();
    EXPECT_LE(BytesBelow(root() + "/db"), kMost) << i;
  }
}

// Again and again: each time the reserve is filled again.
TEST_F(FullDiskOfLimitsTest, AHeadMakesTheRoomThatItsStepNeeds) {
  constexpr int kMore = 3;
  for (const uintmax_t room : {8u << 20, 2u << 20, 0u}) {
    TearDown();
    SetUp();
    Fit(256);
    TakeInTheFirst();
    for (int i = kTaken; i < kTaken + kMore; ++i) {
      FinishStep(root(), i, kManyBlocks);
      Fill();
      if (room > 0) MakeRoom(room);
      const Status taken = TakeIn(i);
      EXPECT_TRUE(taken.ok()) << taken.message() << " with " << room;
      EXPECT_EQ(BytesIn(root(), "db.reserve"), kReserve) << i << " with " << room;
      MakeRoom(kRoom);  // for the next step while it runs
    }
    ExpectTheNewest(kTaken + kMore - 1);
  }
}

TEST_F(FullDiskOfLimitsTest, AServerMakesTheRoomThatAnIngestNeeds) {
  for (const uintmax_t room : {8u << 20, 0u}) {
    TearDown();
    SetUp();
    Fit(256);
    TakeInTheFirst();
    {
      auto archive = OpenArchive(root(), 60 * kSecond);
      ASSERT_TRUE(archive.ok() && archive->owned());
      FinishTheLast(room);
      const ArchiveKeeper keeper(*std::move(archive), limits_);
      // Files that somebody was reading go with the next try.
      const Status taken = WaitForIngest();
      EXPECT_TRUE(taken.ok()) << taken.message() << " with " << room;
    }
    ExpectTheNewest();
  }
}

// Such as a command, which is not to take long, and one that was killed.
TEST_F(FullDiskOfLimitsTest, WhatOthersHaveDeletedMakesRoomAsWell) {
  constexpr uintmax_t kSome = 16u << 20;
  constexpr uint64_t kLargeStep = 2 * kManyBlocks;
  Fit(96);
  TakeInTheFirst();
  {
    const auto archive = OpenArchive(root(), 60 * kSecond);
    ASSERT_TRUE(archive.ok());
    Retention fewer;
    fewer.profiles = 1;
    const auto pruned = archive->owner->Prune(fewer, Clock::System().Now(), 60 * kSecond);
    ASSERT_TRUE(pruned.ok()) << pruned.status().message();
    ASSERT_EQ(pruned->profiles, 2u);
  }
  limits_.profiles = 2;
  FinishTheLast(kSome, kLargeStep);
  const Status taken = TakeIn(kTaken);
  EXPECT_TRUE(taken.ok()) << taken.message();
  ExpectTheNewest();
}

// What no limit deletes is not to take it.
TEST_F(FullDiskOfLimitsTest, TheReserveStaysWhereTheLimitsMakeNoRoom) {
  Fit(256);
  limits_.profiles = 100;
  TakeInTheFirst();
  const auto reserved = [&] { return BytesIn(root(), "db.reserve"); };
  ASSERT_EQ(reserved(), kReserve);
  FinishTheLast(1u << 20);
  EXPECT_TRUE(WantsRoom(TakeIn(kTaken)));
  EXPECT_EQ(reserved(), kReserve);
  struct statvfs info {};
  ASSERT_EQ(::statvfs(root().c_str(), &info), 0);
  EXPECT_LT(info.f_bavail * info.f_frsize, kReserve);
}

// Each makes a log before it finds that there is no room for more.
TEST_F(FullDiskTest, AnArchiveThatCannotBeOpenedGathersNoFiles) {
  constexpr int kTries = 20;
  for (int i = 0; i < 2; ++i) FinishStep(root(), i);
  // The second time its log has nothing that would be made a table first.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(OpenArchive(root(), 60 * kSecond).ok());
  const size_t before = NamesIn(root() + "/db").size();
  FinishStep(root(), 2);
  Fill();
  MakeRoom(4096);  // for the lock's text
  for (const bool read : {false, true}) {
    // Who reads has a share in the lock.
    const auto reader = read ? ReadOnlyDb::Open(root() + "/db", root() + "/db.lock")
                             : Status(Code::kNotFound, "nobody");
    ASSERT_EQ(reader.ok(), read);
    for (int i = 0; i < kTries; ++i) {
      const auto archive = OpenArchive(root(), 60 * kSecond);
      ASSERT_TRUE(archive.ok());
      EXPECT_FALSE(archive->owned());
      EXPECT_EQ(archive->reader->List()->size(), 3u);
    }
    EXPECT_LE(NamesIn(root() + "/db").size(), before) << read;
  }
  MakeRoom(kRoom);
  const auto archive = OpenArchive(root(), 60 * kSecond);
  ASSERT_TRUE(archive.ok());
  EXPECT_EQ(archive->reader->note(), "");
  EXPECT_FALSE(archive->reader->Entry(keys::ProfileKey(JobOf(2)))->live);
}

// As of file systems that do not tell any.
TEST_F(FullDiskTest, OneWithoutASizeIsNotFull) {
  ASSERT_EQ(::mount("tmpfs", root().c_str(), "tmpfs", MS_REMOUNT, "size=0,mode=0700"), 0);
  FinishStep(root(), 0);
  const auto archive = OpenArchive(root(), 60 * kSecond);
  ASSERT_TRUE(archive.ok());
  EXPECT_EQ(archive->reader->note(), "");
  EXPECT_FALSE(archive->reader->Entry(keys::ProfileKey(JobOf(0)))->live);
}

}  // namespace
}  // namespace sonde::cli::cli_full_disk_test
