#include "profiles/archive/node_rows.h"

#include <limits>

namespace sonde {

Result<std::vector<NodeRow>> ReadNodeRows(const Archive& archive, const std::string& key,
                                          const JobDescription& job) {
  const SeriesWanted wanted(HasNodeRows, IsOfNodeRows);
  const auto data = archive.Read(key, SeriesScope::kNodes, wanted, 0,
                                 std::numeric_limits<Nanos>::max(), Thinned::kMax);
  if (!data.ok()) return data.status();
  return NodeRowsOf(*data, job);
}

}  // namespace sonde
