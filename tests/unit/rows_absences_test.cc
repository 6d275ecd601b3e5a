// At which times rows of a step lack a node that was there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "series/query/pieces/absences.h"

namespace sonde::rows_absences_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr Nanos kEver = std::numeric_limits<Nanos>::max();

// Two nodes from 100 on, of which the second one ends at 145; a row every 10.
std::vector<NodeInfo> Nodes() {
  std::vector<NodeInfo> nodes(2);
  for (NodeInfo& node : nodes) node.joined = 100;
  nodes[0].host = "n1";
  nodes[1].host = "n2";
  nodes[1].left = 145;
  return nodes;
}
const std::vector<PresenceRun> kRows = {{110, 2, 2, 0, 0}, {150, 1, 0, 1, 0}};

std::vector<std::pair<Nanos, Nanos>> Ranges(const std::vector<NodeInfo>& nodes) {
  std::vector<std::pair<Nanos, Nanos>> ranges;
  for (const TimeRange& range : AbsencesOf(nodes, kRows, 0, false)) {
    ranges.emplace_back(range.first, range.last);
  }
  return ranges;
}

TEST(AbsencesTest, NoneBehindTheEndOfANode) {
  EXPECT_THAT(Ranges(Nodes()), ElementsAre(Pair(0, 109), Pair(145, 145), Pair(149, 149)));
}

TEST(AbsencesTest, ANodeWhoseEndCameLateIsAbsentUntilRowsHaveIt) {
  std::vector<NodeInfo> nodes = Nodes();
  nodes[1].end_in_rows = 171;
  EXPECT_THAT(Ranges(nodes),
              ElementsAre(Pair(0, 109), Pair(145, 145), Pair(149, 149), Pair(150, 170)));
}

// It was lost, and is back.
TEST(AbsencesTest, ANodeThatIsBackIsAbsentWhereRowsLackIt) {
  std::vector<NodeInfo> nodes = Nodes();
  nodes[1].left = 0;
  nodes[1].end_in_rows = 171;
  EXPECT_THAT(Ranges(nodes), ElementsAre(Pair(0, 109), Pair(149, 149), Pair(150, kEver)));
}

// --- At every time, of random nodes and rows ---

constexpr Nanos kLast = 80;  // all times are earlier

NodeInfo RandomNode(std::mt19937_64& random) {
  NodeInfo node;
  node.host = "n" + std::to_string(random() % 4);
  node.job = random() % 4 == 0 ? "8" : "7";
  node.joined = static_cast<Nanos>(random() % 50);
  if (random() % 2 == 0) node.left = node.joined + static_cast<Nanos>(1 + random() % 20);
  node.lost = node.left != 0 && random() % 3 == 0;
  if (node.left != 0 && random() % 4 == 0) node.end_in_rows = node.left + 5;
  return node;
}

std::vector<PresenceRun> RandomRuns(std::mt19937_64& random) {
  std::vector<PresenceRun> runs;
  Nanos time = static_cast<Nanos>(random() % 30);
  while (time < 70) {
    PresenceRun& run = runs.emplace_back();
    run.first = time;
    run.nodes = static_cast<uint32_t>(random() % 5);
    run.joined = static_cast<uint32_t>(random() % 2);
    run.left = static_cast<uint32_t>(random() % 2);
    time += static_cast<Nanos>(1 + random() % 20);
  }
  return runs;
}

// Whether rows of that time are not right, or somebody comes or goes then.
bool IsAbsence(Nanos time, const std::vector<NodeInfo>& nodes, const std::vector<PresenceRun>& runs,
               Nanos end, bool each_value) {
  using Name = std::pair<std::string, std::string>;
  std::map<Name, std::vector<const NodeInfo*>> hosts;
  for (const NodeInfo& node : nodes) hosts[{node.job, node.host}].push_back(&node);
  uint32_t there = 0;
  for (const auto& [name, daemons] : hosts) {
    bool has_come = false;
    bool goes_on = false;
    Nanos second = kEver;
    for (const NodeInfo* daemon : daemons) {
      if (time == daemon->joined) return true;
      if (time == daemon->left && daemon->left != 0 && !daemon->lost) return true;
      has_come = has_come || daemon->joined <= time;
      goes_on =
          goes_on || daemon->left == 0 || daemon->left >= time || daemon->end_in_rows - 1 >= time;
      if (daemon != daemons.front()) {
        second = std::min(second, std::max(daemons.front()->joined, daemon->joined));
      }
    }
    if (each_value && time >= second) return true;
    there += has_come && goes_on ? 1 : 0;
  }
  if (end != 0 && time >= end) return true;
  uint32_t in_rows = 0;
  for (const PresenceRun& run : runs) {
    if (time == std::max<Nanos>(run.first - 1, 0) && (run.joined > 0 || run.left > 0)) return true;
    if (run.first <= time) in_rows = run.nodes;
  }
  return in_rows == 0 || in_rows < there;
}

TEST(AbsencesTest, AreAllTimesAtWhichRowsAreNotRight) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<NodeInfo> nodes(random() % 8);
    for (NodeInfo& node : nodes) node = RandomNode(random);
    std::vector<PresenceRun> runs = RandomRuns(random);
    const Nanos end = random() % 3 == 0 ? 75 : 0;
    const bool each_value = random() % 2 == 0;
    const std::vector<TimeRange> told = AbsencesOf(nodes, runs, end, each_value);
    for (size_t i = 0; i < told.size(); ++i) {
      ASSERT_LE(told[i].first, told[i].last);
      ASSERT_TRUE(i == 0 || told[i - 1].last < told[i].first);
    }
    for (Nanos time = 0; time <= kLast; ++time) {
      const bool is_in = std::any_of(told.begin(), told.end(), [&](const TimeRange& range) {
        return range.first <= time && time <= range.last;
      });
      ASSERT_EQ(is_in, IsAbsence(time, nodes, runs, end, each_value))
          << "round " << round << ", time " << time;
    }
  }
}

TEST(AbsencesTest, OfRowsOfWhichNothingIsKnownAreAllTimes) {
  const std::vector<TimeRange> told = AbsencesOf(Nodes(), {}, 0, false);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].first, 0);
  EXPECT_EQ(told[0].last, kEver);
}

}  // namespace
}  // namespace sonde::rows_absences_test
