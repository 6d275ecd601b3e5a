// Metrics that come over HTTP: what the head takes, and what the node that records them makes of
// it.
#include "daemon/head/answers/pushed_metrics.h"

#include <gtest/gtest.h>

#include "daemon/node/record/pushed_source.h"

namespace sonde::pushed_metrics_test {
namespace {

using Kind = web::PushedValue::Kind;

web::PushedValue Of(Kind kind, std::string_view key, double value = 0) {
  web::PushedValue pushed;
  pushed.kind = kind;
  pushed.series = *web::ParsePushedKey(key);
  pushed.value = value;
  return pushed;
}

// A head and the sources of its two nodes.
class Pushed : public testing::Test {
 protected:
  Pushed() {
    job_.id = {"7", "0"};
    job_.nodes.resize(2);
    job_.nodes[0].host = "n1";
    job_.nodes[1].host = "n2";
  }
  Code Push(Kind kind, std::string_view key, double value = 0) {
    return head_.Push(job_, Of(kind, key, value)).code();
  }
  double Value(size_t node, std::string_view key) const {
    const Series wanted = *web::ParsePushedKey(key);
    for (size_t i = 0; i < nodes_[node].series().size(); ++i) {
      if (nodes_[node].series()[i].tags == wanted.tags &&
          nodes_[node].series()[i].metric.name == wanted.metric.name) {
        return nodes_[node].values()[i];
      }
    }
    return -1;
  }

  JobDescription job_;
  node::PushedSource nodes_[2];
  head::PushedMetrics head_{
      [this](uint32_t node, const std::string& bytes) { nodes_[node].Take(bytes); }};
};

TEST_F(Pushed, IsSetAndAddedToOnceItIsRegistered) {
  EXPECT_EQ(Push(Kind::kSet, "parts", 1), Code::kInvalid);
  EXPECT_EQ(Push(Kind::kRegister, "parts"), Code::kOk);
  EXPECT_EQ(Value(0, "parts"), 0);
  EXPECT_EQ(Push(Kind::kSet, "parts", 5), Code::kOk);
  EXPECT_EQ(Push(Kind::kAdd, "parts", 2), Code::kOk);
  EXPECT_EQ(Push(Kind::kRegister, "parts"), Code::kOk);
  EXPECT_EQ(Value(0, "parts"), 7);
  EXPECT_EQ(Push(Kind::kRegister, "parts{kind=a}"), Code::kOk);
  EXPECT_EQ(Value(0, "parts{kind=a}"), 0);
  EXPECT_EQ(nodes_[0].generation(), 2u);
}

TEST_F(Pushed, GoesToAnotherNodeWhenItsOwnIsGone) {
  EXPECT_EQ(Push(Kind::kRegister, "parts"), Code::kOk);
  job_.nodes[0].left = 1;
  EXPECT_EQ(Push(Kind::kAdd, "parts", 3), Code::kOk);
  EXPECT_EQ(Value(1, "parts"), 3);
  EXPECT_EQ(Value(0, "parts"), 0);
  job_.nodes[1].lost = true;
  EXPECT_EQ(Push(Kind::kAdd, "parts", 3), Code::kUnavailable);
}

TEST_F(Pushed, IsBounded) {
  for (size_t i = 0; i < web::kMaxPushedMetrics; ++i) {
    ASSERT_EQ(Push(Kind::kRegister, "parts" + std::to_string(i)), Code::kOk);
  }
  EXPECT_EQ(Push(Kind::kRegister, "one_more"), Code::kLimit);
  EXPECT_EQ(Push(Kind::kSet, "parts7", 1), Code::kOk);
  // The node has a bound of its own, whatever the head says.
  nodes_[0].Take(web::EncodePushed(Of(Kind::kSet, "one_more", 1)));
  nodes_[0].Take("nonsense");
  EXPECT_EQ(nodes_[0].series().size(), web::kMaxPushedMetrics);
}

}  // namespace
}  // namespace sonde::pushed_metrics_test
