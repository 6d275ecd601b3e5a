// A Slurm of the tests' own around the plugin as it is built: its functions, which the plugin finds
// in the test program, and the calls that Slurm makes.
//
// Each test loads the plugin into a process of its own, since it keeps what it is told.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "spank/slurm_spank.h"

namespace sonde {

struct FakeSlurm {
  spank_context_t context = S_CTX_LOCAL;
  bool registers = true;  // takes options
  std::map<std::string, spank_option> options;
  std::map<spank_item_t, uint64_t> items;  // that are one number
  std::vector<std::string> environment;    // of the job
  std::vector<std::string> accessed;       // files that access() was called for
};
FakeSlurm& Slurm();

// The plugin, with arguments of plugstack.conf.
class LoadedPlugin {
 public:
  LoadedPlugin();
  LoadedPlugin(const LoadedPlugin&) = delete;
  LoadedPlugin& operator=(const LoadedPlugin&) = delete;
  ~LoadedPlugin();

  bool loaded() const { return library_ != nullptr; }
  // "slurm_spank_init" and the like; what the plugin lacks is not called.
  void Call(const char* callback);
  // Gives the plugin the value of an option, as srun and sbatch do, and slurmstepd; whether it was
  // taken.
  static bool Give(const char* option, const char* value);

  std::vector<std::string> arguments{"sonded=/nonexistent/sonded", "config=/dev/null"};

 private:
  void* const library_;
};

}  // namespace sonde
