// The counters of a node that are beside its processors: energy meters (RAPL) and memory
// controllers, as /sys/bus/event_source/devices describes them.
//
//   power               events energy-pkg, energy-ram, energy-psys and at level 4 energy-cores, in
//                       joules by their scale
//   uncore_imc*         Intel: cas_count_read and cas_count_write, or data_read and data_write of
//                       free running ones; bytes by their scale and unit
//   amd_umc*            AMD from Zen 4 on: CAS commands, 64 bytes each; event 0x0a with rdwrmask 1
//   or
//                       2 (linux, tools/perf/pmu-events/arch/x86/amdzen4/memory-controller.json)
//   nvidia_scf_pmu*     Grace: cmem_rd_data in units of 32 bytes, cmem_wr_total_bytes in bytes
//                       (NVIDIA Grace Performance Tuning Guide)
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "daemon/collect/read/source.h"
#include "launcher/launch.h"

namespace sonde::collect {

struct MachineCounter {
  launch::MachineEvent event{};
  enum class Kind : uint8_t { kEnergy, kRead, kWritten } kind = Kind::kEnergy;
  std::string part;  // of energy: package-0, dram-0, ...; of memory: the socket
  double scale = 1;  // to joules or bytes
};

// At most launch::kMaxMachineEvents.
std::vector<MachineCounter> FindMachineCounters(const Roots& roots, int level);

// A device's event as its files say it, "event=0x04,umask=0x03", put into `config` by the places
// that `format` has for each term, "config:0-7,21". kInvalid if a term has none, or does not fit.
Result<uint64_t> EncodeTerms(std::string_view terms, const std::string& format);

}  // namespace sonde::collect
