// What an application sets through libsonde is what the daemon records.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/un.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "daemon/collect/app/app.h"
#include "sonde.h"
#include "tests/unit/client_driver.h"
#include "tests/unit/client_fixture.h"

// The sanitizers' own memory says nothing about libsonde's.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SONDE_TEST_MEMORY
#endif

namespace sonde::collect::client_metrics_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class AppMetrics : public ClientTest {};

TEST_F(AppMetrics, AreRecordedWithTheirRank) {
  Start();
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("gauge residual"), kOk + " new");
  EXPECT_EQ(app.Do("counter steps_total 0 phase=main kernel=fft"), kOk + " new");
  EXPECT_TRUE(std::isnan(Read("residual{task=\"3\"}")));
  app.Do("set residual 0.25");
  app.Do("add steps_total 2");
  app.Do("add steps_total 3");
  EXPECT_EQ(Read("residual{task=\"3\"}"), 0.25);
  EXPECT_EQ(Read("steps_total{kernel=\"fft\",phase=\"main\",task=\"3\"}"), 5);
  const Metric& metric = source_->series()[0].metric;
  EXPECT_EQ(metric.unit, "1");
  EXPECT_EQ(metric.help, "help");
  EXPECT_EQ(metric.level, 1);
  EXPECT_EQ(metric.reduction, Reduction::kMean);
  EXPECT_EQ(source_->series()[1].metric.reduction, Reduction::kSum);
}

TEST_F(AppMetrics, OfAProgramThatEndedBetweenTwoTicksAreNotLost) {
  Start();
  {
    ClientProcess app(Environment());
    app.Do("gauge result");
    app.Do("set result 1");
    app.Do("counter work_total");
    app.Do("threads 4 1000 work_total");
    EXPECT_EQ(app.End(), 0);
  }
  EXPECT_EQ(Read("work_total{task=\"3\"}"), 4000);
  EXPECT_EQ(Read("result{task=\"3\"}"), 1);
  EXPECT_EQ(source_->processes(), 0u);
}

TEST_F(AppMetrics, OfAKilledProgramStay) {
  Start();
  ClientProcess app(Environment());
  app.Do("counter work_total");
  app.Do("add work_total 8");
  app.Kill();
  EXPECT_EQ(Read("work_total{task=\"3\"}"), 8);
}

TEST_F(AppMetrics, AFloodOfShortProgramsIsCountedInFull) {
  options_.max_processes = 4;
  Start();
  for (int i = 0; i < 20; ++i) {
    ClientProcess app(Environment());
    app.Do("counter runs_total");
    app.Do("add runs_total 1");
    app.End();
  }
  EXPECT_EQ(Read("runs_total{task=\"3\"}"), 20);
  EXPECT_EQ(source_->counts().refused, 0u);
}

TEST_F(AppMetrics, CountersOfEndedProcessesOfARankStayInTheSum) {
  Start();
  for (int i = 1; i <= 2; ++i) {
    ClientProcess app(Environment());
    app.Do("counter restarts_total");
    app.Do("add restarts_total 10");
    EXPECT_EQ(Read("restarts_total{task=\"3\"}"), 10 * i);
    app.End();
    EXPECT_EQ(Read("restarts_total{task=\"3\"}"), 10 * i);
  }
}

TEST_F(AppMetrics, RanksStayApartAndProcessesOfOneRankTogether) {
  Start();
  ClientProcess one(Environment(1)), two(Environment(2)), other_two(Environment(2));
  for (ClientProcess* app : {&one, &two, &other_two}) {
    app->Do("counter n_total");
    app->Do("gauge g");
  }
  one.Do("add n_total 1");
  two.Do("add n_total 10");
  other_two.Do("add n_total 100");
  other_two.Do("set g 5");
  EXPECT_EQ(Read("n_total{task=\"1\"}"), 1);
  EXPECT_EQ(Read("n_total{task=\"2\"}"), 110);
  EXPECT_EQ(Read("g{task=\"2\"}"), 5);
  two.Do("set g 6");
  EXPECT_EQ(Read("g{task=\"2\"}"), 6) << "the process that changed it last";
  EXPECT_TRUE(std::isnan(Read("g{task=\"1\"}")));
}

TEST_F(AppMetrics, TheInnermostLauncherGivesTheRank) {
  Start();
  const struct {
    ClientProcess::Environment environment;
    int rank;
  } cases[] = {
      {{}, 0},
      {{{"SLURM_PROCID", "1"}}, 1},
      {{{"PMI_RANK", "2"}}, 2},
      {{{"OMPI_COMM_WORLD_RANK", "3"}, {"PMIX_RANK", "3"}}, 3},
      {{{"SLURM_PROCID", "4"}, {"PMI_RANK", "4"}}, 4},
      {{{"SLURM_PROCID", "0"}, {"PMI_RANK", "5"}}, 5},
      // mpiexec of MPICH inside srun --mpi=pmix, and mpirun of Open MPI inside srun --mpi=pmi2
      {{{"SLURM_PROCID", "0"}, {"PMIX_RANK", "0"}, {"PMI_RANK", "6"}}, 6},
      {{{"SLURM_PROCID", "9"}, {"PMI_RANK", "9"}, {"PMIX_RANK", "7"}}, 7},
      {{{"SLURM_PROCID", "8"}, {"PMI_RANK", "no"}, {"PMIX_RANK", ""}}, 8},
  };
  for (auto [environment, rank] : cases) {
    environment["SONDE_SOCKET"] = options_.socket;
    ClientProcess app(environment);
    app.Do("counter n_total");
    EXPECT_EQ(Read("n_total{task=\"" + std::to_string(rank) + "\"}"), 0) << rank;
  }
}

TEST_F(AppMetrics, SumsOfThreadsAreExact) {
  Start();
  ClientProcess app(Environment());
  app.Do("counter n_total");
  // More at once than there are shards, then the same again in shards given back.
  for (int round = 1; round <= 2; ++round) {
    EXPECT_EQ(app.Do("threads 300 20000 n_total"), "ok");
    EXPECT_EQ(Read("n_total{task=\"3\"}"), round * 6'000'000);
  }
  app.Do("add n_total 0.25");
  app.Do("add n_total 1e300");
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 1e300) << "fractions and what is huge take another way";
}

TEST_F(AppMetrics, AThreadTakesOverWhereAnEndedOneCounted) {
  Start();
  ClientProcess app(Environment());
  app.Do("counter n_total");
  const long grown = std::stol(app.Do("sequence 300 n_total"));
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 300);
#ifdef SONDE_TEST_MEMORY
  EXPECT_LT(grown, 512) << "KiB; a page for every thread would be 1020";
#else
  (void)grown;
#endif
}

TEST_F(AppMetrics, CountersAddWholeNumbersAndFractions) {
  Start();
  ClientProcess app(Environment());
  app.Do("counter n_total");
  for (const char* value : {"300000", "0.25", "0.5", "0"}) {
    app.Do(std::string("add n_total ") + value);
  }
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 300'000.75);
  app.Do("nan n_total");
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 300'000.75) << "NaN and negative values are ignored";
}

TEST_F(AppMetrics, GaugesCanBeAddedTo) {
  Start();
  ClientProcess app(Environment());
  app.Do("gauge queue");
  app.Do("add queue 5");
  app.Do("add queue -2");
  EXPECT_EQ(Read("queue{task=\"3\"}"), 3);
  app.Do("set queue inf");
  EXPECT_TRUE(std::isnan(Read("queue{task=\"3\"}")));
}

TEST_F(AppMetrics, RegisteringAgainGivesTheSameMetric) {
  Start();
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("gauge g 0 a=1 b=2"), kOk + " new");
  EXPECT_EQ(app.Do("gauge g 0 b=2 a=1"), kOk + " same");
  EXPECT_EQ(app.Do("gauge g 0 a=1"), kOk + " new");
  EXPECT_EQ(app.Do("counter g 0 a=1"), std::to_string(SONDE_CONFLICT) + " null");
}

TEST_F(AppMetrics, WhatIsNotAllowedIsRefusedAtOnce) {
  Start();
  ClientProcess app(Environment());
  const std::string invalid = std::to_string(SONDE_INVALID) + " null";
  EXPECT_EQ(app.Do("gauge 1st"), invalid);
  EXPECT_EQ(app.Do("gauge " + std::string(129, 'a')), invalid);
  EXPECT_EQ(app.Do("gauge g 5"), invalid);
  EXPECT_EQ(app.Do("gauge g 0 task=1"), invalid);
  EXPECT_EQ(app.Do("gauge g 0 a=1 a=2"), invalid);
  EXPECT_EQ(app.Do("gauge g 0 a=\xff"), invalid);
  EXPECT_EQ(app.Do("gauge g 0 a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1"), invalid);
  EXPECT_EQ(app.Do("gauge g 0 a=1 b=1 c=1 d=1 e=1 f=1 g=1"), kOk + " new");
  EXPECT_EQ(app.Do("set g 1"), "ok");
}

TEST_F(AppMetrics, AboveTheStepsLevelAreLeftOut) {
  options_.level = 2;
  Start();
  ClientProcess app(Environment());
  app.Do("gauge detail 3");
  app.Do("gauge usual 2");
  EXPECT_EQ(Read("detail{task=\"3\"}"), -1);
  EXPECT_TRUE(std::isnan(Read("usual{task=\"3\"}")));
  EXPECT_EQ(app.Do("gauge detail2 3"), std::to_string(SONDE_LEVEL) + " null");
  ClientProcess::Environment environment = Environment();
  environment["SONDE_LEVEL"] = "1";
  ClientProcess told(environment);
  EXPECT_EQ(told.Do("gauge detail 2"), std::to_string(SONDE_LEVEL) + " null");
}

TEST_F(AppMetrics, AValueWithATimeAheadWaitsForIt) {
  Start();
  ClientProcess app(Environment());
  app.Do("gauge g");
  app.Do("set_at g 1 5");
  EXPECT_EQ(Read("g{task=\"3\"}"), 1) << "a late value is recorded when it arrives";
  app.Do("set_at g 2 " + std::to_string(now_ + 5 * kSecond / 2));
  EXPECT_EQ(Read("g{task=\"3\"}"), 1);
  EXPECT_EQ(Read("g{task=\"3\"}"), 1);
  EXPECT_EQ(Read("g{task=\"3\"}"), 2);
}

TEST_F(AppMetrics, AValuesTimeIsTranslatedWhenTheClockWasSet) {
  const BehindTheWall step(3600 * kSecond);
  options_.clock = &step;
  Start();
  ClientProcess app(Environment());
  app.Do("gauge g");
  // By the clock that is set: 2.5 s from now, as above.
  app.Do("set_at g 2 " + std::to_string(now_ + 3600 * kSecond + 5 * kSecond / 2));
  EXPECT_TRUE(std::isnan(Read("g{task=\"3\"}")));
  EXPECT_TRUE(std::isnan(Read("g{task=\"3\"}")));
  EXPECT_EQ(Read("g{task=\"3\"}"), 2);
}

// The tick's time is that of its begin: a process can set a value after it and end before its last
// read.
TEST_F(AppMetrics, AValueWithATimeAheadDoesNotWaitLongerThanItsProcess) {
  Start();
  ClientProcess app(Environment());
  app.Do("gauge g");
  app.Do("set_at g 2 " + std::to_string(now_ + 10 * kSecond));
  EXPECT_TRUE(std::isnan(Read("g{task=\"3\"}")));
  EXPECT_EQ(app.End(), 0);
  EXPECT_EQ(Read("g{task=\"3\"}"), 2);
}

TEST_F(AppMetrics, WorkBeforeMain) {
  Start();
  ClientProcess::Environment environment = Environment();
  environment["EARLY"] = "1";
  ClientProcess app(environment);
  EXPECT_EQ(app.Do("early"), "ok");
  EXPECT_EQ(Read("early{task=\"3\"}"), 42);
}

TEST_F(AppMetrics, AForkedChildIsItsOwnProcessOnceItAttaches) {
  Start();
  ClientProcess app(Environment());
  app.Do("counter n_total");
  app.Do("gauge g");
  app.Do("add n_total 1");
  app.Do("set g 3");
  Read("g{task=\"3\"}");
  EXPECT_EQ(app.Do("fork n_total g"), "0 0 ");
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 6) << "the parent's 1 and the attached child's 5";
  EXPECT_EQ(Read("g{task=\"3\"}"), 7);
  app.Do("add n_total 1");
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 7);
  EXPECT_EQ(source_->processes(), 1u);
}

TEST_F(AppMetrics, SurviveForksAmidThreads) {
  Start();
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("stress"), "20");
  EXPECT_GT(Read("stress_total{task=\"3\"}"), 0);
  EXPECT_EQ(source_->counts().dropped, 0u);
}

TEST_F(AppMetrics, TenThousandTakeAtMostFourMegabytes) {
  for (const char* kind : {"gauge", "counter"}) {
    Start();
    ClientProcess app(Environment());
    int had = 0, status = -1;
    long kib = 0;
    const std::string answer = app.Do(std::string("many ") + kind + " 10000");
    ASSERT_EQ(sscanf(answer.c_str(), "%d %d %ld", &had, &status, &kib), 3) << answer;
    EXPECT_EQ(had, 10'000);
    EXPECT_EQ(status, SONDE_OK);
#ifdef SONDE_TEST_MEMORY
    EXPECT_LE(kib, 4096) << kind;
#endif
    RecordProperty(kind, std::to_string(kib));
    Read("");
    EXPECT_EQ(source_->series().size(), 10'000u);
    app.End();
    source_.reset();
  }
}

TEST_F(AppMetrics, AProcessHasALimitAndItsMetricsWithinItStay) {
  Start();
  ClientProcess app(Environment());
  EXPECT_THAT(app.Do("many counter 17000"), StartsWith("16384 " + std::to_string(SONDE_LIMIT)));
  EXPECT_EQ(Read("application_metric_number_16383{phase=\"main\",task=\"3\"}"), 1);
}

TEST_F(AppMetrics, ANodeHasALimitThatIsNoted) {
  options_.max_metrics = 10;
  Start();
  ClientProcess one(Environment(1)), two(Environment(2));
  one.Do("many counter 8");
  two.Do("many counter 8");
  EXPECT_EQ(Read("application_metric_number_7{phase=\"main\",task=\"1\"}"), 1);
  EXPECT_EQ(source_->series().size(), 10u);
  EXPECT_THAT(source_->TakeNotes(), testing::ElementsAre(HasSubstr("registered 10 metrics")));
  EXPECT_EQ(source_->counts().dropped, 0u);
}

TEST_F(AppMetrics, OutliveTheDaemonAndAnotherDaemonTakesNewProcesses) {
  Start();
  ClientProcess app(Environment());
  app.Do("counter n_total");
  app.Do("add n_total 1");
  Read("");
  source_.reset();
  EXPECT_EQ(app.Do("threads 3 100 n_total"), "ok");
  EXPECT_EQ(app.Do("gauge more"), kOk + " new");
  Start();
  ClientProcess next(Environment());
  next.Do("counter n_total");
  next.Do("add n_total 2");
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 2);
  EXPECT_EQ(app.End(), 0);
}

TEST_F(AppMetrics, FinalizeEndsTheRecordOfTheProcess) {
  Start();
  ClientProcess app(Environment());
  app.Do("counter n_total");
  app.Do("add n_total 4");
  EXPECT_EQ(app.Do("finalize"), std::to_string(SONDE_FINALIZED));
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 4);
  EXPECT_EQ(source_->processes(), 0u);
  EXPECT_EQ(app.Do("add n_total 4"), "ok");
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 4);
}

TEST_F(AppMetrics, AnApplicationMayCloseDescriptorsItDidNotOpen) {
  Start();
  ClientProcess app(Environment());
  app.Do("counter n_total");
  app.Do("gauge g");
  app.Do("add n_total 1");
  EXPECT_EQ(app.Do("close"), "ok");
  EXPECT_EQ(app.Do("set g 2"), "ok");
  EXPECT_EQ(app.Do("fork n_total g"), "0 " + std::to_string(SONDE_SYSTEM << 8) + " ");
  app.Do("finalize");
  EXPECT_EQ(app.Do("descriptors"), "61") << "none of the application's own was closed";
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 1);
}

// --- Without a daemon ---

TEST_F(AppMetrics, WithoutTelemetryEverythingIsANoOpAndNothingIsPrinted) {
  const struct {
    ClientProcess::Environment environment;
    int code;
  } cases[] = {{{}, SONDE_OFF},
               {{{"SONDE_SOCKET", ""}}, SONDE_OFF},
               {{{"SONDE_SOCKET", "sonde-nobody-is-here"}}, SONDE_UNREACHABLE},
               {{{"SONDE_SOCKET", std::string(200, 'x')}}, SONDE_UNREACHABLE}};
  for (const auto& [environment, code] : cases) {
    for (const bool debug : {false, true}) {
      int errors[2];
      ASSERT_EQ(pipe2(errors, O_CLOEXEC | O_NONBLOCK), 0);
      ClientProcess::Environment with = environment;
      if (debug) with["SONDE_DEBUG"] = "1";
      ClientProcess app(with, errors[1]);
      EXPECT_EQ(app.Do("init"), std::to_string(code));
      EXPECT_EQ(app.Do("counter n_total"), std::to_string(code) + " null");
      EXPECT_EQ(app.Do("threads 2 10 n_total"), "ok");
      EXPECT_EQ(app.Do("set n_total 1"), "ok");
      EXPECT_EQ(app.Do("set_at n_total 1 1"), "ok");
      EXPECT_EQ(app.Do("descriptors"), "0") << "nothing is left open";
      EXPECT_EQ(app.End(), 0);
      char text[4096] = {};
      const ssize_t got = read(errors[0], text, sizeof(text) - 1);
      close(errors[0]);
      close(errors[1]);
      if (debug) {
        EXPECT_THAT(text, HasSubstr(sonde_strerror(code)));
      } else {
        EXPECT_LE(got, 0) << text;
      }
    }
  }
}

// A full queue is the only thing that can make an application wait.
TEST_F(AppMetrics, ADaemonThatDoesNotAnswerCostsATenthOfASecondOnce) {
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, options_.socket.data(), options_.socket.size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + options_.socket.size());
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 0), 0);
  ClientProcess first(Environment()), second(Environment());
  EXPECT_EQ(first.Do("init"), kOk);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(second.Do("init"), std::to_string(SONDE_UNREACHABLE));
  EXPECT_EQ(second.Do("gauge g"), std::to_string(SONDE_UNREACHABLE) + " null");
  const auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, std::chrono::milliseconds(90));
  EXPECT_LE(waited, std::chrono::milliseconds(1000)) << "0.1 s and what a busy machine adds";
  close(listener);
}

TEST_F(AppMetrics, ALimitOnFileSizesDoesNotKillTheApplication) {
  Start();
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("limit_files"), "0");
  EXPECT_EQ(app.Do("init"), std::to_string(SONDE_SYSTEM));
  EXPECT_EQ(app.End(), 0);
}

}  // namespace
}  // namespace sonde::collect::client_metrics_test
