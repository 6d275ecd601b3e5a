#include "profiles/model/shown_series.h"

#include "profiles/model/block_key.h"
#include "series/store/task_ranks.h"

namespace sonde {

std::string HostOfNode(const JobDescription& job, uint32_t node) {
  return node < job.nodes.size() && !job.nodes[node].host.empty() ? job.nodes[node].host
                                                                  : "node" + std::to_string(node);
}

Series ShownSeries(const Series& series, uint32_t node, std::string_view group,
                   const JobDescription& job) {
  if (node == kReducedNode) return series;
  Series shown = series;
  AddFirstRank(FirstRankOf(group), shown.tags);
  shown.tags.Set("host", HostOfNode(job, node));
  return shown;
}

}  // namespace sonde
