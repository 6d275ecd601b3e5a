// The head's open files: it has a connection to every node of the step, or to every gateway.
//
// A daemon raises its soft limit to the hard one when it starts; a hard limit that is too low for
// the step is told, because nodes beyond it wait in vain.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::head {

// Connections of nodes that a head of `nodes` nodes is to have. Steps of more than `direct` nodes
// have gateways; should some of these fail, their nodes come by themselves.
uint64_t ConnectionsFor(uint64_t nodes, uint64_t direct);

// What that head needs: these connections, those of its children in the tree, the web server's, the
// archive's files and its own. To a head to which no gateway leads all nodes come by themselves:
// there `direct` is `nodes`.
uint64_t DescriptorsFor(uint64_t nodes, uint64_t direct, uint64_t fanout);

// A note for the profile if `limit` is less than that; "" if it is enough. `host`: the head's, as
// the reader knows it.
std::string TooFewDescriptors(std::string_view host, uint64_t nodes, uint64_t direct,
                              uint64_t fanout, uint64_t limit);

// This process's limit.
uint64_t DescriptorLimit();

}  // namespace sonde::head
