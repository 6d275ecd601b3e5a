// What is counted for every task of a step: the user's list, or the processor's event set, as
// libpfm4 encodes it, in groups, with the formulas that can be evaluated over it.
//
// Thread safety: values and a function without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/formula/formula.h"
#include "core/metric.h"
#include "daemon/collect/read/source.h"
#include "launcher/launch.h"

namespace sonde::collect {

struct PlannedEvent {
  std::string name;  // in formulas
  std::string text;  // as libpfm4 knows it
  Metric metric;
  double scale = 1;  // to the metric's unit
  launch::PerfEvent request{};
  uint32_t group = 0;  // index of EventPlan::groups

  bool IsSoftware() const;
};

struct PlannedFormula {
  static constexpr uint32_t kSeconds = 0xffffffff;  // instead of an event: the interval's length

  Metric metric;
  Formula formula;
  std::vector<uint32_t> inputs;  // for each name of the formula the index of its event
};

struct EventPlan {
  std::string set;                   // name of the processor's event set
  std::vector<PlannedEvent> events;  // at most launch::kMaxEvents; those of a group together
  std::vector<std::string> groups;
  std::vector<PlannedFormula> formulas;  // of several for one metric the best comes first
};

struct EventChoice {
  // --telemetry-events: events of libpfm4, and names of the set's events and groups, separated by
  // commas; "default", like an empty text, means all of the set and the software events.
  std::string list;
  std::string site_sets;  // directory of the site's own event sets; "": none
  Roots roots = {};
  bool syscalls = false;  // part of the default
};

// Events that cannot be counted are named in `notes`; the others are planned.
EventPlan PlanEvents(const EventChoice& choice, std::vector<std::string>& notes);

}  // namespace sonde::collect
