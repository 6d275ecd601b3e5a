#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/launch_message.h"
#include "daemon/message/message.h"
#include "daemon/node/record/own_reducer.h"

namespace sonde::tree::tree_test {
namespace {

using testing::HasSubstr;

// --- Messages ---

TEST(Message, ATruncatedOrLongerOneIsRefused) {
  const std::string bytes =
      Encode(BlockMessage{7, "os", 3, 2, 128, 1, 4096, true, "schema", "block"});
  BlockMessage block;
  ASSERT_TRUE(Decode(bytes, block).ok());
  EXPECT_EQ(block.sequence, 3u);
  EXPECT_EQ(block.bytes, "block");
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(Decode(std::string_view(bytes).substr(0, n), block).ok()) << n;
  }
  EXPECT_FALSE(Decode(bytes + "x", block).ok());
}

TEST(Message, AByeKeepsSignsAndFractions) {
  Bye bye;
  ASSERT_TRUE(Decode(Encode(Bye{.exit_status = -1, .ticks = 9, .cpu_seconds = 0.125}), bye).ok());
  EXPECT_EQ(bye.exit_status, -1);
  EXPECT_EQ(bye.ticks, 9u);
  EXPECT_EQ(bye.cpu_seconds, 0.125);
}

// --- A node's own values ---

Series Gauge(std::string name) {
  Series s;
  s.metric.name = std::move(name);
  return s;
}

TEST(OwnReducer, TasksBecomeOneWithTheRankOfTheExtremes) {
  Series rss0 = Gauge("task_resident_memory_bytes"), rss7 = rss0;
  rss0.tags.Set("task", "0");
  rss7.tags.Set("task", "7");
  const Schema::Ptr groups[] = {Schema::Make({Gauge("node_load1")}), Schema::Make({rss0, rss7})};
  OwnReducer reducer;
  EXPECT_TRUE(reducer.SetSchemas(groups));
  EXPECT_FALSE(reducer.SetSchemas(groups));
  reducer.SetNode(3);
  reducer.Begin(kSecond);
  reducer.Add(0, std::vector<double>{0.5});
  reducer.Add(1, std::vector<double>{100, 400});
  ASSERT_EQ(reducer.schema()->size(), 2u);
  EXPECT_TRUE((*reducer.schema())[1].tags.empty());
  EXPECT_EQ(reducer.values()[1].sum, 500);
  EXPECT_EQ(reducer.values()[1].max_owner, (Owner{3, 7}));
  EXPECT_EQ(reducer.values()[0].max_owner, (Owner{3, Owner::kNobody}));
}

Series OfTask(const char* name, int task, MetricType type) {
  Series series = Gauge(name);
  series.metric.type = type;
  series.metric.spread = true;
  series.tags.Set("task", std::to_string(task));
  return series;
}

TEST(OwnReducer, ASpreadIsOfAGaugesValuesAndOfACountersRates) {
  std::vector<Series> columns;
  for (int task = 0; task < 3; ++task) {
    columns.push_back(OfTask("rss", task, MetricType::kGauge));
    columns.push_back(OfTask("cpu_total", task, MetricType::kCounter));
  }
  const Schema::Ptr tasks = Schema::Make(columns);
  const Schema::Ptr groups[] = {tasks};
  OwnReducer reducer;
  reducer.SetSchemas(groups);
  reducer.Begin(2 * kSecond);
  reducer.Add(0, std::vector<double>{10, 100, 20, 100, 30, std::nan("")});
  ASSERT_EQ(reducer.spreads().size(), 2u);
  EXPECT_EQ(reducer.spreads()[0].count(), 3u);
  EXPECT_NEAR(reducer.spreads()[0].Percentile(0.5), 20, 0.2);
  EXPECT_TRUE(reducer.spreads()[1].empty()) << "a counter's first point has no rate";
  // Twice the same sample, as when the node learns its number.
  for (int again = 0; again < 2; ++again) {
    reducer.Begin(4 * kSecond);
    reducer.Add(0, std::vector<double>{10, 102, std::nan(""), 108, 30, 7});
    EXPECT_EQ(reducer.spreads()[0].count(), 2u);
    EXPECT_EQ(reducer.spreads()[1].count(), 2u);
    EXPECT_EQ(reducer.spreads()[1].min(), 1) << "per second";
    EXPECT_EQ(reducer.spreads()[1].max(), 4);
  }
  // A counter goes on when other series come.
  columns.insert(columns.begin(), Gauge("new"));
  const Schema::Ptr more[] = {Schema::Make(columns)};
  EXPECT_TRUE(reducer.SetSchemas(more));
  reducer.Begin(5 * kSecond);
  reducer.Add(0, std::vector<double>{1, 10, 103, 20, 110, 30, 9});
  EXPECT_EQ(reducer.spreads()[1].count(), 3u);
  EXPECT_EQ(reducer.spreads()[1].min(), 1);
  EXPECT_EQ(reducer.spreads()[1].max(), 2);
}

// --- Launch message ---

TEST(LaunchMessage, IsCheckedKeyByKey) {
  const std::string good =
      "role=node\njob=12\nstep=0\nlevel=2\nhost=n1\nhead_host=127.0.0.1\n"
      "head_port=4000\nnodes=4\nuid=1000\nkey=" +
      std::string(64, 'a') + "\n";
  const auto message = ParseLaunchMessage(good + "something_new=1\ngpus=0,2-3\n");
  ASSERT_TRUE(message.ok()) << message.status().message();
  EXPECT_EQ(message->job.id.ToString(), "12.0");
  EXPECT_EQ(message->job.expected_nodes, 4u);
  EXPECT_EQ(message->key[0], 0xaa);
  EXPECT_EQ(message->gpus, "0,2-3");
  EXPECT_EQ(ParseLaunchMessage(good)->gpus, "") << "all of the node";
  EXPECT_THAT(ParseLaunchMessage(good + "note=at most 2 here\nnote=b\n")->notes,
              testing::ElementsAre("at most 2 here", "b"));
  const preload::Calls calls =
      ParseLaunchMessage(good + "calls=io,of_the_future,functions\n")->calls;
  EXPECT_EQ(preload::NamesOf(calls), "io,functions");
  EXPECT_FALSE(ParseLaunchMessage(good)->calls.any());
  const std::pair<const char*, const char*> bad[] = {
      {"level=7\n", "level: expected 0"},    {"key=zz\n", "64 hexadecimal"},
      {"head_port=99999\n", "whole number"}, {"period=1\n", "10ms to 1h"},
      {"role=king\n", "head, node or solo"}, {"nodes=4x\n", "whole number"},
  };
  for (const auto& [line, text] : bad) {
    const auto result = ParseLaunchMessage(good + line);
    ASSERT_FALSE(result.ok()) << line;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(text));
  }
  EXPECT_FALSE(ParseLaunchMessage("role=node\njob=1\nlevel=2\nhost=n\n").ok()) << "no key";
}

}  // namespace
}  // namespace sonde::tree::tree_test
