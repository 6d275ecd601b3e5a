// Archives in which one record or one file is wrong, whatever it is: they open, everything else is
// shown, what is lost is named, and a verification finds it.
//
// SONDE_DAMAGES says how many damages of each sort are tried (some hundred unless set), SONDE_SEED
// where they begin.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <map>
#include <random>
#include <set>

#include "profiles/archive/open_archive.h"
#include "profiles/archive/owned_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/records/tags.h"
#include "profiles/select/select.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/retention.h"
#include "profiles/upkeep/verify.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_flips_test {
namespace {

namespace fs = std::filesystem;

constexpr Nanos kAllTime = std::numeric_limits<Nanos>::max();
constexpr Nanos kPatience = 60 * kSecond;
constexpr int kRows = 20;
constexpr size_t kSteps = 6;
constexpr size_t kPoints = size_t{kRows} * 2 * 2;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class FlipsTest : public testing::Test {
 protected:
  FlipsTest() : random_(FromEnvironment("SONDE_SEED", 1)) {}

  std::string root() const { return dir_.path() + "/archive"; }
  std::string copy() const { return dir_.path() + "/copy"; }
  ArchivePaths paths() const { return ArchivePaths(root()); }
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  static JobDescription JobOf(size_t i) {
    return TestJob(std::to_string(i), kTestStart + static_cast<Nanos>(i) * kSecond);
  }
  void Record(size_t i, bool finish = true) const {
    const JobDescription job = JobOf(i);
    auto live = LiveArchive::Create(root(), job);
    ASSERT_TRUE(live.ok()) << live.status().message();
    for (uint32_t node : {0u, 1u}) ASSERT_TRUE(PutNodeBlock(**live, node, 1, 0, kRows).ok());
    ASSERT_TRUE(PutReducedBlock(**live, 1, 0, kRows).ok());
    StepMoments moments;
    moments.phases.push_back({"solve", job.start, job.start + kSecond, 0, 1, 1, {}});
    ASSERT_TRUE((*live)->PutMoments(job, moments).ok());
    if (!finish) return;
    Profile profile;
    profile.job = job;
    profile.job.state = EndState::kCompleted;
    profile.job.end = job.start + kRows * kSecond;
    profile.moments = moments;
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    ASSERT_TRUE((*live)->Finish().ok());
  }
  // Half of the steps in tables, half in the log, and one was deleted: each kind of record.
  void Fill() const {
    for (size_t i = 0; i < kSteps / 2; ++i) Record(i);
    { ASSERT_TRUE(OpenArchive(root(), kPatience).ok()); }
    {
      auto db = OpenDb(paths());
      ASSERT_TRUE(db.ok());
      (*db)->CompactRange(nullptr, nullptr);
    }
    for (size_t i = kSteps / 2; i < kSteps + 1; ++i) Record(i);
    { ASSERT_TRUE(OpenArchive(root(), kPatience).ok()); }
    auto db = OpenDb(paths());
    ASSERT_TRUE(db.ok());
    TagChange change;
    change.set["campaign"] = "winter";
    ASSERT_TRUE(ChangeTags(**db, keys::ProfileKey(JobOf(1)), change).ok());
    PruneWork work{.now = Clock::System().Now(), .budget = kPatience};
    PruneReport report;
    ASSERT_TRUE(PruneDb(**db, Retention{.profiles = kSteps}, work, report).ok());
    ASSERT_EQ(report.profiles, 1u);
  }

  // What is wrong with what was read: by the keys of profiles, "" for the archive.
  struct Reading {
    std::set<std::string> whole;  // listed, with all points and no note
    std::set<std::string> listed;
    bool told = false;
  };
  Reading ReadAll() const {
    Reading got;
    const auto archive = OpenArchive(root(), kPatience, nullptr, ArchiveUse::kReading);
    EXPECT_TRUE(archive.ok()) << archive.status().message();
    if (!archive.ok()) return got;
    const Archive& reader = *archive->reader;
    const auto selected = reader.Select({}, Clock::System().Now());
    EXPECT_TRUE(selected.ok()) << selected.status().message();
    if (!selected.ok()) return got;
    for (const ListedProfile& one : *selected) {
      got.listed.insert(one.key);
      const auto profile = reader.Load(one.key);
      const auto data = reader.Read(one.key, SeriesScope::kNodes, nullptr, 0, kAllTime);
      size_t points = 0;
      for (const SeriesData& series : data.ok() ? *data : std::vector<SeriesData>()) {
        points += series.points.size();
      }
      const bool good = profile.ok() && profile->job.state == EndState::kCompleted;
      if (good && profile->job.notes.empty() && points == kPoints) got.whole.insert(one.key);
      got.told |= !profile.ok() || !data.ok() || !profile->job.notes.empty();
      static_cast<void>(reader.ReadRows(one.key, SeriesScope::kReduced, {},
                                        [](const StoredRow&) { return Status(); }));
    }
    got.told |= !reader.note().empty() || !reader.damage().empty();
    return got;
  }
  VerifyReport Verify() const {
    auto report = VerifyArchive(root(), nullptr);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *std::move(report) : VerifyReport();
  }
  std::string Damaged(std::string value, std::string& how) {
    switch (value.empty() ? 3 : Below(4)) {
      case 0: {
        const size_t at = Below(value.size());
        value[at] = static_cast<char>(value[at] ^ static_cast<char>(1 + Below(255)));
        how = "flipped at " + std::to_string(at);
        break;
      }
      case 1:
        value.resize(Below(value.size()));
        how = "cut to " + std::to_string(value.size());
        break;
      case 2:
        std::fill(value.begin() + static_cast<long>(Below(value.size())), value.end(), '\0');
        how = "zeros at its end";
        break;
      default:
        value += "garbage";
        how = "with garbage at its end";
    }
    return value;
  }

  TempDir dir_{TempDir::Memory()};
  std::mt19937_64 random_;
};

TEST_F(FlipsTest, ADamagedRecordOfAnyKindCostsNothingElse) {
  Fill();
  std::map<char, std::vector<std::pair<std::string, std::string>>> records;
  {
    const auto db = OpenDb(paths());
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE(ForEachRecord(**db, "", [&](std::string_view key, std::string_view value) {
                  records[key[0]].emplace_back(key, value);
                }).ok());
  }
  std::string kinds;
  for (const auto& [kind, all] : records) kinds.push_back(kind);
  EXPECT_EQ(kinds, "FIabdijnopqst");
  ASSERT_EQ(ReadAll().whole.size(), kSteps);
  size_t harmful = 0;
  const uint64_t damages = FromEnvironment("SONDE_DAMAGES", 130);
  for (uint64_t n = 0; n < damages; ++n) {
    const char kind = kinds[n % kinds.size()];
    const auto& [key, value] = records[kind][Below(records[kind].size())];
    std::string how;
    const bool gone = Below(5) == 0;
    const std::string wrong = gone ? "" : Damaged(value, how);
    SCOPED_TRACE(std::string(1, kind) + " of " + std::string(ParseRecord(key).profile) + ": " +
                 (gone ? "gone" : how));
    {
      auto db = OpenDb(paths());
      ASSERT_TRUE(db.ok()) << db.status().message();
      const auto done = gone ? (*db)->Delete({}, key) : (*db)->Put({}, key, wrong);
      ASSERT_TRUE(done.ok());
    }
    const Reading read = ReadAll();
    // A schema belongs to all profiles that have such blocks.
    const std::string owner(ParseRecord(key).profile);
    if (kind != 's') {
      for (size_t i = 1; i < kSteps + 1; ++i) {
        const std::string other = keys::ProfileKey(JobOf(i));
        EXPECT_TRUE(other == owner || read.whole.contains(other)) << other;
      }
    }
    if (read.whole.size() != kSteps) {
      ++harmful;
      // If a whole block or entry is gone, only a number says so, and readers do not count.
      EXPECT_TRUE(read.told || (gone && (kind == 'b' || kind == 't')));
      const VerifyReport found = Verify();
      EXPECT_TRUE(!found.ok() || found.foreign > 0);
    }
    {
      // As db/ may not be opened any more by its own record.
      const auto db = CreateDb(paths().db(), nullptr);
      ASSERT_TRUE(db.ok());
      ASSERT_TRUE((*db)->Put({}, key, value).ok());
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(harmful, damages / 20);
}

TEST_F(FlipsTest, ADamagedFileOfAnyKindCostsNothingElse) {
  Fill();
  Record(kSteps + 1);
  Record(kSteps + 2, false);
  std::ofstream(root() + "/live/" + keys::ProfileKey(JobOf(kSteps + 2)) + "/endpoint.json") << "{}";
  fs::rename(root(), copy());
  std::vector<fs::path> files;
  for (const auto& e : fs::recursive_directory_iterator(copy())) {
    if (e.is_regular_file()) files.push_back(fs::relative(e.path(), copy()));
  }
  std::sort(files.begin(), files.end());
  size_t harmful = 0;
  const uint64_t damages = FromEnvironment("SONDE_DAMAGES", 200);
  for (uint64_t n = 0; n < damages; ++n) {
    const fs::path file = files[n % files.size()];
    fs::remove_all(root());
    fs::copy(copy(), root(), fs::copy_options::recursive);
    std::string value;
    {
      std::ifstream in(root() / file, std::ios::binary);
      value.assign(std::istreambuf_iterator<char>(in), {});
    }
    std::string how = "gone";
    const bool gone = Below(5) == 0;
    const std::string wrong = gone ? "" : Damaged(value, how);
    if (gone) {
      fs::remove(root() / file);
    } else {
      std::ofstream(root() / file, std::ios::binary) << wrong;
    }
    SCOPED_TRACE(file.string() + " " + how);
    const VerifyReport found = Verify();
    const Reading read = ReadAll();
    const bool of_db = file.string().starts_with("db/");
    // What waits in live/ is in another database, and another step's.
    if (!of_db) {
      EXPECT_GE(read.whole.size(), kSteps);
    } else {
      EXPECT_TRUE(read.whole.contains(keys::ProfileKey(JobOf(kSteps + 1))));
    }
    // LevelDB cannot tell the end of a log from a cut, or from the zeros of a file system.
    const bool log_end =
        !how.starts_with("flipped") &&
        (file.extension() == ".log" || file.string().find("MANIFEST") != std::string::npos);
    if (of_db && read.whole.size() != kSteps + 1 && !log_end) {
      ++harmful;
      EXPECT_TRUE(read.told);
      EXPECT_FALSE(found.ok());
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(harmful, 2u);
}

// Whoever opens a FIFO as if it were a file waits for its other end.
TEST_F(FlipsTest, AFifoInPlaceOfAnyFileHoldsNobodyUp) {
  Fill();
  Record(kSteps + 1);
  const std::string waiting = keys::ProfileKey(JobOf(kSteps + 1));
  fs::create_directory(root() + "/waiting");
  for (const char* made : {"/db.reserve", "/.room", "/db.format.new", "/db/CURRENT"}) {
    std::ofstream(root() + made, std::ios::app) << "";
  }
  std::ofstream(root() + "/waiting/" + waiting) << "";
  std::ofstream(root() + "/live/" + waiting + "/description.json.new") << "";
  fs::rename(root(), copy());
  std::vector<fs::path> files;
  for (const auto& e : fs::recursive_directory_iterator(copy())) {
    if (e.is_regular_file()) files.push_back(fs::relative(e.path(), copy()));
  }
  EXPECT_GT(files.size(), 14u);
  for (const fs::path& file : files) {
    SCOPED_TRACE(file.string());
    fs::remove_all(root());
    fs::copy(copy(), root(), fs::copy_options::recursive);
    fs::remove(root() / file);
    const std::string fifo = root() / file;
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    Reading read;
    auto all = std::async(std::launch::async, [&] {
      static_cast<void>(Verify());
      read = ReadAll();
      const auto archive = OpenArchive(root(), 0);
      if (!archive.ok() || archive->owner == nullptr) return;
      static_cast<void>(archive->owner->MakeRoom({}));
      static_cast<void>(archive->owner->KeepRoom());
    });
    while (all.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      ADD_FAILURE() << "it waits for the other end";
      ::close(::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    }
    if (!file.string().starts_with("db/")) {
      EXPECT_GE(read.whole.size(), kSteps);
    } else {
      EXPECT_TRUE(read.whole.contains(waiting));
    }
  }
}

TEST_F(FlipsTest, AStepOfAClockThatWasAheadIsAStepLikeOthers) {
  Fill();
  const Nanos now = Clock::System().Now();
  const auto year = static_cast<size_t>(365 * 24 * 3600);
  const size_t ahead = static_cast<size_t>((now - kTestStart) / kSecond) + year;
  Record(ahead);
  { ASSERT_TRUE(OpenArchive(root(), kPatience).ok()); }
  const Reading read = ReadAll();
  EXPECT_EQ(read.whole.size(), kSteps + 1);
  EXPECT_TRUE(Verify().ok());
  auto db = OpenDb(paths());
  ASSERT_TRUE(db.ok());
  PruneWork work{.now = now, .budget = kPatience};
  PruneReport report;
  ASSERT_TRUE(PruneDb(**db, Retention{.age = kSecond}, work, report).ok());
  EXPECT_EQ(report.profiles, kSteps);
  const auto left = Archive::Open(root());
  ASSERT_TRUE(left.ok());
  const auto listed = (*left)->List();
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().key, keys::ProfileKey(JobOf(ahead)));
}

TEST_F(FlipsTest, AnArchiveThatIsMovedWhileAStepRunsKeepsWhatWasAcknowledged) {
  Fill();
  const JobDescription job = JobOf(kSteps + 1);
  auto live = LiveArchive::Create(root(), job);
  ASSERT_TRUE(live.ok());
  ASSERT_TRUE(PutNodeBlock(**live, 0, 1, 0, kRows).ok());
  fs::rename(root(), copy());
  Profile profile;
  profile.job = job;
  profile.job.state = EndState::kCompleted;
  profile.job.end = job.start + kRows * kSecond;
  const bool ended = (*live)->PutProfile(profile).ok() && (*live)->Finish().ok();
  EXPECT_FALSE(ended) << "the writer is told";
  live->reset();
  fs::rename(copy(), root());
  const auto archive = OpenArchive(root(), kPatience);
  ASSERT_TRUE(archive.ok());
  EXPECT_EQ(archive->reader->List()->size(), kSteps + 1);
  const auto data =
      archive->reader->Read(keys::ProfileKey(job), SeriesScope::kNodes, nullptr, 0, kAllTime);
  ASSERT_TRUE(data.ok());
  ASSERT_FALSE(data->empty());
  EXPECT_EQ(data->front().points.size(), size_t{kRows});
  EXPECT_TRUE(Verify().ok());
}

}  // namespace
}  // namespace sonde::profiles_flips_test
