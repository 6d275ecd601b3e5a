// What Slurm tells about the job in any context, and in slurmstepd about its place on the node.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/status.h"
#include "launcher/environment.h"
#include "launcher/process.h"
#include "launcher/site/slurm_node.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {

// An item of Slurm's that is one number, if this context has it.
template <typename T>
std::optional<T> Item(spank_t spank, spank_item_t item) {
  T value{};
  if (spank_get_item(spank, item, &value) != ESPANK_SUCCESS) return std::nullopt;
  return value;
}

// The job's environment as slurmstepd holds it; spank_setenv may move it.
launch::Environment JobEnvironment(spank_t spank);
Result<launch::Credentials> JobCredentials(spank_t spank);
// In slurmstepd: this node's name as Slurm calls it.
std::string NodeName();
// What Slurm gave the job there, bytes.
uint64_t AllocatedMemory(spank_t spank);
// The step there, or the job if the step has no share of its own; 0 if Slurm does not allocate
// memory.
uint64_t MemoryOfStep(spank_t spank);
// Whether nobody else has a job on the node.
bool IsAlone(spank_t spank, const launch::SlurmNode& node);

}  // namespace sonde::spank
