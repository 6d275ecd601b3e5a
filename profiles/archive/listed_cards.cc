#include "profiles/archive/listed_cards.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "profiles/select/select.h"

namespace sonde {
namespace {

// "123_4.0" names a task of a job array, whose steps have a job id of their own.
bool IsArrayTask(const JobDescription& job, const JobStep& id) {
  return !job.array_job.empty() && job.array_job + "_" + job.array_task == id.job &&
         (id.step.empty() || id.step == job.id.step);
}

}  // namespace

Result<std::vector<ProfileEntry>> FindSteps(const Archive& archive, std::string_view text) {
  const JobStep id = JobStep::Parse(text);
  auto found = archive.Find(id);
  if (!found.ok() || !found->empty()) return found;
  if (id.job.find('_') != std::string::npos) {
    found = archive.List();
    if (!found.ok()) return found;
    std::erase_if(*found, [&](const ProfileEntry& e) { return !IsArrayTask(e.job, id); });
    if (!found->empty()) return found;
  }
  return Status(Code::kNotFound,
                fmt::format("there is no profile of job {}; 'sonde ls' lists what there is, "
                            "'sonde ls --all' everything",
                            text));
}

Result<std::vector<ListedProfile>> CardsOf(const Archive& archive,
                                           const std::vector<ProfileEntry>& found, Nanos now) {
  Selection selection;
  selection.since = std::numeric_limits<Nanos>::max();
  selection.until = 0;
  std::set<std::string_view> keys;
  for (const ProfileEntry& entry : found) {
    keys.insert(entry.key);
    selection.since = std::min(selection.since, entry.job.start);
    selection.until = std::max(selection.until, entry.job.start);
  }
  auto listed = archive.Select(selection, now);
  if (!listed.ok()) return listed;
  std::erase_if(*listed, [&](const ListedProfile& one) { return !keys.contains(one.key); });
  return listed;
}

}  // namespace sonde
