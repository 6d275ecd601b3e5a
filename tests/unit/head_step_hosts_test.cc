// What answers know of all hosts of a running step: against a model that looks at every node for
// every question; and that it is never older than the step's description when it was asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/head/answers/hosts_now.h"
#include "daemon/head/answers/step_hosts.h"

namespace sonde::head::head_step_hosts_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// --- A model ---

using Hosts = std::map<std::pair<std::string, std::string>, std::vector<uint32_t>>;

Hosts HostsOf(const JobDescription& job) {
  Hosts hosts;
  for (uint32_t i = 0; i < job.nodes.size(); ++i) {
    hosts[{job.nodes[i].job, job.nodes[i].host}].push_back(i);
  }
  return hosts;
}

WhoAnswers SortOut(const JobDescription& job, const tree::NodeSet& who, uint32_t unknown) {
  const Hosts hosts = HostsOf(job);
  WhoAnswers told;
  told.expected = std::max(static_cast<uint32_t>(hosts.size()), job.expected_nodes);
  for (const auto& [name, nodes] : hosts) {
    if (std::any_of(nodes.begin(), nodes.end(), [&](uint32_t node) { return who.Has(node); })) {
      ++told.answered;
    } else if (!job.nodes[nodes.back()].IsGone()) {
      told.silent.push_back(nodes.back());
    } else if (!name.second.empty()) {
      told.gone.push_back(nodes.back());
    }
  }
  const auto silent = static_cast<uint32_t>(told.silent.size());
  told.answered += std::min(unknown, silent);
  if (unknown >= silent) told.silent.clear();
  std::sort(told.silent.begin(), told.silent.end());
  std::sort(told.gone.begin(), told.gone.end());
  return told;
}

// By name, the nodes of hosts with a daemon that is gone and another one.
std::map<std::string, std::vector<uint32_t>> AnewOf(const JobDescription& job) {
  std::map<std::string, std::vector<uint32_t>> names;
  for (uint32_t i = 0; i < job.nodes.size(); ++i) names[job.nodes[i].host].push_back(i);
  std::erase_if(names, [&](const auto& one) {
    const bool any_gone = std::any_of(one.second.begin(), one.second.end(),
                                      [&](uint32_t node) { return job.nodes[node].IsGone(); });
    return one.first.empty() || one.second.size() < 2 || !any_gone;
  });
  return names;
}

JobDescription RandomJob(std::mt19937_64& random) {
  const auto below = [&](uint64_t end) { return random() % end; };
  JobDescription job;
  job.expected_nodes = static_cast<uint32_t>(below(8));
  job.nodes.resize(below(14));
  const bool het = below(3) == 0;
  const bool unnamed = below(3) == 0;
  for (NodeInfo& node : job.nodes) {
    node.job = het && below(2) == 0 ? "8" : "7";
    node.host = unnamed && below(4) == 0 ? "" : "n" + std::to_string(below(8));
    node.joined = static_cast<Nanos>(1 + below(50));
    if (below(3) == 0) node.left = node.joined + static_cast<Nanos>(1 + below(50));
    node.lost = below(6) == 0;
  }
  return job;
}

TEST(StepHosts, AreWhatTheNodesSay) {
  std::mt19937_64 random(1);
  size_t gone = 0;
  for (int round = 0; round < 5000; ++round) {
    const JobDescription job = RandomJob(random);
    const StepHosts hosts(job);
    tree::NodeSet who;
    for (uint32_t i = 0; i < job.nodes.size() + 2; ++i) {
      if (random() % 3 != 0) who.Add(tree::NodeSet(i));
    }
    const auto unknown = static_cast<uint32_t>(random() % 3);
    const WhoAnswers expected = SortOut(job, who, unknown);
    WhoAnswers told = hosts.SortOut(who, unknown);
    ASSERT_TRUE(std::is_sorted(told.gone.begin(), told.gone.end()));
    std::sort(told.silent.begin(), told.silent.end());
    ASSERT_EQ(told.expected, expected.expected);
    ASSERT_EQ(told.answered, expected.answered) << round;
    ASSERT_EQ(told.silent, expected.silent) << round;
    ASSERT_EQ(told.gone, expected.gone) << round;
    gone += told.gone.size();

    ASSERT_EQ(hosts.nodes(), job.nodes.size());
    ASSERT_EQ(hosts.only(), job.nodes.size() == 1 ? job.nodes[0].host : "");
    uint32_t connected = 0;
    for (const NodeInfo& node : job.nodes) connected += node.IsGone() ? 0 : 1;
    ASSERT_EQ(hosts.connected(), connected);
    uint32_t there = 0;
    for (const auto& [name, nodes] : HostsOf(job)) there += job.nodes[nodes.back()].lost ? 0 : 1;
    ASSERT_EQ(hosts.in_rows().there, there);
    ASSERT_EQ(hosts.in_rows().expected, expected.expected);

    const auto anew = AnewOf(job);
    ASSERT_EQ(hosts.anew().size(), anew.size()) << round;
    for (const auto& [name, nodes] : anew) {
      const StepHosts::Anew& host = hosts.anew().at(name);
      ASSERT_EQ(host.nodes, nodes);
      ASSERT_EQ(host.newest, job.nodes[nodes.back()].joined);
      for (const uint32_t node : nodes) ASSERT_LE(host.first, job.nodes[node].joined);
    }
  }
  EXPECT_GT(gone, 1000u);
}

// --- Kept until something changes ---

JobDescription JobOf(size_t nodes) {
  JobDescription job;
  job.id = {"7", "0"};
  job.nodes.resize(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    job.nodes[i].host = "n" + std::to_string(i);
    job.nodes[i].joined = 100;
  }
  return job;
}

class HostsNowTest : public testing::TestWithParam<size_t> {
 protected:
  size_t nodes() const { return GetParam(); }

  StepRecord record_{JobOf(GetParam())};
  HostsNow now_{record_};
};
INSTANTIATE_TEST_SUITE_P(FewAndMany, HostsNowTest,
                         testing::Values(2, HostsNow::kMany - 1, HostsNow::kMany, 1000));

TEST_P(HostsNowTest, AreMadeOnceUntilTheDescriptionChanges) {
  const HostsNow::Hosts first = now_.Get();
  record_.AddNote("a note");
  record_.SetCoverage({10, 9, 0});
  record_.SetPresence({{200, 2, 2, 0, 0}});
  EXPECT_EQ(now_.Get(), first);
  EXPECT_EQ(now_.made(), 1u);
}

// A node leaves, one comes, and the daemon of one is started anew, each between two questions.
TEST_P(HostsNowTest, KnowWhatHasChangedSinceTheQuestionBefore) {
  tree::NodeSet all;
  for (uint32_t i = 0; i < nodes(); ++i) all.Add(tree::NodeSet(i));
  ASSERT_THAT(now_.GetNewest()->SortOut(all.Without(tree::NodeSet(1)), 0).silent, ElementsAre(1));
  record_.Update([](JobDescription& job) { job.nodes[1].left = 300; });
  EXPECT_THAT(now_.GetNewest()->SortOut(all.Without(tree::NodeSet(1)), 0).gone, ElementsAre(1));
  EXPECT_EQ(now_.GetNewest()->connected(), nodes() - 1);
  record_.Update([](JobDescription& job) { job.nodes.emplace_back().host = "another"; });
  EXPECT_EQ(now_.GetNewest()->in_rows().expected, nodes() + 1);
  EXPECT_THAT(now_.GetNewest()->anew(), IsEmpty());
  record_.Update([](JobDescription& job) { job.nodes.emplace_back().host = "n1"; });
  EXPECT_EQ(now_.GetNewest()->anew().count("n1"), 1u);
  EXPECT_EQ(now_.GetNewest()->in_rows().expected, nodes() + 1);
  EXPECT_EQ(now_.made(), 4u);
}

// Who looks at the description meanwhile lets the head change a copy.
TEST_P(HostsNowTest, KnowAChangeThatWasMadeWhileSomebodyLooked) {
  const auto look = record_.Job();
  EXPECT_EQ(now_.GetNewest()->nodes(), nodes());
  record_.Update([](JobDescription& job) { job.nodes.emplace_back().host = "another"; });
  EXPECT_EQ(look->nodes.size(), nodes());
  EXPECT_EQ(now_.GetNewest()->nodes(), nodes() + 1);
}

// They are made of what the head then goes on changing in place.
TEST_P(HostsNowTest, HoldNothingThatTheHeadWouldHaveToCopy) {
  const HostsNow::Hosts hosts = now_.GetNewest();
  const NodeInfo* before = record_.Job()->nodes.data();
  record_.Update([](JobDescription& job) { job.nodes[0].left = 300; });
  EXPECT_EQ(record_.Job()->nodes.data(), before);
}

std::vector<std::pair<Nanos, Nanos>> TimesOf(const std::vector<TimeRange>& ranges) {
  std::vector<std::pair<Nanos, Nanos>> times;
  times.reserve(ranges.size());
  for (const TimeRange& range : ranges) times.emplace_back(range.first, range.last);
  return times;
}

TEST_P(HostsNowTest, AbsencesAreKeptUntilHostsOrRowsChange) {
  const auto count = static_cast<uint32_t>(nodes());
  record_.SetPresence({{200, count, count, 0, 0}});
  const StepRecord::PresenceRuns all = record_.PresenceNow();
  const auto expected = [this](const StepRecord::PresenceRuns& runs) {
    return TimesOf(AbsencesOf(record_.Job()->nodes, *runs, 0, false));
  };
  const HostsNow::Ranges first = now_.Absences(now_.GetNewest(), all, false);
  EXPECT_EQ(TimesOf(*first), expected(all));
  const HostsNow::Ranges each = now_.Absences(now_.GetNewest(), all, true);
  EXPECT_EQ(now_.Absences(now_.GetNewest(), all, false), first);
  EXPECT_EQ(now_.Absences(now_.GetNewest(), all, true), each);
  record_.SetPresence({{200, count, count, 0, 0}, {300, count - 1, 0, 1, 0}});
  const StepRecord::PresenceRuns fewer = record_.PresenceNow();
  const auto lacking = TimesOf(*now_.Absences(now_.GetNewest(), fewer, false));
  EXPECT_EQ(lacking, expected(fewer));
  EXPECT_NE(lacking, TimesOf(*first));
  record_.Update([](JobDescription& job) { job.nodes[1].left = 290; });
  EXPECT_EQ(TimesOf(*now_.Absences(now_.GetNewest(), fewer, false)), expected(fewer));
  EXPECT_NE(expected(fewer), lacking);
  EXPECT_EQ(TimesOf(*now_.Absences(now_.GetNewest(), all, false)), expected(all))
      << "of rows that were read before";
}

// Nodes come one after the other while threads ask: no answer knows fewer than had come by then, or
// than were in the rows.
TEST_P(HostsNowTest, AreNeverOlderThanTheCallOrTheRows) {
  constexpr int kChanges = 300;
  std::atomic<size_t> come = nodes();
  std::atomic<size_t> in_rows = 0;
  std::atomic<bool> done = false;
  std::atomic<size_t> wrong = 0;
  std::atomic<size_t> looks = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, newest = i % 2 == 0] {
      while (!done) {
        const size_t least = newest ? come : in_rows;
        const size_t known = (newest ? now_.GetNewest() : now_.Get())->nodes();
        if (known < least) ++wrong;
        ++looks;
      }
    });
  }
  for (int i = 0; i < kChanges; ++i) {
    record_.Update([](JobDescription& job) { job.nodes.emplace_back().host = "another"; });
    ++come;
    if (i % 3 == 0) {
      record_.SetPresence({{200 + i, static_cast<uint32_t>(nodes()), 0, 0, 0}});
      in_rows = come.load();
    }
    const size_t before = looks;
    while (i % 10 == 0 && looks < before + 8) std::this_thread::yield();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(now_.GetNewest()->nodes(), nodes() + kChanges);
}

// In a step of many nodes what is known is given until rows change, or some time has passed.
TEST(HostsNow, OfManyNodesAreMadeForEachRowAndOtherwiseForATenthOfTheTimeAtMost) {
  constexpr size_t kNodes = 20'000;
  StepRecord record(JobOf(kNodes));
  const HostsNow now(record);
  const auto change = [&] { record.Update([](JobDescription& job) { job.nodes[0].left ^= 1; }); };
  now.Get();
  for (uint64_t row = 1; row <= 5; ++row) {
    change();
    record.SetPresence({{static_cast<Nanos>(row), kNodes, 0, 0, 0}});
    EXPECT_EQ(now.Get()->connected(), kNodes - row % 2);
    EXPECT_EQ(now.made(), 1 + row);
  }
  const uint64_t made = now.made();
  uint64_t asked = 0;
  for (; now.made() < made + 10; ++asked) {
    change();
    now.Get();
  }
  EXPECT_GT(asked, 20u) << "most of them were given what was known";
  EXPECT_EQ(now.GetNewest()->connected(), kNodes - record.Job()->nodes[0].left);
}

// Many threads find the same change: one of them looks, and the others wait neither for it nor for
// a time.
TEST(HostsNow, OfManyNodesAreMadeByOneOfThoseWhoAsk) {
  constexpr int kThreads = 8;
  constexpr int kChanges = 50;
  StepRecord record(JobOf(2000));
  const HostsNow now(record);
  now.Get();
  std::barrier changed(kThreads, [&]() noexcept {
    record.Update([](JobDescription& job) { job.nodes[0].left ^= 1; });
  });
  std::barrier asked(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int change = 0; change < kChanges; ++change) {
        changed.arrive_and_wait();
        now.Get();
        asked.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(now.made(), 1u + kChanges);
}

}  // namespace
}  // namespace sonde::head::head_step_hosts_test
