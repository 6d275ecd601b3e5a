// The archive and the user's running steps as the web server's data source; `sonde serve` uses
// it.
//
// Questions about a running step go to its head; if the head does not answer, the archive gives
// what was stored so far. Worker threads of its own do everything, in the order in which it comes,
// and none of them waits for a head. Names of series come from the newest kListedSteps steps and
// all that run, for an archive may hold tens of thousands.
//
// Thread safety: that of DataSource. The destructor ends the workers; open questions are called
// back with kUnavailable, or with nothing where there is no status.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "insight/steps/step_energy.h"
#include "profiles/archive/archive.h"
#include "profiles/archive/keeper.h"
#include "profiles/compare/run_bands.h"
#include "serve/running_heads.h"
#include "serve/step_queries.h"
#include "serve/workers.h"
#include "web/source/data_source.h"

namespace sonde::serve {

// What the conclusions about a finished step need besides its profile. Files are read when one is
// asked for, so that what was measured meanwhile counts.
struct ConcludeOptions {
  std::string hint_rules;               // the directory of the site's; "": there is none
  std::vector<std::string> peak_files;  // as `sonde peaks` writes them
  insight::CarbonOptions carbon;
};

class ArchiveSource : public web::DataSource {
 public:
  static constexpr size_t kListedSteps = 200;
  static constexpr size_t kNotedSteps = 32;

  // `keeper`: of the same archive; without one this object changes no tags. `patience`: the time
  // that a head has to answer.
  explicit ArchiveSource(std::shared_ptr<const Archive> archive,
                         std::unique_ptr<ArchiveKeeper> keeper = nullptr,
                         Nanos patience = RunningHeads::kTimeout, ConcludeOptions conclude = {});
  ~ArchiveSource() override;

  void Jobs(size_t limit, JobsCallback callback) const override;
  void GetProfile(const JobStep& id, ProfileCallback callback) const override;
  void StepsOf(const std::string& job, Nanos now, StepsCallback callback) const override;
  void List(const Selection& selection, Nanos now, ListCallback callback) const override;
  std::vector<std::string> PassedOver() const override { return archive_->damage(); }
  void ChangeTags(const JobStep& id, const UserTags& set, const std::vector<std::string>& remove,
                  TagsCallback callback) const override;
  void Compare(const std::vector<std::string>& groups, const std::string& align,
               CompareCallback callback) const override;
  void CompareMany(const ManyRunsQuestion& question, CompareCallback callback) const override;
  void Bands(const ManyRunsQuestion& question, const std::vector<std::string>& metrics,
             BandAxis axis, CompareCallback callback) const override;
  void Models(const web::ModelsQuestion& question, ModelsCallback callback) const override;
  void Conclude(const JobStep& id, const std::string& of, ConcludeCallback callback) const override;

  void ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const override;
  void Names(NamesCallback callback) const override;
  void Query(const QuerySpec& spec, Callback callback) const override;
  // Of the newest kNotedSteps steps in the range.
  void Notes(Nanos first, Nanos last, NotesCallback callback) const override;
  // Has no rows: those of a running step are at its head.
  void ReadLive(const JobStep& id, const IsWanted& wanted, Nanos after, size_t limit,
                RowsCallback callback) const override;

  void Forward(const JobStep& id, const web::Request& request,
               ForwardCallback callback) const override;
  void Tree(const JobStep& id, TreeCallback callback) const override;

 private:
  using Steps = std::vector<ProfileEntry>;

  // The work of the workers. StepHistory:
  Task<Result<std::vector<JobDescription>>> DoJobs(size_t limit) const;
  Task<Result<Profile>> DoGetProfile(JobStep id) const;
  Task<Result<std::vector<web::StepInShort>>> DoStepsOf(std::string job, Nanos now) const;
  Task<Result<web::StepPage>> DoList(Selection selection, Nanos now) const;
  Task<Result<UserTags>> DoChangeTags(JobStep id, TagChange change) const;
  Task<Result<std::string>> DoCompare(std::vector<std::string> groups, std::string align) const;
  Task<Result<std::string>> DoCompareMany(ManyRunsQuestion question) const;
  Task<Result<std::string>> DoBands(ManyRunsQuestion question, std::vector<std::string> metrics,
                                    BandAxis axis) const;
  Task<Result<std::string>> DoModels(web::ModelsQuestion question) const;
  Task<Result<std::string>> DoConclude(JobStep id, std::string of) const;
  // StepSeries:
  Task<Result<std::vector<Series>>> DoListSeries(std::string metric, size_t limit) const;
  Task<Result<web::SeriesNames>> DoNames() const;
  Task<std::vector<web::Note>> DoNotes(Nanos first, Nanos last) const;
  Task<Result<web::LiveRows>> DoReadLive(JobStep id) const;
  // StepControl:
  Task<std::optional<web::Response>> DoForward(JobStep id, web::Request request) const;
  Task<Result<std::vector<web::TreeEdge>>> DoTree(JobStep id) const;

  Result<ProfileEntry> Running(const JobStep& id) const;
  // `limit` at most, with the tag host; `metric`: "" is all. `told`: the heads' answers.
  Result<std::vector<Series>> SeriesOf(const ProfileEntry& entry,
                                       const RunningHeads::Profiles& told,
                                       const std::string& metric, size_t limit) const;
  void AddNames(const ProfileEntry& entry, const RunningHeads::Profiles& told,
                web::SeriesNames& names) const;
  std::optional<StepMoments> KnownMoments(const std::string& key) const;
  StepMoments MomentsOf(const ProfileEntry& entry, const RunningHeads::Profiles& told) const;

  const std::shared_ptr<const Archive> archive_;
  const std::unique_ptr<ArchiveKeeper> keeper_;
  const ConcludeOptions conclude_;
  mutable std::mutex mutex_;  // guards what is known
  // Moments of finished steps, which do not change; by their keys.
  mutable std::map<std::string, StepMoments> moments_;
  // Names of the newest finished steps, and these steps' keys and cards.
  mutable std::string named_;
  mutable std::shared_ptr<const web::SeriesNames> names_;
  mutable Workers workers_;
  mutable RunningHeads heads_;
  const StepQueries queries_;
};

}  // namespace sonde::serve
