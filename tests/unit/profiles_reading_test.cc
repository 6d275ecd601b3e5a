// Reading an archive that somebody else writes, or could write, at the same time.
#include <dirent.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>
#include <thread>
#include <utility>

#include "profiles/archive/open_archive.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/file_lock.h"
#include "profiles/disk/read_only_db.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/upkeep/lock.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/repair.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
namespace fs = std::filesystem;

constexpr Nanos kForever = std::numeric_limits<Nanos>::max();
constexpr Nanos kPatience = 60 * kSecond;
constexpr int kRows = 8;

// What is done when LevelDB looks which files a snapshot has, after it has read the manifest.
std::function<void()> when_listed;

}  // namespace
}  // namespace sonde

extern "C" __attribute__((visibility("default"))) DIR* opendir(const char* path) {
  static const auto real = reinterpret_cast<DIR* (*)(const char*)>(dlsym(RTLD_NEXT, "opendir"));
  if (sonde::when_listed && std::string_view(path).starts_with("/proc/self/fd/")) {
    const auto once = std::exchange(sonde::when_listed, nullptr);
    once();
  }
  return real(path);
}

namespace sonde {
namespace {

JobDescription JobOf(int i) { return TestJob(std::to_string(1000 + i), kTestStart + i * kSecond); }

// Every file and directory, and what is in it.
using Tree = std::map<std::string, std::pair<fs::file_time_type, std::string>>;
Tree TreeOf(const std::string& root) {
  Tree tree;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    std::ostringstream text;
    if (entry.is_regular_file()) text << std::ifstream(entry.path()).rdbuf();
    tree[entry.path()] = {entry.last_write_time(), text.str()};
  }
  return tree;
}

class ReadingTest : public testing::Test {
 protected:
  std::string root() const { return dir_.path() + "/archive"; }
  ArchivePaths paths() const { return ArchivePaths(root()); }

  void FinishStep(int i) const {
    auto live = LiveArchive::Create(root(), JobOf(i));
    ASSERT_TRUE(live.ok()) << live.status().message();
    for (const uint32_t node : {0u, 1u}) ASSERT_TRUE(PutNodeBlock(**live, node, 1, 0, kRows).ok());
    Profile profile;
    profile.job = JobOf(i);
    profile.job.state = EndState::kCompleted;
    profile.job.end = profile.job.start + kRows * kSecond;
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    ASSERT_TRUE((*live)->Finish().ok());
  }
  // Each in a log of its own, which the next one makes a table of.
  void Ingest(int first, int last) const {
    for (int i = first; i < last; ++i) {
      FinishStep(i);
      ASSERT_TRUE(OpenArchive(root(), kPatience).ok());
    }
  }
  OpenedArchive Open(ArchiveUse use = ArchiveUse::kReading) const {
    auto archive = OpenArchive(root(), kPatience, nullptr, use);
    EXPECT_TRUE(archive.ok()) << archive.status().message();
    EXPECT_EQ(archive->reader->note(), "");
    return *std::move(archive);
  }
  // Takes one more in and makes one table of all. Of fewer than four LevelDB, also that of a
  // snapshot, merges none by itself.
  void Merge(const OpenedArchive& archive, int i) const {
    FinishStep(i);
    ASSERT_EQ(*archive.owner->IngestWaiting(), 1u);
    ASSERT_TRUE(archive.owner->Compact(nullptr).ok());
  }
  static void ExpectSteps(const Archive& archive, size_t count) {
    const auto list = archive.List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    EXPECT_THAT(*list, SizeIs(count));
    for (const ProfileEntry& entry : *list) {
      const auto data = archive.Read(entry.key, SeriesScope::kNodes, nullptr, 0, kForever);
      ASSERT_TRUE(data.ok()) << data.status().message();
      EXPECT_THAT(*data, SizeIs(4));
      for (const SeriesData& series : *data) EXPECT_THAT(series.points, SizeIs(kRows));
    }
  }
  static Result<size_t> CountProfiles(leveldb::DB& db) {
    size_t count = 0;
    const Status read = ForEachRecord(
        db, "", [&](std::string_view key, std::string_view) { count += key.starts_with("p"); });
    if (!read.ok()) return read;
    return count;
  }
  size_t Tables() const {
    size_t count = 0;
    for (const std::string& name : NamesIn(paths().db())) count += name.ends_with(".ldb");
    return count;
  }

  TempDir dir_{TempDir::Memory()};
};

TEST_F(ReadingTest, WhereNothingWaitsWhoReadsChangesNothingAndKeepsNobodyOut) {
  Ingest(0, 3);
  const Tree before = TreeOf(root());
  {
    const auto reader = Open();
    EXPECT_EQ(reader.owner, nullptr);
    ExpectSteps(*reader.reader, 3);
    EXPECT_EQ(TreeOf(root()), before);
    EXPECT_TRUE(ArchiveLock::Acquire(paths(), 0).ok());
  }
  const auto running = LiveArchive::Create(root(), JobOf(3));
  ASSERT_TRUE(running.ok());
  const auto reader = Open();
  EXPECT_EQ(reader.owner, nullptr) << "a step that runs needs nothing";
  EXPECT_THAT(*reader.reader->List(), SizeIs(4));
}

TEST_F(ReadingTest, WhoHasTheArchiveIsNotWaitedForWhereNothingWaits) {
  Ingest(0, 1);
  const auto lock = ArchiveLock::Acquire(paths(), 0);
  ASSERT_TRUE(lock.ok());
  const auto reader = OpenArchive(root(), kForever / 2, nullptr, ArchiveUse::kReading);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->reader->note(), "");
  ExpectSteps(*reader->reader, 1);
}

TEST_F(ReadingTest, WhatWaitsIsTakenIn) {
  Ingest(0, 1);
  FinishStep(1);
  EXPECT_TRUE(Open().owned());
  EXPECT_THAT(NamesIn(paths().live()), IsEmpty());
  ExpectSteps(*Open().reader, 2);
  // What a killed ingest left of a directory is swept away.
  fs::create_directory(paths().live() + "/.gone-x");
  EXPECT_TRUE(Open().owned());
  EXPECT_THAT(NamesIn(paths().live()), IsEmpty());
}

TEST_F(ReadingTest, AnOlderArchiveIsBroughtUpToDate) {
  Ingest(0, 2);
  {
    auto db = OpenDb(paths());
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE((*db)->Delete({}, {keys::kIndexedKey.data(), keys::kIndexedKey.size()}).ok());
  }
  {
    const auto archive = Open();
    EXPECT_TRUE(archive.owned());
    EXPECT_TRUE(*archive.owner->BuildIndexes(kPatience));
  }
  EXPECT_FALSE(Open().owned());
  fs::remove(paths().db_format());
  EXPECT_TRUE(Open().owned());
  EXPECT_TRUE(fs::exists(paths().db_format()));
  EXPECT_FALSE(Open().owned());
}

TEST_F(ReadingTest, ARepairThatWasKilledIsEnded) {
  Ingest(0, 1);
  // Between its two steps on a file system that cannot exchange directories.
  fs::rename(paths().db(), root() + "/db.repair");
  std::ofstream(root() + "/db.repair/COMPLETE") << "\n";
  const auto archive = Open();
  EXPECT_TRUE(archive.owned());
  ExpectSteps(*archive.reader, 1);
}

TEST_F(ReadingTest, WhatIsWrittenMeanwhileIsSeenByTheNextList) {
  Ingest(0, 1);
  const auto reader = Open();
  ExpectSteps(*reader.reader, 1);
  // Into the same log, then with new tables.
  const auto writer = Open(ArchiveUse::kWriting);
  ExpectSteps(*reader.reader, 1);
  FinishStep(1);
  ASSERT_EQ(*writer.owner->IngestWaiting(), 1u);
  ExpectSteps(*reader.reader, 2);
  ASSERT_TRUE(writer.owner->Compact(nullptr).ok());
  ExpectSteps(*reader.reader, 2);
}

TEST_F(ReadingTest, AnArchiveIsReadBeforeWhileAndAfterItIsOwned) {
  Ingest(0, 2);
  const auto reader = *Archive::Open(root());
  ExpectSteps(*reader, 2);
  auto owner = OwnedArchive::Take(*reader, 0);
  ASSERT_TRUE(owner.ok()) << owner.status().message();
  EXPECT_EQ(OwnedArchive::Take(*reader, 0).status().code(), Code::kBusy) << "there is one";
  FinishStep(2);
  ASSERT_EQ(*(*owner)->IngestWaiting(), 1u);
  ExpectSteps(*reader, 3);
  owner->reset();
  ExpectSteps(*reader, 3);
  {
    const auto other = Open(ArchiveUse::kWriting);
    EXPECT_EQ(OwnedArchive::Take(*reader, 0).status().code(), Code::kBusy);
    Merge(other, 3);
    ExpectSteps(*reader, 4);
  }
  owner = OwnedArchive::Take(*reader, 0);
  ASSERT_TRUE(owner.ok()) << owner.status().message();
  FinishStep(4);
  ASSERT_EQ(*(*owner)->IngestWaiting(), 1u);
  ExpectSteps(*reader, 5);
}

TEST_F(ReadingTest, AnOwnerThatEndsWaitsForWhoReads) {
  Ingest(0, 1);
  auto archive = Open(ArchiveUse::kWriting);
  std::thread end;
  const auto locked = [&] {
    return ArchiveLock::Acquire(paths(), 0).status().code() == Code::kBusy;
  };
  const std::string key = archive.reader->List()->at(0).key;
  size_t rows = 0;
  const auto read = [&](const StoredRow&) {
    if (!end.joinable()) end = std::thread([&] { archive.owner.reset(); });
    EXPECT_TRUE(locked());
    ++rows;
    return Status();
  };
  EXPECT_TRUE(archive.reader->ReadRows(key, SeriesScope::kNodes, {}, read).ok());
  end.join();
  EXPECT_EQ(rows, size_t{2 * kRows});
  EXPECT_FALSE(locked());
  ExpectSteps(*archive.reader, 1);
}

TEST_F(ReadingTest, TablesStayUntilWhoReadsThemIsDone) {
  Ingest(0, 2);
  const auto owner = Open(ArchiveUse::kWriting);
  {
    const auto snapshot = ReadOnlyDb::Open(paths().db(), paths().db_lock());
    ASSERT_TRUE(snapshot.ok());
    ASSERT_TRUE(snapshot->share.held());
    Merge(owner, 2);
    EXPECT_GT(Tables(), 1u) << "the old ones and the new one";
    const auto count = CountProfiles(*snapshot->db);
    ASSERT_TRUE(count.ok()) << count.status().message();
    EXPECT_EQ(*count, 2u);
  }
  Merge(owner, 3);
  EXPECT_EQ(Tables(), 1u) << "they have gone with the next compaction";
}

// As on file systems that show no other host's locks.
TEST_F(ReadingTest, WithoutAShareATableThatIsGoneIsAFailureAndNotAnAbsence) {
  Ingest(0, 2);
  const auto owner = Open(ArchiveUse::kWriting);
  const auto snapshot = ReadOnlyDb::Open(paths().db());
  ASSERT_TRUE(snapshot.ok());
  Merge(owner, 2);
  EXPECT_EQ(CountProfiles(*snapshot->db).status().code(), Code::kIo);
  std::string value;
  const auto read = snapshot->db->Get({}, keys::Profile(keys::ProfileKey(JobOf(0))), &value);
  EXPECT_FALSE(read.ok() || read.IsNotFound()) << read.ToString();
}

TEST_F(ReadingTest, ALogThatBecomesATableWhileItIsLookedForIsNotMissed) {
  for (const bool with_share : {true, false}) {
    const int first = with_share ? 0 : 2;
    Ingest(first, first + 2);  // the second one is in the log
    when_listed = [&] { ASSERT_TRUE(OpenArchive(root(), 0).ok()); };
    const auto snapshot = ReadOnlyDb::Open(paths().db(), with_share ? paths().db_lock() : "");
    ASSERT_EQ(when_listed, nullptr);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
    EXPECT_EQ(snapshot->damage, "");
    EXPECT_EQ(*CountProfiles(*snapshot->db), static_cast<size_t>(first) + 2);
  }
}

TEST_F(ReadingTest, ARepairTakesNothingFromWhoReads) {
  Ingest(0, 4);
  const auto snapshot = ReadOnlyDb::Open(paths().db(), paths().db_lock());
  ASSERT_TRUE(snapshot.ok());
  ASSERT_TRUE(RepairArchive(root(), 0, nullptr).ok());
  const auto count = CountProfiles(*snapshot->db);
  ASSERT_TRUE(count.ok()) << count.status().message();
  EXPECT_EQ(*count, 4u);
}

TEST_F(ReadingTest, WhateverIsAcknowledgedWhileOthersWriteIsSeen) {
  constexpr int kSteps = 150;
  std::atomic<int> done = 0;
  std::atomic<bool> over = false;
  std::thread writer([&] {
    for (int i = 0; i < kSteps && !HasFailure(); ++i) {
      Ingest(i, i + 1);
      if (i % 8 == 7) {
        EXPECT_TRUE(Open(ArchiveUse::kWriting).owner->Compact(nullptr).ok());
      }
      done = i + 1;
      done.notify_one();
    }
    over = true;
  });
  done.wait(0);
  const auto kept = *Archive::Open(root());
  while (!over) {
    const auto acknowledged = static_cast<size_t>(done);
    const auto fresh = *Archive::Open(root());
    for (const Archive* one : {kept.get(), fresh.get()}) {
      const auto list = one->List();
      EXPECT_TRUE(list.ok()) << list.status().message();
      if (!list.ok()) continue;
      EXPECT_GE(list->size(), acknowledged);
      for (const ProfileEntry& entry : *list) {
        if (entry.running) continue;
        const auto profile = one->Load(entry.key);
        EXPECT_TRUE(profile.ok()) << profile.status().message();
      }
    }
  }
  writer.join();
  ExpectSteps(*Open().reader, kSteps);
}

TEST(FileShareTest, IsSeenByTheHolderAndKeepsNobodyOut) {
  const TempDir dir;
  const std::string path = dir.path() + "/lock";
  EXPECT_FALSE(FileShare::Take(path).held()) << "there is no file";
  EXPECT_FALSE(FileShare::IsTaken(path));
  const auto lock = FileLock::Acquire(path, 0);
  ASSERT_TRUE(lock.ok());
  EXPECT_FALSE(FileShare::IsTaken(path));
  {
    const FileShare one = FileShare::Take(path);
    const FileShare two = FileShare::Take(path);
    EXPECT_TRUE(one.held() && two.held());
    EXPECT_TRUE(FileShare::IsTaken(path));
  }
  EXPECT_FALSE(FileShare::IsTaken(path));
  const FileShare share = FileShare::Take(path);
  EXPECT_TRUE(FileLock::IsLocked(path));
  EXPECT_EQ(FileLock::Acquire(path, 0).status().code(), Code::kBusy);
}

}  // namespace
}  // namespace sonde
