// The plugin's state in srun.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <cstdint>
#include <string>

#include "core/status.h"
#include "launcher/process.h"
#include "spank/rendezvous.h"

namespace sonde::spank {

struct SrunContext {
  launch::Daemon head;
  bool stopped = false;  // the head was asked to finish and had its time
  Listener listener;
  std::string key;
  Status no_head;           // why no rendezvous was offered
  uint32_t components = 0;  // of a heterogeneous step
};

}  // namespace sonde::spank
