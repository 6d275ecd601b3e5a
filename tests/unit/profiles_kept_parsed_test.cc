// What an archive's readers keep of the descriptions that they have parsed, and which they parse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/live/live_steps.h"
#include "profiles/records/kept_parsed.h"
#include "profiles/records/keys.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_kept_parsed_test {
namespace {

using testing::SizeIs;

// Long enough to be kept.
JobDescription LargeJob(const std::string& id = "123") {
  JobDescription job = TestJob(id);
  job.nodes.resize(2000, job.nodes[0]);
  return job;
}

class KeptParsedTest : public testing::Test {
 protected:
  KeptParsed<JobDescription> kept_{DescriptionFromJson};
};

TEST_F(KeptParsedTest, ATextIsParsedOnce) {
  const std::string json = DescriptionToJson(LargeJob());
  ASSERT_GE(json.size(), KeptParsed<JobDescription>::kLeastBytes);
  const auto first = kept_.Parse("a", json);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT((*first)->nodes, SizeIs(2000));
  EXPECT_EQ(*kept_.Parse("a", json), *first);
  EXPECT_EQ(kept_.parsed(), 1u);
}

TEST_F(KeptParsedTest, AnotherTextIsParsedAndReplacesIt) {
  JobDescription job = LargeJob();
  const std::string before = DescriptionToJson(job);
  ASSERT_TRUE(kept_.Parse("a", before).ok());
  job.name = "tale";  // as long as before
  EXPECT_EQ((*kept_.Parse("a", DescriptionToJson(job)))->name, "tale");
  EXPECT_EQ((*kept_.Parse("a", before))->name, "heat");
  EXPECT_EQ(kept_.parsed(), 3u) << "of each profile one is kept";
  EXPECT_FALSE(kept_.Parse("a", "{").ok());
  EXPECT_EQ((*kept_.Parse("a", before))->name, "heat");
  EXPECT_EQ(kept_.parsed(), 3u) << "what cannot be read replaces nothing";
}

TEST_F(KeptParsedTest, TheOnesThatWereAskedForLastAreKeptAsFarAsTheyAreBounded) {
  JobDescription job = LargeJob();
  while (job.nodes.size() < 60'000) job.nodes.insert(job.nodes.end(), 2000, job.nodes[0]);
  const std::string json = DescriptionToJson(job);
  const size_t fit = KeptParsed<JobDescription>::kMostBytes / json.size();
  ASSERT_GE(fit, 2u);
  for (size_t i = 0; i < fit; ++i) ASSERT_TRUE(kept_.Parse(std::to_string(i), json).ok());
  ASSERT_TRUE(kept_.Parse("0", json).ok());
  EXPECT_EQ(kept_.parsed(), fit);
  ASSERT_TRUE(kept_.Parse("another", json).ok());
  ASSERT_TRUE(kept_.Parse("0", json).ok());
  EXPECT_EQ(kept_.parsed(), fit + 1);
  ASSERT_TRUE(kept_.Parse("1", json).ok());
  EXPECT_EQ(kept_.parsed(), fit + 2) << "it was asked for longest ago";
}

// A question about one step of many that run.
TEST(LiveScans, ParseTheDescriptionsThatAreAskedForAndOnce) {
  const TempDir directory;
  const std::string root = directory.path() + "/archive";
  std::vector<std::unique_ptr<LiveArchive>> running;
  for (const char* id : {"1", "2", "3"}) {
    running.push_back(*LiveArchive::Create(root, LargeJob(id)));
  }
  const ArchivePaths paths(root);
  KeptRecords kept;
  const std::string key = keys::ProfileKey(LargeJob("2"));
  const auto one = ScanLive(paths, {.key = key, .kept = &kept});
  ASSERT_TRUE(one.ok());
  ASSERT_THAT(*one, SizeIs(1));
  EXPECT_TRUE(one->at(0).running);
  EXPECT_THAT(one->at(0).job.nodes, SizeIs(2000));
  EXPECT_EQ(kept.descriptions.parsed(), 1u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(*ScanLive(paths, {.kept = &kept}), SizeIs(3));
    EXPECT_EQ(kept.descriptions.parsed(), 3u);
  }
  const auto bare = ScanLive(paths, {.key = key, .described = false, .kept = &kept});
  ASSERT_THAT(*bare, SizeIs(1));
  EXPECT_TRUE(bare->at(0).running);
  EXPECT_EQ(bare->at(0).job.id, LargeJob("2").id);
  EXPECT_THAT(bare->at(0).job.nodes, SizeIs(0));
  EXPECT_THAT(*ScanLive(paths, {.key = ""}), SizeIs(0)) << "no step has this key";
  JobDescription later = LargeJob("2");
  later.notes.emplace_back("late");
  ASSERT_TRUE(running[1]->PutDescription(later).ok());
  EXPECT_THAT(ScanLive(paths, {.key = key, .kept = &kept})->at(0).job.notes, SizeIs(1));
}

// In db/ too, where tags change descriptions.
TEST(LiveScans, AChangedDescriptionIsSeen) {
  const TempDir directory;
  const std::string root = directory.path() + "/archive";
  {
    auto live = *LiveArchive::Create(root, LargeJob());
    Profile profile;
    profile.job = LargeJob();
    profile.job.state = EndState::kCompleted;
    ASSERT_TRUE(live->PutProfile(profile).ok());
    ASSERT_TRUE(live->Finish().ok());
  }
  const auto archive = *OpenArchive(root, 0);
  ASSERT_TRUE(archive.owned());
  const std::string key = keys::ProfileKey(LargeJob());
  EXPECT_THAT(archive.reader->Entry(key)->job.tags, SizeIs(0));
  EXPECT_THAT(archive.reader->Load(key)->job.tags, SizeIs(0));
  ASSERT_TRUE(archive.owner->Tag(key, {{{"campaign", "winter"}}, {}}).ok());
  EXPECT_THAT(archive.reader->Entry(key)->job.tags, SizeIs(1));
  EXPECT_THAT(archive.reader->Load(key)->job.tags, SizeIs(1));
}

}  // namespace
}  // namespace sonde::profiles_kept_parsed_test
