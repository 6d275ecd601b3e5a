#include "insight/steps/step_cpus.h"

#include <algorithm>
#include <cmath>

#include "insight/robust.h"
#include "profiles/model/summary.h"
#include "profiles/report/used.h"

namespace sonde::insight {

double AskedCpusOfNode(const Profile& profile) {
  const double asked = AskedCpus(profile.job);
  if (!(asked > 0) || profile.job.expected_nodes == 0) return std::nan("");
  return asked / profile.job.expected_nodes;
}

std::vector<double> CpusOfNodes(const Profile& profile, const StepRows& cpusets,
                                const std::vector<double>& cpus) {
  std::vector<double> out(profile.job.nodes.size(), AskedCpusOfNode(profile));
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t row = cpusets.OfNode(i);
    if (row < cpusets.rows.size()) {
      const double mean = MeanOf(cpusets.rows[row]);
      if (!std::isnan(mean)) out[i] = mean;
    }
    if (i < cpus.size() && out[i] > cpus[i]) out[i] = cpus[i];
  }
  return out;
}

}  // namespace sonde::insight
