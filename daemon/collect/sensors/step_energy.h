// The energy that the step used of the node's processors and memory, by its share of their time:
//
//   step energy += node energy * min(1, step CPU time / node CPU time)
//
// over intervals of a second or more, where node energy is what its packages and their DRAM used
// (RAPL by powercap or perf), or on HPE Cray its processors and memory, and node CPU time is that
// of all modes but idle, iowait and steal. So what a processor draws at rest is shared by those who
// compute, and an interval in which nobody computes is nobody's. On a node of its own a step gets
// nearly all. GPUs are not in it: those of the step are measured as they are.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <string_view>
#include <vector>

#include "daemon/collect/read/source.h"

namespace sonde::collect {

class StepEnergySource final : public Source {
 public:
  // The sources outlive this one, which is sampled after them.
  StepEnergySource(const Source& cpu, const Source& tasks,
                   const std::vector<const Source*>& energy);

  std::string_view name() const override { return "step energy"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override { Update(now, kSecond); }
  void SampleLast(Nanos now) override { Update(now, 0); }

 private:
  void Update(Nanos now, Nanos interval);

  // Columns of a source that add up.
  struct Sum {
    const Source* source;
    std::vector<size_t> columns;
    uint32_t generation = 0;
    bool known = false;

    using Wanted = bool (*)(const Series& series);
    void Find(Wanted wanted);
    // Missing if a column is missing, or there are no columns.
    double Value() const;
  };

  Sum cpu_;
  Sum tasks_;
  std::vector<Sum> energy_;
  double total_ = 0;
  double last_cpu_ = 0;
  double last_tasks_ = 0;
  double last_energy_ = 0;
  Nanos last_ = 0;
  bool started_ = false;
};

std::vector<MetricDecl> StepEnergyMetrics();

}  // namespace sonde::collect
