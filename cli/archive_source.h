// The archive and the user's running steps as the web server's data source: what `sonde serve`
// shows.
//
// What is asked of a running step is asked of its head; of one whose head does not answer the
// archive has what was stored so far. Queries, and requests that are passed on to a head, are done
// by worker threads of its own, in the order they come. Names of series
// come from the newest kListedSteps steps, for an archive may hold tens of thousands.
//
// Thread safety: that of DataSource. The destructor ends the workers; queries that have not begun
// are called back with kUnavailable.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/running_heads.h"
#include "cli/step_queries.h"
#include "profiles/archive.h"
#include "web/data_source.h"

namespace sonde::cli {

class ArchiveSource : public web::DataSource {
 public:
  static constexpr size_t kListedSteps = 200;
  static constexpr size_t kNotedSteps = 32;

  explicit ArchiveSource(std::unique_ptr<Archive> archive);
  ~ArchiveSource() override;

  Result<std::vector<JobDescription>> Jobs(size_t limit) const override;
  Result<Profile> GetProfile(const JobStep& id) const override;
  Result<std::vector<web::StepInShort>> StepsOf(const std::string& job, Nanos now) const override;
  Result<UserTags> ChangeTags(const JobStep& id, const UserTags& set,
                              const std::vector<std::string>& remove) const override;
  void Compare(const std::vector<std::string>& groups, const std::string& align,
               CompareCallback callback) const override;
  Result<std::vector<Series>> ListSeries(std::string_view metric, size_t limit) const override;
  Result<web::SeriesNames> Names() const override;
  void Query(const QuerySpec& spec, Callback callback) const override;
  // Of the newest kNotedSteps steps in the range.
  std::vector<web::Note> Notes(Nanos first, Nanos last) const override;
  bool Forward(const JobStep& id, const web::Request& request,
               const web::Reply& reply) const override;
  void Tree(const JobStep& id, TreeCallback callback) const override;

 private:
  // What a worker does; with an error, what it could not.
  using Task = std::function<void(const Status& stopped)>;

  void Work();
  void Post(Task task) const;
  Result<ProfileEntry> Running(const JobStep& id) const;
  Result<Profile> Load(const ProfileEntry& entry) const;
  Result<std::vector<Series>> SeriesOf(const ProfileEntry& entry) const;
  void AddNames(const ProfileEntry& entry, web::SeriesNames& names) const;
  StepMoments MomentsOf(const ProfileEntry& entry) const;

  const std::unique_ptr<Archive> archive_;
  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;
  mutable RunningHeads heads_;
  const StepQueries queries_;
  mutable std::deque<Task> queue_;
  // Moments of finished steps, which do not change; by their keys.
  mutable std::map<std::string, StepMoments> moments_;
  // Names of the newest finished steps, and these steps' keys and cards.
  mutable std::string named_;
  mutable std::shared_ptr<const web::SeriesNames> names_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace sonde::cli
