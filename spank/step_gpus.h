// Which GPUs of the node are the step's, by its environment.
//
// slurmstepd puts SLURM_STEP_GPUS (of a step) or SLURM_JOB_GPUS (of a batch script or an
// interactive step) into it before any plugin runs, with the node's own numbers: positions among
// the GPUs of gres.conf, which are those on the PCI bus. A step that was given none, in a job that
// was, has its script's SLURM_JOB_GPUS.
//
// A step to which Slurm gives none has none, or, where Slurm does not manage them, all: only one
// that has its node alone may look at them, as else they may be another job's.
//
// MIG instances are numbered as if each were a device, so there their UUIDs count. Without Slurm's
// variables, it is what the vendors' libraries would let the program see.
//
// Header-only, and without Slurm: `sonde run` uses it too.
//
// Thread safety: a function without state.
#pragma once

#include <string_view>

#include "spank/environment.h"

namespace sonde::spank {

// For the launch message's key gpus; "" if nothing says which. Points into the environment.
// `alone`: nobody else is on the node.
inline std::string_view StepGpus(const Environment& environment, bool alone) {
  if (!alone && environment.First("SLURM_STEP_GPUS", "SLURM_JOB_GPUS").empty()) return "none";
  const std::string_view cuda = environment.First("CUDA_VISIBLE_DEVICES");
  if (cuda.find("MIG-") != std::string_view::npos) return cuda;
  return environment.First("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES",
                           "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
                           "GPU_DEVICE_ORDINAL");
}

}  // namespace sonde::spank
