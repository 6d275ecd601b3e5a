// What of an archive is deleted by its limits, and what tags keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/archive/archive.h"
#include "profiles/archive/ingest_one.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/records/owed_room.h"
#include "profiles/records/records.h"
#include "profiles/records/tags.h"
#include "profiles/select/select.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/repair.h"
#include "profiles/upkeep/retention.h"
#include "tests/unit/profiles_days.h"

namespace sonde::profiles_retention_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class RetentionTest : public DaysTest {
 protected:
  static PruneReport Prune(const OpenedArchive& archive, const Retention& limits,
                           bool dry_run = false, Nanos budget = kPatience) {
    const auto report = dry_run ? archive.reader->WouldPrune(limits, Now(), budget)
                                : archive.owner->Prune(limits, Now(), budget);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return *report;
  }
  static Nanos Now() { return kTestStart + 10 * kDay; }
};

TEST_F(RetentionTest, TheOldestGoFirstWithAllTheyHave) {
  for (int day = 0; day < 5; ++day) FinishStep(Job(day));
  {
    const auto archive = Open();
    Retention limits;
    limits.age = 8 * kDay;
    PruneReport report = Prune(archive, limits, true);
    EXPECT_EQ(report.profiles, 2u);
    EXPECT_EQ(report.pruned[0].why, "older than " + FormatDuration(limits.age));
    EXPECT_EQ(Jobs(*archive.reader).size(), 5u);
    report = Prune(archive, limits);
    EXPECT_EQ(report.profiles, 2u);
    EXPECT_EQ(report.bytes, 20'000u);
    EXPECT_THAT(Jobs(*archive.reader), ElementsAre("d4", "d3", "d2"));
    EXPECT_EQ(Prune(archive, limits).profiles, 0u);
    limits = {};
    limits.profiles = 2;
    EXPECT_EQ(Prune(archive, limits).profiles, 1u);
    limits = {};
    limits.bytes = 1;
    EXPECT_EQ(Prune(archive, limits).profiles, 2u);
  }
  const auto db = OpenDb(ArchivePaths(root()));
  ASSERT_TRUE(db.ok());
  std::string left;
  ASSERT_TRUE(ForEachRecord(**db, "", [&](std::string_view key, std::string_view) {
                left += key[0];
              }).ok());
  EXPECT_EQ(left, "FIooooos") << "records of deleted profiles are left";
  ASSERT_TRUE(DropSchemas(**db, nullptr).ok());
  ASSERT_TRUE(CompactDb(**db, nullptr).ok());
  left.clear();
  ASSERT_TRUE(ForEachRecord(**db, "", [&](std::string_view key, std::string_view) {
                left += key[0];
              }).ok());
  EXPECT_EQ(left, "FI") << "schemas that nothing needs are left";
}

TEST_F(RetentionTest, TheRoomOfWhatIsDeletedIsOwedUntilItIsGivenBack) {
  for (int day = 0; day < 6; ++day) FinishStep(Job(day));
  Retention limits;
  limits.profiles = 2;
  {
    const auto archive = Open();
    // d0 and d1, then d3 and d4 behind one that stays.
    ASSERT_TRUE(archive.owner->Tag(keys::ProfileKey(Job(2)), {{{"keep", ""}}, {}}).ok());
    ASSERT_EQ(Prune(archive, limits).profiles, 4u);
  }
  ExpectSound();
  {
    const auto db = OpenDb(ArchivePaths(root()));
    ASSERT_TRUE(db.ok());
    auto owed = ReadOwedRoom(**db);
    ASSERT_TRUE(owed.ok());
    EXPECT_EQ(owed->profiles, 4u);
    EXPECT_GT(owed->bytes, 400u);
    EXPECT_FALSE(owed->much());
    EXPECT_EQ(*GiveBack(**db, -1), 0u) << "there was no time";
    EXPECT_EQ(*GiveBack(**db, kPatience), 4u);
    EXPECT_EQ(ReadOwedRoom(**db)->profiles, 0u);
    EXPECT_EQ(*GiveBack(**db, kPatience), 0u);
  }
  ExpectSound();
}

TEST_F(RetentionTest, ARepairOwesNothing) {
  for (int day = 0; day < 3; ++day) FinishStep(Job(day));
  Retention limits;
  limits.profiles = 1;
  { ASSERT_EQ(Prune(Open(), limits).profiles, 2u); }
  const auto repaired = RepairArchive(root(), 0, nullptr);
  ASSERT_TRUE(repaired.ok()) << repaired.status().message();
  EXPECT_EQ(repaired->profiles, 1u);
  const auto db = OpenDb(ArchivePaths(root()));
  ASSERT_TRUE(db.ok());
  EXPECT_EQ(ReadOwedRoom(**db)->profiles, 0u);
}

TEST_F(RetentionTest, AStepThatWaitsForRoomCounts) {
  for (int day = 0; day < 4; ++day) FinishStep(Job(day, day == 0 ? "bob" : "ada"));
  { ASSERT_EQ(Jobs(*Open().reader).size(), 4u); }
  const auto db = OpenDb(ArchivePaths(root()));
  ASSERT_TRUE(db.ok());
  const auto pruned = [&](const Retention& limits, const IncomingStep& incoming) {
    PruneReport report;
    PruneWork work{Now(), kPatience, false, {}, nullptr, incoming};
    EXPECT_TRUE(PruneDb(**db, limits, work, report).ok());
    std::string keys;
    for (const PrunedProfile& one : report.pruned) keys += keys::DescribeKey(one.key)->id.job + " ";
    return keys;
  };
  Retention limits;
  limits.user_profiles = 3;
  EXPECT_EQ(pruned(limits, {"bob", 0}), "");
  EXPECT_EQ(pruned(limits, {"ada", 0}), "d1 ");
  limits = {};
  limits.bytes = 100'000;
  EXPECT_EQ(pruned(limits, {"bob", 10'000}), "");
  EXPECT_EQ(pruned(limits, {"bob", 75'000}), "d0 ");
  limits = {};
  limits.profiles = 2;
  EXPECT_EQ(pruned(limits, {"bob", 0}), "d2 ");
}

TEST_F(RetentionTest, WhatIsPinnedWhileAPruneWorksStays) {
  for (int day = 0; day < 3; ++day) FinishStep(Job(day));
  { ASSERT_EQ(Jobs(*Open().reader).size(), 3u); }
  const auto db = OpenDb(ArchivePaths(root()));
  ASSERT_TRUE(db.ok());
  Retention limits;
  limits.profiles = 1;
  const auto pin = [&](uint64_t done, uint64_t) {
    if (done > 0) return true;
    return ChangeTags(**db, keys::ProfileKey(Job(1)), {{{"keep", ""}}, {}}).ok();
  };
  PruneReport report;
  const Status pruned =
      PruneDb(**db, limits, {kTestStart + 10 * kDay, kPatience, false, {}, pin}, report);
  ASSERT_TRUE(pruned.ok()) << pruned.message();
  EXPECT_EQ(report.pinned, 1u);
  EXPECT_EQ(report.profiles, 2u) << "d0, and d2 in place of d1";
}

TEST_F(RetentionTest, EachUserHasLimitsOfHisOwn) {
  for (int day = 0; day < 6; ++day) FinishStep(Job(day, day % 3 == 0 ? "bob" : "ada"));
  {
    const auto archive = Open();
    Retention limits;
    limits.user_profiles = 2;
    const PruneReport report = Prune(archive, limits);
    EXPECT_EQ(report.profiles, 2u);
    EXPECT_EQ(report.pruned[0].why, "more than 2 profiles of ada");
    EXPECT_THAT(Jobs(*archive.reader), ElementsAre("d5", "d4", "d3", "d0"));
    limits = {};
    limits.user_bytes = 15'000;
    EXPECT_EQ(Prune(archive, limits).profiles, 2u);
    EXPECT_THAT(Jobs(*archive.reader), ElementsAre("d5", "d3"));
  }
  ExpectSound();
}

TEST_F(RetentionTest, WhatIsTaggedKeepStays) {
  for (int day = 0; day < 3; ++day) FinishStep(Job(day));
  const auto archive = Open();
  ASSERT_TRUE(archive.owner->Tag(archive.reader->List()->back().key, {{{"keep", ""}}, {}}).ok());
  Retention limits;
  limits.profiles = 1;
  const PruneReport report = Prune(archive, limits);
  EXPECT_EQ(report.pinned, 1u);
  EXPECT_THAT(Jobs(*archive.reader), ElementsAre("d0"));
}

TEST_F(RetentionTest, OneWithAPartThatWaitsStays) {
  FinishStep(Job(0));
  const auto archive = Open();
  const auto acting = LiveArchive::Continue(root(), Job(0));
  ASSERT_TRUE(acting.ok());
  Retention limits;
  limits.age = kDay;
  EXPECT_EQ(Prune(archive, limits).profiles, 0u);
}

TEST_F(RetentionTest, WithoutTimeNothingIsDeletedAndThatIsSaid) {
  for (int day = 0; day < 3; ++day) FinishStep(Job(day));
  const auto archive = Open();
  Retention limits;
  limits.profiles = 1;
  const PruneReport report = Prune(archive, limits, false, -1);
  EXPECT_EQ(report.profiles, 0u);
  EXPECT_FALSE(report.complete);
}

TEST_F(RetentionTest, AnIngestDeletesWhatExceedsTheLimits) {
  for (int day = 0; day < 4; ++day) FinishStep(Job(day));
  { Open(); }
  auto live = LiveArchive::Create(root(), Job(4));
  ASSERT_TRUE(live.ok());
  const std::string path = (*live)->path();
  ASSERT_TRUE((*live)->Finish().ok());
  live->reset();
  Retention limits;
  limits.profiles = 3;
  const Status ingested = IngestLive(root(), path, 0, &limits);
  ASSERT_TRUE(ingested.ok()) << ingested.message();
  EXPECT_THAT(Jobs(*Open().reader), ElementsAre("d4", "d3", "d2"));
  ExpectSound();
}

TEST_F(RetentionTest, TagsAreChangedAndFound) {
  JobDescription job = Job(0);
  job.tags = {{"campaign", "winter"}, {"old", "1"}};
  FinishStep(job);
  {
    const auto archive = Open();
    const std::string key = archive.reader->List()->at(0).key;
    const auto tags = archive.owner->Tag(key, {{{"campaign", "summer"}, {"best", ""}}, {"old"}});
    ASSERT_TRUE(tags.ok()) << tags.status().message();
    EXPECT_THAT(*tags, ElementsAre(Pair("best", ""), Pair("campaign", "summer")));
    EXPECT_EQ(archive.reader->Load(key)->job.tags, *tags);
    EXPECT_EQ(archive.reader->Entry(key)->job.tags, *tags);
    const auto with = [&](const char* name, std::optional<std::string> value) {
      Selection selection;
      selection.tags.emplace_back(name, std::move(value));
      return archive.reader->Select(selection, 0)->size();
    };
    EXPECT_EQ(with("campaign", "summer"), 1u);
    EXPECT_EQ(with("campaign", "winter"), 0u);
    EXPECT_EQ(with("old", std::nullopt), 0u);
    TagChange many;
    for (int i = 0; i < 40; ++i) many.set["t" + std::to_string(i)] = "";
    EXPECT_EQ(archive.owner->Tag(key, many).status().code(), Code::kLimit);
    EXPECT_EQ(archive.owner->Tag(key, {{{"a b", ""}}, {}}).status().code(), Code::kInvalid);
    EXPECT_EQ(archive.owner->Tag("frost.1.0.5", {}).status().code(), Code::kNotFound);
  }
  ExpectSound();
}

TEST_F(RetentionTest, TagsOutliveAPartThatComesLate) {
  const JobDescription job = Job(0);
  {
    auto head = LiveArchive::Create(root(), job);
    ASSERT_TRUE(head.ok());
    ASSERT_TRUE(PutReducedBlock(**head, 1, 0, 3).ok());
  }
  {
    const auto archive = Open();
    ASSERT_TRUE(archive.owner->Tag(archive.reader->List()->at(0).key, {{{"keep", ""}}, {}}).ok());
    auto acting = LiveArchive::Continue(root(), job);
    ASSERT_TRUE(acting.ok());
    ASSERT_TRUE((*acting)->Finish().ok());
  }
  EXPECT_THAT(Open().reader->List()->at(0).job.tags, ElementsAre(Pair("keep", "")));
  ExpectSound();
}

TEST(TagChange, TravelsAsText) {
  const TagChange change{{{"a", "1 2"}, {"b", ""}}, {"c", "d"}};
  const auto back = TagChangeFromText(TagChangeToText(change));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->set, change.set);
  EXPECT_EQ(back->remove, change.remove);
  EXPECT_TRUE(TagChangeFromText(TagChangeToText({})).ok());
  for (const char* wrong : {"", "a=1", "a b=1\t", "a=1\tb c"}) {
    EXPECT_FALSE(TagChangeFromText(wrong).ok()) << wrong;
  }
}

TEST(Retention, TravelsAsText) {
  const Retention limits{5 * kDay, 1, 2, 3, UINT64_MAX};
  const auto back = RetentionFromText(RetentionToText(limits));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(RetentionToText(*back), RetentionToText(limits));
  for (const char* wrong : {"", "1 2 3 4", "1 2 3 4 5 6", "1 2 3 4 5 ", "1 2 3 4 x", "-1 2 3 4 5",
                            "9999999999999999999 0 0 0 0"}) {
    EXPECT_FALSE(RetentionFromText(wrong).ok()) << wrong;
  }
}

TEST(PruneReport, TravelsAsJson) {
  PruneReport report;
  report.profiles = 3;
  report.bytes = 1u << 31;
  report.pinned = 1;
  report.complete = false;
  report.pruned = {{"frost.1.0.5", "older than 180 d", 7}};
  const auto back = PruneFromJson(PruneToJson(report, false));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(PruneToJson(*back, false), PruneToJson(report, false));
  EXPECT_FALSE(PruneFromJson("{\"profiles\": -1}").ok());
  EXPECT_FALSE(PruneFromJson("{").ok());
}

}  // namespace
}  // namespace sonde::profiles_retention_test
