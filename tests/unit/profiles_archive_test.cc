#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <limits>
#include <thread>

#include "profiles/archive/ingest_one.h"
#include "profiles/archive/open_archive.h"
#include "profiles/disk/file_lock.h"
#include "profiles/disk/room.h"
#include "profiles/live/live_archive.h"
#include "profiles/live/live_steps.h"
#include "profiles/model/parts.h"
#include "profiles/records/keys.h"
#include "profiles/upkeep/ingest.h"
#include "profiles/upkeep/open_db.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_archive_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr Nanos kForever = std::numeric_limits<Nanos>::max();

class ArchiveTest : public testing::Test {
 protected:
  std::unique_ptr<LiveArchive> Create(const JobDescription& job = TestJob()) {
    auto live = LiveArchive::Create(root(), job);
    EXPECT_TRUE(live.ok()) << live.status().message();
    return *std::move(live);
  }
  // A step of `rows` ticks, ended in order.
  void FinishStep(const JobDescription& job = TestJob(), int rows = 10) {
    auto live = Create(job);
    for (uint32_t node : {0u, 1u}) ASSERT_TRUE(PutNodeBlock(*live, node, 1, 0, rows).ok());
    ASSERT_TRUE(PutReducedBlock(*live, 1, 0, rows).ok());
    Profile profile;
    profile.job = job;
    profile.job.state = EndState::kCompleted;
    profile.job.end = job.start + rows * kSecond;
    profile.job.coverage = {20, 20};
    profile.cost.cpu_seconds = 0.5;
    ASSERT_TRUE(live->PutProfile(profile).ok());
    const Status finished = live->Finish();
    ASSERT_TRUE(finished.ok()) << finished.message();
  }
  OpenedArchive Open(Nanos wait = 0) {
    auto archive = OpenArchive(root(), wait);
    EXPECT_TRUE(archive.ok()) << archive.status().message();
    return *std::move(archive);
  }
  std::vector<std::string> Live() const {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(root() + "/live")) {
      names.push_back(e.path().filename());
    }
    return names;
  }
  static std::vector<ProfileEntry> List(const Archive& archive, size_t limit = SIZE_MAX) {
    auto list = archive.List(limit);
    EXPECT_TRUE(list.ok()) << list.status().message();
    return *std::move(list);
  }
  static Profile Load(const Archive& archive, const std::string& key) {
    auto profile = archive.Load(key);
    EXPECT_TRUE(profile.ok()) << profile.status().message();
    return profile.ok() ? *std::move(profile) : Profile();
  }
  std::string root() const { return dir_.path() + "/archive"; }

  TempDir dir_;
};

TEST_F(ArchiveTest, AFinishedStepMovesIntoTheArchiveAndIsRead) {
  FinishStep();
  const auto archive = Open();
  EXPECT_EQ(archive.reader->note(), "");
  EXPECT_THAT(Live(), IsEmpty());
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_FALSE(list[0].live);
  EXPECT_EQ(list[0].job.name, "heat");
  EXPECT_EQ(Load(*archive.reader, list[0].key).job.state, EndState::kCompleted);

  const auto wanted = [](const Series& s) { return s.metric.name == "task_cpu_seconds_total"; };
  const auto nodes = archive.reader->Read(list[0].key, SeriesScope::kNodes, wanted, 0, kForever);
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ(*(*nodes)[1].series.tags.Find("host"), "n2");
  ASSERT_EQ((*nodes)[1].points.size(), 10u);
  EXPECT_EQ((*nodes)[1].points.back().value, TestCpu(10, 1));

  const auto reduced = archive.reader->Read(
      list[0].key, SeriesScope::kReduced,
      [&](const Series& s) { return wanted(s) && *s.tags.Find(kStatTag) == "sum"; },
      kTestStart + 3 * kSecond, kTestStart + 4 * kSecond);
  ASSERT_TRUE(reduced.ok());
  ASSERT_EQ(reduced->size(), 1u);
  EXPECT_EQ((*reduced)[0].points,
            (std::vector<Point>{{kTestStart + 3 * kSecond, 9}, {kTestStart + 4 * kSecond, 12}}));

  const auto all = archive.reader->AllSeries(list[0].key, SeriesScope::kNodes);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 4u);
}

TEST_F(ArchiveTest, ListsNewestFirstAndNoMoreThanAsked) {
  for (int i = 0; i < 30; ++i) FinishStep(TestJob(std::to_string(i), kTestStart + i * kSecond), 1);
  const auto archive = Open();
  const auto list = List(*archive.reader, 3);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].job.id.job, "29");
  EXPECT_EQ(list[2].job.id.job, "27");
  EXPECT_EQ(List(*archive.reader).size(), 30u);
}

TEST_F(ArchiveTest, FindsAllRunsOfARequeuedJobAndNoOtherJob) {
  FinishStep(TestJob("12", kTestStart));
  FinishStep(TestJob("12", kTestStart + kSecond));
  FinishStep(TestJob("123", kTestStart));
  const auto archive = Open();
  auto found = archive.reader->Find(JobStep::Parse("12"));
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].job.start, kTestStart + kSecond);
  EXPECT_EQ(archive.reader->Find(JobStep::Parse("12.0"))->size(), 2u);
  EXPECT_THAT(*archive.reader->Find(JobStep::Parse("12.1")), IsEmpty());
  EXPECT_THAT(*archive.reader->Find(JobStep::Parse("1")), IsEmpty());
}

TEST_F(ArchiveTest, StrangeNamesKeepTheirFiles) {
  JobDescription job = TestJob("../../evil.7");
  job.cluster = "a/b\n~2";
  FinishStep(job);
  const auto archive = Open();
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].job.id.job, "../../evil.7");
  EXPECT_EQ(archive.reader->Find(job.id)->size(), 1u);
}

TEST_F(ArchiveTest, ARunningStepIsShownAndNotTouched) {
  auto live = Create();
  ASSERT_TRUE(PutReducedBlock(*live, 1, 0, 10).ok());
  ASSERT_TRUE(live->PutEndpoint({"login1", "127.0.0.1", 4242, "secret", 815}).ok());
  const auto archive = Open();
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_TRUE(list[0].running);
  EXPECT_EQ(list[0].endpoint.host, "login1");
  EXPECT_EQ(list[0].endpoint.token, "secret");
  EXPECT_EQ(list[0].endpoint.address, "127.0.0.1");
  EXPECT_EQ(list[0].endpoint.pid, 815);
  EXPECT_EQ(list[0].job.state, EndState::kRunning);
  // What it has stored so far can be read while it writes on.
  const Profile so_far = Load(*archive.reader, list[0].key);
  EXPECT_EQ(so_far.job.state, EndState::kRunning);
  ASSERT_EQ(so_far.footprint.size(), 2u);
  EXPECT_EQ(so_far.footprint[0].last, TestCpu(10, 0) + TestCpu(10, 1));
  ASSERT_TRUE(PutReducedBlock(*live, 2, 10, 10).ok());
  EXPECT_EQ(Load(*archive.reader, list[0].key).footprint[0].ticks, 20u);
  ASSERT_TRUE(live->Finish().ok());
  EXPECT_FALSE(fs::exists(live->path() + "/endpoint.json"));
}

TEST_F(ArchiveTest, FilesAreTheUsersAlone) {
  auto live = Create();
  ASSERT_TRUE(live->PutEndpoint({"login1", "127.0.0.1", 4242, "secret"}).ok());
  struct stat info;
  for (const std::string& path : {root(), root() + "/live", live->path()}) {
    ASSERT_EQ(::stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_mode & 0777, 0700u) << path;
  }
  for (const char* name : {"/endpoint.json", "/description.json", "/lock"}) {
    ASSERT_EQ(::stat((live->path() + name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
}

TEST_F(ArchiveTest, AnAbandonedStepBecomesALostOneWithWhatItStored) {
  {
    auto live = Create();
    ASSERT_TRUE(PutNodeBlock(*live, 0, 1, 0, 10).ok());
    ASSERT_TRUE(PutReducedBlock(*live, 1, 0, 8).ok());
    ASSERT_TRUE(PutReducedBlock(*live, 2, 8, 4).ok());
  }
  const auto archive = Open();
  EXPECT_THAT(Live(), IsEmpty());
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  const Profile profile = Load(*archive.reader, list[0].key);
  EXPECT_EQ(profile.job.state, EndState::kLost);
  EXPECT_EQ(profile.job.end, kTestStart + 12 * kSecond);
  EXPECT_EQ(profile.job.coverage.expected, 24u);
  EXPECT_EQ(profile.job.coverage.got, 24u);
  ASSERT_EQ(profile.job.notes.size(), 1u);
  EXPECT_THAT(profile.job.notes[0], HasSubstr("The head was killed"));
  ASSERT_EQ(profile.footprint.size(), 2u);
  EXPECT_EQ(profile.footprint[0].series, TaskSeries()[0]);
  EXPECT_EQ(profile.footprint[0].last, TestCpu(12, 0) + TestCpu(12, 1));
  EXPECT_EQ(profile.footprint[0].max_owner.node, 1u);
  EXPECT_EQ(profile.footprint[1].max, TestMemory(1));
}

TEST_F(ArchiveTest, AnAbandonedStepKeepsWhatTheApplicationHadTold) {
  StepMoments moments;
  moments.phases = {{"solve", kTestStart + kSecond, 0, 0, 4, 0, {1, 3}}};
  moments.remarks = {{"half way", kTestStart + 2 * kSecond, kTestStart + 2 * kSecond, 4, {}}};
  {
    auto live = Create();
    ASSERT_TRUE(live->PutMoments(TestJob(), moments).ok());
    moments.phases[0].end = kTestStart + 3 * kSecond;
    moments.phases[0].ended = 4;
    JobDescription job = TestJob();
    job.figures = {{"speed", "cells/s", 7, 1, kTestStart, 0, 0}};
    ASSERT_TRUE(live->PutDescription(job).ok());
    ASSERT_TRUE(live->PutMoments(job, moments).ok());
    ASSERT_TRUE(PutReducedBlock(*live, 1, 0, 6).ok());
    const auto archive = Open();
    EXPECT_EQ(Load(*archive.reader, List(*archive.reader).at(0).key).moments.phases, moments.phases)
        << "running";
  }
  const auto archive = Open();
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  const Profile profile = Load(*archive.reader, list[0].key);
  EXPECT_EQ(profile.job.state, EndState::kLost);
  EXPECT_EQ(profile.moments.phases, moments.phases);
  EXPECT_EQ(profile.moments.remarks, moments.remarks);
  ASSERT_EQ(profile.job.figures.size(), 1u);
  EXPECT_EQ(profile.job.figures[0].value, 7);
}

TEST_F(ArchiveTest, CoverageOfAnAbandonedStepNamesWhatIsMissing) {
  {
    auto live = Create();
    // Ticks 1 to 4 and 9 to 12 of 12.
    ASSERT_TRUE(PutReducedBlock(*live, 1, 0, 4).ok());
    ASSERT_TRUE(PutReducedBlock(*live, 2, 8, 4).ok());
  }
  const auto archive = Open();
  const Profile profile = Load(*archive.reader, List(*archive.reader)[0].key);
  EXPECT_EQ(profile.job.coverage.expected, 24u);
  EXPECT_EQ(profile.job.coverage.got, 16u);
}

TEST(CoverageTest, WhatANodeHasNotTakenWasExpectedOfIt) {
  JobDescription job = TestJob();
  job.nodes.resize(1);
  job.expected_nodes = 1;
  job.nodes[0].joined = job.start;
  job.nodes[0].left = job.start + 9 * job.period;
  job.coverage.skipped = 4;
  const Coverage coverage = CoverageOf(job, {{job.end, 8}});
  EXPECT_EQ(coverage.got, 8u);
  EXPECT_EQ(coverage.skipped, 4u);
  EXPECT_EQ(coverage.expected, 12u) << "its times tell of 10";
}

// As while the step ran: a node that is busy with its registration may take no sample then.
TEST(CoverageTest, ATickThatFellIntoARegistrationIsOwedByWhoHasIt) {
  JobDescription job = TestJob();
  job.start = kTestStart;
  job.period = kSecond;
  job.end = kTestStart + 4 * kSecond + 1;
  job.expected_nodes = 3;
  job.nodes.resize(3);
  for (NodeInfo& node : job.nodes) node.left = job.end;
  job.nodes[0].joined = kTestStart + 100;
  job.nodes[1].joined = kTestStart + 200;
  job.nodes[2].joined = kTestStart + kSecond + 100;
  const auto tick = [](int number) { return kTestStart + number * kSecond; };
  // The first two register before the tick 1, and the third one before the tick 2.
  std::map<Nanos, double> rows = {{tick(1), 2}, {tick(2), 3}, {tick(3), 3}, {tick(4), 3}};
  rows[job.end] = 3;  // the last words
  EXPECT_EQ(CoverageOf(job, rows).expected, 14u);
  EXPECT_EQ(CoverageOf(job, rows).got, 14u);
  rows[tick(1)] = 1;
  rows[tick(2)] = 2;
  EXPECT_EQ(CoverageOf(job, rows).expected, 12u);
  EXPECT_EQ(CoverageOf(job, rows).got, 12u);
  // Of the tick 2 two nodes owe samples in any case, and of the tick 3 all.
  rows[tick(2)] = 1;
  rows[tick(3)] = 2;
  EXPECT_EQ(CoverageOf(job, rows).expected, 12u);
  EXPECT_EQ(CoverageOf(job, rows).got, 10u);
  rows.erase(tick(1));
  EXPECT_EQ(CoverageOf(job, rows).expected, 11u) << "both may have registered then";
  EXPECT_EQ(CoverageOf(job, rows).got, 9u);
}

TEST_F(ArchiveTest, AKilledWriterLosesNothingItAcknowledged) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  // The child is forked before this process has used LevelDB in this test; it never returns.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto live = LiveArchive::Create(root(), TestJob());
    if (!live.ok()) ::_exit(1);
    for (uint64_t sequence = 1;; ++sequence) {
      if (!PutNodeBlock(**live, 0, sequence, static_cast<int>(sequence - 1) * 4, 4).ok()) break;
      if (::write(pipe_fds[1], &sequence, sizeof(sequence)) != sizeof(sequence)) break;
    }
    ::_exit(1);
  }
  ::close(pipe_fds[1]);
  uint64_t acknowledged = 0;
  while (acknowledged < 500) {
    ASSERT_EQ(::read(pipe_fds[0], &acknowledged, sizeof(acknowledged)),
              static_cast<ssize_t>(sizeof(acknowledged)));
  }
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (uint64_t more = 0; ::read(pipe_fds[0], &more, sizeof(more)) == sizeof(more);) {
    acknowledged = more;
  }
  ::close(pipe_fds[0]);

  const auto archive = Open();
  EXPECT_EQ(archive.reader->note(), "");
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  const auto data = archive.reader->Read(list[0].key, SeriesScope::kNodes, nullptr, 0, kForever);
  ASSERT_TRUE(data.ok());
  ASSERT_EQ(data->size(), 2u);
  const auto& points = (*data)[0].points;
  ASSERT_GE(points.size(), acknowledged * 4);
  for (size_t i = 0; i < points.size(); ++i) {
    ASSERT_EQ(points[i], (Point{kTestStart + static_cast<Nanos>(i + 1) * kSecond,
                                TestCpu(static_cast<int>(i + 1), 0)}));
  }
  EXPECT_EQ(Load(*archive.reader, list[0].key).job.state, EndState::kLost);
}

TEST_F(ArchiveTest, AStepInBothPlacesIsOne) {
  FinishStep();
  const std::string name = Live().at(0);
  fs::copy(root() + "/live/" + name, dir_.path() + "/copy", fs::copy_options::recursive);
  { const auto archive = Open(); }
  // A kill between the copy and the deletion leaves it in both.
  fs::copy(dir_.path() + "/copy", root() + "/live/" + name, fs::copy_options::recursive);
  const auto archive = Open();
  EXPECT_EQ(archive.reader->note(), "");
  EXPECT_THAT(Live(), IsEmpty());
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  const auto data = archive.reader->Read(list[0].key, SeriesScope::kNodes, nullptr, 0, kForever);
  EXPECT_EQ((*data)[0].points.size(), 10u);
}

TEST_F(ArchiveTest, AnotherWriterOfTheSameStepAddsToIt) {
  {
    auto head = Create();
    auto acting = Create();
    EXPECT_NE(head->path(), acting->path());
    ASSERT_TRUE(PutReducedBlock(*head, 1, 0, 6).ok());
    // The acting head counts its blocks from 1 as well.
    ASSERT_TRUE(PutReducedBlock(*acting, 1, 6, 6).ok());
  }
  const auto archive = Open();
  EXPECT_EQ(archive.reader->note(), "");
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  const Profile profile = Load(*archive.reader, list[0].key);
  ASSERT_EQ(profile.footprint.size(), 2u);
  EXPECT_EQ(profile.footprint[0].ticks, 12u);
  EXPECT_EQ(profile.job.end, kTestStart + 12 * kSecond);
}

TEST_F(ArchiveTest, WhoFindsItLockedReadsItAllTheSame) {
  FinishStep(TestJob("1"));
  const auto holder = Open();
  FinishStep(TestJob("2", kTestStart + kSecond));
  const auto second = Open();
  EXPECT_THAT(second.reader->note(), HasSubstr("has the archive open"));
  const auto list = List(*second.reader);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_TRUE(list[0].live);
  EXPECT_FALSE(list[1].live);
  for (const auto& entry : list) {
    EXPECT_EQ(Load(*second.reader, entry.key).job.state, EndState::kCompleted);
    EXPECT_TRUE(second.reader->Read(entry.key, SeriesScope::kNodes, nullptr, 0, kForever).ok());
  }
  EXPECT_EQ(IngestLive(root(), root() + "/live/" + Live().at(0), 0).code(), Code::kBusy);
  EXPECT_EQ(List(*holder.reader).size(), 2u);
}

TEST_F(ArchiveTest, WaitsForWhoeverHasItOpen) {
  FinishStep();
  auto lock = FileLock::Acquire(root() + "/db.lock", 0);
  ASSERT_TRUE(lock.ok());
  std::thread other([&] { lock->Release(); });
  const auto archive = Open(30 * kSecond);
  other.join();
  EXPECT_EQ(archive.reader->note(), "");
  EXPECT_THAT(Live(), IsEmpty());
}

TEST_F(ArchiveTest, AStepThatIsTakenInDoesNotSeemToRun) {
  FinishStep();
  const ArchivePaths paths(root());
  const auto db = OpenDb(paths);
  ASSERT_TRUE(db.ok());
  Intake intake(**db, paths);
  ASSERT_TRUE(intake.Add(ScanLive(paths)->at(0)).ok());
  ASSERT_EQ(intake.waiting(), 1u);
  EXPECT_FALSE(ScanLive(paths)->at(0).running);
  EXPECT_TRUE(intake.Settle().ok());
  EXPECT_THAT(Live(), IsEmpty());
}

// That of a large step is megabytes, and an application may tell something every second.
TEST_F(ArchiveTest, ADescriptionThatDidNotChangeIsNotWrittenAgain) {
  JobDescription job = TestJob();
  job.nodes.resize(2000, job.nodes[0]);
  const auto live = *LiveArchive::Create(root(), job);
  const LivePaths paths(live->path());
  const size_t size = DescriptionToJson(job).size();
  const auto file = [&] {
    struct stat info {};
    EXPECT_EQ(::stat(paths.description().c_str(), &info), 0);
    return info.st_ino;  // it is replaced when it is written
  };
  StepMoments moments;
  ASSERT_TRUE(live->PutDescription(job).ok());
  const uint64_t before = BytesIn(paths.blocks());
  const ino_t described = file();
  for (int i = 0; i < 10; ++i) {
    moments.remarks.push_back({"half way", kTestStart, kTestStart, 1, {}});
    ASSERT_TRUE(live->PutMoments(job, moments).ok());
    ASSERT_TRUE(live->PutDescription(job).ok());
  }
  EXPECT_LT(BytesIn(paths.blocks()) - before, size);
  EXPECT_EQ(file(), described);
  job.nodes[7].left = kTestStart + kSecond;
  ASSERT_TRUE(live->PutDescription(job).ok());
  EXPECT_GT(BytesIn(paths.blocks()) - before, size);
  EXPECT_NE(file(), described);
  EXPECT_EQ(ScanLive(ArchivePaths(root()))->at(0).job.nodes[7].left, kTestStart + kSecond);
}

// As a damaged disk or a writer that is not to be trusted may leave it.
TEST_F(ArchiveTest, ABlockThatDoesNotFitItsSchemaIsPassedOver) {
  auto live = Create();
  const auto schema = Schema::Make(
      {TestSeries("a_total", MetricType::kCounter), TestSeries("b_total", MetricType::kCounter)});
  const std::vector<Nanos> times = TestTimes(0, 2);
  std::string narrow;
  ASSERT_TRUE(BlockEncoder()
                  .Encode(schema->id(), times, std::vector<double>{1, 2}.data(), 1, 2, narrow)
                  .ok());
  ASSERT_TRUE(live->PutBlock({0, "task", 1}, *schema, narrow).ok());
  ASSERT_TRUE(
      live->PutBlock({0, "task", 2}, *schema, MakeBlock(*schema, TestTimes(2, 2), {3, 4, 5, 6}))
          .ok());
  Profile profile;
  profile.job = TestJob();
  profile.job.state = EndState::kCompleted;
  ASSERT_TRUE(live->PutProfile(profile).ok());
  ASSERT_TRUE(live->Finish().ok());
  const auto archive = Open();
  const std::string key = keys::ProfileKey(TestJob());
  for (const Nanos from : {Nanos{0}, times.back() + 1}) {
    const auto read = archive.reader->Read(key, SeriesScope::kNodes, nullptr, from, INT64_MAX,
                                           Thinned::kMean, Earlier::kCounted);
    ASSERT_TRUE(read.ok()) << read.status().message();
    ASSERT_EQ(read->size(), 2u);
    EXPECT_EQ(read->at(0).points.size(), 2u);
  }
}

TEST_F(ArchiveTest, IngestsOneStepByItself) {
  auto live = Create();
  const std::string path = live->path();
  ASSERT_TRUE(PutReducedBlock(*live, 1, 0, 4).ok());
  EXPECT_EQ(IngestLive(root(), path, 0).code(), Code::kBusy);
  ASSERT_TRUE(live->Sync().ok());
  ASSERT_TRUE(live->Finish().ok());
  const Status ingested = IngestLive(root(), path, 0);
  EXPECT_TRUE(ingested.ok()) << ingested.message();
  EXPECT_THAT(Live(), IsEmpty());
  EXPECT_EQ(List(*Open().reader).size(), 1u);
  EXPECT_EQ(IngestLive(root(), "/etc", 0).code(), Code::kInvalid);
}

// Flips bytes in the middle of the largest file below `path` whose name ends so.
void Damage(const std::string& path, const std::string& ending) {
  fs::path largest;
  for (const auto& e : fs::recursive_directory_iterator(path)) {
    if (!e.is_regular_file() || !e.path().string().ends_with(ending)) continue;
    if (largest.empty() || e.file_size() > fs::file_size(largest)) largest = e.path();
  }
  ASSERT_FALSE(largest.empty());
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(fs::file_size(largest) / 2));
  file.write("damage!", 7);
}

TEST_F(ArchiveTest, OfADamagedStepTheReadablePartIsIngestedAndTheRestKept) {
  {
    auto live = Create();
    for (uint64_t s = 1; s <= 2000; ++s) {
      ASSERT_TRUE(PutReducedBlock(*live, s, static_cast<int>(s - 1) * 4, 4).ok());
    }
  }
  Damage(root() + "/live", ".log");
  const auto archive = Open();
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  const Profile profile = Load(*archive.reader, list[0].key);
  EXPECT_EQ(profile.job.state, EndState::kLost);
  ASSERT_FALSE(profile.footprint.empty());
  EXPECT_GT(profile.footprint[0].ticks, 1000u);
  EXPECT_LT(profile.footprint[0].ticks, 8000u);
  EXPECT_THAT(profile.job.notes.back(), HasSubstr("could not be read"));
  ASSERT_EQ(Live().size(), 1u);
  EXPECT_TRUE(Live()[0].ends_with(".corrupt"));
  // It is not ingested again, and still there.
  const auto again = List(*archive.reader);
  EXPECT_EQ(again.size(), 1u);
}

// Rather than to show the rest as if it were all.
TEST_F(ArchiveTest, BlocksOfANewerVersionAreNotPassedOver) {
  auto live = Create();
  const auto schema = Schema::Make(TaskSeries());
  ASSERT_TRUE(PutNodeBlock(*live, 0, 1, 0, 4).ok());
  std::string newer = MakeBlock(*schema, TestTimes(4, 1), {1, 2});
  newer[2] = 9;
  newer[3] = 1;  // or it were a damaged one of ours
  ASSERT_TRUE(live->PutBlock({0, "task", 2}, *schema, newer).ok());
  const auto archive = Open();
  const auto data = archive.reader->Read(List(*archive.reader).at(0).key, SeriesScope::kNodes,
                                         nullptr, 0, kForever);
  EXPECT_EQ(data.status().code(), Code::kUnsupported);
  EXPECT_THAT(std::string(data.status().message()), HasSubstr("use a newer Sonde"));
}

TEST_F(ArchiveTest, ABadBlockIsNamedAndDoesNotHideTheOthers) {
  {
    auto live = Create();
    const auto schema = Schema::Make(TaskSeries());
    ASSERT_TRUE(PutNodeBlock(*live, 0, 1, 0, 4).ok());
    ASSERT_TRUE(live->PutBlock({0, "task", 2}, *schema, "no block at all").ok());
    ASSERT_TRUE(PutNodeBlock(*live, 0, 3, 8, 4).ok());
  }
  const auto archive = Open();
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  const auto data = archive.reader->Read(list[0].key, SeriesScope::kNodes, nullptr, 0, kForever);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ((*data)[0].points.size(), 8u);
  EXPECT_THAT(Load(*archive.reader, list[0].key).job.notes.back(),
              HasSubstr("1 block could not be read"));
}

TEST_F(ArchiveTest, ADamagedArchiveIsReadAsFarAsItGoesAndNotChanged) {
  for (int i = 0; i < 20; ++i) FinishStep(TestJob(std::to_string(i), kTestStart + i * kSecond), 50);
  { const auto archive = Open(); }
  Damage(root() + "/db", ".log");
  FinishStep(TestJob("99", kTestStart + 99 * kSecond));
  const auto archive = Open();
  EXPECT_THAT(archive.reader->note(), HasSubstr("damaged"));
  const auto list = List(*archive.reader);
  EXPECT_GT(list.size(), 5u);
  EXPECT_LT(list.size(), 21u);
  EXPECT_EQ(list[0].job.id.job, "99");
  EXPECT_EQ(Live().size(), 1u);
}

TEST_F(ArchiveTest, WithoutAnArchiveThereIsAnEmptyListAndWord) {
  const auto archive = Open();
  EXPECT_THAT(archive.reader->note(), HasSubstr("there is no archive"));
  EXPECT_THAT(List(*archive.reader), IsEmpty());
  EXPECT_FALSE(fs::exists(root()));
  // A step that is recorded later is seen.
  FinishStep();
  EXPECT_EQ(List(*archive.reader).size(), 1u);
}

TEST_F(ArchiveTest, AnArchiveThatCannotBeIsRefusedWithAdvice) {
  std::ofstream(root()) << "a file";
  auto live = LiveArchive::Create(root(), TestJob());
  ASSERT_FALSE(live.ok());
  EXPECT_THAT(std::string(live.status().message()),
              testing::AllOf(HasSubstr("is not a directory"), HasSubstr("SONDE_ARCHIVE")));
  EXPECT_FALSE(OpenArchive(root()).ok());
  EXPECT_EQ(LiveArchive::Create("relative/path", TestJob()).status().code(), Code::kInvalid);
}

TEST_F(ArchiveTest, AnotherUsersArchiveIsReadAndNeverWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to have two users";
  FinishStep();
  { const auto mine = Open(); }
  FinishStep(TestJob("124", kTestStart + kSecond));
  ASSERT_EQ(::chown(root().c_str(), 12345, 12345), 0);
  const auto live = LiveArchive::Create(root(), TestJob());
  EXPECT_EQ(live.status().code(), Code::kPermission);
  EXPECT_THAT(std::string(live.status().message()), HasSubstr("belongs to user 12345"));
  const auto archive = Open();
  EXPECT_THAT(archive.reader->note(), HasSubstr("only read"));
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(Load(*archive.reader, list[1].key).job.name, "heat");
  EXPECT_EQ(Live().size(), 1u);
  EXPECT_EQ(archive.owner, nullptr);
  EXPECT_EQ(OwnedArchive::Take(*archive.reader, 0).status().code(), Code::kPermission);
  EXPECT_EQ(WhyNotOwned(*archive.reader).code(), Code::kPermission);
}

// A file system of its own, small or read-only; skips where it may not be made.
class MountedTest : public ArchiveTest {
 protected:
  void SetUp() override {
    fs::create_directory(root());
    if (::mount("tmpfs", root().c_str(), "tmpfs", 0, "size=1m,mode=0700") != 0) {
      GTEST_SKIP() << "needs the right to mount";
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (!mounted_) return;
    EXPECT_EQ(::umount2(root().c_str(), MNT_DETACH), 0);
  }
  void Fill() {
    std::ofstream file(root() + "/ballast");
    const std::string chunk(65536, 'x');
    while (file.write(chunk.data(), static_cast<std::streamsize>(chunk.size()))) file.flush();
  }

 private:
  bool mounted_ = false;
};

TEST_F(MountedTest, AReadOnlyArchiveIsRead) {
  FinishStep();
  { const auto archive = Open(); }
  FinishStep(TestJob("124", kTestStart + kSecond));
  ASSERT_EQ(::mount(nullptr, root().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  const auto live = LiveArchive::Create(root(), TestJob("125"));
  ASSERT_FALSE(live.ok());
  EXPECT_THAT(std::string(live.status().message()), HasSubstr("SONDE_ARCHIVE"));
  const auto archive = Open();
  EXPECT_THAT(archive.reader->note(), HasSubstr("only read"));
  EXPECT_EQ(List(*archive.reader).size(), 2u);
}

TEST_F(MountedTest, AFullDiskIsToldAndWhatWasAcknowledgedSurvivesIt) {
  auto live = Create();
  uint64_t acknowledged = 0;
  Status status;
  const auto put = [&] {
    // Sequences without gaps: what failed is tried again.
    status = PutNodeBlock(*live, 0, acknowledged + 1, static_cast<int>(acknowledged) * 64, 64);
    if (status.ok()) ++acknowledged;
    return status.ok();
  };
  ASSERT_TRUE(put());
  Fill();
  while (put()) {
  }
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("No space left"), HasSubstr("free some space")));
  const uint64_t before = acknowledged;
  // Nobody new can start either, and leaves nothing behind.
  const auto refused = LiveArchive::Create(root(), TestJob("124"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("free some space"));
  EXPECT_EQ(Live().size(), 1u);
  ASSERT_TRUE(fs::remove(root() + "/ballast"));
  while (acknowledged < before + 20) ASSERT_TRUE(put()) << status.message();
  ASSERT_TRUE(live->Finish().ok());
  live.reset();

  const auto archive = Open();
  EXPECT_EQ(archive.reader->note(), "");
  const auto list = List(*archive.reader);
  ASSERT_EQ(list.size(), 1u);
  const auto data = archive.reader->Read(list[0].key, SeriesScope::kNodes, nullptr, 0, kForever);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ((*data)[0].points.size(), acknowledged * 64);
}

TEST_F(MountedTest, AFullDiskAtIngestKeepsTheStepInLive) {
  FinishStep();
  Fill();
  {
    const auto archive = Open();
    EXPECT_THAT(archive.reader->note(), HasSubstr("No space left"));
    EXPECT_EQ(List(*archive.reader).size(), 1u);
  }
  ASSERT_TRUE(fs::remove(root() + "/ballast"));
  const auto archive = Open();
  EXPECT_EQ(archive.reader->note(), "");
  EXPECT_THAT(Live(), IsEmpty());
  EXPECT_EQ(List(*archive.reader).size(), 1u);
}

}  // namespace
}  // namespace sonde::profiles_archive_test
