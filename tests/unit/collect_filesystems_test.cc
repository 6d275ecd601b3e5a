// What mounted filesystems say of their space, and servers that do not answer.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "daemon/collect/filesystems/filesystem_sources.h"
#include "tests/unit/collect_tree.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_filesystems_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

constexpr Nanos kTick = kSecond;
constexpr Nanos kRound = 10 * kSecond;

std::string Named(std::string_view metric, std::string_view type, std::string_view point) {
  return fmt::format("node_filesystem_{}{{fstype=\"{}\",mountpoint=\"{}\"}}", metric, type, point);
}

// Answers in place of statvfs, at once or when it is let.
class Servers {
 public:
  struct Numbers {
    unsigned long blocks = 1000;
    unsigned long free = 600;
    unsigned long available = 500;
    unsigned long files = 100;
    unsigned long files_free = 40;
    unsigned long flags = 0;
    bool fails = false;
  };

  int Answer(const char* path, struct statvfs* result) {
    std::unique_lock lock(mutex_);
    ++asked_[path];
    changed_.notify_all();
    changed_.wait(lock, [&] { return held_.count(path) == 0; });
    const Numbers& numbers = numbers_[path];
    if (numbers.fails) return -1;
    *result = {};
    result->f_bsize = 1 << 20;
    result->f_frsize = 4096;
    result->f_blocks = numbers.blocks;
    result->f_bfree = numbers.free;
    result->f_bavail = numbers.available;
    result->f_files = numbers.files;
    result->f_ffree = numbers.files_free;
    result->f_flag = numbers.flags;
    return 0;
  }
  void Set(const std::string& path, const Numbers& numbers) {
    const std::lock_guard lock(mutex_);
    numbers_[path] = numbers;
  }
  void Hold(const std::string& path) {
    const std::lock_guard lock(mutex_);
    held_.insert(path);
  }
  void Release(const std::string& path) {
    const std::lock_guard lock(mutex_);
    held_.erase(path);
    changed_.notify_all();
  }
  int Asked(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return asked_[path];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Numbers> numbers_;
  std::map<std::string, int> asked_;
  std::set<std::string> held_;
};

class Filesystems : public testing::Test {
 protected:
  ~Filesystems() override {
    for (const char* point : {"/home", "/scratch", "/third"}) servers_->Release(point);
    source_.reset();
    while (servers_.use_count() > 1) std::this_thread::yield();  // helpers
  }
  void Mount(std::string_view mountinfo) const { tree_.Write("proc/self/mountinfo", mountinfo); }
  void MountRemote() const {
    Mount(
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "31 27 0:28 / /home rw - nfs4 server:/home rw,vers=4.2\n"
        "32 27 0:29 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw\n"
        "33 27 0:30 / /third rw - nfs other:/ rw\n");
  }
  std::unique_ptr<Source> Make(const std::string& allowed = "lustre") {
    return MakeSpaceSource(tree_.roots(), allowed, buffer_,
                           [servers = servers_](const char* path, struct statvfs* result) {
                             return servers->Answer(path, result);
                           });
  }
  void Sample(Nanos after = kTick) { source_->Sample(now_ += after); }
  // Samples at the same time until what helpers have to say is there.
  template <typename Condition>
  void SampleUntil(Condition condition) {
    while (!condition()) {
      std::this_thread::yield();
      source_->Sample(now_);
    }
  }
  // A helper that just holds the mutex may be in the way of the first try.
  void AwaitAsked(const std::string& point, int times) {
    SampleUntil([&] { return servers_->Asked(point) >= times; });
  }
  double Get(std::string_view metric, std::string_view type, std::string_view point) const {
    return Value(*source_, Named(metric, type, point));
  }
  bool Known(std::string_view type, std::string_view point) const {
    return !std::isnan(Get("size_bytes", type, point));
  }

  Tree tree_;
  ReadBuffer buffer_;
  std::shared_ptr<Servers> servers_ = std::make_shared<Servers>();
  std::unique_ptr<Source> source_ = Make();
  Nanos now_ = 1'700'000'000 * kSecond;
};

TEST_F(Filesystems, ALocalOneIsKnownAtOnce) {
  Mount("27 1 254:0 / / rw - ext4 /dev/vda rw\n");
  servers_->Set("/", {.flags = ST_RDONLY | ST_NOSUID});
  Sample();
  EXPECT_EQ(Get("size_bytes", "ext4", "/"), 4096.0 * 1000);
  EXPECT_EQ(Get("free_bytes", "ext4", "/"), 4096.0 * 600);
  EXPECT_EQ(Get("avail_bytes", "ext4", "/"), 4096.0 * 500);
  EXPECT_EQ(Get("files", "ext4", "/"), 100);
  EXPECT_EQ(Get("files_free", "ext4", "/"), 40);
  EXPECT_EQ(Get("readonly", "ext4", "/"), 1);
  EXPECT_EQ(source_->series().size(), 6u);
  EXPECT_THAT(source_->TakeNotes(), IsEmpty());
}

TEST_F(Filesystems, WhatAFilesystemDoesNotCountIsMissing) {
  Mount("1 0 0:5 / /b rw - btrfs /dev/sda rw\n2 0 0:6 / /gone rw - tmpfs tmpfs rw\n");
  servers_->Set("/b", {.files = 0, .files_free = 0});
  servers_->Set("/gone", {.fails = true});
  Sample();
  EXPECT_EQ(Get("readonly", "btrfs", "/b"), 0);
  EXPECT_THAT(Get("files", "btrfs", "/b"), IsNan());
  EXPECT_THAT(Get("files_free", "btrfs", "/b"), IsNan());
  EXPECT_THAT(Get("size_bytes", "tmpfs", "/gone"), IsNan());
  EXPECT_THAT(Get("readonly", "tmpfs", "/gone"), IsNan());
  servers_->Set("/gone", {.blocks = 0});
  Sample(kRound);
  EXPECT_THAT(Get("size_bytes", "tmpfs", "/gone"), IsNan());
  EXPECT_EQ(Get("readonly", "tmpfs", "/gone"), 0);
}

TEST_F(Filesystems, TheyAreAskedEveryTenSeconds) {
  Mount("27 1 254:0 / / rw - ext4 /dev/vda rw\n31 27 0:28 / /home rw - nfs4 server:/home rw\n");
  for (int tick = 0; tick < 25; ++tick) {
    const auto round = static_cast<unsigned long>(tick / 10);
    servers_->Set("/home", {.available = round});
    Sample();
    SampleUntil([&] { return Get("avail_bytes", "nfs4", "/home") == 4096.0 * round; });
  }
  EXPECT_EQ(servers_->Asked("/"), 3);
  EXPECT_EQ(servers_->Asked("/home"), 3);
}

TEST_F(Filesystems, MountsComeAndGo) {
  Mount("27 1 254:0 / / rw - ext4 /dev/vda rw\n");
  Sample();
  const uint32_t generation = source_->generation();
  Sample(kRound);
  EXPECT_EQ(source_->generation(), generation);
  Mount("27 1 254:0 / / rw - ext4 /dev/vda rw\n28 27 0:40 / /tmp rw - tmpfs tmpfs rw\n");
  Sample();
  EXPECT_EQ(source_->series().size(), 6u) << "looked for too often";
  Sample(kRound);
  EXPECT_TRUE(Known("tmpfs", "/tmp"));
  EXPECT_EQ(source_->series().size(), 12u);
  Mount("28 27 0:40 / /tmp rw - tmpfs tmpfs rw\n");
  Sample(kRound);
  EXPECT_EQ(source_->series().size(), 6u);
  EXPECT_TRUE(Known("tmpfs", "/tmp"));
}

TEST_F(Filesystems, WithoutATableThereIsNothing) {
  for (int i = 0; i < 3; ++i) Sample(kRound);
  EXPECT_TRUE(source_->series().empty());
  EXPECT_EQ(source_->generation(), 0u);
  Mount("27 1 254:0 / / rw - ext4 /dev/vda rw\n");
  Sample(kRound);
  EXPECT_TRUE(Known("ext4", "/"));
}

TEST_F(Filesystems, TheFirstThirtyTwoAreRecordedAndOneNoteSaysSo) {
  std::string table;
  for (int i = 0; i < 40; ++i) table += fmt::format("{0} 1 8:{0} / /d{0} rw - xfs /dev/x rw\n", i);
  Mount(table);
  Sample();
  EXPECT_EQ(source_->series().size(), 32u * 6);
  EXPECT_THAT(source_->TakeNotes(), ElementsAre("filesystems: only 32 of 40 are recorded"));
  Mount(table + "41 1 8:41 / /d41 rw - xfs /dev/x rw\n");
  Sample(kRound);
  EXPECT_THAT(source_->TakeNotes(), IsEmpty());
}

TEST_F(Filesystems, PathsThatCanBeNoTagAreLeftOut) {
  Mount(
      fmt::format("1 0 8:1 / /{} rw - xfs /dev/a rw\n2 0 8:2 / /a\\011b rw - xfs /dev/b rw\n"
                  "3 0 8:3 / /good rw - xfs /dev/c rw\n",
                  std::string(200, 'x')));
  Sample();
  EXPECT_EQ(source_->series().size(), 6u);
  EXPECT_TRUE(Known("xfs", "/good"));
}

TEST_F(Filesystems, ARemoteOneIsKnownWhenItHasAnswered) {
  MountRemote();
  Sample();
  SampleUntil([&] {
    return Known("nfs4", "/home") && Known("lustre", "/scratch") && Known("nfs", "/third");
  });
  EXPECT_EQ(Get("avail_bytes", "nfs4", "/home"), 4096.0 * 500);
  servers_->Set("/home", {.available = 7});
  Sample(kRound);
  SampleUntil([&] { return Get("avail_bytes", "nfs4", "/home") == 7 * 4096.0; });
  EXPECT_THAT(source_->TakeNotes(), IsEmpty());
}

TEST_F(Filesystems, OneThatMayHoldUpTheEndIsNeverAskedAndOneNoteSaysSo) {
  source_ = Make("");
  MountRemote();
  Sample();
  SampleUntil([&] { return Known("nfs4", "/home") && Known("nfs", "/third"); });
  EXPECT_EQ(servers_->Asked("/scratch"), 0);
  EXPECT_FALSE(Has(*source_, Named("size_bytes", "lustre", "/scratch")));
  EXPECT_THAT(
      source_->TakeNotes(),
      ElementsAre("the space of /scratch (lustre) is not recorded: a daemon that hangs there "
                  "cannot be killed, and Slurm would drain the node (ask_filesystems in "
                  "sonde.conf)"));
  Mount("27 1 254:0 / / rw - ext4 /dev/vda rw\n");
  Sample(kRound);
  MountRemote();
  Sample(kRound);
  EXPECT_THAT(source_->TakeNotes(), IsEmpty()) << "named before";
}

TEST_F(Filesystems, ASiteThatWantsNoneAskedIsToldNothing) {
  source_ = Make("none");
  MountRemote();
  Sample();
  SampleUntil([&] { return Known("nfs4", "/home") && Known("nfs", "/third"); });
  EXPECT_EQ(servers_->Asked("/scratch"), 0);
  EXPECT_THAT(source_->TakeNotes(), IsEmpty());
}

TEST_F(Filesystems, ANoteNamesTheFirstEightThatAreNotAsked) {
  std::string table = "1 0 0:1 / /f rw - fuse.x x rw\n2 1 0:2 / /f/tmp rw - tmpfs tmpfs rw\n";
  for (int i = 3; i < 12; ++i) table += fmt::format("{0} 0 0:{0} / /g{0} rw - gpfs x rw\n", i);
  Mount(table);
  Sample();
  EXPECT_THAT(
      source_->TakeNotes(),
      ElementsAre(AllOf(HasSubstr("of /f (fuse.x), /f/tmp (tmpfs below fuse.x), /g3 (gpfs), "),
                        HasSubstr("/g8 (gpfs) and 3 others is not recorded"))));
  EXPECT_TRUE(source_->series().empty());
}

TEST_F(Filesystems, AServerThatHangsHoldsUpNobody) {
  MountRemote();
  servers_->Hold("/home");
  Sample();
  EXPECT_EQ(Get("size_bytes", "ext4", "/"), 4096.0 * 1000);
  AwaitAsked("/home", 1);
  Sample(2 * kTick);  // another helper takes over
  SampleUntil([&] { return Known("lustre", "/scratch") && Known("nfs", "/third"); });
  EXPECT_FALSE(Known("nfs4", "/home"));
  EXPECT_THAT(source_->TakeNotes(), IsEmpty()) << "too early";
  Sample(kTick);
  EXPECT_THAT(source_->TakeNotes(),
              ElementsAre("filesystem /home (nfs4) does not answer since " +
                          FormatTime(now_ - 3 * kTick) + "; its space is missing"));
  for (int i = 0; i < 5; ++i) {
    for (const char* point : {"/scratch", "/third"}) {
      servers_->Set(point, {.available = static_cast<unsigned long>(i)});
    }
    Sample(kRound);
    SampleUntil([&] {
      return Get("avail_bytes", "lustre", "/scratch") == i * 4096.0 &&
             Get("avail_bytes", "nfs", "/third") == i * 4096.0;
    });
  }
  EXPECT_EQ(servers_->Asked("/home"), 1) << "asked while it does not answer";
  EXPECT_THAT(source_->TakeNotes(), IsEmpty());
  servers_->Release("/home");
  SampleUntil([&] { return Known("nfs4", "/home"); });
  EXPECT_THAT(source_->TakeNotes(), ElementsAre(HasSubstr("answers again")));
}

TEST_F(Filesystems, WithALongPeriodOnlyTheServerThatHangsIsBlamed) {
  MountRemote();
  servers_->Hold("/home");
  Sample();
  AwaitAsked("/home", 1);
  Sample(60 * kSecond);
  EXPECT_THAT(source_->TakeNotes(), ElementsAre(HasSubstr("filesystem /home (nfs4) does not")));
  SampleUntil([&] { return Known("lustre", "/scratch") && Known("nfs", "/third"); });
  Sample(60 * kSecond);
  EXPECT_TRUE(Known("lustre", "/scratch"));
  EXPECT_THAT(source_->TakeNotes(), IsEmpty());
}

TEST_F(Filesystems, WhatWasKnownIsMissingWhileTheServerHangs) {
  MountRemote();
  Sample();
  SampleUntil([&] { return Known("nfs4", "/home"); });
  servers_->Hold("/home");
  Sample(kRound);
  AwaitAsked("/home", 2);
  Sample(kTick);
  EXPECT_TRUE(Known("nfs4", "/home")) << "a second is no silence";
  Sample(2 * kTick);
  EXPECT_FALSE(Known("nfs4", "/home"));
  EXPECT_THAT(Get("readonly", "nfs4", "/home"), IsNan());
}

TEST_F(Filesystems, AServerThatComesAndGoesIsNotNotedForEver) {
  Mount("31 27 0:28 / /home rw - nfs4 server:/home rw\n");
  for (int i = 0; i < 6; ++i) {
    servers_->Hold("/home");
    Sample(kRound);
    AwaitAsked("/home", i + 1);
    Sample(4 * kTick);
    servers_->Release("/home");
    SampleUntil([&] { return Known("nfs4", "/home"); });
  }
  EXPECT_EQ(source_->TakeNotes().size(), 4u);
}

TEST_F(Filesystems, AMountThatHangsMayBeTakenAwayAndComeBack) {
  MountRemote();
  servers_->Hold("/home");
  Sample();
  AwaitAsked("/home", 1);
  Mount("27 1 254:0 / / rw - ext4 /dev/vda rw\n33 27 0:30 / /third rw - nfs other:/ rw\n");
  Sample(kRound);
  SampleUntil([&] { return Known("nfs", "/third"); });
  EXPECT_FALSE(Has(*source_, Named("size_bytes", "nfs4", "/home")));
  servers_->Release("/home");
  MountRemote();
  Sample(kRound);
  SampleUntil([&] { return Known("nfs4", "/home"); });
}

TEST_F(Filesystems, TheEndDoesNotWaitForAServer) {
  MountRemote();
  servers_->Hold("/home");
  Sample();
  AwaitAsked("/home", 1);
  source_.reset();
  EXPECT_GT(servers_.use_count(), 1) << "the helper has what it needs";
  servers_->Release("/home");
  while (servers_.use_count() > 1) std::this_thread::yield();
}

TEST_F(Filesystems, AProcessExitsWhileAServerHangs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  MountRemote();
  EXPECT_EXIT(
      {
        servers_->Hold("/home");
        Sample();
        AwaitAsked("/home", 1);
        tree_.Remove("");  // this process's own, which nobody else takes away
        std::exit(7);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(Filesystems, AWarmTickAllocatesNothing) {
  MountRemote();
  Sample();
  SampleUntil([&] { return Known("nfs4", "/home") && Known("nfs", "/third"); });
  size_t allocated = 0;
  for (int tick = 1; tick <= 40; ++tick) {
    const auto round = static_cast<unsigned long>(tick / 10);
    servers_->Set("/third", {.available = round});
    const size_t before = allocations;
    Sample();
    allocated += allocations - before;
    if (tick % 10 == 0) {
      SampleUntil([&] { return Get("avail_bytes", "nfs", "/third") == 4096.0 * round; });
    }
  }
  EXPECT_EQ(allocated, 0u);
}

TEST(FilesystemsLive, ThisMachinesRootHasTheSizeItSays) {
  ReadBuffer buffer;
  const auto source = MakeSpaceSource(Roots(), "", buffer);
  source->Sample(kSecond);
  struct statvfs root {};
  ASSERT_EQ(statvfs("/", &root), 0);
  for (size_t i = 0; i < source->series().size(); ++i) {
    const Series& series = source->series()[i];
    if (series.metric.name != "node_filesystem_size_bytes") continue;
    if (*series.tags.Find("mountpoint") != "/" || std::isnan(source->values()[i])) continue;
    EXPECT_EQ(source->values()[i],
              static_cast<double>(root.f_blocks) * static_cast<double>(root.f_frsize));
  }
}

}  // namespace
}  // namespace sonde::collect::collect_filesystems_test
