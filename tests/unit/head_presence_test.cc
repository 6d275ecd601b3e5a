// Which nodes are in the rows: against a model that keeps every row's whole set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/head/record/presence.h"
#include "profiles/model/presence.h"
#include "series/query/pieces/absences.h"

namespace sonde::head::head_presence_test {
namespace {

using testing::ElementsAre;

constexpr Nanos kStart = 1'000'000 * kSecond;
Nanos At(int tick) { return kStart + tick * kSecond; }

tree::NodeSet Nodes(const std::set<uint32_t>& nodes) {
  tree::NodeSet set;
  for (const uint32_t node : nodes) set.Add(tree::NodeSet(node));
  return set;
}

// All rows, and runs made of them from the first one on.
class Model {
 public:
  void OnRow(Nanos tick, const std::set<uint32_t>& nodes) { rows_[tick] = nodes; }
  void OnLatePart(Nanos tick, const std::set<uint32_t>& nodes) {
    const auto row = rows_.find(tick);
    if (row == rows_.end()) return;
    const auto newer = static_cast<size_t>(std::distance(row, rows_.end()));
    if (newer <= Presence::kOpenRows) row->second.insert(nodes.begin(), nodes.end());
  }

  Nanos LastTickOf(uint32_t node) const {
    const auto row = std::find_if(rows_.rbegin(), rows_.rend(),
                                  [node](const auto& one) { return one.second.contains(node); });
    return row == rows_.rend() ? 0 : row->first;
  }

  std::vector<PresenceRun> Runs() const {
    std::vector<PresenceRun> runs;
    std::set<uint32_t> before;
    std::map<uint32_t, Nanos> seen;
    Nanos last = 0;
    for (const auto& [tick, nodes] : rows_) {
      if (last != 0 && tick > last + kSecond) {
        Add(last + kSecond, {}, before, seen, runs);
        before.clear();
      }
      Add(tick, nodes, before, seen, runs);
      before = nodes;
      for (const uint32_t node : nodes) seen[node] = tick;
      last = tick;
    }
    LimitPresence(runs);
    return runs;
  }

 private:
  static void Add(Nanos first, const std::set<uint32_t>& nodes, const std::set<uint32_t>& before,
                  const std::map<uint32_t, Nanos>& seen, std::vector<PresenceRun>& runs) {
    if (nodes == before && !runs.empty()) return;
    PresenceRun run;
    run.first = first;
    run.nodes = static_cast<uint32_t>(nodes.size());
    for (const uint32_t node : nodes) {
      if (before.contains(node)) continue;
      ++run.joined;
      if (!seen.contains(node)) continue;
      run.back_from = run.back_from == 0 ? seen.at(node) : std::min(run.back_from, seen.at(node));
    }
    for (const uint32_t node : before) run.left += nodes.contains(node) ? 0 : 1;
    runs.push_back(run);
  }

  std::map<Nanos, std::set<uint32_t>> rows_;
};

// Nodes come, stay away for a while and go; parts come late, some of them very late; ticks are left
// out. `calm`: how many rows lie between two changes.
void Check(uint64_t seed, int rows, uint32_t nodes, int calm) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  Model model;
  Presence presence(kSecond);
  std::set<uint32_t> here;
  std::map<Nanos, std::set<uint32_t>> late;
  for (int tick = 1; tick <= rows; ++tick) {
    while (below(calm) == 0) {
      const auto node = static_cast<uint32_t>(below(static_cast<int>(nodes)));
      if (here.erase(node) == 0) here.insert(node);
    }
    if (below(10 * calm) == 0) tick += below(3);
    std::set<uint32_t> in_time = here;
    for (const uint32_t node : here) {
      if (below(3) == 0 && late[At(tick)].insert(node).second) in_time.erase(node);
    }
    if (in_time.empty()) continue;
    model.OnRow(At(tick), in_time);
    presence.OnRow(At(tick), Nodes(in_time));
    // Of some row that lacks somebody; mostly a new one.
    for (int parts = below(6); parts > 0; --parts) {
      const int back = below(8) == 0 ? below(400) : below(4);
      const auto missing = late.find(At(tick - back));
      if (missing == late.end() || missing->second.empty()) continue;
      std::set<uint32_t> part;
      if (below(2) == 0) {
        part = std::exchange(missing->second, {});
      } else {
        part = {*missing->second.begin()};
        missing->second.erase(missing->second.begin());
      }
      model.OnLatePart(At(tick - back), part);
      presence.OnLatePart(At(tick - back), Nodes(part));
    }
    if (below(50) == 0) {
      ASSERT_EQ(presence.Runs(), model.Runs()) << "tick " << tick;
      for (uint32_t node = 0; node < nodes; ++node) {
        ASSERT_EQ(presence.LastTickOf(node), model.LastTickOf(node)) << "tick " << tick;
      }
    }
    while (late.size() > 500) late.erase(late.begin());
  }
  ASSERT_EQ(presence.Runs(), model.Runs());
  EXPECT_LE(presence.Runs().size(), kMaxPresenceRuns);
}

TEST(Presence, SaysWhatAllRowsSay) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Check(seed, 100, 3, 4);
    Check(seed, 700, 6, 40);
    if (HasFatalFailure()) return;
  }
}

TEST(Presence, PutsTheOldestRunsTogether) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Check(seed, 4000, 5, 2);
    if (HasFatalFailure()) return;
  }
  Presence presence(kSecond);
  constexpr int kRows = 1500;
  for (int tick = 1; tick <= kRows; ++tick) {
    presence.OnRow(At(tick),
                   Nodes(tick % 2 == 0 ? std::set<uint32_t>{0, 1} : std::set<uint32_t>{0}));
  }
  const std::vector<PresenceRun>& runs = presence.Runs();
  ASSERT_EQ(runs.size(), kMaxPresenceRuns);
  const auto more = static_cast<uint32_t>(kRows - kMaxPresenceRuns);
  EXPECT_EQ(runs[0].first, At(1));
  EXPECT_EQ(runs[0].nodes, 1u) << "the fewest";
  EXPECT_EQ(runs[0].back_from, At(1)) << "not to be trusted";
  EXPECT_EQ(runs[0].joined + runs[0].left, 1 + more);
  EXPECT_EQ(runs[1].first, At(static_cast<int>(more) + 2));
}

TEST(Presence, OfNodesThatAreBackTellsTheOneThatWasAwayLongest) {
  Presence presence(kSecond);
  presence.OnRow(At(1), Nodes({0, 1, 2}));
  presence.OnRow(At(2), Nodes({0, 2}));
  presence.OnRow(At(3), Nodes({0}));
  presence.OnRow(At(4), Nodes({0, 1, 2, 3}));
  EXPECT_THAT(presence.Runs(),
              ElementsAre(PresenceRun{At(1), 3, 3, 0, 0}, PresenceRun{At(2), 2, 0, 1, 0},
                          PresenceRun{At(3), 1, 0, 1, 0}, PresenceRun{At(4), 4, 3, 0, At(1)}));
  // What was missing was late.
  presence.OnLatePart(At(3), Nodes({2}));
  presence.OnLatePart(At(2), Nodes({1}));
  EXPECT_THAT(presence.Runs(),
              ElementsAre(PresenceRun{At(1), 3, 3, 0, 0}, PresenceRun{At(3), 2, 0, 1, 0},
                          PresenceRun{At(4), 4, 2, 0, At(2)}));
  EXPECT_FALSE(presence.changed());
}

TEST(Presence, TicksWithoutRowsAreOfNoNode) {
  Presence presence(kSecond);
  presence.OnRow(At(1), Nodes({0, 1}));
  presence.OnRow(At(5), Nodes({0, 1}));
  EXPECT_THAT(presence.Runs(),
              ElementsAre(PresenceRun{At(1), 2, 2, 0, 0}, PresenceRun{At(2), 0, 0, 2, 0},
                          PresenceRun{At(5), 2, 2, 0, At(1)}));
}

// The counters of the row are others, though its nodes are the same.
TEST(Presence, ARunBeginsWhereStandInsCatchUp) {
  Presence presence(kSecond);
  presence.OnRow(At(1), Nodes({0, 1}));
  EXPECT_TRUE(presence.OnRow(At(2), Nodes({0})));
  EXPECT_FALSE(presence.OnRow(At(3), Nodes({0})));
  EXPECT_TRUE(presence.OnRow(At(4), Nodes({0}), /*caught_up=*/true));
  EXPECT_FALSE(presence.OnRow(At(5), Nodes({0})));
  const std::vector<PresenceRun> runs = {
      {At(1), 2, 2, 0, 0}, {At(2), 1, 0, 1, 0}, {At(4), 1, 0, 0, 0}};
  EXPECT_EQ(presence.Runs(), runs);
  // Late parts leave it where it is.
  presence.OnLatePart(At(3), Nodes({1}));
  presence.OnLatePart(At(5), Nodes({1}));
  EXPECT_THAT(presence.Runs(), testing::Contains(PresenceRun{At(4), 1, 0, 1, 0}));
}

// --- Another head goes on ---

JobDescription Before(std::vector<PresenceRun> runs, size_t nodes) {
  JobDescription job;
  job.period = kSecond;
  job.presence = std::move(runs);
  job.nodes.resize(nodes);
  return job;
}

TEST(InheritedPresence, GoesOnIfAllWereThere) {
  Presence presence(kSecond);
  presence.Inherit(Before({{At(1), 2, 2, 0, 0}, {At(3), 3, 1, 0, 0}, {At(9), 2, 0, 1, 0}}, 3),
                   At(6));
  presence.OnRow(At(7), Nodes({0, 1, 2}));
  EXPECT_THAT(presence.Runs(),
              ElementsAre(PresenceRun{At(1), 2, 2, 0, 0}, PresenceRun{At(3), 3, 1, 0, 0}))
      << "and what it had not stored is not told";
  presence.OnRow(At(8), Nodes({0, 2}));
  presence.OnRow(At(9), Nodes({0, 1, 2, 3}));
  EXPECT_EQ(presence.Runs().at(2), (PresenceRun{At(8), 2, 0, 1, 0}));
  EXPECT_EQ(presence.Runs().at(3), (PresenceRun{At(9), 4, 2, 0, At(7)}));
}

TEST(InheritedPresence, OfThoseThatHadLeftNobodyIsMissed) {
  Presence presence(kSecond);
  JobDescription before = Before({{At(1), 3, 3, 0, 0}, {At(3), 2, 0, 1, 0}}, 3);
  before.nodes[1].left = At(2) + 5;
  presence.Inherit(before, At(6));
  presence.OnRow(At(7), Nodes({0, 2}));
  EXPECT_EQ(presence.Runs(), before.presence);
}

TEST(InheritedPresence, IsNotTrustedWhereItDoesNotSayWhoWasThere) {
  Presence presence(kSecond);
  presence.Inherit(Before({{At(1), 3, 3, 0, 0}, {At(4), 2, 0, 1, 0}}, 3), At(6));
  presence.OnRow(At(7), Nodes({0, 1}));
  presence.OnRow(At(8), Nodes({0, 1, 2}));
  EXPECT_THAT(presence.Runs(),
              ElementsAre(PresenceRun{At(1), 3, 3, 0, 0}, PresenceRun{At(4), 2, 0, 1, 0},
                          PresenceRun{At(7), 2, 2, 2, At(3)}, PresenceRun{At(8), 3, 1, 0, At(3)}));
}

TEST(InheritedPresence, SeesTheTicksThatNobodyHas) {
  Presence presence(kSecond);
  presence.Inherit(Before({{At(1), 2, 2, 0, 0}}, 2), At(6));
  presence.OnRow(At(9), Nodes({0, 1}));
  EXPECT_THAT(presence.Runs(),
              ElementsAre(PresenceRun{At(1), 2, 2, 0, 0}, PresenceRun{At(7), 0, 0, 2, 0},
                          PresenceRun{At(9), 2, 2, 0, At(6)}));
}

TEST(InheritedPresence, WithoutAKnownRowIsOfUnknownNodes) {
  Presence presence(kSecond);
  presence.Inherit(Before({{At(1), 2, 2, 0, 0}, {At(4), 3, 1, 0, 0}}, 3), 0);
  presence.OnRow(At(9), Nodes({0, 1}));
  ASSERT_EQ(presence.Runs().size(), 2u);
  EXPECT_TRUE(presence.Runs()[0].IsMixed());
  EXPECT_EQ(presence.Runs()[0].nodes, 2u);
  EXPECT_EQ(presence.Runs()[1], (PresenceRun{At(9), 2, 2, 2, At(1)}));
}

// Nodes send again what the head before had not acknowledged: its ticks come a second time.
TEST(InheritedPresence, OfTicksThatComeAgainNothingNewIsTold) {
  Presence presence(kSecond);
  presence.Inherit(Before({{At(2), 2, 2, 0, 0}, {At(4), 3, 1, 0, 0}}, 3), 0);
  for (const int tick : {1, 2, 3, 4, 5, 6}) presence.OnRow(At(tick), Nodes({0, 1, 2}));
  const std::vector<PresenceRun> runs = presence.Runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].first, At(2));
  EXPECT_TRUE(runs[0].IsMixed());
  EXPECT_EQ(runs[1], (PresenceRun{At(5), 3, 3, 2, At(2)}));
}

// Two nodes; the second one's samples stop at tick 6, and it ends at tick 9.
class LackingRows : public testing::Test {
 protected:
  LackingRows() {
    job_.nodes.resize(2);
    job_.nodes[0].host = "n1";
    job_.nodes[1].host = "n2";
    for (NodeInfo& node : job_.nodes) node.joined = At(0) + 1;
  }
  bool Lack(int first, int last) const {
    const auto absences = AbsencesOf(job_.nodes, runs_, 0, /*each_value=*/false);
    return LackNodes(absences, runs_, At(first), At(last));
  }

  JobDescription job_;
  std::vector<PresenceRun> runs_ = {{At(1), 2, 2, 0, 0}, {At(7), 1, 0, 1, 0}};
};

TEST_F(LackingRows, OfANodeThatIsThereAndNotInThem) {
  EXPECT_TRUE(Lack(1, 12));
  EXPECT_TRUE(Lack(8, 8));
  EXPECT_FALSE(Lack(1, 5));
  EXPECT_FALSE(Lack(-100, 5)) << "before the first row nobody is missed";
}

TEST_F(LackingRows, OfANodeThatEndedBehindThem) {
  job_.nodes[1].left = At(9) + kSecond / 2;
  EXPECT_TRUE(Lack(1, 12));
  EXPECT_TRUE(Lack(8, 8));
  EXPECT_FALSE(Lack(1, 5));
  EXPECT_FALSE(Lack(11, 12));
}

TEST_F(LackingRows, NotWhereANodeOnlyEnds) {
  job_.nodes[1].left = At(6) + kSecond / 2;
  EXPECT_FALSE(Lack(1, 12));
}

TEST_F(LackingRows, NotWhereThereIsNoRow) {
  runs_.clear();
  EXPECT_FALSE(Lack(1, 12));
}

}  // namespace
}  // namespace sonde::head::head_presence_test
