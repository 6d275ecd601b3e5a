// The head's open files: it has a connection to every node of the step, or to every gateway.
//
// A daemon raises its soft limit to the hard one when it starts; a hard limit that is too low for
// the step is told, because nodes beyond it wait in vain.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>

namespace sonde::head {

// What a head of `nodes` nodes needs: their connections, those of its children in the tree, the
// web server's, the archive's files and its own. Steps of more than `direct` nodes have gateways;
// should some of these fail, their nodes come by themselves.
uint64_t DescriptorsFor(uint64_t nodes, uint64_t direct, uint64_t fanout);

// A note for the profile if `limit` is less than that; "" if it is enough.
std::string TooFewDescriptors(uint64_t nodes, uint64_t direct, uint64_t fanout, uint64_t limit);

// This process's limit.
uint64_t DescriptorLimit();

}  // namespace sonde::head
