// How the nodes of a step are linked, as its head has told them, and how it is with each.
//
// Thread safety: the loop's thread only.
#pragma once

#include <vector>

#include "core/job.h"
#include "daemon/head/answers/step_nodes.h"
#include "daemon/head/record/row_path.h"
#include "daemon/head/registry/nodes.h"

namespace sonde::head {

// Of the nodes that are not gone.
std::vector<web::TreeEdge> EdgesOf(const JobDescription& job, const Nodes& nodes);

// Of all nodes; `now` by the step's clock.
web::LinkTree LinksOf(const JobDescription& job, const Nodes& nodes, const RowPath& rows,
                      Nanos now);

}  // namespace sonde::head
