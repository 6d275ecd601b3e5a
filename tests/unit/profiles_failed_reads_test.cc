// A read that fails says nothing of what is there: too few descriptors are left, or the disk or the
// network behind it has an error. Nothing is taken for absent or damaged for that, and nothing is
// changed by it.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/archive/owned_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/live/live_steps.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/repair.h"
#include "series/block/joined.h"
#include "tests/unit/profiles_days.h"

namespace {

// Files with this in their paths cannot be read; "": all can.
std::string unreadable;  // NOLINT(cert-err58-cpp)
int why = 0;
// Of files with this in their paths it cannot be told whether they are there; "": of all it can.
std::string unseen;  // NOLINT(cert-err58-cpp)
// Of files with this in their paths zeros are read in place of what is there; "": of none.
std::string zeros;  // NOLINT(cert-err58-cpp)
std::atomic<bool> full{false};

// What is opened below an open directory, by the directory's name.
std::string Resolved(const std::string& path) {
  constexpr std::string_view kOpen = "/proc/self/fd/";
  const size_t slash = path.find('/', kOpen.size());
  if (!path.starts_with(kOpen) || slash == std::string::npos) return path;
  char directory[PATH_MAX];
  const ssize_t n = ::readlink(path.substr(0, slash).c_str(), directory, sizeof directory);
  return std::string(directory, n > 0 ? static_cast<size_t>(n) : 0) + path.substr(slash);
}

bool Fails(const std::string& path) {
  if (unreadable.empty() || Resolved(path).find(unreadable) == std::string::npos) return false;
  errno = why;
  return true;
}

// Of a file that is open.
ssize_t ReadAt(int fd, void* data, size_t size, off_t at) {
  const ssize_t read = ::syscall(SYS_pread64, fd, data, size, at);
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = zeros.empty() ? 0 : ::readlink(link.c_str(), path, sizeof path);
  const bool changed =
      n > 0 && std::string_view(path, static_cast<size_t>(n)).find(zeros) != std::string::npos;
  if (changed && read > 0) std::memset(data, 0, static_cast<size_t>(read));
  return read;
}

bool IsUnseen(const std::string& path) {
  if (unseen.empty() || Resolved(path).find(unseen) == std::string::npos) return false;
  errno = EIO;
  return true;
}

int Open(const char* path, int flags, mode_t mode) {
  if ((flags & O_ACCMODE) == O_RDONLY && Fails(path)) return -1;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

}  // namespace

// These stand before the C library's, for LevelDB too.
#pragma GCC visibility push(default)
extern "C" {
// NOLINTBEGIN(cert-dcl50-cpp, readability-inconsistent-declaration-parameter-name)
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return Open(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return Open(path, flags, mode);
}
DIR* opendir(const char* path) {
  static const auto real = reinterpret_cast<DIR* (*)(const char*)>(::dlsym(RTLD_NEXT, "opendir"));
  return Fails(std::string(path) + "/") ? nullptr : real(path);
}
// Only an error of the disk or the network fails these.
int access(const char* path, int mode) noexcept {
  if (IsUnseen(path)) return -1;
  return static_cast<int>(::syscall(SYS_faccessat, AT_FDCWD, path, mode));
}
int lstat(const char* path, struct stat* info) noexcept {
  if (IsUnseen(path)) return -1;
  return static_cast<int>(::syscall(SYS_lstat, path, info));
}
ssize_t pread(int fd, void* data, size_t size, off_t at) { return ReadAt(fd, data, size, at); }
ssize_t pread64(int fd, void* data, size_t size, off64_t at) { return ReadAt(fd, data, size, at); }
ssize_t write(int fd, const void* data, size_t size) {
  if (!full) return ::syscall(SYS_write, fd, data, size);
  errno = ENOSPC;
  return -1;
}
// NOLINTEND(cert-dcl50-cpp, readability-inconsistent-declaration-parameter-name)
}
#pragma GCC visibility pop

namespace sonde {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr Nanos kForever = std::numeric_limits<Nanos>::max();

class FailedReadsTest : public DaysTest {
 protected:
  void TearDown() override {
    unreadable = "";
    unseen = "";
    zeros = "";
  }
  // Calls `f` while files cannot be read, with each error.
  static void Without(const std::string& files, const std::function<void()>& f) {
    for (const int error : {EMFILE, EIO}) {
      why = error;
      unreadable = files;
      f();
      unreadable = "";
      ASSERT_FALSE(HasFailure()) << files << ": " << std::strerror(error);
    }
  }
  static constexpr int kDays = 3;
  void FinishSteps() const {
    for (int day = 0; day < kDays; ++day) FinishStep(Job(day));
  }
  void ExpectAll() const {
    const OpenedArchive archive = Open();
    const auto list = archive.reader->List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    ASSERT_EQ(list->size(), size_t{kDays});
    for (const ProfileEntry& entry : *list) {
      EXPECT_EQ(entry.job.state, EndState::kCompleted);
      EXPECT_THAT(entry.job.notes, IsEmpty());
      EXPECT_EQ(Points(*archive.reader, entry.key), 6u);
    }
    EXPECT_THAT(NamesIn(root() + "/live"), IsEmpty());
    EXPECT_FALSE(fs::exists(root() + "/db.damaged-1"));
    ExpectSound();
  }
  static size_t Points(const Archive& archive, const std::string& key) {
    const auto gauges = [](const Series& s) { return s.metric.type == MetricType::kGauge; };
    const auto read = archive.Read(key, SeriesScope::kNodes, gauges, 0, kForever);
    EXPECT_TRUE(read.ok()) << read.status().message();
    size_t points = 0;
    for (const SeriesData& series : *read) points += series.points.size();
    return points;
  }
};

TEST_F(FailedReadsTest, ARepairTakesThemForNoDamage) {
  FinishSteps();
  for (int i = 0; i < 2; ++i) ExpectAll();  // the second time from a table
  for (const char* files : {".ldb", "/db/0", "/db/MANIFEST", "/db/CURRENT", "/db/"}) {
    Without(files, [&] {
      const auto repaired = RepairArchive(root(), kPatience, nullptr);
      EXPECT_FALSE(repaired.ok()) << RepairToJson(*repaired);
    });
    ASSERT_NO_FATAL_FAILURE(ExpectAll()) << files;
  }
}

TEST_F(FailedReadsTest, NoStepIsTakenInWithoutWhatCouldNotBeRead) {
  FinishSteps();
  for (const char* files :
       {"/blocks/0", "/blocks/MANIFEST", "/blocks/CURRENT", "/blocks/", "/live/"}) {
    Without(files, [&] { static_cast<void>(OpenArchive(root(), kPatience)); });
    EXPECT_EQ(NamesIn(root() + "/live").size(), size_t{kDays}) << files;
  }
  ExpectAll();
}

TEST_F(FailedReadsTest, ARunningStepIsNotTakenForAbandoned) {
  auto live = *LiveArchive::Create(root(), TestJob());
  ASSERT_TRUE(PutNodeBlock(*live, 0, 1, 0, 3).ok());
  const std::string path = live->path();
  Without("/lock", [&] {
    static_cast<void>(OpenArchive(root(), kPatience));
    EXPECT_TRUE(fs::exists(path));
  });
  ASSERT_TRUE(PutNodeBlock(*live, 0, 2, 3, 3).ok());
  EXPECT_EQ(live->path(), path);
}

TEST_F(FailedReadsTest, AnArchiveIsNotEmptyForThem) {
  FinishSteps();
  ExpectAll();
  for (const char* files : {"/db/CURRENT", "/db/MANIFEST", "/live/"}) {
    Without(files, [&] {
      const auto archive = OpenArchive(root(), 0, nullptr, ArchiveUse::kReading);
      if (!archive.ok()) return;
      const auto list = archive->reader->List();
      EXPECT_TRUE(!list.ok() || list->size() == size_t{kDays});
    });
  }
}

// Where there seems to be no CURRENT LevelDB makes a new database in place of the one that is
// there.
TEST_F(FailedReadsTest, NoNewDatabaseIsMadeInPlaceOfOneThatCouldNotBeSeen) {
  FinishSteps();
  ExpectAll();
  unseen = "/db/CURRENT";
  EXPECT_FALSE(OpenArchive(root(), kPatience)->owned());
  unseen = "";
  ExpectAll();
}

// Only LevelDB could tell then, and that changes a database when it opens it.
TEST_F(FailedReadsTest, AnArchiveThatMayBeANewerOnesIsNotOpened) {
  FinishSteps();
  ExpectAll();
  const ArchivePaths archive(root());
  fs::remove_all(archive.db());
  ASSERT_TRUE(WriteFileAtomically(archive.db_format(), "sonde archive 99").ok());
  Without("/db.format", [&] {
    const Status checked = CheckArchiveFormat(archive);
    EXPECT_THAT(checked.message(), HasSubstr("db.format"));
    static_cast<void>(OpenArchive(root(), kPatience));
    EXPECT_FALSE(fs::exists(archive.db()));
  });
  EXPECT_EQ(CheckArchiveFormat(archive).code(), Code::kUnsupported);
}

// The database itself says whose it is.
TEST_F(FailedReadsTest, AnArchiveOfOursIsOpenedWithoutTheFileThatSaysSo) {
  FinishSteps();
  ExpectAll();
  why = EIO;
  unreadable = "/db.format";
  EXPECT_TRUE(CheckArchiveFormat(ArchivePaths(root())).ok());
  ExpectAll();
}

TEST_F(FailedReadsTest, TheStateOfAHeadIsNotTakenForNone) {
  auto live = *LiveArchive::Create(root(), TestJob());
  EXPECT_EQ(ReadHeritage(root(), TestJob())->state.status().code(), Code::kNotFound);
  ASSERT_TRUE(live->PutState("it had counted").ok());
  Without("/state", [&] {
    const auto heritage = ReadHeritage(root(), TestJob());
    ASSERT_TRUE(heritage.ok()) << heritage.status().message();
    EXPECT_FALSE(heritage->state.ok());
    EXPECT_NE(heritage->state.status().code(), Code::kNotFound);
  });
  EXPECT_EQ(*ReadHeritage(root(), TestJob())->state, "it had counted");
}

// LevelDB would pass over the log that it cannot read, and delete it.
TEST_F(FailedReadsTest, AWriterThatOpensItsStepAgainLosesNothing) {
  auto live = *LiveArchive::Create(root(), TestJob());
  ASSERT_TRUE(PutNodeBlock(*live, 0, 1, 0, 3).ok());
  Without("/blocks/0", [&] {
    full = true;
    EXPECT_FALSE(PutNodeBlock(*live, 0, 2, 3, 3).ok());
    full = false;
    EXPECT_FALSE(PutNodeBlock(*live, 0, 2, 3, 3).ok());
  });
  ASSERT_TRUE(PutNodeBlock(*live, 0, 2, 3, 3).ok());
  live.reset();
  const OpenedArchive archive = Open();
  EXPECT_EQ(Points(*archive.reader, archive.reader->List()->at(0).key), 6u);
}

// Their schema is written with the first of them, and read for that: here other bytes come once
// from the disk, which LevelDB itself sees, and no call fails.
TEST_F(FailedReadsTest, JoinedBlocksHaveTheirSchemaWhenTheyComeAgain) {
  auto live = *LiveArchive::Create(root(), TestJob());
  ASSERT_TRUE(PutNodeBlock(*live, 0, 1, 0, 3).ok());
  // Opened again, the database has the schema in a table.
  full = true;
  EXPECT_FALSE(PutNodeBlock(*live, 0, 2, 3, 3).ok());
  full = false;
  ASSERT_TRUE(PutNodeBlock(*live, 0, 2, 3, 3).ok());

  const auto schema = Schema::Make(TaskSeries());
  std::vector<JoinedEntry> entries;
  std::vector<std::string> blocks;
  for (const uint32_t node : {0u, 1u}) {
    entries.push_back({.node = node, .group = "task", .sequence = 3, .first = 3});
    blocks.push_back(MakeBlock(*schema, TestTimes(6, 1), {TestCpu(7, node), TestMemory(node)}));
  }
  BlockEncoder encoder;
  const std::vector<std::string_view> views(blocks.begin(), blocks.end());
  const std::string joined = *JoinBlocks(entries, views, encoder);
  const auto put = [&] {
    LiveArchive::BlockWrite write;
    write.schema_id = schema->id();
    write.block = joined;
    write.joined = true;
    live->ReplaceBlocks({&write, 1});
    return write.status;
  };
  zeros = ".ldb";
  EXPECT_EQ(put().code(), Code::kCorrupt);
  zeros = "";
  const Status again = put();
  ASSERT_TRUE(again.ok()) << again.message();
  live.reset();
  const OpenedArchive archive = Open();
  EXPECT_EQ(Points(*archive.reader, archive.reader->List()->at(0).key), 8u);
  ExpectSound();
}

}  // namespace
}  // namespace sonde
