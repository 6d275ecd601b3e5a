// Who has registered, and who is away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/head/registry/absences.h"
#include "daemon/head/registry/registrations.h"
#include "daemon/loop.h"
#include "daemon/step_clock.h"

namespace sonde::head::head_nodes_test {
namespace {

tree::Registration Who(const std::string& job, uint32_t node, uint32_t nodes) {
  tree::Registration who;
  who.job = job;
  who.node_id = node;
  who.nodes = nodes;
  return who;
}

TEST(Registrations, ADaemonThatWasStartedAnewTakesThePlaceOfTheOneBefore) {
  Registrations all(2);
  EXPECT_EQ(all.IndexOf(Who("7", 1, 2)), std::nullopt);
  EXPECT_EQ(all.Enter(Who("7", 1, 2), 0), std::nullopt);
  EXPECT_EQ(all.Enter(Who("7", 0, 2), 1), std::nullopt);
  EXPECT_EQ(all.Enter(Who("7", 1, 2), 2), 0u);
  EXPECT_EQ(all.IndexOf(Who("7", 1, 2)), 2u);
  EXPECT_EQ(all.size(), 2u) << "nodes, not daemons";
}

TEST(Registrations, HetComponentsAreTheStepTogether) {
  Registrations all(2);
  EXPECT_FALSE(all.Expect(Who("7", 0, 2)));
  EXPECT_TRUE(all.Expect(Who("8", 0, 3)));
  EXPECT_FALSE(all.Expect(Who("8", 1, 3)));
  EXPECT_EQ(all.expected(), 5u);
  all.Enter(Who("7", 0, 2), 0);
  EXPECT_EQ(all.IndexOf(Who("8", 0, 3)), std::nullopt);
}

TEST(Registrations, OfNodesThatAnotherHeadKnewTheNewestCounts) {
  JobDescription job;
  job.expected_nodes = 3;
  for (const uint32_t node : {0u, 1u, 0u}) {
    job.nodes.emplace_back();
    job.nodes.back().job = "7";
    job.nodes.back().node_id = node;
  }
  Registrations all(1);
  all.Inherit(job);
  EXPECT_EQ(all.expected(), 3u);
  EXPECT_EQ(all.IndexOf(Who("7", 0, 3)), 2u);
  EXPECT_EQ(all.size(), 2u);
}

class Away : public testing::Test, private Absences::Owner {
 protected:
  void OnOverdue(const std::vector<Absences::Overdue>& nodes) override {
    for (const Absences::Overdue& node : nodes) overdue_.push_back(node.node);
    if (overdue_.size() >= wanted_) loop_.Stop();
  }

  Loop loop_;
  const StepClock clock_{/*ahead=*/3600 * kSecond};
  Absences absences_{loop_, clock_, *this};
  std::vector<uint32_t> overdue_;
  size_t wanted_ = 1;
};

TEST_F(Away, WhyAndSinceWhenSomebodyIsAwayIsKnown) {
  EXPECT_EQ(absences_.Of(4), std::nullopt);
  const Nanos before = clock_.Now();
  absences_.Add(4, "reset", kSecond);
  const auto away = absences_.Of(4);
  ASSERT_TRUE(away.has_value());
  EXPECT_EQ(away->why, "reset");
  EXPECT_GE(away->since, before);
  absences_.Remove(4);
  EXPECT_EQ(absences_.Of(4), std::nullopt);
}

TEST_F(Away, WhoDoesNotComeBackInTimeIsToldOf) {
  absences_.Add(4, "reset", kSecond / 100);
  absences_.Add(3, "reset", kSecond / 50);
  absences_.Add(5, "reset", kSecond / 200);
  absences_.Remove(5);
  wanted_ = 2;
  loop_.Run();
  // In this order, unless both were due when somebody looked.
  EXPECT_THAT(overdue_, testing::UnorderedElementsAre(4, 3));
  EXPECT_TRUE(absences_.TakeAll().empty());
}

TEST_F(Away, HurryShortensTheTimeOfThoseThatAreAwayNow) {
  absences_.Add(1, "reset", 3600 * kSecond);
  absences_.Add(0, "silence", 3600 * kSecond);
  absences_.Hurry(0);
  const Nanos before = clock_.Now();
  absences_.Add(2, "reset", 3600 * kSecond);
  wanted_ = 2;
  loop_.Run();
  EXPECT_THAT(overdue_, testing::ElementsAre(0, 1));
  const std::vector<Absences::Overdue> left = absences_.TakeAll();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].node, 2u);
  EXPECT_EQ(left[0].why, "reset");
  EXPECT_GE(left[0].since, before) << "by the step's clock";
}

}  // namespace
}  // namespace sonde::head::head_nodes_test
