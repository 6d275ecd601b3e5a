// What Slurm has allocated to the step on this node, as the launcher says it; nothing is read.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "daemon/collect/read/source.h"

namespace sonde::collect {

class AllocationSource final : public Source {
 public:
  explicit AllocationSource(uint64_t memory_bytes);

  std::string_view name() const override { return "allocation"; }
  Group group() const override { return Group::kOs; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos /*now*/) override {}
};

std::vector<MetricDecl> AllocationMetrics();

}  // namespace sonde::collect
