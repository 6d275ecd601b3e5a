// A run beside the earlier runs of its command: which of its numbers are worse, by more than noise.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/status.h"
#include "insight/regression.h"
#include "profiles/archive/archive.h"
#include "profiles/compare/compare.h"

namespace sonde::cli {

struct CheckQuestion {
  std::string word;  // a step, as in 4711.0, or text of a command or name: its newest run
  size_t last = 20;  // earlier runs
  std::vector<std::string> same;  // keys of tags that earlier runs have with the same value
  double least = 0.02;            // a change that matters, as a share
};

struct JudgedNumber {
  CompareSection section = CompareSection::kTime;
  std::string name;
  std::string unit;
  insight::Better better = insight::Better::kUnknown;
  insight::Judgement judged;
};

struct CheckedRun {
  // Runs that are as the others are called worse in this share of all cases, at most.
  static constexpr double kByChance = 0.01;

  std::string key;
  Profile profile;
  size_t earlier = 0;  // runs
  std::vector<JudgedNumber> numbers;
  bool completed() const { return profile.job.state == EndState::kCompleted; }
  // Whether there are enough runs to tell.
  bool known() const { return earlier >= insight::Judgement::kEnough; }
  bool worse() const;
};

using OnStep = std::function<void(uint64_t done, uint64_t total)>;
// Earlier runs are completed ones with the same command line, nodes, tasks, cluster and partition.
// Judged are the wall time, CPU time, memory, the times of phases, and figures of merit whose unit
// tells which way is better; other figures are compared only. kNotFound: there is no such run.
Result<CheckedRun> CheckRun(const Archive& archive, const CheckQuestion& question,
                            const OnStep& on_step);

// Which way a figure with this unit is better: more of what is per second, less of a time.
insight::Better BetterOf(std::string_view unit);

}  // namespace sonde::cli
