#include <fmt/core.h>

#include <map>
#include <tuple>

#include "profiles/model/moments.h"
#include "profiles/model/summary.h"

namespace sonde {

std::vector<std::string> AlarmNotes(const std::vector<RaisedAlarm>& alarms,
                                    const JobDescription& job) {
  struct Group {
    const RaisedAlarm* first;
    size_t count;
  };
  std::vector<Group> groups;
  std::map<std::tuple<std::string, Tags, Owner>, size_t> index;
  for (const RaisedAlarm& alarm : alarms) {
    const auto [at, added] = index.try_emplace({alarm.rule, alarm.tags, alarm.by}, groups.size());
    if (added) groups.push_back({&alarm, 0});
    ++groups[at->second].count;
  }
  std::vector<std::string> notes;
  for (const auto& [first, count] : groups) {
    if (notes.size() + 1 == kMaxAlarmNotes && groups.size() > kMaxAlarmNotes) {
      notes.push_back(
          fmt::format("{} more alarms were raised; all with --json", groups.size() - notes.size()));
      break;
    }
    std::string note = fmt::format("alarm {} ({})", first->rule, first->severity);
    if (first->by.node != Owner::kNobody) note += ", " + OwnerName(first->by, job);
    note += fmt::format(": {}; raised {}", first->text, FormatTime(first->raised));
    if (count > 1) {
      note += fmt::format(" for the first time, {} times in all", count);
    } else if (first->over != 0) {
      note += fmt::format(", over after {}", FormatDuration(first->over - first->raised));
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace sonde
