// Whether a tool that needs the processor's counters runs among the step's processes: perf, LIKWID,
// PAPI, HPCToolkit, VTune, uProf, MAP, Nsight Systems.
//
// A process is known by its name, which is looked at in every sample, or by a library that it has
// mapped, which is looked for when it is first seen, when its name changes (it executed another
// program), and once more a sample later. A program that PAPI is linked into statically is not
// recognised: `sonde pause counters` serves there.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/job/tasks.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

class ProfilerWatch {
 public:
  explicit ProfilerWatch(const Roots& roots) : proc_(roots.proc) {}

  // A tool among the processes, such as "perf (process 4711)", or "".
  const std::string& Look(const std::vector<TaskProcess>& processes);

 private:
  static constexpr int kLooks = 2;

  struct Known {
    TaskProcess process;
    int looks = 0;          // at its libraries
    std::string_view tool;  // "": none
    bool present = false;
  };
  Known& Find(const TaskProcess& process);
  void LookAt(Known& known);

  const std::string proc_;
  std::vector<Known> known_;
  size_t next_ = 0;  // where the next process is looked for
  std::string found_;
};

// The tool that a process of this name is, or "".
std::string_view ProfilerNamed(std::string_view process);
// The tool whose library stands in the text of /proc/PID/maps, or "".
std::string_view ProfilerMapped(std::string_view maps);

}  // namespace sonde::collect
