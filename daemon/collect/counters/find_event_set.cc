// Which of the event sets is the machine's.
#include <fmt/core.h>

#include <algorithm>

#include "core/log.h"
#include "daemon/collect/counters/event_set.h"
#include "daemon/collect/read/directory.h"
#include "daemon/collect/read/file_reader.h"

namespace sonde::collect {
namespace {

constexpr std::string_view kSuffix = ".events";

EventSet BuiltIn(std::string_view file) {
  for (const EventSetFile& f : BuiltInEventSets()) {
    if (f.file != file) continue;
    if (Result<EventSet> set = ParseEventSet(f.text, f.file); set.ok()) return *std::move(set);
  }
  return {};
}

// True, and `set`, if the file is good and for this processor.
bool Take(std::string_view text, std::string_view file, const ProcessorId& id,
          std::vector<std::string>& notes, EventSet& set) {
  Result<EventSet> parsed = ParseEventSet(text, file);
  if (!parsed.ok()) {
    notes.push_back(fmt::format("event set not used: {}", parsed.status().message()));
    return false;
  }
  if (!parsed->IsFor(id)) return false;
  set = *std::move(parsed);
  log::Debug("events of {} ({})", set.name, file);
  return true;
}

}  // namespace

EventSet FindEventSet(const ProcessorId& id, const std::string& site,
                      std::vector<std::string>& notes) {
  EventSet set;
  std::vector<std::string> files;
  if (!site.empty()) files = ListDirectory(site);
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    if (!file.ends_with(kSuffix) || file.starts_with('.')) continue;
    const std::string path = site + "/" + file;
    ReadBuffer buffer;
    const std::string_view text = FileReader(path, Shape::kWhole, 16384).Read(buffer, 0);
    if (Take(text, path, id, notes, set)) return set;
  }
  for (const EventSetFile& f : BuiltInEventSets()) {
    if (Take(f.text, f.file, id, notes, set)) return set;
  }
  return BuiltIn("generic.events");
}

EventSet SoftwareEventSet() { return BuiltIn("software.events"); }

}  // namespace sonde::collect
