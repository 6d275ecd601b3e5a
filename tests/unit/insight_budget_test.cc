// The time budget of ranks whose parts are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "insight/budget.h"
#include "insight/collective_waits.h"
#include "insight/robust.h"

namespace sonde::insight {
namespace {

constexpr size_t kLong = 40;  // ticks

Row Constant(double value, size_t ticks = kLong) { return Row(ticks, value); }

// The first `part` of the ticks have one value, the others another one.
Row Halves(double first, double second, size_t part = kLong / 2) {
  Row out = Constant(second);
  std::fill(out.begin(), out.begin() + static_cast<ptrdiff_t>(part), first);
  return out;
}

Budget BudgetOfRank(RankRates rates, const Row& waiting = {}) {
  SpreadCalls(rates);
  Budget out;
  for (const Spending& tick : SpendingOf(rates, FindCpuInMpi(rates), waiting)) out.Add(tick, 1);
  return out;
}

double SumOf(const Budget& budget) {
  double sum = 0;
  for (size_t k = 0; k < kSpentKinds; ++k) {
    const double share = budget.Share(static_cast<Spent>(k));
    if (!std::isnan(share)) sum += share;
  }
  return sum;
}

void ExpectShare(const Budget& budget, Spent kind, double share) {
  if (std::isnan(share)) {
    EXPECT_TRUE(std::isnan(budget.Share(kind))) << NameOf(kind);
  } else {
    EXPECT_NEAR(budget.Share(kind), share, 1e-9) << NameOf(kind);
  }
}

void ExpectShares(const Budget& budget, double computing, double waiting, double moving, double io,
                  double idle) {
  ExpectShare(budget, Spent::kComputing, computing);
  ExpectShare(budget, Spent::kMpiWaiting, waiting);
  ExpectShare(budget, Spent::kMpiMoving, moving);
  ExpectShare(budget, Spent::kIo, io);
  ExpectShare(budget, Spent::kIdle, idle);
  EXPECT_NEAR(SumOf(budget), 1, 1e-9);
}

// Half of the time computing, half in MPI, of which a tenth moves data.
RankRates HalfInMpi() {
  RankRates rates;
  rates.user = Halves(1, 0.9);
  rates.system = Halves(0, 0.1);
  rates.mpi = Halves(0, 1);
  rates.wait = Halves(0, 0.9);
  return rates;
}

TEST(TimeBudget, CpuTimeOfALibraryThatPollsIsNotComputing) {
  const RankRates rates = HalfInMpi();
  const CpuInMpi found = FindCpuInMpi(rates);
  EXPECT_TRUE(found.found);
  EXPECT_TRUE(found.polls);
  EXPECT_NEAR(found.share, 1, 1e-9);
  ExpectShares(BudgetOfRank(rates), 0.5, 0.45, 0.05, kNoNumber, 0);
}

TEST(TimeBudget, ALibraryThatBlocksIsSeen) {
  RankRates rates = HalfInMpi();
  rates.user = Halves(1, 0);
  rates.system = Constant(0);
  const CpuInMpi found = FindCpuInMpi(rates);
  EXPECT_TRUE(found.found);
  EXPECT_FALSE(found.polls);
  EXPECT_NEAR(found.share, 0, 1e-9);
  ExpectShares(BudgetOfRank(rates), 0.5, 0.45, 0.05, kNoNumber, 0);
  // Where computing and MPI share each tick, what was found elsewhere decides: 0.4 of each of the
  // last ticks is computing, 0.2 idle.
  rates.user = Halves(0.02, 0.4);
  rates.mpi = Halves(1, 0.4);
  rates.wait = Constant(0);
  EXPECT_NEAR(BudgetOfRank(rates).Share(Spent::kComputing), 0.2, 0.01);
  rates.user = Halves(1, 0.4);
  EXPECT_NEAR(BudgetOfRank(rates).Share(Spent::kComputing), 0, 0.01);
}

TEST(TimeBudget, WhereItCannotBeSeenPollingIsAssumed) {
  RankRates rates;
  rates.user = Constant(0.4);
  rates.system = Constant(0);
  rates.mpi = Constant(0.4);
  const CpuInMpi found = FindCpuInMpi(rates);
  EXPECT_FALSE(found.found);
  EXPECT_TRUE(found.polls);
  EXPECT_DOUBLE_EQ(found.unclear, 1);
  ExpectShares(BudgetOfRank(rates), 0, 0, 0.4, kNoNumber, 0.6);
}

TEST(TimeBudget, ARankThatPollsOnASharedCpuStillPolls) {
  RankRates rates;
  rates.user = Constant(0.45);
  rates.system = Constant(0);
  rates.mpi = Constant(1);
  rates.wait = Constant(1);
  rates.stolen = Constant(0.55);
  const CpuInMpi found = FindCpuInMpi(rates);
  EXPECT_TRUE(found.found && found.polls);
  EXPECT_NEAR(found.share, 0.45, 1e-9);
  ExpectShares(BudgetOfRank(rates), 0, 1, 0, kNoNumber, 0);
}

TEST(TimeBudget, ThreadsBesideTheOneInMpiAreTheirOwn) {
  // Four CPUs: three quarters of the time four threads compute, else one waits in MPI and polls.
  RankRates rates;
  rates.cpus = 4;
  rates.user = Halves(4, 1, 30);
  rates.system = Constant(0);
  rates.mpi = Halves(0, 1, 30);
  rates.wait = rates.mpi;
  ExpectShares(BudgetOfRank(rates), 0.75, 1.0 / 16, 0, kNoNumber, 3.0 / 16);
  // The others compute while one waits: what does not fit elsewhere was used in MPI.
  rates.user = Constant(4);
  ExpectShares(BudgetOfRank(rates), 15.0 / 16, 1.0 / 16, 0, kNoNumber, 0);
}

TEST(TimeBudget, ATaskThatUsesMoreThanItsCpusIsMeasuredByWhatItUses) {
  RankRates rates;
  rates.cpus = 2;
  rates.user = Halves(4, 1);
  rates.system = Constant(0);
  const Budget budget = BudgetOfRank(rates);
  EXPECT_DOUBLE_EQ(budget.whole(), 20 * 4 + 20 * 2);
  EXPECT_DOUBLE_EQ(budget.Share(Spent::kComputing), 100.0 / 120);
  EXPECT_DOUBLE_EQ(budget.Share(Spent::kIdle), 20.0 / 120);
}

TEST(TimeBudget, WithoutCountedCallsTimeInMpiIsNotKnown) {
  RankRates rates;
  rates.user = Constant(0.7);
  rates.system = Constant(0.1);
  const Budget budget = BudgetOfRank(rates);
  EXPECT_NEAR(budget.Share(Spent::kComputing), 0.8, 1e-9);
  for (const Spent kind :
       {Spent::kMpiWaiting, Spent::kMpiMoving, Spent::kIo, Spent::kGpuWaiting, Spent::kStolen}) {
    EXPECT_TRUE(std::isnan(budget.Share(kind))) << NameOf(kind);
  }
  EXPECT_NEAR(SumOf(budget), 1, 1e-9);
  EXPECT_TRUE(std::isnan(Budget().Share(Spent::kIdle)));
}

TEST(TimeBudget, WritingUsesSystemTimeWhichIsNotComputing) {
  RankRates rates;
  rates.user = Constant(0.5);
  rates.system = Constant(0.2);
  rates.io = Constant(0.3);  // 0.2 of it in the kernel, the rest waits for the disk
  ExpectShares(BudgetOfRank(rates), 0.5, kNoNumber, kNoNumber, 0.3, 0.2);
  rates.io = Constant(0.1);  // half of the system time is not of these calls
  const Budget budget = BudgetOfRank(rates);
  EXPECT_NEAR(budget.Share(Spent::kComputing), 0.6, 1e-9);
  EXPECT_NEAR(budget.Share(Spent::kIo), 0.1, 1e-9);
}

TEST(TimeBudget, MpiIoIsIoAndItsCallsForFilesCountOnce) {
  RankRates rates;
  rates.user = Constant(0.5);
  rates.system = Constant(0);
  rates.mpi = Constant(0.5);
  rates.wait = Constant(0.1);
  rates.mpi_io = Constant(0.3);
  rates.io = Constant(0.25);  // within MPI-IO
  const Budget budget = BudgetOfRank(rates);
  ExpectShares(budget, 0.5 - 0.2, 0.1, 0.1, 0.3, 0.2);  // 0.2 polls
}

TEST(TimeBudget, IoThatWasNotCountedIsEstimatedFromSamples) {
  RankRates rates;
  rates.user = Constant(0.4);
  rates.system = Constant(0.2);
  rates.blocked = Halves(1, 0, 10);
  // The blocked process uses no CPU time, so the system time is computing.
  rates.user[0] = rates.system[0] = 0;
  const Budget budget = BudgetOfRank(rates);
  EXPECT_NEAR(budget.Share(Spent::kIo), 0.25, 1e-9);
  rates.io = Constant(0.05);
  EXPECT_NEAR(BudgetOfRank(rates).Share(Spent::kIo), 0.05, 1e-9);
}

TEST(TimeBudget, GpusAndTheHostHaveWhatIsLeft) {
  RankRates rates;
  rates.user = Constant(0.3);
  rates.system = Constant(0);
  rates.stolen = Constant(0.1);
  rates.gpu = Constant(0.4);
  Budget budget = BudgetOfRank(rates);
  EXPECT_NEAR(budget.Share(Spent::kStolen), 0.1, 1e-9);
  EXPECT_NEAR(budget.Share(Spent::kGpuWaiting), 0.4, 1e-9);
  EXPECT_NEAR(budget.Share(Spent::kIdle), 0.2, 1e-9);
  rates.gpu = Constant(1);
  rates.stolen = Constant(0.9);
  budget = BudgetOfRank(rates);
  EXPECT_NEAR(budget.Share(Spent::kComputing), 0.3, 1e-9);
  EXPECT_NEAR(budget.Share(Spent::kStolen), 0.7, 1e-9);
  EXPECT_NEAR(budget.Share(Spent::kGpuWaiting), 0, 1e-9);
}

TEST(TimeBudget, ALongCallIsSpreadOverItsTime) {
  // Computes for 20 ticks, then waits for 20 in a single call, which is counted when it ends.
  RankRates rates = HalfInMpi();
  rates.mpi = Constant(0);
  rates.mpi.back() = 20;
  rates.wait = rates.mpi;
  rates.mpi[0] = kNoNumber;  // before the first call
  ExpectShares(BudgetOfRank(rates), 0.5, 0.5, 0, kNoNumber, 0);
  RankRates spread = rates;
  SpreadCalls(spread);
  EXPECT_NEAR(spread.mpi[19], 0, 1e-9);
  EXPECT_NEAR(spread.mpi[20], 1, 1e-9);
  // Two threads of four CPUs that call all the time are not one that calls for long.
  rates.cpus = 4;
  rates.mpi = Halves(0, 2, 2);
  rates.wait = Constant(0);
  rates.user = Constant(4);
  rates.system = Constant(0);
  EXPECT_NEAR(BudgetOfRank(rates).Share(Spent::kMpiMoving), 2 * 38.0 / 160, 1e-9);
}

TEST(TimeBudget, TicksOfWhichNothingIsKnownAreLeftOut) {
  RankRates rates = HalfInMpi();
  for (const size_t t : {3, 7, 25}) rates.user[t] = kNoNumber;
  rates.mpi[30] = kNoNumber;  // a counter was begun anew
  const Budget budget = BudgetOfRank(rates);
  EXPECT_NEAR(budget.whole(), 36, 1e-9);
  ExpectShares(budget, 0.5, 0.45, 0.05, kNoNumber, 0);
}

TEST(TimeBudget, InCollectivesWhoComesLastDoesNotWait) {
  // Rank 1 computes for 30 ticks, then all take 10 ticks to move data; rank 0 computes for 10.
  RankRates early, late;
  early.user = late.user = Constant(1);
  early.system = late.system = Constant(0);
  early.mpi = early.collective = Halves(0, 1, 10);
  late.mpi = late.collective = Halves(0, 1, 30);
  LeastCollective least(kLong);
  least.Add(early);
  least.Add(late);
  ExpectShares(BudgetOfRank(early, least.WaitingOf(early)), 0.25, 0.5, 0.25, kNoNumber, 0);
  ExpectShares(BudgetOfRank(late, least.WaitingOf(late)), 0.75, 0, 0.25, kNoNumber, 0);
  // Not told apart, they move.
  EXPECT_NEAR(BudgetOfRank(early).Share(Spent::kMpiMoving), 0.75, 1e-9);
}

TEST(CollectiveWaits, AreForTheRankWithTheLeastTime) {
  CollectiveWaits waits(25, 0.1);  // three windows, the last one of 5 ticks
  waits.Add(7, Row(25, 0.2));
  waits.Add(8, Row(25, 0.5));
  Row partly(25, 0.9);
  partly[3] = kNoNumber;  // not the least of the first window, for what is missing there
  std::fill(partly.begin() + 10, partly.end(), 0.1);
  waits.Add(9, partly);
  const std::map<uint32_t, double> awaited = waits.Awaited();
  ASSERT_EQ(awaited.size(), 2u);
  EXPECT_NEAR(awaited.at(7), 0.3 * 1, 1e-9);
  EXPECT_NEAR(awaited.at(9), (0.1 + 0.4) * 1.5, 1e-9);
}

TEST(CollectiveWaits, AreNoneOfOneRankAndOfRanksThatComeTogether) {
  CollectiveWaits one(10, 1);
  one.Add(0, Row(10, 0.5));
  EXPECT_TRUE(one.Awaited().empty());
  one.Add(1, Row(10, 0.5));
  one.Add(2, Row());
  EXPECT_TRUE(one.Awaited().empty());
}

TEST(TimeBudget, EfficienciesAreThoseOfPop) {
  const double computing[] = {0.8, 0.4, kNoNumber, 0.6};
  const Efficiency efficiency = EfficiencyOf(computing);
  EXPECT_NEAR(efficiency.load_balance, 0.75, 1e-9);
  EXPECT_NEAR(efficiency.communication, 0.8, 1e-9);
  EXPECT_NEAR(efficiency.parallel, 0.6, 1e-9);
  EXPECT_TRUE(std::isnan(EfficiencyOf({}).parallel));
}

class RandomRates {
 public:
  explicit RandomRates(uint64_t seed) : random_(seed) {}
  RankRates Make() {
    RankRates out;
    out.cpus = Below(4) == 0 ? 0.5 + 8 * Uniform() : 1 + Below(4);
    out.user = Some(1.2 * out.cpus);
    out.system = Below(5) == 0 ? Row() : Some(0.5 * out.cpus);
    for (Row* row : {&out.mpi, &out.wait, &out.collective, &out.mpi_io, &out.io, &out.blocked,
                     &out.stolen, &out.gpu}) {
      if (Below(3) != 0) *row = Some(Below(3) == 0 ? 3 * out.cpus : 1);
    }
    return out;
  }
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  unsigned Below(unsigned n) { return static_cast<unsigned>(random_() % n); }

 private:
  // Missing values, none, few, and long calls that end.
  Row Some(double scale) {
    Row out;
    for (size_t t = 0; t < kLong; ++t) {
      const unsigned kind = Below(12);
      out.push_back(kind == 0   ? kNoNumber
                    : kind == 1 ? 0
                    : kind == 2 ? 10 * scale * Uniform()
                                : scale * Uniform());
    }
    return out;
  }
  std::mt19937_64 random_;
};

TEST(TimeBudget, WhateverComesTheSharesAddUpAndNoneIsNegative) {
  size_t known = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    RandomRates random(seed);
    RankRates rates = random.Make();
    SpreadCalls(rates);
    LeastCollective least(kLong);
    least.Add(rates);
    RankRates other = random.Make();
    other.mpi.resize(kLong, 0.1);
    least.Add(other);
    const auto ticks = SpendingOf(rates, FindCpuInMpi(rates),
                                  random.Below(2) == 0 ? Row() : least.WaitingOf(rates));
    ASSERT_EQ(ticks.size(), kLong);
    for (const Spending& tick : ticks) {
      if (std::isnan(tick.whole)) continue;
      ++known;
      double sum = 0;
      for (size_t k = 0; k < kSpentKinds; ++k) {
        if (std::isnan(tick.cpus[k])) continue;
        ASSERT_GE(tick.cpus[k], 0) << "seed " << seed << " " << NameOf(static_cast<Spent>(k));
        sum += tick.cpus[k];
      }
      ASSERT_NEAR(sum, tick.whole, 1e-9 * tick.whole) << "seed " << seed;
      ASSERT_GE(tick.whole, rates.cpus);
      const bool mpi = !std::isnan(tick.cpus[static_cast<size_t>(Spent::kMpiWaiting)]);
      ASSERT_EQ(mpi, !rates.mpi.empty()) << "seed " << seed;
    }
  }
  EXPECT_GT(known, 10'000u);
}

TEST(TimeBudget, SpreadingKeepsTheTimeInCalls) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937_64 random(seed);
    RankRates rates;
    rates.user = Constant(1);
    rates.mpi = Constant(0);
    rates.wait = Constant(0);
    double all = 0, waits = 0;
    for (size_t t = 0, since = 0; t < kLong; ++t) {
      if (random() % 4 != 0) continue;
      rates.mpi[t] = static_cast<double>(t - since);
      rates.wait[t] = rates.mpi[t] / 2;
      all += rates.mpi[t];
      waits += rates.wait[t];
      since = t;
    }
    SpreadCalls(rates);
    double spread = 0, waiting = 0;
    for (size_t t = 0; t < kLong; ++t) {
      ASSERT_LE(rates.mpi[t], 1 + 1e-9);
      spread += rates.mpi[t];
      waiting += rates.wait[t];
    }
    ASSERT_NEAR(spread, all, 1e-9) << seed;
    ASSERT_NEAR(waiting, waits, 1e-9) << seed;
  }
}

}  // namespace
}  // namespace sonde::insight
