// At which times rows of a step lack a node that was there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "series/query/pieces/absences.h"

namespace sonde {
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

}  // namespace
}  // namespace sonde
