// A whole head whose nodes are the test: what it says of nodes, and of samples, that it loses, or
// whose time is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "daemon/head/head.h"
#include "daemon/loop.h"
#include "daemon/tree/uplink.h"
#include "profiles/archive/open_archive.h"
#include "temp_dir.h"
#include "tests/unit/head_ends.h"

namespace sonde::head::head_lost_nodes_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using tree::Type;

class RememberingEnd final : public HeadEnd {
 public:
  Status Send(uint8_t type, std::string_view payload) override {
    said.emplace_back(static_cast<Type>(type), payload);
    return {};
  }
  std::vector<std::pair<Type, std::string>> said;  // by the head
};

struct Node {
  RememberingEnd* head_end = nullptr;  // the head owns it
  std::unique_ptr<NodeEnd> link;
  std::unique_ptr<tree::Uplink> uplink = std::make_unique<tree::Uplink>();
};

class LostNodes : public testing::Test {
 protected:
  LostNodes() {
    LaunchMessage launch;
    launch.role = Role::kHead;
    launch.archive = directory_.path();
    launch.job.id = {"7", "0"};
    launch.job.start = Clock::System().Now();
    launch.job.expected_nodes = 2;
    launch.job.period = 10 * kSecond;  // no row is merged while a test takes
    Config config;
    config.report = "full";
    config.http = "off";
    head_ = std::make_unique<Head>(loop_, clock_, launch, config, [this](std::string report) {
      report_ = std::move(report);
      loop_.Stop();
    });
    EXPECT_TRUE(head_->Start({}).ok());
    for (uint32_t i = 0; i < 2; ++i) Join(i);
  }

  void Join(uint32_t index) {
    auto end = std::make_unique<RememberingEnd>();
    Node& node = nodes_.emplace_back();
    node.head_end = end.get();
    node.link = std::make_unique<NodeEnd>(*end);
    tree::Registration who;
    who.job = "7";
    who.step = "0";
    who.node_id = index;
    who.nodes = 2;
    who.host = "n" + std::to_string(index + 1);
    ASSERT_EQ(*head_->AddNode(who, std::move(end)), index);
    node.uplink->Use(node.link.get(), false);
  }

  void Send(uint32_t index, tree::Stream stream, Nanos tick = Clock::System().Now()) {
    Series work;
    work.metric.name = "work_total";
    work.metric.type = MetricType::kCounter;
    tree::FrameInfo info;
    info.tick = tick;
    info.stream = stream;
    info.nodes = tree::NodeSet(index);
    std::vector<Reduced> values(1);
    values[0].Add(5, {index, Owner::kNobody});
    nodes_[index].uplink->AddFrame(info, Schema::Make({work}), {values, {}});
    nodes_[index].uplink->Flush();
  }

  void Leave(uint32_t index) {
    Send(index, tree::Stream::kEnded);
    nodes_[index].uplink->End(tree::Stream::kOwn);
    nodes_[index].uplink->End(tree::Stream::kEnded);
    nodes_[index].head_end->Hear(Type::kBye, Encode(tree::Bye{}));
  }

  // The second node is lost, and the step ends.
  void LoseTheSecond() {
    nodes_[1].head_end->Break();
    head_->Finish(false);
    Leave(0);
    loop_.Run();
  }

  void ExpectItsValuesStay() const {
    EXPECT_THAT(report_,
                HasSubstr("node n2 was lost: connection reset; its values stay as it last"));
    EXPECT_THAT(report_, Not(HasSubstr("missing from the totals")));
  }

  // Of the profile, once the head has put it into the archive.
  JobDescription Stored() {
    head_.reset();
    const auto archive = OpenArchive(directory_.path(), 0);
    if (!archive.ok()) return {};
    const auto list = archive->reader->List();
    if (!list.ok() || list->size() != 1) return {};
    return archive->reader->Load(list->front().key)->job;
  }
  std::vector<PresenceRun> Presence() { return Stored().presence; }

  TempDir directory_;
  Loop loop_;
  StepClock clock_;
  std::vector<Node> nodes_;
  std::string report_;
  std::unique_ptr<Head> head_;
};

// The step ends before a row goes without the lost node: its last values come into the totals when
// the profile is sealed, after it was given up.
TEST_F(LostNodes, ValuesThatComeAfterTheLossStay) {
  Send(0, tree::Stream::kOwn);
  Send(1, tree::Stream::kOwn);
  LoseTheSecond();
  ExpectItsValuesStay();
}

// It has left its link for another one, and is killed before its first word there.
TEST_F(LostNodes, ValuesOfOneThatIsLostBetweenTwoLinksStay) {
  Send(0, tree::Stream::kOwn);
  Send(1, tree::Stream::kOwn);
  nodes_[1].head_end->Hear(Type::kLeave, "");
  LoseTheSecond();
  ExpectItsValuesStay();
}

TEST_F(LostNodes, OneThatSentNothingIsMissingFromTheTotals) {
  Send(0, tree::Stream::kOwn);
  LoseTheSecond();
  EXPECT_THAT(report_, HasSubstr("node n2 was lost: connection reset; what it counted is missing"));
  EXPECT_THAT(report_, HasSubstr("what 1 of 2 nodes counted is missing from the totals"));
}

// As after a cut of the network: the rows that lack these samples are sealed.
TEST_F(LostNodes, SamplesThatComeTooLateAreTold) {
  constexpr int kRows = 500;  // more than stay open
  constexpr Nanos kStep = kSecond / 10;
  const Nanos first = Clock::System().Now() - kRows * kStep;
  for (int i = 0; i < kRows; ++i) Send(0, tree::Stream::kOwn, first + i * kStep);
  Send(1, tree::Stream::kOwn, first + (kRows - 1) * kStep);  // in time
  for (int i = 0; i < 3; ++i) Send(1, tree::Stream::kOwn, first + i * kStep);
  head_->Finish(false);
  for (const uint32_t node : {0, 1}) Leave(node);
  loop_.Run();
  EXPECT_THAT(report_, HasSubstr("3 samples came too late to be merged"));
  const std::vector<PresenceRun> runs = Presence();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0], (PresenceRun{first, 1, 1, 0, 0})) << "what came is not in these rows";
  EXPECT_EQ(runs[1], (PresenceRun{first + (kRows - 1) * kStep, 2, 1, 0, 0}));
}

// Rows go without n2, with what it had counted instead; its own counters, which come late, are not
// in these rows, so it is not said to be there.
TEST_F(LostNodes, ANodeForWhichValuesStoodInIsAbsentFromTheRow) {
  constexpr Nanos kPeriod = 10 * kSecond;
  const Nanos first = (Clock::System().Now() / kPeriod - 4) * kPeriod;
  Send(0, tree::Stream::kOwn, first);
  Send(1, tree::Stream::kOwn, first);  // late, and nothing stands for it
  Send(0, tree::Stream::kOwn, first + kPeriod);
  Send(1, tree::Stream::kOwn, first + kPeriod);
  head_->Finish(false);
  for (const uint32_t node : {0, 1}) Leave(node);
  loop_.Run();
  const std::vector<PresenceRun> runs = Presence();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0], (PresenceRun{first, 2, 2, 0, 0}));
  EXPECT_EQ(runs[1], (PresenceRun{first + kPeriod, 1, 0, 1, 0}));
}

// Rows behind its end have what it had counted before, and nobody is absent from them any more.
TEST_F(LostNodes, ANodeWhoseEndCameAfterRowsBehindItIsToldWithThem) {
  constexpr Nanos kPeriod = 10 * kSecond;
  const Nanos first = (Clock::System().Now() / kPeriod - 5) * kPeriod;
  Send(0, tree::Stream::kOwn, first);
  Send(1, tree::Stream::kOwn, first);
  for (int i = 1; i <= 2; ++i) Send(0, tree::Stream::kOwn, first + i * kPeriod);
  Send(1, tree::Stream::kEnded, first + 1);
  Send(0, tree::Stream::kOwn, first + 3 * kPeriod);
  head_->Finish(false);
  for (const uint32_t node : {0, 1}) Leave(node);
  loop_.Run();
  const JobDescription job = Stored();
  ASSERT_EQ(job.nodes.size(), 2u);
  EXPECT_EQ(job.nodes[0].end_in_rows, 0);
  EXPECT_EQ(job.nodes[1].end_in_rows, first + 2 * kPeriod + 1);
}

// Whoever reads what a head left that was killed takes what it had described for that of all rows
// it had stored.
TEST_F(LostNodes, RowsAreNotStoredBeforeItIsDescribedWhoIsInThem) {
  constexpr int kRows = 300;  // more than a block
  constexpr Nanos kStep = kSecond / 10;
  const Nanos first = Clock::System().Now() - kRows * kStep;
  for (int i = 0; i < kRows; ++i) {
    Send(0, tree::Stream::kOwn, first + i * kStep);
    if (i == 0) Send(1, tree::Stream::kOwn, first);
  }
  EXPECT_THAT(Presence(), testing::ElementsAre(PresenceRun{first, 2, 2, 0, 0},
                                               PresenceRun{first + kStep, 1, 0, 1, 0}));
}

constexpr Nanos kHour = 3600 * kSecond;

TEST_F(LostNodes, TicksFarAheadAreLeftOutAndTold) {
  Send(0, tree::Stream::kOwn);
  Send(1, tree::Stream::kOwn, Clock::System().Now() + kHour);
  head_->Finish(false);
  Leave(0);
  Leave(1);
  loop_.Run();
  EXPECT_THAT(report_, HasSubstr("1 samples were left out: their times lie far ahead"));
}

TEST_F(LostNodes, TicksFromBeforeTheStepAreNoRowsOfIt) {
  Send(0, tree::Stream::kOwn);
  Send(1, tree::Stream::kOwn, Clock::System().Now() - kHour);
  head_->Finish(false);
  Leave(0);
  Leave(1);
  loop_.Run();
  EXPECT_THAT(report_, HasSubstr("1 samples came too late to be merged"));
}

TEST_F(LostNodes, WhoAsksIsToldTheTime) {
  std::string question;
  ByteWriter(question).Varint(7);
  RememberingEnd& end = *nodes_[1].head_end;
  end.Hear(Type::kAskTime, question);
  ASSERT_EQ(end.said.back().first, Type::kTime);
  ByteReader answer(end.said.back().second);
  EXPECT_EQ(answer.Varint(), 7u);
  EXPECT_LT(clock_.Now() - static_cast<Nanos>(answer.Varint()), kSecond);
  EXPECT_TRUE(answer.done());
  const size_t said = end.said.size();
  end.Hear(Type::kAskTime, "");
  EXPECT_EQ(end.said.size(), said);
}

}  // namespace
}  // namespace sonde::head::head_lost_nodes_test
