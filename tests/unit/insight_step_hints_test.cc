// Hints of whole steps: none for steps with nothing wrong, and the right one for those with one
// thing wrong, whatever the noise.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "insight/hints/hints.h"
#include "insight/hints/profile_facts.h"
#include "insight/hints/step_facts.h"
#include "profiles/archive/node_rows.h"
#include "profiles/archive/open_archive.h"
#include "profiles/records/keys.h"
#include "tests/unit/insight_noise.h"
#include "tests/unit/insight_step.h"

namespace sonde::insight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kGigabyte = 1 << 30;
constexpr double kMegabyte = 1 << 20;

// A step of an ordinary program on 8 nodes, one task with 4 CPUs on each; tests change it.
class Ordinary {
 public:
  using Rate = StepOf::Rate;

  Ordinary(uint64_t seed, double noise)
      : noise_(seed), share_(noise), ranks_(noise_.Series(nodes)) {}

  // The values, each with noise, and each rank a little different from the others.
  Rate Noisy(Rate value) {
    return [this, value = std::move(value)](uint32_t rank, int tick) {
      const double factor = 1 + share_ * (noise_.Normal() + ranks_[rank]) / 2;
      return std::max(0.0, value(rank, tick) * factor);
    };
  }
  static Rate Always(double value) {
    return [value](uint32_t, int) { return value; };
  }

  void Store(const std::string& root) {
    StepOf made(nodes);
    made.job.id.step = step;
    if (gpus) made.job.environment["SLURM_JOB_GPUS"] = "0";
    if (cpus_per_task > 0) {
      made.job.environment["SLURM_CPUS_PER_TASK"] = std::to_string(cpus_per_task);
    }
    made.job.environment["SLURM_JOB_CPUS_PER_NODE"] =
        std::to_string(cpus) + "(x" + std::to_string(nodes) + ")";
    const auto counter = [&](const char* name, Tags tags, const Rate& rate) {
      tags.Set("task", "0");
      made.Counter("task", name, std::move(tags), Noisy(rate));
    };
    counter("task_cpu_seconds_total", {{"mode", "user"}}, [this](uint32_t rank, int tick) {
      return std::min<double>(cpus, cpu(rank, tick) * (1 - system));
    });
    counter("task_cpu_seconds_total", {{"mode", "system"}},
            [this](uint32_t rank, int tick) { return cpu(rank, tick) * system; });
    counter("task_write_calls_total", {}, Always(writes));
    counter("task_write_call_bytes_total", {}, Always(writes * write_size));
    counter("task_read_calls_total", {}, Always(20));
    counter("task_read_call_bytes_total", {}, Always(20 * 65536.0));
    const auto gauge = [&](const char* name, const Rate& rate) {
      made.Gauge("task", name, {{"task", "0"}}, rate);
    };
    gauge("task_threads", Always(threads));
    gauge("task_processes", Always(1));
    gauge("task_processes_blocked", Always(0));
    gauge("task_processes_stopped", [this](uint32_t rank, int) { return rank == 3 ? stopped : 0; });
    gauge("task_resident_memory_bytes", Noisy(memory));
    if (mpi) {
      const Rate in_mpi = [noisy = Noisy(mpi)](uint32_t rank, int tick) {
        return std::min(1.0, noisy(rank, tick));
      };
      made.Counter("mpi", "mpi_seconds_total", {{"class", "collective"}, {"task", "0"}}, in_mpi);
      made.Counter("mpi", "mpi_wait_seconds_total", {{"class", "collective"}, {"task", "0"}},
                   in_mpi);
    }
    if (rank_io > 0) {
      made.Counter("io", "io_seconds_total",
                   {{"operation", "write"},
                    {"fstype", "lustre"},
                    {"mountpoint", "/scratch"},
                    {"api", "posix"},
                    {"task", "0"}},
                   [this](uint32_t rank, int) { return rank == 0 ? rank_io : 0; });
    }
    if (io > 0) {
      for (const char* operation : {"write", "open"}) {
        made.Counter("io", "io_seconds_total",
                     {{"operation", operation},
                      {"fstype", "lustre"},
                      {"mountpoint", "/scratch"},
                      {"api", "posix"},
                      {"task", "0"}},
                     Noisy(Always(*operation == 'w' ? 0.95 * io : 0.05 * io)));
      }
    }
    made.Gauge("os", "node_memory_AnonPages_bytes", {}, Always(10 * kGigabyte));
    made.Gauge("os", "node_memory_AnonHugePages_bytes", {}, Always(huge * 10 * kGigabyte));
    ASSERT_TRUE(made.Store(root).ok());
    key_ = keys::ProfileKey(made.job);
  }

  Facts FactsIn(const std::string& root) const {
    const auto archive = OpenArchive(root);
    EXPECT_TRUE(archive.ok());
    const auto profile = archive->reader->Load(key_);
    EXPECT_TRUE(profile.ok()) << profile.status().message();
    const auto rows = ReadNodeRows(*archive->reader, key_, profile->job);
    const auto facts = FactsOfStep(*archive->reader, key_, *profile, *rows, profile->job.end);
    EXPECT_TRUE(facts.ok()) << facts.status().message();
    return *facts;
  }

  uint32_t nodes = 8;
  std::string step = "0";
  int cpus = 4;           // of the job on a node; a task may use as many
  int cpus_per_task = 4;  // 0: not asked for
  bool gpus = false;
  double stopped = 0;  // share of the time, of rank 3
  double rank_io = 0;  // share of the time, of rank 0
  double threads = 4;
  double system = 0.02;
  double writes = 5;
  double write_size = kMegabyte;
  double io = 0;      // share of the time; 0: not counted
  double huge = 0.6;  // share of memory
  Rate cpu = Always(3.8);
  Rate memory = Always(2 * kGigabyte);
  Rate mpi = nullptr;  // of one thread

 private:
  SeededNoise noise_;
  double share_;
  std::vector<double> ranks_;
  std::string key_;
};

class StepHints : public testing::Test {
 protected:
  std::vector<Hint> Of(Ordinary& step) {
    const TempDir dir(TempDir::Memory());
    step.Store(dir.path() + "/archive");
    facts_ = step.FactsIn(dir.path() + "/archive");
    return FindHints(rules_, facts_);
  }
  std::vector<std::string> MistakesOf(Ordinary& step) {
    std::vector<std::string> names;
    for (const Hint& hint : Of(step)) {
      if (hint.kind == HintKind::kMistake) names.push_back(hint.name);
    }
    return names;
  }
  std::string Known() const {
    std::string out;
    for (const FactInfo& fact : FactList()) {
      const double value = fact.unit == "text" ? std::nan("") : facts_.Number(fact.name);
      if (!std::isnan(value)) out += fmt::format("{} {:.4g}, ", fact.name, value);
    }
    return out;
  }

  const std::vector<HintRule> rules_ = *ParseHintRules(DefaultHintRules(), "default");
  Facts facts_;
};

// What there is nothing to say of.
const std::vector<std::pair<std::string, std::function<void(Ordinary&)>>>& HealthyKinds() {
  static const std::vector<std::pair<std::string, std::function<void(Ordinary&)>>> kinds = {
      {"computes", [](Ordinary&) {}},
      {"reads, then computes",
       [](Ordinary& step) {
         step.cpu = [](uint32_t, int tick) { return tick < 10 ? 2.5 : 3.9; };
         step.memory = [](uint32_t, int tick) { return std::min(tick, 10) * 0.2 * kGigabyte; };
       }},
      {"a little MPI",
       [](Ordinary& step) {
         step.cpus = step.cpus_per_task = 1;
         step.threads = 2;
         step.cpu = Ordinary::Always(0.98);
         step.mpi = Ordinary::Always(0.08);
       }},
      {"writes checkpoints",
       [](Ordinary& step) {
         step.io = 0.04;
         step.cpu = [](uint32_t, int tick) { return tick % 30 < 2 ? 0.3 : 3.9; };
       }},
      {"memory that comes and goes",
       [](Ordinary& step) {
         step.memory = [](uint32_t, int tick) { return (2 + std::sin(tick / 5.0)) * kGigabyte; };
       }},
      {"memory that is filled and kept",
       [](Ordinary& step) {
         step.memory = [](uint32_t, int tick) {
           return 4 * (1 - std::exp(-tick / 15.0)) * kGigabyte;
         };
       }},
      {"one node", [](Ordinary& step) { step.nodes = 1; }},
      {"its threads' cores have two threads",
       [](Ordinary& step) { step.cpus = step.cpus_per_task = 8; }},
      {"GPUs work, and a thread waits for them",
       [](Ordinary& step) {
         step.gpus = true;
         step.cpus = step.cpus_per_task = 16;
         step.threads = 6;
         step.cpu = [](uint32_t, int tick) { return tick % 10 < 3 ? 4.0 : 1.0; };
       }},
      {"all ranks communicate at the same time",
       [](Ordinary& step) {
         step.cpus = step.cpus_per_task = 1;
         step.cpu = Ordinary::Always(0.98);
         step.mpi = [](uint32_t, int tick) { return tick % 20 < 5 ? 0.92 : 0.02; };
       }},
      {"rank 0 writes while the others wait",
       [](Ordinary& step) {
         step.cpus = step.cpus_per_task = 1;
         step.cpu = [](uint32_t rank, int) { return rank == 0 ? 0.72 : 0.98; };
         step.mpi = [](uint32_t rank, int) { return rank == 0 ? 0.02 : 0.28; };
         step.rank_io = 0.27;
       }},
      {"memory in small pages", [](Ordinary& step) { step.huge = 0; }},
  };
  return kinds;
}

TEST_F(StepHints, AreNoneForHealthySteps) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    for (const auto& [kind, change] : HealthyKinds()) {
      Ordinary step(seed, 0.01 * static_cast<double>(seed));
      change(step);
      EXPECT_THAT(MistakesOf(step), IsEmpty()) << kind << ", seed " << seed << ": " << Known();
    }
  }
}

// A script waits for its steps, and a step may have some of its job's CPUs only.
TEST_F(StepHints, DoNotTakeAPartForTheWhole) {
  Ordinary script(1, 0.02);
  script.step = "batch";
  script.nodes = 1;
  script.threads = 1;
  script.cpu = Ordinary::Always(0.01);
  EXPECT_THAT(MistakesOf(script), IsEmpty()) << Known();
  Ordinary part(1, 0.02);
  part.cpus = 16;
  part.cpus_per_task = 4;
  EXPECT_THAT(MistakesOf(part), IsEmpty()) << Known();
  EXPECT_EQ(facts_.Number("cpus"), 32);
}

// As the head has it: without the rows of nodes, memory is known of single tasks.
TEST(FactsOfProfiles, DoNotTakeOneTasksMemoryForANodes) {
  Profile profile;
  profile.job = TestJob();
  profile.job.expected_nodes = 1;
  profile.job.end = profile.job.start + 100 * kSecond;
  FootprintEntry& memory = profile.footprint.emplace_back();
  memory.series = TestSeries("task_resident_memory_peak_bytes", MetricType::kGauge);
  memory.ticks = 100;
  memory.last = memory.mean = 60 * kGigabyte;
  memory.max = kGigabyte;
  memory.max_owner = {0, 3};
  for (const uint32_t tasks : {1u, 64u}) {
    profile.job.nodes.resize(1);
    profile.job.nodes[0].tasks = profile.job.expected_tasks = tasks;
    const Nanos end = profile.job.end;
    const Facts facts = FactsOfProfile(profile, Summarize(profile, {}, end));
    EXPECT_EQ(std::isnan(facts.Number("memory_peak")), tasks > 1) << tasks;
  }
}

// What the job asked for is judged when all of it is over.
TEST(JobFacts, AreKnownWhenTheJobIsOver) {
  const TempDir dir(TempDir::Memory());
  const auto store = [&](const std::string& name, Nanos after, double memory) {
    StepOf step(1);
    step.job.id.step = name;
    step.job.start += after;
    JobRequest& request = step.job.request.emplace();
    request.begun = kTestStart;
    request.time_limit = 3600 * kSecond;
    step.job.end = step.job.start + 100 * kSecond;
    step.Gauge("task", "task_resident_memory_peak_bytes", kTask, Ordinary::Always(memory));
    step.Write(dir.path());
    return keys::ProfileKey(step.job);
  };
  const std::string key = store("0", 0, kGigabyte);
  const auto used = [&](Nanos now) {
    const auto archive = OpenArchive(dir.path());
    const auto profile = archive->reader->Load(key);
    const auto facts = FactsOfStep(*archive->reader, key, *profile, {}, now);
    return facts.ok() ? facts->Number("job_time_used") : -1;
  };
  const Nanos soon = kTestStart + 300 * kSecond;
  EXPECT_TRUE(std::isnan(used(soon)));  // another step may follow
  EXPECT_EQ(used(kTestStart + 3601 * kSecond), 100);
  store("1", 150 * kSecond, 2 * kGigabyte);
  EXPECT_EQ(used(kTestStart + 3601 * kSecond), 250);
  store("batch", 0, kMegabyte);
  EXPECT_EQ(used(soon), 250);
}

struct Wrong {
  std::string hint;
  std::function<void(Ordinary&)> change;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.hint; }
class StepHintsOf : public StepHints, public testing::WithParamInterface<Wrong> {};

TEST_P(StepHintsOf, WhatIsWrongIsSaidAlone) {
  for (const double noise : {0.0, 0.02, 0.05, 0.1}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Ordinary step(seed, noise);
      GetParam().change(step);
      EXPECT_THAT(MistakesOf(step), ElementsAre(GetParam().hint))
          << "noise " << noise << ", seed " << seed << ": " << Known();
    }
  }
}

void ByMpi(Ordinary& step) {
  step.cpus = step.cpus_per_task = 1;
  step.threads = 2;
  step.cpu = Ordinary::Always(0.98);
}

INSTANTIATE_TEST_SUITE_P(
    All, StepHintsOf,
    testing::Values(Wrong{"idle_cores",
                          [](Ordinary& step) {
                            step.threads = 1;
                            step.cpu = Ordinary::Always(0.95);
                          }},
                    Wrong{"leak",
                          [](Ordinary& step) {
                            step.memory = [](uint32_t, int tick) {
                              return (0.2 + 0.03 * tick) * kGigabyte;
                            };
                          }},
                    Wrong{"serial_part",
                          [](Ordinary& step) {
                            step.nodes = 1;
                            step.cpu = [](uint32_t, int tick) {
                              return tick % 40 < 14 ? 1.0 : 3.9;
                            };
                          }},
                    Wrong{"serial_part",
                          [](Ordinary& step) {
                            ByMpi(step);
                            step.mpi = [](uint32_t rank, int tick) {
                              return tick % 40 < 14 && rank != 0 ? 1.0 : 0.02;
                            };
                          }},
                    Wrong{"imbalance",
                          [](Ordinary& step) {
                            ByMpi(step);
                            step.mpi = [](uint32_t rank, int) { return rank == 3 ? 0.02 : 0.45; };
                          }},
                    Wrong{"slow_node",
                          [](Ordinary& step) {
                            ByMpi(step);
                            step.stopped = 0.5;
                            step.cpu = [](uint32_t rank, int) { return rank == 3 ? 0.5 : 0.98; };
                            step.mpi = [](uint32_t rank, int) { return rank == 3 ? 0.02 : 0.5; };
                          }},
                    Wrong{"communication",
                          [](Ordinary& step) {
                            ByMpi(step);
                            step.mpi = Ordinary::Always(0.5);
                          }},
                    Wrong{"small_writes",
                          [](Ordinary& step) {
                            step.writes = 200e3;
                            step.write_size = 100;
                            step.io = 0.6;
                            step.system = 0.5;
                          }},
                    Wrong{"imbalance_of_cpu",
                          [](Ordinary& step) {
                            step.cpus = step.cpus_per_task = 1;
                            step.threads = 1;
                            step.cpu = [](uint32_t rank, int) { return rank == 3 ? 0.95 : 0.4; };
                          }}),
    [](const auto& one) { return one.param.hint + std::to_string(one.index); });

TEST_F(StepHints, NameTheRankThatOthersWaitFor) {
  Ordinary step(1, 0.02);
  ByMpi(step);
  step.mpi = [](uint32_t rank, int) { return rank == 3 ? 0.02 : 0.45; };
  const std::vector<Hint> hints = Of(step);
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_THAT(hints[0].says, HasSubstr("the others wait for task 3 on n3"));
  EXPECT_NEAR(facts_.Number("awaited_work"), 0.98 / 0.55 - 1, 0.05);
}

TEST(SerialParts, AreThoseInWhichOneRankWorksAndTheOthersWait) {
  const auto serial = [](double others, double outside) {
    std::vector<Row> mpi(4, Row(100, 0.02));
    for (size_t rank = 0; rank < 4; ++rank) {
      for (size_t t = 0; t < 40; ++t) mpi[rank][t] = rank == 0 ? outside : others;
    }
    Facts facts;
    AddSerialRanks(mpi, 4, facts);
    return facts.Number("serial_share");
  };
  EXPECT_NEAR(serial(1, 0), 0.4, 0.01);
  EXPECT_NEAR(serial(0.95, 0.3), 0.4, 0.01);
  EXPECT_EQ(serial(0.95, 0.95), 0);  // all communicate
  EXPECT_EQ(serial(0.6, 0), 0);      // the others have work, too
}

// A busy machine takes samples late: what one tick has too much another one lacks, and no time in
// which several worked.
TEST(SerialParts, AreNoneOfOneThreadWhoseSamplesCameLate) {
  const auto serial = [](double late, double early) {
    Row cpus(60, 0.98);
    for (size_t t = 30; t < 50; ++t) cpus[t] = t % 10 < 5 ? late : early;
    Facts facts;
    AddCpuFacts(cpus, facts);
    return facts.Number("serial_share");
  };
  EXPECT_TRUE(std::isnan(serial(1.9, 0.06)));
  EXPECT_NEAR(serial(1.9, 1.9), 40.0 / 60, 0.01);
}

TEST(GrowingMemory, HasItsRate) {
  Facts facts;
  std::vector<double> memory;
  memory.reserve(240);
  for (int t = 0; t < 240; ++t) memory.push_back(1e9 + t * 1e7);
  memory.back() = 1e6;  // half gone, as the task ended
  AddGrowthFacts(memory, 10, facts);
  EXPECT_NEAR(facts.Number("memory_growth"), 3.6e9, 1e7);
  EXPECT_NEAR(facts.Number("memory_at_end"), 3.25e9, 1e7);
  EXPECT_EQ(facts.Number("memory_steady"), 1);
}

}  // namespace
}  // namespace sonde::insight
