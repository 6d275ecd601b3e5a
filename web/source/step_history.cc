#include "web/source/step_history.h"

#include <utility>

namespace sonde::web {

void StepHistory::StepsOf(const std::string& job, Nanos now, StepsCallback callback) const {
  GetProfile(JobStep::Parse(job), [now, callback = std::move(callback)](Result<Profile> profile) {
    if (!profile.ok()) return callback(profile.status());
    const JobDescription& d = profile->job;
    callback(std::vector<StepInShort>{{"", d.id, d.name, d.state, d.start, d.end, d.expected_nodes,
                                       d.expected_tasks, d.tags, Summarize(*profile, {}, now)}});
  });
}

void StepHistory::ChangeTags(const JobStep& id, const UserTags& /*set*/,
                             const std::vector<std::string>& /*remove*/,
                             TagsCallback callback) const {
  callback(Status(Code::kBusy, id.ToString() +
                                   " is running; its tags can be changed when it has ended, "
                                   "with 'sonde tag' or at 'sonde serve'"));
}

void StepHistory::Compare(const std::vector<std::string>& /*groups*/, const std::string& /*align*/,
                          CompareCallback callback) const {
  callback(Status(Code::kNotFound,
                  "runs are compared when they have ended, by 'sonde diff' or at 'sonde serve'"));
}

}  // namespace sonde::web
