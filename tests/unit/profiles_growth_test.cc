// Profiles that a later version of Sonde wrote: what this version does not know is shown as
// unknown, and is there again after every change that this version makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "profiles/archive/open_archive.h"
#include "profiles/archive/owned_archive.h"
#include "profiles/json/parse.h"
#include "profiles/live/live_archive.h"
#include "profiles/model/parts.h"
#include "profiles/records/keys.h"
#include "profiles/records/profile_file.h"
#include "profiles/records/tags.h"
#include "profiles/report/report.h"
#include "profiles/select/select.h"
#include "profiles/upkeep/import.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/repair.h"
#include "profiles/upkeep/retention.h"
#include "profiles/upkeep/verify.h"
#include "series/sketch/sketch.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_growth_test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr Nanos kPatience = 60 * kSecond;
constexpr Nanos kAllTime = std::numeric_limits<Nanos>::max();

// A profile that has each kind of object at least once.
Profile EveryKind() {
  Profile p;
  p.job = TestJob();
  p.job.state = EndState::kCompleted;
  p.job.end = kTestStart + 20 * kSecond;
  p.job.presence = {{kTestStart + kSecond, 2, 2, 0, 0}, {kTestStart + 5 * kSecond, 1, 0, 1, 0}};
  p.job.figures.push_back({"speed", "1", 3, 1, kTestStart, 0, 1});
  FootprintEntry e;
  e.series = TestSeries("load", MetricType::kGauge, {}, Reduction::kMean);
  e.series.metric.spread = true;
  e.spread = SpreadOverTime{{1, 2, 3, 4}, {1, 2, 3, 4}};
  e.ticks = 3;
  e.min_owner = {0, 1};
  e.max_owner = {1, 2};
  p.footprint.push_back(e);
  const Owner by{0, 1};
  p.moments.phases.push_back({"solve", kTestStart, kTestStart + kSecond, 0, 1, 1, by});
  p.moments.remarks.push_back({"mesh read", kTestStart, kTestStart, 1, by});
  NamedSketch sketch;
  sketch.series = TestSeries("wait_seconds", MetricType::kHistogram);
  sketch.sketch.Add(100, 2);
  sketch.sketch.AddSum(2, 1, 1);
  p.moments.distributions.push_back(sketch);
  p.moments.alarms.push_back({"hot", "critical", "it is hot", {}, kTestStart, 0, 1, by});
  return p;
}

// The same JSON with a member of a later version in every object whose members are not names that
// somebody has chosen, and how many there are. No text of it has braces.
std::string Grown(std::string_view json, size_t& count) {
  constexpr std::string_view kLater =
      R"("later":{"n":[1,-2,18446744073709551615,0.1,null,true],"text":"\u0001\"x"},)";
  std::string grown;
  for (const char c : json) {
    const bool of_people = grown.ends_with("\"tags\":") || grown.ends_with("\"environment\":");
    grown.push_back(c);
    if (c != '{' || of_people) continue;
    grown.append(kLater);
    ++count;
  }
  return grown;
}

size_t CountLater(std::string_view text) {
  size_t n = 0;
  for (size_t at = text.find("\"later\":"); at != std::string_view::npos;
       at = text.find("\"later\":", at + 1)) {
    ++n;
  }
  return n;
}

TEST(GrowthTest, MembersOfALaterVersionSurviveARewriteInEveryObject) {
  size_t added = 0;
  const std::string grown = Grown(ProfileToJson(EveryKind()), added);
  EXPECT_GE(added, 22u);
  const auto read = ProfileFromJson(grown);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const std::string again = ProfileToJson(*read);
  EXPECT_EQ(CountLater(again), added) << again;
  const auto before = ParseJson(grown, "test"), after = ParseJson(again, "test");
  EXPECT_TRUE(*before == *after) << grown << "\n" << again;
}

TEST(GrowthTest, MembersOfALaterVersionSurviveThatPartsArePutTogether) {
  size_t added = 0;
  const auto grown = ProfileFromJson(Grown(ProfileToJson(EveryKind()), added));
  ASSERT_TRUE(grown.ok());
  for (const bool first : {true, false}) {
    Part head{PartId::Parse("head n1 1 1"), first ? *grown : EveryKind()};
    Part acting{PartId::Parse("acting n2 1 2"), first ? EveryKind() : *grown};
    Profile merged = MergeParts({head, acting});
    size_t all = 0;
    Profile plain = EveryKind();
    plain.footprint.clear();
    Grown(ProfileToJson(plain), all);
    EXPECT_EQ(CountLater(ProfileToJson(merged)), all);
  }
}

TEST(GrowthTest, WordsAndNumbersOfALaterVersionAreUnknownAndWrittenAgain) {
  Profile p = EveryKind();
  std::string json = ProfileToJson(p);
  const auto replace = [&](std::string_view from, std::string_view to) {
    const size_t at = json.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    json.replace(at, from.size(), to);
  };
  replace(R"("state":"completed")", R"("state":"revoked")");
  replace(R"("type":"gauge","level":1,"reduction":"mean")",
          R"("type":"summary","level":7,"reduction":"median")");
  replace(R"("level":2)", R"("level":9)");
  replace(R"("severity":"critical")", R"("severity":"fatal")");
  const auto read = ProfileFromJson(json);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(ToString(read->job.state), "unknown");
  EXPECT_EQ(ToString(read->footprint[0].series.metric.type), "unknown");
  EXPECT_EQ(ToString(read->footprint[0].series.metric.reduction), "unknown");
  EXPECT_EQ(ProfileToJson(*read), json);
  EXPECT_THAT(RenderReport(*read, {}), HasSubstr("unknown"));
}

// Schemas of a later version: the same form, with types, levels and reductions that it has added.
std::vector<Series> LaterSeries() {
  std::vector<Series> series = TaskSeries();
  series[1].metric.type = static_cast<MetricType>(7);
  series[1].metric.level = 9;
  series[1].metric.reduction = static_cast<Reduction>(12);
  return series;
}

TEST(GrowthTest, ASchemaWithAnUnknownTypeKeepsItsIdAndItsBytes) {
  const auto schema = Schema::Make(LaterSeries());
  const auto read = Schema::Decode(schema->encoded());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ((*read)->id(), schema->id());
  EXPECT_EQ(ToString((**read)[1].metric.type), "unknown");
  EXPECT_EQ(ToString((**read)[0].metric.type), "counter");
}

// An archive of one profile that a later version wrote.
class GrownArchiveTest : public testing::Test {
 protected:
  std::string root(const std::string& name = "archive") const { return dir_.path() + "/" + name; }
  ArchivePaths paths(const std::string& name = "archive") const { return ArchivePaths(root(name)); }
  std::string key() const { return keys::ProfileKey(TestJob()); }
  std::string OtherKey(char kind) const { return kind + key() + '\0' + "name"; }

  void Fill() {
    {
      auto live = LiveArchive::Create(root(), TestJob());
      ASSERT_TRUE(live.ok());
      const auto schema = Schema::Make(LaterSeries());
      std::vector<double> columns = {1, 2, 30, 40};
      ASSERT_TRUE(
          (*live)
              ->PutBlock({0, "task", 1}, *schema, MakeBlock(*schema, TestTimes(0, 2), columns))
              .ok());
      ASSERT_TRUE(PutNodeBlock(**live, 1, 1, 0, 5).ok());
      ASSERT_TRUE((*live)->PutProfile(EveryKind()).ok());
      ASSERT_TRUE((*live)->Finish().ok());
    }
    // What the later version puts besides.
    leveldb::DB* db = nullptr;
    leveldb::Options options;
    const std::string live = paths().live() + "/" + key();
    ASSERT_TRUE(leveldb::DB::Open(options, live + "/blocks", &db).ok());
    const std::unique_ptr<leveldb::DB> owner(db);
    size_t added = 0;
    Profile profile = EveryKind();
    std::string json = Grown(ProfileToJson(profile), added);
    json.replace(json.find("\"completed\""), 11, "\"revoked\"");
    ASSERT_TRUE(db->Put({}, keys::Profile(key()), json).ok());
    ASSERT_TRUE(db->Put({}, OtherKey('e'), "later").ok());
    ASSERT_TRUE(db->Put({}, OtherKey('X'), std::string("\0\xff", 2)).ok());
    members_ = added;
  }
  void Ingest(const std::string& name = "archive") {
    const auto archive = OpenArchive(root(name), kPatience);
    ASSERT_TRUE(archive.ok()) << archive.status().message();
    ASSERT_EQ(archive->reader->note(), "");
  }
  std::map<std::string, std::string> Content(const std::string& name = "archive") {
    std::map<std::string, std::string> content;
    const auto db = OpenDb(paths(name));
    EXPECT_TRUE(db.ok());
    const std::unique_ptr<leveldb::Iterator> it((*db)->NewIterator({}));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      content[it->key().ToString()] = it->value().ToString();
    }
    return content;
  }
  // Everything of the later version is there.
  // NOLINTNEXTLINE(readability-function-size): one list of what must be there
  void ExpectAll(const std::string& name = "archive") {
    const auto content = Content(name);
    const auto value = [&](const std::string& at) {
      return content.contains(at) ? content.at(at) : "nothing";
    };
    EXPECT_EQ(value(OtherKey('e')), "later");
    EXPECT_EQ(value(OtherKey('X')), std::string("\0\xff", 2));
    EXPECT_EQ(CountLater(value(keys::Profile(key()))), members_);
    EXPECT_THAT(value(keys::Profile(key())), HasSubstr(R"("state":"revoked")"));
    EXPECT_TRUE(content.contains(keys::Schema(Schema::Make(LaterSeries())->id())));
    const auto verified = VerifyArchive(root(name), nullptr);
    ASSERT_TRUE(verified.ok());
    EXPECT_TRUE(verified->ok()) << verified->problems.front().what;
    EXPECT_EQ(verified->foreign, 2u);
    const auto archive = Archive::Open(root(name));
    ASSERT_TRUE(archive.ok());
    const auto series = (*archive)->Read(key(), SeriesScope::kNodes, nullptr, 0, kAllTime);
    ASSERT_TRUE(series.ok()) << series.status().message();
    EXPECT_EQ(series->size(), 4u);
    const auto profile = (*archive)->Load(key());
    ASSERT_TRUE(profile.ok()) << profile.status().message();
    EXPECT_EQ(ToString(profile->job.state), "unknown");
    const auto listed = (*archive)->Select({}, Clock::System().Now());
    ASSERT_TRUE(listed.ok());
    ASSERT_EQ(listed->size(), 1u);
    Card card;
    ASSERT_TRUE(DecodeCard(listed->front().card, card).ok());
    EXPECT_EQ(ToString(card.state), "unknown");
  }

  TempDir dir_;
  size_t members_ = 0;
};

TEST_F(GrownArchiveTest, IsIngestedTaggedRepairedAndTakenElsewhereAsItIs) {
  Fill();
  Ingest();
  ExpectAll();
  {
    auto db = OpenDb(paths());
    ASSERT_TRUE(db.ok());
    TagChange change;
    change.set["campaign"] = "winter";
    ASSERT_TRUE(ChangeTags(**db, key(), change).ok());
  }
  ExpectAll();
  ASSERT_TRUE(RepairArchive(root(), kPatience, nullptr).ok());
  ExpectAll();
  // As a file into another archive.
  std::string bytes;
  ProfileFileWriter writer([&](std::string_view text) {
    bytes += text;
    return Status();
  });
  {
    const auto archive = Archive::Open(root());
    ASSERT_TRUE(archive.ok());
    const auto left_out = (*archive)->ReadRecords(
        key(), [&](const FileRecord& record) { return writer.Write(record); });
    ASSERT_TRUE(left_out.ok()) << left_out.status().message();
    ASSERT_TRUE(writer.End().ok());
  }
  std::ofstream(root("p.sonde"), std::ios::binary) << bytes;
  const auto imported = ImportProfile(root("other"), root("p.sonde"), kPatience);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  ExpectAll("other");
}

TEST_F(GrownArchiveTest, RecordsOfALaterVersionGoWithTheirProfile) {
  Fill();
  Ingest();
  {
    auto db = OpenDb(paths());
    ASSERT_TRUE(db.ok());
    PruneWork work{.now = Clock::System().Now(), .budget = kPatience};
    PruneReport report;
    ASSERT_TRUE(PruneDb(**db, Retention{.age = kSecond}, work, report).ok());
    EXPECT_EQ(report.profiles, 1u);
  }
  for (const auto& [at, value] : Content()) {
    EXPECT_FALSE(at[0] == 'e' || at[0] == 'X') << at;
  }
}

TEST_F(GrownArchiveTest, AnUnknownStateIsFoundByItsNameAndByUnknown) {
  Fill();
  Ingest();
  const auto archive = Archive::Open(root());
  Selection selection;
  selection.state = EndState::kUnknown;
  const auto listed = (*archive)->Select(selection, Clock::System().Now());
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->size(), 1u);
  EXPECT_EQ(Content().count(keys::ByTerm(keys::Term::kState, "revoked", TestJob())), 1u);
}

}  // namespace
}  // namespace sonde::profiles_growth_test
