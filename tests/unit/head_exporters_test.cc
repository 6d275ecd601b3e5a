// The exporters that nodes scrape for the head: who is told what, and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "daemon/head/answers/exporters.h"
#include "fake_clock.h"

namespace sonde::head::head_exporters_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tree::JoinedMessage;
using tree::Type;
using State = web::Exporter::State;

class ExportersTest : public testing::Test {
 protected:
  web::ScrapeTarget Target(const char* port = "9100") {
    return {"localhost", port, "/metrics", 500 * kMillisecond};
  }
  // What came of it, once something has.
  std::optional<Result<web::JoinedNodes>> outcome_;
  void Join(std::vector<uint32_t> nodes, const web::ScrapeTarget& target) {
    outcome_.reset();
    exporters_.Join(nodes, target,
                    [this](Result<web::JoinedNodes> result) { outcome_ = std::move(result); });
  }
  void Says(uint32_t node, uint32_t state, const web::ScrapeTarget& target,
            const std::string& why = "") {
    JoinedMessage said;
    said.target = web::EncodeScrape(target);
    said.state = state;
    said.kind = "Prometheus";
    said.url = target.Url();
    said.why = why;
    exporters_.OnJoined(node, Encode(said));
  }
  std::vector<State> States() {
    std::vector<State> states;
    for (const web::Exporter& one : exporters_.List()) states.push_back(one.state);
    return states;
  }

  Loop loop_;
  FakeClock clock_;
  std::vector<std::pair<uint32_t, Type>> sent_;
  uint32_t absent_ = 99;  // a node without a connection
  Exporters exporters_{loop_, clock_,
                       [this](uint32_t node, Type type, std::string_view) {
                         if (node == absent_) return false;
                         sent_.emplace_back(node, type);
                         return true;
                       },
                       [](uint32_t node) { return "n" + std::to_string(node); }};
};

TEST_F(ExportersTest, WhoAsksIsToldWhenEachNodeHasTriedIt) {
  Join({1, 2}, Target());
  EXPECT_THAT(sent_, ElementsAre(std::pair(1u, Type::kJoin), std::pair(2u, Type::kJoin)));
  EXPECT_THAT(States(), ElementsAre(State::kStarting, State::kStarting));
  Says(1, JoinedMessage::kUp, Target());
  EXPECT_FALSE(outcome_);
  Says(2, JoinedMessage::kFailed, Target(), "connection refused");
  ASSERT_TRUE(outcome_ && outcome_->ok());
  EXPECT_EQ((*outcome_)->scraping, "n1");
  EXPECT_EQ((*outcome_)->failed, "n2: connection refused");
  EXPECT_THAT(States(), ElementsAre(State::kUp, State::kFailed));
  EXPECT_EQ(exporters_.List()[1].why, "connection refused");
  EXPECT_EQ(exporters_.List()[0].last_scrape, clock_.Now());
  EXPECT_EQ(exporters_.List()[1].last_scrape, 0);
}

TEST_F(ExportersTest, AnExporterThatNoNodeCanScrapeIsAnError) {
  Join({1, absent_}, Target());
  Says(1, JoinedMessage::kFailed, Target(), "connection refused");
  ASSERT_TRUE(outcome_);
  EXPECT_EQ(outcome_->status().code(), Code::kUnavailable);
  EXPECT_THAT(std::string(outcome_->status().message()), HasSubstr("n1: connection refused"));
  EXPECT_THAT(std::string(outcome_->status().message()), HasSubstr("n99: no connection"));
  EXPECT_THAT(States(), ElementsAre(State::kFailed));
  // It may be tried once more.
  Join({1}, Target());
  EXPECT_THAT(States(), ElementsAre(State::kStarting));
  Says(1, JoinedMessage::kUp, Target());
  EXPECT_TRUE(outcome_ && outcome_->ok());
}

TEST_F(ExportersTest, ItIsDownUntilItAnswersAgain) {
  Join({1}, Target());
  Says(1, JoinedMessage::kUp, Target());
  const Nanos up = clock_.Now();
  Says(1, JoinedMessage::kDown, Target(), "timed out");
  clock_.time += kSecond;
  EXPECT_THAT(States(), ElementsAre(State::kDown));
  EXPECT_EQ(exporters_.List()[0].last_scrape, up);
  EXPECT_EQ(exporters_.List()[0].why, "timed out");
  Says(1, JoinedMessage::kUp, Target());
  EXPECT_THAT(States(), ElementsAre(State::kUp));
  EXPECT_EQ(exporters_.List()[0].why, "");
}

TEST_F(ExportersTest, WhatIsNotWantedAnyMoreIsForgotten) {
  Join({1, 2}, Target());
  Join({1}, Target("9101"));
  sent_.clear();
  EXPECT_TRUE(exporters_.Unjoin("localhost:9100").ok());
  EXPECT_THAT(sent_, ElementsAre(std::pair(1u, Type::kUnjoin), std::pair(2u, Type::kUnjoin)));
  EXPECT_EQ(States().size(), 1u);
  EXPECT_EQ(exporters_.Unjoin("localhost:9100").code(), Code::kNotFound);
  // Another head had it ended.
  Says(1, JoinedMessage::kUp, Target("9101"));
  Says(1, JoinedMessage::kGone, Target("9101"));
  EXPECT_THAT(States(), IsEmpty());
}

TEST_F(ExportersTest, WhoWaitsForOneThatIsDisconnectedIsTold) {
  Join({1}, Target());
  EXPECT_TRUE(exporters_.Unjoin("localhost:9100").ok());
  ASSERT_TRUE(outcome_);
  EXPECT_EQ(outcome_->status().code(), Code::kUnavailable);
  EXPECT_THAT(std::string(outcome_->status().message()), HasSubstr("n1: it was disconnected"));
  // Wanted again before the node has said that the first is gone.
  Join({1}, Target());
  Says(1, JoinedMessage::kGone, Target());
  EXPECT_THAT(States(), ElementsAre(State::kStarting));
  EXPECT_FALSE(outcome_);
  Says(1, JoinedMessage::kUp, Target());
  EXPECT_TRUE(outcome_ && outcome_->ok());
}

// A node may have 64, of those that could not be scraped the newest.
TEST_F(ExportersTest, WhatFailedMakesRoomForWhatIsAskedForNow) {
  const auto join = [&](size_t i, uint32_t state) {
    const web::ScrapeTarget target = Target(std::to_string(1000 + i).c_str());
    Join({1}, target);
    Says(1, state, target, "connection refused");
    ASSERT_TRUE(outcome_);
    EXPECT_EQ(outcome_->ok(), state == JoinedMessage::kUp);
  };
  join(999, JoinedMessage::kUp);
  // One that fails again is not the oldest any more.
  join(0, JoinedMessage::kFailed);
  for (size_t i = 1; i < 63; ++i) join(i, JoinedMessage::kFailed);
  join(0, JoinedMessage::kFailed);
  EXPECT_EQ(States().size(), Exporters::kMaxOfNode);
  for (size_t i = 63; i < 65; ++i) join(i, JoinedMessage::kFailed);
  EXPECT_EQ(States().size(), Exporters::kMaxOfNode);
  std::set<std::string> ports;
  for (const web::Exporter& one : exporters_.List()) ports.insert(one.target.port);
  EXPECT_TRUE(ports.contains("1999")) << "one that is scraped stays";
  EXPECT_TRUE(ports.contains("1000")) << "it failed once more";
  EXPECT_FALSE(ports.contains("1001")) << "it failed first";
  EXPECT_FALSE(ports.contains("1002")) << "it failed next";
  EXPECT_TRUE(ports.contains("1003"));
  // Other nodes have room of their own.
  Join({2}, Target());
  EXPECT_EQ(States().size(), Exporters::kMaxOfNode + 1);
}

TEST_F(ExportersTest, ANodeWithoutRoomRefuses) {
  for (size_t i = 0; i < Exporters::kMaxOfNode; ++i) {
    Join({1}, Target(std::to_string(1000 + i).c_str()));
  }
  sent_.clear();
  Join({1, 2}, Target("999"));
  EXPECT_THAT(sent_, ElementsAre(std::pair(2u, Type::kJoin)));
  Says(2, JoinedMessage::kUp, Target("999"));
  ASSERT_TRUE(outcome_ && outcome_->ok());
  EXPECT_EQ((*outcome_)->failed, "n1: it has 64 exporters already; /disconnect one");
  EXPECT_EQ(States().size(), Exporters::kMaxOfNode + 1);
  // One that it has is no more.
  Join({1}, Target("1000"));
  EXPECT_FALSE(outcome_);
}

TEST_F(ExportersTest, ANodeThatGoesTakesItsExportersWithIt) {
  Join({1, 2}, Target());
  Says(2, JoinedMessage::kUp, Target());
  exporters_.OnGone(1);
  ASSERT_TRUE(outcome_ && outcome_->ok());
  EXPECT_EQ((*outcome_)->failed, "n1: the node has ended");
  EXPECT_THAT(States(), ElementsAre(State::kUp));
}

TEST_F(ExportersTest, AnotherHeadLearnsOfThemFromTheNodes) {
  Says(3, JoinedMessage::kUp, Target());
  ASSERT_EQ(exporters_.List().size(), 1u);
  EXPECT_EQ(exporters_.List()[0].host, "n3");
  EXPECT_EQ(exporters_.List()[0].target.every, 500 * kMillisecond);
  // As many as a node may have, whatever it says.
  for (int i = 0; i < 200; ++i) {
    Says(3, JoinedMessage::kUp, Target(std::to_string(1000 + i).c_str()));
  }
  EXPECT_EQ(exporters_.List().size(), Exporters::kMaxOfNode);
  exporters_.OnJoined(3, "\xff\xff");
  exporters_.OnJoined(3, Encode(JoinedMessage{"no target"}));
  EXPECT_EQ(exporters_.List().size(), Exporters::kMaxOfNode);
}

}  // namespace
}  // namespace sonde::head::head_exporters_test
