// What a LevelDB handle that stops at a failure remembers, and what it leaves behind
// (writable_db.h). Each is opened in a child: a process that has used LevelDB must not fork and go
// on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "profiles/disk/writable_db.h"
#include "tests/unit/broken_disk.h"
#include "tests/unit/in_child.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_writable_db_test {
namespace {

using broken_disk::Fault;
namespace fs = std::filesystem;

constexpr size_t kLog = size_t{64} << 10;
constexpr size_t kTable = size_t{1} << 20;

class WritableDbTest : public testing::Test {
 protected:
  Result<std::unique_ptr<WritableDb>> TryOpen(const std::string& path) const {
    leveldb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = kLog;
    options.max_file_size = kTable;
    options.compression = leveldb::kNoCompression;
    options.info_log = NullLogger();
    return WritableDb::Open(options, path, std::make_unique<WriterEnv>(dir_.path() + "/lock"));
  }
  std::unique_ptr<WritableDb> Open(const std::string& path) const {
    auto db = TryOpen(path);
    EXPECT_TRUE(db.ok()) << db.status().message();
    return db.ok() ? *std::move(db) : nullptr;
  }
  std::string path() const { return dir_.path() + "/db"; }
  // Those with a higher number.
  std::vector<fs::path> TablesBehind(uint64_t number) const {
    std::vector<fs::path> tables;
    for (const auto& file : fs::directory_iterator(path())) {
      const bool table = file.path().extension() == ".ldb";
      if (table && NumberOf(file.path()) > number) tables.push_back(file.path());
    }
    return tables;
  }
  static uint64_t NumberOf(const fs::path& table) { return std::stoull(table.stem().string()); }
  // Tables of random values, as few and full as LevelDB makes them; their highest number.
  uint64_t Fill(WritableDb& db) const {
    std::mt19937_64 random(1);
    for (int i = 0; i < 24; ++i) {
      std::string value(kTable / 10, '\0');
      for (char& c : value) c = static_cast<char>(random());
      EXPECT_TRUE(db.Put({}, std::to_string(random()), value).ok());
    }
    db.CompactRange(nullptr, nullptr);
    uint64_t newest = 0;
    for (const fs::path& table : TablesBehind(0)) newest = std::max(newest, NumberOf(table));
    return newest;
  }

  TempDir dir_{TempDir::Memory()};
};

// A log is full when the batch that follows would begin: it is by one batch longer.
TEST_F(WritableDbTest, WhatTwoLogsCanHoldIsRemembered) {
  EXPECT_EQ(InChild([&] {
              const auto db = Open(path());
              const std::string large(10 * kLog, 'x');
              for (const char* name : {"a", "b"}) {
                ASSERT_TRUE(db->Put({}, name, "small").ok());
                ASSERT_TRUE(db->Put({}, name + std::string("_large"), large).ok());
              }
              const auto empty = Open(dir_.path() + "/empty");
              EXPECT_THAT(std::string(db->TakeWritten().FindIn(*empty).message()),
                          testing::HasSubstr("4 of 4"));
            }),
            0);
}

// On a full disk there would be no room to open the database again, and to delete them. Where it is
// the manifest that could not be written, which may name them, they stay.
TEST_F(WritableDbTest, WhatACompactionHasHalfMadeIsDeleted) {
  struct Told {
    std::atomic<uint64_t> changes = 0;
    std::atomic<bool> stayed = false;
  };
  int stayed = 0;
  uint64_t n = 1;
  for (bool failed = true; failed; ++n) {
    SharedWithChild<Told> told;
    EXPECT_EQ(InChild([&] {
                fs::remove_all(path());
                auto db = Open(path());
                const uint64_t newest = Fill(*db);
                // Across all tables, so that these are made anew.
                for (const char* key : {"0", "9"}) ASSERT_TRUE(db->Put({}, key, "x").ok());
                broken_disk::Arm(path(), {.fault = Fault::kFull, .at = n, .error = ENOSPC});
                db->CompactRange(nullptr, nullptr);
                told->changes = broken_disk::Changes();
                db.reset();
                broken_disk::Repair();
                const std::vector<fs::path> made = TablesBehind(newest);
                // LevelDB deletes what its manifest does not name.
                ASSERT_NE(Open(path()), nullptr);
                told->stayed = !std::all_of(made.begin(), made.end(), [](const fs::path& table) {
                  return fs::exists(table);
                });
              }),
              0)
        << n;
    if (HasFailure()) return;
    failed = told->changes >= n;
    stayed += told->stayed ? 1 : 0;
  }
  EXPECT_GT(n, 20u);
  EXPECT_LE(stayed, 2) << "its write and its sync";
}

// An opening makes another manifest and deletes the one before, which CURRENT named.
class OpeningTest : public WritableDbTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(InChild([&] {
                leveldb::WriteOptions synced;
                synced.sync = true;
                fs::create_directory(root());
                ASSERT_TRUE(Open(path())->Put(synced, "key", "value").ok());
              }),
              0);
    fs::rename(path(), dir_.path() + "/before");
  }
  std::string root() const { return dir_.path() + "/root"; }
  std::string path() const { return root() + "/db"; }
  // The opening with a fault; how many changes it made.
  uint64_t OpeningBreaks(const broken_disk::Plan& plan, const std::function<void()>& then) const {
    fs::remove_all(path());
    fs::copy(dir_.path() + "/before", path());
    SharedWithChild<std::atomic<uint64_t>> changes;
    const int status = InChild([&] {
      broken_disk::Arm(root(), plan);
      static_cast<void>(TryOpen(path()));
      *changes = broken_disk::Changes();
      broken_disk::Repair();
      then();
    });
    EXPECT_TRUE(WasKilled(status) || status == 0) << "change " << plan.at;
    return WasKilled(status) ? plan.at : changes->load();
  }
  void ExpectWhole() const {
    const auto db = Open(path());
    std::string value;
    ASSERT_NE(db, nullptr);
    EXPECT_TRUE(db->Get({}, "key", &value).ok());
    EXPECT_EQ(value, "value");
  }
};

TEST_F(OpeningTest, APowerCutAtAnyChangeLeavesADatabase) {
  uint64_t n = 1;
  while (n <= OpeningBreaks({.fault = Fault::kPower, .at = n}, [] {})) {
    ASSERT_EQ(InChild([&] { ExpectWhole(); }), 0) << "change " << n;
    ++n;
  }
  EXPECT_GT(n, 8u);
}

// Also where only the answer is wrong: LevelDB then deletes the manifest that CURRENT names.
TEST_F(OpeningTest, AnyChangeThatFailsLeavesADatabase) {
  uint64_t n = 1;
  const auto whole = [&] { ExpectWhole(); };
  while (n <= OpeningBreaks({.fault = Fault::kOnce, .at = n, .error = EIO}, whole)) {
    ASSERT_FALSE(HasFailure()) << "change " << n;
    ++n;
  }
  EXPECT_GT(n, 8u);
}

}  // namespace
}  // namespace sonde::profiles_writable_db_test
