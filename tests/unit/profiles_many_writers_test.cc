// Many processes, of several hosts as far as they can tell, with one archive. Whatever is done to
// it is done in children: a process that has used LevelDB must not fork and go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leveldb/db.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <set>

#include "profiles/archive/ask_keeper.h"
#include "profiles/archive/ingest_one.h"
#include "profiles/archive/keeper.h"
#include "profiles/archive/open_archive.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/live/live_archive.h"
#include "profiles/live/live_steps.h"
#include "profiles/records/keys.h"
#include "profiles/upkeep/lock.h"
#include "profiles/upkeep/verify.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_many_writers_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr Nanos kForever = std::numeric_limits<Nanos>::max();
constexpr Nanos kPatience = 60 * kSecond;
constexpr int kSteps = 64;
constexpr int kHosts = 8;
constexpr int kRows = 8;

JobDescription JobOf(int i) { return TestJob(std::to_string(1000 + i), kTestStart + i * kSecond); }

class ManyWritersTest : public testing::Test {
 protected:
  std::string root() const { return dir_.path() + "/archive"; }

  pid_t Start(const std::function<void()>& f) const {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child != 0) return child;
    f();
    std::fflush(nullptr);
    ::_exit(HasFailure() ? 1 : 0);
  }
  static void Join(pid_t child) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  void WriteStep(int i) const {
    auto live = LiveArchive::Create(root(), JobOf(i));
    ASSERT_TRUE(live.ok()) << live.status().message();
    for (const uint32_t node : {0u, 1u}) ASSERT_TRUE(PutNodeBlock(**live, node, 1, 0, kRows).ok());
    Profile profile;
    profile.job = JobOf(i);
    profile.job.state = EndState::kCompleted;
    profile.job.end = profile.job.start + kRows * kSecond;
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    path_ = (*live)->path();
    ASSERT_TRUE((*live)->Finish().ok());
  }
  // Every step once, with all of its rows.
  static void CheckAll(const Archive& archive) {
    const auto list = archive.List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    std::set<std::string> jobs;
    for (const ProfileEntry& entry : *list) {
      jobs.insert(entry.job.id.job);
      EXPECT_EQ(entry.job.state, EndState::kCompleted);
      const auto data = archive.Read(entry.key, SeriesScope::kNodes, nullptr, 0, kForever);
      ASSERT_TRUE(data.ok()) << data.status().message();
      EXPECT_EQ(data->size(), 4u);
      for (const SeriesData& series : *data) EXPECT_EQ(series.points.size(), size_t{kRows});
    }
    EXPECT_EQ(list->size(), size_t{kSteps});
    EXPECT_EQ(jobs.size(), size_t{kSteps});
  }

  mutable std::string path_;
  TempDir dir_{TempDir::Memory()};
};

// Each begins when all are there.
class StartingGun {
 public:
  StartingGun() { EXPECT_EQ(::pipe(ends_), 0); }
  void Wait() const {
    ::close(ends_[1]);
    char byte = 0;
    EXPECT_EQ(::read(ends_[0], &byte, 1), 0);
  }
  void Fire() const {
    ::close(ends_[1]);
    ::close(ends_[0]);
  }

 private:
  int ends_[2] = {-1, -1};
};

// As the batch steps of a job array do: nobody reads the archive, and nothing is left in live/.
TEST_F(ManyWritersTest, HeadsThatEndAtOnceTakeEachOthersStepsIn) {
  const StartingGun gun;
  std::vector<pid_t> children;
  for (int i = 0; i < kSteps; ++i) {
    children.push_back(Start([&] {
      WriteStep(i);
      gun.Wait();
      const Status status = IngestLive(root(), path_, 0, nullptr, kPatience);
      EXPECT_TRUE(status.ok() || status.code() == Code::kBusy) << status.message();
    }));
  }
  gun.Fire();
  for (const pid_t child : children) Join(child);
  EXPECT_THAT(NamesIn(root() + "/live"), IsEmpty());
  EXPECT_THAT(NamesIn(root() + "/waiting"), IsEmpty());
  Join(Start([&] {
    const auto archive = OpenArchive(root(), kPatience);
    ASSERT_TRUE(archive.ok());
    CheckAll(*archive->reader);
  }));
}

// Such as one of a newer release.
TEST_F(ManyWritersTest, AStepThatCannotBeTakenInHoldsUpNoneThatWaitBehindIt) {
  const ArchivePaths paths(root());
  const std::string first = keys::ProfileKey(JobOf(0));
  Join(Start([&] {
    WriteStep(0);
    leveldb::DB* opened = nullptr;
    ASSERT_TRUE(leveldb::DB::Open({}, path_ + "/blocks", &opened).ok());
    const std::unique_ptr<leveldb::DB> db(opened);
    const std::string format = std::string(keys::kFormatStem) + "99";
    ASSERT_TRUE(db->Put({}, {keys::kFormatKey.data(), keys::kFormatKey.size()}, format).ok());
    ASSERT_TRUE(LeaveToHolder(paths, first).ok());
  }));
  Join(Start([&] {
    WriteStep(1);
    ASSERT_TRUE(LeaveToHolder(paths, keys::ProfileKey(JobOf(1))).ok());
  }));
  EXPECT_LT(first, keys::ProfileKey(JobOf(1))) << "or it does not come first";
  Join(Start([&] {
    WriteStep(2);
    const Status status = IngestLive(root(), path_, kPatience, nullptr, kPatience);
    EXPECT_TRUE(status.ok()) << status.message();
  }));
  EXPECT_THAT(NamesIn(root() + "/live"), testing::ElementsAre(first));
}

TEST_F(ManyWritersTest, OfManyStepsThatFinishAtOnceNoneIsLostAndNoneIsThereTwice) {
  const StartingGun gun;
  std::vector<pid_t> children;
  for (int i = 0; i < kSteps; ++i) {
    children.push_back(Start([&] {
      // Where that may not be had, all are of one host.
      if (::unshare(CLONE_NEWUTS) == 0) {
        const std::string host = "node" + std::to_string(i % kHosts);
        EXPECT_EQ(::sethostname(host.data(), host.size()), 0);
      }
      gun.Wait();
      WriteStep(i);
      const Status status = IngestLive(root(), path_, 0);
      // Somebody else takes it in: now, or when he opens the archive next.
      EXPECT_TRUE(status.ok() || status.code() == Code::kBusy || status.code() == Code::kNotFound)
          << status.message();
      if (i % 8 == 0) {
        EXPECT_TRUE(OpenArchive(root(), 0).ok());
      }
    }));
  }
  gun.Fire();
  for (const pid_t child : children) Join(child);
  Join(Start([&] {
    const auto archive = OpenArchive(root(), kPatience);
    ASSERT_TRUE(archive.ok());
    EXPECT_EQ(archive->reader->note(), "");
    CheckAll(*archive->reader);
    EXPECT_THAT(NamesIn(root() + "/live"), IsEmpty());
    const auto verified = VerifyArchive(root(), nullptr);
    ASSERT_TRUE(verified.ok());
    EXPECT_EQ(verified->blocks, size_t{kSteps} * 2);
    for (const auto& p : verified->problems) ADD_FAILURE() << p.profile << ": " << p.what;
  }));
}

TEST_F(ManyWritersTest, WhatFinishesWhileAServerHasTheArchiveIsTakenInByIt) {
  Join(Start([&] { WriteStep(0); }));
  int ready[2];
  int stop[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(stop), 0);
  const pid_t server = Start([&] {
    ::close(stop[1]);
    auto archive = OpenArchive(root(), kPatience);
    ASSERT_TRUE(archive.ok());
    const std::shared_ptr<const Archive> reader = archive->reader;
    {
      const ArchiveKeeper keeper(*std::move(archive));
      EXPECT_EQ(::write(ready[1], "r", 1), 1);
      char byte = 0;
      EXPECT_EQ(::read(stop[0], &byte, 1), 0);
    }
    CheckAll(*reader);
    EXPECT_FALSE(fs::exists(root() + "/db.sock"));
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  struct stat info;
  ASSERT_EQ(::stat((root() + "/db.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  std::vector<pid_t> children;
  for (int i = 1; i < kSteps; ++i) {
    children.push_back(Start([&] {
      WriteStep(i);
      EXPECT_EQ(IngestLive(root(), path_, 0).code(), Code::kBusy);
    }));
  }
  for (const pid_t child : children) Join(child);
  // A command sees all that the server sees, waits for nobody and has nothing to tell.
  Join(Start([&] {
    const auto archive = OpenArchive(root(), kForever / 2);
    ASSERT_TRUE(archive.ok());
    EXPECT_EQ(archive->reader->note(), "");
    EXPECT_FALSE(archive->owned());
    CheckAll(*archive->reader);
    const auto taken = AskToIngest(root(), kPatience);
    EXPECT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_THAT(NamesIn(root() + "/live"), IsEmpty());
    CheckAll(*archive->reader);
  }));
  ::close(stop[1]);
  Join(server);
}

TEST_F(ManyWritersTest, AnotherUserIsNotAnswered) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to have two users";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t server = Start([&] {
    WriteStep(0);
    auto archive = OpenArchive(root(), kPatience);
    ASSERT_TRUE(archive.ok());
    const ArchiveKeeper keeper(*std::move(archive));
    // Even where the directories and the socket would let him.
    for (const std::string& path : {dir_.path(), root()}) {
      ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    }
    ASSERT_EQ(::chmod((root() + "/db.sock").c_str(), 0666), 0);
    EXPECT_EQ(::write(ready[1], "r", 1), 1);
    ::pause();
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  Join(Start([&] { EXPECT_TRUE(AskToIngest(root(), kPatience).ok()); }));
  Join(Start([&] {
    ASSERT_EQ(::seteuid(12345), 0);
    const auto answer = AskToIngest(root(), kPatience);
    EXPECT_FALSE(answer.ok()) << "closed without an answer";
  }));
  ASSERT_EQ(::kill(server, SIGKILL), 0);
  ASSERT_EQ(::waitpid(server, nullptr, 0), server);
}

TEST_F(ManyWritersTest, WhatADeadServerHasLeftIsInNobodysWay) {
  int status = 0;
  const pid_t server = Start([&] {
    WriteStep(0);
    auto archive = OpenArchive(root(), kPatience);
    const ArchiveKeeper keeper(*std::move(archive));
    ::raise(SIGKILL);
  });
  ASSERT_EQ(::waitpid(server, &status, 0), server);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_TRUE(fs::exists(root() + "/db.sock"));
  Join(Start([&] {
    WriteStep(1);
    EXPECT_EQ(AskToIngest(root(), kPatience).status().code(), Code::kNotFound);
    auto archive = OpenArchive(root(), 0);
    ASSERT_TRUE(archive.ok());
    EXPECT_TRUE(archive->owned());
    const ArchiveKeeper keeper(*std::move(archive));
    EXPECT_TRUE(AskToIngest(root(), kPatience).ok());
  }));
}

// On file systems that grant a lock on every host by itself.
TEST_F(ManyWritersTest, TheLockOfAnotherHostIsBelievedUntilItIsSilent) {
  Join(Start([&] {
    WriteStep(0);
    const std::string lock = root() + "/db.lock";
    std::ofstream(lock) << "another-host\n";
    const auto archive = OpenArchive(root(), 0);
    ASSERT_TRUE(archive.ok());
    EXPECT_FALSE(archive->owned());
    EXPECT_THAT(archive->reader->note(), HasSubstr("has the archive open"));
    EXPECT_EQ(archive->reader->List()->size(), 1u);
    const auto refused = ArchiveLock::Acquire(ArchivePaths(root()), 0);
    EXPECT_EQ(refused.status().code(), Code::kBusy);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("another-host"));

    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::minutes(11);
    fs::last_write_time(lock, long_ago);
    EXPECT_TRUE(OpenArchive(root(), 0)->owned());
    // Its own name is that of a process that was killed.
    std::ofstream(lock) << HostName() << "\n";
    EXPECT_TRUE(OpenArchive(root(), 0)->owned());
    EXPECT_EQ(fs::file_size(lock), 0u);
  }));
}

}  // namespace
}  // namespace sonde::profiles_many_writers_test
