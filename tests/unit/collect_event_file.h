// Reads the event sets of daemon/collect/counters/events for tests. It shares no code with the
// daemon's parser: what both understand in the same way is written rightly.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sonde::event_files {

struct Event {
  std::string name;
  std::vector<std::string> specs;
};
struct Formula {
  std::string metric;
  std::string expression;
  size_t line;
};
struct Processor {
  std::string vendor;  // vendor_id and family, or "arm" and implementer
  std::string family;
  std::vector<std::pair<int, int>> models;
};
struct EventSet {
  std::string file;
  std::string name;
  std::vector<Processor> processors;
  size_t counters = 0;
  std::vector<std::string> sources;
  std::vector<std::pair<std::string, std::vector<Event>>> groups;
  std::vector<Formula> formulas;
  std::map<std::string, size_t> line_of;  // of each event
  std::vector<std::string> errors;

  std::vector<Event> events() const {
    std::vector<Event> all;
    for (const auto& [_, group] : groups) all.insert(all.end(), group.begin(), group.end());
    return all;
  }
};

// All sets that are shipped, and one of them by its file's name without the suffix.
const std::vector<EventSet>& Sets();
const EventSet& Set(const std::string& file);

// rXXXX as the kernel's config; nothing if it is not raw.
std::optional<uint64_t> Raw(const std::string& spec);
// Whether it is one of the kernel's own events, by libpfm4's name.
bool Generic(const std::string& spec);
// Whether it needs a second register, which no raw event has.
bool Offcore(const std::string& spec);
using Values = std::map<std::string, double>;
// The value of an expression; nothing if it is none, or has a name that `values` lacks.
std::optional<double> Evaluate(const std::string& expression, const Values& values);

}  // namespace sonde::event_files
