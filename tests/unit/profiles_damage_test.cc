// Archives of which bytes are flipped or cut off: reading them says what is lost, verify finds it
// and repair mends the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <map>

#include "profiles/archive/open_archive.h"
#include "profiles/disk/file_lock.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/repair.h"
#include "profiles/upkeep/verify.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_damage_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr Nanos kAllTime = std::numeric_limits<Nanos>::max();
constexpr Nanos kPatience = 60 * kSecond;
constexpr int kRows = 20;
constexpr int kSteps = 4;

class DamageTest : public testing::Test {
 protected:
  std::string root() const { return dir_.path() + "/archive"; }
  std::string copy() const { return dir_.path() + "/copy"; }
  ArchivePaths paths() const { return ArchivePaths(root()); }

  void FinishStep(int i) const {
    const JobDescription job = TestJob(std::to_string(i), kTestStart + i * kSecond);
    auto live = LiveArchive::Create(root(), job);
    ASSERT_TRUE(live.ok()) << live.status().message();
    for (uint32_t node : {0u, 1u}) ASSERT_TRUE(PutNodeBlock(**live, node, 1, 0, kRows).ok());
    ASSERT_TRUE(PutReducedBlock(**live, 1, 0, kRows).ok());
    Profile profile;
    profile.job = job;
    profile.job.state = EndState::kCompleted;
    profile.job.end = job.start + kRows * kSecond;
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    ASSERT_TRUE((*live)->Finish().ok());
  }
  // Steps in db/, of which the first are in tables and the others in a log.
  void Fill() const {
    for (int i = 0; i < kSteps; ++i) FinishStep(i);
    { ASSERT_TRUE(OpenArchive(root(), kPatience).ok()); }
    auto db = OpenDb(paths());
    ASSERT_TRUE(db.ok());
    (*db)->CompactRange(nullptr, nullptr);
    db->reset();
    for (int i = kSteps; i < 2 * kSteps; ++i) FinishStep(i);
    const auto archive = OpenArchive(root(), kPatience);
    ASSERT_TRUE(archive.ok());
    ASSERT_EQ(archive->reader->note(), "");
  }
  void Restore() const {
    fs::remove_all(root());
    fs::copy(copy(), root(), fs::copy_options::recursive);
  }
  VerifyReport Verify() const {
    auto report = VerifyArchive(root(), nullptr);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *std::move(report) : VerifyReport();
  }
  RepairReport Repair() const {
    auto report = RepairArchive(root(), kPatience, nullptr);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *std::move(report) : RepairReport();
  }

  // What somebody who reads everything gets, and whether he was told that it is not all.
  struct Reading {
    size_t profiles = 0;
    size_t points = 0;
    bool told = false;
  };
  Reading ReadAll() const {
    Reading got;
    const auto archive = OpenArchive(root(), kPatience);
    if (!archive.ok()) return {0, 0, !archive.status().message().empty()};
    got.told = !archive->reader->note().empty();
    const auto list = archive->reader->List();
    if (!list.ok()) {
      got.told = true;
      return got;
    }
    got.profiles = list->size();
    for (const ProfileEntry& entry : *list) {
      const auto profile = archive->reader->Load(entry.key);
      // A note of the profile tells as well.
      got.told |= !profile.ok() || !profile->job.notes.empty() || !entry.job.notes.empty();
      const auto data = archive->reader->Read(entry.key, SeriesScope::kNodes, nullptr, 0, kAllTime);
      got.told |= !data.ok();
      if (!data.ok()) continue;
      for (const SeriesData& series : *data) got.points += series.points.size();
    }
    return got;
  }
  static constexpr size_t kPointsOfStep = size_t{kRows} * 2 * 2;  // nodes, series

  // Calls `f` for every file below the archive and every way to damage it, with what was done.
  void ForEveryDamage(const std::function<void(const std::string& what)>& f) const {
    std::vector<fs::path> files;
    for (const auto& e : fs::recursive_directory_iterator(copy())) {
      if (e.is_regular_file() && e.file_size() > 0) files.push_back(e.path());
    }
    for (const fs::path& original : files) {
      const fs::path file = root() / fs::relative(original, copy());
      const auto size = static_cast<std::streamoff>(fs::file_size(original));
      constexpr int kPlaces = 6;
      for (int place = 0; place < kPlaces; ++place) {
        const std::streamoff at = place * (size - 1) / (kPlaces - 1);
        for (const int length : {1, 40}) {
          Restore();
          std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
          stream.seekg(at);
          std::string bytes(static_cast<size_t>(std::min<std::streamoff>(length, size - at)), ' ');
          stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
          for (char& byte : bytes) byte = static_cast<char>(byte ^ 0x55);
          stream.seekp(at);
          stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
          stream.close();
          f(file.filename().string() + " flipped at " + std::to_string(at));
        }
        Restore();
        fs::resize_file(file, static_cast<uintmax_t>(at));
        f(file.filename().string() + " cut at " + std::to_string(at));
      }
    }
  }

  TempDir dir_{TempDir::Memory()};
};

TEST_F(DamageTest, AGoodArchiveIsVerified) {
  Fill();
  const VerifyReport report = Verify();
  for (const auto& problem : report.problems) ADD_FAILURE() << problem.profile << problem.what;
  EXPECT_EQ(report.profiles, 2u * kSteps);
  EXPECT_EQ(report.blocks, 2u * kSteps * 3);
  EXPECT_EQ(report.schemas, 2u);
  EXPECT_GE(report.index_entries, 2u * kSteps * 2);
  EXPECT_EQ(report.foreign, 0u);
}

TEST_F(DamageTest, DamageInAnyFileIsToldVerifiedAndRepaired) {
  Fill();
  fs::rename(root(), copy());
  size_t damaged = 0;
  ForEveryDamage([&](const std::string& what) {
    SCOPED_TRACE(what);
    // Of a log LevelDB cannot tell an end that was cut off from one that was never written; nothing
    // but what was not synced can end so.
    const bool cut_log =
        what.find(" cut at ") != std::string::npos &&
        (what.find(".log") != std::string::npos || what.find("MANIFEST") != std::string::npos);
    const VerifyReport found = Verify();
    const Reading read = ReadAll();
    const bool whole = read.profiles == 2u * kSteps && read.points == 2u * kSteps * kPointsOfStep;
    if (!whole && !cut_log) {
      ++damaged;
      EXPECT_TRUE(read.told) << read.profiles << " profiles, " << read.points << " points";
      EXPECT_FALSE(found.ok());
    }
    const RepairReport repaired = Repair();
    const VerifyReport after = Verify();
    for (const auto& p : after.problems) ADD_FAILURE() << p.profile << ": " << p.what;
    const Reading now = ReadAll();
    EXPECT_GE(now.profiles, read.profiles);
    EXPECT_GE(now.points, read.points);
    if (now.profiles < 2u * kSteps && !cut_log) {
      EXPECT_FALSE(repaired.losses.empty() && repaired.damage.empty() && repaired.dropped == 0);
    }
    EXPECT_TRUE(fs::exists(repaired.kept));
  });
  EXPECT_GT(damaged, 10u);
}

TEST_F(DamageTest, DamageInAnyFileOfAStepThatWaitsIsTold) {
  FinishStep(0);
  fs::rename(root(), copy());
  ForEveryDamage([&](const std::string& what) {
    SCOPED_TRACE(what);
    const bool cut_log =
        what.find(" cut at ") != std::string::npos && what.find(".log") != std::string::npos;
    const VerifyReport found = Verify();
    const Reading read = ReadAll();
    EXPECT_EQ(read.profiles, 1u);
    if (read.points != kPointsOfStep) {
      EXPECT_TRUE(read.told) << read.points;
      EXPECT_TRUE(!found.ok() || cut_log);
    }
  });
}

// Of the files that LevelDB cannot do without.
TEST_F(DamageTest, WithoutItsManifestOrATableTheRestIsRepaired) {
  Fill();
  fs::rename(root(), copy());
  for (const std::string gone : {"MANIFEST", "CURRENT", ".ldb"}) {
    SCOPED_TRACE(gone);
    Restore();
    for (const auto& e : fs::directory_iterator(root() + "/db")) {
      if (e.path().filename().string().find(gone) != std::string::npos) fs::remove(e.path());
    }
    EXPECT_FALSE(Verify().ok());
    EXPECT_TRUE(ReadAll().told);
    const RepairReport repaired = Repair();
    EXPECT_EQ(repaired.profiles, gone == ".ldb" ? size_t{kSteps} : size_t{2 * kSteps});
    const VerifyReport after = Verify();
    EXPECT_TRUE(after.ok());
    EXPECT_THAT(after.damaged, testing::ElementsAre("db.damaged-1"));
    const Reading read = ReadAll();
    EXPECT_EQ(read.points, repaired.profiles * kPointsOfStep);
    const auto discarded = DiscardDamage(root());
    ASSERT_TRUE(discarded.ok());
    EXPECT_EQ(discarded->size(), 1u);
    EXPECT_THAT(Verify().damaged, IsEmpty());
    // It is an archive like any other.
    FinishStep(99);
    EXPECT_EQ(ReadAll().profiles, repaired.profiles + 1);
  }
}

TEST_F(DamageTest, ARepairMakesAnewWhatCanBeAndNamesTheRest) {
  Fill();
  const std::string first = keys::ProfileKey(TestJob("0", kTestStart));
  const std::string second = keys::ProfileKey(TestJob("1", kTestStart + kSecond));
  const std::string third = keys::ProfileKey(TestJob("2", kTestStart + 2 * kSecond));
  {
    auto db = OpenDb(paths());
    ASSERT_TRUE(db.ok());
    const auto drop = [&](const std::string& key) {
      ASSERT_TRUE((*db)->Delete(leveldb::WriteOptions(), key).ok());
    };
    drop(keys::Block(first, {1, "task", 1}));
    drop(keys::Profile(second));
    drop(keys::ByJob("1", TestJob("1", kTestStart + kSecond)));
    for (const uint32_t node : {0u, 1u, kReducedNode}) drop(keys::Block(third, {node, "task", 1}));
    drop(keys::Description(third));
    drop(keys::Profile(third));
    std::vector<std::string> parts;
    ASSERT_TRUE(ForEachRecord(**db, keys::Parts(third), [&](std::string_view key, auto) {
                  parts.emplace_back(key);
                }).ok());
    for (const std::string& part : parts) drop(part);
    ASSERT_TRUE(
        (*db)
            ->Put(leveldb::WriteOptions(), keys::Block(first, {0, "task", 2}), "no block at all")
            .ok());
  }
  const VerifyReport found = Verify();
  std::map<std::string, std::string> problems;
  for (const auto& p : found.problems) problems[p.profile] += p.what + ";";
  EXPECT_THAT(problems[first], HasSubstr("read a block"));
  EXPECT_THAT(problems[second], HasSubstr("its profile is missing"));
  EXPECT_THAT(problems[third], HasSubstr("leads to a profile that is not there"));

  const RepairReport repaired = Repair();
  EXPECT_EQ(repaired.profiles, 2u * kSteps - 1);
  EXPECT_EQ(repaired.dropped, 1u);
  std::map<std::string, std::string> losses;
  for (const auto& loss : repaired.losses) losses[loss.profile] += loss.what;
  EXPECT_EQ(losses[first], "1 of 3 blocks are lost");
  EXPECT_THAT(losses[second], HasSubstr("made anew"));
  EXPECT_EQ(losses[third], "nothing of it could be read");
  EXPECT_EQ(losses.size(), 3u);
  EXPECT_TRUE(Verify().ok());
  const auto archive = OpenArchive(root(), kPatience);
  ASSERT_TRUE(archive.ok());
  EXPECT_THAT(archive->reader->Load(first)->job.notes.back(), HasSubstr("1 of 3 blocks are lost"));
  const auto remade = archive->reader->Load(second);
  EXPECT_EQ(remade->job.state, EndState::kCompleted);
  EXPECT_EQ(remade->footprint.size(), 2u);
  EXPECT_EQ(archive->reader->Find({"1", "0"})->size(), 1u);
}

TEST_F(DamageTest, ARepairOfAGoodArchiveLosesAndAddsNothing) {
  Fill();
  const Reading before = ReadAll();
  ASSERT_FALSE(before.told);
  const RepairReport repaired = Repair();
  EXPECT_THAT(repaired.losses, IsEmpty());
  EXPECT_EQ(repaired.damage, "");
  const Reading after = ReadAll();
  EXPECT_EQ(after.profiles, before.profiles);
  EXPECT_EQ(after.points, before.points);
  EXPECT_FALSE(after.told);
}

TEST_F(DamageTest, ARepairDoesNotTakeTheArchiveFromWhoHasIt) {
  Fill();
  const auto holder = OpenArchive(root(), kPatience);
  ASSERT_TRUE(holder.ok());
  EXPECT_EQ(RepairArchive(root(), 0, nullptr).status().code(), Code::kBusy);
  EXPECT_TRUE(Verify().ok()) << "reading disturbs nobody";
}

// Everything below the archive, as it lies there.
std::map<std::string, std::string> Files(const std::string& root) {
  std::map<std::string, std::string> files;
  for (const auto& e : fs::recursive_directory_iterator(root)) {
    if (!e.is_regular_file()) continue;
    std::ifstream in(e.path(), std::ios::binary);
    files[e.path()] = std::string(std::istreambuf_iterator<char>(in), {});
  }
  return files;
}

TEST_F(DamageTest, AnArchiveOfANewerVersionIsRefusedByNameAndNotChanged) {
  Fill();
  FinishStep(99);
  {
    auto db = OpenDb(paths());
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE((*db)->Put(leveldb::WriteOptions(), "F", "sonde archive 2").ok());
  }
  std::ofstream(root() + "/db.format") << "sonde archive 2";
  const auto before = Files(root());
  const auto refused = [&](const Status& status) {
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_THAT(std::string(status.message()), HasSubstr("sonde archive 2"));
  };
  refused(OpenArchive(root(), kPatience).status());
  refused(Archive::Open(root()).status());
  refused(VerifyArchive(root(), nullptr).status());
  refused(RepairArchive(root(), kPatience, nullptr).status());
  auto after = Files(root());
  after.erase(root() + "/db.lock");
  auto same = before;
  same.erase(root() + "/db.lock");
  EXPECT_EQ(after, same);
}

TEST_F(DamageTest, ADatabaseThatNamesANewerFormatIsRefused) {
  Fill();
  {
    auto db = OpenDb(paths());
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE((*db)->Put(leveldb::WriteOptions(), "F", "sonde archive 3").ok());
  }
  fs::remove(root() + "/db.format");
  const auto archive = OpenArchive(root(), kPatience);
  EXPECT_EQ(archive.status().code(), Code::kUnsupported);
  EXPECT_THAT(std::string(archive.status().message()), HasSubstr("sonde archive 3"));
}

// Whoever has the version that wrote them reads them; until then nothing of them is thrown away.
TEST_F(DamageTest, BlocksOfAnotherVersionAreKeptAndNamed) {
  const auto schema = Schema::Make(TaskSeries());
  std::string newer = MakeBlock(*schema, TestTimes(kRows, 1), {1, 2});
  newer[2] = 9;
  newer[3] = 1;  // or it were a damaged one of ours
  {
    auto live = LiveArchive::Create(root(), TestJob());
    ASSERT_TRUE(live.ok());
    ASSERT_TRUE(PutNodeBlock(**live, 0, 1, 0, kRows).ok());
    ASSERT_TRUE((*live)->PutBlock({0, "task", 2}, *schema, newer).ok());
    ASSERT_TRUE((*live)->Finish().ok());
  }
  const std::string key = keys::ProfileKey(TestJob());
  {
    const auto archive = OpenArchive(root(), kPatience);
    ASSERT_TRUE(archive.ok());
    EXPECT_EQ(archive->reader->note(), "");
    EXPECT_THAT(archive->reader->Load(key)->job.notes,
                testing::Contains(testing::AllOf(HasSubstr("1 block is of another version"),
                                                 HasSubstr("use a newer Sonde"))));
    EXPECT_EQ(archive->reader->Read(key, SeriesScope::kNodes, nullptr, 0, kAllTime).status().code(),
              Code::kUnsupported);
  }
  EXPECT_THAT(Verify().damaged, IsEmpty());
  EXPECT_EQ(Verify().foreign, 1u);
  EXPECT_TRUE(Verify().ok());
  Repair();
  auto db = OpenDb(paths());
  ASSERT_TRUE(db.ok());
  std::string stored;
  ASSERT_TRUE((*db)->Get(leveldb::ReadOptions(), keys::Block(key, {0, "task", 2}), &stored).ok());
  EXPECT_EQ(stored, newer);
}

// Ticks that come again are told once, as those of two writers are.
TEST_F(DamageTest, AClockThatStepsBackLosesNoBlockAndNoProfile) {
  JobDescription job = TestJob();
  {
    auto live = LiveArchive::Create(root(), job);
    ASSERT_TRUE(live.ok());
    ASSERT_TRUE(PutNodeBlock(**live, 0, 1, 0, kRows).ok());
    ASSERT_TRUE(PutReducedBlock(**live, 1, 0, kRows).ok());
    // Back by half a block, and on.
    ASSERT_TRUE(PutNodeBlock(**live, 0, 2, kRows / 2, kRows).ok());
    ASSERT_TRUE(PutReducedBlock(**live, 2, kRows / 2, kRows).ok());
    Profile profile;
    profile.job = job;
    profile.job.state = EndState::kCompleted;
    profile.job.end = job.start - 3600 * kSecond;
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    ASSERT_TRUE((*live)->Finish().ok());
  }
  // A run that began before the one before it, by the clock.
  JobDescription earlier = TestJob("123", kTestStart - 7200 * kSecond);
  { ASSERT_TRUE(LiveArchive::Create(root(), earlier).ok()); }
  const auto archive = OpenArchive(root(), kPatience);
  ASSERT_TRUE(archive.ok());
  EXPECT_EQ(archive->reader->note(), "");
  EXPECT_EQ(archive->reader->List()->size(), 2u);
  const auto data =
      archive->reader->Read(keys::ProfileKey(job), SeriesScope::kNodes, nullptr, 0, kAllTime);
  ASSERT_TRUE(data.ok());
  ASSERT_EQ(data->size(), 2u);
  EXPECT_EQ(data->front().points.size(), size_t{kRows * 3 / 2});
  EXPECT_EQ(Verify().blocks, 4u);
  EXPECT_TRUE(Verify().ok());
}

}  // namespace
}  // namespace sonde::profiles_damage_test
