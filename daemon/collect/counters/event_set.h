// The events that are counted by default, and what is derived from them, as files: one for each
// processor generation (events/*.events, built in; a site's own in /etc/sonde/events).
//
//   # a comment, to the end of the line
//   name Intel Skylake-SP                      for people
//   processor GenuineIntel 6 0x55 0x6a-0x6c    vendor, family and models as in /proc/cpuinfo
//   processor arm 0x41 0xd0c                   Arm: implementer and parts
//   counters 4                                 programmable counters of a hardware thread
//   source TEXT                                where codes and formulas come from
//   group NAME                                 events that are counted together or not at all
//   event NAME = SPEC [| SPEC ...]             the first that the machine's libpfm4 knows is taken
//   formula METRIC = EXPRESSION                of those for a metric the first whose events exist
//
// Names of events are those of vocabulary.h, or any other; metrics only those of vocabulary.h. A
// formula also knows task_clock (seconds of processor time) and seconds (since the last sample).
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formula/formula.h"
#include "core/status.h"

namespace sonde::collect {

// As /proc/cpuinfo tells it. Arm: vendor "arm", the implementer and the part.
struct ProcessorId {
  std::string vendor;
  uint32_t family = 0;
  uint32_t model = 0;
  bool operator==(const ProcessorId&) const = default;
};
// Of the first processor; vendor "" if the text names none.
ProcessorId ParseProcessor(std::string_view cpuinfo);

struct EventSet {
  struct Processors {
    std::string vendor;
    uint32_t family = 0;
    std::vector<std::pair<uint32_t, uint32_t>> models;  // first and last of each range
  };
  struct Event {
    std::string name;
    std::vector<std::string> specs;
  };
  struct Group {
    std::string name;
    std::vector<Event> events;
  };
  struct Binding {
    std::string metric;
    Formula formula;
  };

  std::string name;
  std::vector<Processors> processors;
  std::vector<Group> groups;
  std::vector<Binding> formulas;

  bool IsFor(const ProcessorId& id) const;
};

// kInvalid names the file and the line, and what was expected there.
Result<EventSet> ParseEventSet(std::string_view text, std::string_view file);

// One of the built-in files.
struct EventSetFile {
  std::string_view file;
  std::string_view text;
};
const std::vector<EventSetFile>& BuiltInEventSets();

// The set of a processor: the first file in `site`, by name, that is for it, else the built-in one,
// else the general one. A file that is wrong is passed over, and `notes` says so.
EventSet FindEventSet(const ProcessorId& id, const std::string& site,
                      std::vector<std::string>& notes);
// The events that the kernel counts itself, on every machine.
EventSet SoftwareEventSet();

}  // namespace sonde::collect
