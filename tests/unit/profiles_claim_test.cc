// Who may change an archive on file systems that grant a lock on each host by itself.
// Long: all of these tests need the functions here that stand before the C library's.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "profiles/archive/owned_archive.h"
#include "profiles/disk/claim.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/live/live_archive.h"
#include "profiles/live/live_steps.h"
#include "profiles/records/keys.h"
#include "profiles/upkeep/ingest.h"
#include "profiles/upkeep/lock.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/repair.h"
#include "profiles/upkeep/sweep.h"
#include "tests/unit/profiles_days.h"

namespace {

std::atomic<bool> without_links{false};
std::atomic<bool> without_locks{false};
std::atomic<bool> refuses_locks{false};
// Of a process that is suspended there: what others do meanwhile, once.
std::function<void()> before_read;
std::function<void()> before_look_at_locks;

}  // namespace

// These stand before the C library's.
extern "C" int link(const char* from, const char* to) noexcept {
  if (without_links) {
    errno = EPERM;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}

extern "C" ssize_t read(int fd, void* data, size_t size) {
  if (before_read) std::exchange(before_read, nullptr)();
  return ::syscall(SYS_read, fd, data, size);
}

// Of a host that does not see the locks of another one.
extern "C" int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (refuses_locks && (command == F_OFD_SETLK || command == F_OFD_GETLK)) {
    errno = ENOLCK;
    return -1;
  }
  if (before_look_at_locks && command == F_OFD_GETLK) {
    std::exchange(before_look_at_locks, nullptr)();
  }
  if (without_locks && command == F_OFD_SETLK) return 0;
  if (without_locks && command == F_OFD_GETLK) {
    static_cast<struct flock*>(argument)->l_type = F_UNLCK;
    return 0;
  }
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}

namespace sonde::profiles_claim_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr Nanos kForever = std::numeric_limits<Nanos>::max();
const Claim::Host kAda{"ada", "boot-a"};
const Claim::Host kBob{"bob", "boot-b"};

// Whether the file system makes hard links or not.
class ClaimTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { without_links = !GetParam(); }
  void TearDown() override { without_links = false; }
  std::string path() const { return dir_.path() + "/db.owner"; }
  void Age(std::chrono::seconds by) const {
    fs::last_write_time(path(), fs::file_time_type::clock::now() - by);
  }
  std::vector<std::string> Names() const { return NamesIn(dir_.path()); }

  TempDir dir_{TempDir::Memory()};
};

TEST_P(ClaimTest, OneHostHasItUntilItGivesItBack) {
  auto ada = Claim::Take(path(), kAda);
  ASSERT_TRUE(ada.ok()) << ada.status().message();
  EXPECT_TRUE((*ada)->Check().ok());
  const auto bob = Claim::Take(path(), kBob);
  EXPECT_EQ(bob.status().code(), Code::kBusy);
  EXPECT_THAT(std::string(bob.status().message()), HasSubstr("held by host ada"));
  EXPECT_THAT(Names(), testing::ElementsAre("db.owner"));
  ada->reset();
  EXPECT_THAT(Names(), testing::IsEmpty());
  EXPECT_TRUE(Claim::Take(path(), kBob).ok());
}

TEST_P(ClaimTest, ASilentHostLosesItAndHearsOfIt) {
  auto ada = Claim::Take(path(), kAda);
  ASSERT_TRUE(ada.ok());
  Age(std::chrono::minutes(9));
  EXPECT_EQ(Claim::Take(path(), kBob).status().code(), Code::kBusy);
  Age(std::chrono::minutes(11));
  const auto bob = Claim::Take(path(), kBob);
  ASSERT_TRUE(bob.ok()) << bob.status().message();
  EXPECT_EQ((*ada)->Check().code(), Code::kBusy);
  EXPECT_TRUE((*bob)->Check().ok());
  // What it gives back is not its own any more.
  ada->reset();
  EXPECT_TRUE((*bob)->Check().ok());
  EXPECT_THAT(Names(), testing::ElementsAre("db.owner"));
}

// The file that it has opened is its own; the one that has the name then is not.
TEST_P(ClaimTest, WhoIsSuspendedWhileItLooksHearsOfItsSuccessor) {
  const auto ada = Claim::Take(path(), kAda);
  ASSERT_TRUE(ada.ok());
  std::shared_ptr<Claim> bob;
  before_read = [&] {
    Age(std::chrono::minutes(11));
    bob = *Claim::Take(path(), kBob);
  };
  EXPECT_EQ((*ada)->Check().code(), Code::kBusy);
  EXPECT_TRUE(bob->Check().ok());
}

TEST_P(ClaimTest, OneThatWasLostStaysLost) {
  const auto ada = Claim::Take(path(), kAda);
  ASSERT_TRUE(ada.ok());
  const std::string text = *ReadSmallFile(path(), 4096);
  fs::remove(path());
  EXPECT_EQ((*ada)->Check().code(), Code::kBusy);
  std::ofstream(path()) << text;
  EXPECT_EQ((*ada)->Check().code(), Code::kBusy);
}

TEST_P(ClaimTest, TheProcessBeforeOnThisHostIsDead) {
  auto before = Claim::Take(path(), kAda);
  ASSERT_TRUE(before.ok());
  EXPECT_TRUE(Claim::Take(path(), kAda).ok());
}

// Its time was set by a clock that was ahead, and tells nothing.
TEST_P(ClaimTest, ATimeInTheFutureIsNoSignOfLife) {
  const auto ada = Claim::Take(path(), kAda);
  ASSERT_TRUE(ada.ok());
  Age(-std::chrono::hours(1));
  EXPECT_TRUE(Claim::Take(path(), kBob).ok());
}

TEST_P(ClaimTest, WhatIsNoClaimIsBelievedForAsLong) {
  std::ofstream(path()) << "?";
  EXPECT_EQ(Claim::Take(path(), kBob).status().code(), Code::kBusy);
  Age(std::chrono::minutes(11));
  EXPECT_TRUE(Claim::Take(path(), kBob).ok());
}

// Else a slow one would remove the claim of a faster one.
TEST_P(ClaimTest, OneAtATimeRemovesAStaleClaim) {
  const auto ada = Claim::Take(path(), kAda);
  ASSERT_TRUE(ada.ok());
  Age(std::chrono::minutes(11));
  std::string nonce = *ReadSmallFile(path(), 4096);
  nonce = nonce.substr(nonce.size() - 17, 16);
  const std::string turn = path() + "." + nonce + ".gone";
  std::ofstream(turn) << "";
  EXPECT_EQ(Claim::Take(path(), kBob).status().code(), Code::kBusy);
  // Who had the turn was killed.
  fs::last_write_time(turn, fs::file_time_type::clock::now() - std::chrono::minutes(11));
  EXPECT_EQ(Claim::Take(path(), kBob).status().code(), Code::kBusy);
  EXPECT_TRUE(Claim::Take(path(), kBob).ok());
  EXPECT_FALSE(fs::exists(turn));
}

TEST_P(ClaimTest, APipeInItsPlaceStopsNobody) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(Claim::Take(path(), kBob).status().code(), Code::kInvalid);
}

TEST_P(ClaimTest, OfManyHostsThatTakeItAtOnceOneHasIt) {
  constexpr int kHosts = 6;
  constexpr int kRounds = 200;
  std::atomic<int> holders{0};
  std::atomic<int> taken{0};
  std::atomic<bool> two{false};
  std::vector<std::thread> hosts;
  for (int i = 0; i < kHosts; ++i) {
    hosts.emplace_back([&, i] {
      const Claim::Host host{"host" + std::to_string(i), "boot" + std::to_string(i)};
      for (int round = 0; round < kRounds; ++round) {
        const auto claim = Claim::Take(path(), host);
        if (!claim.ok()) continue;
        if (++holders > 1) two = true;
        ++taken;
        EXPECT_TRUE((*claim)->Check().ok());
        --holders;
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  EXPECT_FALSE(two);
  EXPECT_GT(taken, 0);
  EXPECT_THAT(Names(), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(HardLinks, ClaimTest, testing::Bool(),
                         [](const auto& name) { return name.param ? "With" : "Without"; });

// Of a claim that another host takes at a moment that the test chooses.
struct LostFence final : public Fence {
  Status Check() override { return lost ? Status(Code::kBusy, "taken") : Status(); }
  bool lost = false;
};

// The holder of an archive whose lock another host does not see: there, the lock's file is another.
class TakenOverTest : public DaysTest {
 protected:
  void SetUp() override {
    for (int day = 0; day < 3; ++day) FinishStep(Job(day));
    archive_ = std::make_unique<OpenedArchive>(Open());
    ASSERT_TRUE(archive_->owned());
  }
  // As a host does that finds the claim of one that has been silent for long. LevelDB, which locks
  // names once in a process, knows the database by another name.
  OpenedArchive TakeOver() const {
    fs::remove(root() + "/db.lock");
    fs::create_directory_symlink(root(), dir_.path() + "/mounted");
    auto archive = OpenArchive(dir_.path() + "/mounted", kPatience);
    EXPECT_TRUE(archive.ok() && archive->owned()) << archive.status().message();
    return *std::move(archive);
  }
  static std::string KeyOf(const OpenedArchive& archive) {
    return archive.reader->List()->at(0).key;
  }
  static Status Tag(OpenedArchive& archive, const std::string& value) {
    TagChange change;
    change.set["by"] = value;
    return archive.owner->Tag(KeyOf(archive), change).status();
  }
  static std::string TagOf(const OpenedArchive& archive) {
    const auto entry = archive.reader->List()->at(0);
    return entry.job.tags.empty() ? "" : entry.job.tags.begin()->second;
  }
  std::unique_ptr<OpenedArchive> archive_;
};

TEST_F(TakenOverTest, WhoWasSuspendedChangesNothingAnyMore) {
  ASSERT_TRUE(Tag(*archive_, "first").ok());
  {
    OpenedArchive other = TakeOver();
    EXPECT_EQ(TagOf(other), "first");
    ASSERT_TRUE(Tag(other, "other").ok());
    const Status late = Tag(*archive_, "late");
    ASSERT_FALSE(late.ok());
    EXPECT_THAT(std::string(late.message()), HasSubstr("taken by another host"));
    EXPECT_EQ(Tag(*archive_, "late").code(), Code::kBusy);
    EXPECT_EQ(TagOf(other), "other");
    ASSERT_TRUE(Tag(other, "again").ok());
  }
  // Once the other is done, it goes on with what the other wrote.
  EXPECT_EQ(TagOf(*archive_), "again");
  EXPECT_TRUE(Tag(*archive_, "back").ok());
  EXPECT_EQ(TagOf(*archive_), "back");
  archive_.reset();
  ExpectSound();
}

TEST_F(TakenOverTest, WhoWasSuspendedDeletesNothingWhenItEnds) {
  OpenedArchive other = TakeOver();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Tag(other, std::to_string(i)).ok());
  archive_.reset();
  ASSERT_TRUE(Tag(other, "last").ok());
  EXPECT_EQ(TagOf(other), "last");
  EXPECT_TRUE(other.owner->Compact(nullptr).ok());
  other = {};
  ExpectSound();
}

// Suspended while it looks whether there are readers.
TEST(FencedDeletionTest, TheClaimIsLookedAtLast) {
  const TempDir dir(TempDir::Memory());
  for (const char* name : {"/000001.ldb", "/lock"}) std::ofstream(dir.path() + name) << "?";
  const auto fence = std::make_shared<LostFence>();
  WriterEnv env(dir.path() + "/lock", fence);
  before_look_at_locks = [&] { fence->lost = true; };
  EXPECT_FALSE(env.RemoveFile(dir.path() + "/000001.ldb").ok());
  EXPECT_TRUE(fence->lost);
  EXPECT_TRUE(fs::exists(dir.path() + "/000001.ldb"));
}

TEST_F(TakenOverTest, AServerThatHasNothingToWriteNotices) {
  ASSERT_TRUE(archive_->owner->IngestWaiting().ok());
  {
    OpenedArchive other = TakeOver();
    ASSERT_TRUE(Tag(other, "other").ok());
  }
  static_cast<void>(archive_->owner->IngestWaiting());
  static_cast<void>(archive_->owner->IngestWaiting());
  EXPECT_EQ(TagOf(*archive_), "other");
}

TEST_F(TakenOverTest, ACompactionUnderWayStops) {
  const OpenedArchive other = TakeOver();
  EXPECT_FALSE(archive_->owner->Compact(nullptr).ok());
  archive_.reset();
  ExpectSound();
}

// Stopped as well, since it was to end: it must not delete what its successor makes.
TEST_F(TakenOverTest, ARepairOfWhoWasSuspendedLeavesTheNextOnesRepair) {
  archive_.reset();
  class Suspended final : public Fence {
   public:
    explicit Suspended(std::string theirs) : theirs_(std::move(theirs)) {}
    Status Check() override {
      fs::create_directories(theirs_);
      return {Code::kUnavailable, "the archive was taken by another host"};
    }

   private:
    std::string theirs_;
  };
  const std::string theirs = root() + "/db.repair/theirs";
  const auto repaired =
      RepairHeld(ArchivePaths(root()), std::make_shared<Suspended>(theirs), nullptr);
  EXPECT_EQ(repaired.status().code(), Code::kUnavailable);
  EXPECT_TRUE(fs::exists(theirs));
  fs::remove_all(root() + "/db.repair");
  Open();
  ExpectSound();
}

TEST_F(TakenOverTest, WhatNfsLeavesOfDeletedFilesGoesWithTime) {
  archive_.reset();
  const std::string table = root() + "/db/.nfs000000000001";
  const std::string claim = root() + "/db.owner.0123.old";
  const std::string time = root() + "/.time-0123";
  for (const std::string& path : {table, claim, time}) std::ofstream(path) << "?";
  // It is old, but was deleted just now.
  fs::last_write_time(table, fs::file_time_type::clock::now() - std::chrono::hours(25));
  Open();
  EXPECT_TRUE(fs::exists(table));
  SweepArchive(ArchivePaths(root()), Clock::System().Now() + 25 * 3600 * kSecond);
  EXPECT_FALSE(fs::exists(table));
  EXPECT_FALSE(fs::exists(claim));
  EXPECT_FALSE(fs::exists(time));
  ExpectSound();
}

// Its lock is the next thing that is made.
TEST_F(TakenOverTest, TheDirectoryOfAStepThatIsBeingMadeStays) {
  archive_.reset();
  const std::string made = root() + "/live/.new-0123-step";
  fs::create_directories(made);
  SweepArchive(ArchivePaths(root()));
  EXPECT_TRUE(fs::exists(made));
  SweepArchive(ArchivePaths(root()), Clock::System().Now() + 601 * kSecond);
  EXPECT_FALSE(fs::exists(made));
}

// As NFS does whose server has no lock manager.
TEST_F(TakenOverTest, AFileSystemThatRefusesLocksIsReadAndNotWritten) {
  archive_.reset();
  refuses_locks = true;
  const auto live = LiveArchive::Create(root(), TestJob("999"));
  {
    const auto read = OpenArchive(root(), kPatience);
    ASSERT_TRUE(read.ok());
    EXPECT_FALSE(read->owned());
    EXPECT_THAT(read->reader->note(), HasSubstr("No locks available"));
    EXPECT_EQ(read->reader->List()->size(), 3u);
  }
  refuses_locks = false;
  ASSERT_FALSE(live.ok());
  EXPECT_THAT(std::string(live.status().message()),
              HasSubstr("does the file system support locks"));
  ExpectSound();
}

// The writer of a running step, on a host whose locks are not seen here.
class SuspendedWriterTest : public DaysTest {
 protected:
  void SetUp() override {
    auto live = LiveArchive::Create(root(), TestJob());
    ASSERT_TRUE(live.ok()) << live.status().message();
    live_ = *std::move(live);
    ASSERT_TRUE(live_->PutEndpoint({"elsewhere", "127.0.0.1", 4711, "token"}).ok());
    ASSERT_TRUE(PutNodeBlock(*live_, 0, 1, 0, 3).ok());
    std::ofstream(live_->path() + "/lock") << "elsewhere\n";
    without_locks = true;
  }
  void TearDown() override { without_locks = false; }
  void Age(std::chrono::seconds by) const { Age(live_->path(), by); }
  static void Age(const std::string& path, std::chrono::seconds by) {
    const auto then = fs::file_time_type::clock::now() - by;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      fs::last_write_time(entry.path(), then);
    }
  }
  Status End() {
    Profile profile;
    profile.job = TestJob();
    profile.job.state = EndState::kCompleted;
    profile.job.end = kTestStart + 6 * kSecond;
    SONDE_RETURN_IF_ERROR(live_->PutProfile(profile));
    return live_->Finish();
  }
  size_t Live() const { return NamesIn(root() + "/live").size(); }
  // Of the archive's only profile.
  JobDescription Job() const {
    const OpenedArchive archive = Open();
    const auto list = archive.reader->List();
    EXPECT_EQ(list->size(), 1u);
    return list->empty() ? JobDescription() : list->at(0).job;
  }
  size_t Points() const {
    const OpenedArchive archive = Open();
    const auto only = [](const Series& s) { return s.metric.type == MetricType::kGauge; };
    const auto read = archive.reader->Read(archive.reader->List()->at(0).key, SeriesScope::kNodes,
                                           only, 0, kForever);
    EXPECT_TRUE(read.ok()) << read.status().message();
    size_t points = 0;
    for (const SeriesData& data : *read) points += data.points.size();
    return points;
  }
  std::unique_ptr<LiveArchive> live_;
};

TEST_F(SuspendedWriterTest, AStepIsNotTakenForAbandonedWhileItsWriterShowsLife) {
  Age(std::chrono::minutes(9));
  EXPECT_EQ(Job().state, EndState::kRunning);
  Age(std::chrono::minutes(11));
  live_->Touch();
  EXPECT_EQ(Job().state, EndState::kRunning);
  EXPECT_EQ(Live(), 1u);
}

TEST_F(SuspendedWriterTest, ATimeInTheFutureIsNoSignOfLifeOfAWriter) {
  Age(std::chrono::hours(-24));
  EXPECT_EQ(Job().state, EndState::kLost);
  EXPECT_EQ(Live(), 0u);
}

TEST_F(SuspendedWriterTest, WhatIsAcknowledgedAfterItsStepWasTakenIsKept) {
  Age(std::chrono::minutes(11));
  EXPECT_EQ(Job().state, EndState::kLost);
  EXPECT_EQ(Live(), 0u);
  EXPECT_EQ(Points(), 3u);
  // It goes on, and is told that its next block is not stored; then that it is.
  EXPECT_FALSE(PutNodeBlock(*live_, 0, 2, 3, 3).ok());
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 2, 3, 3).ok());
  EXPECT_EQ(Live(), 1u);
  EXPECT_TRUE(fs::exists(live_->path() + "/endpoint.json"));
  ASSERT_TRUE(End().ok());
  live_.reset();
  without_locks = false;
  EXPECT_EQ(Job().state, EndState::kCompleted);
  EXPECT_EQ(Points(), 6u);
  ExpectSound();
}

TEST_F(SuspendedWriterTest, TheEndOfAStepThatWasTakenIsKept) {
  Age(std::chrono::minutes(11));
  EXPECT_EQ(Job().state, EndState::kLost);
  EXPECT_FALSE(End().ok());
  ASSERT_TRUE(End().ok());
  live_.reset();
  without_locks = false;
  EXPECT_EQ(Job().state, EndState::kCompleted);
  EXPECT_EQ(Points(), 3u);
}

// A kill in the middle of the intake.
TEST_F(SuspendedWriterTest, AStepThatWasTakenAndNotCopiedIsFoundAgain) {
  Age(std::chrono::minutes(11));
  const std::string name = fs::path(live_->path()).filename();
  const auto taken = TakeAbandoned(ArchivePaths(root()), *ReadLive(ArchivePaths(root()), name));
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_NE(taken->name, name);
  ASSERT_FALSE(PutNodeBlock(*live_, 0, 2, 3, 3).ok());
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 2, 3, 3).ok());
  ASSERT_TRUE(End().ok());
  live_.reset();
  // The write that was not acknowledged went into what had been taken.
  Age(taken->paths.dir, std::chrono::minutes(11));
  EXPECT_EQ(Job().state, EndState::kCompleted);
  EXPECT_EQ(Points(), 6u);
}

// The web server may be switched off, or not be there yet.
TEST_F(SuspendedWriterTest, AStepWithoutAnEndpointIsNotTakenEither) {
  fs::remove(live_->path() + "/endpoint.json");
  EXPECT_EQ(Job().state, EndState::kRunning);
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 2, 3, 3).ok());
  ASSERT_TRUE(End().ok());
  EXPECT_EQ(Job().state, EndState::kCompleted);
  EXPECT_EQ(Points(), 6u);
}

TEST_F(SuspendedWriterTest, TheNameOfAStepThatWasTakenDoesNotStayInWaiting) {
  const std::string name = fs::path(live_->path()).filename();
  ASSERT_TRUE(LeaveToHolder(ArchivePaths(root()), name).ok());
  Age(std::chrono::minutes(11));
  EXPECT_EQ(Job().state, EndState::kLost);
  EXPECT_THAT(NamesIn(root() + "/waiting"), testing::IsEmpty());
}

// It was suspended while it made its step, for so long that the step was taken for abandoned; the
// head of another host goes on with it.
TEST_F(SuspendedWriterTest, WhoCannotBeginDeletesNoOthersStep) {
  const JobDescription job = TestJob("124");
  const std::string name = root() + "/live/" + keys::ProfileKey(job);
  std::unique_ptr<LiveArchive> acting;
  before_read = [&] {
    fs::rename(name, name + "~2");
    acting = *LiveArchive::Continue(root(), job);
    ASSERT_EQ(acting->path(), name);
    ASSERT_TRUE(PutNodeBlock(*acting, 0, 1, 0, 3).ok());
  };
  EXPECT_FALSE(LiveArchive::Create(root(), job).ok());
  ASSERT_NE(acting, nullptr);
  EXPECT_TRUE(fs::exists(name));
  EXPECT_TRUE(PutNodeBlock(*acting, 0, 2, 3, 3).ok());
  EXPECT_EQ(acting->path(), name);
}

// Who has copied a step and is suspended before it deletes the step's directory.
class SuspendedIntakeTest : public SuspendedWriterTest {
 protected:
  void SetUp() override {
    SuspendedWriterTest::SetUp();
    ASSERT_TRUE(End().ok());
    path_ = live_->path();
    live_.reset();
    auto opened = OpenDb(ArchivePaths(root()), fence_);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    db_ = *std::move(opened);
    intake_ = std::make_unique<Intake>(*db_, paths_);
    ASSERT_TRUE(intake_->Add(ScanLive(paths_)->at(0)).ok());
  }
  const ArchivePaths paths_{root()};
  const std::shared_ptr<LostFence> fence_ = std::make_shared<LostFence>();
  std::string path_;
  std::unique_ptr<WritableDb> db_;
  std::unique_ptr<Intake> intake_;
};

TEST_F(SuspendedIntakeTest, DeletesNoStepWithoutTheClaim) {
  fence_->lost = true;
  EXPECT_FALSE(intake_->Settle().ok());
  EXPECT_TRUE(fs::exists(path_));
}

// Another host has taken it in, and the step goes on.
TEST_F(SuspendedIntakeTest, DeletesNoOtherStepOfThatName) {
  fs::remove_all(path_);
  const auto acting = *LiveArchive::Continue(root(), TestJob());
  ASSERT_EQ(acting->path(), path_);
  ASSERT_TRUE(PutNodeBlock(*acting, 0, 2, 3, 3).ok());
  EXPECT_FALSE(intake_->Settle().ok());
  EXPECT_TRUE(PutNodeBlock(*acting, 0, 3, 6, 3).ok());
  EXPECT_EQ(acting->path(), path_);
}

// A process that may open no file more has not lost its step.
TEST_F(SuspendedWriterTest, AFailedLookIsNoLoss) {
  const std::string path = live_->path();
  struct rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t before = std::exchange(limit.rlim_cur, 3);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(PutNodeBlock(*live_, 0, 2, 3, 3).ok());
  live_->Touch();
  limit.rlim_cur = before;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 2, 3, 3).ok());
  EXPECT_EQ(live_->path(), path);
  EXPECT_EQ(Live(), 1u);
  ASSERT_TRUE(End().ok());
  EXPECT_EQ(Points(), 6u);
}

// An acting head has made a directory of the same name meanwhile.
TEST_F(SuspendedWriterTest, AnotherWritersFilesAreLeftAlone) {
  Age(std::chrono::minutes(11));
  EXPECT_EQ(Job().state, EndState::kLost);
  auto acting = *LiveArchive::Continue(root(), TestJob());
  ASSERT_EQ(acting->path(), live_->path());
  ASSERT_TRUE(acting->PutState("the acting head's").ok());
  ASSERT_TRUE(PutNodeBlock(*acting, 1, 1, 0, 3).ok());
  EXPECT_TRUE(live_->PutState("the head's").ok());
  EXPECT_NE(live_->path(), acting->path());
  EXPECT_EQ(*ReadSmallFile(acting->path() + "/state", 64), "the acting head's");
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 2, 3, 3).ok());
  Profile profile;
  profile.job = TestJob();
  profile.job.state = EndState::kCompleted;
  profile.job.end = kTestStart + 6 * kSecond;
  ASSERT_TRUE(acting->PutProfile(profile).ok());
  ASSERT_TRUE(acting->Finish().ok());
  ASSERT_TRUE(End().ok());
  EXPECT_EQ(Points(), 9u);
}

// The writer is the same, and tells all that it told before.
TEST_F(SuspendedWriterTest, NothingOfAStepThatWasTakenCountsTwice) {
  Profile profile;
  profile.job = TestJob();
  profile.job.figures = {{"speed", "cells/s", 7, 2, kTestStart + kSecond, 0, 0}};
  profile.moments.lost = 3;
  RaisedAlarm alarm;
  alarm.rule = "full";
  alarm.severity = "warning";
  alarm.text = "the disk is full";
  profile.moments.alarms.push_back(alarm);
  ASSERT_TRUE(live_->PutDescription(profile.job).ok());
  ASSERT_TRUE(live_->PutMoments(profile.job, profile.moments).ok());
  Age(std::chrono::minutes(11));
  EXPECT_EQ(Job().state, EndState::kLost);
  EXPECT_FALSE(End().ok());
  profile.job.state = EndState::kCompleted;
  profile.job.end = kTestStart + 6 * kSecond;
  ASSERT_TRUE(live_->PutProfile(profile).ok());
  ASSERT_TRUE(live_->Finish().ok());
  const OpenedArchive archive = Open();
  const auto whole = archive.reader->Load(archive.reader->List()->at(0).key);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->moments.lost, 3u);
  EXPECT_EQ(whole->moments.alarms.size(), 1u);
  EXPECT_EQ(whole->job.figures.at(0).count, 2u);
  EXPECT_THAT(whole->job.notes, testing::ElementsAre(HasSubstr("took this step for abandoned")));
}

TEST_F(SuspendedWriterTest, AStateAndAnEndpointFollowToTheNewDirectory) {
  Age(std::chrono::minutes(11));
  EXPECT_EQ(Job().state, EndState::kLost);
  EXPECT_TRUE(live_->PutState("new").ok());
  EXPECT_EQ(*ReadSmallFile(live_->path() + "/state", 16), "new");
  EXPECT_TRUE(fs::exists(live_->path() + "/endpoint.json"));
}

}  // namespace
}  // namespace sonde::profiles_claim_test
