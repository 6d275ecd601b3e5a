// The plugin's state in srun.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/status.h"
#include "core/unique_fd.h"
#include "launcher/process.h"

namespace sonde::spank {

struct SrunContext {
  std::string step;  // as users write it: 4711.0
  launch::Daemon head;
  UniqueFd slot;            // among those of the host, where the site bounds them
  bool stopped = false;     // the head was asked to finish and had its time
  Status no_head;           // why there can be none
  uint32_t components = 0;  // of a heterogeneous step
  size_t program = 0;       // which word of srun's command line is the program
  bool launched = false;    // local_user_init was called
  pid_t process = 0;        // srun itself, not a child of its
};

}  // namespace sonde::spank
