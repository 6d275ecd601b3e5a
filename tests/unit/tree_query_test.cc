// Questions through a real tree of daemons' parts, over local links: who answers is counted, who
// does not is left out, and a child that lies or sends too much harms nobody else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/link/local_link.h"
#include "daemon/link/send.h"
#include "daemon/loop.h"
#include "daemon/tree/query_fanout.h"

namespace sonde::tree::tree_query_test {
namespace {

using testing::HasSubstr;

QuerySpec SumOf(Nanos seconds) {
  QuerySpec spec;
  spec.metric = "m";
  spec.start = kSecond;
  spec.end = seconds * kSecond;
  spec.downsample = Downsample{2 * kSecond, Aggregator::kAvg, Downsample::Fill::kNone};
  return spec;
}

SeriesData DataOf(size_t node, int points) {
  SeriesData data;
  data.series.metric.name = "m";
  data.series.tags = {{"host", "n" + std::to_string(node)}};
  for (int i = 0; i < points; ++i) {
    data.points.push_back({(2 + i) * kSecond, 0.1 * static_cast<double>(node) + i});
  }
  return data;
}

// A node, or with `parent` gone the head.
struct Daemon {
  explicit Daemon(Loop& loop) : queries(loop) {}
  QueryFanout queries;
  std::vector<std::unique_ptr<Link>> to_children;
  std::unique_ptr<Link> to_parent;
  std::vector<SeriesData> data;
  uint32_t node = 0;  // its index among the nodes
  bool silent = false;
  std::string instead;  // of an encoded reply

  std::vector<Link*> Children() const {
    std::vector<Link*> links;
    for (const auto& link : to_children) links.push_back(link.get());
    return links;
  }
  void OnQuery(std::string_view payload) {
    Question question;
    ASSERT_TRUE(Decode(payload, question).ok());
    if (silent) return;
    Result<QueryPart> own = EvaluatePart(question.spec, data, &question.grid);
    QueryFanout::Own mine{node, std::move(own)};
    queries.Ask(question, Children(), std::move(mine), [this](const Gathered& answer) {
      if (to_parent == nullptr) return;
      if (instead.empty()) return SendReply(*to_parent, answer);
      ReplyMessage reply = ToReply(answer);
      reply.part = instead;
      Send(*to_parent, Type::kReply, Encode(reply));
    });
  }
};

// Daemon 0 is the head; the others' parents are among those before them.
class Tree : public testing::Test {
 protected:
  void Build(const std::vector<size_t>& parents) {
    daemons_.push_back(std::make_unique<Daemon>(loop_));
    for (const size_t parent : parents) {
      Daemon& child = *daemons_.emplace_back(std::make_unique<Daemon>(loop_));
      child.data = {DataOf(daemons_.size() - 1, 6)};
      child.node = static_cast<uint32_t>(daemons_.size() - 2);
      auto [up, down] = LocalLink::MakePair(loop_, "child", "parent");
      Daemon& above = *daemons_[parent];
      Link* link = up.get();
      up->SetMaxMessage(kMaxMessage);
      down->SetMaxMessage(kMaxMessage);
      up->SetHandler({[&above, link](uint8_t type, std::string_view payload) {
                        ASSERT_TRUE(
                            above.queries.OnMessage(*link, static_cast<Type>(type), payload).ok());
                      },
                      [&above, link](const Status&) { above.queries.OnGone(*link); }});
      down->SetHandler(
          {[&child](uint8_t, std::string_view payload) { child.OnQuery(payload); }, nullptr});
      above.to_children.push_back(std::move(up));
      child.to_parent = std::move(down);
    }
  }
  Gathered Ask(const QuerySpec& spec, Nanos patience = 30 * kSecond) {
    Gathered result;
    daemons_[0]->queries.Ask({++id_, spec, {kSecond, {}}, patience}, daemons_[0]->Children(), {},
                             [&](Gathered answer) {
                               result = std::move(answer);
                               loop_.Stop();
                             });
    loop_.Run();
    return result;
  }
  // Of the series of all daemons but those.
  std::vector<QueryResult> Central(const QuerySpec& spec, const std::vector<size_t>& without = {}) {
    std::vector<SeriesData> all;
    for (size_t i = 1; i < daemons_.size(); ++i) {
      if (std::find(without.begin(), without.end(), i) != without.end()) continue;
      all.insert(all.end(), daemons_[i]->data.begin(), daemons_[i]->data.end());
    }
    return *Evaluate(spec, all);
  }

  static NodeSet All(size_t nodes) {
    NodeSet all;
    for (uint32_t node = 0; node < nodes; ++node) all.Add(NodeSet(node));
    return all;
  }

  Loop loop_;
  std::vector<std::unique_ptr<Daemon>> daemons_;
  uint64_t id_ = 0;
};

TEST_F(Tree, EveryNodeIsCountedOnceWhateverTheShape) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 30; ++round) {
    daemons_.clear();
    std::vector<size_t> parents;
    const size_t nodes = 1 + random() % 30;
    for (size_t i = 0; i < nodes; ++i) parents.push_back(random() % (i + 1));
    Build(parents);
    QuerySpec spec = SumOf(20);
    spec.aggregator = static_cast<Aggregator>(random() % 6);
    const Gathered answer = Ask(spec);
    ASSERT_TRUE(answer.failure.ok());
    EXPECT_EQ(answer.nodes, nodes);
    EXPECT_EQ(answer.who, All(nodes));
    EXPECT_EQ(FinishPart(spec, answer.part), Central(spec));
  }
}

TEST_F(Tree, ASilentNodeCostsNobodyElse) {
  Build({0, 1, 1, 2, 2});  // 5 is a leaf at the third level
  daemons_[5]->silent = true;
  const QuerySpec spec = SumOf(20);
  const Gathered answer = Ask(spec, 5 * kSecond);
  EXPECT_EQ(answer.nodes, 4u) << "parents wait less long than theirs";
  EXPECT_EQ(answer.who, All(4)) << "the silent one is the last";
  EXPECT_EQ(FinishPart(spec, answer.part), Central(spec, {5}));
}

TEST_F(Tree, ANodeThatGoesIsNotWaitedFor) {
  Build({0, 0});
  daemons_[2]->silent = true;
  loop_.After(kMillisecond, [this] { daemons_[2]->to_parent.reset(); });
  const QuerySpec spec = SumOf(20);
  const Gathered answer = Ask(spec);
  EXPECT_EQ(answer.nodes, 1u);
  EXPECT_EQ(FinishPart(spec, answer.part), Central(spec, {2}));
}

TEST_F(Tree, AReplyThatIsNoneIsLeftOutWithWhatIsBelow) {
  Build({0, 0, 1});
  daemons_[1]->instead = "\1\1nonsense";
  const QuerySpec spec = SumOf(20);
  const Gathered answer = Ask(spec);
  EXPECT_TRUE(answer.failure.ok());
  EXPECT_EQ(answer.nodes, 1u);
  EXPECT_EQ(FinishPart(spec, answer.part), Central(spec, {1, 3}));
}

TEST_F(Tree, AnAnswerThatIsTooLargeIsRefusedWithItsLimit) {
  Build({0, 1, 1, 1});
  QuerySpec spec = SumOf(2'000'000);
  spec.downsample.reset();
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  for (size_t i = 2; i < daemons_.size(); ++i) daemons_[i]->data = {DataOf(i, 400'000)};
  const Gathered answer = Ask(spec);
  EXPECT_EQ(answer.failure.code(), Code::kLimit);
  EXPECT_THAT(std::string(answer.failure.message()), HasSubstr("more than 1048576 points"));
  // The next one is answered.
  EXPECT_EQ(Ask(SumOf(20)).nodes, 4u);
}

// Two children that answer for one node: it is in the answer once.
TEST_F(Tree, ANodeThatAnswersOverTwoChildrenCountsOnce) {
  Build({0, 0});
  daemons_[2]->node = 0;
  daemons_[2]->data = daemons_[1]->data;
  const QuerySpec spec = SumOf(20);
  const Gathered answer = Ask(spec);
  EXPECT_EQ(answer.nodes, 1u);
  EXPECT_EQ(answer.who, All(1));
  EXPECT_EQ(FinishPart(spec, answer.part), Central(spec, {2}));
}

// A daemon of an earlier release does not say who answered.
TEST_F(Tree, WhoAnsweredIsKnownOfThoseWhoSaySo) {
  Build({0, 0});
  daemons_[2]->instead = *EncodePart(EmptyPart(SumOf(20)));
  const Gathered answer = Ask(SumOf(20));
  EXPECT_EQ(answer.nodes, 2u);
  EXPECT_EQ(answer.who, All(1));
}

TEST_F(Tree, WhatWasAskedBeforeIsNotAnsweredAgain) {
  Build({0});
  ASSERT_EQ(Ask(SumOf(20)).nodes, 1u);
  daemons_.push_back(std::make_unique<Daemon>(loop_));  // another parent, which asks the same
  auto [up, down] = LocalLink::MakePair(loop_, "child", "parent");
  up->SetMaxMessage(kMaxMessage);
  down->SetMaxMessage(kMaxMessage);
  ReplyMessage reply;
  up->SetHandler({[&](uint8_t type, std::string_view payload) {
                    if (static_cast<Type>(type) != Type::kReply) return;
                    ASSERT_TRUE(Decode(payload, reply).ok());
                    loop_.Stop();
                  },
                  nullptr});
  down->SetHandler(
      {[this](uint8_t, std::string_view payload) { daemons_[1]->OnQuery(payload); }, nullptr});
  daemons_[1]->to_parent = std::move(down);
  ASSERT_TRUE(Send(*up, Type::kQuery, Encode(Question{id_, SumOf(20), {}, kSecond})));
  loop_.Run();
  EXPECT_EQ(reply.id, id_);
  EXPECT_EQ(reply.nodes, 0u);
  EXPECT_EQ(reply.code, 0u);
}

TEST(QueryFanout, TooManyOpenQuestionsFail) {
  Loop loop;
  auto [up, down] = LocalLink::MakePair(loop, "child", "parent");
  QueryFanout queries(loop);
  size_t failed = 0;
  for (uint64_t id = 1; id <= QueryFanout::kMaxOpen + 2; ++id) {
    queries.Ask({id, SumOf(20), {}, kSecond}, {up.get()}, {}, [&](const Gathered& answer) {
      EXPECT_EQ(answer.failure.code(), Code::kLimit);
      ++failed;
    });
  }
  EXPECT_EQ(failed, 2u);
}

// Each is within its bound, together they are not: the one that goes over fails, the others stay.
TEST(QueryFanout, OpenQuestionsShareABoundOfMemory) {
  Loop loop;
  auto [up, down] = LocalLink::MakePair(loop, "child", "parent");
  QueryFanout queries(loop);
  const QuerySpec spec = [] {
    QuerySpec s = SumOf(2'000'000);
    s.downsample.reset();
    return s;
  }();
  const QueryFanout::Own part{
      0, EvaluatePart(spec, {DataOf(1, static_cast<int>(kMaxPartPoints))}, nullptr)};
  size_t failed = 0;
  const size_t fit = QueryFanout::kMaxHeldPoints / kMaxPartPoints;
  for (uint64_t id = 1; id <= fit + 2; ++id) {
    queries.Ask({id, spec, {}, kSecond}, {up.get()}, part, [&](const Gathered& answer) {
      EXPECT_EQ(answer.failure.code(), Code::kLimit);
      EXPECT_TRUE(answer.part.groups.empty());
      ++failed;
    });
  }
  EXPECT_EQ(failed, 2u);
}

}  // namespace
}  // namespace sonde::tree::tree_query_test
