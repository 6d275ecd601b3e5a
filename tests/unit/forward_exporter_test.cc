// From the archive to a receiver that a test plays: what is sent when, and what again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <deque>

#include "forward/exporter.h"
#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "profiles_fixture.h"

namespace sonde::forward {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Answers as told, then 204.
struct Receiver {
  std::deque<Result<HttpAnswer>> answers;
  std::vector<std::string> bodies;  // of all requests
};

class FakeHttp : public Http {
 public:
  explicit FakeHttp(Receiver& receiver) : receiver_(receiver) {}
  Result<HttpAnswer> Post(const std::string&, const std::vector<std::string>&,
                          std::string_view body, const std::function<bool()>&) override {
    receiver_.bodies.emplace_back(body);
    if (receiver_.answers.empty()) return HttpAnswer{204, 0, ""};
    const auto answer = receiver_.answers.front();
    receiver_.answers.pop_front();
    return answer;
  }
  Result<HttpAnswer> Get(const std::string&) override { return HttpAnswer{200, 0, ""}; }

 private:
  Receiver& receiver_;
};

class NoPatience : public Patience {
 public:
  bool Wait(Nanos) override { return false; }
  bool GoOn() override { return true; }
};

class ExporterTest : public testing::Test {
 protected:
  // A new process: what is known is in the archive alone.
  Status Pass(const std::string& to = "influx+http://h scope=node metrics=task_cpu*") {
    const Destination destination = *ParseDestination(to);
    auto archive = Archive::Open(dir_.path());
    auto record = Record::Open(dir_.path(), key_, destination);
    EXPECT_TRUE(record.ok());
    Delivery delivery(destination, std::make_unique<FakeHttp>(receiver_), patience_);
    Exporter exporter(**archive, key_, delivery, *record);
    return exporter.Pass();
  }
  // Of the requests since the last call.
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    for (const std::string& body : receiver_.bodies) {
      for (size_t at = 0; at < body.size(); at = body.find('\n', at) + 1) {
        const std::string line = body.substr(at, body.find('\n', at) - at);
        // "HOST VALUE TICK"
        const size_t host = line.find("host=");
        const std::string name = host == std::string::npos ? "all" : line.substr(host + 5, 2);
        const size_t value = line.find("value=") + 6;
        const size_t time = line.rfind(' ') + 1;
        const auto tick = (std::stoll(line.substr(time)) - kTestStart) / kSecond;
        lines.push_back(name + " " + line.substr(value, time - value) + std::to_string(tick));
      }
    }
    receiver_.bodies.clear();
    return lines;
  }
  void Start() { live_ = *LiveArchive::Create(dir_.path(), TestJob()); }
  void End() {
    Profile profile;
    profile.job = TestJob();
    profile.job.state = EndState::kCompleted;
    ASSERT_TRUE(live_->PutProfile(profile).ok());
    ASSERT_TRUE(live_->Finish().ok());
    live_.reset();
    ASSERT_TRUE(OpenArchive(dir_.path()).ok());
  }

  TempDir dir_;
  Receiver receiver_;
  NoPatience patience_;
  const std::string key_ = keys::ProfileKey(TestJob());
  std::unique_ptr<LiveArchive> live_;
};

TEST_F(ExporterTest, OfARunningStepSendsWhatIsNewAndThatOnce) {
  Start();
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 1, 0, 2).ok());
  ASSERT_TRUE(Pass().ok());
  EXPECT_THAT(Lines(), ElementsAre("n1 1 1", "n1 2 2"));
  ASSERT_TRUE(Pass().ok());
  EXPECT_THAT(Lines(), IsEmpty());
  // Another node is behind, and the block comes again with more rows.
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 1, 0, 3).ok());
  ASSERT_TRUE(PutNodeBlock(*live_, 1, 1, 0, 1).ok());
  ASSERT_TRUE(Pass().ok());
  EXPECT_THAT(Lines(), ElementsAre("n1 3 3", "n2 2 1"));
  End();
  ASSERT_TRUE(Pass().ok());
  EXPECT_THAT(Lines(), IsEmpty());
  EXPECT_TRUE(ListPending(dir_.path()).empty());
}

TEST_F(ExporterTest, ARequestThatWasPerhapsTakenComesAgainAsItWas) {
  Start();
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 1, 0, 2).ok());
  receiver_.answers.emplace_back(Status(Code::kTimeout, "the answer is lost"));
  EXPECT_FALSE(Pass().ok());
  const auto before = receiver_.bodies;
  receiver_.bodies.clear();
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 2, 2, 1).ok());
  ASSERT_TRUE(Pass().ok());
  ASSERT_EQ(receiver_.bodies.size(), 2u);
  EXPECT_EQ(receiver_.bodies[0], before[0]);
  receiver_.bodies.erase(receiver_.bodies.begin());
  EXPECT_THAT(Lines(), ElementsAre("n1 3 3"));
}

TEST_F(ExporterTest, WhatWasNotTakenIsSentWithTheRest) {
  Start();
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 1, 0, 2).ok());
  receiver_.answers.emplace_back(Status(Code::kUnavailable, "nobody there"));
  EXPECT_FALSE(Pass().ok());
  receiver_.bodies.clear();
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 2, 2, 1).ok());
  ASSERT_TRUE(Pass().ok());
  EXPECT_EQ(receiver_.bodies.size(), 1u);
  EXPECT_THAT(Lines(), ElementsAre("n1 1 1", "n1 2 2", "n1 3 3"));
}

TEST_F(ExporterTest, ABatchIsNotExceeded) {
  Start();
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 1, 0, 10).ok());
  ASSERT_TRUE(Pass("influx+http://h scope=node metrics=task_cpu* batch=4").ok());
  EXPECT_EQ(receiver_.bodies.size(), 3u);
  EXPECT_EQ(Lines().size(), 10u);
}

// Counters of the whole step, row by row: {node 0, node 1}, NaN: absent.
std::string ReducedRows(const Schema& schema, const std::vector<std::array<double, 2>>& rows) {
  std::vector<double> columns(schema.size() * rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    Reduced value;
    for (uint32_t node = 0; node < 2; ++node) value.Add(rows[r][node], {node, 0});
    double stats[kStatColumns];
    ToColumns(value, stats);
    for (size_t k = 0; k < kStatColumns; ++k) columns[k * rows.size() + r] = stats[k];
  }
  return MakeBlock(schema, TestTimes(0, static_cast<int>(rows.size())), columns);
}

TEST_F(ExporterTest, CountersDoNotFallWhenANodeIsMissingAlsoAfterAnInterruption) {
  Start();
  const auto schema = ReducedSchema({TestSeries("task_cpu_seconds_total", MetricType::kCounter)});
  const std::vector<std::array<double, 2>> rows = {
      {1, 10}, {2, 20}, {3, std::nan("")}, {4, std::nan("")}, {5, 50}};
  ASSERT_TRUE(live_->PutBlock({kReducedNode, "os", 1}, *schema, ReducedRows(*schema, rows)).ok());
  const std::string to = "influx+http://h batch=3";
  receiver_.answers.emplace_back(HttpAnswer{204, 0, ""});
  receiver_.answers.emplace_back(Status(Code::kUnavailable, "gone"));
  EXPECT_FALSE(Pass(to).ok());
  receiver_.bodies.pop_back();
  ASSERT_TRUE(Pass(to).ok());
  EXPECT_THAT(Lines(), ElementsAre("all 11 1", "all 22 2", "all 22 3", "all 23 4", "all 55 5"));
}

// A node's first sample may lie right before a tick, and its last one right behind one.
TEST_F(ExporterTest, OfTwoSamplesThatHaveTheSameTimeThereTheLaterOneIsSent) {
  Start();
  const auto schema = Schema::Make(TaskSeries());
  std::vector<Nanos> times = TestTimes(0, 3);
  times[0] = times[1] - kMillisecond / 2;
  const std::vector<double> columns = {1, 2, 3, 1000, 1000, 1000};
  ASSERT_TRUE(live_->PutBlock({0, "task", 1}, *schema, MakeBlock(*schema, times, columns)).ok());
  ASSERT_TRUE(Pass().ok());
  EXPECT_THAT(Lines(), ElementsAre("n1 2 2", "n1 3 3"));
}

TEST_F(ExporterTest, TheEndIsMarkedOnceForEachSeries) {
  Start();
  ASSERT_TRUE(PutReducedBlock(*live_, 1, 0, 5).ok());
  ASSERT_TRUE(Pass("prometheus+http://h").ok());
  EXPECT_EQ(receiver_.bodies.size(), 1u);
  End();
  ASSERT_TRUE(Pass("prometheus+http://h").ok());
  ASSERT_EQ(receiver_.bodies.size(), 2u);
  EXPECT_THAT(receiver_.bodies[1], HasSubstr(std::string("\x09\x02\x00\x00\x00\x00\x00", 7)));
  ASSERT_TRUE(Pass("prometheus+http://h").ok());
  EXPECT_EQ(receiver_.bodies.size(), 2u);
}

// The markers of the nodes' series come in batches, and there are none for other hosts.
TEST_F(ExporterTest, TheEndIsMarkedForTheHostsAndMetricsThatWereSent) {
  Start();
  for (const uint32_t node : {0, 1}) ASSERT_TRUE(PutNodeBlock(*live_, node, 1, 0, 2).ok());
  const std::string to = "prometheus+http://h scope=node node=n2 batch=1";
  ASSERT_TRUE(Pass(to).ok());
  receiver_.bodies.clear();
  End();
  ASSERT_TRUE(Pass(to).ok());
  ASSERT_EQ(receiver_.bodies.size(), 2u) << "one for each series of n2";
  for (const std::string& body : receiver_.bodies) {
    EXPECT_THAT(body, HasSubstr(std::string("\x09\x02\x00\x00\x00\x00\x00", 7)));
    EXPECT_THAT(body, HasSubstr("n2"));
    EXPECT_THAT(body, testing::Not(HasSubstr("n1")));
  }
}

TEST_F(ExporterTest, WithoutRoomForItsRecordNothingIsSent) {
  Start();
  ASSERT_TRUE(PutNodeBlock(*live_, 0, 1, 0, 2).ok());
  std::filesystem::create_directory(dir_.path() + "/forward");
  std::filesystem::create_directory(dir_.path() + "/forward/" + key_ + "@" +
                                    ParseDestination("influx+http://h")->Id());
  auto record = Record::Open(dir_.path(), key_, *ParseDestination("influx+http://h"));
  EXPECT_FALSE(record.ok());
}

}  // namespace
}  // namespace sonde::forward
