#include "daemon/head/step_tree.h"

namespace sonde::head {

std::vector<web::TreeEdge> EdgesOf(const JobDescription& job, const Nodes& nodes) {
  std::vector<web::TreeEdge> edges;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes.gone(i)) continue;
    const uint32_t parent = nodes.parent(i);
    edges.push_back({parent < job.nodes.size() ? job.nodes[parent].host : job.launch_host + ":head",
                     job.nodes[i].host});
  }
  return edges;
}

web::LinkTree LinksOf(const JobDescription& job, const Nodes& nodes, const RowPath& rows,
                      Nanos now) {
  using State = web::LinkTree::State;
  web::LinkTree tree;
  tree.head = job.launch_host;
  tree.expected = nodes.expected();
  tree.registered = static_cast<uint32_t>(nodes.registered());
  tree.now = now;
  tree.period = job.period;
  tree.newest_tick = rows.newest();
  tree.nodes.reserve(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    const NodeInfo& info = job.nodes[i];
    web::LinkTree::Node& node = tree.nodes.emplace_back();
    node.host = info.host;
    node.parent = nodes.parent(i);
    node.carrier = nodes.carrier(i);
    node.since = info.joined;
    node.last_tick = rows.LastTickOf(i);
    if (nodes.gone(i)) {
      node.state = info.lost ? State::kLost : State::kLeft;
      node.since = info.left;
      node.note = info.note;
    } else if (const auto away = nodes.away(i)) {
      node.state = State::kAway;
      node.since = away->since;
      node.note = away->why;
    }
  }
  return tree;
}

}  // namespace sonde::head
