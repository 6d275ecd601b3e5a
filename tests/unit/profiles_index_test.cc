// Cards, the indexes and what is selected by them: the same as by looking at every profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <limits>
#include <random>

#include "core/text/ascii.h"
#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/model/summary.h"
#include "profiles/records/card.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/select/select.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/repair.h"
#include "profiles/upkeep/verify.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_index_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Nanos kPatience = 60 * kSecond;

Profile TestProfile(const JobDescription& job) {
  Profile profile;
  profile.job = job;
  profile.job.state = EndState::kCompleted;
  profile.job.end = job.end != 0 ? job.end : job.start + 10 * kSecond;
  profile.job.coverage = {20, 19, 1};
  FootprintEntry memory;
  memory.series = TestSeries("task_resident_memory_peak_bytes", MetricType::kGauge);
  memory.max = 4096;
  memory.max_owner = {1, 3};
  FootprintEntry cpu;
  cpu.series = TestSeries("task_cpu_seconds_total", MetricType::kCounter, {{"mode", "user"}});
  cpu.last = 12.5;
  cpu.min = 5;
  cpu.max = 7.5;
  FootprintEntry energy;
  energy.series = TestSeries("node_step_energy_joules_total", MetricType::kCounter);
  energy.last = 1234;
  profile.footprint = {memory, cpu, energy};
  return profile;
}

Card Decoded(const std::string& bytes) {
  Card card;
  const Status status = DecodeCard(bytes, card);
  EXPECT_TRUE(status.ok()) << status.message();
  return card;
}

TEST(Card, SaysWhatTheProfileSays) {
  JobDescription job = TestJob();
  job.account = "physics";
  job.partition = "long";
  job.command = "/opt/lammps/bin/lmp -in melt.in";
  job.array_job = "100";
  job.array_task = "7";
  job.exit_status = 256;
  job.tags = {{"campaign", "winter"}, {"keep", ""}};
  job.figures.push_back({"speed", "atoms/s", 12.25, 3, 0, 0, 0});
  const Profile profile = TestProfile(job);
  const std::string bytes = MakeCard(profile, 1000);
  const Card card = Decoded(bytes);
  EXPECT_EQ(card.state, EndState::kCompleted);
  EXPECT_EQ(card.end, job.start + 10 * kSecond);
  EXPECT_EQ(card.exit_status, 256);
  EXPECT_EQ(card.level, 2);
  EXPECT_EQ(card.nodes, 2u);
  EXPECT_EQ(card.tasks, 4u);
  EXPECT_EQ(card.size, 1000u);
  EXPECT_EQ(card.coverage.got, 19u);
  EXPECT_EQ(card.name, "heat");
  EXPECT_EQ(card.user, "ada");
  EXPECT_EQ(card.account, "physics");
  EXPECT_EQ(card.partition, "long");
  EXPECT_EQ(card.command, job.command);
  EXPECT_EQ(card.array_task, "7");
  EXPECT_EQ(card.figure, "speed");
  EXPECT_EQ(card.figure_value, 12.25);
  EXPECT_THAT(card.tags, ElementsAre(std::pair("campaign", "winter"), std::pair("keep", "")));
  EXPECT_EQ(card.Number(CardNumber::kEnergy), 1234);
  const Summary summary = Summarize(profile, {}, 0);
  const Summary told = SummaryOfCard(card, job.start, 0);
  EXPECT_EQ(told.cpu_seconds, summary.cpu_seconds);
  EXPECT_EQ(told.cpu_of_tasks, summary.cpu_of_tasks);
  EXPECT_EQ(told.memory_peak.value, 4096);
  EXPECT_EQ(told.memory_peak.by, "task 3 on n2");
  EXPECT_TRUE(std::isnan(told.disk_read));
  EXPECT_EQ(told.duration, 10);
}

TEST(Card, IsBoundedAndTheSameBeforeAndAfterJson) {
  JobDescription job = TestJob();
  job.name = std::string(5000, 'n');
  job.command = std::string(510, 'c') + "\xc3\xa4\xff\xfe" + std::string(9000, 'd');
  job.user = std::string("a\xff") + std::string(63, '\xe2');
  for (int i = 0; i < 100; ++i) {
    job.tags["tag" + std::to_string(i)] = std::string(9000, 'v');
  }
  Profile profile = TestProfile(job);
  profile.footprint[0].max = std::numeric_limits<double>::infinity();
  const std::string bytes = MakeCard(profile, 7);
  EXPECT_LE(bytes.size(), kMaxCard);
  EXPECT_EQ(Decoded(bytes).command, std::string(510, 'c') + "\xc3\xa4");
  EXPECT_TRUE(std::isnan(Decoded(bytes).Number(CardNumber::kMemoryPeak)));
  profile.job.tags = {{"a", "b"}};  // within what JSON takes
  const auto read = ProfileFromJson(ProfileToJson(profile));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(MakeCard(*read, 7), MakeCard(profile, 7));
  EXPECT_EQ(IndexKeys(read->job), IndexKeys(profile.job));
}

TEST(Card, RefusesWhatIsNone) {
  const std::string bytes = MakeCard(TestProfile(TestJob()), 1);
  Card card;
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodeCard(bytes.substr(0, n), card).ok()) << n;
  }
  EXPECT_EQ(DecodeCard(bytes + "x", card).code(), Code::kCorrupt);
  std::string later = bytes;
  later[0] = 3;
  EXPECT_EQ(DecodeCard(later, card).code(), Code::kUnsupported);
}

class IndexTest : public testing::Test {
 protected:
  std::string root() const { return dir_.path() + "/archive"; }
  ArchivePaths paths() const { return ArchivePaths(root()); }

  void FinishStep(const JobDescription& job, EndState state = EndState::kCompleted) const {
    auto live = LiveArchive::Create(root(), job);
    ASSERT_TRUE(live.ok()) << live.status().message();
    ASSERT_TRUE(PutNodeBlock(**live, 0, 1, 0, 3).ok());
    Profile profile = TestProfile(job);
    profile.job.state = state;
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    ASSERT_TRUE((*live)->Finish().ok());
  }
  OpenedArchive Open() const {
    auto archive = OpenArchive(root(), kPatience);
    EXPECT_TRUE(archive.ok()) << archive.status().message();
    EXPECT_EQ(archive->reader->note(), "");
    return *std::move(archive);
  }
  VerifyReport Verify() const {
    auto report = VerifyArchive(root(), nullptr);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *std::move(report) : VerifyReport();
  }
  // Changes the database behind the archive's back.
  void Change(const std::function<void(leveldb::DB&)>& f) const {
    auto db = OpenDb(paths());
    ASSERT_TRUE(db.ok()) << db.status().message();
    f(**db);
  }
  static std::vector<std::string> KeysFrom(leveldb::DB& db, std::string_view prefix) {
    std::vector<std::string> keys;
    const Status read = ForEachRecord(
        db, prefix, [&](std::string_view key, std::string_view) { keys.emplace_back(key); });
    EXPECT_TRUE(read.ok());
    return keys;
  }
  // As before there were cards.
  void MakeOld() const {
    Change([](leveldb::DB& db) {
      leveldb::WriteBatch batch;
      for (const std::string& key : KeysFrom(db, "t")) batch.Put(key, "");
      for (const char* prefix : {"i", "a", "I"}) {
        for (const std::string& key : KeysFrom(db, prefix)) batch.Delete(key);
      }
      ASSERT_TRUE(db.Write({}, &batch).ok());
    });
  }
  static std::vector<std::string> Jobs(const Archive& archive, const Selection& selection) {
    const auto listed = archive.Select(selection, kTestStart + 1'000'000 * kSecond);
    EXPECT_TRUE(listed.ok()) << listed.status().message();
    std::vector<std::string> jobs;
    for (const ListedProfile& one : *listed) jobs.push_back(keys::DescribeKey(one.key)->id.job);
    return jobs;
  }
  // Steps that differ in everything that is filtered by.
  std::vector<JobDescription> FillMixed(int count) const {
    std::mt19937 random(7);
    const auto any = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<JobDescription> jobs;
    for (int i = 0; i < count; ++i) {
      JobDescription job = TestJob(std::to_string(i), kTestStart + any(50) * kSecond);
      job.end = job.start + (any(5) == 0 ? 40 : any(10)) * kSecond;
      job.name = "heat" + std::to_string(any(3));
      job.command = any(2) == 0 ? "lmp -in melt" + std::to_string(any(4)) : "python train.py";
      job.user = any(3) == 0 ? "bob" : "ada";
      job.nodes[1].host = "n" + std::to_string(any(4) + 2);
      if (any(2) == 0) job.tags["campaign"] = any(2) == 0 ? "winter" : "summer";
      job.state = any(4) == 0 ? EndState::kFailed : EndState::kCompleted;
      job.level = any(3);
      FinishStep(job, job.state);
      jobs.push_back(job);
    }
    return jobs;
  }
  static Selection RandomSelection(std::mt19937& random) {
    const auto any = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    Selection selection;
    if (any(3) == 0) selection.since = kTestStart + any(30) * kSecond;
    if (any(3) == 0) selection.lasting_to = kTestStart + any(60) * kSecond;
    if (any(3) == 0) selection.until = kTestStart + (20 + any(30)) * kSecond;
    if (any(3) == 0) selection.name = any(2) == 0 ? "heat1" : "eat";
    if (any(3) == 0) selection.command = any(2) == 0 ? "melt2" : "train";
    if (any(4) == 0) selection.user = "bob";
    if (any(4) == 0) selection.node = "n3";
    if (any(4) == 0) selection.state = EndState::kFailed;
    if (any(4) == 0) selection.tags.emplace_back("campaign", "winter");
    if (any(5) == 0) selection.tags.emplace_back("campaign", std::nullopt);
    if (any(5) == 0) selection.level = any(3);
    constexpr const char* kWords[] = {"MELT", "n4", "bob", "=winter", "heat2", "7", "python"};
    while (any(3) == 0) selection.search.emplace_back(kWords[any(7)]);
    if (any(3) == 0) selection.offset = static_cast<size_t>(any(5));
    if (any(3) == 0) selection.limit = static_cast<size_t>(any(5)) + 1;
    selection.reverse = any(3) == 0;
    return selection;
  }
  static bool HasWord(const JobDescription& job, const std::string& word) {
    const auto has = [&](const std::string& text) {
      return Lower(text).find(Lower(word)) != std::string::npos;
    };
    return has(job.id.ToString()) || has(job.name) || has(job.user) || has(job.command) ||
           std::any_of(job.tags.begin(), job.tags.end(),
                       [&](const auto& tag) { return has(tag.first + "=" + tag.second); }) ||
           std::any_of(job.nodes.begin(), job.nodes.end(),
                       [&](const NodeInfo& node) { return node.host == word; });
  }
  // What the selection gives of these, by looking at each.
  static std::vector<std::string> Expected(std::vector<JobDescription> jobs, const Selection& s) {
    std::erase_if(jobs, [&](const JobDescription& job) {
      const auto on = [&](const NodeInfo& node) { return node.host == s.node; };
      bool fits = job.start >= s.since && job.start <= s.until && job.end >= s.lasting_to &&
                  job.name.find(s.name) != std::string::npos &&
                  job.command.find(s.command) != std::string::npos &&
                  (s.user.empty() || job.user == s.user) &&
                  (s.node.empty() || std::any_of(job.nodes.begin(), job.nodes.end(), on)) &&
                  (!s.state || job.state == *s.state) && (!s.level || job.level == *s.level);
      for (const auto& [name, value] : s.tags) {
        fits = fits && job.tags.contains(name) && (!value || job.tags.at(name) == *value);
      }
      for (const std::string& word : s.search) fits = fits && HasWord(job, word);
      return !fits;
    });
    std::sort(jobs.begin(), jobs.end(), [&](const JobDescription& a, const JobDescription& b) {
      if (a.start != b.start) return (a.start > b.start) != s.reverse;
      return keys::ProfileKey(a) < keys::ProfileKey(b);
    });
    jobs.erase(jobs.begin(), jobs.begin() + static_cast<long>(std::min(s.offset, jobs.size())));
    if (jobs.size() > s.limit) jobs.resize(s.limit);
    std::vector<std::string> ids;
    ids.reserve(jobs.size());
    for (const JobDescription& job : jobs) ids.push_back(job.id.job);
    return ids;
  }

  TempDir dir_{TempDir::Memory()};
};

TEST_F(IndexTest, SelectsWhatLookingAtEveryProfileWould) {
  const std::vector<JobDescription> jobs = FillMixed(60);
  const auto check = [&](const Archive& archive, unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 200; ++i) {
      const Selection selection = RandomSelection(random);
      EXPECT_EQ(Jobs(archive, selection), Expected(jobs, selection)) << "selection " << i;
      const auto page = archive.SelectPage(selection, kTestStart + 1'000'000 * kSecond);
      ASSERT_TRUE(page.ok()) << page.status().message();
      Selection all = selection;
      all.offset = 0;
      all.limit = std::numeric_limits<size_t>::max();
      EXPECT_EQ(page->found, Expected(jobs, all).size()) << "selection " << i;
      EXPECT_EQ(page->profiles.size(), Expected(jobs, selection).size());
    }
  };
  check(*Open().reader, 1);
  EXPECT_TRUE(Verify().ok());
  MakeOld();
  check(*Open().reader, 2);
}

// Archives from before the longest step was noted have two numbers there.
TEST_F(IndexTest, FindsStepsByTheirEndWhereNobodyNotedTheLongest) {
  JobDescription job = TestJob("1");
  job.end = job.start + 100 * kSecond;
  FinishStep(job);
  { Open(); }
  Change([](leveldb::DB& db) {
    for (const std::string& key : KeysFrom(db, "a")) {
      db.Put({}, key, TotalsToBytes({1, ReadTotals(db)->bytes, std::nullopt}));
    }
  });
  EXPECT_TRUE(Verify().ok());
  Selection selection;
  selection.lasting_to = job.end;
  FinishStep(TestJob("2"));
  EXPECT_THAT(Jobs(*Open().reader, selection), ElementsAre("1"));
  EXPECT_TRUE(Verify().ok());
  ++selection.lasting_to;
  EXPECT_THAT(Jobs(*Open().reader, selection), IsEmpty());
}

// A step that runs is in both for a moment, when its head begins anew.
TEST_F(IndexTest, CountsAStepThatIsStoredAndRunsOnce) {
  FillMixed(20);
  JobDescription again = TestJob("again", kTestStart + 60 * kSecond);
  FinishStep(again);
  { Open(); }
  auto live = LiveArchive::Create(root(), again);
  ASSERT_TRUE(live.ok()) << live.status().message();
  auto other = LiveArchive::Create(root(), TestJob("other", kTestStart + 61 * kSecond));
  ASSERT_TRUE(other.ok()) << other.status().message();
  const auto archive = Open();
  for (const size_t offset : {0u, 3u}) {
    for (const char* word : {"", "0"}) {  // all, and those of step 0, which all are
      Selection selection;
      selection.limit = 5;
      selection.offset = offset;
      if (*word != 0) selection.search.emplace_back(word);
      const auto page = archive.reader->SelectPage(selection, kTestStart + 100 * kSecond);
      ASSERT_TRUE(page.ok()) << page.status().message();
      EXPECT_EQ(page->found, 22u);
      ASSERT_EQ(page->profiles.size(), 5u);
      EXPECT_EQ(page->profiles.front().running, offset == 0);
    }
  }
}

TEST_F(IndexTest, SortsByWhatIsAskedForAndPutsTheUnmeasuredLast) {
  for (int i = 0; i < 3; ++i) {
    JobDescription job = TestJob(std::to_string(i), kTestStart + i * kSecond);
    job.expected_nodes = static_cast<uint32_t>((i + 1) % 3);
    FinishStep(job);
  }
  auto live = LiveArchive::Create(root(), TestJob("3", kTestStart));
  ASSERT_TRUE(live.ok());
  const auto archive = Open();
  Selection selection;
  selection.sort = SortBy::kNodes;
  selection.limit = 2;
  EXPECT_THAT(Jobs(*archive.reader, selection), ElementsAre("1", "3"));
  selection.reverse = true;
  EXPECT_THAT(Jobs(*archive.reader, selection), ElementsAre("2", "0"));
  selection.sort = SortBy::kMemory;
  selection.limit = 4;
  EXPECT_THAT(Jobs(*archive.reader, selection), ElementsAre("2", "1", "0", "3"));
  selection.state = EndState::kRunning;
  EXPECT_THAT(Jobs(*archive.reader, selection), ElementsAre("3"));
}

TEST_F(IndexTest, AnArchiveWithoutIndexesGetsThemInSlices) {
  FillMixed(20);
  { Open(); }
  MakeOld();
  EXPECT_TRUE(Verify().ok());
  FinishStep(TestJob("new", kTestStart + 100 * kSecond));
  const auto archive = Open();
  EXPECT_TRUE(Verify().ok());
  auto complete = archive.owner->BuildIndexes(-1);
  ASSERT_TRUE(complete.ok());
  EXPECT_FALSE(*complete);
  std::vector<uint64_t> done;
  complete = archive.owner->BuildIndexes(kPatience, [&](uint64_t n, uint64_t total) {
    done.push_back(n);
    EXPECT_EQ(total, 21u);
  });
  ASSERT_TRUE(complete.ok()) << complete.status().message();
  EXPECT_TRUE(*complete);
  EXPECT_EQ(done.back(), 21u);
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << report.problems[0].what;
  EXPECT_GT(report.index_entries, 21u * 6);
}

TEST_F(IndexTest, EntriesFollowAStepThatGoesOn) {
  JobDescription job = TestJob();
  {
    auto head = LiveArchive::Create(root(), job);
    ASSERT_TRUE(head.ok());
    ASSERT_TRUE(PutReducedBlock(**head, 1, 0, 3).ok());
  }
  Selection lost;
  lost.state = EndState::kLost;
  EXPECT_THAT(Jobs(*Open().reader, lost), ElementsAre("123"));
  auto acting = LiveArchive::Continue(root(), job);
  ASSERT_TRUE(acting.ok()) << acting.status().message();
  ASSERT_TRUE((*acting)->PutProfile(TestProfile(job)).ok());
  ASSERT_TRUE((*acting)->Finish().ok());
  acting->reset();
  EXPECT_THAT(Jobs(*Open().reader, lost), IsEmpty());
  Selection completed;
  completed.state = EndState::kCompleted;
  EXPECT_THAT(Jobs(*Open().reader, completed), ElementsAre("123"));
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << report.problems[0].what;
  Change([](leveldb::DB& db) {
    const auto totals = ReadTotals(db, "ada");
    ASSERT_TRUE(totals.ok());
    EXPECT_EQ(totals->profiles, 1u);
    EXPECT_EQ(totals->longest, 10 * kSecond);
    EXPECT_EQ(*totals, *ReadTotals(db));
  });
}

TEST_F(IndexTest, VerifyFindsWhatIsWrongWithTheIndexesAndRepairMendsIt) {
  FillMixed(5);
  { Open(); }
  const auto damage = [&](const char* what, const std::function<void(leveldb::DB&)>& f) {
    Change(f);
    const VerifyReport report = Verify();
    EXPECT_FALSE(report.ok()) << what;
    const auto repaired = RepairArchive(root(), kPatience, nullptr);
    ASSERT_TRUE(repaired.ok()) << repaired.status().message();
    const VerifyReport mended = Verify();
    EXPECT_TRUE(mended.ok()) << what << ": " << mended.problems[0].what;
    EXPECT_EQ(Jobs(*Open().reader, {}).size(), 5u) << what;
  };
  damage("no card", [](leveldb::DB& db) { db.Put({}, KeysFrom(db, "t")[0], ""); });
  damage("another card", [](leveldb::DB& db) {
    db.Put({}, KeysFrom(db, "t")[0], MakeCard(TestProfile(TestJob()), 77));
  });
  damage("no card at all", [](leveldb::DB& db) { db.Put({}, KeysFrom(db, "t")[0], "\1garbage"); });
  damage("a lost entry", [](leveldb::DB& db) { db.Delete({}, KeysFrom(db, "ie")[0]); });
  damage("an entry too many", [](leveldb::DB& db) {
    db.Put({}, keys::ByTerm(keys::Term::kTag, "x=y", TestJob("0")), "");
  });
  damage("wrong totals", [](leveldb::DB& db) { db.Put({}, "a", TotalsToBytes({4, 4, 0})); });
  damage("a step that lasted longer than it is said", [](leveldb::DB& db) {
    auto totals = ReadTotals(db);
    ASSERT_TRUE(totals.ok() && totals->longest);
    --*totals->longest;
    db.Put({}, "a", TotalsToBytes(*totals));
  });
  damage("no totals", [](leveldb::DB& db) { db.Delete({}, KeysFrom(db, "a")[1]); });
}

TEST_F(IndexTest, TasksOfAnArrayAreFoundByEveryIdTheyHave) {
  for (int task = 1; task <= 3; ++task) {
    JobDescription job = TestJob(std::to_string(500 + task), kTestStart + task * kSecond);
    job.array_job = "503";
    job.array_task = std::to_string(task);
    FinishStep(job);
  }
  const auto archive = Open();
  const auto found = [&](const char* id) {
    return archive.reader->Find(JobStep::Parse(id))->size();
  };
  EXPECT_EQ(found("503"), 3u);
  EXPECT_EQ(found("503_2"), 1u);
  EXPECT_EQ(found("503_2.0"), 1u);
  EXPECT_EQ(found("502"), 1u);
  EXPECT_EQ(found("503_4"), 0u);
}

}  // namespace
}  // namespace sonde::profiles_index_test
