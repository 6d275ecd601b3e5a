// Steps and their profiles, running and archived: which steps there are, the data of each, and
// comparisons of runs.
//
// Thread safety: methods from any thread, several at a time. A callback is called once, from any
// thread, and also before the method returns.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "profiles/model/profile.h"
#include "profiles/model/summary.h"

namespace sonde::web {

// A step of a job, as in a list.
struct StepInShort {
  std::string key;  // of its profile; "": no profile yet
  JobStep id;
  std::string name;
  EndState state = EndState::kRunning;
  Nanos start = 0;
  Nanos end = 0;  // 0 while it runs
  uint32_t nodes = 0;
  uint32_t tasks = 0;
  UserTags tags;
  Summary summary;
};

class StepHistory {
 public:
  virtual ~StepHistory() = default;

  // Running and archived steps, newest first: the newest `limit`, and all that run.
  using JobsCallback = std::function<void(Result<std::vector<JobDescription>>)>;
  virtual void Jobs(size_t limit, JobsCallback callback) const = 0;

  // The profile of a step, so far or final. kNotFound for an unknown step.
  using ProfileCallback = std::function<void(Result<Profile>)>;
  virtual void GetProfile(const JobStep& id, ProfileCallback callback) const = 0;

  // The steps of a job, newest first; `now` ends running steps. kNotFound if there is none.
  using StepsCallback = std::function<void(Result<std::vector<StepInShort>>)>;
  virtual void StepsOf(const std::string& job, Nanos now, StepsCallback callback) const;

  // What could not be read of the archive so far while the rest was, in words, each once. A head
  // has no archive.
  virtual std::vector<std::string> PassedOver() const { return {}; }

  // Changes the tags of a finished step, and gives the tags that it has then. kBusy: it runs, or
  // another process has the archive open; kPermission: this process may not write it; kLimit: it
  // would have too many tags.
  using TagsCallback = std::function<void(Result<UserTags>)>;
  virtual void ChangeTags(const JobStep& id, const UserTags& set,
                          const std::vector<std::string>& remove, TagsCallback callback) const;

  // Compares finished runs, each a step or a profile's key, or several between commas; aligned by
  // "start" or "phase:NAME". The JSON of `sonde diff` (docs/archive.md).
  using CompareCallback = std::function<void(Result<std::string>)>;
  virtual void Compare(const std::vector<std::string>& groups, const std::string& align,
                       CompareCallback callback) const;
};

}  // namespace sonde::web
