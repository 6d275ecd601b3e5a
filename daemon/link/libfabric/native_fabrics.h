// Which fabrics of their own a machine has, by what the kernel shows in /sys: only for these is it
// worth loading libfabric.
//
// Thread safety: a function without state.
#pragma once

#include <string>
#include <vector>

namespace sonde::tree {

// libfabric's providers for the adapters that are there, the preferred first. Adapters whose
// network is Ethernet (RoCE, iWARP) do not count: there TCP works as well.
//
//   /sys/class/cxi/*                            Slingshot: cxi
//   /sys/class/infiniband/*/device/driver       efa: efa; hfi1: verbs, opx, psm3 (Omni-Path)
//   /sys/class/infiniband/*/ports/*/link_layer  InfiniBand: verbs
std::vector<std::string> NativeFabrics(const std::string& sys = "/sys");

}  // namespace sonde::tree
