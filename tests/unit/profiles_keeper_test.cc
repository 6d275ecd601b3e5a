// What a server that has an archive open does for the commands that find it so.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leveldb/db.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/descriptor_message.h"
#include "profiles/archive/ask_keeper.h"
#include "profiles/archive/keeper.h"
#include "profiles/archive/keeper_socket.h"
#include "profiles/archive/open_archive.h"
#include "profiles/disk/lock_holder.h"
#include "profiles/records/keys.h"
#include "profiles/records/profile_file.h"
#include "profiles/upkeep/lock.h"
#include "tests/unit/profiles_days.h"

namespace sonde::profiles_keeper_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// An archive with the jobs d2, d1 and d0, kept by a server.
class KeeperTest : public DaysTest {
 protected:
  void SetUp() override {
    for (int day = 0; day < 3; ++day) FinishStep(Job(day));
    Keep();
  }
  void TearDown() override {
    keeper_.reset();
    ExpectSound();
  }
  void Keep(const Retention& limits = {}) {
    OpenedArchive opened = Open();
    ASSERT_TRUE(opened.owned()) << opened.reader->note();
    archive_ = opened.reader;
    owner_ = opened.owner.get();
    keeper_ = std::make_unique<ArchiveKeeper>(std::move(opened), limits);
  }

  // A file with the profile of the job d7, of another archive.
  std::string FileOfAnother() const {
    const std::string other = dir_.path() + "/other";
    FinishStep(other, Job(7));
    const auto archive = OpenArchive(other, kPatience);
    const std::string path = dir_.path() + "/d7.sonde";
    std::ofstream file(path, std::ios::binary);
    ProfileFileWriter writer([&](std::string_view bytes) {
      file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      return Status();
    });
    const auto read = archive->reader->ReadRecords(
        archive->reader->List()->at(0).key,
        [&](const FileRecord& record) { return writer.Write(record); });
    EXPECT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(writer.End().ok());
    return path;
  }
  std::vector<std::string> Jobs() const { return DaysTest::Jobs(*archive_); }
  UniqueFd Connect() const {
    UniqueFd socket = keeper::MakeSocket();
    UniqueFd directory;
    const auto address = keeper::AddressOf(root(), directory);
    const auto* where = reinterpret_cast<const sockaddr*>(&*address);
    EXPECT_EQ(::connect(socket.get(), where, sizeof(*address)), 0);
    return socket;
  }
  // What is answered to a question that no command asks.
  std::string AnswerTo(std::string_view question) const {
    const UniqueFd socket = Connect();
    EXPECT_TRUE(keeper::SendAll(socket.get(), question));
    ::shutdown(socket.get(), SHUT_WR);
    return keeper::LineReader(socket.get()).Next(keeper::kMaxAnswer);
  }

  std::shared_ptr<const Archive> archive_;
  OwnedArchive* owner_ = nullptr;  // the keeper's
  std::unique_ptr<ArchiveKeeper> keeper_;
};

TEST_F(KeeperTest, TagsAndPrunesForOthers) {
  const std::string key = archive_->List()->at(1).key;
  const auto tagged = AskToTag(root(), key, {{{"keep", ""}}, {}});
  ASSERT_TRUE(tagged.ok()) << tagged.status().message();
  EXPECT_EQ(*tagged, 1u);
  const auto wrong = AskToTag(root(), "nobody.1.0.5", {{{"a", ""}}, {}});
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("no"));
  Retention limits;
  limits.profiles = 1;
  const auto pruned = AskToPrune(root(), limits, nullptr);
  ASSERT_TRUE(pruned.ok()) << pruned.status().message();
  EXPECT_EQ(pruned->profiles, 2u);
  EXPECT_EQ(pruned->pinned, 1u) << "d1, which the limit does not let stay";
  ASSERT_EQ(pruned->pruned.size(), 2u);
  EXPECT_THAT(pruned->pruned[0].key, HasSubstr(".d0."));
  EXPECT_THAT(Jobs(), ElementsAre("d1"));
}

// Such as that of another server. What is asked is done in turn: behind the compaction so would be
// what somebody had asked before.
TEST_F(KeeperTest, AnArchiveThatIsTriedAgainAndAgainAsksNobody) {
  const auto other = OpenArchive(root(), 0);
  ASSERT_TRUE(other.ok());
  ASSERT_EQ(other->owner, nullptr);
  ASSERT_TRUE(AskToIngest(root(), kPatience).ok());
  FinishStep(Job(3));
  EXPECT_EQ(OwnedArchive::Take(*other->reader, 0).status().code(), Code::kBusy);
  ASSERT_TRUE(AskToCompact(root(), nullptr).ok());
  EXPECT_TRUE(archive_->Entry(keys::ProfileKey(Job(3)))->live);
}

// As one of a newer release: what else waits is taken in, and the limits hold.
TEST_F(KeeperTest, OneStepThatCannotBeTakenInHoldsUpNothing) {
  keeper_.reset();
  Retention limits;
  limits.profiles = 2;
  Keep(limits);
  FinishStep(Job(3));
  const std::string foreign = root() + "/live/" + keys::ProfileKey(Job(3));
  leveldb::DB* opened = nullptr;
  ASSERT_TRUE(leveldb::DB::Open({}, foreign + "/blocks", &opened).ok());
  std::unique_ptr<leveldb::DB> db(opened);
  const std::string format = std::string(keys::kFormatStem) + "99";
  ASSERT_TRUE(db->Put({}, {keys::kFormatKey.data(), keys::kFormatKey.size()}, format).ok());
  db.reset();
  FinishStep(Job(4));
  EXPECT_FALSE(AskToIngest(root(), kPatience).ok());
  const auto last = archive_->Entry(keys::ProfileKey(Job(4)));
  ASSERT_TRUE(last.ok()) << last.status().message();
  EXPECT_FALSE(last->live);
  EXPECT_FALSE(archive_->Entry(keys::ProfileKey(Job(0))).ok()) << "beyond the limit";
  std::filesystem::remove_all(foreign);
}

TEST_F(KeeperTest, TagsAreChangedWhereTheArchiveIsOpen) {
  const std::string key = archive_->List()->at(0).key;
  const auto here = keeper_->Tag(key, {{{"a", "1"}}, {}});
  ASSERT_TRUE(here.ok()) << here.status().message();
  const auto other = OpenArchive(root(), 0);
  ASSERT_EQ(other->owner, nullptr);
  const auto asked = TagWhereItIsOpen(*other->reader, nullptr, key, {{{"b", "2"}}, {"a"}});
  ASSERT_TRUE(asked.ok()) << asked.status().message();
  EXPECT_THAT(*asked, ElementsAre(testing::Pair("b", "2")));
  keeper_.reset();
  const auto lock = ArchiveLock::Acquire(ArchivePaths(root()), 0);
  ASSERT_TRUE(lock.ok()) << lock.status().message();
  const auto refused = TagWhereItIsOpen(*other->reader, nullptr, key, {{}, {"b"}});
  EXPECT_EQ(refused.status().code(), Code::kBusy);
  EXPECT_THAT(archive_->Entry(key)->job.tags, ElementsAre(testing::Pair("b", "2")));
}

TEST_F(KeeperTest, CompactsForOthers) {
  const Status compacted = AskToCompact(root(), nullptr);
  EXPECT_TRUE(compacted.ok()) << compacted.message();
  EXPECT_THAT(Jobs(), ElementsAre("d2", "d1", "d0"));
}

TEST_F(KeeperTest, ImportsForOthers) {
  const std::string path = FileOfAnother();
  auto imported = AskToImport(root(), path, nullptr);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->job.id.ToString(), "d7.0");
  EXPECT_EQ(imported->blocks, 2u);
  EXPECT_FALSE(imported->was_there);
  EXPECT_THAT(Jobs(), ElementsAre("d7", "d2", "d1", "d0"));
  imported = AskToImport(root(), path, nullptr);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_TRUE(imported->was_there);

  std::ofstream(dir_.path() + "/wrong.sonde") << "nothing";
  const auto wrong = AskToImport(root(), dir_.path() + "/wrong.sonde", nullptr);
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("/wrong.sonde: "));
  const auto directory = AskToImport(root(), dir_.path(), nullptr);
  EXPECT_THAT(std::string(directory.status().message()), HasSubstr("is no file"));
  EXPECT_THAT(AnswerTo("import without.sonde\n"), StartsWith("error "));
}

TEST_F(KeeperTest, RepairsForOthersWhileItIsRead) {
  const auto repaired = AskToRepair(root(), nullptr);
  ASSERT_TRUE(repaired.ok()) << repaired.status().message();
  EXPECT_EQ(repaired->profiles, 3u);
  EXPECT_THAT(repaired->kept, HasSubstr("db.damaged-1"));
  EXPECT_TRUE(owner_->IsOpen());
  EXPECT_THAT(Jobs(), ElementsAre("d2", "d1", "d0"));

  // One that still reads is waited for, and others read meanwhile.
  std::thread other;
  const Status read = archive_->ReadRows(
      archive_->List()->at(0).key, SeriesScope::kNodes, {}, [&](const StoredRow&) {
        if (other.joinable()) return Status();
        other = std::thread([&] {
          const auto again = AskToRepair(root(), nullptr);
          EXPECT_TRUE(again.ok()) << again.status().message();
        });
        while (owner_->IsOpen()) std::this_thread::yield();
        EXPECT_THAT(Jobs(), ElementsAre("d2", "d1", "d0"));
        EXPECT_FALSE(owner_->IsOpen());
        const Status tagged =
            AskToTag(root(), archive_->List()->at(0).key, {{{"a", "1"}}, {}}).status();
        EXPECT_THAT(std::string(tagged.message()), HasSubstr("is being repaired"));
        return Status();
      });
  EXPECT_TRUE(read.ok()) << read.message();
  other.join();
  EXPECT_TRUE(owner_->IsOpen());
  EXPECT_THAT(Jobs(), ElementsAre("d2", "d1", "d0"));
}

TEST_F(KeeperTest, ARepairGoesOnIfWhoHasAskedGoesAway) {
  ASSERT_TRUE(keeper::SendAll(Connect().get(), "repair\n"));
  // Behind it.
  ASSERT_TRUE(AskToIngest(root(), kPatience).ok());
  EXPECT_TRUE(std::filesystem::exists(root() + "/db.damaged-1"));
  EXPECT_TRUE(owner_->IsOpen());
  EXPECT_THAT(Jobs(), ElementsAre("d2", "d1", "d0"));
}

// Somebody else's compacting ends only when the tags are changed.
TEST_F(KeeperTest, TagsDoNotWaitForLongWork) {
  const std::string key = archive_->List()->at(0).key;
  std::atomic<bool> asked = false;
  std::thread other;
  const Status done = owner_->Compact([&](uint64_t at, uint64_t) {
    if (at == 0 || other.joinable()) return true;
    other = std::thread([&] {
      const auto tagged = AskToTag(root(), key, {{{"a", "1"}}, {}});
      EXPECT_TRUE(tagged.ok()) << tagged.status().message();
      asked = true;
      asked.notify_one();
    });
    asked.wait(false);
    return true;
  });
  EXPECT_TRUE(done.ok()) << done.message();
  other.join();
  EXPECT_THAT(archive_->Entry(key)->job.tags, ElementsAre(testing::Pair("a", "1")));
}

TEST_F(KeeperTest, WhoWaitsForLongWorkIsToldBehindWhat) {
  ASSERT_TRUE(AskToIngest(root(), kPatience).ok()) << "it has begun";
  std::atomic<int> told = 0;
  std::vector<std::thread> others;
  const Status done = owner_->Compact([&](uint64_t, uint64_t) {
    if (!others.empty()) return true;
    // Of two one waits for this, and the other one for that.
    for (int i = 0; i < 2; ++i) {
      others.emplace_back([&] {
        const Status other = AskToCompact(root(), nullptr, [&](const std::string& work) {
          EXPECT_EQ(work, "compact");
          ++told;
          told.notify_one();
        });
        EXPECT_TRUE(other.ok()) << other.message();
      });
    }
    told.wait(0);
    return true;
  });
  EXPECT_TRUE(done.ok()) << done.message();
  for (std::thread& other : others) other.join();
  EXPECT_EQ(told, 1);
}

TEST_F(KeeperTest, WhatWaitsWhenTheKeeperEndsIsToldThatItWasNotDone) {
  ASSERT_TRUE(AskToIngest(root(), kPatience).ok()) << "it has begun";
  std::atomic<bool> told = false;
  std::atomic<int> refused = 0;
  std::vector<std::thread> others;
  std::thread end;
  const Status done = owner_->Compact([&](uint64_t, uint64_t) {
    if (!others.empty()) return true;
    for (int i = 0; i < 2; ++i) {
      others.emplace_back([&] {
        const Status other = AskToCompact(root(), nullptr, [&](const std::string&) {
          told = true;
          told.notify_one();
        });
        if (std::string(other.message()).find("it was stopped before") == 0) ++refused;
      });
    }
    told.wait(false);
    end = std::thread([&] { keeper_.reset(); });
    while (std::filesystem::exists(root() + "/db.sock")) std::this_thread::yield();
    return true;
  });
  EXPECT_TRUE(done.ok()) << done.message();
  end.join();
  for (std::thread& other : others) other.join();
  EXPECT_GE(refused, 1) << "the other one was at work";
}

TEST_F(KeeperTest, WorkThatIsStoppedCanBeDoneAgain) {
  const auto stop = [](uint64_t, uint64_t) { return false; };
  const std::string path = FileOfAnother();
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(owner_->Import(file.get(), path, stop).status().code(), Code::kUnavailable);
  EXPECT_EQ(owner_->Compact(stop).code(), Code::kUnavailable);
  Retention limits;
  limits.profiles = 1;
  const auto pruned = owner_->Prune(limits, kTestStart + 10 * kDay, kPatience,
                                    [](uint64_t done, uint64_t) { return done == 0; });
  ASSERT_TRUE(pruned.ok());
  EXPECT_FALSE(pruned->complete);
  EXPECT_THAT(Jobs(), ElementsAre("d2", "d1"));
  EXPECT_EQ(owner_->Repair(stop).status().code(), Code::kUnavailable);
  EXPECT_TRUE(owner_->IsOpen());
  EXPECT_FALSE(std::filesystem::exists(root() + "/db.damaged-1"));
  EXPECT_THAT(Jobs(), ElementsAre("d2", "d1"));
  EXPECT_TRUE(owner_->Import(file.get(), path, nullptr).ok());
  EXPECT_TRUE(owner_->Compact(nullptr).ok());
  EXPECT_TRUE(owner_->Repair(nullptr).ok());
  EXPECT_THAT(Jobs(), ElementsAre("d7", "d2", "d1"));
}

TEST_F(KeeperTest, QuestionsItDoesNotKnowChangeNothing) {
  for (const char* question : {"sing\n", "prune\n", "prune 1 2 3\n", "tag x\n", "compact now\n"}) {
    EXPECT_THAT(AnswerTo(question), StartsWith("error ")) << question;
  }
  EXPECT_EQ(AnswerTo("compact"), "") << "half a question";
  EXPECT_THAT(Jobs(), ElementsAre("d2", "d1", "d0"));
}

TEST_F(KeeperTest, DescriptorsThatNobodyAskedForAreClosed) {
  const auto open_now = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto before = open_now();
  for (const int first : {1, 2}) {
    const UniqueFd socket = Connect();
    const std::vector<int> fds(static_cast<size_t>(first), file.get());
    const auto sent = SendWithDescriptors(socket.get(), "com", fds, Patience::kAsTheSocket);
    ASSERT_TRUE(sent.ok());
    // Two at once, or one and another.
    keeper::SendAll(socket.get(), "pact\n", file.get());
    EXPECT_EQ(keeper::LineReader(socket.get()).Next(keeper::kMaxAnswer), "") << first;
  }
  EXPECT_EQ(AnswerTo("ingest\n"), "ok 0\n");
  keeper_.reset();
  EXPECT_LE(open_now(), before);
}

TEST_F(KeeperTest, WhereNobodyKeepsTheArchiveTheHolderIsNamed) {
  keeper_.reset();
  const auto owner = OwnedArchive::Take(*archive_, 0);
  ASSERT_TRUE(owner.ok()) << owner.status().message();
  EXPECT_EQ(AskToCompact(root(), nullptr).code(), Code::kNotFound);
  EXPECT_EQ(AskToRepair(root(), nullptr).status().code(), Code::kNotFound);
  const std::string me = "process " + std::to_string(::getpid()) + " (";
  EXPECT_THAT(LockHolder(root() + "/db.lock"), StartsWith(me));
  const Status busy = RepairArchive(root(), 0, nullptr).status();
  EXPECT_EQ(busy.code(), Code::kBusy);
  EXPECT_THAT(std::string(busy.message()), HasSubstr(me));
  const Status import = ImportProfile(root(), FileOfAnother(), 0).status();
  EXPECT_EQ(import.code(), Code::kBusy);
  EXPECT_THAT(std::string(import.message()), HasSubstr(me));
  EXPECT_THAT(OpenArchive(root(), 0)->reader->note(), HasSubstr(me));
}

TEST(KeeperAnswer, IsReadLineByLine) {
  const auto done = keeper::ParseAnswerLine("ok 3 {\"a\": 1}\n");
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(done->last);
  EXPECT_EQ(done->count, 3u);
  EXPECT_EQ(done->more, "{\"a\": 1}");
  const auto at = keeper::ParseAnswerLine("at 5 7\n");
  ASSERT_TRUE(at.ok());
  EXPECT_FALSE(at->last);
  EXPECT_EQ(at->total, 7u);
  EXPECT_EQ(keeper::ParseAnswerLine("error no room\n").status().message(), "no room");
  EXPECT_EQ(keeper::ParseAnswerLine("").status().code(), Code::kUnavailable);
  EXPECT_EQ(keeper::ParseAnswerLine("behind compact\n")->behind, "compact");
  for (const char* wrong : {"behind \n", "behind two words\n", "ok\n", "ok x\n", "ok 3", "at 5\n",
                            "at 5 7 9\n", "at -1 7\n", "\n"}) {
    EXPECT_EQ(keeper::ParseAnswerLine(wrong).status().code(), Code::kCorrupt) << wrong;
  }
}

}  // namespace
}  // namespace sonde::profiles_keeper_test
