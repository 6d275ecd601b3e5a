// libpfm4, loaded when counters are asked for: the tables in it cost every process that links it
// 0.6 ms of relocations, which a short step at level 2 should not pay.
//
// Thread safety: none; one at a time.
#pragma once

#include <linux/perf_event.h>

#include <functional>
#include <string>
#include <vector>

#include "core/status.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

// An event as the library lists it.
struct PfmEvent {
  std::string pmu;  // the counters that have it, such as "perf" or "skx"
  std::string name;
  std::string about;
  struct Mask {
    std::string name;
    std::string about;
  };
  std::vector<Mask> masks;  // NAME:MASK
};

class PfmLibrary {
 public:
  // Loads and initialises the library, which then looks at the machine. Encode tells of a failure.
  explicit PfmLibrary(const Roots& roots = {});
  ~PfmLibrary();
  PfmLibrary(const PfmLibrary&) = delete;
  PfmLibrary& operator=(const PfmLibrary&) = delete;

  // The event as perf_event_open wants it, counted in user space. A failure says why in a few
  // words. Events of a processor's own counters have PERF_TYPE_RAW, also where the kernel has
  // another number for these counters, as on Arm.
  Status Encode(const std::string& event, perf_event_attr& attr) const;

  // Calls f for every event of the counters that this machine has. A failure is told as by
  // Encode.
  Status ForEach(const std::function<void(const PfmEvent&)>& f) const;

 private:
  bool IsProcessor(uint32_t type) const;

  const std::string devices_;
  void* handle_ = nullptr;
  Status failure_;
};

}  // namespace sonde::collect
