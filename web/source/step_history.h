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
#include "profiles/records/card.h"
#include "profiles/select/selection.h"

namespace sonde {
struct ManyRunsQuestion;
enum class BandAxis : unsigned char;
}  // namespace sonde

namespace sonde::web {

// A step as in a list: what its card tells.
struct StepInShort {
  std::string key;  // of its profile; "": no profile yet
  JobStep id;
  std::string name;     // the job's
  std::string command;  // its beginning
  std::string user;
  std::string account;
  std::string partition;
  EndState state = EndState::kRunning;
  int level = 0;
  Nanos start = 0;
  Nanos end = 0;  // 0 while it runs
  uint32_t nodes = 0;
  uint32_t tasks = 0;
  Coverage coverage;
  std::string figure;  // the first figure of merit's name; "": none
  std::string figure_unit;
  double figure_value = 0;
  UserTags tags;
  Summary summary;
};
// `now` ends a step that runs.
StepInShort InShort(const std::string& key, const JobStep& id, const Card& card, Nanos start,
                    Nanos now);

// A part of the steps that a selection gives, and how many there are in all.
struct StepPage {
  std::vector<StepInShort> steps;
  uint64_t found = 0;
};

// Which runs are modelled, and what of them.
struct ModelsQuestion {
  std::vector<std::string> runs;  // steps and jobs; or one text of a command or name
  size_t last = 200;
  std::string by;  // what the runs differ in, as `sonde model --by` takes it; "": nodes, or tasks
  std::vector<std::string> metrics;  // texts of names; none: what people look at first
  bool all = false;                  // the whole footprint
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

  // The steps that a selection asks for, in its order; `now` ends running steps.
  using ListCallback = std::function<void(Result<StepPage>)>;
  virtual void List(const Selection& selection, Nanos now, ListCallback callback) const;
  // Whether there is one step here and will be no other: a head's.
  virtual bool HasOneStep() const { return false; }

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

  // How the numbers of up to 500 runs spread, as JSON (docs/endpoints.md).
  virtual void CompareMany(const ManyRunsQuestion& question, CompareCallback callback) const;
  // Their series as bands, as JSON.
  virtual void Bands(const ManyRunsQuestion& question, const std::vector<std::string>& metrics,
                     BandAxis axis, CompareCallback callback) const;

  // How the numbers of runs grow with their size: the JSON of `sonde model`.
  using ModelsCallback = std::function<void(Result<std::string>)>;
  virtual void Models(const ModelsQuestion& question, ModelsCallback callback) const;

  // What follows from the numbers of a finished step: `of` is "hints", "budget", "phases",
  // "stragglers" or "periods", and the answer the JSON of that command.
  using ConcludeCallback = std::function<void(Result<std::string>)>;
  virtual void Conclude(const JobStep& id, const std::string& of, ConcludeCallback callback) const;
};

}  // namespace sonde::web
