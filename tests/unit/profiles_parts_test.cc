// A step that its head began and an acting head ended: parts that come in any order, more than
// once, and with a kill in between, make one profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <map>

#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/model/parts.h"
#include "profiles/model/profile.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_parts_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

constexpr Nanos kForever = std::numeric_limits<Nanos>::max();

Nanos At(int tick) { return kTestStart + tick * kSecond; }

// A reduced row for each tick from first + 1 on, of the node 0 alone or of both.
Status PutRows(LiveArchive& live, uint64_t sequence, int first, int rows, uint32_t nodes) {
  const auto schema = ReducedSchema(TaskSeries());
  const auto n = static_cast<size_t>(rows);
  std::vector<double> columns(schema->size() * n);
  for (size_t i = 0; i < n; ++i) {
    const int tick = first + static_cast<int>(i) + 1;
    Reduced values[2];
    for (uint32_t node = 0; node < nodes; ++node) {
      values[0].Add(TestCpu(tick, node), {node, Owner::kNobody});
      values[1].Add(TestMemory(node), {node, Owner::kNobody});
    }
    for (size_t s = 0; s < 2; ++s) {
      double row[kStatColumns];
      ToColumns(values[s], row);
      for (size_t k = 0; k < kStatColumns; ++k) columns[(s * kStatColumns + k) * n + i] = row[k];
    }
  }
  return live.PutBlock({kReducedNode, "task", sequence}, *schema,
                       MakeBlock(*schema, TestTimes(first, rows), columns));
}

class PartsTest : public testing::Test {
 protected:
  // Ticks 1 to 12; the last three only of one node. Killed.
  void WriteHead() {
    auto head = *LiveArchive::Create(source(), TestJob());
    ASSERT_TRUE(PutRows(*head, 1, 0, 9, 2).ok());
    ASSERT_TRUE(PutRows(*head, 2, 9, 3, 1).ok());
    ASSERT_TRUE(PutNodeBlock(*head, 0, 1, 0, 10).ok());
    ASSERT_TRUE(PutNodeBlock(*head, 1, 1, 0, 9).ok());
    StepMoments moments;
    moments.phases = {{"solve", At(2), 0, 0, 4, 0, {1, 3}}};
    moments.remarks = {{"half way", At(5), At(5), 4, {}}};
    JobDescription job = TestJob();
    job.notes = {"from the head"};
    job.figures = {{"speed", "cells/s", 7, 2, At(3), 0, 0}};
    ASSERT_TRUE(head->PutDescription(job).ok());
    ASSERT_TRUE(head->PutMoments(job, moments).ok());
    Keep(std::move(head), "head");
  }
  // Ticks 11 to 20 of both; ends in order.
  void WriteActing(EndState state = EndState::kCompleted) {
    auto acting = *LiveArchive::Continue(source(), TestJob());
    ASSERT_TRUE(PutRows(*acting, 1, 10, 10, 2).ok());
    // The first of them the head has as well, and the same.
    ASSERT_TRUE(PutNodeBlock(*acting, 0, 1, 0, 10).ok());
    ASSERT_TRUE(PutNodeBlock(*acting, 0, 2, 10, 10).ok());
    ASSERT_TRUE(PutNodeBlock(*acting, 1, 2, 9, 11).ok());
    Profile profile;
    profile.job = TestJob();
    profile.job.state = state;
    profile.job.exit_status = 0x100;
    profile.job.end = At(20);
    for (NodeInfo& node : profile.job.nodes) node.left = At(20);
    profile.job.notes = {"from the acting head"};
    profile.job.figures = {{"speed", "cells/s", 9, 1, At(19), 0, 0}};
    profile.moments.phases = {{"solve", At(12), At(18), 0, 0, 4, {1, 3}}};
    profile.moments.remarks = {{"nearly there", At(17), At(17), 4, {}}};
    profile.cost = {0.5, 2e6, 1000, 0};
    ASSERT_TRUE(acting->PutProfile(profile).ok());
    ASSERT_TRUE(acting->Finish().ok());
    Keep(std::move(acting), "acting");
  }
  // Its directory, to be put into archives.
  void Keep(std::unique_ptr<LiveArchive> live, const std::string& name) {
    const std::string path = live->path();
    live.reset();
    fs::rename(path, dir_.path() + "/" + name);
  }
  // Into the archive as it would lie there: a second writer's name has a suffix.
  void Arrive(const std::string& part) {
    const std::string key = "frost.123.0." + std::to_string(kTestStart);
    std::string target = root() + "/live/" + key;
    for (int i = 2; fs::exists(target); ++i) {
      target = root() + "/live/" + key + "~" + std::to_string(i);
    }
    fs::create_directories(root() + "/live");
    fs::copy(dir_.path() + "/" + part, target, fs::copy_options::recursive);
  }
  void Ingest() {
    const auto archive = OpenArchive(root(), 0);
    ASSERT_TRUE(archive.ok()) << archive.status().message();
    EXPECT_EQ(archive->reader->note(), "");
    EXPECT_TRUE(fs::is_empty(root() + "/live"));
  }
  // Everything the archive says of the step, as text.
  std::string Said() {
    const auto archive = *OpenArchive(root(), 0);
    const auto list = *archive.reader->List();
    EXPECT_EQ(list.size(), 1u);
    if (list.empty()) return "";
    std::string said =
        ProfileToJson(*archive.reader->Load(list[0].key)) + DescriptionToJson(list[0].job);
    for (const auto scope : {SeriesScope::kNodes, SeriesScope::kReduced}) {
      std::map<std::string, std::string> series;
      const auto read = archive.reader->Read(list[0].key, scope, nullptr, 0, kForever);
      EXPECT_TRUE(read.ok());
      for (const SeriesData& data : *read) {
        std::string& text = series[SeriesName(data.series.metric.name, data.series.tags)];
        for (const Point& p : data.points) {
          text += std::to_string(p.time) + "=" + std::to_string(p.value) + " ";
        }
      }
      for (const auto& [name, text] : series) said += name + ": " + text + "\n";
    }
    return said;
  }
  Profile Load() {
    const auto archive = *OpenArchive(root(), 0);
    return *archive.reader->Load(archive.reader->List()->at(0).key);
  }
  // What an archive says that got the parts in that order, each in one go.
  std::string InOrder(const std::vector<std::string>& parts) {
    fs::remove_all(root());
    for (const std::string& part : parts) {
      Arrive(part);
      Ingest();
    }
    return Said();
  }
  std::string root() const { return dir_.path() + "/archive"; }
  std::string source() const { return dir_.path() + "/source"; }

  TempDir dir_;
};

TEST_F(PartsTest, AHeadThatWasKilledAndAnActingOneMakeOneProfile) {
  WriteHead();
  WriteActing();
  InOrder({"head", "acting"});
  const Profile whole = Load();
  EXPECT_EQ(whole.job.state, EndState::kCompleted);
  EXPECT_EQ(whole.job.exit_status, 0x100);
  EXPECT_EQ(whole.job.end, At(20));
  EXPECT_EQ(whole.job.coverage.expected, 42u);
  EXPECT_EQ(whole.job.coverage.got, 39u) << "of tick 10 only one node is known";
  ASSERT_EQ(whole.job.nodes.size(), 2u);
  EXPECT_EQ(whole.job.nodes[1].joined, kTestStart);
  EXPECT_EQ(whole.job.nodes[1].left, At(20));
  EXPECT_THAT(whole.job.notes, Contains("from the head"));
  EXPECT_THAT(whole.job.notes, Contains("from the acting head"));
  EXPECT_THAT(whole.job.notes, Contains(HasSubstr("The head was killed")));
  EXPECT_THAT(whole.job.notes, Contains(HasSubstr("went on as acting head")));
  EXPECT_THAT(whole.job.notes, Not(Contains(HasSubstr("end of the step is not known"))));
  ASSERT_EQ(whole.footprint.size(), 2u);
  EXPECT_EQ(whole.footprint[0].ticks, 20u);
  EXPECT_EQ(whole.footprint[0].last, TestCpu(20, 0) + TestCpu(20, 1));
  ASSERT_EQ(whole.job.figures.size(), 1u);
  EXPECT_EQ(whole.job.figures[0].value, 9);
  EXPECT_EQ(whole.job.figures[0].count, 3u);
  const std::vector<Phase> solve = {{"solve", At(2), At(18), 0, 4, 4, {1, 3}}};
  EXPECT_EQ(whole.moments.phases, solve);
  EXPECT_EQ(whole.moments.remarks.size(), 2u);
  EXPECT_EQ(whole.cost.cpu_seconds, 0.5);
  EXPECT_GT(whole.cost.stored_bytes, 0);
}

// Each told of ticks 1 to 9 or 10 as the head did; of tick 10 to 12 there are rows of both.
TEST(PartsPresence, IsWhatAllSayAndElseNotKnown) {
  const auto part = [](const char* id, EndState state, int end, std::vector<PresenceRun> runs) {
    Part one;
    one.id = PartId::Parse(id);
    one.profile.job = TestJob();
    one.profile.job.state = state;
    one.profile.job.end = At(end);
    one.profile.job.presence = std::move(runs);
    return one;
  };
  const auto killed = [&](std::vector<PresenceRun> runs) {
    return part("head a 1 1", EndState::kRunning, 12, std::move(runs));
  };
  const auto acting = [&](std::vector<PresenceRun> runs) {
    return part("acting b 1 1", EndState::kCompleted, 20, std::move(runs));
  };
  const auto merged = [](const std::vector<Part>& parts) {
    const auto runs = MergeParts(parts).job.presence;
    EXPECT_EQ(MergeParts({parts[1], parts[0]}).job.presence, runs);
    return runs;
  };
  const PresenceRun both = {At(1), 2, 2, 0, 0};
  const PresenceRun gone = {At(15), 1, 0, 1, 0};
  EXPECT_EQ(merged({killed({both}), acting({both, gone})}), (std::vector<PresenceRun>{both, gone}));
  // One says that a node is missing from tick 10 on, the other has it until 12.
  const PresenceRun missing = {At(10), 1, 0, 1, 0};
  EXPECT_EQ(merged({killed({both}), acting({both, missing})}),
            (std::vector<PresenceRun>{both, {At(10), 0, 0, 0, At(10)}, {At(13), 1, 1, 0, At(9)}}));
  EXPECT_TRUE(merged({killed({}), acting({both})}).empty()) << "of an earlier release";
}

// Each of two heads goes on with one of the two nodes, and tells the same numbers of it.
TEST(PartsPresence, EqualRunsOfTwoHeadsAreOfDifferentNodes) {
  const PresenceRun both = {At(1), 2, 2, 0, 0};
  const PresenceRun one = {At(10), 1, 0, 1, 0};
  const PresenceRun back = {At(15), 2, 1, 0, At(9)};
  std::vector<Part> parts(2);
  for (Part& part : parts) {
    part.profile.job = TestJob();
    part.profile.job.end = At(20);
    part.profile.job.presence = {both, one, back};
  }
  parts[0].id = PartId::Parse("head a 1 1");
  parts[1].id = PartId::Parse("acting b 1 1");
  parts[1].profile.job.presence_from = At(8);
  const PresenceRun mixed = {At(10), 0, 0, 0, At(10)};
  const PresenceRun all_came = {At(15), 2, 2, 0, At(9)};
  const JobDescription job = MergeParts(parts).job;
  EXPECT_EQ(job.presence, (std::vector<PresenceRun>{both, mixed, all_came}));
  EXPECT_EQ(job.presence_from, 0);
  // The acting head has seen nothing of it: it repeats what the head had stored.
  parts[1].profile.job.presence_from = At(12);
  EXPECT_EQ(MergeParts(parts).job.presence, (std::vector<PresenceRun>{both, one, back}));
}

TEST_F(PartsTest, OfATickInBothTheRowOfMoreNodesCounts) {
  WriteHead();
  WriteActing();
  InOrder({"head", "acting"});
  const auto archive = *OpenArchive(root(), 0);
  const std::string key = archive.reader->List()->at(0).key;
  const auto sum = archive.reader->Read(
      key, SeriesScope::kReduced,
      [](const Series& s) {
        return s.metric.name == "task_cpu_seconds_total" && *s.tags.Find(kStatTag) == "sum";
      },
      0, kForever);
  ASSERT_EQ(sum->size(), 1u);
  ASSERT_EQ((*sum)[0].points.size(), 20u);
  for (int tick = 1; tick <= 20; ++tick) {
    const Point expected{At(tick), TestCpu(tick, 0) + (tick == 10 ? 0 : TestCpu(tick, 1))};
    EXPECT_EQ((*sum)[0].points[static_cast<size_t>(tick - 1)], expected) << tick;
  }
  const auto nodes = archive.reader->Read(key, SeriesScope::kNodes, nullptr, 0, kForever);
  for (const SeriesData& series : *nodes) EXPECT_EQ(series.points.size(), 20u);
}

// Where blocks of two writers overlap, each span has the better rows once, wherever it ends.
TEST_F(PartsTest, OfATickInBothTheRowOfMoreNodesCountsInSpansOfAnyLength) {
  auto live = *LiveArchive::Create(root(), TestJob());
  ASSERT_TRUE(PutRows(*live, 1, 0, 30, 2).ok());
  ASSERT_TRUE(PutRows(*live, 2, 15, 30, 1).ok());
  ASSERT_TRUE(PutNodeBlock(*live, 0, 1, 0, 30).ok());
  ASSERT_TRUE(PutNodeBlock(*live, 0, 2, 15, 30).ok());
  Profile profile;
  profile.job = TestJob();
  profile.job.end = At(45);
  ASSERT_TRUE(live->PutProfile(profile).ok());
  ASSERT_TRUE(live->Finish().ok());
  live.reset();
  const auto archive = *OpenArchive(root(), 0);
  const std::string key = archive.reader->List()->at(0).key;
  for (const SeriesScope scope : {SeriesScope::kReduced, SeriesScope::kNodes}) {
    for (int span = 1; span <= 50; ++span) {
      RowsWanted wanted;
      wanted.window = span * kSecond;
      int tick = 0;
      ASSERT_TRUE(archive.reader
                      ->ReadRows(key, scope, wanted,
                                 [&](const StoredRow& row) {
                                   ++tick;
                                   EXPECT_EQ(row.time(), At(tick));
                                   const bool both = scope == SeriesScope::kReduced && tick <= 30;
                                   const double sum =
                                       TestCpu(tick, 0) + (both ? TestCpu(tick, 1) : 0);
                                   const size_t column = scope == SeriesScope::kReduced ? 1 : 0;
                                   EXPECT_EQ(row.block.Column(column)[row.row], sum) << tick;
                                   return Status();
                                 })
                      .ok());
      ASSERT_EQ(tick, 45) << "spans of " << span << " s";
      ASSERT_FALSE(HasFailure()) << "spans of " << span << " s";
    }
  }
}

TEST_F(PartsTest, InWhateverOrderAndHoweverOftenTheyComeItSaysTheSame) {
  WriteHead();
  WriteActing();
  const std::string once = InOrder({"head", "acting"});
  EXPECT_EQ(InOrder({"acting", "head"}), once);
  EXPECT_EQ(InOrder({"head", "acting", "head", "acting"}), once);
  EXPECT_EQ(InOrder({"acting", "acting", "head"}), once);
  // Both at once.
  fs::remove_all(root());
  Arrive("acting");
  Arrive("head");
  Ingest();
  EXPECT_EQ(Said(), once);
}

TEST_F(PartsTest, AKillWhereverItHitsChangesNothing) {
  WriteHead();
  WriteActing();
  const std::string once = InOrder({"head", "acting"});
  int killed = 0;
  for (int delay = 0; delay < 12'000; delay += 400) {
    fs::remove_all(root());
    Arrive("acting");
    Arrive("head");
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      (void)OpenArchive(root(), 0);
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(delay));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    Ingest();
    ASSERT_EQ(Said(), once) << "killed after " << delay << " us";
  }
  EXPECT_GT(killed, 0);
}

TEST_F(PartsTest, AnActingHeadThatIsKilledTooLeavesALostStep) {
  WriteHead();
  {
    auto acting = *LiveArchive::Continue(source(), TestJob(), "n2");
    ASSERT_TRUE(PutRows(*acting, 1, 12, 4, 2).ok());
    Keep(std::move(acting), "acting");
  }
  const std::string once = InOrder({"head", "acting"});
  EXPECT_EQ(InOrder({"acting", "head"}), once);
  const Profile whole = Load();
  EXPECT_EQ(whole.job.state, EndState::kLost);
  EXPECT_EQ(whole.job.end, At(16));
  EXPECT_EQ(whole.footprint[0].ticks, 16u);
  EXPECT_THAT(whole.job.notes, Contains(HasSubstr("The acting head on n2 was killed")))
      << "by the node's name";
  EXPECT_THAT(whole.job.notes, Contains("The end of the step is not known."));
}

TEST_F(PartsTest, AHeadThatFinishedAllTheSameHasTheLastWord) {
  {
    auto head = *LiveArchive::Create(source(), TestJob());
    ASSERT_TRUE(PutRows(*head, 1, 0, 20, 2).ok());
    Profile profile;
    profile.job = TestJob();
    profile.job.state = EndState::kFailed;
    profile.job.end = At(20);
    ASSERT_TRUE(head->PutProfile(profile).ok());
    ASSERT_TRUE(head->Finish().ok());
    Keep(std::move(head), "head");
  }
  WriteActing(EndState::kCancelled);
  const std::string once = InOrder({"head", "acting"});
  EXPECT_EQ(InOrder({"acting", "head"}), once);
  EXPECT_EQ(Load().job.state, EndState::kFailed);
  EXPECT_EQ(Load().footprint[0].ticks, 20u);
}

// All its nodes had gone to an acting head, which it could not reach.
TEST_F(PartsTest, AHeadThatDoesNotKnowTheEndLeavesItToAnActingOne) {
  {
    auto head = *LiveArchive::Create(source(), TestJob());
    ASSERT_TRUE(PutRows(*head, 1, 0, 10, 2).ok());
    Profile profile;
    profile.job = TestJob();
    profile.job.state = EndState::kLost;
    profile.job.end = At(20);
    ASSERT_TRUE(head->PutProfile(profile).ok());
    ASSERT_TRUE(head->Finish().ok());
    Keep(std::move(head), "head");
  }
  WriteActing();
  const std::string once = InOrder({"head", "acting"});
  EXPECT_EQ(InOrder({"acting", "head"}), once);
  EXPECT_EQ(Load().job.state, EndState::kCompleted);
  EXPECT_EQ(Load().job.exit_status, 0x100);
  EXPECT_THAT(Load().job.notes, Not(Contains(HasSubstr("end of the step is not known"))));
}

TEST_F(PartsTest, AHeadThatYieldedToAnActingOneWasNotKilled) {
  const std::string note = std::string(kYieldedNote) + " frost1, and it came back";
  {
    auto head = *LiveArchive::Create(source(), TestJob());
    ASSERT_TRUE(PutRows(*head, 1, 0, 10, 2).ok());
    JobDescription job = TestJob();
    job.notes = {note};
    ASSERT_TRUE(head->PutDescription(job).ok());
    Keep(std::move(head), "head");
  }
  WriteActing();
  InOrder({"head", "acting"});
  EXPECT_EQ(Load().job.state, EndState::kCompleted);
  EXPECT_THAT(Load().job.notes, Contains(note));
  EXPECT_THAT(Load().job.notes, Not(Contains(HasSubstr("was killed"))));
}

// A node that ended before another head took over has its series in the part of the head before,
// also once somebody has taken that one in.
TEST_F(PartsTest, WhileAnActingHeadRunsTheNodesSeriesAreOfAllParts) {
  WriteHead();
  Arrive("head");
  const auto acting = *LiveArchive::Continue(root(), TestJob());
  ASSERT_TRUE(acting->PutDescription(TestJob()).ok());
  ASSERT_TRUE(PutNodeBlock(*acting, 0, 1, 0, 10).ok());
  ASSERT_TRUE(PutNodeBlock(*acting, 0, 2, 10, 10).ok());
  const std::string key = "frost.123.0." + std::to_string(kTestStart);
  const auto points = [&] {
    std::map<std::string, size_t> of;  // by host
    const auto archive = *Archive::Open(root());
    const auto all = [](const Series& series) {
      return series.metric.name == "task_cpu_seconds_total";
    };
    const auto read = archive->Read(key, SeriesScope::kNodes, all, 0, kForever);
    EXPECT_TRUE(read.ok()) << read.status().message();
    if (!read.ok()) return of;
    for (const SeriesData& one : *read) of[*one.series.tags.Find("host")] = one.points.size();
    return of;
  };
  const std::map<std::string, size_t> expected = {{"n1", 20}, {"n2", 9}};
  EXPECT_EQ(points(), expected);
  ASSERT_TRUE(OpenArchive(root(), 0).ok());
  EXPECT_EQ(points(), expected) << "taken in";
}

TEST_F(PartsTest, APartThatStandsAloneSaysSo) {
  WriteActing();
  InOrder({"acting"});
  EXPECT_EQ(Load().job.state, EndState::kCompleted);
  EXPECT_EQ(Load().job.notes.at(0), "from the acting head");
}

TEST(PartId, IsReadBackAndTakesAnything) {
  const PartId id = PartId::Make(true);
  const PartId back = PartId::Parse(id.text);
  EXPECT_TRUE(back.acting);
  EXPECT_EQ(back.host, id.host);
  EXPECT_FALSE(PartId::Parse(PartId::Make(false).text).acting);
  EXPECT_FALSE(PartId::Parse("").acting);
  EXPECT_EQ(PartId::Parse(std::string(10'000, 'x')).text.size(), kMaxPartId);
}

}  // namespace
}  // namespace sonde::profiles_parts_test
