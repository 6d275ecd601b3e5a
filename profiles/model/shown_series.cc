#include "profiles/model/shown_series.h"

#include "profiles/model/block_key.h"
#include "series/store/task_ranks.h"

namespace sonde {

std::string HostOfNode(const JobDescription& job, uint32_t node) {
  return node < job.nodes.size() && !job.nodes[node].host.empty() ? job.nodes[node].host
                                                                  : "node" + std::to_string(node);
}

void AddShownTags(uint32_t node, std::string_view group, const JobDescription& job, Tags& tags) {
  if (node == kReducedNode) return;
  AddFirstRank(FirstRankOf(group), tags);
  tags.Set("host", HostOfNode(job, node));
}

Series ShownSeries(const Series& series, uint32_t node, std::string_view group,
                   const JobDescription& job) {
  Series shown = series;
  AddShownTags(node, group, job, shown.tags);
  return shown;
}

}  // namespace sonde
