// Which of a node's GPUs are the step's.
//
// The list comes from the launcher (launcher/launch.h, key gpus): numbers as Slurm counts them, in
// the order of the PCI bus, which is that of nvidia-smi; or UUIDs as CUDA_VISIBLE_DEVICES may hold
// them, also of MIG instances, whose device is meant.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sonde::collect::gpu {

class Selection {
 public:
  // "0,2-3", "GPU-8f6a...,GPU-..."; "": all. What is neither is passed over, but a list of such
  // words alone ("NoDevFiles", "-1") selects nothing.
  explicit Selection(std::string_view list);

  bool all() const { return all_; }
  bool none() const { return !all_ && numbers_.empty() && uuids_.empty(); }
  bool HasNumber(unsigned index) const;
  const std::vector<std::string>& uuids() const { return uuids_; }

 private:
  bool all_;
  std::vector<std::pair<unsigned, unsigned>> numbers_;  // from, to
  std::vector<std::string> uuids_;
};

}  // namespace sonde::collect::gpu
