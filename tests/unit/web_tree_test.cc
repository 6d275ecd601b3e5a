// /api/v1/tree: links and nodes of a running step, what is said of one that has ended, its bound.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <string>
#include <utility>

#include "tests/unit/web_fake_source.h"
#include "web/router.h"

namespace sonde::web::web_tree_test {
namespace {

constexpr Nanos kNow = 1'800'000'000 * kSecond;

class LinkedSource final : public FakeSource {
 public:
  LinkedSource() : FakeSource(kNow) {}
  void Links(const JobStep& id, LinkTreeCallback callback) const override {
    if (id.ToString() != "4712.0") return FakeSource::Links(id, std::move(callback));
    callback(tree);
  }
  LinkTree tree;
};

class TreeEndpoint : public testing::Test {
 protected:
  TreeEndpoint() {
    LinkTree& tree = source_->tree;
    tree.head = "login1";
    tree.expected = 4;
    tree.registered = 3;
    tree.now = kNow;
    tree.period = kSecond;
    tree.newest_tick = kNow - kSecond;
    tree.nodes.resize(3);
    tree.nodes[0].host = "n1";
    tree.nodes[0].carrier = "sockets";
    tree.nodes[0].since = kNow - 60 * kSecond;
    tree.nodes[0].last_tick = tree.newest_tick;
    tree.nodes[1].host = "n2";
    tree.nodes[1].parent = 0;
    tree.nodes[1].carrier = "tcp";
    tree.nodes[2].host = "n3";
    tree.nodes[2].parent = 7;  // nobody
    tree.nodes[2].state = LinkTree::State::kLost;
    tree.nodes[2].note = "connection reset by peer";
  }

  Response Ask(const std::string& query) {
    Request request;
    EXPECT_TRUE(ParseTarget("/api/v1/tree" + query, request).ok());
    const FixedClock clock(kNow);
    std::promise<Response> answer;
    Dispatch(Context(*source_, &clock), request,
             [&](Response response) { answer.set_value(std::move(response)); });
    return answer.get_future().get();
  }
  boost::json::object Json(const Response& response, int status) {
    EXPECT_EQ(response.status, status) << response.body;
    return boost::json::parse(response.body).as_object();
  }

  std::shared_ptr<LinkedSource> source_ = std::make_shared<LinkedSource>();
};

TEST_F(TreeEndpoint, TellsLinksAndNodes) {
  const boost::json::object tree = Json(Ask("?job=4712.0"), 200);
  EXPECT_EQ(tree.at("running"), true);
  EXPECT_EQ(tree.at("head"), "login1");
  EXPECT_EQ(tree.at("expected"), 4);
  EXPECT_EQ(tree.at("registered"), 3);
  EXPECT_EQ(tree.at("newest_tick"), kNow - kSecond);
  const boost::json::array& nodes = tree.at("nodes").as_array();
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_TRUE(nodes[0].at("parent").is_null()) << "the head";
  EXPECT_EQ(nodes[0].at("state"), "connected");
  EXPECT_EQ(nodes[0].at("last_tick"), kNow - kSecond);
  EXPECT_FALSE(nodes[0].as_object().contains("note"));
  EXPECT_EQ(nodes[1].at("parent"), 0);
  EXPECT_EQ(nodes[1].at("carrier"), "tcp");
  EXPECT_TRUE(nodes[2].at("parent").is_null());
  EXPECT_EQ(nodes[2].at("state"), "lost");
  EXPECT_EQ(nodes[2].at("note"), "connection reset by peer");
}

TEST_F(TreeEndpoint, OfAStepThatHasEndedSaysThat) {
  const boost::json::object tree = Json(Ask("?job=4711.0"), 200);
  EXPECT_EQ(tree.at("running"), false);
  EXPECT_TRUE(tree.at("nodes").as_array().empty());
  EXPECT_EQ(tree.at("expected"), 4);
}

TEST_F(TreeEndpoint, WhatCannotBeAnsweredIsSaid) {
  EXPECT_EQ(Json(Ask(""), 400).at("error").at("message"),
            "parameter job is missing: the job and step, such as 4711.0");
  Json(Ask("?job=9.0"), 404);
}

TEST_F(TreeEndpoint, HasAllNodesOfALargeStep) {
  LinkTree::Node node = source_->tree.nodes[1];
  source_->tree.nodes.resize(100'000, node);
  const Response response = Ask("?job=4712.0");
  EXPECT_EQ(response.status, 200);
  EXPECT_LT(response.body.size(), 150u * 100'000);
  EXPECT_EQ(Json(response, 200).at("nodes").as_array().size(), 100'000u);
}

TEST_F(TreeEndpoint, ItsSizeIsBounded) {
  source_->tree.nodes.resize(131'073);
  const boost::json::object error = Json(Ask("?job=4712.0"), 413);
  EXPECT_EQ(error.at("error").at("count"), 131'073);
  EXPECT_EQ(error.at("error").at("limit"), 131'072);
}

}  // namespace
}  // namespace sonde::web::web_tree_test
